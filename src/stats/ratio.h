/*
 * The combined ratio estimator, with a variance from consecutive slices.
 *
 * In slice s something was seen x[s] times while an anchor (cycles, time, another event) advanced
 * by a[s]. The ratio is R = sum(x) / sum(a), never a mean of ratios (Cochran, Sampling Techniques,
 * 3rd ed., ch. 6: its bias is of order 1/n and a slice in which little was seen weighs little). The
 * residuals d[s] = x[s] - R a[s] sum to 0. Slices come in order of time and the work drifts, so
 * their variance is taken from successive differences (von Neumann 1941; Wolter, Introduction to
 * Variance Estimation, ch. 8, for systematic samples):
 *
 *	v = n / (2 (n - 1)) * sum (d[s] - d[s-1])^2,	se(R) = sqrt(v) / sum(a)
 *
 * which does not mistake a slow change that every slice covers evenly for sampling error.
 */
#pragma once

#include <stddef.h>

struct ratio {
	double value;   /* sum(x) / sum(a); NaN when the anchor never moved */
	double stderr_; /* of value; NaN below three slices that saw the anchor */
	size_t slices;  /* that saw the anchor */
	double spread;  /* coefficient of variation of x[s] / a[s], weighted by a[s]; NaN below two
			 */
	double neumann; /* mean squared successive difference of the rates over their variance: 2
			 * for independent slices, towards 0 for slow phases, towards 4 for
			 * alternation; NaN when the rates do not vary */
};

/* Slices without anchor (a[s] <= 0) are skipped. Not a random sample of independent runs: for those
 * see ratio_of_runs(). */
struct ratio ratio_of_slices(const double *x, const double *a, size_t count);

/* The same R for independent pairs (one per run): the usual variance n / (n - 1) * sum d^2. */
struct ratio ratio_of_runs(const double *x, const double *a, size_t count);

/*
 * An estimate of a total: x seen beside an anchor sum a, of an anchor total A: X = A R. With the
 * finite population correction: what was seen is not estimated, only the rest (A - a) is, so se(X)
 * = A se(R) sqrt(1 - a/A). Few slices: the error is widened by t(n-1)/1.96, so that two standard
 * errors mean 95 % whatever n was.
 */
struct estimate {
	double total, stderr_;
};
struct estimate ratio_total(const struct ratio *ratio, double seen_anchor, double total_anchor);
