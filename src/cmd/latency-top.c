/* The tables of "top": rtla's columns, the percentiles below; and the same rows as CSV. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/latency-tables.h"
#include "view/table.h"
#include "view/text.h"

#define CELL 9

static const char *const context_titles[] = {"IRQ: expiry to interrupt", "Thread: expiry to thread",
					     "Ret user: to user space"};

enum {
	PERCENTILES = 4
};
static const double percentiles[PERCENTILES] = {0.5, 0.99, 0.999, 0.9999};

static const char *const values_head[] = {"cur", "min", "avg", "max"};
static const char *const percentiles_head[] = {"p50", "p99", "p99.9", "p99.99"};

static bool shown(const struct latency_view *view, unsigned context)
{
	if (context == LATENCY_IRQ && view->no_irq)
		return false;
	if (context == LATENCY_THREAD && view->no_thread)
		return false;
	return latency_run_has(view->run, (enum latency_context)context);
}

static void put_values(const struct latency_view *view, struct str *out,
		       const struct latency_series *series)
{
	latency_put_time(view, out, CELL,
			 series->values.count ? series->current_ns : LATENCY_UNKNOWN_NS);
	latency_put_time(view, out, CELL, latency_series_min(series));
	latency_put_time_double(view, out, CELL, latency_series_average(series));
	latency_put_time(view, out, CELL, latency_series_max(series));
}

static void put_percentiles(const struct latency_view *view, struct str *out,
			    const struct latency_series *series)
{
	for (unsigned i = 0; i < PERCENTILES; i++)
		latency_put_time(view, out, CELL,
				 latency_series_percentile(series, percentiles[i]));
}

static uint64_t samples_of(const struct latency_cpu *cpu)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		most = MAX(most, cpu->context[i].values.count);
	return most;
}

typedef void (*block_fn)(const struct latency_view *view, struct str *out,
			 const struct latency_series *series);

static void put_block(const struct latency_view *view, const char *title, const char *const *head,
		      block_fn block, struct str *out)
{
	struct latency_series total[LATENCY_CONTEXTS] = {0};
	uint64_t count = 0;

	str_printf(out, "\n%-12s", title);
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		if (shown(view, i))
			str_printf(out, " | %*s (%s)", 4 * CELL - 5, context_titles[i],
				   latency_unit(view));
	str_puts(out, "\nCPU    Count");
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++) {
		if (!shown(view, i))
			continue;
		str_puts(out, " | ");
		for (unsigned j = 0; j < 4; j++)
			str_printf(out, "%*s", CELL, head[j]);
	}
	str_putc(out, '\n');
	vec_for_each(&view->run->cpus, cpu) {
		str_printf(out, "%3u %8llu", cpu->cpu, (unsigned long long)samples_of(cpu));
		count += samples_of(cpu);
		for (unsigned i = 0; i < LATENCY_CONTEXTS; i++) {
			if (!shown(view, i))
				continue;
			str_puts(out, " | ");
			block(view, out, &cpu->context[i]);
		}
		str_putc(out, '\n');
	}
	str_printf(out, "ALL %8llu", (unsigned long long)count);
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++) {
		if (!shown(view, i))
			continue;
		str_puts(out, " | ");
		if (latency_run_total(view->run, (enum latency_context)i, &total[i]) < 0)
			out->status = -ENOMEM;
		block(view, out, &total[i]);
		latency_series_fini(&total[i]);
	}
	str_putc(out, '\n');
}

static void put_worst(const struct latency_view *view, struct str *out)
{
	static const char *const names[] = {"IRQ", "thread", "user"};
	bool any = false;

	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++) {
		const struct latency_cpu *cpu =
			latency_run_worst(view->run, (enum latency_context)i);

		if (!cpu || !shown(view, i))
			continue;
		str_printf(out, "%s%s ", any ? ", " : "worst: ", names[i]);
		latency_put_time(view, out, 0, latency_series_max(&cpu->context[i]));
		str_printf(out, " %s on CPU %u", latency_unit(view), cpu->cpu);
		any = true;
	}
	if (any)
		str_putc(out, '\n');
}

static void put_timerlat(const struct latency_view *view, struct str *out)
{
	bool any = false, distribution = false;

	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		any |= shown(view, i);
	vec_for_each(&view->run->cpus, cpu)
		for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
			distribution |= cpu->context[i].distribution;
	if (!any) {
		str_puts(out, "\n0 samples\n");
		return;
	}
	put_block(view, "Latency", values_head, put_values, out);
	put_worst(view, out);
	if (distribution)
		put_block(view, "Percentiles", percentiles_head, put_percentiles, out);
}

/* --- noise --------------------------------------------------------------------------------- */

static void put_count(struct str *out, int width, bool known, uint64_t count)
{
	if (known)
		str_printf(out, "%*llu", width, (unsigned long long)count);
	else
		str_printf(out, "%*s", width, "-");
}

static void put_noise_row(const struct latency_view *view, const struct latency_cpu *cpu,
			  struct str *out)
{
	bool hardware = view->run->tool == LATENCY_HWNOISE;
	bool sums = cpu->periods > 0 || cpu->runtime_ns > 0;

	str_printf(out, "%3u ", cpu->cpu);
	put_count(out, 7, cpu->periods > 0, cpu->periods);
	latency_put_time(view, out, 13,
			 cpu->runtime_ns ? (int64_t)cpu->runtime_ns : LATENCY_UNKNOWN_NS);
	latency_put_time(view, out, 12, (int64_t)cpu->noise_ns);
	if (cpu->runtime_ns)
		str_printf(out, "%10.5f",
			   100 - 100 * (double)cpu->noise_ns / (double)cpu->runtime_ns);
	else
		str_printf(out, "%10s", "-");
	latency_put_time(view, out, 10, sums ? (int64_t)cpu->max_noise_ns : LATENCY_UNKNOWN_NS);
	latency_put_time(view, out, 10, (int64_t)cpu->max_single_ns);
	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		if (!hardware || i <= NOISE_NMI)
			put_count(out, i == 0 ? 12 : 8, cpu->class_known[i], cpu->class_count[i]);
	latency_put_time(view, out, 11, cpu->steal_ns);
	if (!hardware)
		latency_put_time(view, out, 11,
				 cpu->gaps.values.count ? (int64_t)cpu->unexplained_inside_ns
							: LATENCY_UNKNOWN_NS);
	str_putc(out, '\n');
}

static void put_noise(const struct latency_view *view, struct str *out)
{
	static const char *const counts[] = {"Unexplained", "NMI", "IRQ", "Softirq", "Thread"};
	const struct latency_run *run = view->run;
	bool hardware = run->tool == LATENCY_HWNOISE;
	const struct latency_cpu *worst = NULL;

	if (run->cpus.len == 0) {
		str_puts(out, "\n0 periods\n");
		return;
	}
	str_printf(out, "\n%s (times in %s)\nCPU  Period%13s%12s%10s%10s%10s",
		   hardware ? "Hardware noise" : "Operating system noise", latency_unit(view),
		   "Runtime", "Noise", "%Aval", "MaxNoise", "MaxSingle");
	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		if (!hardware || i <= NOISE_NMI)
			str_printf(out, "%*s", i == 0 ? 12 : 8, counts[i]);
	str_printf(out, "%11s", "Steal");
	if (!hardware)
		str_printf(out, "%11s", "Inside");
	str_putc(out, '\n');
	vec_for_each(&run->cpus, cpu) {
		put_noise_row(view, cpu, out);
		if (!worst || cpu->max_single_ns > worst->max_single_ns)
			worst = cpu;
	}
	if (!worst)
		return;
	str_puts(out, "worst: a gap of ");
	latency_put_time(view, out, 0, (int64_t)worst->max_single_ns);
	str_printf(out, " %s on CPU %u\n", latency_unit(view), worst->cpu);
	str_puts(out, "Unexplained: nothing the kernel knows of ran: hardware, firmware or a "
		      "hypervisor (rtla's HW).\n");
	if (!hardware)
		str_puts(out,
			 "Inside: the rest of gaps that have a known source: entry, exit, faults, "
			 "VM exits.\n");
}

void latency_put_top(const struct latency_view *view, struct str *out)
{
	if (latency_is_noise(view->run))
		put_noise(view, out);
	else
		put_timerlat(view, out);
}

/* --- CSV ----------------------------------------------------------------------------------- */

static void cell_time(struct table *table, int64_t ns)
{
	if (ns == LATENCY_UNKNOWN_NS || ns < 0)
		table_unknown(table);
	else
		table_count(table, (uint64_t)ns);
}

static void csv_series(struct table *table, uint64_t cpu, bool all, const char *context,
		       const struct latency_series *series)
{
	if (all)
		table_text(table, "all");
	else {
		char number[24];

		snprintf(number, sizeof(number), "%llu", (unsigned long long)cpu);
		table_text(table, number);
	}
	table_text(table, context);
	table_count(table, series->values.count);
	cell_time(table, latency_series_min(series));
	table_double(table, latency_series_average(series));
	for (unsigned i = 0; i < PERCENTILES; i++)
		cell_time(table, latency_series_percentile(series, percentiles[i]));
	cell_time(table, latency_series_max(series));
	table_count(table, series->negative);
}

static const struct table_column series_columns[] = {
	{.key = "cpu", .kind = CELL_TEXT},         {.key = "context", .kind = CELL_TEXT},
	{.key = "count", .kind = CELL_COUNT},      {.key = "min_ns", .kind = CELL_TIME_NS},
	{.key = "avg_ns", .kind = CELL_DOUBLE},    {.key = "p50_ns", .kind = CELL_TIME_NS},
	{.key = "p99_ns", .kind = CELL_TIME_NS},   {.key = "p999_ns", .kind = CELL_TIME_NS},
	{.key = "p9999_ns", .kind = CELL_TIME_NS}, {.key = "max_ns", .kind = CELL_TIME_NS},
	{.key = "negative", .kind = CELL_COUNT},
};

static int csv_timerlat(const struct latency_view *view, struct table *table)
{
	int r = 0;

	for (unsigned i = 0; i < LATENCY_CONTEXTS && r == 0; i++) {
		const char *context = latency_context_name((enum latency_context)i);
		struct latency_series total = {0};

		if (!shown(view, i))
			continue;
		vec_for_each(&view->run->cpus, cpu)
			csv_series(table, cpu->cpu, false, context, &cpu->context[i]);
		r = latency_run_total(view->run, (enum latency_context)i, &total);
		csv_series(table, 0, true, context, &total);
		latency_series_fini(&total);
	}
	return r;
}

static const struct table_column noise_columns[] = {
	{.key = "cpu", .kind = CELL_COUNT},
	{.key = "periods", .kind = CELL_COUNT},
	{.key = "runtime_ns", .kind = CELL_TIME_NS},
	{.key = "noise_ns", .kind = CELL_TIME_NS},
	{.key = "available_share", .kind = CELL_DOUBLE},
	{.key = "max_noise_ns", .kind = CELL_TIME_NS},
	{.key = "max_single_ns", .kind = CELL_TIME_NS},
	{.key = "hw", .kind = CELL_COUNT},
	{.key = "nmi", .kind = CELL_COUNT},
	{.key = "irq", .kind = CELL_COUNT},
	{.key = "softirq", .kind = CELL_COUNT},
	{.key = "thread", .kind = CELL_COUNT},
	{.key = "steal_ns", .kind = CELL_TIME_NS},
	{.key = "unexplained_inside_ns", .kind = CELL_TIME_NS},
};

static void csv_noise(const struct latency_view *view, struct table *table)
{
	vec_for_each(&view->run->cpus, cpu) {
		table_count(table, cpu->cpu);
		table_count(table, cpu->periods);
		cell_time(table, cpu->runtime_ns ? (int64_t)cpu->runtime_ns : LATENCY_UNKNOWN_NS);
		table_count(table, cpu->noise_ns);
		table_double(table, cpu->runtime_ns
					    ? 1 - (double)cpu->noise_ns / (double)cpu->runtime_ns
					    : NAN);
		table_count(table, cpu->max_noise_ns);
		table_count(table, cpu->max_single_ns);
		for (unsigned i = 0; i < NOISE_CLASSES; i++) {
			if (cpu->class_known[i])
				table_count(table, cpu->class_count[i]);
			else
				table_unknown(table);
		}
		cell_time(table, cpu->steal_ns);
		table_count(table, cpu->unexplained_inside_ns);
	}
}

static const struct table_column bucket_columns[] = {
	{.key = "cpu", .kind = CELL_COUNT},      {.key = "context", .kind = CELL_TEXT},
	{.key = "low_ns", .kind = CELL_TIME_NS}, {.key = "high_ns", .kind = CELL_TIME_NS},
	{.key = "count", .kind = CELL_COUNT},
};

static void csv_buckets(struct table *table, unsigned cpu, const char *context,
			const struct histogram *h)
{
	for (unsigned i = 0; i < h->bucket_count; i++) {
		if (h->buckets[i] == 0)
			continue;
		table_count(table, cpu);
		table_text(table, context);
		table_count(table, histogram_bucket_low(i));
		table_count(table, histogram_bucket_high(i));
		table_count(table, h->buckets[i]);
	}
}

int latency_put_csv(const struct latency_view *view, bool histogram, struct str *out)
{
	bool noise = latency_is_noise(view->run);
	struct table *table = NULL;
	int r = histogram ? table_new(bucket_columns, ARRAY_LEN(bucket_columns), &table)
		: noise   ? table_new(noise_columns, ARRAY_LEN(noise_columns), &table)
			  : table_new(series_columns, ARRAY_LEN(series_columns), &table);

	if (r < 0)
		return r;
	if (!histogram && noise)
		csv_noise(view, table);
	else if (!histogram)
		r = csv_timerlat(view, table);
	else
		vec_for_each(&view->run->cpus, cpu) {
			for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
				if (shown(view, i))
					csv_buckets(table, cpu->cpu,
						    latency_context_name((enum latency_context)i),
						    &cpu->context[i].values);
			csv_buckets(table, cpu->cpu, "gap", &cpu->gaps.values);
		}
	if (r == 0)
		r = table_status(table);
	if (r == 0)
		table_print_csv(table, ',', out);
	table_free(table);
	return r;
}
