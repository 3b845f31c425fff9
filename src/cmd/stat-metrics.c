/*
 * Derived numbers: those of the table that stand beside events counted anyway, and filling in what
 * all of them come to, run by run. A metric shown beside an event takes the rest of its formula
 * from events of the same mode and the same kind of core.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/stat-formula.h"
#include "count/check.h"
#include "events/builtin-metrics.h"
#include "events/parse.h"
#include "stats/summary.h"

/* With two kinds of core the upper half of config names the PMU: a ratio is of one. */
#define PMU_BITS (UINT64_MAX << 32)

static const struct builtin_metric rates[] = {
	{.metric = {.name = "rate", .formula = "event / clock * 1e9", .unit = "/sec"}},
	{.metric = {.name = "rate", .formula = "event / duration_time", .unit = "/sec"}},
};

/* An event of this name, counted in the same modes on the same kind of core as like; -1 none. */
static int same_mode_event(const struct stat_job *job, const char *name, unsigned like)
{
	const struct count_event *events = job->set.events.data;
	const struct stat_known *known = stat_known_find(name);
	uint64_t pmu = 0;

	if (!known)
		return -1;
	if (known->type != PERF_TYPE_SOFTWARE && (events[like].attr.type == PERF_TYPE_HARDWARE ||
						  events[like].attr.type == PERF_TYPE_HW_CACHE))
		pmu = events[like].attr.config & PMU_BITS;
	for (unsigned i = 0; i < stat_events(job); i++)
		if (!events[i].internal && events[i].kind != COUNT_TOOL &&
		    events[i].attr.type == known->type &&
		    events[i].attr.config == (known->config | pmu) &&
		    count_same_mode(&events[i].attr, &events[like].attr))
			return (int)i;
	return -1;
}

static int clock_event(const struct stat_job *job)
{
	int task = count_set_find(&job->set, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);

	return task >= 0 ? task
			 : count_set_find(&job->set, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
}

struct bind {
	struct stat_job *job;
	struct stat_metric *metric;
	unsigned at;
	bool first, missing;
	int r;
};

/* The first name of the formula is the event itself; the others must be counted too. */
static void bind_name(void *ctx, const char *name)
{
	struct bind *b = ctx;
	struct stat_leaf leaf = {.kind = STAT_LEAF_EVENTS, .scale = 1}, *grown;
	int event;

	if (b->missing || b->r < 0 || stat_leaf_find(b->metric, name) >= 0)
		return;
	event = b->first ? (int)b->at
		: strcmp(name, "task-clock") == 0 || strcmp(name, "clock") == 0
			? clock_event(b->job)
			: same_mode_event(b->job, name, b->at);
	b->first = false;
	if (strcmp(name, "duration_time") == 0)
		leaf.kind = STAT_LEAF_WALL;
	else if (event < 0)
		b->missing = true;
	if (b->missing)
		return;
	leaf.name = strdup(name);
	leaf.slots = malloc(sizeof(*leaf.slots));
	grown = realloc(b->metric->leaves, (b->metric->leaf_count + 1) * sizeof(*grown));
	if (grown)
		b->metric->leaves = grown;
	if (!leaf.name || !leaf.slots || !grown) {
		free(leaf.name);
		free(leaf.slots);
		b->r = -ENOMEM;
		return;
	}
	if (leaf.kind == STAT_LEAF_EVENTS) {
		leaf.slots[0] = -1 - event;
		leaf.count = 1;
	}
	b->metric->leaves[b->metric->leaf_count++] = leaf;
}

/* A metric of the table that was parsed for another event lends its formula. */
static struct expr *parsed_before(const struct stat_job *job, const char *formula)
{
	vec_for_each(&job->metrics, metric)
		if (metric->formula == formula)
			return metric->expr;
	return NULL;
}

/* 1 when it was added, 0 when a part of the formula is not counted. */
static int add_beside(struct stat_job *job, const struct builtin_metric *def, unsigned at,
		      bool per_time)
{
	struct stat_metric metric = {.name = def->metric.name,
				     .unit = def->metric.unit,
				     .formula = def->metric.formula,
				     .description = def->metric.description,
				     .scale = 1,
				     .digits = per_time ? 3 : def->digits,
				     .share = def->share,
				     .per_time = per_time,
				     .bundle = -1,
				     .shown_at = (int)at};
	struct bind bind = {.job = job, .metric = &metric, .at = at, .first = true};

	metric.expr = parsed_before(job, metric.formula);
	metric.expr_shared = metric.expr != NULL;
	if (!metric.expr)
		bind.r = expr_parse(metric.formula, &metric.expr, NULL);
	if (bind.r == 0)
		expr_names(metric.expr, bind_name, &bind);
	if (bind.r == 0 && !bind.missing)
		bind.r = vec_push(&job->metrics, metric);
	if (bind.r < 0 || bind.missing)
		stat_metric_fini(&metric);
	return bind.r < 0 ? bind.r : !bind.missing;
}

static bool is_asked(const struct stat_job *job, const char *name)
{
	vec_for_each(&job->metrics, metric)
		if (metric->asked && strcmp(metric->name, name) == 0)
			return true;
	return false;
}

/* Does the formula begin with this event? "-" is written "\\-" there. */
static bool begins_with(const char *formula, const char *event)
{
	for (; *event; event++, formula++) {
		if (*formula == '\\')
			formula++;
		if (*formula != *event)
			return false;
	}
	return *formula == ' ';
}

static int add_rate(struct stat_job *job, unsigned at)
{
	return add_beside(job, &rates[clock_event(job) >= 0 ? 0 : 1], at, true);
}

static int metrics_of(struct stat_job *job, unsigned i)
{
	const struct count_event *event = &job->set.events.data[i];
	const char *name = stat_known_name(&event->attr);
	bool added = false, has = false;
	int r = 0;

	if (name && strcmp(name, "cpu-clock") == 0)
		name = "task-clock";
	for (size_t d = 0; name && d < builtin_metrics_len && r >= 0; d++) {
		const struct builtin_metric *def = &builtin_metrics[d];

		if (!def->beside || !begins_with(def->metric.formula, name))
			continue;
		has = true;
		if (is_asked(job, def->metric.name))
			continue;
		r = add_beside(job, def, i, false);
		added |= r > 0;
	}
	if (r < 0 || added)
		return r;
	/* Misses are of no use as a rate, cycles neither, clocks are none. */
	if (has && strcmp(name, "instructions") != 0)
		return 0;
	return event->unit[0] == '\0' && event->scale == 1 ? add_rate(job, i) : 0;
}

int stat_choose_metrics(struct stat_job *job, struct err *err)
{
	unsigned events = (unsigned)stat_events(job);

	for (unsigned i = 0; i < events; i++) {
		const struct count_event *event = &job->set.events.data[i];

		if (!event->internal && event->kind != COUNT_TOOL && metrics_of(job, i) < 0)
			return err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* What the tool takes itself. User and system time are known when the command has ended. */
static void fill_tool(const struct stat_result *result, int tool, struct count_value *value)
{
	*value = (struct count_value){.value = NAN, .stderr_ = NAN, .state = VALUE_NOT_COUNTED};
	if (tool != TOOL_DURATION_TIME && !result->has_times) {
		snprintf(value->reason, sizeof(value->reason),
			 "known only of a command that has ended");
		return;
	}
	value->state = VALUE_MEASURED;
	value->raw = tool == TOOL_DURATION_TIME ? result->wall_ns
		     : tool == TOOL_USER_TIME   ? result->user_ns
						: result->sys_ns;
	value->value = (double)value->raw;
	value->stderr_ = 0;
	value->enabled_ns = value->running_ns = result->wall_ns;
}

void stat_fill_result(const struct stat_job *job, const struct count_session *session,
		      struct stat_result *result)
{
	size_t events = stat_events(job), metrics = job->metrics.len;

	for (unsigned row = 0; row < job->target.rows.len; row++) {
		struct count_value *values = result->values + row * events;

		for (unsigned i = 0; i < events; i++) {
			count_session_value(session, row, i, &values[i]);
			if (job->set.events.data[i].kind == COUNT_TOOL)
				fill_tool(result, job->set.events.data[i].tool, &values[i]);
		}
		count_check_values(&job->set, values);
		for (size_t m = 0; m < metrics; m++)
			stat_metric_evaluate(job, session, row, &job->metrics.data[m], values,
					     result, &result->ratios[row * metrics + m]);
	}
}

/* Mean of one value over the runs that counted it; its error is the spread of those runs. */
static void merge_value(const struct stat_job *job, size_t at, double *scratch,
			struct count_value *ret)
{
	size_t n = 0;

	*ret = job->run_values.data[0][at];
	for (size_t run = 0; run < job->run_values.len; run++) {
		const struct count_value *value = &job->run_values.data[run][at];

		if (!value_has_number(value))
			continue;
		if (n == 0) {
			*ret = *value;
		} else {
			ret->raw += value->raw;
			ret->enabled_ns += value->enabled_ns;
			ret->running_ns += value->running_ns;
			ret->available_ns += value->available_ns;
			ret->state = MAX(ret->state, value->state);
			ret->phases |= value->phases;
		}
		scratch[n++] = value->value;
	}
	if (n < 2)
		return;
	ret->value = stats_mean(scratch, n);
	ret->stderr_ = stats_stderr(scratch, n);
}

/* The times of one run, as the formulas take them. */
static struct stat_result run_times(const struct stat_job *job, const struct stat_result *like,
				    size_t run)
{
	return (struct stat_result){.wall_ns = job->run_walls.data[run],
				    .user_ns = job->run_users.data[run],
				    .sys_ns = job->run_systems.data[run],
				    .has_times = like->has_times};
}

/* inputs[run][leaf] of the runs that have a number for every leaf; how many those are. */
static size_t inputs_of_runs(const struct stat_job *job, size_t row,
			     const struct stat_metric *metric, const struct stat_result *result,
			     struct expr_value *inputs, bool *ret_apart)
{
	size_t events = stat_events(job), n = 0;

	for (size_t run = 0; run < job->run_values.len; run++) {
		struct expr_value *of_run = inputs + n * metric->leaf_count;
		struct stat_result times = run_times(job, result, run);
		bool complete = true, apart = false;

		stat_metric_inputs(job, metric, job->run_values.data[run] + row * events, &times,
				   of_run);
		for (unsigned i = 0; i < metric->leaf_count; i++) {
			complete &= metric->leaves[i].kind == STAT_LEAF_METRIC ||
				    expr_has_number(&of_run[i]);
			apart |= metric->leaves[i].kind != STAT_LEAF_METRIC &&
				 of_run[i].state != EXPR_MEASURED;
		}
		n += complete;
		*ret_apart |= complete && apart;
	}
	return n;
}

/*
 * The formula over the sums of the runs that have all of it, never a mean of ratios. Its error is
 * the spread of the runs, by the derivatives of the formula.
 */
static void merge_metric(const struct stat_job *job, size_t row, const struct stat_metric *metric,
			 const struct count_value *values, const struct stat_result *result,
			 struct count_ratio *ret)
{
	size_t runs = job->run_values.len, leaves = metric->leaf_count, n;
	CLEANUP_FREE struct expr_value *inputs = calloc((runs + 1) * (leaves + 1), sizeof(*inputs));
	CLEANUP_FREE double *z = calloc(runs + 1, sizeof(*z));
	CLEANUP_FREE double *weights = calloc(leaves + 1, sizeof(*weights));
	struct expr_value *mean, value;
	bool apart = false;

	stat_metric_evaluate(job, NULL, 0, metric, values, result, ret);
	if (!inputs || !z || !weights)
		return;
	n = inputs_of_runs(job, row, metric, result, inputs, &apart);
	ret->together = n > 0 && !apart;
	if (n < 2 || !value_has_number(&(struct count_value){.state = ret->state}))
		return;
	mean = inputs + n * leaves;
	memcpy(mean, inputs, leaves * sizeof(*mean));
	for (size_t i = 0; i < leaves; i++) {
		for (size_t run = 1; run < n; run++)
			mean[i].value += inputs[run * leaves + i].value;
		mean[i].value /= (double)n;
	}
	stat_metric_formula(metric, mean, &value);
	if (!expr_has_number(&value))
		return;
	stat_metric_weights(metric, mean, weights);
	for (size_t run = 0; run < n; run++)
		for (size_t i = 0; i < leaves; i++)
			if (weights[i] != 0)
				z[run] += weights[i] * inputs[run * leaves + i].value;
	ret->value = value.value;
	ret->stderr_ = stats_stderr(z, n);
}

static double mean_u64(const uint64_t *values, size_t count, double *scratch, double *ret_stderr)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] = (double)values[i];
	*ret_stderr = stats_stderr(scratch, count);
	return stats_mean(scratch, count);
}

int stat_merge_runs(const struct stat_job *job, struct stat_result *result)
{
	size_t events = stat_events(job), runs = job->run_values.len;
	CLEANUP_FREE double *x = calloc(runs + 1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	result->runs = (unsigned)runs;
	result->wall_ns = (uint64_t)mean_u64(job->run_walls.data, runs, x, &result->wall_stderr_ns);
	result->user_ns = (uint64_t)mean_u64(job->run_users.data, runs, x, &result->user_stderr_ns);
	result->sys_ns = (uint64_t)mean_u64(job->run_systems.data, runs, x, &result->sys_stderr_ns);
	for (size_t row = 0; row < job->target.rows.len; row++) {
		struct count_value *values = result->values + row * events;

		for (size_t i = 0; i < events; i++)
			merge_value(job, row * events + i, x, &values[i]);
		for (size_t m = 0; m < job->metrics.len; m++)
			merge_metric(job, row, &job->metrics.data[m], values, result,
				     &result->ratios[row * job->metrics.len + m]);
	}
	return 0;
}

int stat_result_new(const struct stat_job *job, struct stat_result *ret)
{
	size_t rows = job->target.rows.len;
	struct stat_result r = {
		.wall_stderr_ns = NAN, .user_stderr_ns = NAN, .sys_stderr_ns = NAN, .runs = 1};

	r.values = calloc(rows * stat_events(job) + 1, sizeof(*r.values));
	r.ratios = calloc(rows * job->metrics.len + 1, sizeof(*r.ratios));
	*ret = r;
	if (!r.values || !r.ratios) {
		stat_result_free(ret);
		return -ENOMEM;
	}
	return 0;
}

void stat_result_free(struct stat_result *result)
{
	free(result->values);
	free(result->ratios);
	*result = (struct stat_result){0};
}
