#include "latency/trace-text.h"

#include <errno.h>
#include <string.h>

#include "base/scan.h"
#include "base/util.h"
#include "latency/explained.h"

#define FRAMES_MAX   128
#define NAME_BYTES   64
#define CPUS_WATCHED 1024 /* whose time and interruptions are followed */
#define SYMBOL_BYTES 128

/* The clocks differ when the noise events end that much before or after they were written down. */
#define OTHER_CLOCK_LATE_NS  INT64_C(10000)
#define OTHER_CLOCK_EARLY_NS INT64_C(1000000)

struct reader {
	struct latency_sink *sink;
	struct trace_text_stats *stats;
	struct latency_record stack; /* being collected while frames > 0 or open */
	bool stack_open, garbage;
	const char *frames[FRAMES_MAX];
	char symbols[FRAMES_MAX][SYMBOL_BYTES];
	uint64_t line;
	uint64_t last_ns[CPUS_WATCHED];
	struct explained explained[CPUS_WATCHED];
};

/* "comm-pid [cpu] flags seconds.micros:", what comes before the event. */
struct prefix {
	struct scan comm; /* empty: not told */
	int pid;
	unsigned cpu;
	uint64_t time_ns;
};

/* "-pid" at the end of what stands before " [cpu]". */
static void parse_task(struct scan text, struct prefix *prefix)
{
	text = scan_trim(text);
	/* trace-cmd and the kernel put the thread group in brackets behind the pid: "(  850)" */
	if (text.at < text.end && text.end[-1] == ')') {
		const char *open = memrchr(text.at, '(', scan_len(text));
		if (open)
			text = scan_trim((struct scan){text.at, open});
	}
	const char *dash = text.at < text.end ? memrchr(text.at, '-', scan_len(text)) : NULL;
	uint64_t pid;
	struct scan number = {dash ? dash + 1 : text.end, text.end};
	if (!dash || !scan_u64(&number, &pid) || number.at != number.end || pid > INT32_MAX) {
		prefix->comm = text;
		prefix->pid = -1;
		return;
	}
	prefix->pid = (int)pid;
	prefix->comm = (struct scan){text.at, dash};
	if (scan_is(prefix->comm, "<...>") || scan_is(prefix->comm, "<idle>"))
		prefix->comm.end = prefix->comm.at;
}

/* What follows "[cpu]": an optional word of flags and the time stamp with its colon. */
static bool parse_time(struct scan *rest, uint64_t *ret_ns)
{
	for (unsigned word_number = 0; word_number < 2; word_number++) {
		struct scan word = scan_word(rest), number = word;
		int64_t time;
		if (scan_len(word) > 2 && word.end[-1] == ':' &&
		    memchr(word.at, '.', scan_len(word)) && scan_nano(&number, &time) &&
		    number.at == word.end - 1 && time >= 0) {
			*ret_ns = (uint64_t)time;
			return true;
		}
	}
	return false;
}

/* The event's text, or false when the line has another form. */
static bool parse_prefix(struct scan line, struct prefix *prefix, struct scan *ret_event)
{
	for (const char *open = line.at; (open = memchr(open, '[', (size_t)(line.end - open)));
	     open++) {
		struct scan rest = {open + 1, line.end};
		uint64_t cpu;
		if (rest.at == rest.end || scan_blank(*rest.at) || !scan_u64(&rest, &cpu) ||
		    rest.at == rest.end || *rest.at != ']' || cpu > 1u << 20)
			continue;
		rest.at++;
		if (!parse_time(&rest, &prefix->time_ns))
			continue;
		prefix->cpu = (unsigned)cpu;
		parse_task((struct scan){line.at, open}, prefix);
		*ret_event = scan_trim(rest);
		return true;
	}
	return false;
}

bool trace_text_line(const char *line, size_t len)
{
	struct prefix prefix;
	struct scan event;
	return parse_prefix(scan_of(line, len), &prefix, &event);
}

/* "<what> start S.NNNNNNNNN duration N ns": the part from " start " on. */
static bool parse_start_duration(struct scan *text, int64_t *ret_start, int64_t *ret_duration)
{
	uint64_t duration;
	if (!scan_skip(text, "start") || !scan_nano(text, ret_start) ||
	    !scan_skip(text, "duration") || !scan_u64(text, &duration) ||
	    duration > INT64_MAX / 1000)
		return false;
	bool micros = scan_skip(text, "us"); /* the first kernels that had it */
	if (!micros)
		scan_skip(text, "ns");
	*ret_duration = (int64_t)(micros ? duration * 1000 : duration);
	return true;
}

/* "name:number", where the name may hold colons and blanks. */
static void parse_source(struct scan text, struct latency_record *record, char *name)
{
	text = scan_trim(text);
	const char *colon = text.at < text.end ? memrchr(text.at, ':', scan_len(text)) : NULL;
	struct scan number = {colon ? colon + 1 : text.end, text.end};
	bool negative = number.at < number.end && *number.at == '-';
	number.at += negative;
	uint64_t value;
	record->noise.number = -1;
	if (colon && scan_u64(&number, &value) && number.at == number.end && value <= INT32_MAX) {
		record->noise.number = negative ? -1 : (int)value;
		text.end = colon;
	}
	record->noise.name = scan_copy(scan_trim(text), name, NAME_BYTES);
}

static bool parse_noise(struct scan text, enum noise_class class, struct latency_record *record,
			char *name)
{
	record->kind = LATENCY_NOISE;
	record->noise.class = class;
	if (class == NOISE_NMI) {
		record->noise.number = -1;
		record->noise.name = "nmi";
		return parse_start_duration(&text, &record->noise.start_ns,
					    &record->noise.duration_ns);
	}
	/* the last " start ": a name may hold the word too */
	const char *start = NULL;
	for (struct scan s = text; (s.at = scan_find(s, " start ")) != NULL; s.at++)
		start = s.at;
	if (!start)
		return false;
	parse_source((struct scan){text.at, start}, record, name);
	text.at = start;
	return parse_start_duration(&text, &record->noise.start_ns, &record->noise.duration_ns);
}

static bool parse_gap(struct scan text, struct latency_record *record)
{
	int64_t duration;
	record->kind = LATENCY_GAP;
	record->gap.explained_ns = 0;
	if (!parse_start_duration(&text, &record->gap.start_ns, &duration) ||
	    !scan_skip(&text, "interference"))
		return false;
	record->gap.duration_ns = (uint64_t)duration;
	scan_skip(&text, "s");
	return scan_u64(&text, &record->gap.interferences);
}

static bool parse_context(struct scan word, enum latency_context *ret)
{
	if (scan_is(word, "irq"))
		*ret = LATENCY_IRQ;
	else if (scan_is(word, "thread"))
		*ret = LATENCY_THREAD;
	else if (scan_is(word, "user-ret") || scan_is(word, "user"))
		*ret = LATENCY_USER;
	else
		return false;
	return true;
}

/* "#1 context irq timer_latency 932 ns" */
static bool parse_timerlat(struct scan text, struct latency_record *record)
{
	record->kind = LATENCY_SAMPLE;
	if (!scan_skip(&text, "#") || !scan_u64(&text, &record->sample.seq) ||
	    !scan_skip(&text, "context") ||
	    !parse_context(scan_word(&text), &record->sample.context) ||
	    !scan_skip(&text, "timer_latency"))
		return false;
	struct scan word = scan_word(&text);
	bool negative = word.at < word.end && *word.at == '-';
	word.at += negative;
	uint64_t latency;
	if (!scan_u64(&word, &latency))
		return false;
	/* a latency below zero is printed as a huge unsigned number by the kernel */
	record->sample.latency_ns = negative ? -(int64_t)MIN(latency, INT64_MAX) : (int64_t)latency;
	return true;
}

/* trace-cmd report's own wording: "seq:1 context:0 timer_latency:932" */
static bool parse_timerlat_fields(struct scan text, struct latency_record *record)
{
	uint64_t context, latency;
	record->kind = LATENCY_SAMPLE;
	if (!scan_skip(&text, "seq:") || !scan_u64(&text, &record->sample.seq) ||
	    !scan_skip(&text, "context:") || !scan_u64(&text, &context) ||
	    context >= LATENCY_CONTEXTS || !scan_skip(&text, "timer_latency:") ||
	    !scan_u64(&text, &latency))
		return false;
	record->sample.context = (enum latency_context)context;
	record->sample.latency_ns = (int64_t)latency;
	return true;
}

/* "1000000 190 99.98100 9 18 0 1007 18 1", us */
static bool parse_period(struct scan text, struct latency_record *record)
{
	uint64_t runtime, noise, max;
	int64_t share;
	record->kind = LATENCY_PERIOD;
	if (!scan_u64(&text, &runtime) || !scan_u64(&text, &noise) || !scan_nano(&text, &share) ||
	    !scan_u64(&text, &max) || MAX(runtime, MAX(noise, max)) > INT64_MAX / 1000)
		return false;
	record->period.runtime_ns = runtime * 1000;
	record->period.noise_ns = noise * 1000;
	record->period.max_single_ns = max * 1000;
	for (unsigned i = 0; i < NOISE_CLASSES; i++) {
		if (!scan_u64(&text, &record->period.count[i]))
			return false;
	}
	return true;
}

/* "#1 inner/outer(us): 8320/8060 ts:1795978868.304155610 count:326 nmi-total:5 nmi-count:1": more
 * fields may follow */
static bool parse_hwlat(struct scan text, struct latency_record *record)
{
	uint64_t inner, outer;
	record->kind = LATENCY_HWLAT;
	record->hwlat.count = 0;
	record->hwlat.nmi_total_ns = LATENCY_UNKNOWN_NS;
	record->hwlat.nmi_count = 0;
	if (!scan_skip(&text, "#") || !scan_u64(&text, &record->hwlat.seq) ||
	    !scan_skip(&text, "inner/outer(us):") || !scan_u64(&text, &inner) ||
	    !scan_skip(&text, "/") || !scan_u64(&text, &outer) ||
	    MAX(inner, outer) > INT64_MAX / 1000)
		return false;
	record->hwlat.inner_ns = inner * 1000;
	record->hwlat.outer_ns = outer * 1000;
	for (;;) {
		struct scan word = scan_word(&text);
		uint64_t value;
		if (word.at == word.end)
			break;
		if (scan_skip(&word, "count:"))
			scan_u64(&word, &record->hwlat.count);
		else if (scan_skip(&word, "nmi-total:") && scan_u64(&word, &value) &&
			 value < INT64_MAX / 1000)
			record->hwlat.nmi_total_ns = (int64_t)value * 1000;
		else if (scan_skip(&word, "nmi-count:"))
			scan_u64(&word, &record->hwlat.nmi_count);
	}
	return true;
}

static bool parse_switch(struct scan text, struct latency_record *record, char *name)
{
	const char *arrow = scan_find(text, "==> next_comm=");
	if (!arrow)
		return false;
	struct scan next = {arrow + strlen("==> next_comm="), text.end};
	const char *pid_at = NULL;
	for (struct scan s = next; (s.at = scan_find(s, " next_pid=")) != NULL; s.at++)
		pid_at = s.at;
	if (!pid_at)
		return false;
	uint64_t pid, prio;
	struct scan rest = {pid_at, text.end};
	if (!scan_skip(&rest, "next_pid=") || !scan_u64(&rest, &pid) || pid > INT32_MAX ||
	    !scan_skip(&rest, "next_prio=") || !scan_u64(&rest, &prio) || prio > INT32_MAX)
		return false;
	record->kind = LATENCY_SWITCH;
	record->switched.next_pid = (int)pid;
	record->switched.next_prio = (int)prio;
	record->switched.next_comm = scan_copy((struct scan){next.at, pid_at}, name, NAME_BYTES);
	return true;
}

static bool parse_work(struct scan text, struct latency_record *record, char *name)
{
	const char *function = scan_find(text, "function ");
	if (!function)
		return false;
	struct scan rest = {function + strlen("function "), text.end};
	record->kind = LATENCY_WORK;
	record->work.function = scan_copy(scan_word(&rest), name, NAME_BYTES);
	return true;
}

static int give(struct reader *reader, const struct latency_record *record)
{
	reader->stats->records++;
	return reader->sink->take(reader->sink, record);
}

/* What the event says; false when it is none of ours. name and comm hold NAME_BYTES each. */
static bool parse_event(struct scan event, struct latency_record *record, char *name,
			bool *ret_ours)
{
	static const struct {
		const char *prefix;
		enum noise_class class;
	} noises[] = {
		{"nmi_noise:", NOISE_NMI},
		{"irq_noise:", NOISE_IRQ},
		{"softirq_noise:", NOISE_SOFTIRQ},
		{"thread_noise:", NOISE_THREAD},
	};
	*ret_ours = true;
	for (unsigned i = 0; i < ARRAY_LEN(noises); i++) {
		if (scan_skip(&event, noises[i].prefix))
			return parse_noise(event, noises[i].class, record, name);
	}
	if (scan_skip(&event, "sample_threshold:"))
		return parse_gap(event, record);
	if (scan_skip(&event, "timerlat:"))
		return parse_timerlat_fields(event, record);
	if (scan_skip(&event, "sched_switch:"))
		return parse_switch(event, record, name);
	if (scan_skip(&event, "workqueue_execute_start:"))
		return parse_work(event, record, name);
	if (scan_find(event, "stop tracing hit on cpu")) {
		record->kind = LATENCY_STOPPED;
		return true;
	}
	if (scan_starts(event, "#"))
		return scan_find(event, "inner/outer") ? parse_hwlat(event, record)
						       : parse_timerlat(event, record);
	scan_skip(&event, "osnoise:");
	if (event.at < event.end && *event.at >= '0' && *event.at <= '9' &&
	    parse_period(event, record))
		return true;
	*ret_ours = false;
	return false;
}

static int finish_stack(struct reader *reader)
{
	if (!reader->stack_open)
		return 0;
	reader->stack_open = false;
	reader->stack.stack.frames = reader->frames;
	return reader->stack.stack.count ? give(reader, &reader->stack) : 0;
}

/* " => function+0x12", raw addresses and zeros are the stack buffer's old contents */
static void add_frame(struct reader *reader, struct scan frame)
{
	struct scan word = scan_word(&frame);
	if (scan_is(word, "0") || scan_starts(word, "0x") || word.at == word.end) {
		reader->garbage = true;
		return;
	}
	if (reader->garbage)
		return;
	unsigned n = reader->stack.stack.count;
	if (n == FRAMES_MAX) {
		reader->stack.stack.cut = true;
		return;
	}
	reader->frames[n] = scan_copy(word, reader->symbols[n], SYMBOL_BYTES);
	reader->stack.stack.count = n + 1;
}

/* "CPU:3 [LOST 12 EVENTS]" */
static bool parse_lost(struct scan line, struct latency_record *record)
{
	uint64_t cpu, events = 0;
	line = scan_trim(line);
	if (!scan_skip(&line, "CPU:") || !scan_u64(&line, &cpu) || cpu > 1u << 20 ||
	    !scan_skip(&line, "[LOST"))
		return false;
	scan_u64(&line, &events);
	*record = (struct latency_record){.kind = LATENCY_LOST, .cpu = (unsigned)cpu, .pid = -1};
	record->lost.events = events;
	return true;
}

static void watch_time(struct reader *reader, const struct prefix *prefix)
{
	if (prefix->cpu >= CPUS_WATCHED)
		return;
	if (prefix->time_ns < reader->last_ns[prefix->cpu] && !reader->stats->first_backwards)
		reader->stats->first_backwards = reader->line;
	reader->last_ns[prefix->cpu] = prefix->time_ns;
}

/* Puts starts onto the time stamps' clock, and tells gaps what of them is explained. */
static void follow(struct reader *reader, struct latency_record *record)
{
	struct explained *explained =
		record->cpu < CPUS_WATCHED ? &reader->explained[record->cpu] : NULL;
	if (record->kind == LATENCY_NOISE) {
		record->noise.start_ns -= reader->stats->clock_offset_ns;
		if (explained && record->noise.start_ns >= 0 && record->noise.duration_ns > 0)
			explained_note(explained, (uint64_t)record->noise.start_ns,
				       (uint64_t)record->noise.duration_ns);
	} else if (record->kind == LATENCY_GAP) {
		record->gap.start_ns -= reader->stats->clock_offset_ns;
		if (explained && record->gap.start_ns >= 0)
			record->gap.explained_ns =
				explained_take(explained, (uint64_t)record->gap.start_ns);
	}
}

static int take_event(struct reader *reader, const struct prefix *prefix, struct scan event)
{
	char name[NAME_BYTES], comm[NAME_BYTES];
	struct latency_record record = {
		.cpu = prefix->cpu, .time_ns = prefix->time_ns, .pid = prefix->pid};
	bool ours;
	if (scan_len(prefix->comm))
		record.comm = scan_copy(prefix->comm, comm, sizeof(comm));
	if (scan_starts(event, "<stack trace>")) {
		record.kind = LATENCY_STACK;
		reader->stack = record;
		/* the name in this frame ends with it, and no one needs it */
		reader->stack.comm = NULL;
		reader->stack_open = true;
		reader->garbage = false;
		return 0;
	}
	if (!parse_event(event, &record, name, &ours)) {
		if (ours)
			return -EBADMSG;
		reader->stats->other_events++;
		return 0;
	}
	follow(reader, &record);
	if (record.kind == LATENCY_STOPPED) {
		const char *cpu_at = scan_find(event, "on cpu ");
		struct scan number = {cpu_at ? cpu_at + strlen("on cpu ") : event.end, event.end};
		uint64_t cpu;
		if (scan_u64(&number, &cpu) && cpu <= 1u << 20)
			record.cpu = (unsigned)cpu;
	}
	return give(reader, &record);
}

static int take_line(struct reader *reader, struct scan line)
{
	struct scan trimmed = scan_trim(line);
	struct prefix prefix;
	struct latency_record lost;
	struct scan event;
	if (reader->stack_open && scan_skip(&trimmed, "=>")) {
		add_frame(reader, trimmed);
		return 0;
	}
	int r = finish_stack(reader);
	if (r < 0)
		return r;
	if (trimmed.at == trimmed.end || *trimmed.at == '#' || scan_is(trimmed, "..."))
		return 0;
	if (parse_lost(line, &lost)) {
		if (lost.cpu < CPUS_WATCHED)
			explained_forget(&reader->explained[lost.cpu]);
		return give(reader, &lost);
	}
	if (!parse_prefix(line, &prefix, &event))
		return -EBADMSG;
	watch_time(reader, &prefix);
	return take_event(reader, &prefix, event);
}

/* How far the noise events' clock is ahead of the time stamps: the least gap between an event's end
 * and its writing. */
static int64_t find_clock_offset(const char *text, size_t size)
{
	struct scan_lines lines = {.rest = scan_of(text, size)};
	int64_t ahead = INT64_MIN;
	for (struct scan line; scan_line(&lines, &line);) {
		struct prefix prefix;
		struct scan event;
		struct latency_record record;
		char name[NAME_BYTES];
		bool ours;
		if (!scan_find(line, "_noise:") || !parse_prefix(line, &prefix, &event) ||
		    !parse_event(event, &record, name, &ours) || record.kind != LATENCY_NOISE)
			continue;
		ahead = MAX(ahead, record.noise.start_ns + record.noise.duration_ns -
					   (int64_t)prefix.time_ns);
	}
	bool same = ahead == INT64_MIN ||
		    (ahead < OTHER_CLOCK_LATE_NS && ahead > -OTHER_CLOCK_EARLY_NS);
	return same ? 0 : ahead;
}

int trace_text_read(const char *text, size_t size, struct latency_sink *sink,
		    struct trace_text_stats *ret)
{
	*ret = (struct trace_text_stats){.clock_offset_ns = find_clock_offset(text, size)};
	struct reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->sink = sink;
	reader->stats = ret;
	struct scan_lines lines = {.rest = scan_of(text, size)};
	int r = 0;
	for (struct scan line; r >= 0 && scan_line(&lines, &line);) {
		reader->line = lines.number;
		r = take_line(reader, line);
		if (r == -EBADMSG) {
			ret->bad_lines++;
			if (!ret->first_bad_line)
				ret->first_bad_line = lines.number;
			r = 0;
		}
	}
	if (r >= 0)
		r = finish_stack(reader);
	for (unsigned i = 0; i < CPUS_WATCHED; i++)
		explained_fini(&reader->explained[i]);
	free(reader);
	return MIN(r, 0);
}
