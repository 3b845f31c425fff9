#include "latency/record-text.h"

#include <inttypes.h>

#include "base/util.h"

#define SEC(ns)  ((int64_t)(ns) / (int64_t)NSEC_PER_SEC)
#define REST(ns) ((int64_t)(ns) % (int64_t)NSEC_PER_SEC)

static void noise_text(const struct latency_record *r, FILE *out)
{
	static const char *const events[NOISE_CLASSES] = {
		"unexplained_noise", "nmi_noise", "irq_noise", "softirq_noise", "thread_noise"};

	fprintf(out, "%s: ", events[r->noise.class]);
	if (r->noise.class != NOISE_NMI)
		fprintf(out, "%s:%d ", r->noise.name, r->noise.number);
	fprintf(out, "start %" PRId64 ".%09" PRId64 " duration %" PRId64 " ns",
		SEC(r->noise.start_ns), REST(r->noise.start_ns), r->noise.duration_ns);
	if (r->noise.function)
		fprintf(out, " function %s", r->noise.function);
}

static void stack_text(const struct latency_record *r, FILE *out)
{
	fputs("<stack trace>", out);
	for (unsigned i = 0; i < r->stack.count; i++)
		fprintf(out, "\n => %s", r->stack.frames[i]);
}

void record_text(const struct latency_record *r, FILE *out)
{
	fprintf(out, "%16s-%-7d [%03u] ..... %5" PRIu64 ".%06" PRIu64 ": ",
		r->comm       ? r->comm
		: r->pid == 0 ? "<idle>"
			      : "<...>",
		r->pid < 0 ? 0 : r->pid, r->cpu, r->time_ns / NSEC_PER_SEC,
		r->time_ns % NSEC_PER_SEC / NSEC_PER_USEC);
	switch (r->kind) {
	case LATENCY_SAMPLE:
		fprintf(out, "#%-5" PRIu64 " context %6s timer_latency %9" PRId64 " ns",
			r->sample.seq,
			r->sample.context == LATENCY_USER ? "user-ret"
							  : latency_context_name(r->sample.context),
			r->sample.latency_ns);
		break;
	case LATENCY_NOISE:
		noise_text(r, out);
		break;
	case LATENCY_GAP:
		fprintf(out,
			"sample_threshold: start %" PRId64 ".%09" PRId64 " duration %" PRIu64
			" ns interference %" PRIu64,
			SEC(r->gap.start_ns), REST(r->gap.start_ns), r->gap.duration_ns,
			r->gap.interferences);
		break;
	case LATENCY_PERIOD:
		fprintf(out,
			"osnoise: runtime %" PRIu64 " noise %" PRIu64 " max %" PRIu64 " hw %" PRIu64
			" nmi %" PRIu64 " irq %" PRIu64 " softirq %" PRIu64 " thread %" PRIu64,
			r->period.runtime_ns / NSEC_PER_USEC, r->period.noise_ns / NSEC_PER_USEC,
			r->period.max_single_ns / NSEC_PER_USEC, r->period.count[NOISE_UNEXPLAINED],
			r->period.count[NOISE_NMI], r->period.count[NOISE_IRQ],
			r->period.count[NOISE_SOFTIRQ], r->period.count[NOISE_THREAD]);
		break;
	case LATENCY_STACK:
		stack_text(r, out);
		break;
	case LATENCY_SWITCH:
		fprintf(out,
			"sched_switch: prev_comm=%s prev_pid=%d ==> next_comm=%s next_pid=%d "
			"next_prio=%d",
			r->comm ? r->comm : "<...>", r->pid, r->switched.next_comm,
			r->switched.next_pid, r->switched.next_prio);
		break;
	case LATENCY_WORK:
		fprintf(out, "workqueue_execute_start: function %s", r->work.function);
		break;
	case LATENCY_STEAL:
		fprintf(out, "steal: duration %" PRIu64 " ns", r->steal.duration_ns);
		break;
	case LATENCY_STOPPED:
		fprintf(out, "stop tracing hit on cpu %u", r->cpu);
		break;
	case LATENCY_LOST:
		fprintf(out, "CPU:%u [LOST %" PRIu64 " EVENTS]", r->cpu, r->lost.events);
		break;
	case LATENCY_HWLAT:
		fprintf(out, "#%-5" PRIu64 " inner/outer(us): %4" PRIu64 "/%-5" PRIu64,
			r->hwlat.seq, r->hwlat.inner_ns / NSEC_PER_USEC,
			r->hwlat.outer_ns / NSEC_PER_USEC);
		break;
	}
	fputc('\n', out);
}
