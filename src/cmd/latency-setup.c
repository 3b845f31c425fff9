/*
 * The beginning of a measurement: which CPUs, which engine, what is changed in the system (through
 * a journal, so that it is put back in every case), and its end.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/util.h"
#include "cmd/latency-live.h"
#include "host/host.h"

#define REASON_BYTES 1024

/* --- CPUs ---------------------------------------------------------------------------------- */

/* Before any thread starts: all of them come along, until they pin themselves. */
static int move_aside(const struct cpuset *cpus, struct err *err)
{
	int r = cpuset_count(cpus) > 0 ? affinity_set(0, cpus) : 0;

	return r < 0 ? err_set(err, r, "--house-keeping: %s", strerrordesc_np(-r)) : 0;
}

static int choose_cpus(struct live *live, struct err *err)
{
	const struct host host = {.root = ""};
	struct latency_cli *cli = live->cli;
	struct host_topology topology;
	int r = affinity_get(0, &live->options.cpus);

	if (r < 0 || !cli->has_cpus)
		return r;
	if (host_topology_read(&host, &topology, NULL) == 0) {
		bool known = cpuset_count(&topology.online) > 0;

		cpuset_for_each(&cli->cpus, cpu) {
			if (known && !cpuset_has(&topology.online, (unsigned)cpu))
				r = err_set(err, -ENODEV, "--cpus: CPU %d is not online", cpu);
		}
		host_topology_fini(&topology);
	}
	live->options.cpus = cli->cpus;
	return r;
}

/* CPUs that remedies may send others to. */
static void spare_cpus(struct live *live)
{
	const struct host host = {.root = ""};
	struct host_topology topology;
	struct cpuset spare = {0};

	if (host_topology_read(&host, &topology, NULL) < 0)
		return;
	cpuset_for_each(&topology.online, cpu) {
		if (!cpuset_has(&live->options.cpus, (unsigned)cpu))
			cpuset_add(&spare, (unsigned)cpu);
	}
	host_topology_fini(&topology);
	if (live->analysis)
		latency_analysis_spare_cpus(live->analysis, &spare);
}

/* --- options ------------------------------------------------------------------------------- */

static void fill_options(struct live *live)
{
	const struct latency_cli *cli = live->cli;
	struct latency_options *o = &live->options;

	o->tool = cli->tool;
	o->period_ns = cli->period_ns;
	o->runtime_ns = cli->tool == LATENCY_TIMERLAT ? 0 : cli->runtime_ns;
	o->threshold_ns = cli->threshold_ns;
	o->limits =
		(struct latency_limits){cli->irq_ns, cli->thread_ns, cli->single_ns, cli->total_ns};
	o->stack_ns = cli->stack_ns;
	o->workload = cli->kernel_threads ? WORKLOAD_KERNEL
		      : cli->user_load    ? WORKLOAD_EXTERNAL
					  : WORKLOAD_USER;
	o->workload_chosen = cli->user_threads || cli->kernel_threads || cli->user_load;
	o->policy = cli->policy;
	o->priority = cli->priority;
	o->dl_runtime_ns = cli->dl_runtime_ns;
	o->dl_period_ns = cli->dl_period_ns;
	o->cgroup = cli->cgroup;
	o->align_ns = cli->align_ns;
	o->aligned = cli->aligned;
	o->clock = CLOCK_MONOTONIC;
	o->trace = cli->trace;
	o->buffer_kib = (unsigned)cli->buffer_kib;
	o->events = cli->events.data;
	o->event_count = (unsigned)cli->events.len;
}

/* Trace events need tracefs, not the kernel's latency tracers: where another engine measures, a
 * recorder of ours keeps them. */
static int choose_engine(struct live *live, struct err *err)
{
	char reason[REASON_BYTES] = "", forced = 0;
	const char *letter = live->cli->engine;
	int r;

	if (letter) {
		if (!*letter || letter[1])
			return err_set(err, -EINVAL, "there is no engine '%s': K, B, L or U",
				       letter);
		forced = *letter;
	}
	r = latency_engine_choose(&live->options, forced, &live->ops, reason, sizeof(reason), err);
	if (r < 0 && live->options.event_count > 0) {
		struct latency_options without = live->options;
		struct err again = {0};

		without.event_count = 0;
		if (latency_engine_choose(&without, forced, &live->ops, reason, sizeof(reason),
					  &again) == 0) {
			live->options = without;
			r = 0;
		}
	}
	if (r < 0)
		return r;
	live->run.engine = live->ops->id;
	/* The other engines' rings hold interrupts and threads anyway. */
	if (live->ops->id == ENGINE_TRACER && live->cli->mode == MODE_TRACE &&
	    live->options.event_count == 0) {
		live->options.events = trace_flight_events;
		live->options.event_count = trace_flight_event_count;
	}
	if (live->cli->debug)
		fprintf(stderr, "culprit %s: engine %c: %s\n", live->self->name,
			latency_engine_letter(live->ops->id), reason);
	return strtab_intern_text(&live->run.names, reason, &live->run.engine_reason);
}

/* --- knobs --------------------------------------------------------------------------------- */

static int set_knobs(struct live *live, struct err *err)
{
	const struct latency_cli *cli = live->cli;
	char text[48];
	int r = 0;

	if (cli->dma_latency_us != UINT64_MAX) {
		r = journal_hold_dma_latency(live->journal, (unsigned)cli->dma_latency_us, err);
		if (r < 0)
			return err_wrap(err, r, "--dma-latency");
		snprintf(text, sizeof(text), "%llu us", (unsigned long long)cli->dma_latency_us);
		r = latency_run_condition(&live->run, "cpu_dma_latency", text);
	} else {
		r = latency_run_condition(&live->run, "cpu_dma_latency", "not touched");
	}
	if (r == 0 && cli->has_deepest_idle) {
		r = journal_limit_idle(live->journal, &live->options.cpus, cli->deepest_idle, err);
		if (r < 0)
			return err_wrap(err, r, "--deepest-idle-state");
		snprintf(text, sizeof(text), "%d", cli->deepest_idle);
		r = latency_run_condition(&live->run, "deepest idle state", text);
	}
	return r;
}

static int start_flight(struct live *live, struct err *err)
{
	const struct latency_cli *cli = live->cli;
	struct trace_flight_options options = {.clock = "mono",
					       .buffer_kib = (unsigned)cli->buffer_kib,
					       .events = cli->events.data,
					       .event_count = (unsigned)cli->events.len};
	int r;

	if (cli->events.len == 0 || live->options.event_count > 0)
		return 0; /* none, or the engine keeps them */
	r = tracefs_find("", live->journal, &live->tracefs, err);
	if (r == 0)
		r = trace_flight_start(&live->tracefs, live->journal, &options, &live->flight, err);
	return r < 0 ? err_wrap(err, r, "--event") : 0;
}

static int repair(struct live *live, struct err *err)
{
	struct journal_report report = {0};
	int r = journal_repair("", 0, &report, err);

	if (r == 0 && report.restored)
		cmd_warnf(live->self, "%u settings that a killed culprit left were put back",
			  report.restored);
	if (live->cli->debug && report.text.len)
		fputs(str_text(&report.text), stderr);
	journal_report_fini(&report);
	return 0; /* what may not be repaired by this user does not keep it from measuring */
}

/* --- the run ------------------------------------------------------------------------------- */

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	struct live *live = (struct live *)((char *)sink - offsetof(struct live, sink));
	int r;

	if (live->warming)
		return 0;
	/* what the kernel knows of is no noise of the hardware */
	if (live->cli->tool == LATENCY_HWNOISE && record->kind == LATENCY_NOISE &&
	    record->noise.class > NOISE_NMI)
		return 0;
	r = live->analysis ? latency_analysis_take(live->analysis, record) : 0;
	/* the timer that is measured is in nobody's way */
	return r == 0 ? latency_run_take(&live->run, record) : MIN(r, 0);
}

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int make_run(struct live *live)
{
	const struct latency_cli *cli = live->cli;
	int r = latency_run_init(&live->run, cli->tool, ENGINE_USER);

	if (r < 0)
		return r;
	live->run.period_ns = live->options.period_ns;
	live->run.runtime_ns = live->options.runtime_ns;
	live->run.threshold_ns = cli->threshold_ns;
	live->run.limits = live->options.limits;
	if (cli->tool == LATENCY_TIMERLAT)
		r = latency_analysis_new(&live->run, 0, &live->analysis);
	return r;
}

static void warn_of_starvation(struct live *live)
{
	const struct latency_options *o = &live->options;
	bool real_time = o->policy == SCHED_FIFO || o->policy == SCHED_RR;

	if (o->tool != LATENCY_TIMERLAT && real_time && o->runtime_ns >= o->period_ns &&
	    live->ops->id == ENGINE_TRACER)
		(void)latency_run_warn(
			&live->run,
			"a real-time loop without pause: threads of these CPUs starve and "
			"real-time throttling shows as noise; choose a runtime shorter than "
			"the period");
}

int latency_live_start_engine(struct live *live, struct err *err)
{
	size_t blind = live->run.cannot_see.len;
	int r = live->ops->start(&live->options, &live->run, &live->engine, err);

	if (r < 0)
		return r;
	/* a second start says the same again */
	if (blind > 0)
		live->run.cannot_see.len = blind;
	return 0;
}

void latency_live_stop_engine(struct live *live)
{
	if (live->engine)
		live->ops->free(live->engine);
	live->engine = NULL;
}

static int begin(struct live *live, struct err *err)
{
	int r = choose_cpus(live, err);

	if (r == 0)
		fill_options(live);
	if (r == 0)
		r = make_run(live);
	if (r == 0)
		r = choose_engine(live, err);
	if (r == 0)
		r = repair(live, err);
	if (r == 0)
		r = journal_new("", &live->journal);
	if (r < 0)
		return r;
	journal_guard();
	spare_cpus(live);
	warn_of_starvation(live);
	r = move_aside(&live->cli->housekeeping, err);
	live->watch = reader_watch_new();
	if (r == 0)
		r = set_knobs(live, err);
	if (r == 0)
		r = start_flight(live, err);
	if (r == 0)
		r = latency_live_start_engine(live, err);
	return r;
}

int latency_live_begin(struct live *live)
{
	struct err err = {0};
	int r;

	sigemptyset(&live->signals);
	sigaddset(&live->signals, SIGINT);
	sigaddset(&live->signals, SIGTERM);
	sigaddset(&live->signals, SIGHUP);
	/* before any thread starts: all of them leave these to the loop */
	sigprocmask(SIG_BLOCK, &live->signals, NULL);
	live->sink.take = take;
	r = begin(live, &err);
	if (r < 0)
		return cmd_fail(live->self, r, &err);
	live->warming = live->cli->warm_up_ns > 0;
	live->begin_ns = clock_monotonic_ns();
	live->run.started_realtime_ns = realtime_ns();
	return EXIT_DONE;
}

/* --- the flight recorder ------------------------------------------------------------------- */

static int write_trace(struct live *live, const char *path, struct err *err)
{
	int r = -ENOTSUP;

	if (live->flight)
		r = trace_flight_write(live->flight, path, err);
	else if (live->engine && live->ops->trace)
		r = live->ops->trace(live->engine, path, err);
	else
		err_set(err, r, "engine %c keeps no flight recorder",
			latency_engine_letter(live->ops->id));
	if (r == 0 && !live->cli->quiet)
		fprintf(stderr, "culprit %s: trace written to %s\n", live->self->name, path);
	return r < 0 ? err_wrap(err, r, "trace to %s", path) : 0;
}

int latency_live_trace(void *arg, const char *file, struct err *err)
{
	struct live *live = arg;
	char path[64];
	int r;

	if (!file)
		file = live->cli->trace_file;
	if (file)
		return write_trace(live, file, err);
	snprintf(path, sizeof(path), "%s_trace.txt", live->self->name);
	r = write_trace(live, path, err);
	if (r < 0 || live->cli->mode != MODE_TRACE)
		return r;
	snprintf(path, sizeof(path), "%s_trace.dat", live->self->name);
	r = write_trace(live, path, err);
	if (r != -EOPNOTSUPP)
		return r;
	cmd_warnf(live->self, "%s", err_text(err, r));
	err->text[0] = '\0';
	return 0;
}

void latency_live_fini(struct live *live)
{
	latency_live_stop_engine(live);
	reader_watch_free(live->watch);
	if (live->flight)
		trace_flight_close(live->flight);
	trace_flight_free(live->flight);
	journal_free(live->journal);
	latency_analysis_free(live->analysis);
	latency_run_fini(&live->run);
}
