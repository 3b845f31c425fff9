/*
 * From the parts of one late wake-up to the one to blame: everything of one source is added up, the
 * largest candidate wins. There is no conclusion when the parts do not make up the latency, when
 * the clock is coarse, or when the records to judge by are missing.
 *
 * Stolen time lies inside some of the parts and nobody tells in which. It is taken off the largest,
 * the likeliest to contain it; when that leaves less than what was stolen, the hypervisor is to
 * blame.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "latency/analysis-internal.h"

#define COARSE_STEP_NS 100000
#define COARSE_ENOUGH  3

bool analysis_clock_coarse(const struct analysis_clock *clock)
{
	return clock->durations >= COARSE_ENOUGH && clock->step_ns >= COARSE_STEP_NS;
}

int analysis_text(struct latency_run *run, uint32_t *ret, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return strtab_intern_text(&run->names, text, ret);
}

/* --- the interrupted function -------------------------------------------------------------- */

/* Frames of interrupt entry: what follows the last of the first group was interrupted. */
static bool is_entry(const char *frame)
{
	static const char *const prefixes[] = {"asm_sysvec_",
					       "sysvec_",
					       "__sysvec_",
					       "asm_common_interrupt",
					       "common_interrupt",
					       "asm_call_",
					       "el1_i",
					       "el1h_64_irq",
					       "el0_i",
					       "el0t_64_irq",
					       "__irq_svc",
					       "__irq_usr",
					       "do_IRQ",
					       "ret_from_intr",
					       "apic_timer_interrupt",
					       "smp_apic_timer_interrupt",
					       "handle_riscv_irq",
					       "do_irq",
					       "hardware_interrupt",
					       "decrementer_common"};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_prefix(frame, prefixes[i], NULL))
			return true;
	return false;
}

/* Where interrupts come back on: whoever called it had them off. */
static bool is_enabler(const char *frame)
{
	static const char *const words[] = {"spin_unlock",    "local_irq_", "trace_hardirqs",
					    "__local_bh_",    "raw_local_", "irqentry_",
					    "rcu_read_unlock"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(frame, words[i]))
			return true;
	return false;
}

uint32_t analysis_interrupted_function(const struct latency_run *run,
				       const struct latency_verdict *verdict)
{
	unsigned i = 0;

	while (i < verdict->stack_count && !is_entry(strtab_text(&run->names, verdict->stack[i])))
		i++;
	/* some sources tell the stack of what was interrupted alone */
	if (i == verdict->stack_count && i > 0 &&
	    !strstr(strtab_text(&run->names, verdict->stack[0]), "timer"))
		i = 0;
	while (i < verdict->stack_count && is_entry(strtab_text(&run->names, verdict->stack[i])))
		i++;
	while (i + 1 < verdict->stack_count &&
	       is_enabler(strtab_text(&run->names, verdict->stack[i])))
		i++;
	return i < verdict->stack_count ? verdict->stack[i] : 0;
}

/* --- candidates ---------------------------------------------------------------------------- */

struct candidates {
	VEC(struct candidate) all;
};

static int add_candidate(struct candidates *list, struct candidate candidate)
{
	if (candidate.ns <= 0)
		return 0;
	for (size_t i = 0; i < list->all.len; i++) {
		struct candidate *have = &list->all.data[i];

		if (have->blame == candidate.blame && have->class == candidate.class &&
		    have->number == candidate.number && have->name == candidate.name) {
			have->ns += candidate.ns;
			if (have->function != candidate.function)
				have->function = 0;
			return 0;
		}
	}
	return vec_push(&list->all, candidate);
}

static int add_parts(struct candidates *list, enum blame blame, const struct latency_part *parts,
		     unsigned count, int64_t *ret_sum)
{
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++) {
		struct candidate candidate = {.blame = blame,
					      .class = parts[i].class,
					      .number = parts[i].number,
					      .name = parts[i].name,
					      .function = parts[i].function,
					      .ns = parts[i].duration_ns};

		if (parts[i].duration_ns == LATENCY_UNKNOWN_NS)
			continue;
		*ret_sum += MAX(parts[i].duration_ns, 0);
		r = add_candidate(list, candidate);
	}
	return r;
}

static struct candidate interrupted(const struct latency_verdict *verdict, enum blame blame,
				    int64_t ns)
{
	return (struct candidate){.blame = blame,
				  .class = NOISE_THREAD,
				  .number = verdict->blocking_pid,
				  .name = verdict->blocking_comm,
				  .function = verdict->blocking_work,
				  .ns = ns};
}

/* Before the timer's interrupt; in the IRQ case up to the sample inside it. */
static int add_before(struct candidates *list, const struct latency_verdict *verdict)
{
	int64_t sum = 0;
	int64_t whole = verdict->delay_ns != LATENCY_UNKNOWN_NS ? verdict->delay_ns
								: verdict->irq_latency_ns;
	int r = add_parts(list, BLAME_BEFORE, verdict->before, verdict->before_count, &sum);

	if (r < 0 || whole == LATENCY_UNKNOWN_NS)
		return r;
	return add_candidate(
		list, interrupted(verdict, verdict->blocking_pid == 0 ? BLAME_IDLE : BLAME_IRQS_OFF,
				  whole - sum));
}

/* An idle task that still blocks is the same way out of idle. */
static int add_after(struct candidates *list, const struct latency_verdict *verdict)
{
	int64_t sum = 0;
	int r = add_parts(list, BLAME_PART, verdict->parts, verdict->part_count, &sum);

	if (r == 0 && verdict->blocking_ns > 0)
		r = add_candidate(
			list, interrupted(verdict,
					  verdict->blocking_pid == 0 ? BLAME_IDLE : BLAME_BLOCKING,
					  verdict->blocking_ns));
	if (r == 0 && verdict->timer_irq_ns != LATENCY_UNKNOWN_NS)
		r = add_candidate(list, (struct candidate){.blame = BLAME_TIMER,
							   .class = NOISE_IRQ,
							   .number = -1,
							   .ns = verdict->timer_irq_ns +
								 MIN(verdict->delay_ns, 0)});
	if (r == 0 && verdict->return_ns != LATENCY_UNKNOWN_NS)
		r = add_candidate(list, (struct candidate){.blame = BLAME_RETURN,
							   .class = NOISE_UNEXPLAINED,
							   .number = -1,
							   .ns = verdict->return_ns});
	return r;
}

static struct candidate choose(const struct candidates *list, const struct latency_verdict *verdict)
{
	struct candidate best = {.blame = BLAME_STEAL, .number = -1};
	int64_t steal_ns = MIN(MAX(verdict->steal_ns, 0), verdict->total_ns);

	for (size_t i = 0; i < list->all.len; i++)
		if (list->all.data[i].ns > best.ns)
			best = list->all.data[i];
	if (steal_ns > 0 && steal_ns >= best.ns - steal_ns)
		return (struct candidate){.blame = BLAME_STEAL, .number = -1, .ns = steal_ns};
	best.ns -= steal_ns;
	return best;
}

/* --- the conclusion ------------------------------------------------------------------------ */

static int undecided(struct latency_run *run, struct latency_verdict *verdict)
{
	const char *missing =
		verdict->irq_latency_ns == LATENCY_UNKNOWN_NS
			? "the timer's interrupt of this activation is not among the records"
		: verdict->context != LATENCY_IRQ && verdict->delay_ns == LATENCY_UNKNOWN_NS
			? "how long the timer's interrupt took is not among the records"
			: NULL;
	int64_t rest_ns = verdict->rest_ns;

	if (missing && (run->engine == ENGINE_USER || run->engine == ENGINE_LIGHT))
		return analysis_text(
			       run, &verdict->why,
			       "engine %c does not see who runs in between; engine B or K does",
			       latency_engine_letter(run->engine))
			       ?: 1;
	if (missing)
		return analysis_text(run, &verdict->why, "%s", missing) ?: 1;
	if (rest_ns == LATENCY_UNKNOWN_NS)
		return 0;
	rest_ns = rest_ns < 0 ? -rest_ns : rest_ns;
	if (rest_ns > verdict->total_ns / 10)
		return analysis_text(
			       run, &verdict->why,
			       "the parts do not add up to the latency: %.2f us of %.2f us are %s",
			       (double)rest_ns / 1000, (double)verdict->total_ns / 1000,
			       verdict->rest_ns < 0 ? "counted twice" : "nobody's")
			       ?: 1;
	return 0;
}

int analysis_conclude(struct latency_run *run, const struct analysis_clock *clock,
		      const struct cpuset *free_cpus, struct latency_verdict *verdict)
{
	struct advice_context context = {run, verdict, free_cpus};
	struct candidates list = {0};
	struct candidate best;
	int r;

	if (analysis_clock_coarse(clock))
		return analysis_text(run, &verdict->why,
				     "the clock ticks in steps of %llu us: durations mean nothing",
				     (unsigned long long)(clock->step_ns / 1000));
	r = undecided(run, verdict);
	if (r != 0)
		return MIN(r, 0);
	r = add_before(&list, verdict);
	if (r == 0 && verdict->context != LATENCY_IRQ)
		r = add_after(&list, verdict);
	if (r == 0) {
		best = choose(&list, verdict);
		if (best.ns > 0) {
			verdict->decided = true;
			verdict->culprit_ns = best.ns;
			r = analysis_advise(&context, &best, verdict);
		} else {
			r = analysis_text(run, &verdict->why, "nothing was in the way");
		}
	}
	vec_fini(&list.all);
	return r;
}
