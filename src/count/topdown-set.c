#include "count/topdown-set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "count/check.h"

#define STUCK_CYCLES 1e6 /* a stall counter that saw none in so many does not count */

enum {
	GROUP_METRICS,
	GROUP_LEVEL1
};

/* slots and the fields of PERF_METRICS: event select 0, unit mask 4 and 0x80 on. */
static bool is_metric(const struct topdown_table *table, unsigned event)
{
	return table->vendor == TOPDOWN_INTEL && table->events[event].config1 == 0 &&
	       (table->events[event].config == 0x400 ||
		((table->events[event].config & 0xff) == 0 &&
		 table->events[event].config >= 0x8000));
}

/*
 * Intel's tables name fixed counters by codes that only the fixed counters have (0x100
 * instructions, 0x200 cycles). The kernel knows these two by the codes of the general counters and
 * puts them onto the fixed ones itself; the table's codes would count nothing.
 */
static uint64_t kernel_config(const struct topdown_table *table, uint64_t config)
{
	if (table->vendor != TOPDOWN_INTEL)
		return config;
	switch (config & 0xffff) {
	case 0x100:
		return (config & ~UINT64_C(0xffff)) | 0xc0;
	case 0x200:
		return (config & ~UINT64_C(0xffff)) | 0x3c;
	default:
		return config;
	}
}

static void set_modes(struct perf_event_attr *attr, const struct topdown_pmu *pmu)
{
	attr->exclude_kernel = attr->exclude_hv = pmu->user_only;
	attr->exclude_guest = 1;
}

static int add_event(struct topdown_set *ts, unsigned event, int group)
{
	const struct topdown_event *source = &ts->table->events[event];
	struct count_event added = {.scale = 1,
				    .user_group = group,
				    .kind = COUNT_CORE,
				    .weak = group == GROUP_LEVEL1,
				    .partial = ts->pmu.partial,
				    .cpus = ts->pmu.partial ? &ts->pmu.cpus : NULL,
				    .user_only = ts->pmu.user_only};
	CLEANUP_FREE char *name = strdup(source->title);

	if (!name)
		return -ENOMEM;
	added.name = name;
	added.attr.type = ts->pmu.generic ? PERF_TYPE_HARDWARE : ts->pmu.type;
	added.attr.config = kernel_config(ts->table, source->config);
	if (ts->pmu.generic && ts->pmu.partial)
		added.attr.config |= (uint64_t)ts->pmu.type << 32;
	added.attr.config1 = source->config1;
	set_modes(&added.attr, &ts->pmu);
	if (ts->len >= TOPDOWN_EVENTS_MAX)
		return -E2BIG;
	ts->event_of[ts->len++] = event;
	return count_set_add(&ts->set, &added);
}

int topdown_set_init(struct topdown_set *ts, const struct topdown_table *table, const bool *wanted,
		     const bool *together, const struct topdown_pmu *pmu)
{
	int slots = topdown_event_find(table, "slots"), r = 0;
	bool metrics = false;

	*ts = (struct topdown_set){.table = table, .pmu = *pmu};
	for (unsigned i = 0; i < table->event_count; i++)
		metrics |= wanted[i] && is_metric(table, i);
	if (metrics && slots >= 0) /* leads */
		r = add_event(ts, (unsigned)slots, GROUP_METRICS);
	for (unsigned i = 0; i < table->event_count && r == 0; i++)
		if (wanted[i] && is_metric(table, i) && (int)i != slots)
			r = add_event(ts, i, GROUP_METRICS);
	for (int pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < table->event_count && r == 0; i++)
			if (wanted[i] && !is_metric(table, i) && together[i] == (pass == 0))
				r = add_event(ts, i, pass == 0 ? GROUP_LEVEL1 : -1);
	if (r < 0)
		topdown_set_fini(ts);
	return r;
}

void topdown_set_fini(struct topdown_set *ts)
{
	count_set_fini(&ts->set);
	ts->len = 0;
}

void topdown_set_lacks(struct topdown_set *ts, unsigned event, const char *why)
{
	for (unsigned i = 0; i < ts->len; i++)
		if (ts->event_of[i] == event) {
			struct count_event *lost = &ts->set.events.data[i];

			lost->status = -ENOENT;
			snprintf(lost->reason, sizeof(lost->reason), "%s", why);
		}
}

static struct expr_value convert(const struct count_value *value)
{
	/* the states stand in the same order */
	struct expr_value v = {.value = value->value,
			       .variance = value->stderr_ * value->stderr_,
			       .state = (enum expr_state)value->state};

	if (!value_has_number(value))
		v.value = v.variance = NAN;
	snprintf(v.reason, sizeof(v.reason), "%s", value->reason);
	if (v.reason[0] == '\0' && value->state == VALUE_ESTIMATED)
		snprintf(v.reason, sizeof(v.reason), "counted %.0f%% of the time",
			 100 * value_share(value));
	return v;
}

/* Emulated cores and some hypervisors have stall counters that never move. */
static void distrust_stuck(const struct topdown_set *ts, struct count_value *values)
{
	double cycles = 0;

	for (unsigned i = 0; i < ts->len; i++) {
		const char *name = ts->table->events[ts->event_of[i]].name;

		if (value_has_number(&values[i]) &&
		    (strcmp(name, "cpu_cycles") == 0 || strcmp(name, "cycles") == 0))
			cycles = values[i].value;
	}
	for (unsigned i = 0; i < ts->len && cycles >= STUCK_CYCLES; i++) {
		const char *name = ts->table->events[ts->event_of[i]].name;

		if (!value_has_number(&values[i]) || values[i].value != 0 ||
		    (strncmp(name, "stall_", 6) != 0 && strncmp(name, "stalled-", 8) != 0))
			continue;
		values[i].state = VALUE_INVALID;
		values[i].value = values[i].stderr_ = NAN;
		snprintf(values[i].reason, sizeof(values[i].reason),
			 "%s stood at 0 for %.0f cycles: this counter does not count here",
			 ts->table->events[ts->event_of[i]].title, cycles);
	}
}

int topdown_set_values(const struct topdown_set *ts, const struct count_session *session,
		       unsigned row, int pass, topdown_add *add, void *ctx)
{
	CLEANUP_FREE struct count_value *values = calloc(ts->set.events.len + 1, sizeof(*values));
	int r = 0;

	if (!values)
		return -ENOMEM;
	for (unsigned i = 0; i < ts->set.events.len; i++)
		count_session_value(session, row, i, &values[i]);
	count_check_values(&ts->set, values);
	for (unsigned i = 0; i < ts->len; i++)
		if (ts->pmu.partial && values[i].state == VALUE_MEASURED)
			values[i].reason[0] = '\0'; /* on which cores it ran is said for the tree */
	distrust_stuck(ts, values);
	for (unsigned i = 0; i < ts->len && r == 0; i++) {
		const struct count_event *event = &ts->set.events.data[i];
		unsigned position;
		int group = count_set_group_of(&ts->set, i, &position);
		struct expr_value value = convert(&values[i]);

		if (group >= 0 && ts->set.groups.data[group].pass >= 0 &&
		    ts->set.groups.data[group].pass != pass)
			continue;
		if (event->status < 0 || group < 0)
			value = expr_missing(EXPR_NOT_SUPPORTED, "%s: %.120s", event->name,
					     event->reason);
		r = add(ctx, ts->event_of[i], &value, &values[i]);
	}
	return r;
}
