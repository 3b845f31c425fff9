#include "stats/bootstrap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "stats/rng.h"
#include "stats/summary.h"

double bootstrap_median(double *scratch, size_t count)
{
	stats_sort(scratch, count);
	return stats_quantile_sorted(scratch, count, 0.5);
}

double bootstrap_mean(double *scratch, size_t count)
{
	return stats_mean(scratch, count);
}

static double resample(const double *values, size_t count, bootstrap_figure_fn figure,
		       struct rng *rng, double *scratch)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] = values[rng_below(rng, count)];
	return figure(scratch, count);
}

static struct interval middle_of(double *figures, size_t count, double level)
{
	stats_sort(figures, count);
	return (struct interval){
		.low = stats_quantile_sorted(figures, count, (1 - level) / 2),
		.high = stats_quantile_sorted(figures, count, (1 + level) / 2),
	};
}

int bootstrap_interval(const double *values, size_t count, bootstrap_figure_fn figure, double level,
		       unsigned rounds, uint64_t seed, struct interval *ret)
{
	CLEANUP_FREE double *scratch = calloc(count ? count : 1, sizeof(*scratch));
	CLEANUP_FREE double *figures = calloc(rounds ? rounds : 1, sizeof(*figures));
	struct rng rng = rng_seed(seed);

	if (count == 0 || rounds == 0)
		return -EINVAL;
	if (!scratch || !figures)
		return -ENOMEM;
	for (unsigned i = 0; i < rounds; i++)
		figures[i] = resample(values, count, figure, &rng, scratch);
	*ret = middle_of(figures, rounds, level);
	return 0;
}

int bootstrap_change(const double *a, size_t a_count, const double *b, size_t b_count,
		     bootstrap_figure_fn figure, double level, unsigned rounds, uint64_t seed,
		     struct interval *ret_change, struct interval *ret_difference)
{
	CLEANUP_FREE double *scratch =
		calloc(MAX(MAX(a_count, b_count), (size_t)1), sizeof(*scratch));
	CLEANUP_FREE double *changes = calloc(rounds ? rounds : 1, sizeof(*changes));
	CLEANUP_FREE double *differences = calloc(rounds ? rounds : 1, sizeof(*differences));
	struct rng rng = rng_seed(seed);
	size_t kept = 0;

	if (a_count == 0 || b_count == 0 || rounds == 0)
		return -EINVAL;
	if (!scratch || !changes || !differences)
		return -ENOMEM;
	for (unsigned i = 0; i < rounds; i++) {
		double from = resample(a, a_count, figure, &rng, scratch);
		double to = resample(b, b_count, figure, &rng, scratch);

		differences[i] = to - from;
		if (from != 0)
			changes[kept++] = to / from - 1;
	}
	*ret_change = kept ? middle_of(changes, kept, level) : (struct interval){NAN, NAN};
	if (ret_difference)
		*ret_difference = middle_of(differences, rounds, level);
	return 0;
}
