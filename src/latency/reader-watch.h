/*
 * The threads that measure outrank the one that reads and ends the measurement. On a machine that
 * is slow for what it is asked to do (an emulated one, a period that is too short, a loop without
 * pause) they can take every CPU for good: real-time throttling, which leaves the others 5 %, may
 * be off, and does not count interrupts. The measurement then could not be ended, by nothing but a
 * reset.
 *
 * So a thread of the highest priority looks once a second whether the reader lives. When it has
 * been silent for two looks and wants to run (or waits for a timeout, which on PREEMPT_RT a thread
 * of low priority has to deliver), the reader is woken and gets a real-time priority below the
 * watch's, until it has been alive for some seconds. Where real-time priorities are not permitted
 * nobody has one, and the watch does nothing.
 */
#pragma once

#include <stdbool.h>

struct reader_watch;

/* Watches the calling thread. NULL: no thread could be started, or it may not have a priority. */
struct reader_watch *reader_watch_new(void);
/* The reader is alive. waits: until its next sign it waits for at most a moment. NULL: nothing. */
void reader_watch_alive(struct reader_watch *watch, bool waits);
/* How often the reader had to be helped. */
unsigned reader_watch_helped(const struct reader_watch *watch);
/* Ends the watch; called by the reader, which has its old policy afterwards. */
void reader_watch_free(struct reader_watch *watch);
