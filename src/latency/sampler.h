/*
 * The threads that measure: one on each CPU, which sleep until a time and tell how late they woke
 * (timerlat, cyclic), or read the clock without pause and tell when it jumped (osnoise, hwnoise).
 *
 * A thread's loop takes no lock and allocates nothing; its records go into the CPU's ring. All
 * begin together, at one base time, so that the phase between CPUs is known. A thread that waits to
 * begin sleeps two milliseconds at a time, which shows it to the BPF programs.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "latency/ring.h"
#include "latency/run.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

struct sampler_options {
	bool wakes;                  /* sleeps and wakes; else reads the clock without pause */
	const struct cpuset *cpus;   /* a thread on each; or */
	const unsigned *thread_cpus; /* the CPU of each of thread_count threads */
	unsigned thread_count;
	bool lock_memory;   /* required: fails when memory cannot be locked */
	bool hardware_only; /* gaps with a known interruption are no noise */
	uint64_t period_ns, runtime_ns, threshold_ns;
	struct latency_limits limits;
	int policy;   /* SCHED_* */
	int priority; /* sched_priority, or nice of SCHED_OTHER */
	uint64_t dl_runtime_ns, dl_period_ns;
	const char *cgroup; /* NULL: no change */
	uint64_t align_ns;  /* between the wake-ups of neighbouring CPUs */
	clockid_t clock;
	uint64_t loops;               /* wake-ups of each thread, 0 no end */
	bool relative;                /* sleeps for the period instead of until a time */
	const uint64_t *intervals_ns; /* of each thread, instead of one period; NULL */
};

/* What a thread's loop needs of the CPU. */
struct sampler_cpu {
	struct lat_cpu *state;
	struct ring ring; /* for writing */
	unsigned *frozen; /* all threads end when it is not 0; a thread whose limit is reached sets
			     it */
	bool interrupted_known; /* state tells who interrupted (BPF) */
};

struct samplers;

/* Starts the threads, pinned and with the policy, memory locked; they wait. -EPERM and others name
 * the thread's CPU and the cause. *ret_unlocked: memory could not be locked. */
int samplers_new(const struct sampler_options *options, struct samplers **ret, bool *ret_unlocked,
		 struct err *err);
/* In the order of the CPUs; as gettid(). */
const int *samplers_tids(const struct samplers *samplers);
/* Lets them measure; cpus in the same order, copied. */
void samplers_go(struct samplers *samplers, const struct sampler_cpu *cpus);
/* All have done their loops. */
bool samplers_done(const struct samplers *samplers);
/* Ends them, within a period. false: one got no CPU for seconds, and lives. */
bool samplers_stop(struct samplers *samplers);
/* Warns of wake-ups that were left out because the one before came later than they were due; period
 * is what lies between them, in words. */
void samplers_tell_skipped(const struct samplers *samplers, const char *period,
			   struct latency_run *run);
/* false: a thread lives; nothing that it was given may be freed. */
bool samplers_free(struct samplers *samplers);

/* "fifo", "rr", "other", "batch", "idle", "deadline"; "unknown". */
const char *policy_name(int policy);
/* Gives a thread (0: this one) a policy; priority is the nice value of those that have none. */
int policy_set(int tid, int policy, int priority, uint64_t dl_runtime_ns, uint64_t dl_period_ns);
/* Why the kernel refused a policy: words with the remedy. Returns code. */
int policy_refused(int code, int policy, int priority, struct err *err);
