/*
 * Engines B and L: BPF programs tell when the timer's interrupt came, when the thread was switched
 * in and, in B, who ran instead. L has the three programs that latencies need.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "latency/engine-own.h"

#define SETTLE_MS 2000

static int probe(const struct latency_options *options, char letter, struct err *err)
{
	int r = own_probe(options, letter, err);

	if (r == 0 && options->clock != CLOCK_MONOTONIC)
		r = err_set(err, -EOPNOTSUPP, "engine %c measures CLOCK_MONOTONIC only", letter);
	return r < 0 ? r : bpf_latency_probe(err);
}

static int probe_full(const struct latency_options *options, struct err *err)
{
	return probe(options, 'B', err);
}

static int probe_light(const struct latency_options *options, struct err *err)
{
	if (options->tool != LATENCY_TIMERLAT && options->tool != LATENCY_CYCLIC)
		return err_set(err, -EOPNOTSUPP,
			       "engine L measures latencies alone; noise needs engine B, K or U");
	if (options->trace)
		return err_set(err, -EOPNOTSUPP,
			       "engine L keeps no flight recorder: that needs engine B or K");
	return probe(options, 'L', err);
}

/* On nohz_full CPUs the kernel queues timers on others. */
static bool has_nohz_full(const struct cpuset *cpus)
{
	const struct host host = {.root = ""};
	struct host_text line = host_line(&host, "/sys/devices/system/cpu/nohz_full");
	struct cpuset full;

	if (!line.known || cpuset_parse(line.value, &full, NULL) < 0)
		return false;
	cpuset_for_each(cpus, cpu) {
		if (cpuset_has(&full, (unsigned)cpu))
			return true;
	}
	return false;
}

static int tell_blindness(struct latency_run *run, enum latency_engine_id id,
			  enum latency_tool tool, bool remote)
{
	static const char *const full[] = {
		"When an NMI began: its handlers' time is known after the fact, not its entry and "
		"exit.",
		"Entry and exit of interrupts, page faults and VM exits: time in gaps beside the "
		"named sources is \"unexplained inside\".",
	};
	static const char *const light[] = {
		"Who was in the way: handler delay, interrupts, softirqs and threads are not "
		"measured (engine B does).",
	};
	static const char *const hardware[] = {
		"This is not the kernel's hwlat: interrupts stay on. A gap in which nothing known "
		"happened is called unexplained; in a virtual machine look at steal beside it.",
	};
	uint32_t id_of;
	int r = 0;

#define TELL(list)                                                      \
	for (unsigned i = 0; i < ARRAY_LEN(list) && r == 0; i++) {      \
		r = strtab_intern_text(&run->names, (list)[i], &id_of); \
		if (r == 0)                                             \
			r = vec_push(&run->cannot_see, id_of);          \
	}
	if (id == ENGINE_BPF) {
		TELL(full)
	} else {
		TELL(light)
	}
	if (tool == LATENCY_HWNOISE)
		TELL(hardware)
#undef TELL
	if (r == 0 && remote)
		r = latency_run_warn(run,
				     "timers of nohz_full CPUs expire on other CPUs: irq latency "
				     "is that of the CPU that took the interrupt");
	return r;
}

static int start_programs(struct latency_engine *engine, bool remote, struct err *err)
{
	const struct latency_options *options = &engine->options;
	const struct bpf_latency_options bpf = {
		.cpus = &options->cpus,
		.tids = samplers_tids(engine->samplers),
		.timerlat = options->tool == LATENCY_TIMERLAT || options->tool == LATENCY_CYCLIC,
		.full = engine->id == ENGINE_BPF,
		.trace = options->trace,
		.remote = remote,
		.irq_limit_ns = options->limits.irq_ns,
		.thread_limit_ns = options->limits.thread_ns,
		.stack_ns = options->stack_ns,
		.ring_slots = own_ring_slots(options, engine->id),
	};
	int r = bpf_latency_open(&bpf, &engine->bpf, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < engine->cpu_count; i++) {
		struct own_cpu *cpu = &engine->cpus[i];

		cpu->state = bpf_latency_cpu(engine->bpf, cpu->cpu);
		cpu->ring = (struct ring){
			.slots = bpf_latency_ring(engine->bpf, cpu->cpu),
			.mask = bpf.ring_slots - 1,
			.head = &cpu->state->head,
		};
	}
	engine->frozen = bpf_latency_frozen(engine->bpf);
	bpf_latency_activate(engine->bpf);
	r = bpf_latency_settle(engine->bpf, SETTLE_MS);
	return r < 0 ? err_set(err, r, "a measuring thread was not scheduled within %d ms",
			       SETTLE_MS)
		     : 0;
}

static int start(const struct latency_options *options, enum latency_engine_id id,
		 struct latency_run *run, struct latency_engine **ret, struct err *err)
{
	bool remote = has_nohz_full(&options->cpus);
	struct latency_engine *engine;
	int r = own_new(options, id, run, &engine, err);

	if (r < 0)
		return r;
	r = start_programs(engine, remote, err);
	if (r == 0)
		r = own_conditions(engine, run);
	if (r == 0)
		r = tell_blindness(run, id, options->tool, remote);
	if (r < 0) {
		own_free(engine);
		return r;
	}
	own_go(engine);
	*ret = engine;
	return 0;
}

static int start_full(const struct latency_options *options, struct latency_run *run,
		      struct latency_engine **ret, struct err *err)
{
	return start(options, ENGINE_BPF, run, ret, err);
}

static int start_light(const struct latency_options *options, struct latency_run *run,
		       struct latency_engine **ret, struct err *err)
{
	return start(options, ENGINE_LIGHT, run, ret, err);
}

const struct latency_engine_ops engine_bpf_ops = {
	.id = ENGINE_BPF,
	.probe = probe_full,
	.start = start_full,
	.poll = own_poll,
	.stop = own_stop,
	.trace = own_trace,
	.free = own_free,
};

const struct latency_engine_ops engine_light_ops = {
	.id = ENGINE_LIGHT,
	.probe = probe_light,
	.start = start_light,
	.poll = own_poll,
	.stop = own_stop,
	.trace = NULL,
	.free = own_free,
};
