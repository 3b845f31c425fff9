/*
 * A simulated PMU behind struct counter_ops: a few counters, pinned and flexible groups, and the
 * kernel's rotation by one group per tick. Programs are functions that give the rate of an event at
 * a time, so that the truth is known. Reads can also be recorded ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "count/ops.h"

#define FAKE_EVENTS 512

struct fake_event {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu, leader; /* leader: index of itself for leaders */
	bool open, enabled, active, error;
	double count;
	uint64_t enabled_ns, running_ns;
};

struct fake_pmu {
	uint64_t now, tick_ns, next_tick;
	uint64_t call_ns;  /* what every open and read takes; 0: nothing */
	unsigned counters; /* that hold anything */
	unsigned taken;    /* of those, held by a watchdog or another user */
	bool fixed_cycles, fixed_instructions;
	bool lie_in_validation; /* groups that can never run are accepted at open */
	bool rotates;
	unsigned rotation;
	/* Two kinds of core: which kind counts an event, 0 or 1; NULL: one kind. The thread runs on
	 * at_kind; CPUs below 4 are of kind 0. */
	int (*kind_of)(const struct perf_event_attr *attr);
	unsigned kind_counters[2];
	int at_kind;
	/* events per ns; NULL: 1 */
	double (*rate)(const struct perf_event_attr *attr, uint64_t now);
	/* errno to refuse with, 0 to accept; NULL: accepts */
	int (*refuse)(const struct perf_event_attr *attr);
	/* false: this event's group never gets onto the counters; NULL: all may */
	bool (*schedulable)(const struct perf_event_attr *attr);
	/* called at every tick before scheduling; NULL: nothing happens */
	void (*on_tick)(struct fake_pmu *pmu);
	struct fake_event events[FAKE_EVENTS];
	unsigned event_count, opens, reads;
};

extern const struct counter_ops fake_ops;

void fake_init(struct fake_pmu *pmu, unsigned counters);
void fake_advance(struct fake_pmu *pmu, uint64_t ns);
/* What an always-on counter would have seen from t0 to t1. */
double fake_truth(const struct fake_pmu *pmu, const struct perf_event_attr *attr, uint64_t t0,
		  uint64_t t1);

/* Recorded reads: word triples and more, one record per read, the last one repeats. */
struct replay {
	const uint64_t *words;
	unsigned words_per_read, reads, at;
	uint64_t now;
	int end_at; /* from this read on the event is in error state (reads give 0 words); -1: never
		     */
};

extern const struct counter_ops replay_ops;
