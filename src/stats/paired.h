/*
 * Paired samples: a[i] and b[i] were taken next to each other, so that what drifts (frequency,
 * temperature, neighbours) touches both and falls out of the difference.
 *
 * signed_rank_test() is Wilcoxon's (1945), two-sided on b[i] - a[i]: exact up to 60 pairs without
 * ties, else the normal approximation with tie and continuity corrections. Pairs that do not differ
 * are left out, as Wilcoxon did.
 *
 * paired_shift() is Huber's estimate (1964) of the log ratio: what a pair can add is bounded, by
 * the median of the pairs' own distances, so that pairs which a neighbour hit only once count as
 * little as a sign does. Its interval inverts the test of the same scores with all signs equally
 * likely, which assumes nothing of the distribution's tails.
 *
 * paired_quantiles() resamples pairs. Resamples are counted over ranks instead of being sorted: the
 * cost is rounds * count.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stats/result.h"

/* statistic: the sum of ranks of positive differences; p: NaN without any differing pair
 * and probability NaN then; else probability: the share of differing pairs with b > a.
 * 0, -EINVAL without pairs, -ENOMEM. */
int signed_rank_test(const double *a, const double *b, size_t count, struct test_result *ret);

/* Replaces each difference by its score: itself, but not above the median of the sizes; its sign
 * where that is 0. 0 or -ENOMEM. */
int paired_scores(double *differences, size_t count);

struct paired_shift {
	double change; /* of b against a: b / a - 1; NaN, as all, when some a or b is not above 0 */
	struct interval ci; /* of change; with 3 pairs or fewer all there is, less than 95 % */
	double stderr_;     /* of log(b / a), from the interval's width */
};

/* 0, -EINVAL without pairs, -ENOMEM. */
int paired_shift(const double *a, const double *b, size_t count, double level,
		 struct paired_shift *ret);

struct paired_quantiles {
	double a, b;   /* the quantile q of each */
	double change; /* b / a - 1; NaN, as its interval, when some resample's a is 0 */
	struct interval a_ci, b_ci, change_ci;
	double change_stderr; /* standard deviation of the change over the resamples */
};

/* 0, -EINVAL without pairs or rounds, -ENOMEM. One pair gives points and stderr 0. */
int paired_quantiles(const double *a, const double *b, size_t count, double q, double level,
		     unsigned rounds, uint64_t seed, struct paired_quantiles *ret);
