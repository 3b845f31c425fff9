/* Exact plans: passes that fit entirely, one run of the command for each. */
#include "count/plan-internal.h"

#include <string.h>

#include "base/util.h"

bool plan_pass_holds(struct planner *p, int pass, const unsigned *added, unsigned added_len)
{
	unsigned members[TRIAL_MAX], len = 0;

	vec_for_each(&p->set->groups, group) {
		if (group->pass != pass ||
		    !plan_in_pool(p, &p->set->events.data[group->members[0]]))
			continue;
		if (len + group->len + added_len > ARRAY_LEN(members))
			return false;
		memcpy(members + len, group->members, group->len * sizeof(*members));
		len += group->len;
	}
	memcpy(members + len, added, added_len * sizeof(*members));
	return trial_all_fit(&p->trial, members, len + added_len);
}

int plan_place_in_pass(struct planner *p, const struct unit *unit)
{
	int r = 0;

	for (int pass = 0; pass <= p->set->passes; pass++) {
		if (!plan_pass_holds(p, pass, unit->members, unit->len))
			continue;
		p->set->passes = MAX(p->set->passes, pass + 1);
		return plan_add_group(p, unit->members, unit->len, pass);
	}
	if (!plan_may_split(p, unit))
		return plan_split(p, unit); /* says why it is not counted */
	for (unsigned i = 0; i < unit->len && r == 0; i++)
		r = plan_place_in_pass(p, &(struct unit){{unit->members[i]}, 1, -1});
	return r;
}

/* First-fit of units into passes, beside cycles that count in each of them. */
int plan_passes(struct planner *p)
{
	int r = plan_hold(p);

	vec_for_each(&p->units, unit)
		if (r == 0 && unit->len > 0)
			r = plan_place_in_pass(p, unit);
	return r < 0 ? r : plan_bundles(p);
}
