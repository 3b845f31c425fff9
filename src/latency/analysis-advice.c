/*
 * What to change about a culprit, as a command where one exists. Sources: the kernel's
 * Documentation (admin-guide/kernel-parameters, core-api/irq/irq-affinity, admin-guide/pm/cpuidle,
 * core-api/workqueue, timers/no_hz, networking/scaling), chrt(1), taskset(1).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "latency/analysis-internal.h"

#define NAME_BYTES 160
#define CPUS_BYTES 128

struct words {
	char culprit[3 * NAME_BYTES];
	char name[NAME_BYTES];    /* "igb-rx:30", "kworker/0:1:123 in flush_to_ldisc" */
	char cpus[CPUS_BYTES];    /* where other work may go: "0,2-3" or LIST */
	const char *why, *remedy; /* why NULL: nothing to add */
	char command[2 * NAME_BYTES + CPUS_BYTES]; /* "": none */
};

static bool has_prefix(const char *text, const char *prefix)
{
	return str_prefix(text, prefix, NULL);
}

static void name_of(const struct latency_run *run, const struct candidate *candidate,
		    struct words *words)
{
	const char *name = strtab_text(&run->names, candidate->name);
	const char *function = strtab_text(&run->names, candidate->function);
	bool number = candidate->number >= 0 && candidate->class != NOISE_SOFTIRQ;
	char digits[16] = "";

	if (number)
		snprintf(digits, sizeof(digits), ":%d", candidate->number);
	snprintf(words->name, sizeof(words->name), "%s%s%s%s", *name ? name : "(unknown)", digits,
		 *function ? " in " : "", function);
}

static void cpus_of(const struct advice_context *context, struct words *words)
{
	struct str list = {0};

	if (context->free_cpus)
		cpuset_format(context->free_cpus, &list);
	snprintf(words->cpus, sizeof(words->cpus), "%s", list.len ? str_text(&list) : "LIST");
	str_fini(&list);
}

static bool is_virtual(const struct latency_run *run)
{
	vec_for_each(&run->conditions, condition) {
		if (strcmp(strtab_text(&run->names, condition->name), "virtual machine") == 0)
			return true;
	}
	return false;
}

/* Vectors of the CPU itself have no affinity to set. */
static bool is_ipi(const char *name)
{
	static const char *const names[] = {
		"reschedule",   "call_function", "irq_work",        "IPI",
		"Rescheduling", "Function call", "x86_platform_ipi"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (has_prefix(name, names[i]))
			return true;
	return false;
}

static bool is_timer_irq(const char *name)
{
	return has_prefix(name, "local_timer") || has_prefix(name, "timer") ||
	       has_prefix(name, "arch_timer");
}

static bool is_apic(const char *name)
{
	return strstr(name, "_apic") != NULL;
}

static void advise_irq(unsigned cpu, const struct candidate *candidate, const char *name,
		       struct words *words)
{
	if (is_timer_irq(name)) {
		words->remedy =
			"take the tick and unbound timers off this CPU: boot with the parameters "
			"below, and give it one runnable thread only";
		snprintf(words->command, sizeof(words->command),
			 "kernel parameters: nohz_full=%u isolcpus=nohz,domain,managed_irq,%u "
			 "rcu_nocbs=%u",
			 cpu, cpu, cpu);
	} else if (is_ipi(name)) {
		words->remedy =
			"another CPU sent it: keep what works on both CPUs apart (threads of one "
			"process share page tables), isolate this one";
		snprintf(words->command, sizeof(words->command),
			 "kernel parameters: isolcpus=nohz,domain,managed_irq,%u nohz_full=%u", cpu,
			 cpu);
	} else if (is_apic(name) || candidate->number < 0) {
		words->remedy = "an interrupt of the CPU itself, it cannot be moved: the machine's "
				"log says "
				"what it reports";
		snprintf(words->command, sizeof(words->command), "dmesg | tail -50");
	} else {
		words->remedy =
			"move the device's interrupt to other CPUs; when the kernel refuses "
			"(managed interrupts), boot with isolcpus=managed_irq";
		snprintf(words->command, sizeof(words->command),
			 "echo %s > /proc/irq/%d/smp_affinity_list", words->cpus,
			 candidate->number);
	}
}

static void advise_softirq(unsigned cpu, const char *name, struct words *words)
{
	if (has_prefix(name, "NET_")) {
		words->remedy =
			"packets are handled where their interrupt comes: move the network card's "
			"interrupts, or steer the packets (RPS)";
		snprintf(words->command, sizeof(words->command),
			 "grep -H . /proc/irq/*/smp_affinity_list; culprit osnoise top -c %u", cpu);
	} else if (has_prefix(name, "RCU")) {
		words->remedy = "hand RCU callbacks to threads on other CPUs: boot with";
		snprintf(words->command, sizeof(words->command),
			 "kernel parameters: rcu_nocbs=%u rcu_nocb_poll", cpu);
	} else if (has_prefix(name, "BLOCK")) {
		words->remedy =
			"the disk's completions come here: move its interrupt, or let the CPU "
			"that asked complete";
		snprintf(words->command, sizeof(words->command),
			 "for f in /sys/block/*/queue/rq_affinity; do echo 2 > $f; done");
	} else {
		words->remedy =
			"timers and balancing of the scheduler: keep them off this CPU, boot with";
		snprintf(words->command, sizeof(words->command),
			 "kernel parameters: isolcpus=nohz,domain,managed_irq,%u nohz_full=%u", cpu,
			 cpu);
	}
}

static void advise_thread(unsigned cpu, const struct candidate *candidate, const char *name,
			  struct words *words)
{
	if (has_prefix(name, "kworker")) {
		words->remedy =
			"keep unbound work on other CPUs (a mask in hexadecimal); bound work "
			"follows who queued it";
		snprintf(words->command, sizeof(words->command),
			 "cat /sys/devices/virtual/workqueue/cpumask");
	} else if (has_prefix(name, "irq/")) {
		int irq = atoi(name + 4);

		words->remedy = "a threaded interrupt: move the interrupt, its thread follows";
		snprintf(words->command, sizeof(words->command),
			 "echo %s > /proc/irq/%d/smp_affinity_list", words->cpus, irq);
	} else if (has_prefix(name, "ksoftirqd") || has_prefix(name, "ktimers")) {
		words->remedy =
			"softirq work of this CPU: keep its interrupts and timers elsewhere, boot "
			"with";
		snprintf(words->command, sizeof(words->command),
			 "kernel parameters: isolcpus=nohz,domain,managed_irq,%u nohz_full=%u", cpu,
			 cpu);
	} else if (has_prefix(name, "rcu")) {
		words->remedy = "hand RCU callbacks to threads on other CPUs: boot with";
		snprintf(words->command, sizeof(words->command),
			 "kernel parameters: rcu_nocbs=%u rcu_nocb_poll", cpu);
	} else if (has_prefix(name, "migration") || has_prefix(name, "stopper")) {
		words->remedy =
			"the kernel stopped this CPU for a change of all CPUs (affinities, code "
			"patching, hotplug): do not load modules, change affinities or trace "
			"functions while it counts";
	} else if (candidate->number > 0) {
		words->remedy =
			"run it on other CPUs, or give the waiting thread a higher priority";
		snprintf(words->command, sizeof(words->command), "taskset -acp %s %d", words->cpus,
			 candidate->number);
	} else {
		words->remedy =
			"run it on other CPUs, or give the waiting thread a higher priority";
	}
}

static void advise_part(unsigned cpu, const struct candidate *candidate, const char *name,
			struct words *words)
{
	switch (candidate->class) {
	case NOISE_NMI:
		words->remedy =
			"switch the NMI watchdog and profilers that sample with the PMU off";
		snprintf(words->command, sizeof(words->command), "sysctl kernel.nmi_watchdog=0");
		return;
	case NOISE_IRQ:
		advise_irq(cpu, candidate, name, words);
		return;
	case NOISE_SOFTIRQ:
		advise_softirq(cpu, name, words);
		return;
	case NOISE_THREAD:
		advise_thread(cpu, candidate, name, words);
		return;
	default:
		words->remedy =
			"nothing that the kernel knows of: firmware (SMI), hypervisor or hardware";
		return;
	}
}

static void advise_idle(unsigned cpu, bool virtual, struct words *words)
{
	words->remedy = virtual ? "an idle virtual CPU is given back to the host: boot the guest "
				  "with "
				  "idle=poll or use the haltpoll governor, and on the host pin its "
				  "CPU"
				: "forbid deep idle states while it counts; culprit timerlat "
				  "--dma-latency 0 shows what that gains";
	if (!virtual)
		snprintf(words->command, sizeof(words->command),
			 "for s in /sys/devices/system/cpu/cpu%u/cpuidle/state[1-9]*/disable; do "
			 "echo 1 > "
			 "$s; done",
			 cpu);
}

static void advise_irqs_off(const struct advice_context *context, const char *function,
			    struct words *words)
{
	if (*function && is_virtual(context->run))
		words->remedy = "interrupts were off inside the function, a device access in it "
				"stalled, or the "
				"hypervisor kept the CPU: report or avoid what calls it";
	else if (*function)
		words->remedy =
			"interrupts were off inside the function, or a device access in it stalled "
			"the "
			"bus: report it, avoid what calls it while it counts (the stack says "
			"who), or run that elsewhere";
	else
		words->remedy = "interrupts were off, or firmware (SMI) or the hypervisor kept the "
				"CPU: measure "
				"again with --stack to see the function";
	if (context->verdict->blocking_pid > 0)
		snprintf(words->command, sizeof(words->command), "taskset -acp %s %d", words->cpus,
			 context->verdict->blocking_pid);
}

/* A thread in user space cannot have interrupts off: what was late lies below the kernel. */
static void advise_below(bool virtual, struct words *words)
{
	words->why =
		"the timer's interrupt came late while user space ran, where interrupts are never "
		"off, and no other interrupt was in the way";
	words->remedy = virtual ? "the hypervisor, most likely: on the host, pin the virtual CPUs "
				  "and give "
				  "them whole CPUs of their own"
				: "firmware (SMI) or hardware: compare with culprit hwnoise, look "
				  "for "
				  "power and thermal settings of the firmware";
}

/* Only the scheduler keeps a waiting thread behind one that runs in user space. */
static void advise_priority(const struct candidate *candidate, struct words *words)
{
	words->why =
		"it went on in user space: its priority is not below that of the thread that waits";
	words->remedy =
		"lower its priority, raise that of the waiting thread, or run it on other CPUs";
	if (candidate->number > 0)
		snprintf(words->command, sizeof(words->command), "chrt -o -p 0 %d",
			 candidate->number);
}

static void advise_late(const struct advice_context *context, const char *function, bool user,
			struct words *words)
{
	if (user) {
		snprintf(words->culprit, sizeof(words->culprit), "unexplained: below the kernel");
		advise_below(is_virtual(context->run), words);
		return;
	}
	words->why = "the timer's interrupt came late while it ran and no other interrupt was in "
		     "the way";
	if (*function)
		snprintf(words->culprit, sizeof(words->culprit),
			 "interrupts off in %s of thread %s", function, words->name);
	else
		snprintf(words->culprit, sizeof(words->culprit), "interrupts off in thread %s",
			 words->name);
	advise_irqs_off(context, function, words);
}

static void advise_blocking(const struct advice_context *context, const struct candidate *candidate,
			    const char *function, bool user, struct words *words)
{
	const char *name = strtab_text(&context->run->names, candidate->name);

	words->why = "it kept the CPU after the interrupt: preemption off, or the way through the "
		     "scheduler";
	if (*function && !user)
		snprintf(words->culprit, sizeof(words->culprit), "thread %s (in %s)", words->name,
			 function);
	else
		snprintf(words->culprit, sizeof(words->culprit), "thread %s", words->name);
	if (user)
		advise_priority(candidate, words);
	else
		advise_thread(context->verdict->cpu, candidate, name, words);
}

static void advise_source(unsigned cpu, const struct candidate *candidate, const char *name,
			  struct words *words)
{
	if (candidate->blame == BLAME_BEFORE)
		words->why = "it ran when the timer expired and kept the timer's interrupt waiting";
	snprintf(words->culprit, sizeof(words->culprit), "%s %s",
		 noise_class_name(candidate->class), words->name);
	advise_part(cpu, candidate, name, words);
}

/* Causes that have one name only. */
static void advise_named(unsigned cpu, const struct candidate *candidate, bool virtual,
			 struct words *words)
{
	const char *name = "return to user space";

	if (candidate->blame == BLAME_IDLE) {
		name = "exit from idle";
		words->why = "the CPU was idle and woke up this late";
		advise_idle(cpu, virtual, words);
	} else if (candidate->blame == BLAME_STEAL) {
		name = "steal: the hypervisor";
		words->why = "the hypervisor ran something else on this CPU";
		words->remedy =
			"on the host: pin the virtual CPUs and give them whole CPUs of their own";
	} else if (candidate->blame == BLAME_TIMER) {
		name = "irq timer interrupt";
		words->why = "the timer's interrupt itself took that long: it ran other timers too";
		advise_irq(cpu, candidate, "local_timer", words);
	} else {
		words->why = "the thread ran in the kernel and came back to user space late";
		words->remedy =
			"page faults, signals and work on return: lock memory, and see what ran "
			"with culprit timerlat trace";
	}
	snprintf(words->culprit, sizeof(words->culprit), "%s", name);
}

static int put(struct latency_run *run, struct latency_verdict *verdict, const struct words *words)
{
	int r = analysis_text(run, &verdict->culprit, "%s", words->culprit);

	if (r == 0 && words->why)
		r = analysis_text(run, &verdict->why, "%s", words->why);
	if (r == 0 && words->remedy)
		r = analysis_text(run, &verdict->remedy, "%s", words->remedy);
	if (r == 0 && words->command[0])
		r = analysis_text(run, &verdict->command, "%s", words->command);
	return r;
}

int analysis_advise(const struct advice_context *context, const struct candidate *candidate,
		    struct latency_verdict *verdict)
{
	struct latency_run *run = context->run;
	const char *name = strtab_text(&run->names, candidate->name);
	const char *function =
		strtab_text(&run->names, analysis_interrupted_function(run, verdict));
	bool user = strcmp(function, "[user space]") == 0;
	struct words words = {0};

	name_of(run, candidate, &words);
	cpus_of(context, &words);
	switch (candidate->blame) {
	case BLAME_BEFORE:
	case BLAME_PART:
		advise_source(verdict->cpu, candidate, name, &words);
		break;
	case BLAME_IRQS_OFF:
		advise_late(context, function, user, &words);
		break;
	case BLAME_BLOCKING:
		advise_blocking(context, candidate, function, user, &words);
		break;
	case BLAME_IDLE:
	case BLAME_STEAL:
	case BLAME_TIMER:
	case BLAME_RETURN:
		advise_named(verdict->cpu, candidate, is_virtual(run), &words);
		break;
	}
	return put(run, verdict, &words);
}
