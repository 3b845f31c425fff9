/*
 * Descriptive statistics, and the normal and Student distributions. The incomplete beta function is
 * evaluated by its continued fraction (Abramowitz and Stegun 26.5.8) with the modified Lentz
 * method, which converges in a few dozen steps on the side of the mean that is chosen here.
 */
#include "stats/summary.h"

#include <math.h>
#include <stdlib.h>

double stats_mean(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return count ? sum / (double)count : NAN;
}

double stats_variance(const double *values, size_t count)
{
	double mean = stats_mean(values, count), sum = 0;

	if (count < 2)
		return NAN;
	for (size_t i = 0; i < count; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sum / (double)(count - 1);
}

double stats_stderr(const double *values, size_t count)
{
	return sqrt(stats_variance(values, count) / (double)count);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void stats_sort(double *values, size_t count)
{
	if (count > 1)
		qsort(values, count, sizeof(*values), compare_doubles);
}

double stats_quantile_sorted(const double *sorted, size_t count, double q)
{
	double at = q * (double)(count ? count - 1 : 0);
	size_t i = (size_t)at;

	if (count == 0)
		return NAN;
	if (i + 1 >= count)
		return sorted[count - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

double stats_normal_cdf(double z)
{
	return 0.5 * erfc(-z * M_SQRT1_2);
}

static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int m = 1; m < 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		for (int half = 0; half < 2; half++) {
			double term = half ? odd : even;

			d = 1 + term * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + term / c;
			c = fabs(c) < tiny ? tiny : c;
			h *= c * d;
		}
		if (fabs(c * d - 1) < 1e-15)
			break;
	}
	return h;
}

/* Regularized incomplete beta function I_x(a, b). */
static double beta_regularized(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stats_t_cdf(double t, double df)
{
	double tail;

	if (!(df > 0) || isnan(t))
		return NAN;
	tail = 0.5 * beta_regularized(df / 2, 0.5, df / (df + t * t));
	return t > 0 ? 1 - tail : tail;
}

double stats_t_quantile(double level, double df)
{
	double low = 0, high = 1, want = (1 + level) / 2;

	if (!(df > 0) || !(level >= 0 && level < 1))
		return NAN;
	while (stats_t_cdf(high, df) < want && high < 1e12)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
		double middle = (low + high) / 2;

		if (stats_t_cdf(middle, df) < want)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}
