/*
 * cyclictest's measurement: threads that sleep for an interval and tell how late they woke, in user
 * space alone. Unlike the engines of timerlat there may be several threads on a CPU, each with an
 * interval of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "base/vec.h"
#include "latency/run.h"

struct cyclic_options {
	const unsigned *cpus; /* of each thread */
	unsigned threads;
	int policy, priority;
	uint64_t interval_ns, distance_ns; /* thread i sleeps interval + i * distance */
	uint64_t spread_ns;                /* and begins i * spread later */
	uint64_t loops;                    /* of each thread, 0 no end */
	uint64_t break_ns;                 /* ends at a latency above it, 0 never */
	bool relative, lock_memory;
	clockid_t clock;
	unsigned rows; /* of the histogram in us, 0 none */
	bool smi;
};

struct cyclic_thread {
	unsigned cpu;
	int tid;
	uint64_t interval_ns, cycles;
	struct latency_series latency;
	uint64_t *rows;            /* of whole microseconds */
	uint64_t over;             /* values beyond the rows */
	struct histogram beyond;   /* the same, with their values */
	VEC(uint64_t) over_cycles; /* their cycles, at most CYCLIC_OVER_CYCLES */
	int64_t smi;               /* since the start, LATENCY_UNKNOWN_NS unknown */
};

#define CYCLIC_OVER_CYCLES 100

struct cyclic;

/* Starts the threads and tells run the conditions. */
int cyclic_start(const struct cyclic_options *options, struct latency_run *run, struct cyclic **ret,
		 struct err *err);
/* Waits so long and takes what came. *ret_ended: all loops are done, or the limit was passed. */
int cyclic_poll(struct cyclic *cyclic, unsigned wait_ms, struct latency_run *run, bool *ret_ended);
/* Ends the threads and takes the rest. */
int cyclic_stop(struct cyclic *cyclic, struct latency_run *run);
const struct cyclic_thread *cyclic_threads(const struct cyclic *cyclic);
/* The thread that passed the limit and its latency; NULL: none. */
const struct cyclic_thread *cyclic_broken(const struct cyclic *cyclic, int64_t *ret_ns);
void cyclic_free(struct cyclic *cyclic);
