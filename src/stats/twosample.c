#include "stats/twosample.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/util.h"
#include "stats/summary.h"

#define EXACT_MAX 20 /* values on each side up to which the exact distribution of U is counted */

struct test_result welch_test(const double *a, size_t a_count, const double *b, size_t b_count)
{
	struct test_result r = {NAN, NAN, NAN, NAN};
	double difference, va, vb;

	if (a_count < 2 || b_count < 2)
		return r;
	difference = stats_mean(a, a_count) - stats_mean(b, b_count);
	va = stats_variance(a, a_count) / (double)a_count;
	vb = stats_variance(b, b_count) / (double)b_count;
	if (!(va + vb > 0)) {
		r.p = difference == 0 ? 1 : 0;
		return r;
	}
	r.statistic = difference / sqrt(va + vb);
	r.df = (va + vb) * (va + vb) /
	       (va * va / (double)(a_count - 1) + vb * vb / (double)(b_count - 1));
	r.p = 2 * stats_t_cdf(-fabs(r.statistic), r.df);
	return r;
}

struct ranked {
	double value;
	bool first;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

/* Sum of the first sample's mid-ranks; *ret_ties gets the sum of t^3 - t over groups of equal
 * values. */
static double rank_sum(const struct ranked *all, size_t count, double *ret_ties)
{
	double sum = 0;

	*ret_ties = 0;
	for (size_t i = 0, end; i < count; i = end) {
		double tied, rank;

		for (end = i + 1; end < count && all[end].value == all[i].value; end++)
			;
		tied = (double)(end - i);
		rank = (double)i + (tied + 1) / 2;
		for (size_t j = i; j < end; j++)
			sum += all[j].first ? rank : 0;
		*ret_ties += tied * tied * tied - tied;
	}
	return sum;
}

/*
 * P(U <= u) for n and m values without ties. ways[j][k]: arrangements of i and j values whose U is
 * k, by the recurrence w(i,j,k) = w(i-1,j,k-j) + w(i,j-1,k) of Mann and Whitney (1947).
 */
static double exact_tail(size_t n, size_t m, size_t u)
{
	static const size_t top = EXACT_MAX * EXACT_MAX + 1;
	CLEANUP_FREE double *ways = calloc((EXACT_MAX + 1) * top, sizeof(*ways));
	double below = 0, all = 0;

	if (!ways)
		return NAN;
	for (size_t j = 0; j <= m; j++)
		ways[j * top] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			double *row = ways + j * top, *shorter = ways + (j - 1) * top;

			for (size_t k = i * j + 1; k-- > 0;)
				row[k] = (k >= j ? row[k - j] : 0) + shorter[k];
		}
	}
	for (size_t k = 0; k <= n * m; k++) {
		all += ways[m * top + k];
		below += k <= u ? ways[m * top + k] : 0;
	}
	return below / all;
}

int mann_whitney_test(const double *a, size_t a_count, const double *b, size_t b_count,
		      struct test_result *ret)
{
	size_t count = a_count + b_count;
	CLEANUP_FREE struct ranked *all = calloc(count ? count : 1, sizeof(*all));
	double n = (double)a_count, m = (double)b_count, ties, u, small, variance, z;
	struct test_result r = {NAN, NAN, NAN, NAN};

	if (a_count == 0 || b_count == 0)
		return -EINVAL;
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		all[i] = (struct ranked){i < a_count ? a[i] : b[i - a_count], i < a_count};
	qsort(all, count, sizeof(*all), compare_ranked);
	u = rank_sum(all, count, &ties) - n * (n + 1) / 2;
	small = MIN(u, n * m - u);
	r.statistic = u;
	r.probability = 1 - u / (n * m);
	variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)));
	if (ties == 0 && a_count <= EXACT_MAX && b_count <= EXACT_MAX) {
		r.p = fmin(1, 2 * exact_tail(a_count, b_count, (size_t)small));
	} else if (variance > 0) {
		z = (small + 0.5 - n * m / 2) / sqrt(variance);
		r.p = fmin(1, 2 * stats_normal_cdf(z));
	} else {
		r.p = 1; /* every value is the same */
	}
	*ret = r;
	return 0;
}
