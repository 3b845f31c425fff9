/*
 * Engine K: the kernel's own timerlat, osnoise and hwlat tracers, in a tracefs instance of our own,
 * read as binary pages.
 *
 * The tracers' settings are global: everything goes through the journal, a lock keeps two culprits
 * apart, and settings that somebody else's tracer runs with are never changed under it. After a
 * threshold the kernel switches recording off in the interrupt itself; what stands in the buffers
 * then is read before the stop is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "host/host.h"
#include "latency/engine-tracer-internal.h"

#define PAGES_PER_LOOK 16  /* of one CPU: the clock is looked at so often */
#define POLL_STEP_MS   100 /* so often a stop is looked for; a flood keeps poll() no longer */

/* --- probe ----------------------------------------------------------------------------------- */

/* Where tracefs is not mounted, starting will mount it: look into a mount that nobody else sees. */
static int probe_unmounted(const struct latency_options *options, struct err *err)
{
	int filesystem = (int)syscall(SYS_fsopen, "tracefs", 1 /* close on exec */), mount;
	struct tracefs tracefs = {.root = ""};
	enum tracer_kind kind;
	int r;

	if (filesystem < 0)
		return -errno;
	syscall(SYS_fsconfig, filesystem, 6 /* create */, NULL, NULL, 0);
	mount = (int)syscall(SYS_fsmount, filesystem, 1 /* close on exec */, 0);
	close(filesystem);
	if (mount < 0)
		return -errno;
	snprintf(tracefs.path, sizeof(tracefs.path), "/proc/self/fd/%d", mount);
	r = tracer_choose(&tracefs, options, &kind, err);
	close(mount);
	return r;
}

static int probe(const struct latency_options *options, struct err *err)
{
	struct tracefs tracefs;
	enum tracer_kind kind;
	int r = tracefs_find("", NULL, &tracefs, err);

	if (r == -ENOENT && geteuid() == 0) {
		r = probe_unmounted(options, err);
		return r == 0 || r == -ENOTSUP || r == -ERANGE
			       ? r
			       : err_set(err, -ENOENT, "tracefs is not mounted and cannot be: %s",
					 strerrordesc_np(-r));
	}
	return r < 0 ? r : tracer_choose(&tracefs, options, &kind, err);
}

/* --- what the run is told -------------------------------------------------------------------- */

static int blind(struct latency_run *run, const char *sentence)
{
	uint32_t id;
	int r = strtab_intern_text(&run->names, sentence, &id);

	return r < 0 ? r : vec_push(&run->cannot_see, id);
}

static int condition(struct latency_run *run, const char *name, const char *value)
{
	struct latency_condition row;
	int r = strtab_intern_text(&run->names, name, &row.name);

	if (r == 0)
		r = strtab_intern_text(&run->names, value, &row.value);
	return r < 0 ? r : vec_push(&run->conditions, row);
}

static int describe(const struct latency_engine *engine, struct latency_run *run)
{
	static const char *const workloads[] = {"user threads", "kernel threads",
						"threads of another program"};
	enum latency_workload workload = tracer_workload(&engine->tracefs, &engine->options);
	int r = strtab_intern_text(&run->names, "trace clock local", &run->clock);

	if (r == 0)
		r = condition(run, "tracer", tracer_name(engine->kind));
	if (r == 0 && engine->kind != TRACER_HWLAT)
		r = condition(run, "workload", workloads[workload]);
	if (r == 0 && engine->kind == TRACER_TIMERLAT && workload == WORKLOAD_KERNEL)
		r = blind(run, "the return to user space: kernel threads are measured");
	if (r == 0 && engine->kind == TRACER_HWLAT)
		r = blind(run, "the share of time without noise: the hwlat tracer tells only gaps");
	return r;
}

/* --- reading --------------------------------------------------------------------------------- */

static int open_pipes(struct latency_engine *engine, struct err *err)
{
	unsigned count = 0;

	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	engine->page = malloc(engine->layout.page_size);
	engine->pipes = calloc(cpuset_count(&engine->options.cpus) + 1, sizeof(*engine->pipes));
	if (engine->epoll < 0 || !engine->page || !engine->pipes)
		return engine->epoll < 0 ? -errno : -ENOMEM;
	cpuset_for_each(&engine->options.cpus, cpu) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = count};
		int fd = tracefs_open(&engine->instance.at, O_RDONLY | O_NONBLOCK,
				      "per_cpu/cpu%d/trace_pipe_raw", cpu);

		if (fd < 0)
			return err_set(err, fd, "CPU %d: trace_pipe_raw: %s", cpu,
				       strerrordesc_np(-fd));
		engine->pipes[count++] = (struct tracer_pipe){(unsigned)cpu, fd};
		engine->pipe_count = count;
		if (epoll_ctl(engine->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			return -errno;
	}
	return 0;
}

/* Until nothing is left or the time is over: where decoding takes longer than the kernel needs to
 * write, there is always something left. */
static int drain_cpu(struct latency_engine *engine, const struct tracer_pipe *pipe, uint64_t end,
		     struct latency_sink *sink, struct err *err)
{
	int given = 0;

	for (unsigned pages = 0;; pages++) {
		ssize_t n;
		int r;

		if (pages % PAGES_PER_LOOK == PAGES_PER_LOOK - 1 && clock_monotonic_ns() >= end)
			return given;
		n = read(pipe->fd, engine->page, engine->layout.page_size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 || errno == EAGAIN
				       ? given
				       : err_set(err, -errno, "CPU %u: trace_pipe_raw: %s",
						 pipe->cpu, strerrordesc_np(errno));
		r = trace_decoder_page(engine->decoder, pipe->cpu, engine->page, (size_t)n, sink,
				       err);
		if (r < 0)
			return r;
		given += r;
	}
}

/* Sees the records go by: the kernel's message of a stop may be missing. */
struct tracer_sink {
	struct latency_sink sink;
	struct latency_engine *engine;
	struct latency_sink *to;
};

static int watch(struct latency_sink *sink, const struct latency_record *record)
{
	struct tracer_sink *watching = (struct tracer_sink *)sink;

	if (record->kind == LATENCY_STOPPED)
		watching->engine->stopped_told = true;
	else if (record->kind == LATENCY_SAMPLE || record->kind == LATENCY_PERIOD ||
		 record->kind == LATENCY_GAP)
		watching->engine->last_cpu = record->cpu;
	return watching->to->take(watching->to, record);
}

/* all: however long it takes; for recorders that are switched off. */
static int drain(struct latency_engine *engine, bool all, struct latency_sink *sink,
		 struct err *err)
{
	struct tracer_sink watching = {{watch}, engine, sink};
	int given = 0;

	for (unsigned i = 0; i < engine->pipe_count; i++) {
		uint64_t share = POLL_STEP_MS * NSEC_PER_MSEC / engine->pipe_count;
		uint64_t end = all ? UINT64_MAX : clock_monotonic_ns() + share;
		int r = drain_cpu(engine, &engine->pipes[i], end, &watching.sink, err);

		if (r < 0)
			return r;
		given += r;
	}
	return given;
}

static int tell_stop(struct latency_engine *engine, struct latency_sink *sink)
{
	struct latency_record record = {
		.kind = LATENCY_STOPPED, .cpu = engine->last_cpu, .pid = -1};

	if (engine->stopped_told)
		return 0;
	engine->stopped_told = true;
	return sink->take(sink, &record);
}

static int poll_records(struct latency_engine *engine, int timeout_ms, struct latency_sink *sink,
			struct err *err)
{
	uint64_t end = clock_monotonic_ns() + (uint64_t)MAX(timeout_ms, 0) * NSEC_PER_MSEC;

	for (;;) {
		uint64_t now = clock_monotonic_ns();
		int left_ms =
			now < end ? (int)((end - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) : 0;
		struct epoll_event events[16];
		bool on;
		int r, given = 0;

		if (epoll_wait(engine->epoll, events, ARRAY_LEN(events),
			       MIN(left_ms, POLL_STEP_MS)) < 0 &&
		    errno == EINTR)
			left_ms = 0; /* a signal wants the caller's attention */
		on = trace_instance_on(&engine->instance);
		do {
			r = drain(engine, !on, sink, err);
			given += MAX(r, 0);
		} while (r > 0 && !on);
		if (r < 0)
			return r;
		if (!on) {
			r = tell_stop(engine, sink);
			return r < 0 ? r : -ECANCELED;
		}
		if (given > 0 || left_ms == 0)
			return given;
	}
}

/* --- start and end --------------------------------------------------------------------------- */

static void close_pipes(struct latency_engine *engine)
{
	for (unsigned i = 0; i < engine->pipe_count; i++)
		close(engine->pipes[i].fd);
	engine->pipe_count = 0;
}

/* Async-signal-safe: whatever keeps the instances busy or the workload running. */
static void let_go(void *arg)
{
	struct latency_engine *engine = arg;

	tracer_kill_threads(engine);
	close_pipes(engine);
	if (engine->flight)
		trace_flight_close(engine->flight);
}

static void free_engine(struct latency_engine *engine)
{
	if (!engine)
		return;
	let_go(engine);
	trace_flight_free(engine->flight);
	engine->flight = NULL;
	journal_free(engine->journal);
	if (engine->epoll >= 0)
		close(engine->epoll);
	trace_decoder_free(engine->decoder);
	kernel_names_fini(&engine->names);
	free(engine->pipes);
	free(engine->page);
	free(engine);
}

static int start_flight(struct latency_engine *engine, struct err *err)
{
	static const struct latency_event noise = {"osnoise", NULL, NULL, NULL};
	struct trace_flight_options options = {
		.tracer = tracer_name(engine->kind),
		.buffer_kib = engine->options.buffer_kib,
		.events = engine->options.events,
		.event_count = engine->options.event_count,
	};
	int r;

	if (!engine->options.trace && engine->options.event_count == 0)
		return 0;
	r = trace_flight_start(&engine->tracefs, engine->journal, &options, &engine->flight, err);
	if (r == 0 && engine->kind != TRACER_HWLAT)
		r = trace_instance_event(trace_flight_instance(engine->flight), noise.system, NULL,
					 NULL, NULL, err);
	return r;
}

static int set_up(struct latency_engine *engine, struct latency_run *run, struct err *err)
{
	enum latency_workload workload;
	int r = tracefs_find("", engine->journal, &engine->tracefs, err);

	if (r == 0)
		r = journal_lock(engine->journal, engine->tracefs.path, err);
	if (r == 0)
		r = tracer_choose(&engine->tracefs, &engine->options, &engine->kind, err);
	if (r == 0)
		r = tracer_set_up_settings(engine, err);
	if (r == 0)
		r = tracer_set_up_instance(engine, err);
	if (r == 0)
		r = tracer_set_up_decoder(engine, err);
	if (r == 0)
		r = start_flight(engine, err);
	if (r == 0)
		r = describe(engine, run);
	if (r < 0)
		return r;
	/* An instance with open pipes takes no tracer; so first the one, then the other, and only
	 * then something to read. */
	workload = tracer_workload(&engine->tracefs, &engine->options);
	r = tracefs_write(&engine->instance.at, tracer_name(engine->kind), err, "current_tracer");
	if (r == 0)
		r = open_pipes(engine, err);
	if (r == 0)
		r = tracer_gate(engine, true, err);
	return r < 0 ? r : tracer_start_threads(engine, workload, err);
}

static int start(const struct latency_options *options, struct latency_run *run,
		 struct latency_engine **ret, struct err *err)
{
	struct latency_engine *engine = calloc(1, sizeof(*engine));
	struct journal_report report;
	int r;

	if (!engine)
		return -ENOMEM;
	engine->options = *options;
	engine->epoll = -1;
	/* What a killed process left would be taken for the settings to return to. */
	r = journal_repair("", 0, &report, err);
	journal_report_fini(&report);
	if (r == 0)
		r = journal_new("", &engine->journal);
	if (r == 0) {
		journal_guard();
		journal_on_restore(engine->journal, let_go, engine);
		r = set_up(engine, run, err);
	}
	if (r < 0) {
		free_engine(engine);
		return err_wrap(err, r, "kernel tracer");
	}
	*ret = engine;
	return 0;
}

/* Records that never reached the buffer; those that were overwritten in it show as LATENCY_LOST. */
static uint64_t dropped(const struct latency_engine *engine, unsigned cpu)
{
	static const char key[] = "dropped events: ";
	size_t size;
	CLEANUP_FREE char *text = NULL;
	const char *at;

	if (tracefs_read(&engine->instance.at, &text, &size, NULL, "per_cpu/cpu%u/stats", cpu) < 0)
		return 0;
	at = strstr(text, key);
	return at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
}

static int stop(struct latency_engine *engine, struct latency_sink *sink, struct latency_run *run,
		struct err *err)
{
	int r;

	tracer_kill_threads(engine);
	r = tracer_gate(engine, false, err);
	if (r == 0)
		r = tracefs_write(&engine->instance.at, "0", err, "tracing_on");
	if (engine->flight)
		trace_flight_freeze(engine->flight);
	while (r >= 0 && (r = drain(engine, true, sink, err)) > 0)
		;
	for (unsigned i = 0; i < engine->pipe_count; i++)
		run->ring_drops += dropped(engine, engine->pipes[i].cpu);
	close_pipes(engine);
	/* The recorder's tracer stays: taking it away would empty the buffer. */
	if (r == 0)
		r = tracefs_write(&engine->instance.at, "nop", err, "current_tracer");
	return r;
}

static int trace(struct latency_engine *engine, const char *path, struct err *err)
{
	if (!engine->flight)
		return err_set(err, -ENODATA, "no trace was kept");
	return trace_flight_write(engine->flight, path, err);
}

const struct latency_engine_ops engine_tracer_ops = {
	.id = ENGINE_TRACER,
	.probe = probe,
	.start = start,
	.poll = poll_records,
	.stop = stop,
	.trace = trace,
	.free = free_engine,
};
