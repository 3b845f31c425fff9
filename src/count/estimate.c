/*
 * What the counts mean: states, estimates with their errors, ratios. The formulas and their sources
 * stand in docs/counting.md and in stats/ratio.h.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "count/session-internal.h"
#include "stats/ratio.h"

#define PHASE_SPREAD   0.15 /* rates that vary less are not worth a remark */
#define PHASE_SLOW     1.0 /* von Neumann's ratio below this: neighbours agree, far slices do not */
#define PHASE_FAST     3.0 /* above this: they alternate */
#define PHASE_SLICES   8
#define INVALID_SIGMAS 4

static const char *const state_names[] = {
	[VALUE_MEASURED] = "measured",
	[VALUE_ESTIMATED] = "estimated",
	[VALUE_WEAK] = "weak",
	[VALUE_NOT_COUNTED] = "not_counted",
	[VALUE_NOT_SUPPORTED] = "not_supported",
	[VALUE_INVALID] = "invalid",
};

const char *value_state_name(enum value_state state)
{
	return state_names[state];
}

double value_share(const struct count_value *value)
{
	uint64_t all = value->available_ns ? value->available_ns : value->enabled_ns;

	return all ? (double)value->running_ns / (double)all : NAN;
}

/* One word of every slice as doubles: the caller frees. NULL when there are none. */
static double *slice_column(const struct count_session *s, unsigned row, unsigned group,
			    unsigned word)
{
	const struct row_group *rg = row_group(s, row, group);
	unsigned words = group_words(&s->set->groups.data[group]);
	double *column;

	if (!rg->slices || s->slice_count == 0)
		return NULL;
	column = malloc(s->slice_count * sizeof(*column));
	for (unsigned i = 0; column && i < s->slice_count; i++)
		column[i] = (double)rg->slices[(size_t)i * words + word];
	return column;
}

/* What the group's own time is measured by: its cycles, or its time running. */
struct anchor {
	unsigned word;      /* in the group's record */
	uint64_t seen, all; /* in this group, and in truth */
};

static struct anchor group_anchor(const struct count_session *s, unsigned row, unsigned g)
{
	const struct count_group *group = &s->set->groups.data[g];
	const struct row_group *rg = row_group(s, row, g);
	bool partial = s->set->events.data[group->members[0]].partial;
	struct anchor anchor = {1, rg->sum[1], rg->sum[0]};

	if (group->anchor >= 0 && group->total >= 0) {
		const struct row_group *total = row_group(s, row, (unsigned)group->total);
		uint64_t seen = rg->sum[2 + group->anchor], all = total->sum[2];

		if (partial)
			anchor.all = total->sum[1];
		/* The total must itself have counted all the time, or it is no truth. With two
		 * kinds of core it counted whenever the thread ran on its kind: it is pinned. */
		if (all >= seen && !total->error_state &&
		    (partial || total->sum[1] == total->sum[0]))
			return (struct anchor){2 + (unsigned)group->anchor, seen, all};
	}
	return anchor;
}

/* How long the group could have counted: with two kinds of core, while the thread ran on its kind,
 * which the always-on cycles of that kind tell. 0: that is not known, and sharing neither. */
static uint64_t available_ns(const struct count_session *s, unsigned row, unsigned g)
{
	const struct count_group *group = &s->set->groups.data[g];

	if (!s->set->events.data[group->members[0]].partial)
		return row_group(s, row, g)->sum[0];
	return group->total >= 0 ? row_group(s, row, (unsigned)group->total)->sum[1] : 0;
}

static bool has_phases(const struct ratio *ratio)
{
	return ratio->slices >= PHASE_SLICES && ratio->spread > PHASE_SPREAD &&
	       (ratio->neumann < PHASE_SLOW || ratio->neumann > PHASE_FAST);
}

static void estimate_shared(const struct count_session *s, unsigned row, unsigned g,
			    unsigned position, struct count_value *value)
{
	struct anchor anchor = group_anchor(s, row, g);
	CLEANUP_FREE double *x = slice_column(s, row, g, 2 + position);
	CLEANUP_FREE double *a = slice_column(s, row, g, anchor.word);
	double share = value_share(value);

	if (share < VALUE_MIN_SHARE) {
		value->state = VALUE_NOT_COUNTED;
		snprintf(value->reason, sizeof(value->reason),
			 "counted only %.2f%% of the time: not enough data", 100 * share);
		return;
	}
	if (anchor.seen == 0 && anchor.all > 0) {
		value->state = VALUE_NOT_COUNTED;
		snprintf(value->reason, sizeof(value->reason),
			 "had its counter only while no cycles of its mode passed");
		return;
	}
	value->state = share < VALUE_WEAK_SHARE ? VALUE_WEAK : VALUE_ESTIMATED;
	value->value = (double)counter_scale(value->raw, anchor.all, anchor.seen);
	value->stderr_ = NAN;
	if (x && a) {
		struct ratio ratio = ratio_of_slices(x, a, s->slice_count);

		value->stderr_ =
			ratio_total(&ratio, (double)anchor.seen, (double)anchor.all).stderr_;
		value->phases = has_phases(&ratio);
	}
	if (isnan(value->stderr_))
		snprintf(value->reason, sizeof(value->reason),
			 "the run was too short to tell the error");
}

static void not_counted(struct count_value *value, const struct row_group *rg)
{
	const char *why = rg->gone          ? rg->gone
			  : rg->error_state ? "a pinned event lost its counter to another user"
			  : !rg->opened     ? "not opened in this run"
			  : value->enabled_ns == 0 ? "nothing ran while it was enabled"
						   : "no counter became free while it was enabled";

	value->state = VALUE_NOT_COUNTED;
	snprintf(value->reason, sizeof(value->reason), "%s", why);
}

/* Of events that are asked for twice and counted once, the one that is. */
static unsigned counted_as(const struct count_set *set, unsigned event)
{
	int same = set->events.data[event].same_as;

	return same >= 0 ? (unsigned)same : event;
}

void count_session_value(const struct count_session *s, unsigned row, unsigned event_index,
			 struct count_value *ret)
{
	const struct count_event *event = &s->set->events.data[event_index];
	struct count_value value = {.value = NAN, .stderr_ = NAN};
	const struct row_group *rg;
	unsigned position = 0;
	uint64_t available;
	int g = count_set_group_of(s->set, counted_as(s->set, event_index), &position);

	*ret = value;
	if (event->status < 0 || g < 0) {
		ret->state = event->status == -EAGAIN ? VALUE_NOT_COUNTED : VALUE_NOT_SUPPORTED;
		snprintf(ret->reason, sizeof(ret->reason), "%s", event->reason);
		return;
	}
	rg = row_group(s, row, (unsigned)g);
	value.enabled_ns = rg->sum[0];
	value.running_ns = rg->sum[1];
	value.raw = rg->sum[2 + position];
	available = available_ns(s, row, (unsigned)g);
	if (event->partial)
		value.available_ns = available;
	if (!rg->opened || rg->error_state || value.enabled_ns == 0 || value.running_ns == 0) {
		not_counted(&value, rg);
	} else if (value.running_ns >= available ||
		   (event->partial && value.running_ns >= available - available / 100)) {
		/* Of two kinds of core: both groups are read, but not at one moment. */
		value.value = (double)value.raw;
		value.stderr_ = 0;
		if (event->partial && value.running_ns < value.enabled_ns)
			snprintf(value.reason, sizeof(value.reason),
				 "ran on this kind of core %.1f%% of the time",
				 100 * (double)value.running_ns / (double)value.enabled_ns);
	} else {
		estimate_shared(s, row, (unsigned)g, position, &value);
	}
	if (rg->gone && value_has_number(&value))
		snprintf(value.reason, sizeof(value.reason), "until the end: %s", rg->gone);
	*ret = value;
}

static void ratio_missing(struct count_ratio *ratio, const struct count_value *value)
{
	ratio->state = value->state;
	memcpy(ratio->reason, value->reason, sizeof(ratio->reason));
}

void count_ratio_of_values(const struct count_value *numerator,
			   const struct count_value *denominator, struct count_ratio *ret)
{
	double a, b;

	*ret = (struct count_ratio){.value = NAN, .stderr_ = NAN};
	ret->share = fmin(value_share(numerator), value_share(denominator));
	ret->together = numerator->state == VALUE_MEASURED && denominator->state == VALUE_MEASURED;
	if (!value_has_number(denominator) || !value_has_number(numerator)) {
		ratio_missing(ret, value_has_number(numerator) ? denominator : numerator);
		return;
	}
	ret->state = MAX(numerator->state, denominator->state);
	if (denominator->value == 0) {
		ret->state = VALUE_NOT_COUNTED;
		snprintf(ret->reason, sizeof(ret->reason), "the denominator is 0");
		return;
	}
	ret->value = numerator->value / denominator->value;
	a = numerator->value != 0 ? numerator->stderr_ / numerator->value : 0;
	b = denominator->stderr_ / denominator->value;
	ret->stderr_ = ret->value * sqrt(a * a + b * b);
}

/* The word that counts what event counts inside group g: itself, or the anchor that stands for it.
 */
static int word_in_group(const struct count_session *s, unsigned event, unsigned g)
{
	const struct count_group *group = &s->set->groups.data[g];

	for (unsigned i = 0; i < group->len; i++)
		if (group->members[i] == event)
			return 2 + (int)i;
	if (group->anchor >= 0 && group->total >= 0 &&
	    s->set->groups.data[group->total].members[0] == event)
		return 2 + group->anchor;
	return -1;
}

void count_session_ratio(const struct count_session *s, unsigned row, unsigned numerator,
			 unsigned denominator, struct count_ratio *ret)
{
	struct count_value over, under;
	int g, h, x, y;

	numerator = counted_as(s->set, numerator);
	denominator = counted_as(s->set, denominator);
	g = count_set_group_of(s->set, numerator, NULL);
	h = count_set_group_of(s->set, denominator, NULL);
	count_session_value(s, row, numerator, &over);
	count_session_value(s, row, denominator, &under);
	count_ratio_of_values(&over, &under, ret);
	if (g < 0 || h < 0 || isnan(ret->value) || ret->together)
		return;
	x = word_in_group(s, numerator, (unsigned)g);
	y = word_in_group(s, denominator, (unsigned)g);
	if (y <
	    0) { /* the other way round: the denominator's group may hold the numerator's anchor */
		g = h;
		x = word_in_group(s, numerator, (unsigned)g);
		y = word_in_group(s, denominator, (unsigned)g);
	}
	if (x >= 0 && y >= 0 && row_group(s, row, (unsigned)g)->sum[y] > 0) {
		const uint64_t *sum = row_group(s, row, (unsigned)g)->sum;
		CLEANUP_FREE double *xs = slice_column(s, row, (unsigned)g, (unsigned)x);
		CLEANUP_FREE double *ys = slice_column(s, row, (unsigned)g, (unsigned)y);

		ret->together = true;
		ret->value = (double)sum[x] / (double)sum[y];
		ret->stderr_ = NAN;
		if (xs && ys) {
			struct ratio ratio = ratio_of_slices(xs, ys, s->slice_count);
			struct anchor anchor = group_anchor(s, row, (unsigned)g);

			ret->stderr_ = ratio_total(&ratio, (double)anchor.seen, (double)anchor.all)
					       .stderr_ /
				       (double)anchor.all;
		}
	}
}

int count_session_common_group(const struct count_session *s, const unsigned *events, size_t len)
{
	for (unsigned g = 0; g < s->group_count; g++) {
		bool all = len > 0;

		for (size_t i = 0; i < len && all; i++)
			all = word_in_group(s, counted_as(s->set, events[i]), g) >= 0;
		if (all)
			return (int)g;
	}
	return -1;
}

double count_session_sum_error(const struct count_session *s, unsigned row, unsigned group,
			       const unsigned *events, const double *weights, size_t len)
{
	struct anchor anchor = group_anchor(s, row, group);
	CLEANUP_FREE double *a = slice_column(s, row, group, anchor.word);
	CLEANUP_FREE double *z = calloc(s->slice_count + 1, sizeof(*z));
	struct ratio ratio;

	if (!a || !z)
		return NAN;
	for (size_t i = 0; i < len; i++) {
		int word = word_in_group(s, counted_as(s->set, events[i]), group);
		CLEANUP_FREE double *x =
			word >= 0 ? slice_column(s, row, group, (unsigned)word) : NULL;

		if (!x)
			return NAN;
		for (unsigned k = 0; k < s->slice_count; k++)
			z[k] += weights[i] * x[k];
	}
	ratio = ratio_of_slices(z, a, s->slice_count);
	return ratio_total(&ratio, (double)anchor.seen, (double)anchor.all).stderr_;
}
