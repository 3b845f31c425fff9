/* The text of culprit cyclic, in cyclictest's layout. */
#include <inttypes.h>
#include <sched.h>

#include "base/util.h"
#include "cmd/cyclic.h"

static uint64_t in_unit(const struct cyclic_cli *cli, uint64_t ns)
{
	return cli->nano ? ns : ns / NSEC_PER_USEC;
}

/* A number in cyclictest's columns, or a dash: nothing was measured. */
static void put(struct str *out, const char *name, int width, bool known, uint64_t value)
{
	if (known)
		str_printf(out, " %s:%*" PRIu64, name, width, value);
	else
		str_printf(out, " %s:%*s", name, width, "-");
}

static void put_percentile(const struct cyclic_cli *cli, const struct latency_series *series,
			   const char *name, double share, struct str *out)
{
	int64_t value = latency_series_percentile(series, share);

	put(out, name, 6, value >= 0, in_unit(cli, (uint64_t)MAX(value, 0)));
}

void cyclic_print_threads(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
			  unsigned count, struct str *out)
{
	int width = cli->nano ? 8 : 7;
	bool real_time = cli->policy == SCHED_FIFO || cli->policy == SCHED_RR;

	for (unsigned i = 0; i < count; i++) {
		const struct cyclic_thread *t = &threads[i];
		const struct histogram *h = &t->latency.values;
		bool any = h->count > 0;

		str_printf(out, "T:%2u (%5d) P:%2" PRIu64 " I:%" PRIu64 " C:%7" PRIu64, i, t->tid,
			   real_time ? cli->priority : 0, t->interval_ns / NSEC_PER_USEC,
			   t->cycles);
		put(out, "Min", width, any, in_unit(cli, h->min));
		put(out, "Act", width - 2, any,
		    in_unit(cli, (uint64_t)MAX(t->latency.current_ns, 0)));
		put(out, "Avg", width - 2, any,
		    any ? in_unit(cli, (uint64_t)(h->sum / h->count)) : 0);
		put(out, "Max", width + 1, any, in_unit(cli, h->max));
		put_percentile(cli, &t->latency, "P50", 0.5, out);
		put_percentile(cli, &t->latency, "P99", 0.99, out);
		put_percentile(cli, &t->latency, "P99.9", 0.999, out);
		if (cli->smi)
			put(out, "SMI", 8, t->smi >= 0, (uint64_t)MAX(t->smi, 0));
		str_putc(out, '\n');
	}
}

/* --- histogram ------------------------------------------------------------------------------- */

/* One line of the footer: a number for each thread, and for all with -H. */
static void footer(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
		   unsigned count, const char *title, int width,
		   uint64_t (*value)(const struct cyclic_thread *), bool sum, struct str *out)
{
	uint64_t all = 0;

	str_printf(out, "# %s:", title);
	for (unsigned i = 0; i < count; i++) {
		uint64_t v = value(&threads[i]);

		all = sum ? all + v : MAX(all, v);
		str_printf(out, " %0*" PRIu64, width, v);
	}
	if (cli->summary_column)
		str_printf(out, " %0*" PRIu64, width, all);
	str_putc(out, '\n');
}

static uint64_t total_of(const struct cyclic_thread *t)
{
	return t->cycles - t->over;
}

static uint64_t min_of(const struct cyclic_thread *t)
{
	return t->cycles ? t->latency.values.min / NSEC_PER_USEC : 0;
}

static uint64_t avg_of(const struct cyclic_thread *t)
{
	return t->cycles ? (uint64_t)(t->latency.values.sum / t->cycles) / NSEC_PER_USEC : 0;
}

static uint64_t max_of(const struct cyclic_thread *t)
{
	return t->cycles ? t->latency.values.max / NSEC_PER_USEC : 0;
}

static uint64_t over_of(const struct cyclic_thread *t)
{
	return t->over;
}

static void over_cycles(const struct cyclic_thread *threads, unsigned count, struct str *out)
{
	str_puts(out, "# Histogram Overflow at cycle number:\n");
	for (unsigned i = 0; i < count; i++) {
		const struct cyclic_thread *t = &threads[i];

		str_printf(out, "# Thread %u:", i);
		for (size_t k = 0; k < t->over_cycles.len; k++)
			str_printf(out, " %05" PRIu64, t->over_cycles.data[k]);
		if (t->over > t->over_cycles.len)
			str_printf(out, " # %05" PRIu64 " others", t->over - t->over_cycles.len);
		str_putc(out, '\n');
	}
}

/* Values of one thread beyond the rows in the buckets [from, to). */
static uint64_t values_in(const struct cyclic_thread *t, unsigned from, unsigned to)
{
	const struct histogram *h = &t->beyond;
	uint64_t n = 0;

	for (unsigned b = from; b < MIN(to, h->bucket_count); b++)
		n += h->buckets[b];
	return n;
}

/* cyclictest forgets them. Rows of a microsecond, wider where the buckets are (0.8 %). */
static void over_values(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
			unsigned count, struct str *out)
{
	unsigned last = 0, next;

	for (unsigned i = 0; i < count; i++)
		if (threads[i].over)
			last = MAX(last, histogram_bucket_of(threads[i].beyond.max) + 1);
	if (last)
		str_puts(out, "# Values beyond the histogram (us, count of each thread):\n");
	for (unsigned b = histogram_bucket_of(cli->rows * NSEC_PER_USEC); b < last; b = next) {
		uint64_t us = MAX(histogram_bucket_low(b) / NSEC_PER_USEC, cli->rows), any = 0;

		for (next = b + 1; next < last; next++)
			if (histogram_bucket_low(next) / NSEC_PER_USEC > us)
				break;
		for (unsigned i = 0; i < count; i++)
			any += values_in(&threads[i], b, next);
		if (!any)
			continue;
		str_printf(out, "# %06" PRIu64, us);
		for (unsigned i = 0; i < count; i++)
			str_printf(out, "%s%06" PRIu64, i ? "\t" : " ",
				   values_in(&threads[i], b, next));
		str_putc(out, '\n');
	}
}

void cyclic_print_histogram(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
			    unsigned count, struct str *out)
{
	str_puts(out, "# Histogram\n");
	for (uint64_t us = 0; us < cli->rows; us++) {
		uint64_t all = 0;

		str_printf(out, "%06" PRIu64 " ", us);
		for (unsigned i = 0; i < count; i++) {
			all += threads[i].rows[us];
			str_printf(out, "%s%06" PRIu64, i ? "\t" : "", threads[i].rows[us]);
		}
		if (cli->summary_column)
			str_printf(out, "\t%06" PRIu64, all);
		str_putc(out, '\n');
	}
	footer(cli, threads, count, "Total", 9, total_of, true, out);
	footer(cli, threads, count, "Min Latencies", 5, min_of, false, out);
	footer(cli, threads, count, "Avg Latencies", 5, avg_of, false, out);
	footer(cli, threads, count, "Max Latencies", 5, max_of, false, out);
	footer(cli, threads, count, "Histogram Overflows", 5, over_of, true, out);
	over_cycles(threads, count, out);
	over_values(cli, threads, count, out);
}
