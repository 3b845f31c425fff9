/* A set of events on the simulated PMU, planned, counted and read: what tests of the engine share.
 */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "count/session.h"
#include "count/set.h"
#include "fake-pmu.h"

static const struct {
	const char *name;
	uint64_t config;
} hardware[] = {
	{"cycles", PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_COUNT_HW_BRANCH_MISSES},
	{"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
};

struct world {
	struct fake_pmu pmu;
	struct count_set set;
	struct count_session *session;
	uint64_t started;
};

static inline void world_init(struct world *w, unsigned counters)
{
	memset(w, 0, sizeof(*w));
	fake_init(&w->pmu, counters);
}

static inline void world_fini(struct world *w)
{
	count_session_close(w->session);
	count_set_fini(&w->set);
}

/* "name", "name:u", "name:k" of the table above, or "rN": raw event N. Returns the index. */
static inline unsigned add_event(struct count_set *set, const char *name, int user_group)
{
	struct count_event event = {.scale = 1, .user_group = user_group, .kind = COUNT_CORE};
	size_t len = strcspn(name, ":");
	char text[64];

	snprintf(text, sizeof(text), "%s", name);
	event.name = text;
	event.attr.type = PERF_TYPE_RAW;
	event.attr.config = name[0] == 'r' ? strtoul(name + 1, NULL, 16) : 0;
	for (size_t i = 0; i < ARRAY_LEN(hardware); i++)
		if (strlen(hardware[i].name) == len && memcmp(hardware[i].name, name, len) == 0) {
			event.attr.type = PERF_TYPE_HARDWARE;
			event.attr.config = hardware[i].config;
		}
	event.attr.exclude_kernel = name[len] == ':' && name[len + 1] == 'u';
	event.attr.exclude_user = name[len] == ':' && name[len + 1] == 'k';
	if (count_set_add(set, &event) < 0)
		abort();
	return (unsigned)set->events.len - 1;
}

static inline void world_start(struct world *w, const struct count_plan_options *options)
{
	static const struct count_plan_options none;
	struct count_place place = {.pid = 100, .cpu = -1, .cgroup = -1};
	struct count_session_options how = {.inherit = true, .keep_slices = true};

	if (count_plan(&w->set, &fake_ops, &w->pmu, options ? options : &none) < 0 ||
	    count_session_open(&w->set, &fake_ops, &w->pmu, &place, 1, 1, &how, &w->session, NULL) <
		    0)
		abort();
	count_session_enable(w->session);
	w->started = w->pmu.now;
}

static inline void world_run(struct world *w, uint64_t ns)
{
	uint64_t end = w->pmu.now + ns;

	while (w->pmu.now < end) {
		fake_advance(&w->pmu, MIN(count_session_slice_ns(w->session), end - w->pmu.now));
		count_session_read(w->session);
	}
}

static inline struct count_value value_of(struct world *w, unsigned event)
{
	struct count_value value;

	count_session_value(w->session, 0, event, &value);
	return value;
}

static inline double truth_of(struct world *w, unsigned event)
{
	return fake_truth(&w->pmu, &w->set.events.data[event].attr, w->started, w->pmu.now);
}
