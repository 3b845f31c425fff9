/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all programs share: their settings, the maps, writing records, windows. */
#pragma once

#include "bpf/latency-shared.h"
#include "bpf/latency-types.bpf.h"

/* Set before loading; what they exclude is not even verified. (The skeleton knows basic types
 * only.)
 */
const volatile bool cfg_timerlat; /* wake-ups are measured, else gaps */
const volatile bool cfg_full;     /* windows are kept */
const volatile bool cfg_trace;    /* everything is written, for the flight recorder */
const volatile bool cfg_remote;   /* timers of measured CPUs may expire on others (nohz_full) */
const volatile unsigned int cfg_ring_mask;
const volatile unsigned int cfg_last; /* index behind the last CPU: see frozen() */
const volatile unsigned long long cfg_irq_limit, cfg_thread_limit; /* 0 none */
const volatile unsigned long long cfg_stack;                       /* 0 no stacks */
const volatile unsigned long long cfg_ns_dev, cfg_ns_ino; /* the sampling threads' pid namespace */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lat_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lat_record);
} ring SEC(".maps");

struct stack {
	u64 frame[LAT_STACK_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack);
} stacks SEC(".maps");

/* Timers of measured CPUs that sleep on other ones: timer -> CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u32);
} remote_timers SEC(".maps");

static __always_inline struct lat_cpu *cpu_of(u32 cpu)
{
	struct lat_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	return c && c->active ? c : NULL;
}

static __always_inline struct lat_cpu *this_cpu(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

/*
 * Nothing is written any more: `active` of the element behind the last CPU, which stands in the
 * page of the others. (A variable would be a page of its own, which is never in the TLB when an
 * interrupt ends an idle wait.)
 */
static __always_inline unsigned int *frozen(void)
{
	u32 last = cfg_last;
	struct lat_cpu *c = bpf_map_lookup_elem(&cpus, &last);

	return c ? &c->active : NULL;
}

/* For windows, which need nothing of the line that says active. */
static __always_inline struct lat_cpu *windows_here(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct lat_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	return c && c->counter ? c : NULL;
}

/* --- records --------------------------------------------------------------------------------- */

static __always_inline struct lat_record *record_new(struct lat_cpu *c, u32 *seq, u8 kind, u64 time)
{
	const unsigned int *stop = frozen();
	struct lat_record *r;
	u64 position;
	u32 index;

	if (!stop || READ_ONCE(*stop))
		return NULL;
	position = __sync_fetch_and_add(&c->head, 1);
	index = c->ring_base + ((u32)position & cfg_ring_mask);
	r = bpf_map_lookup_elem(&ring, &index);
	if (!r)
		return NULL;
	WRITE_ONCE(r->seq, 0);
	barrier();
	*seq = (u32)position + 1;
	r->kind = kind;
	r->cls = 0;
	r->sub = 0;
	r->time = time;
	return r;
}

static __always_inline void record_done(struct lat_record *r, u32 seq)
{
	barrier();
#ifdef __TARGET_ARCH_x86
	WRITE_ONCE(r->seq, seq); /* stores are not reordered there */
#else
	__sync_lock_test_and_set(&r->seq, seq);
#endif
}

/* Plain loads, which cost a tenth of a helper that copies text. */
static __always_inline void write_comm(struct lat_record *r, const struct task_struct *task)
{
	((u64 *)r->comm)[0] = *(const u64 *)&task->comm[0];
	((u64 *)r->comm)[1] = *(const u64 *)&task->comm[8];
}

static __always_inline void write_current(struct lat_record *r)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	r->pid = task->pid;
	write_comm(r, task);
}

static __always_inline void write_noise(struct lat_cpu *c, u8 cls, u8 sub, int number, u64 arrival,
					s64 duration, u64 function, u64 time)
{
	struct lat_record *r;
	u32 seq;

	r = record_new(c, &seq, LAT_NOISE, time);
	if (!r)
		return;
	r->cls = cls;
	r->sub = sub;
	r->number = number;
	r->start = arrival;
	r->value = duration;
	r->extra = function;
	if (cfg_trace) {
		write_current(r);
	} else {
		r->pid = (u32)bpf_get_current_pid_tgid();
		r->comm[0] = 0;
	}
	record_done(r, seq);
}

static __always_inline void write_stopped(struct lat_cpu *c, u8 context, s64 value, u64 time)
{
	unsigned int *stop = frozen();
	struct lat_record *r;
	u32 seq;

	r = record_new(c, &seq, LAT_STOPPED, time);
	if (r) {
		r->cls = context;
		r->value = value;
		r->pid = -1;
		r->comm[0] = 0;
		record_done(r, seq);
	}
	if (stop)
		WRITE_ONCE(*stop, 1);
}

static __always_inline void write_sample(struct lat_cpu *c, u8 context, u64 expires, u64 time,
					 bool here)
{
	struct lat_record *r;
	u32 seq;

	r = record_new(c, &seq, LAT_SAMPLE, time);
	if (!r)
		return;
	r->cls = context;
	r->start = expires;
	r->value = (s64)(time - expires);
	r->extra = c->seq;
	r->number = 0;
	r->comm[0] = 0;
	if (context == LAT_IN_THREAD) {
		r->pid = c->tid; /* about to run: current still is the one before */
	} else if (here) {
		if (cfg_full)
			write_current(r);
		else
			r->pid = (u32)bpf_get_current_pid_tgid();
	} else {
		r->pid = -1;
	}
	record_done(r, seq);
}

static __always_inline bool waiting(const struct lat_cpu *c)
{
	u64 next = READ_ONCE(c->next);

	return next && c->fired == next && c->sampled != next;
}

/*
 * Are interruptions of this class that end now written down? In timerlat only what was in the way:
 * interrupts that end after the expiry and before the thread sleeps again (also those that held up
 * the timer's own), softirqs and threads while the thread waits.
 */
static __always_inline bool wanted(const struct lat_cpu *c, u8 cls, u64 now)
{
	u64 next;

	if (cfg_trace)
		return true;
	if (!cfg_timerlat)
		return READ_ONCE(c->sampling);
	next = READ_ONCE(c->next);
	return cls <= LAT_IRQ ? next && now >= next : waiting(c);
}

/* --- windows --------------------------------------------------------------------------------- */

/* Not atomic: an interruption that comes in between has itself changed it. */
static __always_inline void count_begin(struct lat_cpu *c)
{
	WRITE_ONCE(c->counter, READ_ONCE(c->counter) + 1);
}

static __always_inline void window_open(struct lat_cpu *c, u8 cls, u64 *arrival, u64 now)
{
	*arrival = now;
	WRITE_ONCE(c->start[cls], now);
	count_begin(c);
}

/* For beginnings with interrupts on: an interrupt between the clock and the store must not count
 * into the window. */
static __always_inline void window_open_safely(struct lat_cpu *c, u8 cls, u64 *arrival)
{
	u64 now = 0;

	for (int i = 0; i < 4; i++) {
		u64 before = READ_ONCE(c->counter);

		now = bpf_ktime_get_ns();
		WRITE_ONCE(c->start[cls], now);
		if (READ_ONCE(c->counter) == before)
			break;
	}
	*arrival = now;
	count_begin(c);
}

static __always_inline void push(struct lat_cpu *c, u8 cls, u64 ns)
{
	if (c->start[cls])
		c->start[cls] += ns;
}

/* With interrupts on: an interrupt may push, or set the start anew, at any instruction. */
static __always_inline void push_safely(struct lat_cpu *c, u8 cls, u64 ns, u64 epoch)
{
	for (int i = 0; i < 8; i++) {
		u64 start = READ_ONCE(c->start[cls]);

		if (!start || READ_ONCE(c->epoch) != epoch ||
		    __sync_val_compare_and_swap(&c->start[cls], start, start + ns) == start)
			return;
	}
}

/* Wake-ups need no sums. */
static __always_inline void account(struct lat_cpu *c, u8 cls, u64 ns, u64 count)
{
	if (cfg_timerlat)
		return;
	WRITE_ONCE(c->net[cls], c->net[cls] + ns);
	WRITE_ONCE(c->count[cls], c->count[cls] + count);
}

/* The hypervisor's share since it was last asked: told at once, for what it explains is now. */
static __always_inline void steal_check(struct lat_cpu *c, u64 now)
{
	struct lat_record *r;
	u64 steal = 0, delta;
	u32 seq;

	if (!c->steal_address ||
	    bpf_probe_read_kernel(&steal, sizeof(steal), (const void *)c->steal_address))
		return;
	delta = steal - c->steal_last;
	if (!delta || (s64)delta < 0)
		return;
	c->steal_last = steal;
	c->steal_total += delta;
	r = record_new(c, &seq, LAT_STEAL, now);
	if (!r)
		return;
	r->value = (s64)delta;
	r->pid = -1;
	r->comm[0] = 0;
	record_done(r, seq);
}
