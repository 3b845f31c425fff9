/*
 * A flight recorder: an own tracefs instance that overwrites its oldest events until it is frozen,
 * and is then written out as text or as trace.dat. It needs tracefs, but none of the latency
 * tracers: engines that measure without them use it too.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "latency/engine.h"
#include "latency/journal.h"
#include "latency/tracefs.h"

struct trace_flight;

struct trace_flight_options {
	const char *clock;   /* NULL "local"; "mono" beside records of BPF or user space */
	const char *tracer;  /* NULL none */
	unsigned buffer_kib; /* per CPU; 0: the kernel's default */
	const struct latency_event *events; /* borrowed until the recorder is freed */
	unsigned event_count;
};

/* The events around a late wake-up: interrupts, softirqs, the scheduler, workqueues. Those that
 * this kernel lacks are skipped by trace_flight_start(); events of the caller's are not. */
extern const struct latency_event trace_flight_events[];
extern const unsigned trace_flight_event_count;

/* Starts recording. tracefs is borrowed until the recorder is freed. */
int trace_flight_start(const struct tracefs *tracefs, struct journal *journal,
		       const struct trace_flight_options *options, struct trace_flight **ret,
		       struct err *err);
/* Puts a line of text into the recording; thread-safe. */
void trace_flight_mark(struct trace_flight *flight, const char *text);
/* Stops recording; the events stay. Async-signal-safe and cheap: one write. */
void trace_flight_freeze(struct trace_flight *flight);
/* Freezes, and writes text, or trace.dat when path ends in ".dat"; any number of times. Histograms
 * that triggers have made go to SYSTEM_EVENT_hist.txt in the same folder. */
int trace_flight_write(struct trace_flight *flight, const char *path, struct err *err);
const struct trace_instance *trace_flight_instance(const struct trace_flight *flight);
/* Closes its files, so that the instance can go when the journal is restored. Async-signal-safe. */
void trace_flight_close(struct trace_flight *flight);
void trace_flight_free(struct trace_flight *flight);
