/*
 * The kernel below the counting engine, as a table of calls: the real one is perf_event_open(2),
 * tests put a simulated PMU or recorded reads in its place. Everything that decides (planning,
 * slices, estimates) stands above this line and never calls the kernel by itself.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpuset.h"

struct counter_ops {
	/* A descriptor >= 0, or -errno. attr is only read. */
	int (*open)(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags);
	/* Reads the group of a leader (PERF_FORMAT_GROUP and both times): words[0] members, [1]
	 * enabled, [2] running, [3..] values. Returns the words read, 0 for an event in error state
	 * (a pinned one that lost its counter), or -errno. */
	int (*read)(void *ctx, int fd, uint64_t *words, unsigned count);
	/* The whole group of this leader. */
	int (*enable)(void *ctx, int fd);
	int (*disable)(void *ctx, int fd);
	void (*close)(void *ctx, int fd);
	uint64_t (*clock)(void *ctx); /* monotonic, ns */
	/* Moves this thread to these CPUs, NULL: back to where it may run. -errno when it may not.
	 */
	int (*run_on)(void *ctx, const struct cpuset *cpus);
};

/* perf_event_open(2); ctx is not used. */
extern const struct counter_ops counter_kernel;

/* Ticks of the time stamp counter in a second, as the kernel tells user space; NaN: it does not. */
double counter_tsc_hz(void);
