#include "stats/ratio.h"

#include <math.h>
#include <stdbool.h>

#include "stats/summary.h"

#define NORMAL_95 1.959963984540054

struct sums {
	double x, a, residual2, difference2, rate2, step2, steps_weight;
	size_t n;
};

static void add_slice(struct sums *s, double x, double a, double ratio, const double previous[2],
		      bool first)
{
	double residual = x - ratio * a, rate = x / a - ratio,
	       weight = first ? 0 : (a + previous[1]) / 2;

	s->residual2 += residual * residual;
	s->rate2 += a * rate * rate;
	if (!first) {
		double before = previous[0] - ratio * previous[1],
		       step = x / a - previous[0] / previous[1];

		s->difference2 += (residual - before) * (residual - before);
		s->step2 += weight * step * step;
		s->steps_weight += weight;
	}
}

static struct sums sum_slices(const double *x, const double *a, size_t count)
{
	struct sums s = {0};
	double previous[2] = {0, 1};
	bool first = true;

	for (size_t i = 0; i < count; i++) {
		if (!(a[i] > 0))
			continue;
		s.x += x[i];
		s.a += a[i];
		s.n++;
	}
	for (size_t i = 0; i < count && s.a > 0; i++) {
		if (!(a[i] > 0))
			continue;
		add_slice(&s, x[i], a[i], s.x / s.a, previous, first);
		previous[0] = x[i];
		previous[1] = a[i];
		first = false;
	}
	return s;
}

static struct ratio ratio_from(const struct sums *s, double variance)
{
	struct ratio r = {NAN, NAN, s->n, NAN, NAN};
	double rate_variance;

	if (!(s->a > 0))
		return r;
	r.value = s->x / s->a;
	r.stderr_ = sqrt(variance) / s->a;
	if (s->n < 2)
		return r;
	rate_variance = s->rate2 / s->a;
	if (r.value > 0)
		r.spread = sqrt(rate_variance) / r.value;
	if (rate_variance > 0 && s->steps_weight > 0)
		r.neumann = s->step2 / s->steps_weight / rate_variance;
	return r;
}

struct ratio ratio_of_slices(const double *x, const double *a, size_t count)
{
	struct sums s = sum_slices(x, a, count);
	double n = (double)s.n;

	return ratio_from(&s, s.n < 3 ? NAN : n / (2 * (n - 1)) * s.difference2);
}

struct ratio ratio_of_runs(const double *x, const double *a, size_t count)
{
	struct sums s = sum_slices(x, a, count);
	double n = (double)s.n;

	return ratio_from(&s, s.n < 2 ? NAN : n / (n - 1) * s.residual2);
}

struct estimate ratio_total(const struct ratio *ratio, double seen_anchor, double total_anchor)
{
	double unseen = total_anchor > seen_anchor ? 1 - seen_anchor / total_anchor : 0;
	struct estimate e = {total_anchor * ratio->value, NAN};

	if (ratio->slices >= 2)
		e.stderr_ = total_anchor * ratio->stderr_ * sqrt(unseen) *
			    stats_t_quantile(0.95, (double)(ratio->slices - 1)) / NORMAL_95;
	return e;
}
