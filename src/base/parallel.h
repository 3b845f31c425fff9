/*
 * Runs fn(arg, i) for every i in [0, count) on up to nthreads threads (0: one per CPU this process
 * may use). Work is taken one index at a time, so uneven items balance. The first negative return
 * value stops the handing-out and is returned; without threads it runs in the caller's.
 */
#pragma once

#include <stddef.h>

int parallel_for(size_t count, unsigned nthreads, int (*fn)(void *arg, size_t i), void *arg);

/* CPUs that this process may run on, at least 1. */
unsigned parallel_cpus(void);
