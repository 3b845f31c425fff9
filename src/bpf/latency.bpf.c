// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Latency and noise of the CPUs that are measured, by BTF tracepoints alone: those attached through
 * perf lose events that interrupt each other. latency-shared.h explains the records.
 *
 * Every interruption is a window of its class. Its beginning stores the time in start[] and bumps
 * counter; its end takes the length and pushes the start of every window below forward, so that
 * each length is net of what interrupted it. Between two reads of the clock with the same counter
 * nothing known happened: that is what the sampling loop in user space relies on.
 *
 * In timerlat the timer's interrupt sets the starts of the windows it interrupted to its own, so
 * that only time after it counts. An end below that is just being pushed must then leave the start
 * alone: the epoch tells.
 */
#include "bpf/latency-windows.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- interrupts ------------------------------------------------------------------------------ */

static __always_inline void irq_begin(void)
{
	struct lat_cpu *c = windows_here();

	if (!c)
		return;
	c->timers = 0; /* of one whose end was missed */
	window_open(c, LAT_IRQ, &c->irq_arrival, bpf_ktime_get_ns());
}

/* One timer in an interrupt is the rule: only from the second on their times are compared. The
 * first began with the interrupt. */
static __always_inline u64 timer_begin(struct lat_cpu *c, u64 function)
{
	u64 now, ran;

	if (!c->timers++) {
		c->timer_now = function;
		return 0;
	}
	now = bpf_ktime_get_ns();
	if (c->timers == 2) {
		c->timer_since = c->irq_arrival;
		c->timer_longest = 0;
	}
	ran = now - c->timer_since;
	if (ran >= c->timer_longest) {
		c->timer_longest = ran;
		c->timer_function = c->timer_now;
	}
	c->timer_now = function;
	c->timer_since = now;
	return now;
}

/* The function that took longest, 0 none; forgets all. */
static __always_inline u64 timers_end(struct lat_cpu *c, u64 now)
{
	u64 timers = c->timers, function = c->timer_now;

	if (!timers)
		return 0;
	c->timers = 0;
	return timers > 1 && now - c->timer_since < c->timer_longest ? c->timer_function : function;
}

/* Closes the window; its net length, 0 when none was open (or shorter than the clock tells). */
static __always_inline u64 irq_close(struct lat_cpu *c, u64 now)
{
	u64 duration = now - c->start[LAT_IRQ];

	c->start[LAT_IRQ] = 0;
	push(c, LAT_SOFTIRQ, duration);
	push(c, LAT_THREAD, duration);
	return duration;
}

/* count false: the time is gone, but this was one of several handlers of a line and not its
 * cause. */
static __always_inline void irq_end(u8 sub, int number, bool count)
{
	struct lat_cpu *c = windows_here();
	u64 now, duration, function;

	if (!c || !c->start[LAT_IRQ])
		return;
	now = bpf_ktime_get_ns();
	duration = irq_close(c, now);
	function = timers_end(c, now);
	account(c, LAT_IRQ, duration, count);
	if (count && wanted(c, LAT_IRQ, now))
		write_noise(c, LAT_IRQ, sub, number, c->irq_arrival, (s64)duration, function, now);
	if (sub == LAT_LOCAL_TIMER)
		steal_check(c, now);
	if (cfg_irq_limit && c->stop_pending)
		write_stopped(c, LAT_IN_IRQ, c->stop_value, now);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_entry, int irq)
{
	irq_begin();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_exit, int irq, void *action, int ret)
{
	irq_end(LAT_DEVICE, irq, ret != 0);
	return 0;
}

#define VECTOR(name, source)                   \
	SEC("tp_btf/" #name "_entry")          \
	int BPF_PROG(name##_begin, int vector) \
	{                                      \
		irq_begin();                   \
		return 0;                      \
	}                                      \
	SEC("tp_btf/" #name "_exit")           \
	int BPF_PROG(name##_end, int vector)   \
	{                                      \
		irq_end(source, vector, true); \
		return 0;                      \
	}

VECTOR(local_timer, LAT_LOCAL_TIMER)
VECTOR(reschedule, LAT_RESCHEDULE)
VECTOR(call_function, LAT_CALL_FUNCTION)
VECTOR(call_function_single, LAT_CALL_FUNCTION_SINGLE)
VECTOR(irq_work, LAT_IRQ_WORK)
VECTOR(x86_platform_ipi, LAT_PLATFORM_IPI)
VECTOR(thermal_apic, LAT_THERMAL)
VECTOR(threshold_apic, LAT_THRESHOLD)
VECTOR(deferred_error_apic, LAT_DEFERRED_ERROR)
VECTOR(spurious_apic, LAT_SPURIOUS)
VECTOR(error_apic, LAT_ERROR)

/* Arm: interrupts between processors have a text instead of a number. */
SEC("tp_btf/ipi_entry")
int BPF_PROG(ipi_begin, const char *reason)
{
	irq_begin();
	return 0;
}

SEC("tp_btf/ipi_exit")
int BPF_PROG(ipi_end, const char *reason)
{
	struct lat_cpu *c = windows_here();
	struct lat_record *r;
	u64 now, duration;
	u32 seq;

	if (!c || !c->start[LAT_IRQ])
		return 0;
	now = bpf_ktime_get_ns();
	duration = irq_close(c, now);
	timers_end(c, now);
	account(c, LAT_IRQ, duration, 1);
	if (!wanted(c, LAT_IRQ, now))
		return 0;
	r = record_new(c, &seq, LAT_NOISE, now);
	if (!r)
		return 0;
	r->cls = LAT_IRQ;
	r->sub = LAT_IPI;
	r->number = -1;
	r->start = c->irq_arrival;
	r->value = (s64)duration;
	r->extra = 0;
	r->pid = (u32)bpf_get_current_pid_tgid();
	if (bpf_probe_read_kernel_str(r->comm, sizeof(r->comm), reason) < 0)
		r->comm[0] = 0;
	record_done(r, seq);
	return 0;
}

/* There is no event at the beginning of an NMI, only one after each of its handlers. */
SEC("tp_btf/nmi_handler")
int BPF_PROG(nmi, u64 handler, s64 delta, int handled)
{
	struct lat_cpu *c = windows_here();
	u64 now;

	if (!c || delta < 0)
		return 0;
	now = bpf_ktime_get_ns();
	count_begin(c);
	push(c, LAT_IRQ, delta);
	push(c, LAT_SOFTIRQ, delta);
	push(c, LAT_THREAD, delta);
	account(c, LAT_NMI, delta, 1);
	if (wanted(c, LAT_NMI, now))
		write_noise(c, LAT_NMI, 0, -1, now - delta, delta, handler, now);
	return 0;
}

/* --- softirqs (threads of their own on PREEMPT_RT: not loaded there) -------------------------- */

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_begin, unsigned int vector)
{
	struct lat_cpu *c = windows_here();

	if (c)
		window_open_safely(c, LAT_SOFTIRQ, &c->softirq_arrival);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_end, unsigned int vector)
{
	struct lat_cpu *c = windows_here();
	u64 now = 0, duration = 0, epoch = 0;

	if (!c || !c->start[LAT_SOFTIRQ])
		return 0;
	for (int i = 0; i < 4; i++) {
		u64 before = READ_ONCE(c->counter);

		epoch = READ_ONCE(c->epoch);
		now = bpf_ktime_get_ns();
		duration = now - READ_ONCE(c->start[LAT_SOFTIRQ]);
		if (READ_ONCE(c->counter) == before)
			break;
	}
	WRITE_ONCE(c->start[LAT_SOFTIRQ], 0);
	push_safely(c, LAT_THREAD, duration, epoch);
	account(c, LAT_SOFTIRQ, duration, 1);
	if (wanted(c, LAT_SOFTIRQ, now))
		write_noise(c, LAT_SOFTIRQ, 0, (int)vector, c->softirq_arrival, (s64)duration, 0,
			    now);
	return 0;
}

/* --- the timer ------------------------------------------------------------------------------- */

static __always_inline void stack_take(void *ctx, struct lat_cpu *c, u32 cpu)
{
	struct stack *s = bpf_map_lookup_elem(&stacks, &cpu);
	long bytes = s ? bpf_get_stack(ctx, s->frame, sizeof(s->frame), 0) : 0;

	c->stack_count = bytes > 0 ? (u64)bytes / sizeof(u64) : 0;
}

static __always_inline void stack_write(struct lat_cpu *c, u32 cpu, u64 now)
{
	struct stack *s = bpf_map_lookup_elem(&stacks, &cpu);

	if (!s)
		return;
	for (u32 at = 0; at < LAT_STACK_FRAMES; at += LAT_STACK_WORDS) {
		struct lat_record *r;
		u64 frame[LAT_STACK_WORDS] = {0};
		u32 seq;

		if (at >= c->stack_count)
			break;
		for (u32 i = 0; i < LAT_STACK_WORDS; i++)
			if (at + i < LAT_STACK_FRAMES)
				frame[i] = s->frame[at + i];
		r = record_new(c, &seq, LAT_STACK, now);
		if (!r)
			break;
		r->start = frame[0];
		r->value = (s64)frame[1];
		r->extra = frame[2];
		*(u64 *)&r->comm[0] = frame[3];
		*(u64 *)&r->comm[8] = frame[4];
		r->number = (int)at;
		r->pid = (int)c->stack_count;
		record_done(r, seq);
	}
	c->stack_count = 0;
}

/* The wake-up's timer expired: the latency of its interrupt. here: on the CPU that sleeps. */
static __always_inline void expired(void *ctx, struct lat_cpu *c, u32 cpu, u64 expires, u64 now,
				    bool here)
{
	u64 latency = now - expires;

	c->fired = expires;
	c->seq++;
	write_sample(c, LAT_IN_IRQ, expires, now, here);
	if (cfg_full) {
		u64 from = here && c->start[LAT_IRQ] ? c->irq_arrival : now;

		if (c->start[LAT_SOFTIRQ])
			c->start[LAT_SOFTIRQ] = from;
		if (c->start[LAT_THREAD])
			c->start[LAT_THREAD] = from;
		c->epoch++;
		if (cfg_stack && here) {
			c->stack_count = 0;
			if (latency >= cfg_stack / 4 || (u32)bpf_get_current_pid_tgid())
				stack_take(ctx, c, cpu);
			if (latency >= cfg_stack)
				stack_write(c, cpu, now);
		}
	}
	if (cfg_irq_limit && latency >= cfg_irq_limit) {
		if (cfg_full && here && c->start[LAT_IRQ]) {
			/* its end is still to be written down */
			c->stop_value = (s64)latency;
			c->stop_pending = 1;
		} else {
			write_stopped(c, LAT_IN_IRQ, (s64)latency, now);
		}
	}
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(timer_expires, struct hrtimer *timer)
{
	u32 cpu = bpf_get_smp_processor_id(), *owner;
	struct lat_cpu *c = cpu_of(cpu);
	u64 key = (u64)timer, expires, now = 0;

	if (c && cfg_full && c->start[LAT_IRQ])
		now = timer_begin(c, (u64)timer->function);
	if (!cfg_timerlat)
		return 0;
	expires = (u64)timer->_softexpires;
	if (c && expires == READ_ONCE(c->next)) {
		if (c->fired != expires)
			expired(ctx, c, cpu, expires, now ? now : bpf_ktime_get_ns(), true);
		return 0;
	}
	if (!cfg_remote)
		return 0;
	owner = bpf_map_lookup_elem(&remote_timers, &key);
	if (!owner)
		return 0;
	cpu = *owner;
	c = cpu_of(cpu);
	if (c && expires == READ_ONCE(c->next) && c->fired != expires)
		expired(ctx, c, cpu, expires, bpf_ktime_get_ns(), false);
	return 0;
}

/* Only where timers may be queued on other CPUs. */
SEC("tp_btf/hrtimer_start")
int BPF_PROG(timer_starts, struct hrtimer *timer)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct lat_cpu *c = cpu_of(cpu);
	u64 key = (u64)timer;

	if (c && (u64)timer->_softexpires == READ_ONCE(c->next))
		bpf_map_update_elem(&remote_timers, &key, &cpu, 0);
	return 0;
}

/* Second source: the expiry's own event is lost when it interrupts that of a soft timer. */
SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct lat_cpu *c = cpu_of(cpu);
	u64 next, now;

	if (!c || !c->tid || task->pid != c->tid)
		return 0;
	next = READ_ONCE(c->next);
	if (!next || c->fired == next || (cfg_full && !c->start[LAT_IRQ]))
		return 0;
	now = bpf_ktime_get_ns();
	if (now < next)
		return 0;
	c->second_source++;
	expired(ctx, c, cpu, next, now, true);
	return 0;
}

/* --- threads --------------------------------------------------------------------------------- */

static __always_inline void work_change(struct lat_cpu *c, u64 function, u64 now)
{
	u64 ran = now - c->work_since;

	if (c->work_now && ran >= c->work_longest) {
		c->work_longest = ran;
		c->work_function = c->work_now;
	}
	c->work_now = function;
	c->work_since = now;
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(work_begins, struct work_struct *work)
{
	struct lat_cpu *c = this_cpu();
	struct lat_record *r;
	u64 now;
	u32 seq;

	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	work_change(c, (u64)work->func, now);
	if (!(cfg_trace || (cfg_timerlat && waiting(c))))
		return 0;
	r = record_new(c, &seq, LAT_WORK, now);
	if (!r)
		return 0;
	r->extra = (u64)work->func;
	write_current(r);
	record_done(r, seq);
	return 0;
}

static __always_inline void thread_end(struct lat_cpu *c, struct task_struct *task, u64 now)
{
	struct lat_record *r;
	u64 duration;
	u32 seq;

	if (!c->start[LAT_THREAD])
		return;
	duration = now - c->start[LAT_THREAD];
	c->start[LAT_THREAD] = 0;
	if (c->work_now)
		work_change(c, 0, now);
	account(c, LAT_THREAD, duration, 1);
	if (!wanted(c, LAT_THREAD, now))
		return;
	r = record_new(c, &seq, LAT_NOISE, now);
	if (!r)
		return;
	r->cls = LAT_THREAD;
	r->number = r->pid = task->pid;
	r->start = c->thread_arrival;
	r->value = (s64)duration;
	r->extra = c->work_function;
	write_comm(r, task);
	record_done(r, seq);
}

/* The woken thread runs. */
static __always_inline void woken(struct lat_cpu *c, u64 now)
{
	u64 next = READ_ONCE(c->next);

	if (!next || c->sampled == next)
		return;
	if (c->fired != next) {
		/* preempted on its way to sleep, or the interrupt was missed */
		if (now < next)
			return;
		c->missed_irq++;
		c->seq++;
		c->fired = next;
	}
	c->sampled = next;
	write_sample(c, LAT_IN_THREAD, next, now, true);
	if (cfg_stack && c->stack_count && now - next >= cfg_stack)
		stack_write(c, bpf_get_smp_processor_id(), now);
	if (cfg_thread_limit && now - next >= cfg_thread_limit)
		write_stopped(c, LAT_IN_THREAD, (s64)(now - next), now);
}

/* The sampling thread, known in user space by the number its namespace gives it. */
static __always_inline void enrol(struct lat_cpu *c, struct task_struct *prev)
{
	struct bpf_pidns_info info = {0};

	if (bpf_get_ns_current_pid_tgid(cfg_ns_dev, cfg_ns_ino, &info, sizeof(info)) == 0 &&
	    (int)info.pid == c->ns_tid)
		c->tid = prev->pid;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct lat_cpu *c = this_cpu();
	struct lat_record *r;
	bool to_us, from_us;
	u64 now;
	u32 seq;

	if (!c)
		return 0;
	if (!c->tid) {
		if (c->ns_tid)
			enrol(c, prev);
		return 0;
	}
	to_us = next->pid == c->tid;
	if (!cfg_full) {
		if (to_us)
			woken(c, bpf_ktime_get_ns());
		return 0;
	}
	from_us = prev->pid == c->tid;
	now = bpf_ktime_get_ns();
	steal_check(c, now);
	if (!from_us)
		thread_end(c, prev, now);
	if (cfg_trace) {
		r = record_new(c, &seq, LAT_SWITCH, now);
		if (r) {
			r->pid = prev->pid;
			r->number = next->pid;
			r->extra = (u64)next->prio;
			write_comm(r, next);
			record_done(r, seq);
		}
	}
	if (to_us) {
		if (cfg_timerlat)
			woken(c, now);
	} else {
		if (c->work_function)
			c->work_longest = c->work_function = 0;
		window_open(c, LAT_THREAD, &c->thread_arrival, now);
	}
	return 0;
}

/* --- where the hypervisor's share stands ------------------------------------------------------ */

/* Attached only until every measured CPU has its address; one of the two is loaded. */
SEC("tp_btf/sched_switch")
int BPF_PROG(find_steal_rq, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct lat_cpu *c = this_cpu();
	struct cfs_rq *cfs;
	struct rq *rq;

	if (!c || c->steal_address || !bpf_core_field_exists(next->se.cfs_rq) ||
	    !bpf_core_field_exists(struct rq, prev_steal_time_rq))
		return 0;
	cfs = next->se.cfs_rq;
	if (!cfs)
		return 0;
	rq = cfs->rq;
	if (!rq)
		return 0;
	c->steal_last = rq->prev_steal_time_rq;
	c->steal_address = (u64)rq + bpf_core_field_offset(struct rq, prev_steal_time_rq);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(find_steal_ksym, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct kvm_steal_time *time = bpf_this_cpu_ptr(&steal_time);
	struct lat_cpu *c = this_cpu();

	if (!c || c->steal_address)
		return 0;
	c->steal_last = time->steal;
	c->steal_address = (u64)time + bpf_core_field_offset(struct kvm_steal_time, steal);
	return 0;
}
