/*
 * Two-sample tests: is B different from A? Both are two-sided.
 *
 * welch_test() compares means without assuming equal variances (Welch 1947, Satterthwaite's degrees
 * of freedom). mann_whitney_test() compares ranks and so does not care for outliers or the shape:
 * exact for small samples without ties (both counts <= 20), else the normal approximation with tie
 * and continuity corrections (the same p as scipy.stats.mannwhitneyu).
 */
#pragma once

#include <stddef.h>

struct test_result {
	double statistic;   /* t of Welch; U of the first sample for Mann-Whitney */
	double df;          /* Welch only, else NaN */
	double p;           /* two-sided; NaN when the samples are too small to say anything */
	double probability; /* Mann-Whitney: P(b > a) + P(b = a) / 2, 0.5 is no effect; Welch: NaN
			     */
};

/* Needs two values on each side; two samples without any variance give p 1 when equal, else 0. */
struct test_result welch_test(const double *a, size_t a_count, const double *b, size_t b_count);
/* 0, -EINVAL for an empty sample, -ENOMEM. */
int mann_whitney_test(const double *a, size_t a_count, const double *b, size_t b_count,
		      struct test_result *ret);
