/*
 * Laying events onto counters, by trial.
 *
 * What a PMU can hold at once is written in no table that can be trusted: the NMI watchdog, a
 * hypervisor, an erratum or another user takes counters away, and a group that passes the kernel's
 * validation may still never be scheduled. So candidates are opened and enabled on this very thread
 * for a few microseconds; one whose time running stays behind its time enabled does not fit.
 *
 * First everything is tried at once; if it runs, the plan is one group per unit and nothing is
 * added. A unit is what must stay together: a group the user made, or the two halves of a ratio.
 * Otherwise units are packed first-fit into groups with an anchor, or into passes for exact
 * counting.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "count/plan-internal.h"

/* A ratio has two halves: the first unit that holds the other half and not yet this one. */
static bool completes_pair(const struct planner *p, const struct unit *unit,
			   const struct perf_event_attr *attr)
{
	bool pair = false;

	for (unsigned i = 0; i < unit->len; i++) {
		const struct perf_event_attr *member = &p->set->events.data[unit->members[i]].attr;

		if (member->type == attr->type && member->config == attr->config)
			return false;
		pair |= count_is_pair(member, attr);
	}
	return pair;
}

static struct unit *unit_for(struct planner *p, const struct count_event *event)
{
	vec_for_each(&p->units, unit) {
		const struct count_event *first = &p->set->events.data[unit->members[0]];

		if (unit->len >= COUNT_GROUP_MAX)
			continue;
		if (event->user_group >= 0 && unit->user_group == event->user_group)
			return unit;
		if (event->user_group >= 0 || unit->user_group >= 0 || event->kind != COUNT_CORE ||
		    event->attr.pinned || first->attr.pinned)
			continue;
		if (completes_pair(p, unit, &event->attr))
			return unit;
	}
	return NULL;
}

/* Groups of the user and halves of ratios become units; everything else stands alone. */
static int make_units(struct planner *p, enum count_kind kind, bool bundles_apart)
{
	p->units.len = 0;
	for (unsigned i = 0; i < p->set->events.len; i++) {
		const struct count_event *event = &p->set->events.data[i];
		struct unit *unit;

		if (event->kind != kind || event->status < 0 || event->internal ||
		    event->same_as >= 0 || (bundles_apart && count_set_in_bundle(p->set, i)) ||
		    (kind == COUNT_CORE && !plan_in_pool(p, event)))
			continue;
		unit = unit_for(p, event);
		if (unit)
			unit->members[unit->len++] = i;
		else if (vec_push(&p->units, ((struct unit){{i}, 1, event->user_group})) < 0)
			return -ENOMEM;
	}
	return 0;
}

int plan_add_group(struct planner *p, const unsigned *members, unsigned len, int pass)
{
	struct count_group group = {
		.len = len, .anchor = -1, .total = -1, .pass = pass, .pinned = p->options.pinned};

	group.pinned |= p->set->events.data[members[0]].attr.pinned;

	memcpy(group.members, members, len * sizeof(*members));
	return vec_push(&p->set->groups, group);
}

/* Software events never compete: all that stand alone share one group, one read and one enable. */
static int plan_software(struct planner *p)
{
	struct count_group shared = {.anchor = -1, .total = -1, .pass = -1};

	if (make_units(p, COUNT_SOFTWARE, false) < 0)
		return -ENOMEM;
	vec_for_each(&p->units, unit) {
		if (unit->user_group >= 0) {
			if (plan_add_group(p, unit->members, unit->len, -1) < 0)
				return -ENOMEM;
			continue;
		}
		shared.members[shared.len++] = unit->members[0];
		if (shared.len == COUNT_GROUP_MAX) {
			if (vec_push(&p->set->groups, shared) < 0)
				return -ENOMEM;
			shared.len = 0;
		}
	}
	return shared.len ? vec_push(&p->set->groups, shared) : 0;
}

static int plan_plain(struct planner *p, enum count_kind kind)
{
	if (make_units(p, kind, false) < 0)
		return -ENOMEM;
	vec_for_each(&p->units, unit)
		if (plan_add_group(p, unit->members, unit->len, -1) < 0)
			return -ENOMEM;
	return 0;
}

/* A pinned group that stays open during the other trials. 1 held, 0 no counter for it, -ENOMEM. */
static int hold_group(struct planner *p, const unsigned *members, unsigned len)
{
	int fds[COUNT_GROUP_MAX];
	unsigned failed;

	if (trial_open(&p->trial, members, len, true, true, fds, &failed) < 0)
		return 0;
	trial_wait(&p->trial);
	if (!trial_ran(&p->trial, fds[0])) {
		trial_close(&p->trial, fds, len);
		return 0;
	}
	for (unsigned i = 0; i < len; i++)
		if (vec_push(&p->held, fds[i]) < 0)
			return -ENOMEM;
	if (plan_add_group(p, members, len, -1) < 0)
		return -ENOMEM;
	p->set->groups.data[p->set->groups.len - 1].pinned = true;
	return 1;
}

/* With two kinds of core the upper half of config names the PMU that shall count. */
static uint64_t pmu_bits(const struct count_event *like)
{
	if (!like->partial)
		return 0;
	return like->attr.type == PERF_TYPE_HARDWARE || like->attr.type == PERF_TYPE_HW_CACHE
		       ? like->attr.config & (UINT64_MAX << 32)
		       : (uint64_t)like->attr.type << 32;
}

int plan_total_for(struct planner *p, unsigned index)
{
	struct count_event anchor = {
		.kind = COUNT_CORE, .scale = 1, .user_group = -1, .internal = true};
	const struct count_event *like = &p->set->events.data[index];
	unsigned member = 0;
	bool found = false;

	for (unsigned i = 0; i < p->totals; i++) {
		const struct count_group *group = &p->set->groups.data[p->total_groups[i]];

		const struct count_event *cycles = &p->set->events.data[group->members[0]];

		if (count_same_mode(&cycles->attr, &like->attr) &&
		    plan_same_pool(cycles->partial ? cycles->cpus : NULL, p->pool))
			return (int)p->total_groups[i];
	}
	if (p->totals == TOTALS_MAX)
		return -1;
	for (unsigned i = 0; i < p->set->events.len && !found; i++) {
		const struct count_event *event = &p->set->events.data[i];

		if (event->internal || event->status < 0 || event->user_group >= 0 ||
		    !count_is_cycles(&event->attr) || !plan_in_pool(p, event) ||
		    !count_same_mode(&event->attr, &like->attr))
			continue;
		member = i;
		found = true;
	}
	if (!found) {
		char name[] = "cycles";

		anchor.name = name;
		anchor.attr = like->attr;
		anchor.attr.type = PERF_TYPE_HARDWARE;
		anchor.attr.config = PERF_COUNT_HW_CPU_CYCLES | pmu_bits(like);
		anchor.partial = like->partial;
		anchor.cpus = like->cpus;
		anchor.attr.config1 = anchor.attr.config2 = 0;
		anchor.attr.precise_ip = 0;
		member = (unsigned)p->set->events.len;
		if (count_set_add(p->set, &anchor) < 0)
			return -1;
	}
	if (hold_group(p, &member, 1) <= 0)
		return -1;
	p->total_groups[p->totals] = (unsigned)p->set->groups.len - 1;
	p->totals++;
	return (int)p->set->groups.len - 1;
}

/* A cycles event of the same mode for the inside of a group. */
static int add_anchor_event(struct planner *p, int total)
{
	struct count_event anchor = p->set->events.data[p->set->groups.data[total].members[0]];

	anchor.internal = true;
	if (!anchor.partial)
		anchor.cpus = NULL;
	anchor.user_group = -1;
	return count_set_add(p->set, &anchor) < 0 ? -1 : (int)p->set->events.len - 1;
}

bool plan_same_pool(const struct cpuset *a, const struct cpuset *b)
{
	return a == b || (a && b && memcmp(a, b, sizeof(*a)) == 0);
}

bool plan_in_pool(const struct planner *p, const struct count_event *event)
{
	return plan_same_pool(event->partial ? event->cpus : NULL, p->pool);
}

bool plan_may_split(const struct planner *p, const struct unit *unit)
{
	return unit->len > 1 &&
	       (unit->user_group < 0 || p->set->events.data[unit->members[0]].weak);
}

/* A new group for a unit: with its anchor when there is room, without one otherwise; one that
 * nothing can be split off waits for another user's turn to end. 1 placed, 0 not. */
int plan_open_group(struct planner *p, const struct unit *unit)
{
	int total = plan_total_for(p, unit->members[0]),
	    anchor = total >= 0 ? add_anchor_event(p, total) : -1;
	bool alone = !p->options.pinned && !plan_may_split(p, unit);
	unsigned members[COUNT_GROUP_MAX];
	struct count_group *group;

	memcpy(members, unit->members, unit->len * sizeof(*members));
	if (anchor >= 0 && unit->len < COUNT_GROUP_MAX) {
		members[unit->len] = (unsigned)anchor;
		if (trial_group_fits(&p->trial, members, unit->len + 1, p->options.pinned)) {
			if (plan_add_group(p, members, unit->len + 1, -1) < 0)
				return -ENOMEM;
			group = &p->set->groups.data[p->set->groups.len - 1];
			group->anchor = (int)unit->len;
			group->total = total;
			return 1;
		}
	}
	if (!trial_group_fits(&p->trial, unit->members, unit->len, p->options.pinned) &&
	    !(alone && trial_group_gets_turns(&p->trial, unit->members, unit->len)))
		return 0;
	return plan_add_group(p, unit->members, unit->len, -1) < 0 ? -ENOMEM : 1;
}

/* Into an existing group of the same mode, before its anchor. 1 placed, 0 not. */
static int join_group(struct planner *p, const struct unit *unit)
{
	const struct count_event *first = &p->set->events.data[unit->members[0]];

	vec_for_each(&p->set->groups, group) {
		unsigned members[COUNT_GROUP_MAX], len = group->len;
		const struct count_event *leader = &p->set->events.data[group->members[0]];

		if (leader->kind != COUNT_CORE || leader->user_group >= 0 ||
		    unit->user_group >= 0 || group->anchor < 0 ||
		    len + unit->len > COUNT_GROUP_MAX || !plan_in_pool(p, leader) ||
		    !count_same_mode(&leader->attr, &first->attr))
			continue;
		memcpy(members, group->members, len * sizeof(*members));
		memcpy(members + len, unit->members, unit->len * sizeof(*members));
		if (!trial_group_fits(&p->trial, members, len + unit->len, p->options.pinned))
			continue;
		memcpy(group->members, members, (len + unit->len) * sizeof(*members));
		group->len = len + unit->len;
		return 1;
	}
	return 0;
}

static void note_names(struct planner *p, const struct unit *unit)
{
	for (unsigned i = 0; i < unit->len; i++)
		str_printf(&p->set->notes, "%s%s", i ? "," : "",
			   p->set->events.data[unit->members[i]].name);
}

static void fail_starved(struct count_event *event, bool grouped)
{
	event->status = -EAGAIN;
	snprintf(event->reason, sizeof(event->reason), "%s",
		 grouped ? "its group needs more counters than are free"
			 : "no free counter can hold it (another user, the NMI watchdog, the "
			   "hypervisor)");
}

/* A unit that no group can hold: its members one by one, told when a user's group is cut. */
int plan_split(struct planner *p, const struct unit *unit)
{
	if (!plan_may_split(p, unit)) {
		if (unit->len > 1) {
			str_puts(&p->set->notes, "the group {");
			note_names(p, unit);
			str_printf(&p->set->notes,
				   "} needs more counters than are free and is not counted; try {");
			for (unsigned i = 0; i < unit->len; i++)
				str_printf(&p->set->notes, "%s%s",
					   i == 0                     ? ""
					   : i == (unit->len + 1) / 2 ? "} {"
								      : ",",
					   p->set->events.data[unit->members[i]].name);
			str_puts(&p->set->notes, "} or :W\n");
		}
		for (unsigned i = 0; i < unit->len; i++)
			fail_starved(&p->set->events.data[unit->members[i]], unit->len > 1);
		return 0;
	}
	if (unit->user_group >= 0) {
		str_puts(&p->set->notes, "the weak group {");
		note_names(p, unit);
		str_puts(&p->set->notes, "} does not fit the free counters and was split\n");
	}
	for (unsigned i = 0; i < unit->len; i++) {
		struct unit one = {{unit->members[i]}, 1, -1};
		int r = plan_place(p, &one);

		if (r < 0)
			return r;
	}
	return 0;
}

int plan_place(struct planner *p, const struct unit *unit)
{
	int r = join_group(p, unit);

	if (r == 0)
		r = plan_open_group(p, unit);
	return r == 0 ? plan_split(p, unit) : MIN(r, 0);
}

bool plan_is_total(const struct planner *p, unsigned event)
{
	for (unsigned i = 0; i < p->totals; i++)
		if (p->set->groups.data[p->total_groups[i]].members[0] == event)
			return true;
	return false;
}

/* Cycles that serve as totals leave their units: they count all the time. */
static void drop_totals(struct planner *p, struct unit *unit)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < unit->len; i++)
		if (unit->user_group >= 0 || !plan_is_total(p, unit->members[i]))
			unit->members[kept++] = unit->members[i];
	unit->len = kept;
}

/* Groups that the user pinned (":D") come first: they take their counters whatever else is asked.
 */
static int hold_pinned(struct planner *p)
{
	vec_for_each(&p->units, unit) {
		int r;

		if (!p->set->events.data[unit->members[0]].attr.pinned)
			continue;
		r = hold_group(p, unit->members, unit->len);
		for (unsigned i = 0; r == 0 && i < unit->len; i++)
			fail_starved(&p->set->events.data[unit->members[i]], false);
		if (r < 0)
			return r;
		unit->len = 0;
	}
	return 0;
}

int plan_hold(struct planner *p)
{
	int r = hold_pinned(p);

	if (r < 0)
		return r;
	vec_for_each(&p->units, unit)
		if (unit->len > 0)
			plan_total_for(p, unit->members[0]);
	vec_for_each(&p->set->bundles, bundle)
		for (unsigned i = 0; i < bundle->len; i++) {
			const struct count_event *event = &p->set->events.data[bundle->members[i]];

			if (event->kind == COUNT_CORE && event->status == 0 &&
			    plan_in_pool(p, event))
				plan_total_for(p, bundle->members[i]);
		}
	vec_for_each(&p->units, unit)
		drop_totals(p, unit);
	return 0;
}

static int plan_shared(struct planner *p)
{
	int r = plan_hold(p);

	vec_for_each(&p->units, unit)
		if (r == 0 && unit->len > 0)
			r = plan_place(p, unit);
	return r < 0 ? r : plan_bundles(p);
}

/* All the events of one kind of core: other kinds have counters of their own. */
static int plan_pool(struct planner *p)
{
	CLEANUP_FREE unsigned *core = calloc(p->set->events.len + 1, sizeof(*core));
	unsigned len = 0;
	bool fits;

	if (!core)
		return -ENOMEM;
	for (unsigned i = 0; i < p->set->events.len; i++) {
		const struct count_event *event = &p->set->events.data[i];

		/* One whose CPUs are not told might be tried on the wrong kind of core. */
		if (event->kind == COUNT_CORE && event->status == 0 && plan_in_pool(p, event) &&
		    !(event->partial && !event->cpus))
			core[len++] = i;
	}
	/* Trials need a CPU of this kind; where none may be used nothing is known about it. */
	fits = len == 0 || (p->pool && trial_move(&p->trial, p->pool) < 0) ||
	       (trial_all_fit(&p->trial, core, len) && len <= TRIAL_MAX);
	if (fits || p->options.pinned)
		return plan_plain(p, COUNT_CORE);
	if (make_units(p, COUNT_CORE, true) < 0)
		return -ENOMEM;
	p->set->multiplexed |= !p->options.exact;
	return p->options.exact ? plan_passes(p) : plan_shared(p);
}

static int plan_core(struct planner *p)
{
	size_t events = p->set->events.len; /* anchors come behind */
	int r;

	p->set->passes = 0;
	r = plan_pool(p);
	for (size_t i = 0; i < events && r == 0; i++) {
		const struct count_event *event = &p->set->events.data[i];
		struct cpuset cpus;
		bool planned = event->kind != COUNT_CORE || !event->partial || !event->cpus;

		for (size_t k = 0; k < i && !planned; k++) {
			const struct count_event *before = &p->set->events.data[k];

			planned = before->kind == COUNT_CORE && before->partial &&
				  plan_same_pool(before->cpus, event->cpus);
		}
		if (planned)
			continue;
		cpus = *event->cpus; /* the events may move */
		p->pool = &cpus;
		r = plan_pool(p);
		trial_move(&p->trial, NULL);
		p->pool = NULL;
	}
	p->set->passes = MAX(p->set->passes, 1);
	return r;
}

/* A counter beside the cores that is asked for twice is opened once. */
static void share_uncore(struct count_set *set)
{
	for (size_t i = 0; i < set->events.len; i++) {
		struct count_event *event = &set->events.data[i];

		for (size_t k = 0; k < i && event->kind == COUNT_UNCORE && event->same_as < 0;
		     k++) {
			const struct count_event *before = &set->events.data[k];

			if (before->kind == COUNT_UNCORE && before->same_as < 0 &&
			    memcmp(&before->attr, &event->attr, sizeof(event->attr)) == 0 &&
			    plan_same_pool(before->cpus, event->cpus))
				event->same_as = (int)k;
		}
	}
}

int count_plan(struct count_set *set, const struct counter_ops *ops, void *ctx,
	       const struct count_plan_options *options)
{
	struct planner p = {.set = set, .trial = {set, ops, ctx}, .options = *options};
	int r;

	set->passes = 1;
	r = plan_software(&p);
	share_uncore(set);
	if (r == 0)
		r = plan_plain(&p, COUNT_UNCORE);
	if (r == 0)
		r = plan_core(&p);
	while (p.held.len > 0)
		ops->close(ctx, p.held.data[--p.held.len]);
	vec_fini(&p.held);
	vec_fini(&p.units);
	return r < 0 ? r : str_status(&set->notes);
}
