/* The usual events, by name and by number. */
#include <string.h>

#include "base/util.h"
#include "cmd/stat.h"

#define CACHE(cache, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* Names that need no look-up in /sys: the common start must not pay for one. */
const struct stat_known stat_known_events[] = {
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"L1-dcache-loads", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS)},
	{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS)},
	{"LLC-loads", PERF_TYPE_HW_CACHE, CACHE(LL, READ, ACCESS)},
	{"LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS)},
	{"L1-icache-loads", PERF_TYPE_HW_CACHE, CACHE(L1I, READ, ACCESS)},
	{"L1-icache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS)},
	{"dTLB-loads", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, ACCESS)},
	{"dTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS)},
	{"iTLB-loads", PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, ACCESS)},
	{"iTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS)},
	{"L1-dcache-prefetches", PERF_TYPE_HW_CACHE, CACHE(L1D, PREFETCH, ACCESS)},
	{"L1-dcache-prefetch-misses", PERF_TYPE_HW_CACHE, CACHE(L1D, PREFETCH, MISS)},
};

const struct stat_known *stat_known_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(stat_known_events); i++)
		if (strcmp(stat_known_events[i].name, name) == 0)
			return &stat_known_events[i];
	return NULL;
}

const char *stat_known_name(const struct perf_event_attr *attr)
{
	uint64_t config =
		attr->type == PERF_TYPE_SOFTWARE ? attr->config : attr->config & UINT32_MAX;

	for (size_t i = 0; i < ARRAY_LEN(stat_known_events); i++)
		if (stat_known_events[i].type == attr->type &&
		    stat_known_events[i].config == config)
			return stat_known_events[i].name;
	return NULL;
}
