/*
 * Two passes: the first finds the events and whether periods are told, which make the value types;
 * the second adds the samples.
 */
#include "profile/perfscript.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "profile/perfscript-internal.h"

#define EVENTS_MAX   64
#define FRAMES_MAX   65536
#define INLINES_MAX  64
#define DETECT_BYTES (64u << 10)
#define DETECT_LINES 200

struct script_event {
	uint32_t name; /* string */
	uint32_t column;
	bool is_time;
};

struct script {
	struct span text;
	const struct perfscript_options *options;
	struct profile *profile;
	struct perfscript_info info;
	struct script_event events[EVENTS_MAX];
	unsigned event_count;
	bool periods, filtered;
	uint32_t key_comm, key_pid, key_tid;

	/* The sample that is being read. */
	bool open;
	struct script_head head;
	VEC(uint32_t) locations; /* leaf first */
	struct profile_line lines[INLINES_MAX];
	uint32_t inlined; /* of lines */
	char *name;       /* scratch */
	size_t name_size;
};

/* "cycles:ppp" is cycles: the letters behind the last colon are modifiers. */
static struct span event_name(struct span event)
{
	size_t i = event.len;

	while (i > 0 && strchr("ukhvHGDpPSIWeb", event.at[i - 1]) && event.at[i - 1])
		i--;
	if (i > 1 && event.at[i - 1] == ':')
		event.len = i - 1;
	return event;
}

static bool is_clock(struct span event)
{
	return span_is(event, "cpu-clock") || span_is(event, "task-clock");
}

static bool wanted(const struct script *script, struct span event)
{
	char text[256];

	if (!script->options->event)
		return true;
	snprintf(text, sizeof(text), "%.*s", (int)MIN(event.len, sizeof(text) - 1), event.at);
	return str_glob(script->options->event, text);
}

/* The event's entry, made when it is new; NULL when there are too many or it is not wanted. */
static int find_event(struct script *script, struct span event, struct script_event **ret)
{
	struct span name = event_name(event);
	uint32_t id;
	int r;

	*ret = NULL;
	if (!wanted(script, event) && !wanted(script, name))
		return 0;
	r = strtab_intern(&script->profile->strings, name.at, name.len, &id);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < script->event_count; i++)
		if (script->events[i].name == id) {
			*ret = &script->events[i];
			return 0;
		}
	if (script->event_count == EVENTS_MAX)
		return 0;
	script->events[script->event_count] =
		(struct script_event){.name = id, .is_time = is_clock(name)};
	*ret = &script->events[script->event_count++];
	return 0;
}

static bool is_comment(struct span line)
{
	return line.len > 0 && line.at[0] == '#';
}

static bool is_blank(struct span line)
{
	for (size_t i = 0; i < line.len; i++)
		if (line.at[i] != ' ' && line.at[i] != '\t')
			return false;
	return true;
}

static int find_events(struct script *script)
{
	struct span text = script->text, line;
	struct script_event *event;
	struct script_head head;
	struct script_frame frame;
	int r = 0;

	while (r == 0 && script_line(&text, &line)) {
		if (is_comment(line) || is_blank(line) || !script_head(line, &head) ||
		    (!head.timed && script_frame(line, &frame)))
			continue;
		script->info.samples++;
		script->periods |= head.period > 0;
		r = find_event(script, head.event, &event);
	}
	return r;
}

/* As a recording's: one event has "samples" and itself, several have two of their own each. */
static int add_value_types(struct script *script)
{
	struct profile *profile = script->profile;
	uint32_t column = 0;
	char text[300];
	int r = 0;

	for (unsigned i = 0; i < script->event_count && r >= 0; i++) {
		struct script_event *event = &script->events[i];
		const char *name = strtab_text(&profile->strings, event->name);

		snprintf(text, sizeof(text), "%s_samples", name);
		r = profile_add_value_type(profile, script->event_count == 1 ? "samples" : text,
					   "count");
		event->column = column++;
		if (r < 0 || !script->periods)
			continue;
		r = profile_add_value_type(
			profile, script->event_count == 1 && event->is_time ? "cpu" : name,
			event->is_time ? "nanoseconds" : "events");
		column++;
	}
	if (r >= 0 && script->event_count > 0)
		profile->default_type = profile->value_types.data[script->periods ? 1 : 0].type;
	return MIN(r, 0);
}

static int to_text(struct script *script, struct span span)
{
	char *more;

	if (script->name_size <= span.len) {
		more = realloc(script->name, span.len + 1);
		if (!more)
			return -ENOMEM;
		script->name = more;
		script->name_size = span.len + 1;
	}
	memcpy(script->name, span.at, span.len);
	script->name[span.len] = '\0';
	return 0;
}

static int make_function(struct script *script, struct span symbol, uint32_t *ret)
{
	struct profile_function function = {0};
	struct strtab *strings = &script->profile->strings;
	char *readable = NULL;
	int r = strtab_intern(strings, symbol.at, symbol.len, &function.system_name);

	function.name = function.system_name;
	if (r == 0 && script->options->demangle && symbol.len > 2 && symbol.at[0] == '_') {
		r = to_text(script, symbol);
		if (r == 0)
			readable = script->options->demangle(script->name);
		if (readable)
			r = strtab_intern_text(strings, readable, &function.name);
		free(readable);
	}
	return r < 0 ? r : profile_function(script->profile, &function, ret);
}

static int add_frame(struct script *script, const struct script_frame *frame)
{
	struct profile_mapping mapping = {0};
	struct profile_location location = {0};
	struct profile_line *line = &script->lines[script->inlined];
	bool named = !span_is(frame->symbol, "[unknown]");
	uint32_t id;
	int r;

	if (script->locations.len >= FRAMES_MAX)
		return 0;
	*line = (struct profile_line){0};
	r = make_function(script, frame->symbol, &line->function);
	if (frame->inlined && r == 0 && script->inlined + 1 < INLINES_MAX) {
		script->inlined++;
		return 0;
	}
	if (r == 0)
		r = strtab_intern(&script->profile->strings, frame->object.at, frame->object.len,
				  &mapping.filename);
	if (r < 0)
		return r;
	mapping.kind =
		profile_kind_of_object(strtab_text(&script->profile->strings, mapping.filename));
	mapping.has_functions = true;
	r = profile_mapping(script->profile, &mapping, &location.mapping);
	location.line_count = script->inlined + 1;
	/* A name stands for all its addresses; an address alone is shown as object+0xaddress. */
	if (!named && script->inlined == 0 && !span_is(frame->object, "[unknown]")) {
		location.line_count = 0;
		location.address = frame->address;
	}
	script->inlined = 0;
	if (r == 0)
		r = profile_location(script->profile, &location, script->lines, &id);
	return r < 0 ? r : vec_push(&script->locations, id);
}

static int sample_labels(struct script *script, uint32_t *ret)
{
	const struct script_head *head = &script->head;
	struct profile_label labels[3] = {{.key = script->key_comm}};
	uint32_t count = 1;
	int r = strtab_intern(&script->profile->strings, head->comm.at, head->comm.len,
			      &labels[0].text);

	if (head->pid >= 0)
		labels[count++] =
			(struct profile_label){.key = script->key_pid, .number = head->pid};
	if (head->tid >= 0 && (head->pid < 0 || script->options->tid))
		labels[count++] =
			(struct profile_label){.key = script->key_tid, .number = head->tid};
	return r < 0 ? r : profile_label_set(script->profile, labels, count, ret);
}

/* Adds the sample that is open. */
static int close_sample(struct script *script)
{
	int64_t values[2 * EVENTS_MAX] = {0};
	struct script_event *event;
	uint32_t stack = 0, labels;
	int r;

	if (!script->open)
		return 0;
	script->open = false;
	r = find_event(script, script->head.event, &event);
	/* Inlined frames whose caller is missing stand alone. */
	if (r == 0 && script->inlined > 0) {
		const struct script_frame none = {.symbol = {"[unknown]", 9},
						  .object = {"[unknown]", 9}};

		r = add_frame(script, &none);
	}
	if (r == 0)
		r = sample_labels(script, &labels);
	for (size_t i = script->locations.len; r == 0 && i-- > 0;)
		r = profile_stack(script->profile, stack, script->locations.data[i], &stack);
	script->locations.len = 0;
	script->inlined = 0;
	if (r < 0 || !event)
		return r;
	values[event->column] = 1;
	if (script->periods)
		values[event->column + 1] =
			(int64_t)MIN(MAX(script->head.period, 1), (uint64_t)INT64_MAX);
	return profile_add(script->profile, stack, labels, values);
}

static int read_line(struct script *script, struct span line)
{
	struct script_frame frame;
	struct script_head head;
	bool is_frame = script_frame(line, &frame);
	int r;

	/* A frame's name may look like a sample without a time, never like one with it. */
	if (script_head(line, &head) && (head.timed || !is_frame)) {
		r = close_sample(script);
		script->open = true;
		script->head = head;
		if (r == 0 && script_frame(head.rest, &frame) && frame.object.len &&
		    head.rest.at[head.rest.len - 1] == ')')
			r = add_frame(script, &frame);
		return r;
	}
	if (is_frame && script->open)
		return add_frame(script, &frame);
	if (!script_source(line) && script->info.bad_lines++ == 0)
		script->info.first_bad_line = script->info.lines;
	return 0;
}

static int read_samples(struct script *script)
{
	struct strtab *strings = &script->profile->strings;
	struct span text = script->text, line;
	int r = 0;

	if (strtab_intern_text(strings, "comm", &script->key_comm) < 0 ||
	    strtab_intern_text(strings, "pid", &script->key_pid) < 0 ||
	    strtab_intern_text(strings, "tid", &script->key_tid) < 0)
		return -ENOMEM;
	while (r == 0 && script_line(&text, &line)) {
		script->info.lines++;
		if (is_comment(line))
			continue;
		/* An empty line may come between a sample and its stack. */
		if (is_blank(line))
			r = script->locations.len > 0 ? close_sample(script) : 0;
		else
			r = read_line(script, line);
	}
	return r < 0 ? r : close_sample(script);
}

static int fill(void *arg, struct profile *profile, struct err *err)
{
	struct script *script = arg;
	int r;

	script->profile = profile;
	r = find_events(script);
	if (r == 0 && script->event_count > 0)
		r = add_value_types(script);
	if (r == 0 && script->event_count > 0)
		r = read_samples(script);
	vec_fini(&script->locations);
	free(script->name);
	if (r < 0)
		return r;
	if (script->info.samples == 0)
		return err_set(err, -EBADMSG, "no line is a sample of perf script");
	if (script->event_count == 0)
		return err_set(err, -ENOENT, "no sample is of the event '%s'",
			       script->options->event);
	return 0;
}

int perfscript_read(const void *data, size_t size, const struct perfscript_options *options,
		    struct profile *ret, struct perfscript_info *ret_info, struct err *err)
{
	struct script script = {.text = {size ? data : "", size}, .options = options};
	int r = profile_make(fill, &script, ret, err);

	if (r == 0 && ret_info)
		*ret_info = script.info;
	return r;
}

bool perfscript_detect(const void *data, size_t size)
{
	struct span text = {size ? data : "", MIN(size, DETECT_BYTES)}, line;
	unsigned heads = 0, bare = 0, frames = 0, others = 0;
	struct script_frame frame;
	struct script_head head;

	for (unsigned i = 0; i < DETECT_LINES && script_line(&text, &line); i++) {
		if (is_comment(line) || is_blank(line))
			continue;
		if (script_head(line, &head) && (head.timed || head.rest.len == 0)) {
			heads += head.timed;
			bare += !head.timed;
		} else if (script_frame(line, &frame)) {
			frames += line.at[line.len - 1] == ')';
		} else if (!script_source(line)) {
			others++;
		}
	}
	return (heads > 0 || (bare > 0 && frames > 0)) && others <= (heads + bare + frames) / 4;
}
