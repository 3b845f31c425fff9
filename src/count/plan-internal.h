/* Shared by plan.c, plan-exact.c and plan-bundles.c. */
#pragma once

#include "base/vec.h"
#include "count/set-internal.h"
#include "count/set.h"
#include "count/trial-internal.h"

#define TOTALS_MAX 16 /* always-on cycles: one per mode in use and kind of core */

struct unit {
	unsigned members[COUNT_GROUP_MAX];
	unsigned len;
	int user_group; /* -1: may be split */
};

struct planner {
	struct count_set *set;
	struct trial trial;
	struct count_plan_options options;
	VEC(struct unit) units;
	unsigned total_groups[TOTALS_MAX];
	unsigned totals;
	VEC(int) held;             /* always-on counters stay open while the rest is tried */
	const struct cpuset *pool; /* the CPUs of the kind of core that is planned; NULL: there is
				      one kind */
};

/* Are both counters of the same kind of core? Others do not compete with each other. */
bool plan_same_pool(const struct cpuset *a, const struct cpuset *b);
bool plan_in_pool(const struct planner *p, const struct count_event *event);
/* Halves of ratios and weak groups of the user may be counted one by one when they do not fit. */
bool plan_may_split(const struct planner *p, const struct unit *unit);
bool plan_is_total(const struct planner *p, unsigned event);
int plan_add_group(struct planner *p, const unsigned *members, unsigned len, int pass);
/* The always-on cycles of this event's mode: the group's index, made at need; -1 there is none. */
int plan_total_for(struct planner *p, unsigned index);
/* Groups that the user pinned, and the cycles that stand behind every other group. */
int plan_hold(struct planner *p);
/* A unit into a group, with others or alone; 1 placed, 0 does not fit. */
int plan_open_group(struct planner *p, const struct unit *unit);
/* The same, cut where it does not fit; what no counter can hold gets its status and reason. */
int plan_place(struct planner *p, const struct unit *unit);
int plan_split(struct planner *p, const struct unit *unit);

/* plan-exact.c: units into passes, one run of the command each. */
int plan_passes(struct planner *p);
/* plan-bundles.c: events of one metric into one group, or one pass. */
int plan_bundles(struct planner *p);
/* Into the first pass that holds it, halves of a ratio one by one when they do not fit together. */
int plan_place_in_pass(struct planner *p, const struct unit *unit);
bool plan_pass_holds(struct planner *p, int pass, const unsigned *members, unsigned len);
