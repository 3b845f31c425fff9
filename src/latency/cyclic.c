#include "latency/cyclic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "latency/engine-own.h"
#include "latency/ring.h"
#include "latency/sampler.h"

#define SLOTS 16384u /* of each thread: over 3 s of the shortest interval that makes sense */

struct cyclic {
	struct cyclic_options options;
	struct samplers *samplers;
	struct cyclic_thread *threads;
	struct lat_cpu *states;
	struct lat_record *slots;
	struct ring *rings;
	uint64_t *intervals, *lost_told;
	unsigned frozen;
	const struct cyclic_thread *broken;
	int64_t broken_ns;
};

static int allocate(struct cyclic *c)
{
	unsigned n = c->options.threads;
	size_t bytes = (size_t)n * SLOTS * sizeof(*c->slots);

	c->threads = calloc(n, sizeof(*c->threads));
	c->rings = calloc(n, sizeof(*c->rings));
	c->intervals = calloc(n, sizeof(*c->intervals));
	c->lost_told = calloc(n, sizeof(*c->lost_told));
	c->states = aligned_alloc(64, n * sizeof(*c->states));
	c->slots = aligned_alloc(64, bytes);
	if (!c->threads || !c->rings || !c->intervals || !c->lost_told || !c->states || !c->slots)
		return -ENOMEM;
	memset(c->states, 0, n * sizeof(*c->states));
	memset(c->slots, 0, bytes);
	for (unsigned i = 0; i < n; i++) {
		struct cyclic_thread *t = &c->threads[i];

		t->cpu = c->options.cpus[i];
		t->interval_ns = c->intervals[i] =
			c->options.interval_ns + i * c->options.distance_ns;
		t->latency.current_ns = t->smi = LATENCY_UNKNOWN_NS;
		c->rings[i] = (struct ring){
			.slots = c->slots + (size_t)i * SLOTS,
			.mask = SLOTS - 1,
			.head = &c->states[i].head,
		};
		if (c->options.rows) {
			t->rows = calloc(c->options.rows, sizeof(*t->rows));
			if (!t->rows)
				return -ENOMEM;
		}
	}
	return 0;
}

static int conditions(const struct cyclic *c, struct latency_run *run)
{
	struct latency_engine as_engine = {
		.options =
			{
				.tool = LATENCY_CYCLIC,
				.policy = c->options.policy,
				.priority = c->options.priority,
				.align_ns = c->options.spread_ns,
				.clock = c->options.clock,
			},
		.id = ENGINE_USER,
	};
	static const char blind[] =
		"The way to user space: latency of the timer's interrupt and of "
		"the thread, and who was in the way (culprit timerlat does).";
	uint32_t id;
	int r = own_conditions(&as_engine, run);

	if (r == 0)
		r = latency_run_condition(run, "sleep",
					  c->options.relative ? "clock_nanosleep, relative"
							      : "clock_nanosleep, absolute");
	if (r == 0)
		r = strtab_intern_text(&run->names, blind, &id);
	if (r == 0)
		r = vec_push(&run->cannot_see, id);
	run->period_ns = c->options.interval_ns;
	run->limits.thread_ns = c->options.break_ns;
	return r;
}

static void go(struct cyclic *c, struct sampler_cpu *io)
{
	for (unsigned i = 0; i < c->options.threads; i++) {
		c->threads[i].tid = samplers_tids(c->samplers)[i];
		if (c->options.smi)
			c->threads[i].smi = cpu_smi_count(c->threads[i].cpu);
		io[i] = (struct sampler_cpu){
			.state = &c->states[i],
			.ring = c->rings[i],
			.frozen = &c->frozen,
		};
	}
	samplers_go(c->samplers, io);
}

int cyclic_start(const struct cyclic_options *options, struct latency_run *run, struct cyclic **ret,
		 struct err *err)
{
	struct cyclic *c = calloc(1, sizeof(*c));
	struct sampler_cpu *io = calloc(options->threads, sizeof(*io));
	struct sampler_options sampler;
	bool unlocked = false;
	int r = -ENOMEM;

	if (!c || !io)
		goto fail;
	c->options = *options;
	r = allocate(c);
	if (r < 0)
		goto fail;
	sampler = (struct sampler_options){
		.wakes = true,
		.thread_cpus = options->cpus,
		.thread_count = options->threads,
		.lock_memory = options->lock_memory,
		.align_ns = options->spread_ns,
		.period_ns = options->interval_ns,
		/* cyclictest's limit is passed, not reached */
		.limits.thread_ns = options->break_ns ? options->break_ns + 1 : 0,
		.policy = options->policy,
		.priority = options->priority,
		.clock = options->clock,
		.loops = options->loops,
		.relative = options->relative,
		.intervals_ns = c->intervals,
	};
	r = samplers_new(&sampler, &c->samplers, &unlocked, err);
	if (r == 0 && unlocked)
		latency_run_warn(run, "memory could not be locked (CAP_IPC_LOCK, ulimit -l): page "
				      "faults may add to the latencies");
	if (r == 0)
		r = conditions(c, run);
	if (r < 0)
		goto fail;
	go(c, io);
	free(io);
	*ret = c;
	return 0;
fail:
	free(io);
	cyclic_free(c);
	return r;
}

static int take(struct cyclic *c, unsigned i, const struct lat_record *from,
		struct latency_run *run)
{
	struct cyclic_thread *t = &c->threads[i];
	struct latency_record to = {
		.kind = LATENCY_SAMPLE,
		.cpu = t->cpu,
		.time_ns = from->time,
		.pid = t->tid,
		.sample = {.context = LATENCY_USER, .seq = from->extra, .latency_ns = from->value},
	};
	uint64_t us = (uint64_t)MAX(from->value, 0) / NSEC_PER_USEC;
	int r;

	if (from->kind == LAT_STOPPED) {
		if (!c->broken) {
			c->broken = t;
			c->broken_ns = from->value;
		}
		to.kind = LATENCY_STOPPED;
		return latency_run_take(run, &to);
	}
	r = latency_series_add(&t->latency, from->value);
	if (r < 0)
		return r;
	t->cycles++;
	if (t->rows && us < c->options.rows) {
		t->rows[us]++;
	} else if (t->rows) {
		t->over++;
		r = histogram_add(&t->beyond, (uint64_t)from->value);
		if (r >= 0 && t->over_cycles.len < CYCLIC_OVER_CYCLES)
			r = vec_push(&t->over_cycles, from->extra - 1);
	}
	return r < 0 ? r : latency_run_take(run, &to);
}

static int drain(struct cyclic *c, bool final, struct latency_run *run)
{
	struct lat_record record;
	int r = 0;

	for (unsigned i = 0; i < c->options.threads && r == 0; i++) {
		while (r == 0 && lat_ring_read(&c->rings[i], final, &record))
			r = take(c, i, &record, run);
		if (r == 0 && c->rings[i].lost > c->lost_told[i]) {
			struct latency_record lost = {
				.kind = LATENCY_LOST,
				.cpu = c->threads[i].cpu,
				.pid = -1,
				.lost.events = c->rings[i].lost - c->lost_told[i],
			};

			c->lost_told[i] = c->rings[i].lost;
			r = latency_run_take(run, &lost);
		}
	}
	return r;
}

int cyclic_poll(struct cyclic *c, unsigned wait_ms, struct latency_run *run, bool *ret_ended)
{
	const struct timespec pause = {.tv_sec = wait_ms / 1000,
				       .tv_nsec = (long)(wait_ms % 1000 * NSEC_PER_MSEC)};
	int r;

	nanosleep(&pause, NULL);
	*ret_ended = samplers_done(c->samplers) || __atomic_load_n(&c->frozen, __ATOMIC_ACQUIRE);
	r = drain(c, false, run);
	return r;
}

int cyclic_stop(struct cyclic *c, struct latency_run *run)
{
	int r;

	if (!samplers_stop(c->samplers))
		latency_run_warn(run, "a thread did not end: something of a higher priority does "
				      "not let go of its CPU");
	r = drain(c, true, run);
	samplers_tell_skipped(c->samplers, "an interval", run);
	for (unsigned i = 0; i < c->options.threads && r == 0; i++) {
		struct cyclic_thread *t = &c->threads[i];
		int64_t now = c->options.smi ? cpu_smi_count(t->cpu) : LATENCY_UNKNOWN_NS;
		struct latency_cpu *row = latency_run_cpu(run, t->cpu);

		if (!row)
			return -ENOMEM;
		t->smi = now >= 0 && t->smi >= 0 ? now - t->smi : LATENCY_UNKNOWN_NS;
		row->smi_count = t->smi;
	}
	return r;
}

const struct cyclic_thread *cyclic_threads(const struct cyclic *c)
{
	return c->threads;
}

const struct cyclic_thread *cyclic_broken(const struct cyclic *c, int64_t *ret_ns)
{
	*ret_ns = c->broken_ns;
	return c->broken;
}

void cyclic_free(struct cyclic *c)
{
	if (!c)
		return;
	if (!samplers_free(c->samplers))
		return;
	for (unsigned i = 0; c->threads && i < c->options.threads; i++) {
		latency_series_fini(&c->threads[i].latency);
		free(c->threads[i].rows);
		histogram_fini(&c->threads[i].beyond);
		vec_fini(&c->threads[i].over_cycles);
	}
	free(c->threads);
	free(c->rings);
	free(c->intervals);
	free(c->lost_told);
	free(c->states);
	free(c->slots);
	free(c);
}
