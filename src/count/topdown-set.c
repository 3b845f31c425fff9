#include "count/topdown-set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "count/check.h"

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

static int add_event(struct topdown_set *ts, unsigned event, int group, unsigned pmu_type,
		     bool user_only)
{
	const struct topdown_event *source = &ts->table->events[event];
	struct count_event added = {
		.scale = 1, .user_group = group, .kind = COUNT_CORE, .weak = group == GROUP_LEVEL1};
	CLEANUP_FREE char *name = strdup(source->title);

	if (!name)
		return -ENOMEM;
	added.name = name;
	added.attr.type = pmu_type;
	added.attr.config = source->config;
	added.attr.config1 = source->config1;
	added.attr.exclude_kernel = added.attr.exclude_hv = user_only;
	added.attr.exclude_guest = 1;
	added.user_only = user_only;
	if (ts->len >= TOPDOWN_EVENTS_MAX)
		return -E2BIG;
	ts->event_of[ts->len++] = event;
	return count_set_add(&ts->set, &added);
}

int topdown_set_init(struct topdown_set *ts, const struct topdown_table *table, const bool *wanted,
		     const bool *together, unsigned pmu_type, bool user_only)
{
	int slots = topdown_event_find(table, "slots"), r = 0;
	bool metrics = false;

	*ts = (struct topdown_set){.table = table};
	for (unsigned i = 0; i < table->event_count; i++)
		metrics |= wanted[i] && is_metric(table, i);
	if (metrics && slots >= 0) /* leads */
		r = add_event(ts, (unsigned)slots, GROUP_METRICS, pmu_type, user_only);
	for (unsigned i = 0; i < table->event_count && r == 0; i++)
		if (wanted[i] && is_metric(table, i) && (int)i != slots)
			r = add_event(ts, i, GROUP_METRICS, pmu_type, user_only);
	for (int pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < table->event_count && r == 0; i++)
			if (wanted[i] && !is_metric(table, i) && together[i] == (pass == 0))
				r = add_event(ts, i, pass == 0 ? GROUP_LEVEL1 : -1, pmu_type,
					      user_only);
	if (r < 0)
		topdown_set_fini(ts);
	return r;
}

void topdown_set_fini(struct topdown_set *ts)
{
	count_set_fini(&ts->set);
	ts->len = 0;
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

int topdown_set_values(const struct topdown_set *ts, const struct count_session *session,
		       unsigned row, int pass,
		       int (*add)(void *ctx, unsigned event, const struct expr_value *value),
		       void *ctx)
{
	CLEANUP_FREE struct count_value *values = calloc(ts->set.events.len + 1, sizeof(*values));
	int r = 0;

	if (!values)
		return -ENOMEM;
	for (unsigned i = 0; i < ts->set.events.len; i++)
		count_session_value(session, row, i, &values[i]);
	count_check_values(&ts->set, values);
	for (unsigned i = 0; i < ts->len && r == 0; i++) {
		unsigned position;
		int group = count_set_group_of(&ts->set, i, &position);
		struct expr_value value = convert(&values[i]);

		if (group >= 0 && ts->set.groups.data[group].pass >= 0 &&
		    ts->set.groups.data[group].pass != pass)
			continue;
		if (ts->set.events.data[i].status < 0 || group < 0)
			value = expr_missing(EXPR_NOT_SUPPORTED, "%s: %.120s",
					     ts->set.events.data[i].name,
					     ts->set.events.data[i].reason);
		r = add(ctx, ts->event_of[i], &value);
	}
	return r;
}
