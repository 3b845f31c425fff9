/*
 * An engine measures: it starts the workload on every chosen CPU and turns what happens into
 * records. Four engines share this interface; engine.c chooses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "latency/record.h"
#include "latency/run.h"

enum latency_workload {
	WORKLOAD_USER,     /* our own threads in user space */
	WORKLOAD_KERNEL,   /* the tracer's kernel threads (engine K only) */
	WORKLOAD_EXTERNAL, /* somebody else's threads on timerlat_fd (engine K only) */
};

/* A trace event that is to be kept beside the records, as rtla's -e --filter --trigger. */
struct latency_event {
	const char *system, *event;   /* event NULL: all of the system */
	const char *filter, *trigger; /* NULL none */
};

struct latency_options {
	enum latency_tool tool;
	struct cpuset cpus; /* measured; never empty */
	uint64_t period_ns, runtime_ns;
	uint64_t threshold_ns;        /* shortest gap that is noise */
	struct latency_limits limits; /* stop when reached */
	uint64_t stack_ns; /* keep the interrupted stack when a sample reaches this, 0 off */
	enum latency_workload workload;
	bool workload_chosen; /* by the user: an engine that cannot is refused, not corrected */
	int policy, priority; /* SCHED_*; priority as sched_priority or nice; policy -1: engine's
				 default */
	uint64_t dl_runtime_ns, dl_period_ns; /* SCHED_DEADLINE */
	const char *cgroup;                   /* of the workload; "" ours; NULL no change */
	uint64_t align_ns;                    /* phase between CPUs, 0 together */
	bool aligned;                         /* align_ns was given */
	clockid_t clock;                      /* of user threads, CLOCK_MONOTONIC */
	bool trace;          /* keep a flight recorder for latency_engine_trace() */
	unsigned buffer_kib; /* per CPU, 0 default */
	const struct latency_event *events;
	unsigned event_count;
};

struct latency_engine;

struct latency_engine_ops {
	enum latency_engine_id id;
	/* 0, or why it cannot run these options here, with the remedy, in err. Changes nothing. */
	int (*probe)(const struct latency_options *options, struct err *err);
	/* Starts measuring and tells run what it is blind to and its conditions. What it changes in
	 * the system goes through the journal first. */
	int (*start)(const struct latency_options *options, struct latency_run *run,
		     struct latency_engine **ret, struct err *err);
	/* Waits up to timeout_ms for records and hands them on; returns how many, 0 none,
	 * -ECANCELED once a limit stopped the measurement and everything before was handed on. */
	int (*poll)(struct latency_engine *engine, int timeout_ms, struct latency_sink *sink,
		    struct err *err);
	/* Stops the workload, hands on what is left, writes counters of losses into run. */
	int (*stop)(struct latency_engine *engine, struct latency_sink *sink,
		    struct latency_run *run, struct err *err);
	/* Writes the flight recorder: text when path does not end in .dat, else trace.dat. NULL:
	 * none. */
	int (*trace)(struct latency_engine *engine, const char *path, struct err *err);
	/* Frees it and restores the system; works in every state. */
	void (*free)(struct latency_engine *engine);
};

extern const struct latency_engine_ops engine_tracer_ops; /* K */
extern const struct latency_engine_ops engine_bpf_ops;    /* B */
extern const struct latency_engine_ops engine_light_ops;  /* L */
extern const struct latency_engine_ops engine_user_ops;   /* U */

/*
 * The best engine that can run the options: K where the tracers are, else B, L, U; or the forced
 * one (letter 'K' 'B' 'L' 'U', 0 none). reason says in one sentence why it and not a better one.
 */
int latency_engine_choose(const struct latency_options *options, char forced,
			  const struct latency_engine_ops **ret, char *reason, size_t reason_bytes,
			  struct err *err);
/* The same from a list of the caller's, best first. */
int latency_engine_choose_from(const struct latency_engine_ops *const *rows, unsigned count,
			       const struct latency_options *options, char forced,
			       const struct latency_engine_ops **ret, char *reason,
			       size_t reason_bytes, struct err *err);
