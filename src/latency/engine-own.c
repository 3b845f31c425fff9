/*
 * Engines with threads of our own: their life.
 *
 * Reading sleeps first and then empties the rings, so that a command that polls in a circle wakes
 * 50 times a second and not for every record: the reader is noise too.
 */
#include "latency/engine-own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "host/host.h"

/* Writing to memory that no cache holds is a cost of its own: as small as is safe. */
#define SLOTS_LATENCIES 4096u  /* 256 KiB a CPU: over 1 s of wake-ups each millisecond */
#define SLOTS_NOISE     16384u /* 1 MiB: 0.8 s at 20 000 records a second */
#define SLOTS_TRACE     65536u /* 4 MiB: as long as possible */
#define SLOTS_MIN       1024u
#define SLOTS_MAX       (1u << 22)
#define PRIORITY        95
#define READ_PAUSE_MS   20
#define LAST_RECORDS_NS (2 * NSEC_PER_MSEC) /* writers that were interrupted end by then */

unsigned own_ring_slots(const struct latency_options *options, enum latency_engine_id id)
{
	uint64_t want = (uint64_t)options->buffer_kib * 1024 / sizeof(struct lat_record);
	unsigned slots = SLOTS_MIN;

	if (!want && options->trace)
		return SLOTS_TRACE;
	if (!want)
		return id == ENGINE_BPF || options->period_ns < NSEC_PER_MSEC ? SLOTS_NOISE
									      : SLOTS_LATENCIES;
	while (slots < want && slots < SLOTS_MAX)
		slots *= 2;
	return slots;
}

int own_probe(const struct latency_options *options, char letter, struct err *err)
{
	if (options->workload != WORKLOAD_USER && options->workload_chosen)
		return err_set(err, -EOPNOTSUPP,
			       "engine %c measures with threads of its own in user space; %s needs "
			       "the kernel's timerlat tracer (engine K)",
			       letter,
			       options->workload == WORKLOAD_KERNEL ? "-k (kernel threads)"
								    : "-U (threads of others)");
	if (options->event_count)
		return err_set(
			err, -EOPNOTSUPP,
			"engine %c records no trace events (-e): they need tracefs (engine K)",
			letter);
	if (!options->period_ns)
		return err_set(err, -EINVAL, "the period must be longer than 0");
	if (options->tool != LATENCY_TIMERLAT && options->tool != LATENCY_CYCLIC &&
	    options->runtime_ns > options->period_ns)
		return err_set(err, -EINVAL,
			       "the runtime (%llu us) may not be longer than the period (%llu us)",
			       (unsigned long long)(options->runtime_ns / NSEC_PER_USEC),
			       (unsigned long long)(options->period_ns / NSEC_PER_USEC));
	return 0;
}

/* --- start ----------------------------------------------------------------------------------- */

static bool wakes(const struct latency_options *options)
{
	return options->tool == LATENCY_TIMERLAT || options->tool == LATENCY_CYCLIC;
}

/* The policy asked for, or the default: real time for wake-ups where it is permitted. */
static int start_samplers(struct latency_engine *engine, struct latency_run *run, struct err *err)
{
	struct latency_options *options = &engine->options;
	bool chosen = options->policy >= 0, unlocked = false;
	struct sampler_options sampler = {
		.wakes = wakes(options),
		.cpus = &options->cpus,
		.hardware_only = options->tool == LATENCY_HWNOISE,
		.period_ns = options->period_ns,
		.runtime_ns = options->runtime_ns ? options->runtime_ns : options->period_ns,
		.threshold_ns = options->threshold_ns ? options->threshold_ns : 1,
		.limits = options->limits,
		.policy = options->policy,
		.priority = options->priority,
		.dl_runtime_ns = options->dl_runtime_ns,
		.dl_period_ns = options->dl_period_ns,
		.cgroup = options->cgroup && *options->cgroup ? options->cgroup : NULL,
		.align_ns = options->align_ns,
		.clock = options->clock,
	};
	struct err why = {0};
	int r;

	if (!chosen) {
		sampler.policy = sampler.wakes ? SCHED_FIFO : SCHED_OTHER;
		sampler.priority = sampler.wakes ? PRIORITY : 0;
	}
	r = samplers_new(&sampler, &engine->samplers, &unlocked, &why);
	if (r < 0 && !chosen && sampler.policy == SCHED_FIFO) {
		struct err first = why;

		sampler.policy = SCHED_OTHER;
		sampler.priority = 0;
		r = samplers_new(&sampler, &engine->samplers, &unlocked, &why);
		if (r == 0)
			latency_run_warn(run, "measured with policy other, not fifo: %s",
					 err_text(&first, -EPERM));
	}
	if (r < 0)
		return err_set(err, r, "%s", err_text(&why, r));
	options->policy = sampler.policy;
	options->priority = sampler.priority;
	if (unlocked)
		latency_run_warn(run, "memory could not be locked (CAP_IPC_LOCK, ulimit -l): page "
				      "faults may add to the latencies");
	if (!sampler.wakes && sampler.runtime_ns >= sampler.period_ns &&
	    (sampler.policy == SCHED_FIFO || sampler.policy == SCHED_RR))
		latency_run_warn(run,
				 "a real-time loop without pause: threads of these CPUs starve, "
				 "and real-time throttling (kernel.sched_rt_runtime_us) shows "
				 "as noise; choose a runtime shorter than the period");
	return 0;
}

int own_new(const struct latency_options *options, enum latency_engine_id id,
	    struct latency_run *run, struct latency_engine **ret, struct err *err)
{
	struct latency_engine *engine = calloc(1, sizeof(*engine));
	unsigned i = 0;
	int r = -ENOMEM;

	if (!engine)
		return r;
	engine->options = *options;
	engine->id = id;
	engine->irqs.unknown = -1;
	engine->frozen = &engine->frozen_memory;
	engine->cpu_count = cpuset_count(&options->cpus);
	engine->cpus = calloc(engine->cpu_count, sizeof(*engine->cpus));
	if (!engine->cpus)
		goto fail;
	cpuset_for_each(&options->cpus, cpu)
		engine->cpus[i++].cpu = (unsigned)cpu;
	if (id != ENGINE_USER) {
		irq_names_load("", &engine->irqs, NULL);
		engine->kernel_known = kernel_names_load("", &engine->kernel) == 0;
		if (!engine->kernel_known && id == ENGINE_BPF)
			latency_run_warn(run,
					 "names of kernel functions are not known: /proc/kallsyms "
					 "hides its addresses (kernel.kptr_restrict)");
	}
	r = start_samplers(engine, run, err);
	if (r < 0)
		goto fail;
	*ret = engine;
	return 0;
fail:
	own_free(engine);
	return r;
}

void own_go(struct latency_engine *engine)
{
	struct sampler_cpu *io = calloc(engine->cpu_count, sizeof(*io));

	for (unsigned i = 0; io && i < engine->cpu_count; i++) {
		struct own_cpu *cpu = &engine->cpus[i];

		cpu->steal_ns = cpu_steal_ns(cpu->cpu);
		cpu->smi_count = cpu_smi_count(cpu->cpu);
		io[i] = (struct sampler_cpu){
			.state = cpu->state,
			.ring = cpu->ring,
			.frozen = engine->frozen,
			.interrupted_known = engine->bpf != NULL,
		};
	}
	if (io)
		samplers_go(engine->samplers, io);
	free(io);
}

/* --- reading --------------------------------------------------------------------------------- */

static int tell_lost(struct own_cpu *cpu, struct latency_sink *sink)
{
	struct latency_record record = {
		.kind = LATENCY_LOST,
		.cpu = cpu->cpu,
		.pid = -1,
		.lost.events = cpu->ring.lost - cpu->lost_told,
	};

	if (cpu->ring.lost == cpu->lost_told)
		return 0;
	cpu->lost_told = cpu->ring.lost;
	cpu->has_period = false;
	cpu->frames_have = 0;
	*cpu->running = '\0';
	return sink->take(sink, &record);
}

/* Hands on what is there; how many, or the sink's error. */
static int drain(struct latency_engine *engine, bool final, struct latency_sink *sink)
{
	struct lat_record record;
	int n = 0, r;

	for (unsigned i = 0; i < engine->cpu_count; i++) {
		struct own_cpu *cpu = &engine->cpus[i];
		/* not what comes while we read: the other CPUs have their turn */
		uint64_t end = __atomic_load_n(cpu->ring.head, __ATOMIC_ACQUIRE);

		while (cpu->ring.tail < end && lat_ring_read(&cpu->ring, final, &record)) {
			r = tell_lost(cpu, sink);
			if (r == 0)
				r = own_translate(engine, cpu, &record, sink);
			if (r < 0)
				return r;
			n++;
		}
		r = tell_lost(cpu, sink);
		if (r < 0)
			return r;
	}
	engine->records += (uint64_t)n;
	return n;
}

static void pause_ms(unsigned ms)
{
	const struct timespec step = {.tv_nsec = (long)(ms * NSEC_PER_MSEC)};

	nanosleep(&step, NULL);
}

int own_poll(struct latency_engine *engine, int timeout_ms, struct latency_sink *sink,
	     struct err *err)
{
	uint64_t end = clock_monotonic_ns() + (uint64_t)MAX(timeout_ms, 0) * NSEC_PER_MSEC;
	int n;

	if (engine->ended)
		return -ECANCELED;
	do {
		bool frozen = __atomic_load_n(engine->frozen, __ATOMIC_ACQUIRE);

		if (frozen) {
			nanosleep(&(struct timespec){.tv_nsec = LAST_RECORDS_NS}, NULL);
			n = drain(engine, true, sink);
			engine->ended = n >= 0;
			return n < 0 ? n : -ECANCELED;
		}
		if (timeout_ms > 0)
			pause_ms((unsigned)MIN(timeout_ms, READ_PAUSE_MS));
		n = drain(engine, false, sink);
	} while (n == 0 && clock_monotonic_ns() < end);
	return n;
}

/* Writes what was missed, and each CPU's own counters, into the run. */
static int report_losses(struct latency_engine *engine, struct latency_run *run)
{
	char text[96];

	for (unsigned i = 0; i < engine->cpu_count; i++) {
		struct own_cpu *cpu = &engine->cpus[i];
		struct latency_cpu *row = latency_run_cpu(run, cpu->cpu);
		int64_t smi = cpu_smi_count(cpu->cpu), steal = cpu_steal_ns(cpu->cpu);

		if (!row)
			return -ENOMEM;
		if (smi >= 0 && cpu->smi_count >= 0)
			row->smi_count = smi - cpu->smi_count;
		if (engine->bpf && cpu->state->steal_address)
			row->steal_ns = (int64_t)cpu->state->steal_total;
		else if (steal >= 0 && cpu->steal_ns >= 0)
			row->steal_ns = steal - cpu->steal_ns;
		if (engine->bpf && cpu->state->missed_irq) {
			row->lost += cpu->state->missed_irq;
			run->lost_records += cpu->state->missed_irq;
			snprintf(text, sizeof(text),
				 "CPU %u: %llu wake-ups without their interrupt", cpu->cpu,
				 cpu->state->missed_irq);
			latency_run_warn(run, "%s", text);
		}
	}
	return 0;
}

/* Recursion misses: of the timer's expiry they lose nothing, there is a second source. */
static void report_misses(struct latency_engine *engine, struct latency_run *run)
{
	struct bpf_latency_cost cost;
	uint64_t second = 0, expiries = 0;
	char text[128];

	for (unsigned i = 0; bpf_latency_cost(engine->bpf, i, &cost); i++) {
		if (!strcmp(cost.event, "hrtimer_expire_entry"))
			expiries = cost.misses;
		else
			run->recursion_misses += cost.misses;
	}
	for (unsigned i = 0; i < engine->cpu_count; i++)
		second += engine->cpus[i].state->second_source;
	if (expiries || second) {
		snprintf(text, sizeof(text),
			 "%llu missed, %llu wake-ups seen by sched_waking instead",
			 (unsigned long long)expiries, (unsigned long long)second);
		latency_run_condition(run, "timer expiries", text);
	}
}

int own_stop(struct latency_engine *engine, struct latency_sink *sink, struct latency_run *run,
	     struct err *err)
{
	int r;

	if (!samplers_stop(engine->samplers))
		latency_run_warn(run, "a measuring thread did not end: something of a higher "
				      "priority does not let go of its CPU");
	__atomic_store_n(engine->frozen, 1, __ATOMIC_RELEASE);
	if (engine->bpf) {
		report_misses(engine, run);
		bpf_latency_detach(engine->bpf);
	}
	r = engine->ended ? 0 : drain(engine, true, sink);
	engine->ended = true;
	samplers_tell_skipped(engine->samplers, "a period", run);
	for (unsigned i = 0; i < engine->cpu_count; i++)
		run->ring_drops += engine->cpus[i].ring.lost;
	if (r >= 0)
		r = report_losses(engine, run);
	return r < 0 ? r : 0;
}

void own_free(struct latency_engine *engine)
{
	if (!engine)
		return;
	if (!samplers_free(engine->samplers))
		return;
	bpf_latency_free(engine->bpf);
	kernel_names_fini(&engine->kernel);
	irq_names_fini(&engine->irqs);
	free(engine->cpus);
	free(engine->states);
	free(engine->slots);
	free(engine->interrupts);
	free(engine->softirqs);
	free(engine);
}
