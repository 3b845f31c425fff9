/* Which events stat counts: the default set, -d, -e, and what -M and --explain need. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/stat.h"

#define CACHE(cache, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

struct known_event {
	const char *name;
	uint32_t type;
	uint64_t config;
};

/* Names that need no look-up in /sys: the common start must not pay for one. */
static const struct known_event known_events[] = {
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

#define DEFAULT_FIRST 2 /* context-switches ... */
#define DEFAULT_COUNT 9 /* ... cache-misses */

static const unsigned detail_counts[] = {0, 4, 10, 12}; /* of the HW_CACHE rows, for each -d */

/* Two kinds of core: every hardware event is opened on both, which the events module knows how to.
 */
static bool is_hybrid(void)
{
	static int hybrid = -1;

	if (hybrid < 0)
		hybrid = access("/sys/bus/event_source/devices/cpu_core", F_OK) == 0;
	return hybrid;
}

static int add_known(struct stat_job *job, const struct known_event *known)
{
	struct count_event event = {.scale = 1, .user_group = -1};
	char name[64];

	if (known->type != PERF_TYPE_SOFTWARE && is_hybrid())
		return stat_add_event_texts(job, &known->name, 1, NULL);
	snprintf(name, sizeof(name), "%s", known->name);
	event.name = name;
	event.attr.type = known->type;
	event.attr.config = known->config;
	event.kind = count_kind_of(&event.attr);
	event.attr.exclude_guest = event.kind == COUNT_CORE; /* as for events named with -e */
	return count_set_add(&job->set, &event);
}

static const struct known_event *find_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(known_events); i++)
		if (strcmp(known_events[i].name, name) == 0)
			return &known_events[i];
	return NULL;
}

/* Adds a known event unless it is counted already. Its index, or -ENOMEM. */
static int need_event(struct stat_job *job, const char *name)
{
	const struct known_event *known = find_known(name);
	int at = known ? count_set_find(&job->set, known->type, known->config) : -EINVAL;

	if (at != -1)
		return at;
	return add_known(job, known) < 0 ? -ENOMEM : (int)job->set.events.len - 1;
}

static int add_defaults(struct stat_job *job)
{
	int r = add_known(job, find_known(job->target.system_wide ? "cpu-clock" : "task-clock"));

	for (unsigned i = 0; i < DEFAULT_COUNT && r == 0; i++)
		r = add_known(job, &known_events[DEFAULT_FIRST + i]);
	return r;
}

static int add_detail(struct stat_job *job)
{
	unsigned count = detail_counts[MIN(job->options.detail, ARRAY_LEN(detail_counts) - 1)];

	for (unsigned i = 0; i < count; i++)
		if (need_event(job, known_events[DEFAULT_FIRST + DEFAULT_COUNT + i].name) < 0)
			return -ENOMEM;
	return 0;
}

int stat_choose_events(struct stat_job *job, struct err *err)
{
	int r = 0;

	if (job->options.null_run)
		return 0;
	if (job->options.regions)
		return stat_regions_begin(job, err);
	if (job->options.events.len > 0)
		r = stat_add_event_texts(job, job->options.events.data, job->options.events.len,
					 err);
	if (r < 0)
		return r;
	r = stat_metric_events(job, err);
	if (r == 0 && job->options.events.len == 0 && !job->options.metrics &&
	    !job->options.explain)
		r = add_defaults(job);
	if (r == 0)
		r = add_detail(job);
	return r == -ENOMEM ? err_set(err, r, "out of memory") : r;
}

int stat_need_event(struct stat_job *job, const char *name)
{
	return need_event(job, name);
}
