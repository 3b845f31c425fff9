/* culprit cyclic: how late threads wake that sleep for an interval, as cyclictest measures it. */
#include "cmd/cyclic.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/command.h"
#include "cmd/option.h"
#include "latency/journal.h"
#include "latency/reader-watch.h"
#include "latency/run-file.h"
#include "latency/sampler.h"

#define THREADS_MAX     4096
#define ROWS_MAX        1000000
#define POLL_MS         50
#define INTERVAL_MIN_NS (10 * NSEC_PER_USEC)

static int set_affinity(void *options, const char *value, struct err *err)
{
	struct cyclic_cli *cli = options;

	return value ? cpuset_parse(value, &cli->affinity, err) : 0;
}

static int set_threads(void *options, const char *value, struct err *err)
{
	struct cyclic_cli *cli = options;
	unsigned long long threads = 0;

	if (value && (parse_u64(value, 10, &threads) < 0 || threads < 1 || threads > THREADS_MAX))
		return err_set(err, -EINVAL, "-t takes 1 to %d threads, not '%s'", THREADS_MAX,
			       value);
	cli->threads = threads;
	return 0;
}

static int set_policy(void *options, const char *value, struct err *err)
{
	static const struct {
		const char *name;
		int policy;
	} policies[] = {{"other", SCHED_OTHER}, {"normal", SCHED_OTHER}, {"batch", SCHED_BATCH},
			{"idle", SCHED_IDLE},   {"fifo", SCHED_FIFO},    {"rr", SCHED_RR}};

	for (size_t i = 0; i < ARRAY_LEN(policies); i++)
		if (!strcasecmp(value, policies[i].name)) {
			((struct cyclic_cli *)options)->policy = policies[i].policy;
			return 0;
		}
	return err_set(err, -EINVAL,
		       "--policy takes other, normal, batch, idle, fifo or rr, not '%s'", value);
}

static int set_us(const char *name, const char *value, uint64_t *ret_ns, struct err *err)
{
	unsigned long long ns;

	if (parse_duration_ns(value, NSEC_PER_USEC, &ns) < 0)
		return err_set(err, -EINVAL, "%s takes microseconds, not '%s'", name, value);
	*ret_ns = ns;
	return 0;
}

static int set_distance(void *options, const char *value, struct err *err)
{
	struct cyclic_cli *cli = options;

	cli->has_distance = true;
	return set_us("-d", value, &cli->distance_ns, err);
}

static int set_aligned(void *options, const char *value, struct err *err)
{
	uint64_t ns = 0;
	int r = value ? set_us("-A", value, &ns, err) : 0;

	if (r == 0)
		((struct cyclic_cli *)options)->align_ns = (int64_t)ns;
	return r;
}

static int set_rows(void *options, const char *value, struct err *err)
{
	struct cyclic_cli *cli = options;
	unsigned long long rows;

	if (parse_u64(value, 10, &rows) < 0 || rows < 1 || rows > ROWS_MAX)
		return err_set(err, -EINVAL, "a histogram has 1 to %d microseconds, not '%s'",
			       ROWS_MAX, value);
	cli->rows = rows;
	return 0;
}

static int set_rows_and_sum(void *options, const char *value, struct err *err)
{
	((struct cyclic_cli *)options)->summary_column = true;
	return set_rows(options, value, err);
}

static int set_duration(void *options, const char *value, struct err *err)
{
	struct cyclic_cli *cli = options;
	size_t len = strlen(value);
	unsigned long long days, ns;
	char number[32];

	if (len > 1 && len < sizeof(number) && value[len - 1] == 'd') {
		snprintf(number, sizeof(number), "%.*s", (int)len - 1, value);
		if (parse_u64(number, 10, &days) == 0 && days > 0 && days <= 36500) {
			cli->duration_ns = days * 86400 * NSEC_PER_SEC;
			return 0;
		}
	} else if (parse_duration_ns(value, NSEC_PER_SEC, &ns) == 0 && ns > 0) {
		cli->duration_ns = ns;
		return 0;
	}
	return err_set(err, -EINVAL, "-D takes a time such as 30, 5m, 2h or 1d, not '%s'", value);
}

static int set_latency(void *options, const char *value, struct err *err)
{
	unsigned long long us;

	if (parse_u64(value, 10, &us) < 0 || us > 10000)
		return err_set(err, -EINVAL, "--latency takes 0 to 10000 microseconds, not '%s'",
			       value);
	((struct cyclic_cli *)options)->latency_us = us;
	return 0;
}

static int set_json(void *options, const char *value, struct err *err)
{
	struct cyclic_cli *cli = options;

	cli->json = true;
	cli->json_file = value;
	return 0;
}

static const struct option_spec cyclic_options[] = {
	OPT_HEADING("The threads"),
	OPT_CALL('a', "affinity", "[CPUSET]", set_affinity,
		 "Put the threads on these CPUs, in turn. Default: all that this process may run "
		 "on; "
		 "threads are always pinned."),
	OPT_CALL('t', "threads", "[NUM]", set_threads,
		 "Run NUM threads; without NUM one for each CPU. Default: 1."),
	OPT_FLAG('S', "smp", struct cyclic_cli, smp,
		 "One thread for each CPU, all alike: -t -d 0."),
	OPT_U64('p', "priority", "PRIO", struct cyclic_cli, priority,
		"Real-time priority 1 to 99, policy fifo unless --policy says another. Without it "
		"the "
		"threads are ordinary ones, and their latency is not that of real-time threads."),
	{.kind = OPTION_CALL,
	 .name = "policy",
	 .arg = "NAME",
	 .set = set_policy,
	 .complete = "other normal batch idle fifo rr",
	 .help = "other, normal, batch, idle, fifo or rr."},
	OPT_FLAG('m', "mlockall", struct cyclic_cli, lock_memory,
		 "Fail when memory cannot be locked. It is locked anyway where that is allowed."),
	OPT_HEADING("Sleeping"),
	OPT_DURATION('i', "interval", "US", struct cyclic_cli, interval_ns, NSEC_PER_USEC,
		     "Sleep for so long, in microseconds or with a unit. Default: 1000."),
	OPT_CALL('d', "distance", "US", set_distance,
		 "Each thread sleeps so much longer than the one before. Default: 500; 0 with -S, "
		 "-h and "
		 "-H."),
	OPT_CALL('A', "aligned", "[US]", set_aligned,
		 "All begin together, each US after the one before (default 0). Without -A the "
		 "threads "
		 "are spread evenly over the interval, so that their timers do not meet."),
	OPT_FLAG('r', "relative", struct cyclic_cli, relative,
		 "Sleep for the interval instead of until the next time."),
	OPT_U64('c', "clock", "CLOCK", struct cyclic_cli, clock,
		"0: CLOCK_MONOTONIC (default), 1: CLOCK_REALTIME."),
	OPT_CALL(0, "latency", "US", set_latency,
		 "Ask power management (/dev/cpu_dma_latency) for at most this latency while "
		 "measuring, as cyclictest always does with 0. Default: the system is measured as "
		 "it "
		 "is."),
	OPT_HEADING("How long"),
	OPT_CALL('D', "duration", "TIME", set_duration,
		 "Seconds, or with m, h, d. Default: until interrupted."),
	OPT_U64('l', "loops", "N", struct cyclic_cli, loops,
		"End after N wake-ups of each thread."),
	OPT_DURATION('b', "breaktrace", "US", struct cyclic_cli, break_ns, NSEC_PER_USEC,
		     "End at the first latency above this, with status 2."),
	OPT_HEADING("The result"),
	OPT_CALL('h', "histogram", "US", set_rows,
		 "Print a histogram of this many microseconds at the end. Larger values follow it "
		 "as "
		 "comments; none is thrown away."),
	OPT_CALL('H', "histofall", "US", set_rows_and_sum,
		 "The same with a column for all threads."),
	OPT_TEXT(0, "histfile", "FILE", struct cyclic_cli, histogram_file,
		 "Write the histogram to FILE instead."),
	OPT_FLAG('M', "refresh_on_max", struct cyclic_cli, on_new_max,
		 "On a terminal, print anew only when there is a new maximum."),
	OPT_FLAG('q', "quiet", struct cyclic_cli, quiet,
		 "Print only at the end, also on a terminal."),
	OPT_FLAG('N', "nsecs", struct cyclic_cli, nano, "Nanoseconds instead of microseconds."),
	OPT_FLAG(0, "smi", struct cyclic_cli, smi,
		 "Count system management interrupts (Intel, the msr module)."),
	OPT_CALL(0, "json", "[FILE]", set_json, "Print one JSON document, or write it to FILE."),
	OPT_TEXT('o', "output", "FILE", struct cyclic_cli, output,
		 "Keep everything in a run file, for culprit latency show, diff, check and plot."),
	OPT_END,
};

/* --- preparing ------------------------------------------------------------------------------- */

static int check(struct cyclic_cli *cli, struct err *err)
{
	if (cli->interval_ns < INTERVAL_MIN_NS)
		return err_set(err, -EINVAL, "-i: the interval must be at least 10 us");
	if (cli->priority > 99)
		return err_set(err, -EINVAL, "-p takes a priority of 1 to 99");
	if (cli->clock > 1)
		return err_set(err, -EINVAL, "-c takes 0 (CLOCK_MONOTONIC) or 1 (CLOCK_REALTIME)");
	if (cli->policy < 0)
		cli->policy = cli->priority ? SCHED_FIFO : SCHED_OTHER;
	if (cli->policy != SCHED_FIFO && cli->policy != SCHED_RR && cli->priority)
		return err_set(err, -EINVAL, "policy %s has no priority -p",
			       policy_name(cli->policy));
	if ((cli->policy == SCHED_FIFO || cli->policy == SCHED_RR) && !cli->priority)
		return err_set(err, -EINVAL, "policy %s needs a priority -p",
			       policy_name(cli->policy));
	if (cli->smp)
		cli->threads = 0;
	if (!cli->has_distance)
		cli->distance_ns = cli->smp || cli->rows ? 0 : 500 * NSEC_PER_USEC;
	if (cpuset_count(&cli->affinity) == 0)
		return affinity_get(0, &cli->affinity);
	return 0;
}

/* The CPU of each thread, in turn. */
static unsigned *place_threads(struct cyclic_cli *cli)
{
	unsigned cpus = cpuset_count(&cli->affinity), *ret;
	int cpu = -1;

	if (!cli->threads)
		cli->threads = cpus;
	ret = calloc(cli->threads, sizeof(*ret));
	for (uint64_t i = 0; ret && i < cli->threads; i++) {
		cpu = cpuset_next(&cli->affinity, (unsigned)(cpu + 1));
		if (cpu < 0)
			cpu = cpuset_next(&cli->affinity, 0);
		ret[i] = (unsigned)cpu;
	}
	return ret;
}

/* --- running --------------------------------------------------------------------------------- */

static uint64_t worst_of(const struct cyclic_thread *threads, uint64_t count)
{
	uint64_t worst = 0;

	for (uint64_t i = 0; i < count; i++)
		worst = MAX(worst, threads[i].latency.values.max);
	return worst;
}

/* On a terminal the lines are printed over themselves. */
static void show(const struct cyclic_cli *cli, const struct cyclic *cyclic, bool first)
{
	struct str out = {0};

	if (!first)
		str_printf(&out, "\033[%uA", (unsigned)cli->threads);
	cyclic_print_threads(cli, cyclic_threads(cyclic), (unsigned)cli->threads, &out);
	fd_write_all(STDOUT_FILENO, str_text(&out), out.len);
	str_fini(&out);
}

static int measure(const struct cyclic_cli *cli, struct cyclic *cyclic, struct latency_run *run,
		   const sigset_t *signals, struct reader_watch *watch, bool *ret_shown)
{
	bool live = !cli->quiet && !(cli->json && !cli->json_file) && isatty(STDOUT_FILENO) == 1;
	const struct timespec now = {0};
	uint64_t begin = clock_monotonic_ns(), worst = 0;
	bool ended = false;
	int r = 0;

	*ret_shown = false;
	run->started_realtime_ns = clock_ns(CLOCK_REALTIME);
	while (r == 0 && !ended) {
		uint64_t past = clock_monotonic_ns() - begin;
		unsigned wait = POLL_MS;

		if (cli->duration_ns && past >= cli->duration_ns)
			break;
		if (cli->duration_ns)
			wait = (unsigned)MIN(wait, (cli->duration_ns - past) / NSEC_PER_MSEC + 1);
		if (sigtimedwait(signals, NULL, &now) > 0)
			break;
		reader_watch_alive(watch, true);
		r = cyclic_poll(cyclic, wait, run, &ended);
		reader_watch_alive(watch, false);
		if (live &&
		    (!cli->on_new_max || worst_of(cyclic_threads(cyclic), cli->threads) > worst)) {
			worst = worst_of(cyclic_threads(cyclic), cli->threads);
			show(cli, cyclic, !*ret_shown);
			*ret_shown = true;
		}
	}
	if (r == 0)
		r = cyclic_stop(cyclic, run);
	run->duration_ns = clock_monotonic_ns() - begin;
	return r;
}

/* --- the result ------------------------------------------------------------------------------ */

static int write_file(const char *path, const struct latency_run *run, bool full, struct err *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r = out ? latency_run_write(run, out, full, err) : -ENOMEM;

	if (out && fclose(out) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		r = path ? file_write_atomic(path, text, size, 0666, err)
			 : fd_write_all(STDOUT_FILENO, text, size);
	free(text);
	return r;
}

static int write_histogram(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
			   struct str *text, struct err *err)
{
	struct str out = {0};
	int r;

	if (!cli->rows)
		return 0;
	cyclic_print_histogram(cli, threads, (unsigned)cli->threads, &out);
	r = str_status(&out);
	if (r == 0 && cli->histogram_file)
		r = file_write_atomic(cli->histogram_file, out.data, out.len, 0666, err);
	else if (r == 0)
		str_append(text, out.data, out.len);
	str_fini(&out);
	return r;
}

static int finish(const struct command *self, const struct cyclic_cli *cli,
		  const struct cyclic *cyclic, const struct latency_run *run, bool shown)
{
	const struct cyclic_thread *threads = cyclic_threads(cyclic), *broken;
	struct str out = {0};
	struct err err = {0};
	int64_t value;
	int r, status = EXIT_DONE;

	vec_for_each(&run->warnings, id)
		cmd_warnf(self, "%s", strtab_text(&run->names, *id));
	if (cli->smi && threads[0].smi < 0)
		cmd_warnf(self, "SMIs cannot be counted: that needs an Intel CPU, the msr module "
				"(modprobe msr) and root");
	broken = cyclic_broken(cyclic, &value);
	if (shown) /* over the lines of the measurement */
		str_printf(&out, "\033[%uA", (unsigned)cli->threads);
	if (!cli->rows || cli->histogram_file || shown)
		cyclic_print_threads(cli, threads, (unsigned)cli->threads, &out);
	r = write_histogram(cli, threads, &out, &err);
	if (broken)
		str_printf(&out, "# Break thread: %d\n# Break value: %llu\n", broken->tid,
			   (unsigned long long)value / (cli->nano ? 1 : NSEC_PER_USEC));
	if (r == 0 && cli->output)
		r = write_file(cli->output, run, true, &err);
	if (r == 0 && cli->json)
		r = write_file(cli->json_file, run, false, &err);
	if (r == 0 && !(cli->json && !cli->json_file))
		status = cmd_write_stdout(self, str_text(&out), out.len);
	str_fini(&out);
	if (r < 0)
		return cmd_fail(self, r, &err);
	if (status != EXIT_DONE)
		return status;
	return broken ? EXIT_THRESHOLD : latency_run_incomplete(run) ? EXIT_INCOMPLETE : EXIT_DONE;
}

static int run_threads(const struct command *self, struct cyclic_cli *cli, const unsigned *cpus,
		       struct latency_run *run)
{
	struct cyclic_options options = {
		.cpus = cpus,
		.threads = (unsigned)cli->threads,
		.policy = cli->policy,
		.priority = (int)cli->priority,
		.interval_ns = cli->interval_ns,
		.distance_ns = cli->distance_ns,
		.spread_ns = cli->align_ns >= 0 ? (uint64_t)cli->align_ns
						: cli->interval_ns / cli->threads,
		.loops = cli->loops,
		.break_ns = cli->break_ns,
		.relative = cli->relative,
		.lock_memory = cli->lock_memory,
		.clock = cli->clock ? CLOCK_REALTIME : CLOCK_MONOTONIC,
		.rows = (unsigned)cli->rows,
		.smi = cli->smi,
	};
	struct reader_watch *watch;
	struct cyclic *cyclic = NULL;
	struct err err = {0};
	sigset_t signals;
	bool shown = false;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* in the threads too: they only look at a flag */
	watch = reader_watch_new();
	r = cyclic_start(&options, run, &cyclic, &err);
	if (r == 0)
		r = measure(cli, cyclic, run, &signals, watch, &shown);
	reader_watch_free(watch);
	r = r < 0 ? cmd_fail(self, r, &err) : finish(self, cli, cyclic, run, shown);
	cyclic_free(cyclic);
	return r;
}

/*
 * cyclictest takes the value of -a, -t and -A as the next word too ("-t 4"), which getopt does not
 * for values that may be left out: such words are joined to their option.
 */
static int join_values(int argc, char **argv, char **ret_texts)
{
	static const char *const names[] = {"-a",         "-t",        "-A",
					    "--affinity", "--threads", "--aligned"};
	int n = 0;

	for (int i = 0; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		bool joins = false;

		argv[n] = argv[i];
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			joins |= !strcmp(argv[i], names[k]) && *value >= '0' && *value <= '9';
		if (joins) {
			if (asprintf(&ret_texts[i], "%s%s%s", argv[i], argv[i][1] == '-' ? "=" : "",
				     value) < 0) {
				ret_texts[i] = NULL;
				return -ENOMEM;
			}
			argv[n] = ret_texts[i++];
		}
		n++;
	}
	argv[n] = NULL;
	return n;
}

static int cyclic_measure(const struct command *self, int argc, char **argv)
{
	struct cyclic_cli cli = {
		.threads = 1,
		.policy = -1,
		.interval_ns = NSEC_PER_MSEC,
		.align_ns = -1,
		.latency_us = UINT64_MAX,
	};
	struct journal *journal = NULL;
	struct latency_run run;
	struct err err = {0};
	unsigned *cpus;
	int r, first = options_parse(self, &cli, argc, argv);

	if (first < argc)
		return cmd_failf(self, "takes no operands: '%s'", argv[first]);
	r = check(&cli, &err);
	if (r < 0)
		return cmd_fail(self, r, &err);
	if (cli.latency_us != UINT64_MAX) {
		r = journal_new("", &journal);
		if (r == 0)
			r = journal_hold_dma_latency(journal, (unsigned)cli.latency_us, &err);
		if (r < 0) {
			journal_free(journal);
			return cmd_fail(self, r, &err);
		}
	}
	cpus = place_threads(&cli);
	if (!cpus || latency_run_init(&run, LATENCY_CYCLIC, ENGINE_USER) < 0) {
		free(cpus);
		journal_free(journal);
		return cmd_failf(self, "out of memory");
	}
	r = run_threads(self, &cli, cpus, &run);
	latency_run_fini(&run);
	journal_free(journal);
	free(cpus);
	return r;
}

static int cyclic_run(const struct command *self, int argc, char **argv)
{
	char **words = calloc((size_t)argc + 1, sizeof(*words));
	char **texts = calloc((size_t)argc + 1, sizeof(*texts));
	int count, status = EXIT_FAILED;

	if (words && texts) {
		memcpy(words, argv, (size_t)argc * sizeof(*words));
		count = join_values(argc, words, texts);
		status = count < 0 ? cmd_failf(self, "out of memory")
				   : cyclic_measure(self, count, words);
	}
	for (int i = 0; texts && i < argc; i++)
		free(texts[i]);
	free(texts);
	free(words);
	return status;
}

const struct command command_cyclic = {
	.name = "cyclic",
	.args = "[OPTIONS]",
	.summary = "measure how late sleeping threads wake, as cyclictest does",
	.details =
		"Threads sleep until a time and note how late they are back in user space. The "
		"options and the output are cyclictest's: one T: line for each thread, to which "
		"percentiles are added, and its histogram. Times are microseconds.\n"
		"\n"
		"Two things differ. Power management is left as it is, unless --latency says "
		"otherwise: cyclictest keeps the CPUs out of their idle states, so that its "
		"numbers "
		"are better than those of the programs that run without it. And no value is thrown "
		"away: what lies beyond the histogram is listed below it, and the percentiles know "
		"it.\n"
		"\n"
		"culprit timerlat measures the same wake-ups and says who was in the way.",
	.examples =
		"culprit cyclic -S -p 95 -m -D 60 -q\n"
		"\ta minute on every CPU with a real-time priority\n"
		"culprit cyclic -a 2-3 -t 2 -p 95 -i 200 -H 100 -D 1h -q -o after.json\n"
		"\ta histogram of two isolated CPUs, and a run file to compare with another day's\n"
		"culprit cyclic -S -p 95 -b 50\n"
		"\tuntil a thread is more than 50 us late: status 2\n",
	.exits = "0 measured, 1 failure, 2 a latency was above -b, 3 records were lost",
	.options = cyclic_options,
	.run = cyclic_run,
};
