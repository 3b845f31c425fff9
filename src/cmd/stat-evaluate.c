/*
 * What a metric's formula gives, and how sure that is.
 *
 * When all its events shared a group, the error comes from the slices of that group with the
 * derivatives of the formula as weights, so that what the events have in common cancels out. Events
 * of different groups are taken as independent, and the value is marked.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/stat-formula.h"
#include "stats/ratio.h"

#define STEP 1e-5 /* of an input, for a derivative */

int stat_leaf_find(const struct stat_metric *metric, const char *name)
{
	for (unsigned i = 0; i < metric->leaf_count; i++)
		if (strcmp(metric->leaves[i].name, name) == 0)
			return (int)i;
	return -1;
}

void stat_metric_fini(struct stat_metric *metric)
{
	for (unsigned i = 0; i < metric->leaf_count; i++) {
		free(metric->leaves[i].name);
		free(metric->leaves[i].slots);
		expr_free(metric->leaves[i].expr);
	}
	free(metric->leaves);
	free(metric->own_name);
	if (!metric->expr_shared)
		expr_free(metric->expr);
	*metric = (struct stat_metric){0};
}

static struct expr_value of_value(const struct count_value *value, double scale, const char *name)
{
	/* the states stand in the same order */
	struct expr_value v = {.value = value->value * scale,
			       .variance = value->stderr_ * value->stderr_ * scale * scale,
			       .state = (enum expr_state)value->state};

	if (!value_has_number(value)) {
		v.value = v.variance = NAN;
		snprintf(v.reason, sizeof(v.reason), "%s: %s", name, value->reason);
	}
	return v;
}

static struct expr_value sum_of_events(const struct stat_job *job, const struct stat_metric *metric,
				       const struct stat_leaf *leaf,
				       const struct count_value *values)
{
	struct expr_value sum =
		expr_missing(EXPR_NOT_SUPPORTED, "%s: nothing counts it", leaf->name);
	bool any = false;

	for (size_t k = 0; k < leaf->count; k++) {
		unsigned event = stat_leaf_event(job, metric, leaf, (unsigned)k);
		struct expr_value part =
			of_value(&values[event], job->set.events.data[event].scale, job->set.events.data[event].name);

		/* On a machine with two kinds of core a thread may never run on one of them. */
		if (!expr_has_number(&part) && job->set.events.data[event].partial &&
		    values[event].state == VALUE_NOT_COUNTED && values[event].running_ns == 0 &&
		    leaf->count > 1 && (any || k + 1 < leaf->count))
			continue;
		if (!any) {
			sum = part;
			any = true;
			continue;
		}
		if (part.state > sum.state) {
			sum.state = part.state;
			memcpy(sum.reason, part.reason, sizeof(sum.reason));
		}
		sum.value += part.value;
		sum.variance += part.variance;
	}
	return sum;
}

static struct expr_value seconds(uint64_t ns, bool known, const char *name)
{
	return known ? expr_number((double)ns / 1e9)
		     : expr_missing(EXPR_NOT_COUNTED, "%s: known only of a command that has ended",
				    name);
}

void stat_metric_inputs(const struct stat_job *job, const struct stat_metric *metric,
			const struct count_value *values, const struct stat_result *result,
			struct expr_value *inputs)
{
	for (unsigned i = 0; i < metric->leaf_count; i++) {
		const struct stat_leaf *leaf = &metric->leaves[i];

		switch (leaf->kind) {
		case STAT_LEAF_EVENTS:
			inputs[i] = sum_of_events(job, metric, leaf, values);
			break;
		case STAT_LEAF_WALL:
			inputs[i] = seconds(result->wall_ns, true, leaf->name);
			break;
		case STAT_LEAF_USER:
			inputs[i] = seconds(result->user_ns, result->has_times, leaf->name);
			break;
		case STAT_LEAF_SYSTEM:
			inputs[i] = seconds(result->sys_ns, result->has_times, leaf->name);
			break;
		case STAT_LEAF_METRIC: /* computed when it is asked for */
			inputs[i] = expr_missing(EXPR_NOT_COUNTED, "%s: not computed", leaf->name);
			break;
		case STAT_LEAF_MISSING:
			inputs[i] = expr_missing(EXPR_NOT_SUPPORTED, "%s: %.100s", leaf->name,
						 leaf->reason);
			break;
		}
	}
}

struct evaluation {
	const struct stat_metric *metric;
	const struct expr_value *inputs;
	struct expr_value *memo; /* of leaves that are metrics */
	bool *done;
};

static void resolve(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	struct evaluation *e = ctx;
	int i = ask == EXPR_NAME ? stat_leaf_find(e->metric, name) : -1;

	if (ask == EXPR_LITERAL)
		*ret = expr_missing(EXPR_NOT_SUPPORTED, "#%s is not known here", name);
	if (i < 0)
		return;
	if (e->metric->leaves[i].kind != STAT_LEAF_METRIC) {
		*ret = e->inputs[i];
		return;
	}
	if (!e->done[i]) {
		e->done[i] = true; /* one that needs itself finds no number */
		e->memo[i] = expr_missing(EXPR_INVALID, "%s is made of itself", name);
		expr_eval(e->metric->leaves[i].expr, resolve, e, &e->memo[i]);
	}
	*ret = e->memo[i];
}

void stat_metric_formula(const struct stat_metric *metric, const struct expr_value *inputs,
			 struct expr_value *ret)
{
	CLEANUP_FREE struct expr_value *memo = calloc(metric->leaf_count + 1, sizeof(*memo));
	CLEANUP_FREE bool *done = calloc(metric->leaf_count + 1, sizeof(*done));
	struct evaluation e = {metric, inputs, memo, done};

	if (!memo || !done) {
		*ret = expr_missing(EXPR_NOT_COUNTED, "out of memory");
		return;
	}
	expr_eval(metric->expr, resolve, &e, ret);
	ret->value *= metric->scale;
	ret->variance *= metric->scale * metric->scale;
}

void stat_metric_weights(const struct stat_metric *metric, const struct expr_value *inputs,
			 double *weights)
{
	CLEANUP_FREE struct expr_value *moved = calloc(metric->leaf_count + 1, sizeof(*moved));
	struct expr_value base, after;

	for (unsigned i = 0; i < metric->leaf_count; i++)
		weights[i] = moved ? 0 : NAN;
	if (!moved)
		return;
	stat_metric_formula(metric, inputs, &base);
	for (unsigned i = 0; i < metric->leaf_count && expr_has_number(&base); i++) {
		double step = inputs[i].value * STEP;

		if (metric->leaves[i].kind == STAT_LEAF_METRIC || !expr_has_number(&inputs[i]) ||
		    step == 0)
			continue;
		memcpy(moved, inputs, metric->leaf_count * sizeof(*moved));
		moved[i].value += step;
		stat_metric_formula(metric, moved, &after);
		weights[i] = expr_has_number(&after) ? (after.value - base.value) / step : NAN;
	}
}

/* Every event of the formula, with its weight. */
struct terms {
	unsigned *events;
	double *weights;
	size_t len;
	bool measured; /* all of them, the whole time */
	double share;  /* the least that one was counted; NaN: none was */
};

static int gather_terms(const struct stat_job *job, const struct stat_metric *metric,
			const struct count_value *values, struct terms *terms)
{
	size_t count = 0;

	for (unsigned i = 0; i < metric->leaf_count; i++)
		count += metric->leaves[i].count;
	*terms = (struct terms){.measured = true, .share = NAN};
	terms->events = calloc(count + 1, sizeof(*terms->events));
	terms->weights = calloc(count + 1, sizeof(*terms->weights));
	if (!terms->events || !terms->weights)
		return -1;
	for (unsigned i = 0; i < metric->leaf_count; i++)
		for (size_t k = 0; k < metric->leaves[i].count; k++) {
			unsigned event =
				stat_leaf_event(job, metric, &metric->leaves[i], (unsigned)k);

			terms->events[terms->len++] = event;
			if (value_has_number(&values[event])) /* fmin passes over NaN */
				terms->share =
					fmin(terms->share, fmin(value_share(&values[event]), 1));
			terms->measured &= values[event].state == VALUE_MEASURED ||
					   (job->set.events.data[event].partial &&
					    !value_has_number(&values[event]));
		}
	return 0;
}

static double independent_error(const struct stat_metric *metric, const struct expr_value *inputs,
				const double *weights)
{
	double variance = 0;

	for (unsigned i = 0; i < metric->leaf_count; i++)
		if (weights[i] != 0)
			variance += weights[i] * weights[i] * inputs[i].variance;
	return sqrt(variance);
}

static double common_error(const struct stat_job *job, const struct count_session *session,
			   unsigned row, const struct stat_metric *metric, struct terms *terms,
			   int group, const double *weights)
{
	size_t at = 0;

	for (unsigned i = 0; i < metric->leaf_count; i++)
		for (size_t k = 0; k < metric->leaves[i].count; k++) {
			unsigned event = terms->events[at];

			terms->weights[at++] = weights[i] * job->set.events.data[event].scale;
		}
	return count_session_sum_error(session, row, (unsigned)group, terms->events, terms->weights,
				       terms->len);
}

static void refuse_impossible(const struct stat_metric *metric, struct count_ratio *ret)
{
	if (!metric->share || !(ret->value > 100.1 + 4 * ret->stderr_))
		return;
	ret->state = VALUE_INVALID;
	ret->value = ret->stderr_ = NAN;
	snprintf(ret->reason, sizeof(ret->reason), "more than 100%%");
}

static void evaluate(const struct stat_job *job, const struct count_session *session, unsigned row,
		     const struct stat_metric *metric, const struct expr_value *inputs,
		     struct terms *terms, double *weights, struct count_ratio *ret)
{
	struct expr_value value;
	int group = -1;

	stat_metric_formula(metric, inputs, &value);
	ret->state = (enum value_state)value.state;
	snprintf(ret->reason, sizeof(ret->reason), "%.*s", (int)sizeof(ret->reason) - 1,
		 value.reason);
	ret->together = terms->measured;
	if (!expr_has_number(&value)) {
		bool counted = true;

		for (unsigned i = 0; i < metric->leaf_count; i++)
			counted &= metric->leaves[i].kind == STAT_LEAF_METRIC ||
				   expr_has_number(&inputs[i]);
		if (counted) /* 0 of 0: nothing is wrong, there is nothing to divide */
			ret->state = VALUE_NOT_COUNTED;
		return;
	}
	ret->value = value.value;
	ret->stderr_ = 0;
	if (terms->measured)
		return;
	if (session)
		group = count_session_common_group(session, terms->events, terms->len);
	ret->together = group >= 0;
	stat_metric_weights(metric, inputs, weights);
	ret->stderr_ = group >= 0 ? common_error(job, session, row, metric, terms, group, weights)
				  : independent_error(metric, inputs, weights);
}

void stat_metric_evaluate(const struct stat_job *job, const struct count_session *session,
			  unsigned row, const struct stat_metric *metric,
			  const struct count_value *values, const struct stat_result *result,
			  struct count_ratio *ret)
{
	CLEANUP_FREE struct expr_value *inputs = calloc(metric->leaf_count + 1, sizeof(*inputs));
	CLEANUP_FREE double *weights = calloc(metric->leaf_count + 1, sizeof(*weights));
	struct terms terms = {0};

	*ret = (struct count_ratio){
		.value = NAN, .stderr_ = NAN, .share = NAN, .state = VALUE_NOT_COUNTED};
	if (inputs && weights && gather_terms(job, metric, values, &terms) == 0) {
		stat_metric_inputs(job, metric, values, result, inputs);
		evaluate(job, session, row, metric, inputs, &terms, weights, ret);
		refuse_impossible(metric, ret);
		ret->share = terms.share;
	} else {
		snprintf(ret->reason, sizeof(ret->reason), "out of memory");
	}
	free(terms.events);
	free(terms.weights);
}
