/*
 * Engine U: our threads alone, no right but that to measure oneself. What it adds are the kernel's
 * public counters: waiting time of the thread at each gap (schedstat), and per CPU the interrupts,
 * softirqs and the hypervisor's share over the whole run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "host/host.h"
#include "latency/engine-own.h"
#include "latency/proc-deltas.h"

#define PROC_MAX ((size_t)64 << 20)

static int probe(const struct latency_options *options, struct err *err)
{
	if (options->trace)
		return err_set(err, -EOPNOTSUPP,
			       "engine U keeps no flight recorder: that needs engine B or K");
	return own_probe(options, 'U', err);
}

static int make_rings(struct latency_engine *engine)
{
	unsigned slots = own_ring_slots(&engine->options, engine->id);
	size_t bytes = (size_t)slots * engine->cpu_count * sizeof(*engine->slots);

	engine->states = aligned_alloc(64, engine->cpu_count * sizeof(*engine->states));
	engine->slots = aligned_alloc(64, bytes);
	if (!engine->states || !engine->slots)
		return -ENOMEM;
	memset(engine->states, 0, engine->cpu_count * sizeof(*engine->states));
	memset(engine->slots, 0, bytes); /* also: no page faults later */
	for (unsigned i = 0; i < engine->cpu_count; i++) {
		struct own_cpu *cpu = &engine->cpus[i];

		cpu->state = &engine->states[i];
		cpu->ring = (struct ring){
			.slots = engine->slots + (size_t)i * slots,
			.mask = slots - 1,
			.head = &cpu->state->head,
		};
	}
	return 0;
}

static char *proc_text(const char *path)
{
	const struct host host = {.root = ""};
	char *text = NULL;
	size_t size;

	return host_read(&host, path, PROC_MAX, &text, &size, NULL) == 0 ? text : NULL;
}

static int start(const struct latency_options *options, struct latency_run *run,
		 struct latency_engine **ret, struct err *err)
{
	static const char timers[] =
		"The way to user space: latency of the timer's interrupt and of the thread, and "
		"who was in the way (engine B or K does).";
	static const char gaps[] =
		"Interrupts and softirqs: a gap in which the thread did not wait for the CPU is "
		"called unexplained, whatever happened.";
	bool noise = options->tool == LATENCY_OSNOISE || options->tool == LATENCY_HWNOISE;
	struct latency_engine *engine;
	uint32_t id;
	int r = own_new(options, ENGINE_USER, run, &engine, err);

	if (r < 0)
		return r;
	r = make_rings(engine);
	if (r == 0)
		r = own_conditions(engine, run);
	if (r == 0)
		r = strtab_intern_text(&run->names, noise ? gaps : timers, &id);
	if (r == 0)
		r = vec_push(&run->cannot_see, id);
	if (r < 0) {
		own_free(engine);
		return err_set(err, r, "%s", strerror(-r));
	}
	engine->interrupts = proc_text("/proc/interrupts");
	engine->softirqs = proc_text("/proc/softirqs");
	own_go(engine);
	*ret = engine;
	return 0;
}

/* "local timer 1250, virtio1-req.0 23" of each CPU, as conditions of the run. */
static int tell_deltas(struct latency_engine *engine, struct latency_run *run, const char *what,
		       const char *before, const char *path)
{
	char *after = before ? proc_text(path) : NULL, name[48];
	struct str text = {0};
	int r = 0;

	for (unsigned i = 0; after && i < engine->cpu_count && r == 0; i++) {
		unsigned cpu = engine->cpus[i].cpu;

		str_clear(&text);
		r = proc_deltas(before, after, cpu, 8, &text);
		if (r <= 0)
			continue;
		snprintf(name, sizeof(name), "CPU %u %s", cpu, what);
		r = latency_run_condition(run, name, str_text(&text));
	}
	str_fini(&text);
	free(after);
	return r;
}

static int stop(struct latency_engine *engine, struct latency_sink *sink, struct latency_run *run,
		struct err *err)
{
	int r = own_stop(engine, sink, run, err);

	if (r == 0)
		r = tell_deltas(engine, run, "interrupts", engine->interrupts, "/proc/interrupts");
	if (r == 0)
		r = tell_deltas(engine, run, "softirqs", engine->softirqs, "/proc/softirqs");
	return r < 0 ? r : 0;
}

const struct latency_engine_ops engine_user_ops = {
	.id = ENGINE_USER,
	.probe = probe,
	.start = start,
	.poll = own_poll,
	.stop = stop,
	.trace = NULL,
	.free = own_free,
};
