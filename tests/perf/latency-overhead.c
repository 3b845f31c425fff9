/*
 * What engines B and L cost: ns per run of each BPF program, and what they add to the latency that
 * they measure, against engine U and cyclictest in the same minute.
 *
 *	latency-overhead [SECONDS [ROUNDS]]
 *
 * Every round measures wake-ups each millisecond on all CPUs (fifo:95) for SECONDS by each in turn;
 * the table has the median over the rounds. "B + stack" takes the interrupted stack at every
 * wake-up that interrupts a program. cyclictest runs with --laptop, so that power management is
 * left alone as we leave it. ROUNDS 0: the programs alone.
 *
 * The kernel's statistics of BPF run time are switched on by a file descriptor, for runs of their
 * own (they cost time too) and until it is closed, whatever happens. They contain a clock reading:
 * the row "nothing" is a program that does nothing, on sched_switch.
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

static void all_cpus(struct cpuset *ret)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpuset_add(ret, cpu);
}

static struct latency_options wake_ups(enum peer peer)
{
	struct latency_options options = {
		.tool = LATENCY_TIMERLAT,
		.period_ns = NSEC_PER_MSEC,
		.policy = SCHED_FIFO,
		.priority = 95,
		.clock = CLOCK_MONOTONIC,
		.stack_ns = peer == ENGINE_STACK ? NSEC_PER_SEC : 0,
	};

	all_cpus(&options.cpus);
	return options;
}

/* Half of the time, so that the others on the machine have theirs. */
static struct latency_options noise(void)
{
	struct latency_options options = {
		.tool = LATENCY_OSNOISE,
		.period_ns = 200 * NSEC_PER_MSEC,
		.runtime_ns = 100 * NSEC_PER_MSEC,
		.threshold_ns = 5 * NSEC_PER_USEC,
		.policy = -1,
		.clock = CLOCK_MONOTONIC,
	};

	all_cpus(&options.cpus);
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

/* A program that does nothing: what the statistics themselves take. */
static int attach_nothing(int *ret_program)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	*ret_program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "nothing", "Dual BSD/GPL", insns,
				     ARRAY_LEN(insns), NULL);
	return *ret_program < 0 ? -1 : bpf_raw_tracepoint_open("sched_switch", *ret_program);
}

static void print_cost(const char *name, uint64_t runs, uint64_t ns, double seconds)
{
	if (runs)
		printf("%-28s %12.0f %10.0f\n", name, (double)runs / seconds,
		       (double)ns / (double)runs);
}

static void print_costs(const struct bpf_latency *set, int nothing, double seconds)
{
	struct bpf_prog_info info = {0};
	unsigned size = sizeof(info);
	struct bpf_latency_cost cost;
	uint64_t runs = 0, ns = 0;

	for (unsigned i = 0; bpf_latency_cost(set, i, &cost); i++) {
		if (!strncmp(cost.name, "find_steal", strlen("find_steal")))
			continue; /* a few runs at the start */
		print_cost(cost.event, cost.runs, cost.run_ns, seconds);
		runs += cost.runs;
		ns += cost.run_ns;
	}
	print_cost("all", runs, ns, seconds);
	if (nothing >= 0 && bpf_obj_get_info_by_fd(nothing, &info, &size) == 0)
		print_cost("nothing", info.run_cnt, info.run_time_ns, seconds);
	putchar('\n');
}

/* Measures for so long; the costs of the programs are printed when they are asked for. */
static int measure(const struct latency_engine_ops *ops, const struct latency_options *options,
		   double seconds, const char *costs, struct numbers *ret)
{
	struct latency_engine *engine;
	struct latency_series all = {0};
	struct latency_run run;
	struct run_sink sink = {.sink.take = take, .run = &run};
	struct err err = {0};
	int r, program = -1, link = costs ? attach_nothing(&program) : -1;
	uint64_t end;

	latency_run_init(&run, options->tool, ops->id);
	r = ops->probe(options, &err);
	if (r == 0)
		r = ops->start(options, &run, &engine, &err);
	if (r < 0) {
		printf("latency-overhead: not run: %s\n", err_text(&err, r));
		exit(SKIPPED);
	}
	end = clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
	while (r >= 0 && clock_monotonic_ns() < end)
		r = ops->poll(engine, 20, &sink.sink, &err);
	if (costs) {
		printf("%-28s %12s %10s\n", costs, "runs/s", "ns/run");
		print_costs(engine->bpf, program, seconds);
	}
	if (r >= 0)
		r = ops->stop(engine, &sink.sink, &run, &err);
	ops->free(engine);
	if (link >= 0)
		close(link);
	if (program >= 0)
		close(program);
	if (r >= 0)
		r = latency_run_total(&run, LATENCY_USER, &all);
	if (r >= 0 && ret) {
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

static int measure_costs(double seconds)
{
	const struct latency_options wakes = wake_ups(ENGINE_B), gaps = noise();
	int r, stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (stats < 0) {
		printf("latency-overhead: not run: BPF statistics: %s\n", strerror(errno));
		exit(SKIPPED);
	}
	r = measure(&engine_bpf_ops, &wakes, seconds, "wake-ups: event", NULL);
	if (r >= 0)
		r = measure(&engine_bpf_ops, &gaps, seconds, "noise: event", NULL);
	close(stats);
	return r;
}

static void print_result(struct numbers rounds[PEERS][ROUNDS_MAX], unsigned count,
			 bool have_cyclictest)
{
	enum peer other = have_cyclictest ? CYCLICTEST : ENGINE_U;
	struct numbers result[PEERS];

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
	printf("latency-overhead: ratio %.2f (ours %.0f ns, %s %.0f ns)\n",
	       result[ENGINE_B].median / result[other].median, result[ENGINE_B].median,
	       names[other], result[other].median);
}

int main(int argc, char **argv)
{
	static struct numbers rounds[PEERS][ROUNDS_MAX];
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	int count = argc > 2 ? atoi(argv[2]) : 5;
	bool have_cyclictest = true;

	if (!(seconds > 0) || count < 0 || count > ROUNDS_MAX) {
		fputs("usage: latency-overhead [SECONDS [ROUNDS]]\n", stderr);
		return 1;
	}
	if (measure_costs(seconds) < 0)
		return 1;
	for (unsigned i = 0; i < (unsigned)count; i++)
		for (unsigned k = 0; k < PEERS; k++) {
			/* in alternating order: what drifts touches all */
			enum peer peer = i % 2 ? PEERS - 1 - k : k;
			const struct latency_options options = wake_ups(peer);

			if (peer == CYCLICTEST)
				have_cyclictest &= cyclictest(seconds, &rounds[peer][i]) == 0;
			else if (measure(ops_of(peer), &options, seconds, NULL, &rounds[peer][i]) <
				 0)
				return 1;
		}
	if (count)
		print_result(rounds, (unsigned)count, have_cyclictest);
	return 0;
}
