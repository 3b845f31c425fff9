#include "latency/trace-decode.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/strtab.h"
#include "base/util.h"
#include "base/vec.h"
#include "latency/explained.h"

#define COMM_BYTES    64
#define STACK_MAX     256
#define FLAG_HARDIRQ  0x08 /* of common_flags */
#define FIELDS_WANTED 9

enum event_kind {
	EVENT_TIMERLAT,
	EVENT_OSNOISE,
	EVENT_HWLAT,
	EVENT_STACK,
	EVENT_PRINT,
	EVENT_NMI,
	EVENT_IRQ,
	EVENT_SOFTIRQ,
	EVENT_THREAD,
	EVENT_GAP,
	EVENT_SWITCH,
	EVENT_WORK,
	EVENT_HRTIMER,
	EVENT_RENAME,
	EVENT_KINDS,
};

/* The fields of each event, in the order their values are used below. Names behind "?" may be
 * missing. */
static const struct {
	const char *system, *event;
	const char *fields[FIELDS_WANTED];
} known[EVENT_KINDS] = {
	[EVENT_TIMERLAT] = {"ftrace", "timerlat", {"seqnum", "context", "timer_latency"}},
	[EVENT_OSNOISE] = {"ftrace",
			   "osnoise",
			   {"noise", "runtime", "max_sample", "hw_count", "nmi_count", "irq_count",
			    "softirq_count", "thread_count"}},
	[EVENT_HWLAT] = {"ftrace",
			 "hwlat",
			 {"seqnum", "duration", "outer_duration", "?count", "?nmi_total_ts",
			  "?nmi_count"}},
	[EVENT_STACK] = {"ftrace", "kernel_stack", {"size", "caller"}},
	[EVENT_PRINT] = {"ftrace", "print", {"buf"}},
	[EVENT_NMI] = {"osnoise", "nmi_noise", {"start", "duration"}},
	[EVENT_IRQ] = {"osnoise", "irq_noise", {"start", "duration", "vector", "desc"}},
	[EVENT_SOFTIRQ] = {"osnoise", "softirq_noise", {"start", "duration", "vector"}},
	[EVENT_THREAD] = {"osnoise", "thread_noise", {"start", "duration", "pid", "comm"}},
	[EVENT_GAP] = {"osnoise", "sample_threshold", {"start", "duration", "interference"}},
	[EVENT_SWITCH] = {"sched",
			  "sched_switch",
			  {"next_pid", "next_prio", "prev_pid", "next_comm", "prev_comm"}},
	[EVENT_WORK] = {"workqueue", "workqueue_execute_start", {"function"}},
	[EVENT_HRTIMER] = {"timer", "hrtimer_expire_entry", {"function"}},
	[EVENT_RENAME] = {"task", "task_rename", {"?pid", "newcomm"}},
};

struct event {
	enum event_kind kind;
	uint32_t id;
	bool has[FIELDS_WANTED];
	struct trace_field fields[FIELDS_WANTED], flags, pid;
};

struct cpu_state {
	uint32_t hrtimer; /* function that expired in the running interrupt, an id; 0 none */
	uint32_t work;    /* last work function begun */
	int work_pid;
	struct explained explained;
};

struct trace_decoder {
	struct trace_page_layout layout;
	struct trace_names names;
	VEC(struct event) events;
	struct u64_map by_id; /* event number to its place in events */
	struct strtab texts;
	struct u64_map comms;     /* pid to an id in texts */
	struct u64_map functions; /* address to an id */
	VEC(struct cpu_state) cpus;
};

/* One raw record on its way. */
struct decoding {
	struct trace_decoder *decoder;
	const struct event *event;
	const struct trace_bytes *bytes;
	struct cpu_state *cpu;
	uint64_t values[FIELDS_WANTED];
	struct latency_record record;
	struct latency_sink *sink;
};

int trace_decoder_new(const struct trace_page_layout *layout, const struct trace_names *names,
		      struct trace_decoder **ret)
{
	struct trace_decoder *decoder = calloc(1, sizeof(*decoder));
	int r = decoder ? strtab_init(&decoder->texts) : -ENOMEM;

	if (r < 0) {
		free(decoder);
		return r;
	}
	decoder->layout = *layout;
	if (names)
		decoder->names = *names;
	*ret = decoder;
	return 0;
}

void trace_decoder_free(struct trace_decoder *decoder)
{
	if (!decoder)
		return;
	vec_for_each(&decoder->cpus, cpu)
		explained_fini(&cpu->explained);
	vec_fini(&decoder->cpus);
	vec_fini(&decoder->events);
	u64_map_fini(&decoder->by_id);
	u64_map_fini(&decoder->comms);
	u64_map_fini(&decoder->functions);
	strtab_fini(&decoder->texts);
	free(decoder);
}

static int resolve_fields(const struct trace_format *format, struct event *event)
{
	static const char *const common[] = {"common_flags", "common_pid"};
	struct trace_field *to[] = {&event->flags, &event->pid};

	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		const struct trace_field *field = trace_format_field(format, common[i]);

		if (!field)
			return -EBADMSG;
		*to[i] = *field;
	}
	for (size_t i = 0; i < FIELDS_WANTED && known[event->kind].fields[i]; i++) {
		const char *name = known[event->kind].fields[i];
		bool optional = *name == '?';
		const struct trace_field *field = trace_format_field(format, name + optional);

		if (!field && !optional)
			return -EBADMSG;
		event->has[i] = field != NULL;
		if (field)
			event->fields[i] = *field;
	}
	return 0;
}

int trace_decoder_event(struct trace_decoder *decoder, const char *system, const char *text,
			size_t size, struct err *err)
{
	struct trace_format format;
	struct event event = {0};
	uint32_t place;
	int r = trace_format_parse(text, size, system, &format, err);

	if (r < 0)
		return r;
	for (unsigned kind = 0; kind < EVENT_KINDS; kind++) {
		if (strcmp(known[kind].system, system) != 0 ||
		    strcmp(known[kind].event, format.name) != 0)
			continue;
		event.kind = (enum event_kind)kind;
		event.id = format.id;
		if (resolve_fields(&format, &event) < 0)
			return err_set(err, -EBADMSG,
				       "the event %s:%s has other fields than those known", system,
				       format.name);
		if (u64_map_get(&decoder->by_id, format.id, &place))
			return 0; /* number given twice: the first holds */
		r = u64_map_put(&decoder->by_id, format.id, (uint32_t)decoder->events.len);
		if (r == 0)
			r = vec_push(&decoder->events, event);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

int trace_decoder_comm(struct trace_decoder *decoder, int pid, const char *comm)
{
	uint32_t id, have;
	int r;

	if (pid <= 0 || *comm == '\0')
		return 0;
	if (u64_map_get(&decoder->comms, (uint64_t)pid, &have) &&
	    strcmp(strtab_text(&decoder->texts, have), comm) == 0)
		return 0;
	r = strtab_intern_text(&decoder->texts, comm, &id);
	return r < 0 ? r : u64_map_put(&decoder->comms, (uint64_t)pid, id);
}

int trace_decoder_comms(struct trace_decoder *decoder, const char *text, size_t size)
{
	const char *end = text + size;

	for (const char *at = text, *stop; at < end; at = stop + 1) {
		char line[32 + COMM_BYTES], *name;
		uint32_t have;
		long pid;
		int r;

		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		snprintf(line, sizeof(line), "%.*s",
			 (int)MIN((size_t)(stop - at), sizeof(line) - 1), at);
		pid = strtol(line, &name, 10);
		if (name == line || *name != ' ' || pid <= 0 || pid > INT32_MAX ||
		    u64_map_get(&decoder->comms, (uint64_t)pid, &have))
			continue;
		r = trace_decoder_comm(decoder, (int)pid, name + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static const char *comm_of(struct trace_decoder *decoder, int pid)
{
	const char *comm;
	uint32_t id;

	if (pid == 0)
		return "<idle>";
	if (pid > 0 && u64_map_get(&decoder->comms, (uint64_t)pid, &id))
		return strtab_text(&decoder->texts, id);
	comm = pid > 0 && decoder->names.comm ? decoder->names.comm(decoder->names.arg, pid) : NULL;
	if (!comm || trace_decoder_comm(decoder, pid, comm) < 0 ||
	    !u64_map_get(&decoder->comms, (uint64_t)pid, &id))
		return NULL;
	return strtab_text(&decoder->texts, id);
}

/* The id of a function's name; of an unknown one its address. 0: no memory. */
static uint32_t function_of(struct trace_decoder *decoder, uint64_t address)
{
	const char *name;
	char number[24];
	uint32_t id;

	if (u64_map_get(&decoder->functions, address, &id))
		return id;
	name = decoder->names.function ? decoder->names.function(decoder->names.arg, address)
				       : NULL;
	if (!name) {
		snprintf(number, sizeof(number), "0x%llx", (unsigned long long)address);
		name = number;
	}
	if (strtab_intern_text(&decoder->texts, name, &id) < 0 ||
	    u64_map_put(&decoder->functions, address, id) < 0)
		return 0;
	return id;
}

static const char *text_or_null(const struct trace_decoder *decoder, uint32_t id)
{
	return id ? strtab_text(&decoder->texts, id) : NULL;
}

/* --- records --------------------------------------------------------------------------------- */

static int give(struct decoding *d, enum latency_record_kind kind)
{
	int r;

	d->record.kind = kind;
	r = d->sink->take(d->sink, &d->record);
	return r < 0 ? r : 1;
}

static int give_noise(struct decoding *d, enum noise_class class, int number, const char *name,
		      const char *function)
{
	d->record.noise.class = class;
	d->record.noise.number = number;
	d->record.noise.name = name;
	d->record.noise.function = function;
	d->record.noise.start_ns = (int64_t)d->values[0];
	d->record.noise.duration_ns = (int64_t)d->values[1];
	if (d->record.noise.duration_ns > 0)
		explained_note(&d->cpu->explained, d->values[0], d->values[1]);
	return give(d, LATENCY_NOISE);
}

static const char *softirq_name(int vector)
{
	static const char *const names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

	return vector >= 0 && (size_t)vector < ARRAY_LEN(names) ? names[vector] : NULL;
}

static int take_noise(struct decoding *d)
{
	struct trace_decoder *decoder = d->decoder;
	char name[COMM_BYTES];
	uint32_t function = 0;

	switch (d->event->kind) {
	case EVENT_NMI:
		return give_noise(d, NOISE_NMI, -1, "NMI", NULL);
	case EVENT_IRQ:
		if (!trace_field_text(&d->event->fields[3], d->bytes, name, sizeof(name)))
			return -EBADMSG;
		function = d->cpu->hrtimer;
		d->cpu->hrtimer = 0;
		return give_noise(d, NOISE_IRQ, (int)d->values[2], name,
				  text_or_null(decoder, function));
	case EVENT_SOFTIRQ:
		return give_noise(d, NOISE_SOFTIRQ, (int)d->values[2],
				  softirq_name((int)d->values[2]), NULL);
	default:
		if (!trace_field_text(&d->event->fields[3], d->bytes, name, sizeof(name)))
			return -EBADMSG;
		if (trace_decoder_comm(decoder, (int)d->values[2], name) < 0)
			return -ENOMEM;
		if (d->cpu->work && d->cpu->work_pid == (int)d->values[2])
			function = d->cpu->work;
		return give_noise(d, NOISE_THREAD, (int)d->values[2], name,
				  text_or_null(decoder, function));
	}
}

static int take_stack(struct decoding *d)
{
	const struct trace_field *callers = &d->event->fields[1];
	struct trace_field caller = {.offset = callers->offset,
				     .size = d->decoder->layout.commit_size};
	const char *frames[STACK_MAX];
	int64_t size = (int64_t)d->values[0];
	uint64_t address;
	unsigned count = 0;

	for (int64_t i = 0; i < size && count < STACK_MAX; i++, caller.offset += caller.size) {
		if (!trace_field_number(&caller, d->bytes, &address)) {
			d->record.stack.cut = true;
			break;
		}
		if (address == 0 || address == UINT64_MAX)
			continue; /* the kernel's padding */
		frames[count] = text_or_null(d->decoder, function_of(d->decoder, address));
		if (!frames[count++])
			return -ENOMEM;
	}
	if (count == 0)
		return 0;
	d->record.stack.frames = frames;
	d->record.stack.count = count;
	return give(d, LATENCY_STACK);
}

static int take_print(struct decoding *d)
{
	static const char words[] = "stop tracing hit on cpu ";
	char text[128], *at;

	if (!trace_field_text(&d->event->fields[0], d->bytes, text, sizeof(text)))
		return -EBADMSG;
	at = strstr(text, words);
	if (!at || !isdigit((unsigned char)at[sizeof(words) - 1]))
		return 0;
	d->record.cpu = (unsigned)strtoul(at + sizeof(words) - 1, NULL, 10);
	return give(d, LATENCY_STOPPED);
}

static int take_switch(struct decoding *d)
{
	char next[COMM_BYTES], prev[COMM_BYTES];

	if (!trace_field_text(&d->event->fields[3], d->bytes, next, sizeof(next)) ||
	    !trace_field_text(&d->event->fields[4], d->bytes, prev, sizeof(prev)))
		return -EBADMSG;
	if (trace_decoder_comm(d->decoder, (int)d->values[0], next) < 0 ||
	    trace_decoder_comm(d->decoder, (int)d->values[2], prev) < 0)
		return -ENOMEM;
	d->record.switched.next_pid = (int)d->values[0];
	d->record.switched.next_prio = (int)d->values[1];
	d->record.switched.next_comm = next;
	return give(d, LATENCY_SWITCH);
}

static int take_work(struct decoding *d)
{
	uint32_t function = function_of(d->decoder, d->values[0]);

	if (!function)
		return -ENOMEM;
	d->cpu->work = function;
	d->cpu->work_pid = d->record.pid;
	d->record.work.function = strtab_text(&d->decoder->texts, function);
	return give(d, LATENCY_WORK);
}

/* The first timer that expires in an interrupt names it. */
static int take_hrtimer(struct decoding *d)
{
	uint64_t flags;

	if (!trace_field_number(&d->event->flags, d->bytes, &flags))
		return -EBADMSG;
	if ((flags & FLAG_HARDIRQ) && d->cpu->hrtimer == 0)
		d->cpu->hrtimer = function_of(d->decoder, d->values[0]);
	return 0;
}

static int take_rename(struct decoding *d)
{
	char name[COMM_BYTES];
	int pid = d->event->has[0] ? (int)d->values[0] : d->record.pid;

	if (!trace_field_text(&d->event->fields[1], d->bytes, name, sizeof(name)))
		return -EBADMSG;
	return trace_decoder_comm(d->decoder, pid, name);
}

static int take_timerlat(struct decoding *d)
{
	if (d->values[1] >= LATENCY_CONTEXTS)
		return 0; /* of a newer kernel */
	d->record.sample.seq = d->values[0];
	d->record.sample.context = (enum latency_context)d->values[1];
	d->record.sample.latency_ns = (int64_t)d->values[2];
	return give(d, LATENCY_SAMPLE);
}

/* The kernel keeps these sums in microseconds. */
static int take_osnoise(struct decoding *d)
{
	d->record.period.noise_ns = d->values[0] * NSEC_PER_USEC;
	d->record.period.runtime_ns = d->values[1] * NSEC_PER_USEC;
	d->record.period.max_single_ns = d->values[2] * NSEC_PER_USEC;
	for (unsigned class = 0; class < NOISE_CLASSES; class ++)
		d->record.period.count[class] = d->values[3 + class];
	return give(d, LATENCY_PERIOD);
}

static int take_hwlat(struct decoding *d)
{
	d->record.hwlat.seq = d->values[0];
	d->record.hwlat.inner_ns = d->values[1] * NSEC_PER_USEC;
	d->record.hwlat.outer_ns = d->values[2] * NSEC_PER_USEC;
	d->record.hwlat.count = d->values[3];
	d->record.hwlat.nmi_total_ns =
		d->event->has[4] ? (int64_t)(d->values[4] * NSEC_PER_USEC) : LATENCY_UNKNOWN_NS;
	d->record.hwlat.nmi_count = d->values[5];
	return give(d, LATENCY_HWLAT);
}

static int take(struct decoding *d)
{
	switch (d->event->kind) {
	case EVENT_TIMERLAT:
		return take_timerlat(d);
	case EVENT_OSNOISE:
		return take_osnoise(d);
	case EVENT_HWLAT:
		return take_hwlat(d);
	case EVENT_STACK:
		return take_stack(d);
	case EVENT_PRINT:
		return take_print(d);
	case EVENT_GAP:
		d->record.gap.start_ns = (int64_t)d->values[0];
		d->record.gap.duration_ns = d->values[1];
		d->record.gap.interferences = d->values[2];
		d->record.gap.explained_ns = explained_take(&d->cpu->explained, d->values[0]);
		return give(d, LATENCY_GAP);
	case EVENT_SWITCH:
		return take_switch(d);
	case EVENT_WORK:
		return take_work(d);
	case EVENT_HRTIMER:
		return take_hrtimer(d);
	case EVENT_RENAME:
		return take_rename(d);
	default:
		return take_noise(d);
	}
}

/* --- pages ----------------------------------------------------------------------------------- */

static bool is_text(enum event_kind kind, size_t field)
{
	const char *name = known[kind].fields[field];

	return strcmp(name, "desc") == 0 || strcmp(name, "buf") == 0 ||
	       strcmp(name, "caller") == 0 ||
	       (strlen(name) >= 4 && strcmp(name + strlen(name) - 4, "comm") == 0);
}

static int decode(struct decoding *d, unsigned cpu, uint64_t time_ns)
{
	uint64_t pid;

	for (size_t i = 0; i < FIELDS_WANTED && known[d->event->kind].fields[i]; i++) {
		d->values[i] = 0;
		if (d->event->has[i] && !is_text(d->event->kind, i) &&
		    !trace_field_number(&d->event->fields[i], d->bytes, &d->values[i]))
			return -EBADMSG;
	}
	if (!trace_field_number(&d->event->pid, d->bytes, &pid))
		return -EBADMSG;
	d->record = (struct latency_record){.cpu = cpu, .time_ns = time_ns, .pid = (int)pid};
	d->record.comm = comm_of(d->decoder, (int)pid);
	return take(d);
}

static struct cpu_state *cpu_state(struct trace_decoder *decoder, unsigned cpu)
{
	while (decoder->cpus.len <= cpu)
		if (vec_push(&decoder->cpus, ((struct cpu_state){0})) < 0)
			return NULL;
	return &decoder->cpus.data[cpu];
}

static int give_lost(struct decoding *d, unsigned cpu, const struct trace_page *page)
{
	d->cpu->hrtimer = d->cpu->work = 0;
	explained_forget(&d->cpu->explained);
	d->record = (struct latency_record){.cpu = cpu, .time_ns = page->time_ns, .pid = -1};
	d->record.lost.events = page->lost_events;
	return give(d, LATENCY_LOST);
}

int trace_decoder_page(struct trace_decoder *decoder, unsigned cpu, const void *bytes, size_t size,
		       struct latency_sink *sink, struct err *err)
{
	static const struct trace_field type = {.offset = 0, .size = 2};
	struct decoding d = {.decoder = decoder, .sink = sink};
	struct trace_page page;
	struct trace_bytes record;
	int given = 0, r = trace_page_open(&decoder->layout, bytes, size, &page);

	if (r < 0)
		return err_set(err, r, "CPU %u: damaged page of the ring buffer", cpu);
	d.cpu = cpu_state(decoder, cpu);
	if (!d.cpu)
		return -ENOMEM;
	if (page.lost) {
		r = give_lost(&d, cpu, &page);
		if (r < 0)
			return r;
		given += r;
	}
	while ((r = trace_page_next(&page, &record)) > 0) {
		uint64_t id;
		uint32_t place;

		if (!trace_field_number(&type, &record, &id) ||
		    !u64_map_get(&decoder->by_id, id, &place))
			continue;
		d.event = &decoder->events.data[place];
		d.bytes = &record;
		r = decode(&d, cpu, page.time_ns);
		if (r < 0)
			return r == -EBADMSG
				       ? err_set(err, r, "CPU %u: a record of %s:%s is too short",
						 cpu, known[d.event->kind].system,
						 known[d.event->kind].event)
				       : r;
		given += r;
	}
	return r < 0 ? err_set(err, r, "CPU %u: damaged page of the ring buffer", cpu) : given;
}
