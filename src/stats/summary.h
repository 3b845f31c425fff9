/*
 * Descriptive statistics of a sample. Functions that need an order demand a sorted
 * array, as their names say. An empty sample, or one too small for the figure,
 * gives NaN: unknown is never 0.
 */
#pragma once

#include <stddef.h>

double stats_mean(const double *values, size_t count);
/* Two passes, so that a large common offset does not eat the digits. NaN below two values. */
double stats_variance(const double *values, size_t count);
/* Standard error of the mean: stddev / sqrt(count). */
double stats_stderr(const double *values, size_t count);

void stats_sort(double *values, size_t count);
/* The quantile q in [0, 1] of a sorted array, linear between neighbours (Hyndman and Fan's type 7,
 * what R and numpy do by default). */
double stats_quantile_sorted(const double *sorted, size_t count, double q);

/* Distribution functions that tests and intervals need. */
double stats_normal_cdf(double z);
/* P(T <= t) of Student's t with df > 0 degrees of freedom (df need not be whole). */
double stats_t_cdf(double t, double df);
/* The two-sided multiplier: P(|T| <= x) = level. */
double stats_t_quantile(double level, double df);
