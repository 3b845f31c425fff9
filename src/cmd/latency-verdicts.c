/* The automatic analysis in words: rtla's lines, what they leave out, and a last line to act on. */
#include <string.h>

#include "base/util.h"
#include "cmd/latency-tables.h"
#include "latency/analysis.h"
#include "view/text.h"

#define LABEL       44
#define PARTS_SHOWN 24

static const char *name(const struct latency_view *view, uint32_t id)
{
	return strtab_text(&view->run->names, id);
}

static void put_clean(struct str *out, const char *text)
{
	text_clean(out, text, strlen(text));
}

/* "  label:       12.3 us (4.5 %)" */
static void put_line(const struct latency_view *view, const struct latency_verdict *verdict,
		     const char *label, int64_t ns, struct str *out)
{
	if (ns == LATENCY_UNKNOWN_NS) {
		str_printf(out, "  %-*s not measured\n", LABEL, label);
		return;
	}
	str_printf(out, "  %-*s", LABEL, label);
	latency_put_time(view, out, 12, ns);
	str_printf(out, " %s", latency_unit(view));
	if (verdict->total_ns > 0)
		str_printf(out, " (%.2f %%)", 100 * (double)ns / (double)verdict->total_ns);
	str_putc(out, '\n');
}

static void put_part(const struct latency_view *view, const struct latency_part *part,
		     struct str *out)
{
	struct str who = {0}, cut = {0};

	str_printf(&who, "%s ", noise_class_name(part->class));
	latency_put_source_name(view->run, part->class, part->number, part->name, part->function,
				&who);
	text_cut_middle(&cut, str_text(&who), LABEL - 4);
	str_printf(out, "      %-*s", LABEL - 4, str_text(&cut));
	latency_put_time(view, out, 12, part->duration_ns);
	str_printf(out, " %s", latency_unit(view));
	if (part->start_ns != LATENCY_UNKNOWN_NS) {
		str_puts(out, "  at ");
		latency_put_time(view, out, 0, part->start_ns);
	}
	str_putc(out, '\n');
	str_fini(&who);
	str_fini(&cut);
}

static void put_before(const struct latency_view *view, const struct latency_verdict *verdict,
		       struct str *out)
{
	if (verdict->before_count == 0)
		return;
	str_puts(out, "  In the way of the timer's interrupt (overlap):\n");
	for (unsigned i = 0; i < MIN(verdict->before_count, PARTS_SHOWN); i++)
		put_part(view, &verdict->before[i], out);
}

static void put_delay(const struct latency_view *view, const struct latency_verdict *verdict,
		      struct str *out)
{
	if (verdict->handler_running) {
		str_printf(out, "  %-*s handler already running since ", LABEL,
			   "IRQ handler delay:");
		latency_put_time(view, out, 0, verdict->delay_ns);
		str_printf(out, " %s\n", latency_unit(view));
		return;
	}
	put_line(view, verdict,
		 verdict->from_idle ? "IRQ handler delay: (exit from idle)" : "IRQ handler delay:",
		 verdict->delay_ns, out);
}

static void put_interrupted(const struct latency_view *view, const struct latency_verdict *verdict,
			    struct str *out)
{
	bool blocked = verdict->context != LATENCY_IRQ && verdict->blocking_ns > 0;

	if (verdict->blocking_pid < 0 && !verdict->blocking_comm)
		return;
	if (blocked)
		put_line(view, verdict, "Blocking thread:", verdict->blocking_ns, out);
	str_puts(out, blocked ? "      " : "  Interrupted thread: ");
	latency_put_source_name(view->run, NOISE_THREAD, verdict->blocking_pid,
				verdict->blocking_comm, verdict->blocking_work, out);
	str_putc(out, '\n');
}

static void put_class(const struct latency_view *view, const struct latency_verdict *verdict,
		      enum noise_class class, struct str *out)
{
	static const char *const labels[] = {
		"Unexplained:", "NMI interference:", "IRQ interference:", "Softirq interference:",
		"Thread interference:"};
	unsigned shown = 0, have = 0;

	if (verdict->class_ns[class] == LATENCY_UNKNOWN_NS || verdict->class_ns[class] == 0)
		return;
	put_line(view, verdict, labels[class], verdict->class_ns[class], out);
	for (unsigned i = 0; i < verdict->part_count; i++) {
		if (verdict->parts[i].class != class)
			continue;
		have++;
		if (shown < PARTS_SHOWN)
			put_part(view, &verdict->parts[i], out);
		shown = MIN(have, PARTS_SHOWN);
	}
	if (have > shown)
		str_printf(out, "      ... and %u more\n", have - shown);
}

static void put_stack(const struct latency_view *view, const struct latency_verdict *verdict,
		      struct str *out)
{
	if (verdict->stack_count == 0)
		return;
	str_puts(out, "  Stack when the timer's interrupt came:\n");
	for (unsigned i = 0; i < verdict->stack_count; i++) {
		str_puts(out, "      -> ");
		put_clean(out, name(view, verdict->stack[i]));
		str_putc(out, '\n');
	}
}

static void put_conclusion(const struct latency_view *view, const struct latency_verdict *verdict,
			   struct str *out)
{
	if (!verdict->decided) {
		if (verdict->why) {
			str_puts(out, "  No verdict: ");
			put_clean(out, name(view, verdict->why));
			str_putc(out, '\n');
		}
		return;
	}
	str_printf(out, "%s  Culprit: ", view->color ? "\033[1m" : "");
	put_clean(out, name(view, verdict->culprit));
	str_puts(out, ", ");
	latency_put_time(view, out, 0, verdict->culprit_ns);
	str_printf(out, " %s", latency_unit(view));
	if (verdict->total_ns > 0)
		str_printf(out, " of ");
	latency_put_time(view, out, 0, verdict->total_ns);
	str_printf(out, " (%.0f %%)%s\n",
		   100 * (double)verdict->culprit_ns / (double)MAX(verdict->total_ns, 1),
		   view->color ? "\033[0m" : "");
	if (verdict->why) {
		str_puts(out, "    why: ");
		put_clean(out, name(view, verdict->why));
		str_putc(out, '\n');
	}
	if (verdict->remedy) {
		str_puts(out, "    what to change: ");
		put_clean(out, name(view, verdict->remedy));
		str_putc(out, '\n');
	}
	if (verdict->command) {
		str_puts(out, "      ");
		put_clean(out, name(view, verdict->command));
		str_putc(out, '\n');
	}
}

static void put_verdict(const struct latency_view *view, const struct latency_verdict *verdict,
			struct str *out)
{
	static const char *const totals[] = {
		"IRQ latency:", "Thread latency:", "Return to user space:"};

	str_printf(out, "\n## CPU %u, wake-up %llu: ", verdict->cpu,
		   (unsigned long long)verdict->seq);
	latency_put_time(view, out, 0, verdict->total_ns);
	str_printf(out, " %s ##\n", latency_unit(view));
	put_delay(view, verdict, out);
	put_before(view, verdict, out);
	if (verdict->context != LATENCY_IRQ) {
		put_line(view, verdict, "IRQ latency:", verdict->irq_latency_ns, out);
		put_line(view, verdict, "Timer IRQ duration:", verdict->timer_irq_ns, out);
	}
	put_interrupted(view, verdict, out);
	for (unsigned i = NOISE_NMI; i < NOISE_CLASSES; i++)
		put_class(view, verdict, (enum noise_class)i, out);
	put_class(view, verdict, NOISE_UNEXPLAINED, out);
	if (verdict->return_ns != LATENCY_UNKNOWN_NS)
		put_line(view, verdict, "From thread to user space:", verdict->return_ns, out);
	if (verdict->rest_ns != LATENCY_UNKNOWN_NS)
		put_line(view, verdict, "Rest:", verdict->rest_ns, out);
	str_puts(out,
		 "  ------------------------------------------------------------------------\n");
	put_line(view, verdict, totals[verdict->context], verdict->total_ns, out);
	if (verdict->steal_ns != LATENCY_UNKNOWN_NS)
		put_line(view, verdict,
			 "Stolen by the hypervisor, inside the above:", verdict->steal_ns, out);
	put_stack(view, verdict, out);
	put_conclusion(view, verdict, out);
}

void latency_put_verdicts(const struct latency_view *view, unsigned max, struct str *out)
{
	const struct latency_run *run = view->run;
	const struct latency_cpu *idle = NULL;
	unsigned count = max ? MIN(max, run->verdict_count) : run->verdict_count;

	for (unsigned i = 0; i < count; i++)
		put_verdict(view, &run->verdicts[i], out);
	if (run->verdict_count > count)
		str_printf(out, "\n... and %u more analyses, in the run file (-o) and --json\n",
			   run->verdict_count - count);
	vec_for_each(&run->cpus, cpu) {
		if (cpu->max_from_idle_ns != LATENCY_UNKNOWN_NS &&
		    (!idle || cpu->max_from_idle_ns > idle->max_from_idle_ns))
			idle = cpu;
	}
	if (idle) {
		str_puts(out, "\nLargest IRQ latency out of idle: ");
		latency_put_time(view, out, 0, idle->max_from_idle_ns);
		str_printf(out, " %s on CPU %u\n", latency_unit(view), idle->cpu);
	}
}
