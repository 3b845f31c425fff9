/* Engine K's settings: which tracer, its instance, the global knobs of the osnoise family. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "latency/engine-tracer-internal.h"

#define TIMERLAT_PERIOD_MIN_US 100
#define TIMERLAT_PERIOD_MAX_US 1000000
#define OSNOISE_RUNTIME_MIN_US 100
#define OSNOISE_PERIOD_MAX_US  10000000

const char *tracer_name(enum tracer_kind kind)
{
	static const char *const names[] = {"timerlat", "osnoise", "hwlat"};

	return names[kind];
}

bool tracer_has_user_threads(const struct tracefs *tracefs, unsigned cpu)
{
	return tracefs_has(tracefs, "osnoise/per_cpu/cpu%u/timerlat_fd", cpu);
}

enum latency_workload tracer_workload(const struct tracefs *tracefs,
				      const struct latency_options *options)
{
	int cpu = cpuset_next(&options->cpus, 0);

	if (options->tool == LATENCY_TIMERLAT && !options->workload_chosen)
		return cpu >= 0 && tracer_has_user_threads(tracefs, (unsigned)cpu)
			       ? WORKLOAD_USER
			       : WORKLOAD_KERNEL;
	return options->tool == LATENCY_TIMERLAT ? options->workload : WORKLOAD_KERNEL;
}

static uint64_t to_us(uint64_t ns)
{
	return (ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
}

static int in_range(const char *what, uint64_t value_us, uint64_t min_us, uint64_t max_us,
		    struct err *err)
{
	if (value_us >= min_us && value_us <= max_us)
		return 0;
	return err_set(err, -ERANGE,
		       "%s of %" PRIu64 " us: the kernel's tracer takes %" PRIu64 " to %" PRIu64
		       " us",
		       what, value_us, min_us, max_us);
}

static int check_times(const struct latency_options *options, struct err *err)
{
	uint64_t period_us = to_us(options->period_ns), runtime_us = to_us(options->runtime_ns);
	int r;

	if (options->tool == LATENCY_TIMERLAT)
		return period_us == 0 ? 0
				      : in_range("a period", period_us, TIMERLAT_PERIOD_MIN_US,
						 TIMERLAT_PERIOD_MAX_US, err);
	if (period_us == 0 && runtime_us == 0)
		return 0;
	if (runtime_us == 0)
		runtime_us = period_us;
	if (period_us == 0)
		period_us = MAX(runtime_us, (uint64_t)1000000);
	if (runtime_us > period_us)
		return err_set(err, -ERANGE,
			       "a runtime of %" PRIu64 " us does not fit into a period of %" PRIu64
			       " us",
			       runtime_us, period_us);
	r = in_range("a runtime", runtime_us, OSNOISE_RUNTIME_MIN_US, OSNOISE_PERIOD_MAX_US, err);
	return r < 0 ? r : in_range("a period", period_us, 1, OSNOISE_PERIOD_MAX_US, err);
}

static int missing_tracer(const char *name, const char *config, struct err *err)
{
	return err_set(err, -ENOTSUP,
		       "this kernel has no %s tracer: it was built without CONFIG_%s_TRACER=y "
		       "(Debian's linux-image-rt-amd64 has it)",
		       name, config);
}

int tracer_choose(const struct tracefs *tracefs, const struct latency_options *options,
		  enum tracer_kind *ret, struct err *err)
{
	int cpu = cpuset_next(&options->cpus, 0);
	char list[256];

	switch (options->tool) {
	case LATENCY_TIMERLAT:
		if (!tracefs_has_tracer(tracefs, "timerlat"))
			return missing_tracer("timerlat", "TIMERLAT", err);
		if (options->workload_chosen && options->workload != WORKLOAD_KERNEL &&
		    (cpu < 0 || !tracer_has_user_threads(tracefs, (unsigned)cpu)))
			return err_set(err, -ENOTSUP,
				       "this kernel's timerlat tracer has no user threads "
				       "(timerlat_fd, Linux 6.5); use kernel threads (-k)");
		if (options->aligned && !tracefs_has(tracefs, "osnoise/timerlat_align_us"))
			return err_set(err, -ENOTSUP,
				       "this kernel's timerlat tracer cannot align CPUs "
				       "(osnoise/timerlat_align_us is missing)");
		*ret = TRACER_TIMERLAT;
		break;
	case LATENCY_OSNOISE:
		if (!tracefs_has_tracer(tracefs, "osnoise"))
			return missing_tracer("osnoise", "OSNOISE", err);
		*ret = TRACER_OSNOISE;
		break;
	case LATENCY_HWNOISE:
		*ret = TRACER_OSNOISE;
		if (tracefs_has_tracer(tracefs, "osnoise") &&
		    tracefs_value(tracefs, list, sizeof(list), "osnoise/options") == 0 &&
		    strstr(list, "OSNOISE_IRQ_DISABLE"))
			break;
		if (!tracefs_has_tracer(tracefs, "hwlat"))
			return missing_tracer("osnoise or hwlat", "OSNOISE", err);
		*ret = TRACER_HWLAT;
		break;
	default:
		return err_set(err, -ENOTSUP, "the kernel's tracers do not measure as %s does",
			       latency_tool_name(options->tool));
	}
	return check_times(options, err);
}

/* --- the instance ---------------------------------------------------------------------------- */

/* Events that make names of numbers; a kernel without them measures all the same. */
static int helpful_events(struct latency_engine *engine, struct err *err)
{
	static const struct {
		const char *system, *event;
		bool timerlat;
	} events[] = {
		{"workqueue", "workqueue_execute_start", true},
		{"task", "task_rename", true},
		{"timer", "hrtimer_expire_entry", false},
	};

	if (engine->kind == TRACER_HWLAT || engine->options.tool == LATENCY_HWNOISE)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		int r;

		if (engine->kind == TRACER_TIMERLAT && !events[i].timerlat)
			continue;
		r = trace_instance_event(&engine->instance, events[i].system, events[i].event, NULL,
					 NULL, err);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

int tracer_set_up_instance(struct latency_engine *engine, struct err *err)
{
	const struct tracefs *at = &engine->instance.at;
	char text[32];
	int r = trace_instance_make(&engine->tracefs, engine->journal, "", &engine->instance, err);

	/* The durations and starts of noise are of this clock. */
	if (r == 0)
		r = trace_instance_clock(&engine->instance, "local", err);
	if (r == 0)
		r = trace_instance_cpus(&engine->instance, &engine->options.cpus, err);
	if (r == 0 && engine->options.buffer_kib) {
		snprintf(text, sizeof(text), "%u", engine->options.buffer_kib);
		r = tracefs_write(at, text, err, "buffer_size_kb");
	}
	if (r == 0 && engine->kind != TRACER_HWLAT)
		r = trace_instance_event(&engine->instance, "osnoise", NULL, NULL, NULL, err);
	if (r >= 0)
		r = helpful_events(engine, err);
	/* Wake the reader when a quarter is full, not for every record. */
	if (r >= 0 && tracefs_has(at, "buffer_percent"))
		r = tracefs_write(at, "25", err, "buffer_percent");
	return r;
}

/* --- global settings ------------------------------------------------------------------------- */

struct knobs {
	struct latency_engine *engine;
	bool shared; /* another instance runs the tracer: its settings may not be changed */
	char user[64], tracer[32];
	struct err *err;
};

/* A failure to change what somebody else measures with is refused, not done. */
static int knob(struct knobs *knobs, const char *name, const char *value)
{
	const struct tracefs *tracefs = &knobs->engine->tracefs;
	char path[TRACEFS_PATH_BYTES + 64], now[256];

	snprintf(path, sizeof(path), "%s/%s", tracefs->path, name);
	if (knobs->shared && tracefs_value(tracefs, now, sizeof(now), "%s", name) == 0 &&
	    strcmp(now, value) != 0)
		return err_set(knobs->err, -EBUSY,
			       "the instance \"%s\" runs the %s tracer with %s %s; this needs %s: "
			       "wait until it has ended, or take its settings",
			       knobs->user, knobs->tracer, name, now, value);
	return journal_set(knobs->engine->journal, path, value, knobs->err);
}

static int knob_us(struct knobs *knobs, const char *name, uint64_t value_us)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value_us);
	return knob(knobs, name, text);
}

/* Switches that a kernel lacks are off there. */
static int knob_switch(struct knobs *knobs, const char *name, bool on)
{
	const struct tracefs *tracefs = &knobs->engine->tracefs;
	char path[TRACEFS_PATH_BYTES + 64];
	int r;

	snprintf(path, sizeof(path), "%s/osnoise/options", tracefs->path);
	if (!tracefs_has(tracefs, "osnoise/options"))
		return on && strcmp(name, "OSNOISE_WORKLOAD") != 0 ? -ENOTSUP : 0;
	r = journal_set_option(knobs->engine->journal, path, name, on, knobs->err);
	return r == -ENOENT && !on ? 0 : r;
}

static int set_switches(struct knobs *knobs, bool workload, bool irqs_off)
{
	int r;

	if (knobs->shared)
		return 0;
	r = knob_switch(knobs, "OSNOISE_WORKLOAD", workload);
	if (r == 0) /* a stop must never take the machine down */
		r = knob_switch(knobs, "PANIC_ON_STOP", false);
	if (r == 0)
		r = knob_switch(knobs, "OSNOISE_PREEMPT_DISABLE", false);
	if (r == 0)
		r = knob_switch(knobs, "OSNOISE_IRQ_DISABLE", irqs_off);
	return r;
}

static int set_timerlat(struct knobs *knobs)
{
	const struct latency_options *options = &knobs->engine->options;
	int r = 0;

	if (options->period_ns)
		r = knob_us(knobs, "osnoise/timerlat_period_us", to_us(options->period_ns));
	if (r == 0 && options->aligned)
		r = knob_us(knobs, "osnoise/timerlat_align_us", to_us(options->align_ns));
	if (r == 0)
		r = knob_us(knobs, "osnoise/print_stack", to_us(options->stack_ns));
	if (r == 0)
		r = knob_us(knobs, "osnoise/stop_tracing_us", to_us(options->limits.irq_ns));
	if (r == 0)
		r = knob_us(knobs, "osnoise/stop_tracing_total_us",
			    to_us(options->limits.thread_ns));
	return r;
}

/* The kernel refuses a part (runtime, width) above its whole (period, window) and a whole below its
 * part, so the order of the two writes depends on what stands there. */
static int set_pair(struct knobs *knobs, const char *whole, uint64_t whole_us, const char *part,
		    uint64_t part_us)
{
	char text[32];
	unsigned long long now_us = 0;
	int r;

	if (tracefs_value(&knobs->engine->tracefs, text, sizeof(text), "%s", whole) == 0)
		parse_u64(text, 10, &now_us);
	if (part_us > now_us) {
		r = knob_us(knobs, whole, whole_us);
		return r < 0 ? r : knob_us(knobs, part, part_us);
	}
	r = knob_us(knobs, part, part_us);
	return r < 0 ? r : knob_us(knobs, whole, whole_us);
}

static int set_osnoise(struct knobs *knobs)
{
	const struct latency_options *options = &knobs->engine->options;
	bool hardware = options->tool == LATENCY_HWNOISE;
	uint64_t period_us = to_us(options->period_ns), runtime_us = to_us(options->runtime_ns);
	int r = 0;

	if (period_us == 0)
		period_us = MAX(runtime_us, (uint64_t)1000000);
	if (runtime_us == 0)
		runtime_us = hardware ? period_us * 3 / 4 : period_us;
	r = set_pair(knobs, "osnoise/period_us", period_us, "osnoise/runtime_us", runtime_us);
	if (r == 0)
		r = knob_us(knobs, "tracing_thresh", to_us(options->threshold_ns));
	if (r == 0)
		r = knob_us(knobs, "osnoise/stop_tracing_us", to_us(options->limits.single_ns));
	if (r == 0)
		r = knob_us(knobs, "osnoise/stop_tracing_total_us",
			    to_us(options->limits.total_ns));
	return r;
}

/* hwlat visits the CPUs of the instance's mask. */
static int set_hwlat(struct knobs *knobs)
{
	const struct latency_options *options = &knobs->engine->options;
	uint64_t window_us = to_us(options->period_ns), width_us = to_us(options->runtime_ns);
	int r = knob_us(knobs, "tracing_thresh", to_us(options->threshold_ns));

	if (window_us == 0)
		window_us = MAX(width_us, (uint64_t)1000000);
	if (width_us == 0)
		width_us = window_us * 3 / 4;
	if (r == 0)
		r = set_pair(knobs, "hwlat_detector/window", window_us, "hwlat_detector/width",
			     width_us);
	if (r == 0 && tracefs_has(&knobs->engine->tracefs, "hwlat_detector/mode"))
		r = knob(knobs, "hwlat_detector/mode", "per-cpu");
	return r;
}

int tracer_set_up_settings(struct latency_engine *engine, struct err *err)
{
	struct knobs knobs = {.engine = engine, .err = err};
	struct str cpus = {0};
	int r;

	if (engine->kind == TRACER_HWLAT)
		return set_hwlat(&knobs);
	knobs.shared = tracefs_osnoise_user(&engine->tracefs, knobs.user, sizeof(knobs.user),
					    knobs.tracer, sizeof(knobs.tracer));
	if (knobs.shared && strcmp(knobs.tracer, tracer_name(engine->kind)) != 0)
		return err_set(err, -EBUSY,
			       "the instance \"%s\" runs the %s tracer: the kernel runs only one "
			       "of osnoise and timerlat at a time",
			       knobs.user, knobs.tracer);
	engine->shared = knobs.shared;
	cpuset_format(&engine->options.cpus, &cpus);
	r = str_status(&cpus);
	if (r == 0)
		r = knob(&knobs, "osnoise/cpus", engine->shared ? str_text(&cpus) : "");
	str_fini(&cpus);
	if (r == 0)
		r = set_switches(&knobs,
				 tracer_workload(&engine->tracefs, &engine->options) ==
					 WORKLOAD_KERNEL,
				 engine->options.tool == LATENCY_HWNOISE);
	if (r < 0)
		return r;
	return engine->kind == TRACER_TIMERLAT ? set_timerlat(&knobs) : set_osnoise(&knobs);
}

int tracer_gate(struct latency_engine *engine, bool open, struct err *err)
{
	char path[TRACEFS_PATH_BYTES + 64];
	struct str cpus = {0};
	int r;

	if (engine->kind == TRACER_HWLAT || engine->shared)
		return 0;
	if (open)
		cpuset_format(&engine->options.cpus, &cpus);
	snprintf(path, sizeof(path), "%s/osnoise/cpus", engine->tracefs.path);
	r = str_status(&cpus);
	if (r == 0)
		r = journal_set(engine->journal, path, str_text(&cpus), err);
	str_fini(&cpus);
	return r;
}

/* --- decoder --------------------------------------------------------------------------------- */

static const char *comm_of(void *arg, int pid)
{
	struct latency_engine *engine = arg;
	const struct tracefs proc = {.root = engine->tracefs.root, .path = "/proc"};

	return tracefs_value(&proc, engine->comm, sizeof(engine->comm), "%d/comm", pid) == 0
		       ? engine->comm
		       : NULL;
}

static const char *function_of(void *arg, uint64_t address)
{
	struct latency_engine *engine = arg;

	return kernel_names_find(&engine->names, address);
}

static int add_event(struct latency_engine *engine, const char *system, const char *event,
		     struct err *err)
{
	size_t size;
	CLEANUP_FREE char *text = NULL;

	if (!tracefs_has(&engine->tracefs, "events/%s/%s/format", system, event))
		return 0;
	if (tracefs_read(&engine->tracefs, &text, &size, err, "events/%s/%s/format", system,
			 event) < 0)
		return -EIO;
	return trace_decoder_event(engine->decoder, system, text, size, err);
}

int tracer_set_up_decoder(struct latency_engine *engine, struct err *err)
{
	static const char *const events[][2] = {
		{"ftrace", "timerlat"},      {"ftrace", "osnoise"},
		{"ftrace", "hwlat"},         {"ftrace", "kernel_stack"},
		{"ftrace", "print"},         {"osnoise", "nmi_noise"},
		{"osnoise", "irq_noise"},    {"osnoise", "softirq_noise"},
		{"osnoise", "thread_noise"}, {"osnoise", "sample_threshold"},
		{"sched", "sched_switch"},   {"workqueue", "workqueue_execute_start"},
		{"task", "task_rename"},     {"timer", "hrtimer_expire_entry"},
	};
	const struct trace_names names = {engine, comm_of, function_of};
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = tracefs_read(&engine->tracefs, &text, &size, err, "events/header_page");

	if (r == 0)
		r = trace_page_layout_parse(text, size, BYTE_ORDER == BIG_ENDIAN, &engine->layout,
					    err);
	if (r == 0)
		r = trace_decoder_new(&engine->layout, &names, &engine->decoder);
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(events); i++)
		r = add_event(engine, events[i][0], events[i][1], err);
	if (r < 0)
		return r;
	/* Without names (hidden addresses) functions are shown as numbers. */
	r = kernel_names_load(engine->tracefs.root, &engine->names);
	return r == -ENOMEM ? r : 0;
}
