#include "latency/run-diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "stats/proportion.h"

#define FALSE_DISCOVERY_LEVEL 0.05

static const double shares[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};

static double ratio_of(int64_t base, int64_t new)
{
	return base == LATENCY_UNKNOWN_NS || new == LATENCY_UNKNOWN_NS || base <= 0
		       ? NAN
		       : (double)new / (double)base;
}

static double quantile_p(const struct latency_series *base, const struct latency_series *new,
			 double share, int64_t base_ns)
{
	if (share >= 1 || base_ns < 0 || !base->distribution || !new->distribution)
		return NAN;
	/* a difference that the coarser source cannot resolve is none */
	uint64_t at = (uint64_t)base_ns + MAX(base->resolution_ns, new->resolution_ns) / 2;
	uint64_t base_above = histogram_count_above(&base->values, at) + base->above_last;
	uint64_t new_above = histogram_count_above(&new->values, at) + new->above_last;
	return proportion_test((double)base_above, (double)base->values.count, (double)new_above,
			       (double)new->values.count)
		.p;
}

static int add_rows(struct latency_diff *diff, int context, const struct latency_series *base,
		    const struct latency_series *new)
{
	if (!base->values.count && !new->values.count)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(shares); i++) {
		struct latency_diff_row row = {.context = context,
					       .share = shares[i],
					       .base_ns = LATENCY_UNKNOWN_NS,
					       .new_ns = LATENCY_UNKNOWN_NS,
					       .p = NAN};
		if (shares[i] < 1) {
			row.base_ns = latency_series_percentile(base, shares[i]);
			row.new_ns = latency_series_percentile(new, shares[i]);
			row.p = quantile_p(base, new, shares[i], row.base_ns);
		} else {
			if (base->values.count && base->has_max)
				row.base_ns = (int64_t)base->values.max;
			if (new->values.count &&new->has_max)
				row.new_ns = (int64_t) new->values.max;
		}
		row.ratio = ratio_of(row.base_ns, row.new_ns);
		if (vec_push(&diff->rows, row) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int total_gaps(const struct latency_run *run, struct latency_series *into)
{
	vec_for_each(&run->cpus, cpu) {
		int r = latency_series_merge(into, &cpu->gaps);
		if (r < 0)
			return r;
	}
	return 0;
}

static int diff_series(struct latency_diff *diff, const struct latency_run *base,
		       const struct latency_run *new)
{
	int r = 0;
	for (int context = 0; r == 0 && context <= LATENCY_CONTEXTS; context++) {
		struct latency_series a = {0}, b = {0};
		bool gaps = context == LATENCY_CONTEXTS;
		r = gaps ? total_gaps(base, &a)
			 : latency_run_total(base, (enum latency_context)context, &a);
		if (r == 0)
			r = gaps ? total_gaps(new, &b)
				 : latency_run_total(new, (enum latency_context)context, &b);
		if (r == 0)
			r = add_rows(diff, gaps ? -1 : context, &a, &b);
		latency_series_fini(&a);
		latency_series_fini(&b);
	}
	return r;
}

/* The same source under the same name: numbers of threads differ from run to run, those of
 * interrupts do not. */
static const struct noise_source *find_source(const struct latency_run *in,
					      const struct latency_run *of,
					      const struct noise_source *source)
{
	const char *name = strtab_text(&of->names, source->name);
	const char *function = strtab_text(&of->names, source->function);
	vec_for_each(&in->sources, other) {
		if (other->class == source->class &&
		    strcmp(strtab_text(&in->names, other->name), name) == 0 &&
		    strcmp(strtab_text(&in->names, other->function), function) == 0 &&
		    (source->class == NOISE_THREAD || other->number == source->number))
			return other;
	}
	return NULL;
}

static double measured_seconds(const struct latency_run *run)
{
	return (double)run->duration_ns / 1e9;
}

static int add_source(struct latency_diff *diff, const struct latency_run *base,
		      const struct latency_run *new, const struct noise_source *a,
		      const struct noise_source *b)
{
	const struct latency_run *named = b ? new : base;
	const struct noise_source *source = b ? b : a;
	double base_seconds = measured_seconds(base), new_seconds = measured_seconds(new);
	uint64_t a_count = a ? a->count : 0, b_count = b ? b->count : 0;
	struct latency_diff_source row = {
		.class = source->class,
		.number = source->number,
		.name = strtab_text(&named->names, source->name),
		.function = strtab_text(&named->names, source->function),
		.base_rate = base_seconds > 0 ? (double)a_count / base_seconds : NAN,
		.new_rate = new_seconds > 0 ? (double)b_count / new_seconds : NAN,
		.base_max_ns = a ? a->durations.max : 0,
		.new_max_ns = b ? b->durations.max : 0,
		.is_new = !a_count,
		.is_gone = !b_count,
		.p = NAN,
	};
	double base_time = base_seconds * (double)MAX(base->cpus.len, 1),
	       new_time = new_seconds * (double)MAX(new->cpus.len, 1);
	row.base_share = base_time > 0 ? (double)(a ? a->total_ns : 0) / 1e9 / base_time : NAN;
	row.new_share = new_time > 0 ? (double)(b ? b->total_ns : 0) / 1e9 / new_time : NAN;
	/* two Poisson rates: with n events together, the new run's part is binomial by its part of
	 * the time */
	if (base_seconds > 0 && new_seconds > 0) {
		double n = (double)(a_count + b_count),
		       part = new_seconds / (base_seconds + new_seconds);
		double z = (fabs((double)b_count - n * part) - 0.5) / sqrt(n * part * (1 - part));
		row.p = z > 0 ? erfc(z / M_SQRT2) : 1;
	}
	return vec_push(&diff->sources, row);
}

static int diff_sources(struct latency_diff *diff, const struct latency_run *base,
			const struct latency_run *new)
{
	vec_for_each(&new->sources, source) {
		int r = add_source(diff, base, new, find_source(base, new, source), source);
		if (r < 0)
			return r;
	}
	vec_for_each(&base->sources, source) {
		if (find_source(new, base, source))
			continue;
		int r = add_source(diff, base, new, source, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_change(const void *a, const void *b)
{
	const struct latency_diff_source *x = a, *y = b;
	double dx = fabs(x->new_share - x->base_share), dy = fabs(y->new_share - y->base_share);
	if (isnan(dx) || isnan(dy))
		return isnan(dx) - isnan(dy);
	return (dx < dy) - (dx > dy);
}

static int select_significant(struct latency_diff *diff)
{
	size_t count = diff->rows.len + diff->sources.len;
	double *p = calloc(count + 1, sizeof(*p));
	bool *selected = calloc(count + 1, sizeof(*selected));
	int r = p && selected ? 0 : -ENOMEM;
	if (r == 0) {
		for (size_t i = 0; i < diff->rows.len; i++)
			p[i] = diff->rows.data[i].p;
		for (size_t i = 0; i < diff->sources.len; i++)
			p[diff->rows.len + i] = diff->sources.data[i].p;
		r = false_discovery_select(p, count, FALSE_DISCOVERY_LEVEL, selected);
	}
	if (r == 0) {
		for (size_t i = 0; i < diff->rows.len; i++)
			diff->rows.data[i].significant = selected[i];
		for (size_t i = 0; i < diff->sources.len; i++)
			diff->sources.data[i].significant = selected[diff->rows.len + i];
	}
	free(p);
	free(selected);
	return r;
}

int latency_diff_make(const struct latency_run *base, const struct latency_run *new,
		      struct latency_diff *ret)
{
	struct latency_diff diff = {.rates_known = base->duration_ns && new->duration_ns};
	int r = diff_series(&diff, base, new);
	if (r == 0)
		r = diff_sources(&diff, base, new);
	if (r == 0)
		r = select_significant(&diff);
	if (r < 0) {
		latency_diff_fini(&diff);
		return r;
	}
	if (diff.sources.len)
		qsort(diff.sources.data, diff.sources.len, sizeof(*diff.sources.data), by_change);
	*ret = diff;
	return 0;
}

void latency_diff_fini(struct latency_diff *diff)
{
	vec_fini(&diff->rows);
	vec_fini(&diff->sources);
}
