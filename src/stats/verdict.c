/*
 * Outcomes of the coins are bit sets: a set bit swaps the runs of that pair. Outcome 0 is the one
 * drawn, all bits clear. A first, small sample of outcomes ends the test when nothing is near; that
 * cannot raise the level, since it only ever ends without a finding.
 */
#include "stats/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "stats/paired.h"
#include "stats/rng.h"
#include "stats/summary.h"

#define OUTCOMES_FIRST 100
#define OUTCOMES       4000
#define OUTCOMES_LEAST 2000               /* however many pairs */
#define WORK           UINT64_C(50000000) /* outcomes times pairs */
#define EXHAUSTIVE     14   /* pairs: 2^13 outcomes, since swapping all changes but the sign */
#define NOT_NEAR       0.05 /* p above which the first sample ends it */
#define ROUNDS         1000 /* resamples: the ends of a 95 % interval then rest on 25 each */
#define STATISTICS     ((size_t)VERDICT_CLOCKS_MAX * LOOK_COUNT)

struct run {
	double log_time;
	uint32_t pair;
	bool is_b;
};

struct prepared {
	double *scores;     /* by pair: positive where b was slower */
	struct run *sorted; /* all runs, the fastest first */
};

struct outcomes {
	double *sizes[STATISTICS];  /* |statistic| by outcome */
	double *sorted[STATISTICS]; /* the same, ascending */
	double *smallest;           /* the smallest p of any statistic, by outcome; ascending */
};

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->log_time != y->log_time)
		return x->log_time < y->log_time ? -1 : 1;
	return x->pair < y->pair ? -1 : x->pair > y->pair;
}

/* Whole numbers add up the same in any order, so that equal sums are equal. */
static void make_whole(double *scores, size_t count)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		most = fmax(most, fabs(scores[i]));
	for (size_t i = 0; i < count && most > 0; i++)
		scores[i] = rint(scores[i] / most * 0x1p20);
}

static int prepare(const struct verdict_clock *clock, size_t pairs, struct prepared *ret)
{
	int r;

	ret->scores = calloc(pairs, sizeof(*ret->scores));
	ret->sorted = calloc(2 * pairs, sizeof(*ret->sorted));
	if (!ret->scores || !ret->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < pairs; i++) {
		double a = log(clock->a[i]), b = log(clock->b[i]);

		ret->scores[i] = b - a;
		ret->sorted[2 * i] = (struct run){a, (uint32_t)i, false};
		ret->sorted[2 * i + 1] = (struct run){b, (uint32_t)i, true};
	}
	qsort(ret->sorted, 2 * pairs, sizeof(*ret->sorted), compare_runs);
	r = paired_scores(ret->scores, pairs);
	if (r == 0)
		make_whole(ret->scores, pairs);
	return r;
}

static bool swapped(const uint64_t *outcome, size_t pair)
{
	return outcome[pair / 64] >> (pair % 64) & 1;
}

static double typical(const struct prepared *p, size_t pairs, const uint64_t *outcome)
{
	double sum = 0;

	for (size_t i = 0; i < pairs; i++)
		sum += swapped(outcome, i) ? -p->scores[i] : p->scores[i];
	return fabs(sum);
}

/* The difference of the two sides' quantiles: one walk over all runs from the fastest on. */
static double quiet(const struct prepared *p, size_t pairs, const uint64_t *outcome)
{
	double at = VERDICT_QUIET * (double)(pairs - 1), figure[2] = {0};
	size_t lower = (size_t)at, seen[2] = {0}, done = 0;
	double share = at - (double)lower;

	for (size_t i = 0; i < 2 * pairs && done < 2; i++) {
		const struct run *run = &p->sorted[i];
		unsigned side = run->is_b ^ swapped(outcome, run->pair);
		size_t have = seen[side]++;

		if (have == lower)
			figure[side] += (1 - share) * run->log_time;
		if (have == lower + 1)
			figure[side] += share * run->log_time;
		done += have == MIN(lower + 1, pairs - 1);
	}
	return fabs(figure[1] - figure[0]);
}

static void next_outcome(uint64_t *outcome, size_t pairs, size_t number, bool all, struct rng *rng)
{
	if (all)
		outcome[0] = number;
	else
		for (size_t i = 0; i < (pairs + 63) / 64; i++)
			outcome[i] = number == 0 ? 0 : rng_next(rng);
}

/* The share of outcomes of a statistic that are at least as far out as `size`. */
static double share_beyond(const double *sorted, size_t count, double size)
{
	size_t nearer = partition_point(count, at, sorted[at] < size);

	return (double)(count - nearer) / (double)count;
}

/* p[]: of each statistic of the drawn outcome, adjusted for there being several. */
static void adjusted(struct outcomes *o, size_t statistics, size_t count, double *p)
{
	double own[STATISTICS];
	size_t below;

	for (size_t k = 0; k < statistics; k++) {
		memcpy(o->sorted[k], o->sizes[k], count * sizeof(double));
		stats_sort(o->sorted[k], count);
		own[k] = share_beyond(o->sorted[k], count, o->sizes[k][0]);
	}
	for (size_t n = 0; n < count; n++) {
		o->smallest[n] = 1;
		for (size_t k = 0; k < statistics; k++)
			o->smallest[n] = fmin(o->smallest[n],
					      share_beyond(o->sorted[k], count, o->sizes[k][n]));
	}
	for (size_t k = 0; k < statistics; k++) {
		below = 0;
		for (size_t n = 0; n < count; n++)
			below += o->smallest[n] <= own[k];
		p[k] = (double)below / (double)count;
	}
}

static int try_outcomes(const struct prepared *prepared, size_t clocks, size_t pairs, size_t count,
			bool all, uint64_t seed, double *p)
{
	size_t statistics = clocks * LOOK_COUNT;
	CLEANUP_FREE double *memory = calloc(count * (2 * statistics + 1), sizeof(*memory));
	CLEANUP_FREE uint64_t *outcome = calloc((pairs + 63) / 64, sizeof(*outcome));
	struct rng rng = rng_seed(seed);
	struct outcomes o;

	if (!memory || !outcome)
		return -ENOMEM;
	o.smallest = memory;
	for (size_t k = 0; k < statistics; k++) {
		o.sizes[k] = memory + count * (1 + k);
		o.sorted[k] = memory + count * (1 + statistics + k);
	}
	for (size_t n = 0; n < count; n++) {
		next_outcome(outcome, pairs, n, all, &rng);
		for (size_t c = 0; c < clocks; c++) {
			o.sizes[c * LOOK_COUNT + LOOK_TYPICAL][n] =
				typical(&prepared[c], pairs, outcome);
			o.sizes[c * LOOK_COUNT + LOOK_QUIET][n] =
				quiet(&prepared[c], pairs, outcome);
		}
	}
	adjusted(&o, statistics, count, p);
	return 0;
}

static bool near(const double *p, size_t statistics)
{
	for (size_t k = 0; k < statistics; k++)
		if (p[k] <= NOT_NEAR)
			return true;
	return false;
}

int verdict_test(struct verdict_clock *clocks, size_t clock_count, size_t pairs, uint64_t seed)
{
	struct prepared prepared[VERDICT_CLOCKS_MAX] = {0};
	size_t most = pairs ? MAX(WORK / pairs, (uint64_t)OUTCOMES_LEAST) : 0;
	bool all = pairs <= EXHAUSTIVE;
	size_t count = all && pairs ? (size_t)1 << (pairs - 1) : MIN((size_t)OUTCOMES, most);
	double p[STATISTICS];
	int r = 0;

	if (pairs == 0 || pairs > UINT32_MAX / 2 || clock_count == 0 ||
	    clock_count > VERDICT_CLOCKS_MAX)
		return -EINVAL;
	for (size_t c = 0; c < clock_count && r == 0; c++)
		r = prepare(&clocks[c], pairs, &prepared[c]);
	if (r == 0 && count > OUTCOMES_FIRST)
		r = try_outcomes(prepared, clock_count, pairs, OUTCOMES_FIRST, false, seed, p);
	if (r == 0 && (count <= OUTCOMES_FIRST || near(p, clock_count * LOOK_COUNT)))
		r = try_outcomes(prepared, clock_count, pairs, count, all, seed + 1, p);
	for (size_t k = 0; r == 0 && k < clock_count * LOOK_COUNT; k++)
		clocks[k / LOOK_COUNT].views[k % LOOK_COUNT] = (struct verdict_view){.p = p[k]};
	for (size_t c = 0; c < clock_count; c++) {
		free(prepared[c].scores);
		free(prepared[c].sorted);
	}
	return r;
}

int verdict_measure(struct verdict_clock *clocks, size_t clock_count, size_t pairs, double level,
		    double alpha, uint64_t seed)
{
	for (size_t c = 0; c < clock_count; c++) {
		struct verdict_clock *clock = &clocks[c];
		struct paired_quantiles fast;
		struct paired_shift shift;
		int r = paired_shift(clock->a, clock->b, pairs, level, &shift);

		if (r == 0)
			r = paired_quantiles(clock->a, clock->b, pairs, VERDICT_QUIET, level,
					     ROUNDS, seed, &fast);
		if (r < 0)
			return r;
		for (int k = 0; k < LOOK_COUNT; k++) {
			struct verdict_view *view = &clock->views[k];

			view->change = k == LOOK_TYPICAL ? shift.change : fast.change;
			view->ci = k == LOOK_TYPICAL ? shift.ci : fast.change_ci;
			view->stderr_ = k == LOOK_TYPICAL ? shift.stderr_ : fast.change_stderr;
			view->decided = view->p < alpha && (view->ci.low > 0 || view->ci.high < 0);
		}
	}
	return 0;
}

/* Several looks share the level: as if there were two independent ones. */
double verdict_smallest(const struct verdict_view *view, double alpha)
{
	double factor = stats_t_quantile(1 - alpha / 2, 1e6) + stats_t_quantile(0.6, 1e6);

	return expm1(view->stderr_ * factor);
}
