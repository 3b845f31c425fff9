/* How a comparison is told, in words and in numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/compare.h"
#include "view/table.h"
#include "view/text.h"

#define WAITED_MUCH 0.05 /* a share of the time worth naming */

const struct compare_metric_info compare_metrics[METRIC_COUNT] = {
	[METRIC_WALL] = {"wall_ns", "wall time", UNIT_NS},
	[METRIC_UNDISTURBED] = {"undisturbed_ns", "  undisturbed", UNIT_NS},
	[METRIC_READY] = {"cpu_wait_ns", "  waiting for a CPU", UNIT_NS},
	[METRIC_CPU] = {"cpu_ns", "CPU time", UNIT_NS},
	[METRIC_USER] = {"user_ns", "  user", UNIT_NS},
	[METRIC_SYS] = {"sys_ns", "  system", UNIT_NS},
	[METRIC_MAX_RSS] = {"max_rss_bytes", "peak memory", UNIT_BYTES},
	[METRIC_MINOR_FAULTS] = {"minor_faults", "page faults", UNIT_COUNT},
	[METRIC_MAJOR_FAULTS] = {"major_faults", "  from disk", UNIT_COUNT},
	[METRIC_SWITCHES] = {"voluntary_switches", "waits", UNIT_COUNT},
	[METRIC_PREEMPTIONS] = {"involuntary_switches", "preemptions", UNIT_COUNT},
	[METRIC_INSTRUCTIONS] = {"instructions", "instructions", UNIT_COUNT},
	[METRIC_CYCLES] = {"cycles", "cycles", UNIT_COUNT},
	[METRIC_IPC] = {"ipc", "  per cycle", UNIT_RATIO},
};

static const char *value_text(enum compare_metric metric, double value, struct str *out)
{
	char buf[32];

	str_clear(out);
	switch (compare_metrics[metric].unit) {
	case UNIT_NS:
		str_puts(out, duration_text((uint64_t)value, buf, sizeof(buf)));
		break;
	case UNIT_BYTES:
		str_printf(out, "%.1f MiB", value / (1 << 20));
		break;
	case UNIT_RATIO:
		str_printf(out, "%.2f", value);
		break;
	case UNIT_COUNT:
		text_group(out, (uint64_t)(value + 0.5));
		break;
	}
	return str_text(out);
}

/* "+4.9%", with as many digits as the size deserves. */
static const char *change_text(double change, struct str *out)
{
	str_clear(out);
	if (fabs(change) < 0.5e-4)
		change = 0; /* not "-0.00%" */
	str_printf(out, "%+.*f%%", fabs(change) >= 0.0995 ? 1 : 2, change * 100);
	return str_text(out);
}

static int metric_table(const struct compare_result *result, struct table **ret)
{
	static const struct table_column columns[] = {
		{.key = "metric", .title = "", .kind = CELL_TEXT},
		{.key = "a", .title = "A (median)", .kind = CELL_TEXT},
		{.key = "b", .title = "B (median)", .kind = CELL_TEXT},
		{.key = "change", .title = "B against A", .kind = CELL_TEXT},
		{.key = "interval", .title = "95% interval", .kind = CELL_TEXT},
		{.key = "told", .title = "", .kind = CELL_TEXT},
	};
	struct str text = {0}, high = {0};
	struct table *table;
	int r = table_new(columns, ARRAY_LEN(columns), &table);

	if (r < 0)
		return r;
	for (int m = 0; m < METRIC_COUNT; m++) {
		const struct compare_finding *f = &result->findings[m];

		if (!f->known)
			continue;
		table_text(table, compare_metrics[m].title);
		table_text(table, value_text((enum compare_metric)m, f->medians.a, &text));
		table_text(table, value_text((enum compare_metric)m, f->medians.b, &text));
		if (isnan(f->shift.change)) {
			table_text(table, "");
			table_text(table, "");
		} else {
			table_text(table, change_text(f->shift.change, &text));
			change_text(f->shift.ci.low, &text);
			str_puts(&text, " to ");
			str_puts(&text, change_text(f->shift.ci.high, &high));
			table_text(table, str_text(&text));
		}
		table_text(table, !f->decided ? "" : f->more ? "more" : "less");
	}
	r = str_status(&text) < 0 ? -ENOMEM : table_status(table);
	str_fini(&text);
	str_fini(&high);
	if (r < 0) {
		table_free(table);
		return r;
	}
	*ret = table;
	return 0;
}

static void print_side(const struct compare_side *side, struct str *out)
{
	str_printf(out, "%s:", side->name);
	for (int i = 0; i < side->argc; i++) {
		str_putc(out, ' ');
		text_clean(out, side->argv[i], strlen(side->argv[i]));
	}
	str_putc(out, '\n');
}

/* Of all runs' time, how much they waited for a CPU; NaN: not known of some. */
static double waited_share(const struct compare_result *result)
{
	double waited = 0, wall = 0;

	for (size_t i = 0; i < result->pairs.len; i++) {
		const double *a = result->pairs.data[i].a.values;
		const double *b = result->pairs.data[i].b.values;

		waited += a[METRIC_READY] + b[METRIC_READY];
		wall += a[METRIC_WALL] + b[METRIC_WALL];
	}
	return waited / wall;
}

/* "4.9% more time (95% interval 4.1% to 5.6%, p = 0.0005)" */
static void print_change(const struct verdict_view *view, const char *of, struct str *out)
{
	double least = fmin(fabs(view->ci.low), fabs(view->ci.high));
	double most = fmax(fabs(view->ci.low), fabs(view->ci.high));

	str_printf(out, "%.2f%% %s %s (95%% interval %.2f%% to %.2f%%, p = %.2g)",
		   fabs(view->change) * 100, view->change > 0 ? "more" : "less", of, least * 100,
		   most * 100, view->p);
}

static void print_difference(const struct compare_result *result, struct str *out)
{
	static const char *const of[CLOCK_COUNT][LOOK_COUNT] = {
		{"time", "time in the fastest fifth of the runs"},
		{"time not counting its waits for a CPU",
		 "time not counting its waits for a CPU, in the fastest fifth of the runs"},
	};
	const struct interval *wall = &result->clocks[CLOCK_WALL][LOOK_TYPICAL].ci;
	const struct verdict_view *second = result->clocks[CLOCK_SECOND];

	second += !second[LOOK_TYPICAL].decided;
	str_printf(out, "B is %s: ", result->verdict == VERDICT_FASTER ? "faster" : "slower");
	print_change(compare_answer(result), of[result->clock][result->look], out);
	str_puts(out, ".\n");
	if (result->clock != CLOCK_WALL)
		str_printf(out,
			   "Wall time cannot tell it: other programs disturbed it (95%% interval "
			   "%+.1f%% to %+.1f%%).\n",
			   wall->low * 100, wall->high * 100);
	else if (second->decided && waited_share(result) >= WAITED_MUCH) {
		str_puts(out, "Not counting waits for a CPU: ");
		print_change(second, "time", out);
		str_puts(out, ".\n");
	}
}

static void print_no_difference(const struct compare_result *result, struct str *out)
{
	const struct verdict_view *cpu = result->clocks[CLOCK_SECOND];

	str_puts(out, "No difference in time that can be told.");
	if (isnan(result->smallest))
		str_printf(out, " Fewer than %d pairs cannot show any: use -r.\n",
			   COMPARE_PAIRS_MIN);
	else
		str_printf(out,
			   " The smallest that %zu pairs could have shown: %.*f%%; four "
			   "times as many (-r %zu) show half of it.\n",
			   result->pairs.len, result->smallest < 0.1 ? 2 : 0,
			   result->smallest * 100, result->pairs.len * 4);
	if (!compare_cpu_alone(result))
		return;
	str_puts(out, "But CPU time tells what wall time cannot: B takes ");
	print_change(&cpu[cpu[LOOK_TYPICAL].decided ? LOOK_TYPICAL : LOOK_QUIET], "CPU time", out);
	str_puts(out, ". Unless more of it runs in parallel, that is time as well.\n");
}

static void print_verdict(const struct compare_result *result, struct str *out)
{
	double most = compare_answer(result)->ci.high;

	if (result->verdict == VERDICT_NO_DIFFERENCE)
		print_no_difference(result, out);
	else
		print_difference(result, out);
	if (isnan(result->max_regression))
		return;
	if (result->regression)
		str_printf(out, "Regression: slower by more than the %g%% allowed.\n",
			   result->max_regression * 100);
	else if (most > result->max_regression)
		str_printf(out,
			   "Within the %g%% allowed as far as can be told; up to %.2f%% cannot be "
			   "ruled out.\n",
			   result->max_regression * 100, most * 100);
	else
		str_printf(out, "Within the %g%% allowed.\n", result->max_regression * 100);
}

/* What kept the runs from the CPU. */
static void print_disturbance(const struct compare_result *result, struct str *out)
{
	double waited = waited_share(result);

	if (waited >= WAITED_MUCH)
		str_printf(out,
			   "Other programs kept A and B waiting for a CPU for %.0f%% of their "
			   "time.\n",
			   waited * 100);
	if (result->steal_share >= 0.01)
		str_printf(out, "The hypervisor took %.0f%% of the CPUs' time for others.\n",
			   result->steal_share * 100);
}

/* The time that changed, split into what the CPU did and waiting, and what the counters say of it.
 */
static void print_reasons(const struct compare_result *result, struct str *out)
{
	const struct compare_finding *f = result->findings;
	const struct paired_quantiles *time =
		&f[f[METRIC_UNDISTURBED].known ? METRIC_UNDISTURBED : METRIC_WALL].medians;
	double all = time->b - time->a, cpu = f[METRIC_CPU].medians.b - f[METRIC_CPU].medians.a;

	if (result->verdict == VERDICT_NO_DIFFERENCE || all == 0)
		return;
	if (f[METRIC_INSTRUCTIONS].decided)
		str_printf(out, "It executes %.2f%% %s instructions.\n",
			   fabs(f[METRIC_INSTRUCTIONS].shift.change) * 100,
			   f[METRIC_INSTRUCTIONS].shift.change > 0 ? "more" : "fewer");
	if (f[METRIC_IPC].decided)
		str_printf(out, "It executes %.2f instructions per cycle instead of %.2f%s.\n",
			   f[METRIC_IPC].medians.b, f[METRIC_IPC].medians.a,
			   f[METRIC_INSTRUCTIONS].decided ? "" : " for the same number of them");
	if (f[METRIC_CPU].decided && (cpu > 0) == (all > 0))
		str_printf(out,
			   "CPU time accounts for %.0f%% of the change (%.0f%% user, %.0f%% "
			   "system).\n",
			   cpu / all * 100,
			   (f[METRIC_USER].medians.b - f[METRIC_USER].medians.a) / all * 100,
			   (f[METRIC_SYS].medians.b - f[METRIC_SYS].medians.a) / all * 100);
	else if (result->look == LOOK_TYPICAL)
		str_puts(out, "CPU time does not account for it: the change is in waiting, or in "
			      "how parallel it is.\n");
	for (int m = METRIC_MAX_RSS; m <= METRIC_PREEMPTIONS; m++)
		if (f[m].decided && fabs(f[m].shift.change) > 0.01)
			str_printf(out, "%s: %+.1f%%.\n",
				   compare_metrics[m].title + strspn(compare_metrics[m].title, " "),
				   f[m].shift.change * 100);
}

int compare_print_text(const struct compare_result *result, bool color, struct str *out)
{
	struct table_style style = {.color = color};
	struct table *table;
	int r = metric_table(result, &table);

	if (r < 0)
		return r;
	print_side(&result->sides[0], out);
	print_side(&result->sides[1], out);
	str_printf(out, "%zu pairs of runs after %llu to warm up, order drawn with --seed %llu\n\n",
		   result->pairs.len, (unsigned long long)result->warmup,
		   (unsigned long long)result->seed);
	table_print_text(table, &style, out);
	table_free(table);
	str_putc(out, '\n');
	print_verdict(result, out);
	print_reasons(result, out);
	print_disturbance(result, out);
	if (!result->counters->usable)
		str_printf(out, "Instructions and cycles were not counted: %s.\n",
			   result->counters->reason);
	else if (!result->findings[METRIC_CYCLES].known)
		str_puts(out, "Instructions and cycles were not counted the whole time: counters "
			      "are short.\n");
	else if (result->counters->user_only)
		str_puts(out, "Instructions and cycles are of user mode alone: counting the "
			      "kernel's is not permitted.\n");
	return str_status(out);
}

int compare_print_csv(const struct compare_result *result, struct str *out)
{
	static const struct table_column columns[] = {
		{.key = "metric", .kind = CELL_TEXT},
		{.key = "a_median", .kind = CELL_DOUBLE},
		{.key = "a_ci_low", .kind = CELL_DOUBLE},
		{.key = "a_ci_high", .kind = CELL_DOUBLE},
		{.key = "b_median", .kind = CELL_DOUBLE},
		{.key = "b_ci_low", .kind = CELL_DOUBLE},
		{.key = "b_ci_high", .kind = CELL_DOUBLE},
		{.key = "change_share", .kind = CELL_DOUBLE},
		{.key = "change_low_share", .kind = CELL_DOUBLE},
		{.key = "change_high_share", .kind = CELL_DOUBLE},
		{.key = "p", .kind = CELL_DOUBLE},
		{.key = "verdict", .kind = CELL_TEXT},
	};
	struct table *table;
	int r = table_new(columns, ARRAY_LEN(columns), &table);

	if (r < 0)
		return r;
	for (int m = 0; m < METRIC_COUNT; m++) {
		const struct compare_finding *f = &result->findings[m];
		const struct paired_quantiles *p = &f->medians;
		const double values[] = {p->a,
					 p->a_ci.low,
					 p->a_ci.high,
					 p->b,
					 p->b_ci.low,
					 p->b_ci.high,
					 f->shift.change,
					 f->shift.ci.low,
					 f->shift.ci.high,
					 f->p};

		table_text(table, compare_metrics[m].key);
		for (size_t i = 0; i < ARRAY_LEN(values); i++)
			table_double(table, f->known ? values[i] : NAN);
		table_text(table, !f->known                 ? NULL
				  : !f->decided             ? "no_difference"
				  : m <= METRIC_UNDISTURBED ? (f->more ? "slower" : "faster")
							    : (f->more ? "more" : "less"));
	}
	r = table_status(table);
	table_print_csv(table, ',', out);
	table_free(table);
	return r < 0 ? r : str_status(out);
}

static void json_side(struct json *json, const char *key, const struct compare_side *side,
		      double median, const struct interval *ci)
{
	json_object(json, key);
	json_array(json, "command");
	for (int i = 0; i < side->argc; i++)
		json_text(json, NULL, side->argv[i]);
	json_end_array(json);
	json_double(json, "median_ns", median);
	json_double(json, "ci_low_ns", ci->low);
	json_double(json, "ci_high_ns", ci->high);
	json_end_object(json);
}

static void json_metrics(const struct compare_result *result, struct json *json)
{
	json_array(json, "metrics");
	for (int m = 0; m < METRIC_COUNT; m++) {
		const struct compare_finding *f = &result->findings[m];
		const struct paired_quantiles *p = &f->medians;
		double unknown = f->known ? 0 : NAN;

		json_object(json, NULL);
		json_text(json, "name", compare_metrics[m].key);
		json_double(json, "a", p->a + unknown);
		json_double(json, "b", p->b + unknown);
		json_double(json, "change_share", f->shift.change + unknown);
		json_double(json, "change_low_share", f->shift.ci.low + unknown);
		json_double(json, "change_high_share", f->shift.ci.high + unknown);
		json_double(json, "p", f->p);
		json_bool(json, "decided", f->decided);
		json_end_object(json);
	}
	json_end_array(json);
}

static const char *const look_names[LOOK_COUNT] = {"typical", "quiet"};

static const char *clock_name(const struct compare_result *result, enum compare_clock clock)
{
	return compare_metrics[clock == CLOCK_WALL ? METRIC_WALL : result->second].key;
}

static void json_clocks(const struct compare_result *result, struct json *json)
{
	json_array(json, "clocks");
	for (int i = 0; i < CLOCK_COUNT * LOOK_COUNT; i++) {
		enum compare_clock clock = (enum compare_clock)(i / LOOK_COUNT);
		const struct verdict_view *view = &result->clocks[clock][i % LOOK_COUNT];

		json_object(json, NULL);
		json_text(json, "clock", clock_name(result, clock));
		json_text(json, "look", look_names[i % LOOK_COUNT]);
		json_double(json, "change_share", view->change);
		json_double(json, "change_low_share", view->ci.low);
		json_double(json, "change_high_share", view->ci.high);
		json_double(json, "p", view->p);
		json_bool(json, "decided", view->decided);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_run(struct json *json, const char *key, const struct compare_sample *sample)
{
	json_object(json, key);
	for (int m = 0; m < METRIC_COUNT; m++)
		json_double(json, compare_metrics[m].key, sample->values[m]);
	json_end_object(json);
}

void compare_print_json(const struct compare_result *result, struct json *json)
{
	static const char *const verdicts[] = {"no_difference", "faster", "slower"};
	const struct verdict_view *answer = compare_answer(result);
	const struct paired_quantiles *m = &result->findings[METRIC_WALL].medians;

	json_side(json, "a", &result->sides[0], m->a, &m->a_ci);
	json_side(json, "b", &result->sides[1], m->b, &m->b_ci);
	json_double(json, "change_share", answer->change);
	json_double(json, "change_low_share", answer->ci.low);
	json_double(json, "change_high_share", answer->ci.high);
	json_text(json, "verdict", verdicts[result->verdict]);
	json_double(json, "p", answer->p);
	json_text(json, "clock", clock_name(result, result->clock));
	json_text(json, "look", look_names[result->look]);
	json_double(json, "smallest_share", result->smallest);
	json_u64(json, "pairs", result->pairs.len);
	json_double(json, "level", result->alpha);
	json_u64(json, "looks", result->looks);
	json_double(json, "steal_share", result->steal_share);
	json_clocks(result, json);
	json_u64(json, "warmup_pairs", result->warmup);
	json_u64(json, "seed", result->seed);
	json_double(json, "interval_level", COMPARE_LEVEL);
	json_double(json, "max_regression_share", result->max_regression);
	if (isnan(result->max_regression))
		json_null(json, "regression");
	else
		json_bool(json, "regression", result->regression);
	json_text(json, "counters_reason",
		  result->counters->usable ? NULL : result->counters->reason);
	json_bool(json, "counters_user_only", result->counters->user_only);
	json_metrics(result, json);
	json_array(json, "runs");
	for (size_t i = 0; i < result->pairs.len; i++) {
		json_object(json, NULL);
		json_text(json, "first", result->pairs.data[i].b_first ? "b" : "a");
		json_run(json, "a", &result->pairs.data[i].a);
		json_run(json, "b", &result->pairs.data[i].b);
		json_end_object(json);
	}
	json_end_array(json);
}
