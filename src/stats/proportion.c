#include "stats/proportion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct test_result proportion_test(double a_hits, double a_draws, double b_hits, double b_draws)
{
	struct test_result r = {NAN, NAN, NAN};
	double pooled, delta, correction, error;

	if (!(a_draws > 0 && b_draws > 0 && a_hits >= 0 && b_hits >= 0 && a_hits <= a_draws &&
	      b_hits <= b_draws))
		return r;
	pooled = (a_hits + b_hits) / (a_draws + b_draws);
	delta = b_hits / b_draws - a_hits / a_draws;
	error = sqrt(pooled * (1 - pooled) * (1 / a_draws + 1 / b_draws));
	if (!(error > 0)) {
		r.statistic = 0;
		r.p = 1;
		return r;
	}
	correction = fmin(0.5 * (1 / a_draws + 1 / b_draws), fabs(delta));
	r.statistic = copysign((fabs(delta) - correction) / error, delta);
	r.p = erfc(fabs(r.statistic) / M_SQRT2);
	return r;
}

static int order_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int false_discovery_select(const double *p, size_t count, double level, bool *ret_selected)
{
	double *sorted = malloc((count + 1) * sizeof(*sorted)), limit = -1;
	size_t known = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!isnan(p[i]))
			sorted[known++] = p[i];
	if (known > 1)
		qsort(sorted, known, sizeof(*sorted), order_doubles);
	for (size_t i = 0; i < known; i++)
		if (sorted[i] <= level * (double)(i + 1) / (double)known)
			limit = sorted[i];
	for (size_t i = 0; i < count; i++)
		ret_selected[i] = !isnan(p[i]) && p[i] <= limit;
	free(sorted);
	return 0;
}
