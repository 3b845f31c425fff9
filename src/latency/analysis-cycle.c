/* An activation that ended becomes a verdict's numbers, when it is among the worst. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "latency/analysis-internal.h"

#define KEEP_BY_LIMIT 16
#define IDLE_DELAY_NS 10000

bool analysis_over_limit(const struct latency_run *run, enum latency_context context, int64_t ns)
{
	uint64_t limit = context == LATENCY_IRQ ? run->limits.irq_ns : run->limits.thread_ns;

	return limit && ns >= 0 && (uint64_t)ns >= limit;
}

static bool any_limit(const struct analysis_cpu *cpu, const struct latency_run *run,
		      enum latency_context context, int64_t total_ns)
{
	return analysis_over_limit(run, context, total_ns) ||
	       (context != LATENCY_IRQ && analysis_over_limit(run, LATENCY_IRQ, cpu->latency_ns));
}

static unsigned place_of_smallest(const struct kept *kept)
{
	unsigned place = 0;

	for (unsigned i = 1; i < kept->verdicts.len; i++)
		if (kept->verdicts.data[i].total_ns < kept->verdicts.data[place].total_ns)
			place = i;
	return place;
}

/* Interrupts that ran between the expiry and the timer's interrupt, with what they took of it. */
static int collect_before(const struct analysis_cpu *cpu, struct latency_verdict *verdict)
{
	int64_t until = cpu->has_timer ? cpu->timer_start_ns : cpu->time_ns;
	struct latency_part *parts;

	if (!cpu->has_time || cpu->recent_count == 0)
		return 0;
	parts = calloc(cpu->recent_count, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	verdict->before = parts;
	for (unsigned i = 0; i < cpu->recent_count; i++) {
		unsigned at = (cpu->recent_next + RECENT_MAX - cpu->recent_count + i) % RECENT_MAX;
		const struct interruption *in = &cpu->recent[at];
		int64_t overlap = MIN(in->end_ns, until) - MAX(in->start_ns, cpu->expiry_ns);

		if (overlap <= 0)
			continue;
		/* an interrupt is not shorter for what interrupted it: that is listed beside it */
		parts[verdict->before_count++] =
			(struct latency_part){.class = in->class,
					      .number = in->number,
					      .name = in->name,
					      .function = in->function,
					      .start_ns = in->start_ns - cpu->expiry_ns,
					      .duration_ns = MIN(overlap, in->duration_ns)};
	}
	return 0;
}

static int copy_parts(const struct analysis_cpu *cpu, struct latency_verdict *verdict)
{
	if (cpu->parts.len > 0) {
		verdict->parts = calloc(cpu->parts.len, sizeof(*verdict->parts));
		if (!verdict->parts)
			return -ENOMEM;
		verdict->part_count = (unsigned)cpu->parts.len;
	}
	for (unsigned i = 0; i < cpu->parts.len; i++) {
		verdict->parts[i] = cpu->parts.data[i];
		if (!cpu->has_time)
			verdict->parts[i].start_ns = LATENCY_UNKNOWN_NS;
		else if (verdict->parts[i].start_ns != LATENCY_UNKNOWN_NS)
			verdict->parts[i].start_ns -= cpu->expiry_ns;
	}
	if (cpu->stack.len > 0) {
		verdict->stack = calloc(cpu->stack.len, sizeof(*verdict->stack));
		if (!verdict->stack)
			return -ENOMEM;
		verdict->stack_count = (unsigned)cpu->stack.len;
		memcpy(verdict->stack, cpu->stack.data, cpu->stack.len * sizeof(*verdict->stack));
	}
	return 0;
}

/* Softirqs were counted from the timer's interrupt, and the thread they interrupted from before
 * it: the source then charges the thread too much. */
static void mend_blocking(struct latency_verdict *verdict)
{
	if (verdict->rest_ns < 0 && verdict->class_ns[NOISE_SOFTIRQ] > 0 &&
	    verdict->blocking_ns != LATENCY_UNKNOWN_NS &&
	    -verdict->rest_ns <= verdict->blocking_ns && verdict->delay_ns >= 0) {
		verdict->blocking_ns += verdict->rest_ns;
		verdict->rest_ns = 0;
	}
}

static void sum_up(const struct analysis_cpu *cpu, struct latency_verdict *verdict)
{
	if (cpu->has_timer) {
		verdict->timer_irq_ns = cpu->timer_ns;
		if (cpu->has_time) {
			verdict->delay_ns = cpu->timer_start_ns - cpu->expiry_ns;
			verdict->handler_running = verdict->delay_ns < 0;
		}
	}
	verdict->from_idle = cpu->idle && (verdict->delay_ns == LATENCY_UNKNOWN_NS
						   ? cpu->latency_ns
						   : verdict->delay_ns) > IDLE_DELAY_NS;
	if (cpu->has_steal)
		verdict->steal_ns = cpu->steal_ns;
	if (verdict->context == LATENCY_IRQ)
		return;
	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		verdict->class_ns[i] = cpu->class_ns[i];
	verdict->blocking_ns = cpu->blocking_ns;
	if (verdict->context == LATENCY_USER && cpu->has_thread)
		verdict->return_ns = verdict->total_ns - cpu->thread_ns;
	if (verdict->delay_ns == LATENCY_UNKNOWN_NS)
		return;
	verdict->rest_ns = verdict->total_ns - verdict->delay_ns - verdict->timer_irq_ns -
			   verdict->blocking_ns;
	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		verdict->rest_ns -= verdict->class_ns[i];
	if (verdict->return_ns != LATENCY_UNKNOWN_NS)
		verdict->rest_ns -= verdict->return_ns;
	mend_blocking(verdict);
}

/* The sample of this activation that is told, when it is among the worst. */
int analysis_close(struct latency_analysis *analysis, struct analysis_cpu *cpu,
		   enum latency_context context, int64_t total_ns)
{
	struct kept *kept = &cpu->kept;
	bool limit = any_limit(cpu, analysis->run, context, total_ns);
	unsigned room = MAX(analysis->keep, limit ? KEEP_BY_LIMIT : 0);
	struct latency_verdict verdict = latency_verdict_empty();
	int r;

	if (room == 0 || total_ns < 0)
		return 0;
	if (kept->verdicts.len >= room && kept->verdicts.data[kept->smallest].total_ns >= total_ns)
		return 0;
	verdict.cpu = cpu->cpu;
	verdict.seq = cpu->seq;
	verdict.context = context;
	verdict.total_ns = total_ns;
	verdict.irq_latency_ns = cpu->latency_ns;
	verdict.blocking_pid = cpu->run_pid;
	verdict.blocking_comm = cpu->run_comm;
	verdict.blocking_work = cpu->run_work;
	r = collect_before(cpu, &verdict);
	if (r == 0)
		r = copy_parts(cpu, &verdict);
	if (r == 0)
		r = kept->verdicts.len < room ? vec_reserve(&kept->verdicts, kept->verdicts.len + 1)
					      : 0;
	if (r < 0) {
		free(verdict.before);
		free(verdict.parts);
		free(verdict.stack);
		return r;
	}
	sum_up(cpu, &verdict);
	if (kept->verdicts.len < room) {
		kept->verdicts.data[kept->verdicts.len++] = verdict;
	} else {
		struct latency_verdict *out = &kept->verdicts.data[kept->smallest];

		free(out->before);
		free(out->parts);
		free(out->stack);
		*out = verdict;
	}
	kept->smallest = place_of_smallest(kept);
	return 0;
}
