/* The rings' records become those of the one event stream, with names instead of numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "latency/engine-own.h"

static const char *const softirq_names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

static const char *const vector_names[LAT_SOURCES] = {
	[LAT_LOCAL_TIMER] = "local_timer",
	[LAT_RESCHEDULE] = "reschedule",
	[LAT_CALL_FUNCTION] = "call_function",
	[LAT_CALL_FUNCTION_SINGLE] = "call_function_single",
	[LAT_IRQ_WORK] = "irq_work",
	[LAT_PLATFORM_IPI] = "x86_platform_ipi",
	[LAT_THERMAL] = "thermal_apic",
	[LAT_THRESHOLD] = "threshold_apic",
	[LAT_DEFERRED_ERROR] = "deferred_error_apic",
	[LAT_SPURIOUS] = "spurious_apic",
	[LAT_ERROR] = "error_apic",
};

/* Arm's interrupts between processors, as /proc/interrupts calls them; a record has room for 15
 * characters, which tell them apart. */
static const char *const ipi_names[] = {
	"Rescheduling interrupts",
	"Function call interrupts",
	"CPU stop interrupts",
	"IRQ work interrupts",
	"Timer broadcast interrupts",
	"CPU wake-up interrupts",
	"CPU stop (for crash dump) interrupts",
};

static const char *ipi_name(const char *cut)
{
	for (size_t i = 0; i < ARRAY_LEN(ipi_names); i++)
		if (strncmp(ipi_names[i], cut, LAT_COMM - 1) == 0)
			return ipi_names[i];
	return cut;
}

/* A copy, because the table of names answers one question at a time. */
static const char *function_name(struct latency_engine *engine, uint64_t address, char *buf,
				 size_t size)
{
	const char *name;

	if (!address)
		return NULL;
	name = engine->kernel_known ? kernel_names_find(&engine->kernel, address) : NULL;
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "0x%llx", (unsigned long long)address);
	return buf;
}

static const char *irq_name(struct latency_engine *engine, const struct lat_record *from, char *buf,
			    size_t size)
{
	const char *name = NULL;

	switch (from->sub) {
	case LAT_DEVICE:
		name = irq_names_find(&engine->irqs, from->number);
		break;
	case LAT_IPI:
		name = ipi_name(from->comm);
		break;
	default:
		if (from->sub < LAT_SOURCES)
			name = vector_names[from->sub];
	}
	if (name && *name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "irq %d", from->number);
	return buf;
}

static int take_noise(struct latency_engine *engine, const struct lat_record *from,
		      struct latency_record *to, struct latency_sink *sink)
{
	static const enum noise_class classes[] = {NOISE_NMI, NOISE_IRQ, NOISE_SOFTIRQ,
						   NOISE_THREAD};
	char name[128], function[128];

	if (from->cls >= LAT_CLASSES)
		return 0;
	to->kind = LATENCY_NOISE;
	to->noise.class = classes[from->cls];
	to->noise.number = from->number;
	to->noise.start_ns = (int64_t)from->start;
	to->noise.duration_ns = from->value;
	to->noise.function = function_name(engine, from->extra, function, sizeof(function));
	switch (from->cls) {
	case LAT_NMI:
		to->noise.name = to->noise.function ? to->noise.function : "nmi";
		to->noise.function = NULL;
		break;
	case LAT_IRQ:
		to->noise.name = irq_name(engine, from, name, sizeof(name));
		if (from->sub == LAT_IPI)
			to->comm = NULL;
		break;
	case LAT_SOFTIRQ:
		to->noise.name = (unsigned)from->number < ARRAY_LEN(softirq_names)
					 ? softirq_names[from->number]
					 : "softirq";
		break;
	default:
		to->noise.name = from->number == 0 ? "idle"
				 : *from->comm     ? from->comm
						   : "other threads";
		if (from->number < 0)
			to->pid = -1;
	}
	return sink->take(sink, to);
}

static int take_counts(struct own_cpu *cpu, const struct lat_record *from,
		       struct latency_record *to, struct latency_sink *sink)
{
	const struct lat_record *period = &cpu->period;

	if (!cpu->has_period)
		return 0;
	cpu->has_period = false;
	to->kind = LATENCY_PERIOD;
	to->period.runtime_ns = period->start;
	to->period.noise_ns = (uint64_t)period->value;
	to->period.max_single_ns = period->extra;
	to->period.count[NOISE_UNEXPLAINED] = (uint32_t)from->number;
	to->period.count[NOISE_NMI] = (uint32_t)from->start;
	to->period.count[NOISE_IRQ] = from->start >> 32;
	to->period.count[NOISE_SOFTIRQ] = (uint32_t)from->value;
	to->period.count[NOISE_THREAD] = (uint64_t)from->value >> 32;
	return sink->take(sink, to);
}

/* Frames of the interrupt itself say nothing about what it interrupted. */
static bool is_entry(const char *name)
{
	return !strncmp(name, "asm_sysvec_", 11) || !strcmp(name, "asm_common_interrupt") ||
	       !strncmp(name, "el1h_64_irq", 11) || !strncmp(name, "el0t_64_irq", 11);
}

static int take_frames(struct latency_engine *engine, struct own_cpu *cpu, unsigned count,
		       struct latency_record *to, struct latency_sink *sink)
{
	static const char no_frame[] = "[user space]";
	const char *frames[LAT_STACK_FRAMES];
	char names[LAT_STACK_FRAMES][128];
	unsigned first = 0;

	for (unsigned i = 0; i < count; i++) {
		frames[i] = function_name(engine, cpu->frames[i], names[i], sizeof(names[i]));
		if (!frames[i])
			frames[i] = "0";
		if (!first && is_entry(frames[i]))
			first = i + 1;
	}
	to->kind = LATENCY_STACK;
	to->pid = -1;
	to->comm = NULL;
	to->stack.frames = frames + first;
	to->stack.count = count - first;
	to->stack.cut = count == LAT_STACK_FRAMES;
	if (first == count) {
		frames[0] = no_frame;
		to->stack.frames = frames;
		to->stack.count = 1;
	}
	return sink->take(sink, to);
}

static int take_stack(struct latency_engine *engine, struct own_cpu *cpu,
		      const struct lat_record *from, struct latency_record *to,
		      struct latency_sink *sink)
{
	unsigned at = (unsigned)from->number;
	unsigned count = MIN((unsigned)from->pid, LAT_STACK_FRAMES);
	uint64_t *frames = cpu->frames + at;

	if (at != cpu->frames_have && at != 0) {
		cpu->frames_have = 0; /* its beginning is lost */
		return 0;
	}
	if (at + LAT_STACK_WORDS > ARRAY_LEN(cpu->frames) || count == 0)
		return 0;
	frames[0] = from->start;
	frames[1] = (uint64_t)from->value;
	frames[2] = from->extra;
	memcpy(&frames[3], from->comm, LAT_COMM);
	cpu->frames_have = at + LAT_STACK_WORDS;
	if (cpu->frames_have < count)
		return 0;
	cpu->frames_have = 0;
	return take_frames(engine, cpu, count, to, sink);
}

static int take_switch(struct own_cpu *cpu, const struct lat_record *from,
		       struct latency_record *to, struct latency_sink *sink)
{
	int r;

	to->kind = LATENCY_SWITCH;
	to->comm = *cpu->running ? cpu->running : NULL;
	to->switched.next_pid = from->number;
	to->switched.next_prio = (int)from->extra;
	to->switched.next_comm = from->comm;
	r = sink->take(sink, to);
	memcpy(cpu->running, from->comm, sizeof(cpu->running));
	return r;
}

int own_translate(struct latency_engine *engine, struct own_cpu *cpu, const struct lat_record *from,
		  struct latency_sink *sink)
{
	static const enum latency_context contexts[] = {LATENCY_IRQ, LATENCY_THREAD, LATENCY_USER};
	struct latency_record to = {
		.cpu = cpu->cpu,
		.time_ns = from->time,
		.pid = from->pid,
		.comm = *from->comm ? from->comm : NULL,
	};
	char function[128];

	switch (from->kind) {
	case LAT_SAMPLE:
		if (from->cls >= ARRAY_LEN(contexts))
			return 0;
		to.kind = LATENCY_SAMPLE;
		to.sample.context = contexts[from->cls];
		to.sample.seq = from->extra;
		to.sample.latency_ns = from->value;
		return sink->take(sink, &to);
	case LAT_NOISE:
		return take_noise(engine, from, &to, sink);
	case LAT_GAP:
		to.kind = LATENCY_GAP;
		to.gap.start_ns = (int64_t)from->start;
		to.gap.duration_ns = (uint64_t)from->value;
		to.gap.interferences = (uint32_t)from->number;
		to.gap.explained_ns = from->extra;
		return sink->take(sink, &to);
	case LAT_PERIOD:
		cpu->period = *from;
		cpu->has_period = true;
		return 0;
	case LAT_COUNTS:
		return take_counts(cpu, from, &to, sink);
	case LAT_STACK:
		return take_stack(engine, cpu, from, &to, sink);
	case LAT_SWITCH:
		return take_switch(cpu, from, &to, sink);
	case LAT_WORK:
		to.kind = LATENCY_WORK;
		to.work.function = function_name(engine, from->extra, function, sizeof(function));
		return to.work.function ? sink->take(sink, &to) : 0;
	case LAT_STEAL:
		to.kind = LATENCY_STEAL;
		to.steal.duration_ns = (uint64_t)from->value;
		return sink->take(sink, &to);
	case LAT_STOPPED:
		to.kind = LATENCY_STOPPED;
		return sink->take(sink, &to);
	}
	return 0;
}
