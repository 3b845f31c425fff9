/*
 * Bootstrap confidence intervals (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13:
 * the percentile interval). Resampling is driven by a seed: the same data and seed give the same
 * interval.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct interval {
	double low, high;
};

/* A figure of one resample, for instance its median; scratch may be reordered. */
typedef double (*bootstrap_figure_fn)(double *scratch, size_t count);

double bootstrap_median(double *scratch, size_t count);
double bootstrap_mean(double *scratch, size_t count);

/* The interval that holds level (0.95) of the figures of `rounds` resamples. -EINVAL for an empty
 * sample or no rounds, -ENOMEM. One value gives a point: it knows nothing of spread, so callers ask
 * for more. */
int bootstrap_interval(const double *values, size_t count, bootstrap_figure_fn figure, double level,
		       unsigned rounds, uint64_t seed, struct interval *ret);

/*
 * The interval of figure(b) / figure(a) - 1, the relative change from a to b, both samples
 * resampled independently. Rounds whose figure(a) is 0 are left out. When ret_difference is not
 * NULL it gets the interval of figure(b) - figure(a) of the same rounds.
 */
int bootstrap_change(const double *a, size_t a_count, const double *b, size_t b_count,
		     bootstrap_figure_fn figure, double level, unsigned rounds, uint64_t seed,
		     struct interval *ret_change, struct interval *ret_difference);
