/*
 * The state machine of the automatic analysis, one per CPU:
 *
 *	WAIT_IRQ     after a thread's sample: interrupts are remembered, they may
 *	             overlap the next expiry
 *	WAIT_THREAD  after a sample in the timer's interrupt: everything that
 *	             happens is in the way
 *	WAIT_USER    after the thread's sample, when a sample in user space may
 *	             follow
 *
 * Every activation starts with empty sums. Markers of loss empty the state: nothing is joined
 * across them. Sources emit an interruption when it ends, so the timer's interrupt itself comes
 * after the sample that was taken inside it; it is the one that encloses the sample, whatever
 * nested or stayed over in between. Times of interruptions ("start") may come from another clock
 * than those of the records: the difference is seen at interrupts, which are recorded as they end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "latency/analysis-internal.h"

#define PARTS_MAX      4096 /* of one activation; more are only summed up */
#define SLACK_NS       1500 /* times of text are cut to microseconds */
#define OTHER_CLOCK_NS 1000000
#define TIME_MAX_NS    (INT64_C(1) << 61) /* points in time: until the year 2043 */
#define SPAN_MAX_NS    (INT64_C(1) << 48) /* durations: three days */
#define SUM_MAX_NS     (INT64_C(1) << 60)

int latency_analysis_new(struct latency_run *run, unsigned keep, struct latency_analysis **ret)
{
	struct latency_analysis *analysis = calloc(1, sizeof(*analysis));

	if (!analysis)
		return -ENOMEM;
	analysis->run = run;
	analysis->keep = keep;
	*ret = analysis;
	return 0;
}

void latency_analysis_spare_cpus(struct latency_analysis *analysis, const struct cpuset *cpus)
{
	analysis->has_free_cpus = cpuset_count(cpus) > 0;
	analysis->free_cpus = *cpus;
}

static void kept_fini(struct kept *kept)
{
	latency_verdicts_free(kept->verdicts.data, (unsigned)kept->verdicts.len);
	kept->verdicts.data = NULL;
	kept->verdicts.len = kept->verdicts.cap = 0;
}

void latency_analysis_free(struct latency_analysis *analysis)
{
	if (!analysis)
		return;
	vec_for_each(&analysis->cpus, slot) {
		if (!*slot)
			continue;
		vec_fini(&(*slot)->parts);
		vec_fini(&(*slot)->stack);
		kept_fini(&(*slot)->kept);
		free(*slot);
	}
	vec_fini(&analysis->cpus);
	free(analysis);
}

static struct analysis_cpu *cpu_of(struct latency_analysis *analysis, unsigned cpu)
{
	struct analysis_cpu *made;

	while (analysis->cpus.len <= cpu)
		if (vec_push(&analysis->cpus, NULL) < 0)
			return NULL;
	if (analysis->cpus.data[cpu])
		return analysis->cpus.data[cpu];
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->cpu = cpu;
	made->work_pid = -1;
	analysis->cpus.data[cpu] = made;
	return made;
}

static void forget(struct analysis_cpu *cpu)
{
	cpu->state = WAIT_IRQ;
	cpu->recent_count = cpu->recent_next = 0;
	cpu->parts.len = cpu->stack.len = 0;
	cpu->work_pid = -1;
}

/* --- records ------------------------------------------------------------------------------- */

static int intern(struct latency_analysis *analysis, const char *text, uint32_t *ret)
{
	*ret = 0;
	return text && *text ? strtab_intern_text(&analysis->run->names, text, ret) : 0;
}

static int64_t end_of_recent(const struct analysis_cpu *cpu)
{
	unsigned last = (cpu->recent_next + RECENT_MAX - 1) % RECENT_MAX;

	return cpu->recent_count ? cpu->recent[last].end_ns : INT64_MIN;
}

static int begin_cycle(struct latency_analysis *analysis, struct analysis_cpu *cpu,
		       const struct latency_record *record)
{
	struct latency_cpu *row;
	int r = intern(analysis, record->comm, &cpu->run_comm);

	if (r < 0)
		return r;
	cpu->state = WAIT_THREAD;
	cpu->seq = record->sample.seq;
	cpu->latency_ns = record->sample.latency_ns;
	cpu->has_time = record->time_ns != 0;
	cpu->time_ns = (int64_t)record->time_ns;
	cpu->expiry_ns = cpu->time_ns - cpu->latency_ns;
	cpu->run_pid = record->pid;
	cpu->run_work = record->pid >= 0 && record->pid == cpu->work_pid ? cpu->work : 0;
	cpu->has_timer = false;
	cpu->timer_ns = cpu->blocking_ns = cpu->steal_ns = cpu->thread_ns = 0;
	cpu->blocking_name = 0;
	memset(cpu->class_ns, 0, sizeof(cpu->class_ns));
	cpu->parts.len = cpu->stack.len = 0;
	cpu->idle = record->pid == 0 && (!cpu->has_time || cpu->expiry_ns >= end_of_recent(cpu));
	row = latency_run_cpu(analysis->run, cpu->cpu);
	if (!row)
		return -ENOMEM;
	cpu->has_steal = row->steal_ns != LATENCY_UNKNOWN_NS;
	if (cpu->has_time && cpu->last_steal_time_ns >= cpu->expiry_ns)
		cpu->steal_ns = cpu->last_steal_ns;
	cpu->last_steal_ns = 0;
	if (cpu->idle)
		row->max_from_idle_ns = MAX(row->max_from_idle_ns, cpu->latency_ns);
	return 0;
}

/* The interrupt of the activation is not among the records: the number stands, its reason does not.
 */
static int close_without_irq(struct latency_analysis *analysis, struct analysis_cpu *cpu,
			     const struct latency_record *record)
{
	forget(cpu);
	cpu->seq = record->sample.seq;
	cpu->latency_ns = LATENCY_UNKNOWN_NS;
	cpu->has_time = cpu->has_timer = cpu->has_steal = cpu->idle = false;
	cpu->run_pid = -1;
	cpu->run_comm = cpu->run_work = 0;
	cpu->blocking_ns = LATENCY_UNKNOWN_NS;
	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		cpu->class_ns[i] = LATENCY_UNKNOWN_NS;
	return analysis_over_limit(analysis->run, record->sample.context, record->sample.latency_ns)
		       ? analysis_close(analysis, cpu, record->sample.context,
					record->sample.latency_ns)
		       : 0;
}

static int take_sample(struct latency_analysis *analysis, struct analysis_cpu *cpu,
		       const struct latency_record *record)
{
	int64_t ns = record->sample.latency_ns;
	bool mine = record->sample.seq == cpu->seq;
	int r = 0;

	switch (record->sample.context) {
	case LATENCY_IRQ:
		/* the thread of the last activation never came: only its interrupt can be told */
		if (cpu->state == WAIT_THREAD &&
		    analysis_over_limit(analysis->run, LATENCY_IRQ, cpu->latency_ns))
			r = analysis_close(analysis, cpu, LATENCY_IRQ, cpu->latency_ns);
		return r < 0 ? r : begin_cycle(analysis, cpu, record);
	case LATENCY_THREAD:
		cpu->has_thread = true;
		if (cpu->state != WAIT_THREAD || !mine)
			return close_without_irq(analysis, cpu, record);
		cpu->thread_ns = ns;
		cpu->state = WAIT_USER;
		return analysis_close(analysis, cpu, LATENCY_THREAD, ns);
	case LATENCY_USER:
		if (!cpu->has_thread)
			return close_without_irq(analysis, cpu, record);
		if (cpu->state != WAIT_USER || !mine)
			return 0;
		cpu->state = WAIT_IRQ;
		if (!analysis_over_limit(analysis->run, LATENCY_USER, ns) ||
		    analysis_over_limit(analysis->run, LATENCY_THREAD, cpu->thread_ns))
			return 0;
		return analysis_close(analysis, cpu, LATENCY_USER, ns);
	case LATENCY_CONTEXTS:
		break;
	}
	return -EINVAL;
}

/* "start" in the clock of the records. Interrupts are recorded as they end, so there both clocks
 * can be compared; preempted threads are not, their records come later. */
static int64_t start_of(struct analysis_cpu *cpu, const struct latency_record *record)
{
	int64_t start = record->noise.start_ns, late;

	if (start == LATENCY_UNKNOWN_NS || record->time_ns == 0)
		return start;
	late = (int64_t)record->time_ns - start - record->noise.duration_ns;
	if (record->noise.class == NOISE_IRQ || record->noise.class == NOISE_NMI) {
		/* one that fits settles it: a late one may have been held up by the host */
		if (late <= OTHER_CLOCK_NS && late >= -OTHER_CLOCK_NS)
			cpu->one_clock = true;
		if (!cpu->offset_known || late < cpu->offset_ns)
			cpu->offset_ns = late;
		if (cpu->one_clock)
			cpu->offset_ns = 0;
		cpu->offset_known = true;
	}
	return start + cpu->offset_ns;
}

static void count_clock(struct analysis_clock *clock, int64_t duration_ns)
{
	uint64_t a = (uint64_t)MAX(duration_ns, 0), b = clock->step_ns;

	clock->durations++;
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	clock->step_ns = a;
}

static void remember(struct analysis_cpu *cpu, const struct interruption *in)
{
	cpu->recent[cpu->recent_next] = *in;
	cpu->recent_next = (cpu->recent_next + 1) % RECENT_MAX;
	cpu->recent_count = MIN(cpu->recent_count + 1, RECENT_MAX);
}

/* The timer's interrupt is the one that was running when the sample was taken. */
static bool is_timer(const struct analysis_cpu *cpu, const struct interruption *in)
{
	if (cpu->has_timer || in->class != NOISE_IRQ)
		return false;
	if (!cpu->has_time || in->start_ns == LATENCY_UNKNOWN_NS)
		return true;
	return in->start_ns <= cpu->time_ns + SLACK_NS && in->end_ns >= cpu->time_ns - SLACK_NS;
}

static int add_part(struct analysis_cpu *cpu, const struct interruption *in)
{
	struct latency_part part = {.class = in->class,
				    .number = in->number,
				    .name = in->name,
				    .function = in->function,
				    .start_ns = in->start_ns,
				    .duration_ns = in->duration_ns};

	cpu->class_ns[in->class] =
		MIN(cpu->class_ns[in->class] + MAX(in->duration_ns, 0), SUM_MAX_NS);
	return cpu->parts.len < PARTS_MAX ? vec_push(&cpu->parts, part) : 0;
}

/* own: the interrupt ran no timer but ours. */
static int in_the_way(struct analysis_cpu *cpu, const struct interruption *in, bool own)
{
	if (is_timer(cpu, in)) {
		cpu->has_timer = true;
		cpu->timer_start_ns = in->start_ns;
		cpu->timer_ns = in->duration_ns;
		if (in->start_ns == LATENCY_UNKNOWN_NS)
			cpu->has_time = false; /* no delay can be told */
		return own;
	}
	/* ended before the sample, recorded after it */
	if (cpu->has_time && in->start_ns != LATENCY_UNKNOWN_NS &&
	    in->end_ns < cpu->time_ns - SLACK_NS) {
		if (in->class == NOISE_IRQ || in->class == NOISE_NMI)
			remember(cpu, in);
		return 0;
	}
	if (in->class == NOISE_THREAD && in->number == cpu->run_pid && cpu->run_pid >= 0 &&
	    cpu->blocking_name == 0) {
		cpu->blocking_ns = MAX(in->duration_ns, 0);
		cpu->blocking_name = in->name;
		/* a sample's comm may be cut or unknown ("<...>") */
		if (in->name)
			cpu->run_comm = in->name;
		if (in->function)
			cpu->run_work = in->function;
		return 0;
	}
	return add_part(cpu, in);
}

/* Functions of the timers that wake measured threads: the tracer's, and that of a sleep. */
static bool runs_ours(const char *function)
{
	return !function || !*function || strcmp(function, "hrtimer_wakeup") == 0 ||
	       strcmp(function, "timerlat_irq") == 0;
}

static int take_noise(struct latency_analysis *analysis, struct analysis_cpu *cpu,
		      const struct latency_record *record)
{
	struct interruption in = {.class = record->noise.class,
				  .number = record->noise.number,
				  .duration_ns = record->noise.duration_ns};
	int r;

	if ((unsigned)in.class >= NOISE_CLASSES)
		return -EINVAL;
	if (in.duration_ns == LATENCY_UNKNOWN_NS)
		return 0;
	count_clock(&analysis->clock, in.duration_ns);
	r = intern(analysis, record->noise.name, &in.name);
	if (r == 0)
		r = intern(analysis, record->noise.function, &in.function);
	if (r < 0)
		return r;
	if (in.class == NOISE_THREAD && !in.function && in.number == cpu->work_pid)
		in.function = cpu->work;
	in.start_ns = start_of(cpu, record);
	in.end_ns = in.start_ns;
	if (in.start_ns != LATENCY_UNKNOWN_NS)
		in.end_ns = MAX(in.start_ns + in.duration_ns, (int64_t)record->time_ns);
	if (cpu->state == WAIT_THREAD)
		return in_the_way(cpu, &in, runs_ours(record->noise.function));
	if ((in.class == NOISE_IRQ || in.class == NOISE_NMI) && in.start_ns != LATENCY_UNKNOWN_NS)
		remember(cpu, &in);
	/* while nobody waits, threads and softirqs are in nobody's way */
	return in.class >= NOISE_SOFTIRQ && cpu->state == WAIT_IRQ;
}

static int take_stack(struct latency_analysis *analysis, struct analysis_cpu *cpu,
		      const struct latency_record *record)
{
	cpu->stack.len = 0;
	for (unsigned i = 0; i < record->stack.count; i++) {
		uint32_t id;
		int r = intern(analysis, record->stack.frames[i], &id);

		if (r == 0 && id)
			r = vec_push(&cpu->stack, id);
		if (r < 0)
			return r;
	}
	/* Some sources give the stack after the sample it belongs to: it still is that
	 * activation's. */
	for (unsigned i = 0; cpu->state != WAIT_THREAD && i < cpu->kept.verdicts.len; i++) {
		struct latency_verdict *verdict = &cpu->kept.verdicts.data[i];
		uint32_t *stack;

		if (verdict->seq != cpu->seq || verdict->stack_count || cpu->stack.len == 0)
			continue;
		stack = calloc(cpu->stack.len, sizeof(*stack));
		if (!stack)
			return -ENOMEM;
		memcpy(stack, cpu->stack.data, cpu->stack.len * sizeof(*stack));
		verdict->stack = stack;
		verdict->stack_count = (unsigned)cpu->stack.len;
	}
	return 0;
}

/* The hypervisor's time is told at ticks and switches, after the fact. */
static void take_steal(struct analysis_cpu *cpu, const struct latency_record *record)
{
	int64_t ns = (int64_t)MIN(record->steal.duration_ns, UINT64_C(1) << 60);

	if (cpu->state == WAIT_THREAD) {
		cpu->steal_ns = MIN(cpu->steal_ns + ns, INT64_C(1) << 60);
		cpu->has_steal = true;
		return;
	}
	cpu->last_steal_ns = ns;
	cpu->last_steal_time_ns = (int64_t)record->time_ns;
}

static bool within(int64_t ns, int64_t limit)
{
	return ns == LATENCY_UNKNOWN_NS || (ns <= limit && ns >= -limit);
}

/* Text of anybody's may hold any number; none that could be true makes a sum overflow. */
static bool plausible(const struct latency_record *record)
{
	if (record->time_ns > (uint64_t)TIME_MAX_NS)
		return false;
	if (record->kind == LATENCY_SAMPLE)
		return record->sample.latency_ns != LATENCY_UNKNOWN_NS &&
		       within(record->sample.latency_ns, SPAN_MAX_NS);
	return record->kind != LATENCY_NOISE || (within(record->noise.start_ns, TIME_MAX_NS) &&
						 within(record->noise.duration_ns, SPAN_MAX_NS));
}

int latency_analysis_take(struct latency_analysis *analysis, const struct latency_record *record)
{
	struct analysis_cpu *cpu;

	if (record->cpu >= CPUSET_MAX)
		return -EINVAL;
	if (!plausible(record))
		return 0;
	cpu = cpu_of(analysis, record->cpu);
	if (!cpu)
		return -ENOMEM;
	switch (record->kind) {
	case LATENCY_SAMPLE:
		return take_sample(analysis, cpu, record);
	case LATENCY_NOISE:
		return take_noise(analysis, cpu, record);
	case LATENCY_STACK:
		return take_stack(analysis, cpu, record);
	case LATENCY_WORK:
		cpu->work_pid = record->pid;
		return intern(analysis, record->work.function, &cpu->work);
	case LATENCY_STEAL:
		take_steal(cpu, record);
		return 0;
	case LATENCY_LOST:
		forget(cpu);
		return 0;
	case LATENCY_GAP:
	case LATENCY_PERIOD:
	case LATENCY_HWLAT:
	case LATENCY_SWITCH:
	case LATENCY_STOPPED:
		break;
	}
	return 0;
}

/* --- the end ------------------------------------------------------------------------------- */

static int worst_first(const void *a, const void *b)
{
	const struct latency_verdict *left = a, *right = b;

	if (left->total_ns != right->total_ns)
		return left->total_ns < right->total_ns ? 1 : -1;
	return left->cpu != right->cpu ? (left->cpu < right->cpu ? -1 : 1)
				       : (left->seq < right->seq ? -1 : left->seq > right->seq);
}

static int move_verdicts(struct latency_run *run, struct kept *kept)
{
	size_t count = run->verdict_count + kept->verdicts.len;
	struct latency_verdict *grown;

	if (kept->verdicts.len == 0)
		return 0;
	grown = realloc(run->verdicts, count * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memcpy(grown + run->verdict_count, kept->verdicts.data,
	       kept->verdicts.len * sizeof(*grown));
	run->verdicts = grown;
	run->verdict_count = (unsigned)count;
	vec_fini(&kept->verdicts);
	return 0;
}

/* A wake-up whose thread did not come any more: its interrupt can be told. */
static int close_open(struct latency_analysis *analysis, struct analysis_cpu *cpu)
{
	int r = 0;

	if (cpu->state == WAIT_THREAD &&
	    analysis_over_limit(analysis->run, LATENCY_IRQ, cpu->latency_ns))
		r = analysis_close(analysis, cpu, LATENCY_IRQ, cpu->latency_ns);
	cpu->state = WAIT_IRQ;
	return r;
}

int latency_analysis_break(struct latency_analysis *analysis)
{
	vec_for_each(&analysis->cpus, slot) {
		int r = *slot ? close_open(analysis, *slot) : 0;

		if (r < 0)
			return r;
		if (*slot)
			forget(*slot);
	}
	return 0;
}

int latency_analysis_finish(struct latency_analysis *analysis)
{
	const struct cpuset *free_cpus = analysis->has_free_cpus ? &analysis->free_cpus : NULL;
	struct latency_run *run = analysis->run;
	int r = 0;

	vec_for_each(&analysis->cpus, slot) {
		struct analysis_cpu *cpu = *slot;

		if (!cpu)
			continue;
		r = close_open(analysis, cpu);
		if (r < 0)
			return r;
		for (unsigned i = 0; i < cpu->kept.verdicts.len && r == 0; i++)
			r = analysis_conclude(run, &analysis->clock, free_cpus,
					      &cpu->kept.verdicts.data[i]);
		if (r == 0)
			r = move_verdicts(run, &cpu->kept);
		if (r < 0)
			return r;
	}
	if (run->verdict_count > 1)
		qsort(run->verdicts, run->verdict_count, sizeof(*run->verdicts), worst_first);
	if (analysis_clock_coarse(&analysis->clock))
		r = latency_run_warn(
			run,
			"the clock ticks in steps of %llu us: durations are too coarse to say "
			"what took the time",
			(unsigned long long)(analysis->clock.step_ns / 1000));
	return r;
}
