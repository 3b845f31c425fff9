/*
 * What a comparison found. Two clocks are asked for the verdict, wall time first. The second is
 * wall time less waiting for a CPU, where the kernel tells it of the whole command; else CPU time,
 * which is named but makes no verdict on time: a program that does more in parallel takes more of
 * it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "cmd/compare.h"

#define ROUNDS 2000 /* resamples: the ends of a 95 % interval then rest on 50 figures each */

/* Fills a[] and b[]; false when some run did not measure it. */
static bool columns(const struct compare_result *result, enum compare_metric metric, double *a,
		    double *b)
{
	bool known = true;

	for (size_t i = 0; i < result->pairs.len; i++) {
		a[i] = result->pairs.data[i].a.values[metric];
		b[i] = result->pairs.data[i].b.values[metric];
		known &= !isnan(a[i]) && !isnan(b[i]);
	}
	return known;
}

static bool all_positive(const double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(values[i] > 0))
			return false;
	return true;
}

/* The second clock: 0 when none is known. columns: a and b of it. */
static bool second_clock(struct compare_result *result, double *a, double *b)
{
	static const enum compare_metric choices[] = {METRIC_UNDISTURBED, METRIC_CPU};
	size_t n = result->pairs.len;

	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		result->second = choices[i];
		if (columns(result, choices[i], a, b) && all_positive(a, n) && all_positive(b, n))
			return true;
	}
	return false;
}

static bool is_time(const struct compare_result *result, int clock)
{
	return clock == CLOCK_WALL || result->second == METRIC_UNDISTURBED;
}

/* The first decided view of a clock that measures time; else the most precise of those. */
static void choose_answer(struct compare_result *result)
{
	bool decided = false;
	double best = INFINITY;

	result->clock = CLOCK_WALL;
	result->look = LOOK_TYPICAL;
	for (int c = 0; c < CLOCK_COUNT && !decided; c++)
		for (int k = 0; k < LOOK_COUNT && !decided; k++) {
			const struct verdict_view *view = &result->clocks[c][k];

			if (!is_time(result, c) || !(view->decided || view->stderr_ < best))
				continue;
			decided = view->decided;
			best = view->stderr_;
			result->clock = (enum compare_clock)c;
			result->look = (enum verdict_look)k;
		}
}

int compare_decide(struct compare_result *result)
{
	size_t n = result->pairs.len;
	CLEANUP_FREE double *memory = calloc(n, 2 * CLOCK_COUNT * sizeof(*memory));
	struct verdict_clock clocks[CLOCK_COUNT] = {{.a = memory, .b = memory + n},
						    {.a = memory + 2 * n, .b = memory + 3 * n}};
	const struct verdict_view *answer;
	size_t count = 1;
	int r;

	if (!memory)
		return -ENOMEM;
	columns(result, METRIC_WALL, memory, memory + n);
	count += second_clock(result, memory + 2 * n, memory + 3 * n);
	r = verdict_test(clocks, count, n, result->seed);
	if (r == 0)
		r = verdict_measure(clocks, count, n, COMPARE_LEVEL, result->alpha, result->seed);
	if (r < 0)
		return r;
	for (size_t c = 0; c < CLOCK_COUNT; c++)
		for (int k = 0; k < LOOK_COUNT; k++)
			result->clocks[c][k] = c < count ? clocks[c].views[k]
							 : (struct verdict_view){
								   .p = NAN,
								   .change = NAN,
								   .ci = {NAN, NAN},
								   .stderr_ = NAN,
							   };
	choose_answer(result);
	answer = compare_answer(result);
	result->verdict = !answer->decided     ? VERDICT_NO_DIFFERENCE
			  : answer->change > 0 ? VERDICT_SLOWER
					       : VERDICT_FASTER;
	result->smallest = n < COMPARE_PAIRS_MIN ? NAN : verdict_smallest(answer, result->alpha);
	result->regression =
		result->verdict == VERDICT_SLOWER && answer->change > result->max_regression;
	return 0;
}

bool compare_cpu_alone(const struct compare_result *result)
{
	const struct verdict_view *views = result->clocks[CLOCK_SECOND];

	return result->verdict == VERDICT_NO_DIFFERENCE && result->second == METRIC_CPU &&
	       (views[LOOK_TYPICAL].decided || views[LOOK_QUIET].decided);
}

static int evaluate_metric(const struct compare_result *result, enum compare_metric metric,
			   struct compare_finding *ret)
{
	size_t n = result->pairs.len;
	CLEANUP_FREE double *memory = calloc(n, 2 * sizeof(*memory));
	double *a = memory, *b = memory + n;
	struct test_result test;
	int r;

	*ret = (struct compare_finding){.p = NAN};
	if (!memory)
		return -ENOMEM;
	ret->known = columns(result, metric, a, b);
	if (!ret->known)
		return 0;
	r = paired_quantiles(a, b, n, 0.5, COMPARE_LEVEL, ROUNDS, result->seed, &ret->medians);
	if (r == 0)
		r = paired_shift(a, b, n, COMPARE_LEVEL, &ret->shift);
	if (r == 0)
		r = signed_rank_test(a, b, n, &test);
	if (r < 0)
		return r;
	ret->p = test.p;
	ret->more = test.probability > 0.5;
	ret->decided = test.p < COMPARE_P;
	/* Where some run measured 0 there is no ratio, and the test speaks alone. */
	if (!isnan(ret->shift.change))
		ret->decided &= ret->shift.ci.low > 0 || ret->shift.ci.high < 0;
	return 0;
}

/* The clocks' rows say what the clocks told, which answered together. */
static void adopt_clock(struct compare_result *result, enum compare_metric metric,
			enum compare_clock clock)
{
	const struct verdict_view *views = result->clocks[clock];
	const struct verdict_view *view =
		&views[!views[LOOK_TYPICAL].decided && views[LOOK_QUIET].decided];
	struct compare_finding *finding = &result->findings[metric];

	if (isnan(view->p))
		return;
	finding->decided = view->decided;
	finding->more = view->change > 0;
	finding->p = view->p;
}

int compare_evaluate(struct compare_result *result)
{
	for (int m = 0; m < METRIC_COUNT; m++) {
		int r = evaluate_metric(result, (enum compare_metric)m, &result->findings[m]);

		if (r < 0)
			return r;
	}
	adopt_clock(result, METRIC_WALL, CLOCK_WALL);
	adopt_clock(result, result->second, CLOCK_SECOND);
	return 0;
}
