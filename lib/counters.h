/*
 * The counters of one thread, read from user space where the kernel allows.
 *
 * All events of a thread are one pinned group: they count the whole time together, or not at all.
 * Each has its page of perf_event_mmap_page; reading follows the protocol that linux/perf_event.h
 * documents there: repeat while the sequence lock changes, sign-extend the hardware counter by
 * pmc_width, add offset, and fall back to one read() of the group when index is 0 (not on a counter
 * now) or rdpmc is not allowed.
 *
 * What is not static is named culprit_*: the static library becomes a part of other programs.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#define EVENTS_MAX       8
#define EVENT_NAME_BYTES 64

enum event_state {
	EVENT_COUNTED,
	EVENT_NOT_SUPPORTED,
	EVENT_NOT_COUNTED
};

struct event {
	char name[EVENT_NAME_BYTES];
	uint32_t type;
	uint64_t config, config1, config2;
	bool exclude_user, exclude_kernel;
	enum event_state state;
	char reason[96]; /* why not */
};

/* Of the process: decided once, by trial on the thread that begins the first region. */
struct event_list {
	struct event events[EVENTS_MAX];
	unsigned count;
};

/* Parses CULPRIT_EVENTS; NULL: the default. Unknown names become EVENT_NOT_SUPPORTED. */
void culprit_events_parse(struct event_list *list, const char *text);
/* Tries the events on this thread and marks those that cannot be had. */
void culprit_events_probe(struct event_list *list);

struct counters {
	int fds[EVENTS_MAX]; /* of the counted events, in order; the first leads */
	struct perf_event_mmap_page *pages[EVENTS_MAX];
	unsigned event_of[EVENTS_MAX];
	unsigned count;
	bool direct; /* every event can be read without a system call */
	/* The clock register that the kernel vouches for: ns = ticks * tick_mult >> tick_shift. */
	uint32_t tick_mult; /* 0: there is none */
	uint16_t tick_shift;
};

/* 0 or a negative errno; then nothing is open. */
int culprit_counters_open(struct counters *c, const struct event_list *list);
void culprit_counters_close(struct counters *c);
/* The clock register, where tick_mult is not 0. */
uint64_t culprit_counters_ticks(const struct counters *c);
/* values[i] of the i-th counted event. False when a value could not be had (they are 0 then). */
bool culprit_counters_read(const struct counters *c, uint64_t *values);
