/*
 * Known noise is found by engine B: of the events that tests/programs/noise makes at least 99 % are
 * seen, under their name, with their length. All is counted in events; on a busy machine a check is
 * tried again.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "base/vec.h"
#include "harness/tap.h"
#include "latency/engine.h"

#define ok(condition, ...) tap_expect((condition), __FILE__, __LINE__, __VA_ARGS__)

#define TRIES      5
#define NO_RIGHT   77
#define AFTER_NS   (100 * NSEC_PER_MSEC) /* read on after the noise has ended */
#define GIVE_UP_NS (60 * NSEC_PER_SEC)
#define EDGE_NS    NSEC_PER_MSEC /* an event so near a period's end may be cut by it */
#define MAKER      "noise-maker"

struct span {
	uint64_t start, end;
	int64_t net;
};

struct found {
	struct latency_sink sink;
	struct latency_run run;
	bool begun;               /* the first record came: the loop runs */
	VEC(struct span) threads; /* noise-maker's times on the CPU */
	VEC(struct span) periods; /* when the loop measured */
};

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	struct found *found = (struct found *)sink;

	found->begun = true;
	if (record->kind == LATENCY_NOISE && record->noise.class == NOISE_THREAD &&
	    !strcmp(record->noise.name, MAKER)) {
		struct span span = {(uint64_t)record->noise.start_ns, record->time_ns,
				    record->noise.duration_ns};

		if (vec_push(&found->threads, span))
			return -ENOMEM;
	}
	if (record->kind == LATENCY_PERIOD) {
		struct span span = {record->time_ns - record->period.runtime_ns, record->time_ns,
				    0};

		if (vec_push(&found->periods, span))
			return -ENOMEM;
	}
	return latency_run_take(&found->run, record);
}

static void found_fini(struct found *found)
{
	vec_fini(&found->threads);
	vec_fini(&found->periods);
	latency_run_fini(&found->run);
}

/* --- the noise ------------------------------------------------------------------------------- */

static unsigned the_cpu(void)
{
	static int cpu = -1;

	if (cpu < 0)
		cpu = sched_getcpu();
	return (unsigned)cpu;
}

/* Starts the program with "KIND CPU ARGS"; its output goes to file. */
static pid_t start_noise(const char *kind, const char *args, int out)
{
	const char *folder = getenv("CULPRIT_TEST_PROGRAMS");
	char command[512];
	pid_t pid;

	if (!folder)
		return -1;
	snprintf(command, sizeof(command), "exec %s/noise %s %u %s", folder, kind, the_cpu(), args);
	pid = fork();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/*
 * What is measured: the loop of osnoise is a real-time thread that leaves a tenth of the time to
 * others, so that on a busy machine the noise is still the only one above it.
 */
static struct latency_options options_of(enum latency_tool tool)
{
	bool wakes = tool == LATENCY_TIMERLAT;

	return (struct latency_options){
		.tool = tool,
		.period_ns = wakes ? 200 * NSEC_PER_USEC : 100 * NSEC_PER_MSEC,
		.runtime_ns = 90 * NSEC_PER_MSEC,
		.threshold_ns = 1000,
		.policy = wakes ? -1 : SCHED_FIFO,
		.priority = 50,
		.clock = CLOCK_MONOTONIC,
	};
}

/* Measures while the noise is made. The noise's exit status, or a negative errno. */
static int measure(const struct latency_options *chosen, const char *kind, const char *args,
		   int out, struct found *found)
{
	struct latency_options options = *chosen;
	struct latency_engine *engine;
	struct err err = {0};
	uint64_t end = 0, give_up = clock_monotonic_ns() + GIVE_UP_NS;
	int status = -1, r;
	pid_t pid;

	memset(found, 0, sizeof(*found));
	found->sink.take = take;
	latency_run_init(&found->run, options.tool, ENGINE_BPF);
	cpuset_add(&options.cpus, the_cpu());
	r = engine_bpf_ops.start(&options, &found->run, &engine, &err);
	if (r < 0) {
		ok(false, "start: %s", err_text(&err, r));
		return r;
	}
	while (r >= 0 && !found->begun && clock_monotonic_ns() < give_up)
		r = engine_bpf_ops.poll(engine, 20, &found->sink, &err);
	pid = start_noise(kind, args, out);
	while (r >= 0 && clock_monotonic_ns() < give_up && !(end && clock_monotonic_ns() > end)) {
		r = engine_bpf_ops.poll(engine, 20, &found->sink, &err);
		if (!end && pid > 0 && waitpid(pid, &status, WNOHANG) == pid)
			end = clock_monotonic_ns() + AFTER_NS;
	}
	if (!end && pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	if (r >= 0)
		r = engine_bpf_ops.stop(engine, &found->sink, &found->run, &err);
	engine_bpf_ops.free(engine);
	if (r < 0)
		return r;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static bool can_measure(void)
{
	struct latency_options options = {
		.tool = LATENCY_OSNOISE,
		.period_ns = NSEC_PER_SEC,
		.clock = CLOCK_MONOTONIC,
	};
	struct err err = {0};
	int r;

	cpuset_add(&options.cpus, the_cpu());
	r = engine_bpf_ops.probe(&options, &err);
	if (r < 0)
		tap_skip("%s", err_text(&err, r));
	else if (!getenv("CULPRIT_TEST_PROGRAMS"))
		tap_skip("CULPRIT_TEST_PROGRAMS is not set");
	return r == 0 && getenv("CULPRIT_TEST_PROGRAMS");
}

static FILE *scratch(void)
{
	FILE *file = tmpfile();

	if (!file)
		ok(false, "a temporary file: %s", strerror(errno));
	return file;
}

/* --- checks ---------------------------------------------------------------------------------- */

static int by_value(const void *va, const void *vb)
{
	const int64_t a = *(const int64_t *)va, b = *(const int64_t *)vb;

	return a < b ? -1 : a > b;
}

struct score {
	unsigned events, seen;
	int64_t median_error; /* of the lengths */
};

/* Noise between the loop's periods is none. */
static bool was_measured(const struct found *found, uint64_t start, uint64_t end)
{
	if (found->run.tool == LATENCY_TIMERLAT)
		return true;
	vec_for_each(&found->periods, period) {
		if (period->start + EDGE_NS < start && end + EDGE_NS < period->end)
			return true;
	}
	return false;
}

/*
 * How far a length is from what it can be: the thread had the CPU at least from its first to its
 * last reading of the clock, and at most as long as the kernel charges it, which begins with the
 * wake-up (rq_clock_skip_update()) and not with the switch.
 */
static int64_t length_error(int64_t net, int64_t at_least, int64_t at_most)
{
	if (net < at_least)
		return at_least - net;
	return net > at_most ? net - at_most : 0;
}

/* Each event must overlap with a time on the CPU that was recorded. */
static void match(FILE *events, const struct found *found, struct score *ret)
{
	unsigned long long start, end, cpu;
	VEC(int64_t) errors = {0};

	memset(ret, 0, sizeof(*ret));
	rewind(events);
	while (fscanf(events, "%llu %llu %llu", &start, &end, &cpu) == 3) {
		int64_t net = -1;

		if (!was_measured(found, start, end))
			continue;
		ret->events++;
		for (size_t i = 0; i < found->threads.len; i++) {
			const struct span *span = &found->threads.data[i];

			if (span->start < end && span->end > start)
				net = MAX(net, span->net);
		}
		if (net < 0)
			continue;
		ret->seen++;
		if (vec_push(&errors, length_error(net, (int64_t)(end - start), (int64_t)cpu)))
			break;
	}
	if (errors.len) {
		qsort(errors.data, errors.len, sizeof(*errors.data), by_value);
		ret->median_error = errors.data[errors.len / 2];
	}
	vec_fini(&errors);
}

/* The source of a class with the largest total, NULL none. */
static const struct noise_source *first_of(const struct latency_run *run, enum noise_class class)
{
	const struct noise_source *first = NULL;

	vec_for_each(&run->sources, source) {
		if (source->class == class && source->number != 0 &&
		    (!first || source->total_ns > first->total_ns))
			first = source;
	}
	return first;
}

static bool is_first(const struct latency_run *run, enum noise_class class, const char *name,
		     const char *function)
{
	const struct noise_source *first = first_of(run, class);

	return first && !strcmp(strtab_text(&run->names, first->name), name) &&
	       (!function || !strcmp(strtab_text(&run->names, first->function), function));
}

static void thread_noise(enum latency_tool tool, const char *args)
{
	struct latency_options options = options_of(tool);
	bool lengths = tool == LATENCY_OSNOISE;
	struct score score = {0};
	bool seen = false, named = false, long_enough = false;
	int status = 0;

	if (!can_measure())
		return;
	for (int try = 0; try < TRIES && !(seen && named && long_enough); try++) {
		struct found found;
		FILE *events = scratch();

		if (!events)
			return;
		status = measure(&options, "thread", args, fileno(events), &found);
		if (status == 0) {
			match(events, &found, &score);
			seen = score.events >= 100 && score.seen * 100 >= score.events * 99;
			named = is_first(&found.run, NOISE_THREAD, MAKER, NULL);
			long_enough = !lengths || score.median_error <= 5000;
		}
		found_fini(&found);
		fclose(events);
		if (status == NO_RIGHT) {
			tap_skip("this user may not have a real-time thread");
			return;
		}
	}
	ok(status == 0, "the noise is made: status %d", status);
	ok(seen, "%u of %u events are seen", score.seen, score.events);
	ok(named, "its thread is the first of the threads");
	ok(long_enough, "lengths: median error %lld ns", (long long)score.median_error);
}

/* Each time on the CPU is longer than the period: it delays at least one wake-up. */
TEST(timerlat_finds_a_thread)
{
	thread_noise(LATENCY_TIMERLAT, "420 5000 200");
}

TEST(osnoise_finds_a_thread)
{
	thread_noise(LATENCY_OSNOISE, "100 3000 300");
}

TEST(osnoise_finds_short_times)
{
	thread_noise(LATENCY_OSNOISE, "20 2000 400");
}

/* So often the kernel ran this softirq on the CPU since the start; 0 when it does not say. */
static unsigned long long softirqs(const char *name)
{
	FILE *file = fopen("/proc/softirqs", "re");
	unsigned long long count = 0;
	char line[8192];

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strchr(line, ':');

		if (!at || !strstr(line, name) || strstr(line, name) > at)
			continue;
		at++;
		for (unsigned cpu = 0; cpu <= the_cpu(); cpu++)
			count = strtoull(at, &at, 10);
	}
	if (file)
		fclose(file);
	return count;
}

/*
 * Noise in numbers: the source is the first of its class and counted at least as often as asked, in
 * percent of what was made. Softirqs coalesce, the more so on a busy CPU: the kernel's own count,
 * where it is the lower one, is what was really made.
 */
static void counted_noise(const char *kind, const char *args, enum noise_class class,
			  const char *name, const char *function, unsigned percent)
{
	struct latency_options options = options_of(LATENCY_OSNOISE);
	unsigned long long made = 0, counted = 0;
	bool first = false;
	int status = 0;

	/* without pause: all that is made is counted */
	options.period_ns = options.runtime_ns = 30 * NSEC_PER_SEC;
	options.policy = -1;
	if (!can_measure())
		return;
	for (int try = 0; try < TRIES && !(first && made && counted * 100 >= made * percent);
	     try++) {
		unsigned long long run = class == NOISE_SOFTIRQ ? softirqs(name) : 0;
		struct found found;
		FILE *out = scratch();

		if (!out)
			return;
		made = counted = 0;
		status = measure(&options, kind, args, fileno(out), &found);
		rewind(out);
		if (status == 0 && fscanf(out, "%llu", &made) == 1) {
			run = run ? softirqs(name) - run : 0;
			made = run ? MIN(made, run) : made;
			first = is_first(&found.run, class, name, function);
			vec_for_each(&found.run.sources, source) {
				if (source->class == class &&
				    !strcmp(strtab_text(&found.run.names, source->name), name) &&
				    (!function ||
				     !strcmp(strtab_text(&found.run.names, source->function),
					     function)))
					counted += source->count;
			}
		}
		found_fini(&found);
		fclose(out);
		if (status == NO_RIGHT) {
			tap_skip("this user may not have a real-time thread");
			return;
		}
	}
	ok(status == 0 && made > 0, "the noise is made: status %d, %llu", status, made);
	ok(first, "%s %s is the first of its kind", name, function ? function : "");
	ok(counted * 100 >= made * percent, "%llu of %llu are counted, at least %u %%", counted,
	   made, percent);
}

TEST(osnoise_names_a_softirq)
{
	if (access("/sys/kernel/realtime", F_OK) == 0)
		tap_skip("softirqs are threads on this kernel");
	else
		counted_noise("udp", "40000", NOISE_SOFTIRQ, "NET_RX", NULL, 80);
}

/* An interrupt in which several timers expire is named by the one that took longest. */
TEST(osnoise_names_a_timer)
{
	counted_noise("timer", "25 40000", NOISE_IRQ,
#ifdef __aarch64__
		      "arch_timer",
#else
		      "local_timer",
#endif
		      "timerfd_tmrproc", 80);
}
