/*
 * The CPUs that threads may run on, as sets of ours. tid 0 is the calling thread. What the kernel
 * tells already is the affinity within the cpuset of the control group; CPUs of CPUSET_MAX and more
 * do not exist for us.
 */
#pragma once

#include <sys/types.h>

#include "base/cpuset.h"

/* 0 or a negative errno. */
int affinity_get(pid_t tid, struct cpuset *ret);
/* CPUs that the thread may not have are left out; -EINVAL when none is left. */
int affinity_set(pid_t tid, const struct cpuset *cpus);
int affinity_set_one(pid_t tid, unsigned cpu);
