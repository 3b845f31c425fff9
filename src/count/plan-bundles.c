/*
 * What one metric is made of is counted together: all its events in one group (or, exactly, in one
 * run). An event that another metric has in another group already is opened a second time, for this
 * metric alone; that costs a counter and saves the metric from numbers of different moments.
 */
#include "count/plan-internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* The members that compete for counters here, each once. Always-on cycles do not. */
static unsigned competing(const struct planner *p, const struct count_bundle *bundle, unsigned *ret)
{
	unsigned len = 0;

	for (unsigned i = 0; i < bundle->len; i++) {
		const struct count_event *event = &p->set->events.data[bundle->members[i]];
		bool seen = false;

		for (unsigned k = 0; k < len; k++)
			seen |= ret[k] == bundle->members[i];
		if (!seen && event->kind == COUNT_CORE && event->status == 0 &&
		    event->user_group < 0 && plan_in_pool(p, event) &&
		    !plan_is_total(p, bundle->members[i]))
			ret[len++] = bundle->members[i];
	}
	return len;
}

/* For a place in a group: the event itself the first time, a second opening of it afterwards. */
static int claim(struct planner *p, struct count_bundle *bundle, unsigned event)
{
	struct count_event again = p->set->events.data[event];
	unsigned opened = (unsigned)p->set->events.len;

	if (count_set_group_of(p->set, event, NULL) < 0)
		return (int)event;
	again.internal = true;
	if (count_set_add(p->set, &again) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < bundle->len; i++)
		if (bundle->members[i] == event)
			bundle->members[i] = opened;
	return (int)opened;
}

static bool group_has(const struct count_group *group, unsigned event)
{
	for (unsigned i = 0; i < group->len; i++)
		if (group->members[i] == event)
			return true;
	return false;
}

/* Those of members that the group has not, behind its own in ret; how many there are in all. */
static unsigned joined(const struct count_group *group, const unsigned *members, unsigned len,
		       unsigned *ret)
{
	unsigned count = group->len;

	memcpy(ret, group->members, group->len * sizeof(*ret));
	for (unsigned i = 0; i < len; i++)
		if (!group_has(group, members[i])) {
			if (count == COUNT_GROUP_MAX)
				return COUNT_GROUP_MAX + 1;
			ret[count++] = members[i];
		}
	return count;
}

/* Puts the missing ones into group g. */
static int extend(struct planner *p, struct count_bundle *bundle, size_t g, const unsigned *all,
		  unsigned len)
{
	for (unsigned i = p->set->groups.data[g].len; i < len; i++) {
		int event = claim(p, bundle, all[i]);
		struct count_group *group = &p->set->groups.data[g];

		if (event < 0)
			return event;
		group->members[group->len++] = (unsigned)event;
	}
	return 0;
}

/* Into the group that has the most of it already, if it fits there. 1 placed. */
static int join_shared(struct planner *p, struct count_bundle *bundle, const unsigned *members,
		       unsigned len)
{
	for (unsigned missing = 0; missing <= len; missing++)
		for (size_t g = 0; g < p->set->groups.len; g++) {
			const struct count_group *group = &p->set->groups.data[g];
			const struct count_event *leader = &p->set->events.data[group->members[0]];
			unsigned all[COUNT_GROUP_MAX], count;

			if (leader->kind != COUNT_CORE || leader->user_group >= 0 ||
			    group->anchor < 0 || !plan_in_pool(p, leader) ||
			    !count_same_mode(&leader->attr, &p->set->events.data[members[0]].attr))
				continue;
			count = joined(group, members, len, all);
			if (count != group->len + missing)
				continue;
			if (missing == 0)
				return 1;
			if (trial_group_fits(&p->trial, all, count, p->options.pinned)) {
				int r = extend(p, bundle, g, all, count);

				return r < 0 ? r : 1;
			}
		}
	return 0;
}

static int own_group(struct planner *p, struct count_bundle *bundle, const unsigned *members,
		     unsigned len)
{
	struct unit unit = {.len = len, .user_group = -1};
	int r;

	memcpy(unit.members, members, len * sizeof(*members));
	r = trial_group_fits(&p->trial, members, len, p->options.pinned);
	for (unsigned i = 0; r > 0 && i < len; i++) {
		int event = claim(p, bundle, members[i]);

		if (event < 0)
			return event;
		unit.members[i] = (unsigned)event;
	}
	if (r > 0)
		r = plan_open_group(p, &unit);
	else
		return 0;
	if (r == 0) /* what fitted a moment ago has its group, without an anchor */
		r = plan_add_group(p, unit.members, len, -1) < 0 ? -ENOMEM : 1;
	return r;
}

static int join_pass(struct planner *p, struct count_bundle *bundle, const unsigned *members,
		     unsigned len)
{
	for (int pass = 0; pass <= p->set->passes; pass++) {
		struct unit missing = {.user_group = -1};

		for (unsigned i = 0; i < len; i++) {
			int g = count_set_group_of(p->set, members[i], NULL);

			if (g < 0 || p->set->groups.data[g].pass != pass)
				missing.members[missing.len++] = members[i];
		}
		if (missing.len == 0)
			return 1;
		if (!plan_pass_holds(p, pass, missing.members, missing.len))
			continue;
		for (unsigned i = 0; i < missing.len; i++) {
			int event = claim(p, bundle, missing.members[i]);

			if (event < 0)
				return event;
			missing.members[i] = (unsigned)event;
		}
		p->set->passes = MAX(p->set->passes, pass + 1);
		return plan_add_group(p, missing.members, missing.len, pass) < 0 ? -ENOMEM : 1;
	}
	return 0;
}

static int place_bundle(struct planner *p, struct count_bundle *bundle)
{
	unsigned members[COUNT_GROUP_MAX], len = competing(p, bundle, members);
	int r;

	if (len == 0)
		return 0;
	if (p->options.exact) {
		r = join_pass(p, bundle, members, len);
	} else {
		r = join_shared(p, bundle, members, len);
		if (r == 0)
			r = own_group(p, bundle, members, len);
	}
	if (r != 0)
		return MIN(r, 0);
	if (len > 1)
		str_printf(
			&p->set->notes,
			"the %u events of %s do not fit the free counters at once: its parts are "
			"of different moments\n",
			len, bundle->name);
	for (unsigned i = 0; i < len && r == 0; i++) {
		struct unit one = {{members[i]}, 1, -1};

		if (count_set_group_of(p->set, members[i], NULL) < 0)
			r = p->options.exact ? plan_place_in_pass(p, &one) : plan_place(p, &one);
	}
	return r;
}

int plan_bundles(struct planner *p)
{
	int r = 0;

	vec_for_each(&p->set->bundles, bundle)
		if (r == 0)
			r = place_bundle(p, bundle);
	return r;
}
