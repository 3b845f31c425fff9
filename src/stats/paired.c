/*
 * The exact distribution of the signed-rank sum W of n pairs: each rank 1..n is positive with
 * probability 1/2, so the number of subsets with sum w follows from adding one rank after the
 * other.
 */
#include "stats/paired.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "stats/rng.h"
#include "stats/summary.h"

#define EXACT_MAX 60

struct difference {
	double size; /* absolute */
	bool positive;
};

static int compare_sizes(const void *a, const void *b)
{
	const struct difference *x = a, *y = b;

	return x->size < y->size ? -1 : x->size > y->size;
}

/* P(W <= w) for n pairs without ties; sums[] has n(n+1)/2 + 1 places. */
static double exact_cdf(size_t n, size_t w, double *sums)
{
	size_t top = 0;
	double below = 0;

	sums[0] = 1;
	for (size_t rank = 1; rank <= n; rank++) {
		for (size_t s = top + 1; s <= top + rank; s++)
			sums[s] = 0;
		for (size_t s = top + rank; s >= rank; s--)
			sums[s] = (sums[s] + sums[s - rank]) / 2;
		for (size_t s = 0; s < rank; s++)
			sums[s] /= 2;
		top += rank;
	}
	for (size_t s = 0; s <= MIN(w, top); s++)
		below += sums[s];
	return below;
}

/* Sum of the ranks of positive differences; *ret_ties = sum of (t^3 - t) over groups of equals. */
static double positive_ranks(const struct difference *sorted, size_t n, double *ret_ties)
{
	double sum = 0, ties = 0;

	for (size_t i = 0, end; i < n; i = end) {
		double rank, t;

		for (end = i + 1; end < n && sorted[end].size == sorted[i].size; end++)
			;
		rank = (double)(i + 1 + end) / 2;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t k = i; k < end; k++)
			sum += sorted[k].positive ? rank : 0;
	}
	*ret_ties = ties;
	return sum;
}

static int signed_rank_p(double w, size_t n, double ties, double *ret_p)
{
	double dn = (double)n, mean = dn * (dn + 1) / 4, away = fabs(w - mean), variance;

	if (ties == 0 && n <= EXACT_MAX) {
		CLEANUP_FREE double *sums = malloc((n * (n + 1) / 2 + 1) * sizeof(*sums));

		if (!sums)
			return -ENOMEM;
		*ret_p = fmin(1, 2 * exact_cdf(n, (size_t)(mean - away + 0.25), sums));
		return 0;
	}
	variance = dn * (dn + 1) * (2 * dn + 1) / 24 - ties / 48;
	away = fmax(0, away - 0.5);
	*ret_p = variance > 0 ? fmin(1, 2 * stats_normal_cdf(-away / sqrt(variance))) : 1;
	return 0;
}

int signed_rank_test(const double *a, const double *b, size_t count, struct test_result *ret)
{
	CLEANUP_FREE struct difference *differences =
		calloc(count ? count : 1, sizeof(*differences));
	struct test_result result = {NAN, NAN, NAN};
	size_t n = 0, positive = 0;
	double ties;
	int r;

	if (count == 0)
		return -EINVAL;
	if (!differences)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		double d = b[i] - a[i];

		if (d == 0 || isnan(d))
			continue;
		differences[n++] = (struct difference){fabs(d), d > 0};
		positive += d > 0;
	}
	if (n > 0) {
		qsort(differences, n, sizeof(*differences), compare_sizes);
		result.statistic = positive_ranks(differences, n, &ties);
		result.probability = (double)positive / (double)n;
		r = signed_rank_p(result.statistic, n, ties, &result.p);
		if (r < 0)
			return r;
	}
	*ret = result;
	return 0;
}

/* The median of |sorted[i] - from|: a walk from there outwards. */
static double middle_distance(const double *sorted, size_t count, double from)
{
	size_t high = 0, low, left = (count + 1) / 2;
	double distance = 0;

	while (high < count && sorted[high] < from)
		high++;
	for (low = high; left > 0; left--) {
		double below = low > 0 ? from - sorted[low - 1] : INFINITY;
		double above = high < count ? sorted[high] - from : INFINITY;

		distance = fmin(below, above);
		if (below < above)
			low--;
		else
			high++;
	}
	return distance;
}

/* What one difference counts: it, but not more than the bound; where that is 0, its sign. */
static double score(double difference, double bound)
{
	if (bound > 0)
		return fmax(-bound, fmin(bound, difference));
	return (difference > 0) - (difference < 0);
}

int paired_scores(double *differences, size_t count)
{
	CLEANUP_FREE double *sorted = calloc(count ? count : 1, sizeof(*sorted));
	double bound;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, differences, count * sizeof(*sorted));
	stats_sort(sorted, count);
	bound = middle_distance(sorted, count, 0);
	for (size_t i = 0; i < count; i++)
		differences[i] = score(differences[i], bound);
	return 0;
}

/* The sum of scores about `from` in its standard deviations when all signs are equally likely. */
static double score_z(const double *sorted, size_t count, double from)
{
	double bound = middle_distance(sorted, count, from), sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++) {
		double s = score(sorted[i] - from, bound);

		sum += s;
		squares += s * s;
	}
	return squares > 0 ? sum / sqrt(squares) : 0;
}

/* Where z falls to `want` between the extremes; the extreme where it does not. */
static double where_z(const double *sorted, size_t count, double want)
{
	double low = sorted[0], high = sorted[count - 1];

	if (score_z(sorted, count, low) <= want)
		return low;
	for (int i = 0; i < 50 && low < high; i++) {
		double middle = low + (high - low) / 2;

		if (score_z(sorted, count, middle) > want)
			low = middle;
		else
			high = middle;
	}
	return high;
}

int paired_shift(const double *a, const double *b, size_t count, double level,
		 struct paired_shift *ret)
{
	CLEANUP_FREE double *logs = calloc(count ? count : 1, sizeof(*logs));
	double z = stats_t_quantile(level, 1e6), low, high;

	if (count == 0)
		return -EINVAL;
	if (!logs)
		return -ENOMEM;
	*ret = (struct paired_shift){NAN, {NAN, NAN}, NAN};
	for (size_t i = 0; i < count; i++) {
		if (!(a[i] > 0) || !(b[i] > 0))
			return 0;
		logs[i] = log(b[i] / a[i]);
	}
	stats_sort(logs, count);
	low = where_z(logs, count, z);
	high = where_z(logs, count, -z);
	*ret = (struct paired_shift){
		.change = expm1(where_z(logs, count, 0)),
		.ci = {expm1(low), expm1(high)},
		.stderr_ = (high - low) / 2 / z,
	};
	return 0;
}

struct ranked {
	double *sorted;
	uint32_t *rank;  /* of value i in sorted */
	uint32_t *drawn; /* by rank, of one resample */
};

struct order_entry {
	double value;
	uint32_t index;
};

static int compare_entries(const void *a, const void *b)
{
	const struct order_entry *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void ranked_fini(struct ranked *r)
{
	free(r->sorted);
	free(r->rank);
	free(r->drawn);
}

static int ranked_init(struct ranked *r, const double *values, size_t count)
{
	CLEANUP_FREE struct order_entry *entries = calloc(count, sizeof(*entries));

	r->sorted = calloc(count, sizeof(*r->sorted));
	r->rank = calloc(count, sizeof(*r->rank));
	r->drawn = calloc(count, sizeof(*r->drawn));
	if (!entries || !r->sorted || !r->rank || !r->drawn)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		entries[i] = (struct order_entry){values[i], (uint32_t)i};
	qsort(entries, count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < count; i++) {
		r->sorted[i] = entries[i].value;
		r->rank[entries[i].index] = (uint32_t)i;
	}
	return 0;
}

/* The quantile of the resample that drawn[] counts; clears the counts. */
static double drawn_quantile(struct ranked *r, size_t count, double q)
{
	double at = q * (double)(count - 1), low, high;
	size_t lower = (size_t)at, upper = MIN(lower + 1, count - 1), seen = 0, i = 0;

	for (; seen + r->drawn[i] <= lower; i++)
		seen += r->drawn[i];
	low = r->sorted[i];
	for (; seen + r->drawn[i] <= upper; i++)
		seen += r->drawn[i];
	high = r->sorted[i];
	memset(r->drawn, 0, count * sizeof(*r->drawn));
	return low + (high - low) * (at - (double)lower);
}

static struct interval middle(double *figures, size_t count, double level)
{
	if (count == 0)
		return (struct interval){NAN, NAN};
	stats_sort(figures, count);
	return (struct interval){stats_quantile_sorted(figures, count, (1 - level) / 2),
				 stats_quantile_sorted(figures, count, (1 + level) / 2)};
}

/* figures: of a, of b, and the changes, `rounds` each. */
static void resample(struct ranked samples[2], size_t count, double q, unsigned rounds,
		     uint64_t seed, double *figures)
{
	struct rng rng = rng_seed(seed);

	for (unsigned round = 0; round < rounds; round++) {
		double *of = figures + round;

		for (size_t i = 0; i < count; i++) {
			size_t at = rng_below(&rng, count);

			for (unsigned k = 0; k < 2; k++)
				samples[k].drawn[samples[k].rank[at]]++;
		}
		for (unsigned k = 0; k < 2; k++)
			of[(size_t)k * rounds] = drawn_quantile(&samples[k], count, q);
		of[2 * (size_t)rounds] = of[0] != 0 ? of[rounds] / of[0] - 1 : NAN;
	}
}

static bool all_known(const double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (isnan(values[i]))
			return false;
	return true;
}

int paired_quantiles(const double *a, const double *b, size_t count, double q, double level,
		     unsigned rounds, uint64_t seed, struct paired_quantiles *ret)
{
	struct paired_quantiles result = {
		.change = NAN, .change_ci = {NAN, NAN}, .change_stderr = NAN};
	struct ranked samples[2] = {0};
	double *figures = NULL, *changes;
	int r;

	if (count == 0 || rounds == 0 || count > UINT32_MAX)
		return -EINVAL;
	r = ranked_init(&samples[0], a, count);
	if (r == 0)
		r = ranked_init(&samples[1], b, count);
	if (r == 0) {
		figures = calloc(rounds, 3 * sizeof(*figures));
		r = figures ? 0 : -ENOMEM;
	}
	if (r < 0)
		goto out;
	resample(samples, count, q, rounds, seed, figures);
	result.a = stats_quantile_sorted(samples[0].sorted, count, q);
	result.b = stats_quantile_sorted(samples[1].sorted, count, q);
	changes = figures + 2 * (size_t)rounds;
	if (result.a != 0 && all_known(changes, rounds)) {
		result.change = result.b / result.a - 1;
		result.change_stderr = rounds > 1 ? sqrt(stats_variance(changes, rounds)) : NAN;
		result.change_ci = middle(changes, rounds, level);
	}
	result.a_ci = middle(figures, rounds, level);
	result.b_ci = middle(figures + rounds, rounds, level);
	*ret = result;
out:
	free(figures);
	for (unsigned k = 0; k < 2; k++)
		ranked_fini(&samples[k]);
	return r;
}
