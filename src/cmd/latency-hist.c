/*
 * rtla's histogram as a view of ours: rows of equal width, a column for each CPU and context.
 * Values beyond the last row are counted as "over", and the percentiles below know them all.
 *
 * A bucket of ours that crosses the edge of a row counts where it begins: values above 128 rows of
 * the smallest width are within 0.8 % of where they stand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/latency-tables.h"

#define CELL 10

struct column {
	const struct latency_series *series;
	char title[24];
	unsigned next; /* bucket */
	uint64_t over, row;
};

struct columns {
	VEC(struct column) all;
};

static int add_column(struct columns *columns, const struct latency_series *series,
		      const char *name, unsigned cpu)
{
	struct column column = {.series = series};

	snprintf(column.title, sizeof(column.title), "%s-%03u", name, cpu);
	return vec_push(&columns->all, column);
}

static int collect(const struct latency_view *view, struct columns *columns)
{
	static const char *const names[] = {"IRQ", "Thr", "Usr"};
	const struct latency_run *run = view->run;
	int r = 0;

	vec_for_each(&run->cpus, cpu) {
		if (latency_is_noise(run)) {
			r = add_column(columns, &cpu->gaps, "CPU", cpu->cpu);
			if (r < 0)
				return r;
			continue;
		}
		for (unsigned i = 0; i < LATENCY_CONTEXTS && r == 0; i++) {
			if ((i == LATENCY_IRQ && view->no_irq) ||
			    (i == LATENCY_THREAD && view->no_thread) ||
			    !latency_run_has(run, (enum latency_context)i))
				continue;
			r = add_column(columns, &cpu->context[i], names[i], cpu->cpu);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* Counts of values in [.., end) that no earlier row had. */
static uint64_t take_until(struct column *column, uint64_t end)
{
	const struct histogram *h = &column->series->values;
	uint64_t count = 0;

	for (; column->next < h->bucket_count && histogram_bucket_low(column->next) < end;
	     column->next++)
		count += h->buckets[column->next];
	return count;
}

static void put_rows(const struct latency_view *view, struct columns *columns, struct str *out)
{
	uint64_t divisor = view->nano ? 1 : NSEC_PER_USEC;

	for (uint64_t i = 0; i < view->entries; i++) {
		bool any = view->with_zeros, more = false;

		vec_for_each(&columns->all, column) {
			column->row = take_until(column, (i + 1) * view->bucket_ns);
			any |= column->row > 0;
			more |= column->next < column->series->values.bucket_count;
		}
		if (any) {
			if (!view->no_index)
				str_printf(out, "%-8llu",
					   (unsigned long long)(i * view->bucket_ns / divisor));
			vec_for_each(&columns->all, column)
				str_printf(out, "%*llu", CELL, (unsigned long long)column->row);
			str_putc(out, '\n');
		}
		if (!more && !view->with_zeros)
			break;
	}
	vec_for_each(&columns->all, column)
		column->over = take_until(column, UINT64_MAX) + column->series->above_last;
}

static void put_label(const struct latency_view *view, const char *label, struct str *out)
{
	if (!view->no_index)
		str_printf(out, "%-8s", label);
}

static void put_summary(const struct latency_view *view, struct columns *columns, struct str *out)
{
	static const struct {
		const char *label;
		double share;
	} shares[] = {{"p50:", 0.5}, {"p99:", 0.99}, {"p99.9:", 0.999}, {"p99.99:", 0.9999}};

	put_label(view, "over:", out);
	vec_for_each(&columns->all, column)
		str_printf(out, "%*llu", CELL, (unsigned long long)column->over);
	str_putc(out, '\n');
	put_label(view, "count:", out);
	vec_for_each(&columns->all, column)
		str_printf(out, "%*llu", CELL, (unsigned long long)column->series->values.count);
	str_putc(out, '\n');
	put_label(view, "min:", out);
	vec_for_each(&columns->all, column)
		latency_put_time(view, out, CELL, latency_series_min(column->series));
	str_putc(out, '\n');
	put_label(view, "avg:", out);
	vec_for_each(&columns->all, column)
		latency_put_time_double(view, out, CELL, latency_series_average(column->series));
	str_putc(out, '\n');
	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		put_label(view, shares[i].label, out);
		vec_for_each(&columns->all, column)
			latency_put_time(
				view, out, CELL,
				latency_series_percentile(column->series, shares[i].share));
		str_putc(out, '\n');
	}
	put_label(view, "max:", out);
	vec_for_each(&columns->all, column)
		latency_put_time(view, out, CELL, latency_series_max(column->series));
	str_putc(out, '\n');
}

static void put_empty(const struct latency_view *view, struct str *out)
{
	const struct latency_run *run = view->run;

	str_puts(out, "\n0 samples");
	if (latency_is_noise(run) && run->threshold_ns) {
		str_puts(out, " above ");
		latency_put_time(view, out, 0, (int64_t)run->threshold_ns);
		str_printf(out, " %s", latency_unit(view));
	}
	str_putc(out, '\n');
}

void latency_put_hist(const struct latency_view *view, struct str *out)
{
	struct columns columns = {0};
	uint64_t samples = 0;

	if (collect(view, &columns) < 0)
		out->status = -ENOMEM;
	vec_for_each(&columns.all, column)
		samples += column->series->values.count;
	if (samples == 0)
		put_empty(view, out);
	if (columns.all.len > 0 && (samples > 0 || view->with_zeros)) {
		if (!view->no_header) {
			str_printf(out, "\n# %s histogram, time unit is %s\n",
				   latency_tool_name(view->run->tool),
				   view->nano ? "nanoseconds" : "microseconds");
			put_label(view, "Index", out);
			vec_for_each(&columns.all, column)
				str_printf(out, "%*s", CELL, column->title);
			str_putc(out, '\n');
		}
		put_rows(view, &columns, out);
		if (!view->no_summary)
			put_summary(view, &columns, out);
	}
	vec_fini(&columns.all);
}
