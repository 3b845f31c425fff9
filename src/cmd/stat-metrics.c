/*
 * Derived numbers. Every one is a ratio of two events (or of an event and the wall time), so that
 * its error and whether both halves saw the same time can be told.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/stat.h"
#include "count/check.h"
#include "events/parse.h"
#include "stats/ratio.h"
#include "stats/summary.h"

struct metric_def {
	const char *name, *numerator, *denominator; /* denominator NULL: the wall time */
	double scale;
	const char *unit, *help;
};

/* In -M and --explain by these names. Clocks count nanoseconds. */
static const struct metric_def metric_defs[] = {
	{"ipc", "instructions", "cycles", 1, "insn per cycle", "instructions retired in one cycle"},
	{"cpi", "cycles", "instructions", 1, "cycles per insn",
	 "cycles that one instruction takes"},
	{"ghz", "cycles", "task-clock", 1, "GHz", "clock rate while running"},
	{"cpus_utilized", "task-clock", NULL, 1, "CPUs utilized", "CPUs kept busy on average"},
	{"branch_miss_rate", "branch-misses", "branches", 100, "% of all branches",
	 "branches predicted wrong"},
	{"branch_mpki", "branch-misses", "instructions", 1000, "MPKI",
	 "wrong predictions per 1000 instructions"},
	{"cache_miss_rate", "cache-misses", "cache-references", 100, "% of all cache refs",
	 "last-level cache misses"},
	{"cache_mpki", "cache-misses", "instructions", 1000, "MPKI",
	 "last-level misses per 1000 instructions"},
	{"l1d_miss_rate", "L1-dcache-load-misses", "L1-dcache-loads", 100,
	 "% of all L1-dcache accesses", "loads that miss the first data cache"},
	{"l1d_mpki", "L1-dcache-load-misses", "instructions", 1000, "MPKI",
	 "such misses per 1000 instructions"},
	{"llc_miss_rate", "LLC-load-misses", "LLC-loads", 100, "% of all LL-cache accesses",
	 "loads that miss the last cache"},
	{"llc_mpki", "LLC-load-misses", "instructions", 1000, "MPKI",
	 "such misses per 1000 instructions"},
	{"l1i_miss_rate", "L1-icache-load-misses", "L1-icache-loads", 100,
	 "% of all L1-icache accesses", "instruction fetches that miss"},
	{"l1i_mpki", "L1-icache-load-misses", "instructions", 1000, "MPKI",
	 "such misses per 1000 instructions"},
	{"dtlb_miss_rate", "dTLB-load-misses", "dTLB-loads", 100, "% of all dTLB cache accesses",
	 "loads whose address translation misses"},
	{"dtlb_mpki", "dTLB-load-misses", "instructions", 1000, "MPKI",
	 "such misses per 1000 instructions"},
	{"itlb_miss_rate", "iTLB-load-misses", "iTLB-loads", 100, "% of all iTLB cache accesses",
	 "instruction address translations that miss"},
	{"itlb_mpki", "iTLB-load-misses", "instructions", 1000, "MPKI",
	 "such misses per 1000 instructions"},
	{"page_fault_rate", "page-faults", "task-clock", 1e9, "faults/sec",
	 "page faults per second of CPU time"},
	{"context_switch_rate", "context-switches", "task-clock", 1e9, "switches/sec",
	 "switches per second of CPU time"},
};

static const struct metric_def *find_def(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(metric_defs); i++)
		if (strlen(metric_defs[i].name) == len &&
		    strncasecmp(metric_defs[i].name, name, len) == 0)
			return &metric_defs[i];
	return NULL;
}

static int unknown_metric(const char *name, size_t len, struct err *err)
{
	CLEANUP_FREE char *copy = strndup(name, len);
	const char *nearest = NULL;
	unsigned best = 5;

	for (size_t i = 0; copy && i < ARRAY_LEN(metric_defs); i++) {
		unsigned distance = str_distance(copy, metric_defs[i].name);

		if (distance < best) {
			best = distance;
			nearest = metric_defs[i].name;
		}
	}
	if (nearest)
		return err_set(err, -EINVAL, "no metric '%s'; did you mean '%s'?", copy, nearest);
	return err_set(err, -EINVAL,
		       "no metric '%s'; there are ipc, ghz, branch_mpki and more (see --help)",
		       copy ? copy : "");
}

/* The clock event of this set stands for task-clock, whichever was chosen. */
static int need_by_name(struct stat_job *job, const char *name)
{
	if (strcmp(name, "task-clock") == 0 && job->target.system_wide)
		name = "cpu-clock";
	return stat_need_event(job, name);
}

static int ask_metric(struct stat_job *job, const struct metric_def *def)
{
	struct stat_metric metric = {.name = def->name,
				     .unit = def->unit,
				     .scale = def->scale,
				     .digits = 2,
				     .asked = true};

	metric.numerator = need_by_name(job, def->numerator);
	metric.denominator = def->denominator ? need_by_name(job, def->denominator) : STAT_WALL;
	metric.shown_at = metric.numerator;
	if (metric.numerator < 0 || metric.denominator < STAT_WALL)
		return -ENOMEM;
	return vec_push(&job->metrics, metric);
}

static int ask_metrics(struct stat_job *job, const char *list, struct err *err)
{
	for (const char *word = list; *word != '\0';) {
		size_t len = strcspn(word, ",");
		const struct metric_def *def = find_def(word, len);
		int r = 0;

		if (!def && len > 0)
			return unknown_metric(word, len, err);
		if (def)
			r = ask_metric(job, def);
		if (r < 0)
			return r;
		word += len + (word[len] == ',');
	}
	return 0;
}

int stat_metric_events(struct stat_job *job, struct err *err)
{
	int r = 0;

	if (job->options.metrics)
		r = ask_metrics(job, job->options.metrics, err);
	if (r == 0 && job->options.explain)
		r = ask_metrics(job, job->options.explain, err);
	return r;
}

/* An event of this name's type and config, counted in the same modes as like. */
static int same_mode_event(const struct stat_job *job, uint32_t type, uint64_t config,
			   unsigned like)
{
	const struct count_event *events = job->set.events.data;

	for (unsigned i = 0; i < stat_events(job); i++)
		if (!events[i].internal && events[i].attr.type == type &&
		    events[i].attr.config == config &&
		    count_same_mode(&events[i].attr, &events[like].attr))
			return (int)i;
	return -2;
}

static bool is_asked(const struct stat_job *job, const char *name)
{
	for (size_t m = 0; m < job->metrics.len; m++)
		if (job->metrics.data[m].asked && strcmp(job->metrics.data[m].name, name) == 0)
			return true;
	return false;
}

static int add_metric(struct stat_job *job, const char *name, unsigned at, int denominator,
		      double scale, unsigned digits, const char *unit, bool per_time)
{
	if (denominator < STAT_WALL || is_asked(job, name))
		return 0;
	return vec_push(&job->metrics, ((struct stat_metric){.name = name,
							     .unit = unit,
							     .numerator = (int)at,
							     .denominator = denominator,
							     .scale = scale,
							     .digits = digits,
							     .per_time = per_time,
							     .shown_at = (int)at}));
}

static int clock_event(const struct stat_job *job)
{
	int task = count_set_find(&job->set, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);

	return task >= 0 ? task
			 : count_set_find(&job->set, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
}

static int add_rate(struct stat_job *job, unsigned i)
{
	int clock = clock_event(job);

	return add_metric(job, "rate", i, clock >= 0 ? clock : STAT_WALL, 1e9, 3, "/sec", true);
}

/* With two kinds of core the upper half of config names the PMU: both halves of a ratio are of one.
 */
#define PMU_BITS (UINT64_MAX << 32)

static int hardware_metrics(struct stat_job *job, unsigned i)
{
	uint64_t config = job->set.events.data[i].attr.config, pmu = config & PMU_BITS;
	int instructions =
		    same_mode_event(job, PERF_TYPE_HARDWARE, pmu | PERF_COUNT_HW_INSTRUCTIONS, i),
	    over, r;

	switch (config & ~PMU_BITS) {
	case PERF_COUNT_HW_CPU_CYCLES:
		return add_metric(job, "ghz", i, clock_event(job) >= 0 ? clock_event(job) : -2, 1,
				  3, "GHz", false);
	case PERF_COUNT_HW_INSTRUCTIONS:
		over = same_mode_event(job, PERF_TYPE_HARDWARE, pmu | PERF_COUNT_HW_CPU_CYCLES, i);
		if (over >= 0)
			return add_metric(job, "ipc", i, over, 1, 2, "insn per cycle", false);
		break;
	case PERF_COUNT_HW_BRANCH_MISSES:
		over = same_mode_event(job, PERF_TYPE_HARDWARE,
				       pmu | PERF_COUNT_HW_BRANCH_INSTRUCTIONS, i);
		r = add_metric(job, "branch_miss_rate", i, over, 100, 2, "% of all branches",
			       false);
		return r < 0 ? r
			     : add_metric(job, "branch_mpki", i, instructions, 1000, 2, "MPKI",
					  false);
	case PERF_COUNT_HW_CACHE_MISSES:
		over = same_mode_event(job, PERF_TYPE_HARDWARE,
				       pmu | PERF_COUNT_HW_CACHE_REFERENCES, i);
		r = add_metric(job, "cache_miss_rate", i, over, 100, 2, "% of all cache refs",
			       false);
		return r < 0 ? r
			     : add_metric(job, "cache_mpki", i, instructions, 1000, 2, "MPKI",
					  false);
	default:
		break;
	}
	return add_rate(job, i);
}

static int cache_metrics(struct stat_job *job, unsigned i)
{
	const struct count_event *event = &job->set.events.data[i];
	uint64_t config = event->attr.config, pmu = config & PMU_BITS;
	int instructions =
		same_mode_event(job, PERF_TYPE_HARDWARE, pmu | PERF_COUNT_HW_INSTRUCTIONS, i);
	const char *slash = strchr(event->name, '/'), *name = slash ? slash + 1 : event->name;
	size_t len = strcspn(name, ":/");
	bool miss = (config >> 16 & 0xff) == PERF_COUNT_HW_CACHE_RESULT_MISS;
	int over = same_mode_event(job, PERF_TYPE_HW_CACHE, pmu | (config & 0xffff), i), r = 0;

	if (!miss)
		return add_rate(job, i);
	for (size_t d = 0; d < ARRAY_LEN(metric_defs) && r == 0; d++) {
		const struct metric_def *def = &metric_defs[d];

		if (strlen(def->numerator) == len && strncmp(def->numerator, name, len) == 0)
			r = add_metric(job, def->name, i, def->scale == 100 ? over : instructions,
				       def->scale, 2, def->unit, false);
	}
	return r;
}

int stat_choose_metrics(struct stat_job *job, struct err *err)
{
	for (unsigned i = 0; i < stat_events(job); i++) {
		const struct count_event *event = &job->set.events.data[i];
		const struct perf_event_attr *attr = &event->attr;
		int r = 0;

		if (event->internal || event->kind == COUNT_TOOL)
			continue;
		if (attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_TASK_CLOCK ||
							 attr->config == PERF_COUNT_SW_CPU_CLOCK))
			r = add_metric(job, "cpus_utilized", i, STAT_WALL, 1, 3, "CPUs utilized",
				       false);
		else if (attr->type == PERF_TYPE_HARDWARE)
			r = hardware_metrics(job, i);
		else if (attr->type == PERF_TYPE_HW_CACHE)
			r = cache_metrics(job, i);
		else if (event->unit[0] == '\0' && event->scale == 1)
			r = add_rate(job, i);
		if (r < 0)
			return err_set(err, r, "out of memory");
	}
	return 0;
}

static void wall_ratio(const struct count_value *over, double wall_ns, struct count_ratio *ret)
{
	struct count_value under = {.value = wall_ns, .state = VALUE_MEASURED};

	count_ratio_of_values(over, &under, ret);
	ret->together = true;
}

static bool is_possible(const struct stat_metric *metric, const struct count_ratio *ratio)
{
	return metric->scale != 100 || !(ratio->value > 1.001 + 4 * ratio->stderr_);
}

static void fill_ratio(const struct stat_job *job, const struct count_session *session,
		       unsigned row, const struct stat_metric *metric,
		       const struct count_value *values, double wall_ns, struct count_ratio *ret)
{
	const struct count_value *over = &values[metric->numerator];

	if (metric->denominator == STAT_WALL)
		wall_ratio(over, wall_ns, ret);
	else if (session)
		count_session_ratio(session, row, (unsigned)metric->numerator,
				    (unsigned)metric->denominator, ret);
	else
		count_ratio_of_values(over, &values[metric->denominator], ret);
	/* What was refused as impossible after counting must not come back through the session. */
	if (over->state == VALUE_INVALID ||
	    (metric->denominator >= 0 && values[metric->denominator].state == VALUE_INVALID))
		count_ratio_of_values(
			over, metric->denominator >= 0 ? &values[metric->denominator] : over, ret);
	if (!is_possible(metric, ret)) {
		ret->state = VALUE_INVALID;
		ret->value = ret->stderr_ = NAN;
		snprintf(ret->reason, sizeof(ret->reason), "more than 100%%");
	}
	ret->value *= metric->scale;
	ret->stderr_ *= metric->scale;
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
			fill_ratio(job, session, row, &job->metrics.data[m], values,
				   (double)result->wall_ns, &result->ratios[row * metrics + m]);
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

/* Sum over sum of the runs that have both halves, and the spread of the runs as its error. */
static void merge_ratio(const struct stat_job *job, size_t row, const struct stat_metric *metric,
			double *x, double *a, const struct count_value *values, double wall_ns,
			struct count_ratio *ret)
{
	size_t events = stat_events(job), n = 0;
	bool apart = false;

	fill_ratio(job, NULL, 0, metric, values, wall_ns, ret);
	for (size_t run = 0; run < job->run_values.len; run++) {
		const struct count_value *of_run = job->run_values.data[run] + row * events;
		const struct count_value *over = &of_run[metric->numerator];
		const struct count_value *under =
			metric->denominator >= 0 ? &of_run[metric->denominator] : NULL;

		if (!value_has_number(over) || (under && !value_has_number(under)))
			continue;
		apart |= over->state != VALUE_MEASURED || (under && under->state != VALUE_MEASURED);
		x[n] = over->value;
		a[n++] = under ? under->value : (double)job->run_walls.data[run];
	}
	if (n > 1 && value_has_number(&(struct count_value){.state = ret->state})) {
		struct ratio ratio = ratio_of_runs(x, a, n);

		ret->value = ratio.value * metric->scale;
		ret->stderr_ = ratio.stderr_ * metric->scale;
	}
	ret->together = n > 0 && !apart;
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
	CLEANUP_FREE double *x = calloc(2 * runs + 1, sizeof(*x));

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
			merge_ratio(job, row, &job->metrics.data[m], x, x + runs, values,
				    (double)result->wall_ns,
				    &result->ratios[row * job->metrics.len + m]);
	}
	return 0;
}

static void explain_half(const struct stat_job *job, int event, const struct count_value *values,
			 double wall_ns)
{
	char text[64];

	if (event == STAT_WALL) {
		fprintf(job->out, "    %-24s %20.0f ns of wall time\n", "wall time", wall_ns);
		return;
	}
	snprintf(text, sizeof(text), "%.0f", values[event].value);
	fprintf(job->out, "    %-24s %20s %s", job->set.events.data[event].name,
		value_has_number(&values[event]) ? text : "-",
		value_state_name(values[event].state));
	if (values[event].state == VALUE_ESTIMATED || values[event].state == VALUE_WEAK)
		fprintf(job->out, " +- %.0f, counted %llu in %.1f%% of the time",
			values[event].stderr_, (unsigned long long)values[event].raw,
			100 * value_share(&values[event]));
	fprintf(job->out, "%s%s\n", values[event].reason[0] ? ": " : "", values[event].reason);
}

static const char *event_name(const struct stat_job *job, int event)
{
	return event == STAT_WALL ? "wall time" : job->set.events.data[event].name;
}

void stat_explain(const struct stat_job *job, const struct stat_result *result)
{
	for (size_t m = 0; m < job->metrics.len; m++) {
		const struct stat_metric *metric = &job->metrics.data[m];
		const struct metric_def *def =
			metric->asked ? find_def(metric->name, strlen(metric->name)) : NULL;
		const struct count_ratio *ratio = &result->ratios[m];
		const struct count_value *values = result->values;

		if (!def || !strcasestr(job->options.explain, def->name))
			continue;
		fprintf(job->out, "\n %s: %s\n  = %s / %s", def->name, def->help,
			event_name(job, metric->numerator), event_name(job, metric->denominator));
		if (metric->scale != 1)
			fprintf(job->out, " * %g", metric->scale);
		fputc('\n', job->out);
		if (isnan(ratio->value)) {
			fprintf(job->out, "  = unknown (%s)\n", ratio->reason);
		} else {
			fprintf(job->out, "  = %.0f / %.0f", values[metric->numerator].value,
				metric->denominator == STAT_WALL
					? (double)result->wall_ns
					: values[metric->denominator].value);
			if (metric->scale != 1)
				fprintf(job->out, " * %g", metric->scale);
			fprintf(job->out, " = %.4f %s", ratio->value, metric->unit);
			if (ratio->stderr_ > 0)
				fprintf(job->out, " +- %.4f", ratio->stderr_);
			fprintf(job->out, "\n  %s\n",
				ratio->together ? "both halves saw the same time"
						: "the halves were counted at different times");
		}
		explain_half(job, metric->numerator, values, (double)result->wall_ns);
		explain_half(job, metric->denominator, values, (double)result->wall_ns);
	}
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
