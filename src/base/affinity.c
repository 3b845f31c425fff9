#include "base/affinity.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>

/* Our sets are the kernel's: a bit a CPU, the lowest first, in words of native byte order. */
static_assert(sizeof(unsigned long) == sizeof(((struct cpuset *)NULL)->bits[0]) ||
		      __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "words of the kernel's sets are laid out as ours");

int affinity_get(pid_t tid, struct cpuset *ret)
{
	struct cpuset cpus = {0};

	if (sched_getaffinity(tid, sizeof(cpus.bits), (cpu_set_t *)cpus.bits) < 0)
		return -errno;
	*ret = cpus;
	return 0;
}

int affinity_set(pid_t tid, const struct cpuset *cpus)
{
	const cpu_set_t *set = (const cpu_set_t *)cpus->bits;

	return sched_setaffinity(tid, sizeof(cpus->bits), set) < 0 ? -errno : 0;
}

int affinity_set_one(pid_t tid, unsigned cpu)
{
	struct cpuset one = {0};

	cpuset_add(&one, cpu);
	return affinity_set(tid, &one);
}
