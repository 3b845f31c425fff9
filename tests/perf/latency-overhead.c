/*
 * What engines B and L cost: ns per run of each BPF program, and what they add to the latency that
 * they measure, against engine U and cyclictest in the same minute.
 *
 *	latency-overhead [SECONDS [ROUNDS]]
 *
 * Every round measures wake-ups each millisecond on all CPUs (fifo:95) for SECONDS by each in turn;
 * the table has the median over the rounds. "B + stack" takes the interrupted stack at every
 *wake-up that interrupts a program. cyclictest runs with --laptop, so that power management is left
 *alone as we leave it. The kernel's statistics of BPF run time are switched on by a file
 *descriptor, for a run of its own (they cost time too) and until it is closed, whatever happens.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "latency/engine-own.h"

#define SKIPPED      77
#define ROUNDS_MAX   100
#define CYCLIC_ROWS  2000
#define PROGRAMS_MAX 64

enum peer {
	ENGINE_U,
	ENGINE_L,
	ENGINE_B,
	ENGINE_STACK,
	CYCLICTEST,
	PEERS
};

static const char *const names[PEERS] = {"engine U", "engine L", "engine B", "engine B + stack",
					 "cyclictest"};

struct numbers { /* ns of user latency; cyclictest knows microseconds */
	double min, median, p99;
};

static struct latency_options options_of(enum peer peer)
{
	struct latency_options options = {
		.tool = LATENCY_TIMERLAT,
		.period_ns = NSEC_PER_MSEC,
		.policy = SCHED_FIFO,
		.priority = 95,
		.clock = CLOCK_MONOTONIC,
		.stack_ns = peer == ENGINE_STACK ? NSEC_PER_SEC : 0,
	};
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpuset_add(&options.cpus, cpu);
	return options;
}

static const struct latency_engine_ops *ops_of(enum peer peer)
{
	return peer == ENGINE_U   ? &engine_user_ops
	       : peer == ENGINE_L ? &engine_light_ops
				  : &engine_bpf_ops;
}

struct run_sink {
	struct latency_sink sink;
	struct latency_run *run;
};

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	return latency_run_take(((struct run_sink *)sink)->run, record);
}

static void print_costs(const struct bpf_latency *set, double seconds)
{
	struct bpf_latency_cost cost;
	uint64_t runs = 0, ns = 0;

	printf("%-24s %12s %10s\n", "event", "runs/s", "ns/run");
	for (unsigned i = 0; bpf_latency_cost(set, i, &cost); i++) {
		if (!cost.runs)
			continue;
		printf("%-24s %12.0f %10.0f\n", cost.event, (double)cost.runs / seconds,
		       (double)cost.run_ns / (double)cost.runs);
		runs += cost.runs;
		ns += cost.run_ns;
	}
	printf("%-24s %12.0f %10.0f\n\n", "all", (double)runs / seconds,
	       runs ? (double)ns / (double)runs : 0);
}

/* Measures for so long; the costs of the programs are printed when they are asked for. */
static int measure(enum peer peer, double seconds, bool costs, struct numbers *ret)
{
	const struct latency_engine_ops *ops = ops_of(peer);
	struct latency_options options = options_of(peer);
	struct latency_engine *engine;
	struct latency_series all = {0};
	struct latency_run run;
	struct run_sink sink = {.sink.take = take, .run = &run};
	struct err err = {0};
	uint64_t end;
	int r;

	latency_run_init(&run, options.tool, ops->id);
	r = ops->probe(&options, &err);
	if (r == 0)
		r = ops->start(&options, &run, &engine, &err);
	if (r < 0) {
		printf("latency-overhead: not run: %s\n", err_text(&err, r));
		exit(SKIPPED);
	}
	end = clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
	while (r >= 0 && clock_monotonic_ns() < end)
		r = ops->poll(engine, 20, &sink.sink, &err);
	if (costs)
		print_costs(engine->bpf, seconds);
	if (r >= 0)
		r = ops->stop(engine, &sink.sink, &run, &err);
	ops->free(engine);
	if (r >= 0)
		r = latency_run_total(&run, LATENCY_USER, &all);
	if (r >= 0) {
		ret->min = (double)all.values.min;
		ret->median = (double)histogram_percentile(&all.values, 0.5);
		ret->p99 = (double)histogram_percentile(&all.values, 0.99);
	}
	latency_series_fini(&all);
	latency_run_fini(&run);
	return r;
}

static double share_of(const uint64_t *rows, uint64_t total, double share)
{
	uint64_t seen = 0;

	for (unsigned us = 0; us < CYCLIC_ROWS; us++) {
		seen += rows[us];
		if ((double)seen >= share * (double)total)
			return us * 1000.0 + 500; /* the middle of its microsecond */
	}
	return CYCLIC_ROWS * 1000.0;
}

static int cyclictest(double seconds, struct numbers *ret)
{
	uint64_t rows[CYCLIC_ROWS] = {0}, total = 0, first = CYCLIC_ROWS;
	char command[160], line[4096];
	FILE *in;

	snprintf(command, sizeof(command),
		 "timeout %d cyclictest -t -a -p 95 -m -q --laptop -i 1000 -d 0 -h %d -l %d "
		 "2>/dev/null",
		 (int)seconds + 20, CYCLIC_ROWS, (int)(seconds * 1000));
	in = popen(command, "r");
	while (in && fgets(line, sizeof(line), in)) {
		char *at;
		unsigned long us = strtoul(line, &at, 10);

		if (*line == '#' || at == line || us >= CYCLIC_ROWS)
			continue;
		for (char *end; *at; at = end) {
			uint64_t n = strtoull(at, &end, 10);

			if (end == at)
				break;
			rows[us] += n;
			total += n;
			if (n)
				first = MIN(first, us);
		}
	}
	if (!in || pclose(in) || !total)
		return -ENOENT;
	ret->min = (double)first * 1000 + 500;
	ret->median = share_of(rows, total, 0.5);
	ret->p99 = share_of(rows, total, 0.99);
	return 0;
}

static int by_value(const void *va, const void *vb)
{
	const double a = *(const double *)va, b = *(const double *)vb;

	return a < b ? -1 : a > b;
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), by_value);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static struct numbers median_of(const struct numbers *rounds, unsigned count)
{
	double min[ROUNDS_MAX], mid[ROUNDS_MAX], p99[ROUNDS_MAX];

	for (unsigned i = 0; i < count; i++) {
		min[i] = rounds[i].min;
		mid[i] = rounds[i].median;
		p99[i] = rounds[i].p99;
	}
	return (struct numbers){median(min, count), median(mid, count), median(p99, count)};
}

int main(int argc, char **argv)
{
	static struct numbers rounds[PEERS][ROUNDS_MAX];
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
	struct numbers result[PEERS], ignored;
	bool have_cyclictest = true;
	int stats;

	if (!(seconds > 0) || count < 1 || count > ROUNDS_MAX) {
		fputs("usage: latency-overhead [SECONDS [ROUNDS]]\n", stderr);
		return 1;
	}
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0) {
		printf("latency-overhead: not run: BPF statistics: %s\n", strerror(errno));
		return SKIPPED;
	}
	if (measure(ENGINE_B, seconds, true, &ignored) < 0)
		return 1;
	close(stats);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < PEERS; k++) {
			/* in alternating order: what drifts touches all */
			enum peer peer = i % 2 ? PEERS - 1 - k : k;

			if (peer == CYCLICTEST)
				have_cyclictest &= cyclictest(seconds, &rounds[peer][i]) == 0;
			else if (measure(peer, seconds, false, &rounds[peer][i]) < 0)
				return 1;
		}
	printf("%-18s %10s %10s %10s   %s\n", "user latency, ns", "min", "median", "p99",
	       "more than engine U: min, median");
	for (unsigned k = 0; k < PEERS; k++) {
		if (k == CYCLICTEST && !have_cyclictest)
			continue;
		result[k] = median_of(rounds[k], count);
		printf("%-18s %10.0f %10.0f %10.0f   %+.0f, %+.0f\n", names[k], result[k].min,
		       result[k].median, result[k].p99, result[k].min - result[ENGINE_U].min,
		       result[k].median - result[ENGINE_U].median);
	}
	if (have_cyclictest)
		printf("latency-overhead: ratio %.2f (ours %.0f ns, cyclictest %.0f ns)\n",
		       result[ENGINE_B].median / result[CYCLICTEST].median, result[ENGINE_B].median,
		       result[CYCLICTEST].median);
	else
		printf("latency-overhead: ratio %.2f (ours %.0f ns, engine U %.0f ns; no "
		       "cyclictest)\n",
		       result[ENGINE_B].median / result[ENGINE_U].median, result[ENGINE_B].median,
		       result[ENGINE_U].median);
	return 0;
}
