/*
 * Paired samples: a[i] and b[i] were taken next to each other, so that what drifts (frequency,
 * temperature, neighbours) touches both and falls out of the difference.
 *
 * signed_rank_test() is Wilcoxon's (1945), two-sided on b[i] - a[i]: exact up to 60 pairs without
 * ties, else the normal approximation with tie and continuity corrections. Pairs that do not differ
 * are left out, as Wilcoxon did.
 *
 * bootstrap_paired_medians() resamples pairs. The change is the median of the pairs' own changes,
 * not the ratio of the two medians: where a busy machine slows one pair in three, the others still
 * tell. Resamples are counted over ranks instead of being sorted: the cost is
 * rounds * count.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stats/bootstrap.h"
#include "stats/twosample.h"

/* statistic: the sum of ranks of positive differences; df: NaN; p: NaN without any differing pair
 * and probability NaN then; else probability: the share of differing pairs with b > a.
 * 0, -EINVAL without pairs, -ENOMEM. */
int signed_rank_test(const double *a, const double *b, size_t count, struct test_result *ret);

struct paired_medians {
	double a, b;   /* medians */
	double change; /* median of b[i] / a[i] - 1; NaN, as its interval, when some a is 0 */
	struct interval a_ci, b_ci, change_ci;
	double change_stderr; /* standard deviation of the change over the resamples */
};

/* 0, -EINVAL without pairs or rounds, -ENOMEM. One pair gives points and stderr 0. */
int bootstrap_paired_medians(const double *a, const double *b, size_t count, double level,
			     unsigned rounds, uint64_t seed, struct paired_medians *ret);
