/*
 * A speedscope document holds several profiles over one table of frames. Culprit's own are the
 * value types of one profile, told by the exporter's name. Everyone else's are threads, in one or
 * several units: the name becomes the label "comm" when there is more than one, and the unit
 * chooses the value type.
 *
 * "sampled" profiles are stacks with weights; "evented" ones open and close frames at times, and
 * what passes between two events is the weight of the stack that is open then.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "profile/json-slice.h"
#include "profile/speedscope.h"

#define VALUES_MAX 64

struct part {
	struct json_slice type, name, unit, end, samples, weights, events;
	uint32_t value; /* index of the value type */
	double scale;
};

struct open_frame {
	uint64_t frame;
	uint32_t stack;
};

struct document {
	struct profile *profile;
	struct err *err;
	bool ours;
	VEC(struct part) parts;
	VEC(uint32_t) locations; /* by frame */
	VEC(struct open_frame) open;
	struct str text;
};

static bool text_is(struct document *d, struct json_slice slice, const char *text)
{
	return json_slice_text(slice, &d->text) && strcmp(str_text(&d->text), text) == 0;
}

/* Nothing when it is no text. */
static int intern(struct document *d, struct json_slice slice, uint32_t *ret)
{
	*ret = 0;
	if (!slice.at || !json_slice_text(slice, &d->text))
		return str_status(&d->text);
	return strtab_intern(&d->profile->strings, d->text.data, d->text.len, ret);
}

static int64_t line_of(struct json_slice slice)
{
	double value;

	return json_slice_number(slice, &value) && value >= 1 && value <= UINT32_MAX
		       ? (int64_t)value
		       : 0;
}

/* Culprit writes where a function begins; others mostly the line that runs. */
static int read_frame(struct document *d, struct json_slice frame)
{
	struct profile_function function = {0};
	struct profile_location location = {.line_count = 1};
	struct profile_line line = {.line = line_of(json_slice_member(frame, "line")),
				    .column = line_of(json_slice_member(frame, "col"))};
	uint32_t id;
	int r = intern(d, json_slice_member(frame, "name"), &function.name);

	if (r == 0 && function.name == 0)
		r = strtab_intern_text(&d->profile->strings, "[unknown]", &function.name);
	if (r == 0)
		r = intern(d, json_slice_member(frame, "file"), &function.filename);
	function.system_name = function.name;
	if (d->ours) {
		function.start_line = line.line;
		line = (struct profile_line){0};
	}
	if (r == 0)
		r = profile_function(d->profile, &function, &line.function);
	if (r == 0)
		r = profile_location(d->profile, &location, &line, &id);
	return r < 0 ? r : vec_push(&d->locations, id);
}

static int read_frames(struct document *d, struct json_slice frames)
{
	struct json_walk walk = json_walk_make(frames);
	struct json_slice frame;
	int r = 0;

	while (r == 0 && json_walk_next(&walk, &frame))
		r = read_frame(d, frame);
	json_walk_fini(&walk);
	return r;
}

static struct part part_of(struct json_slice slice)
{
	struct part part = {0};
	const struct json_member members[] = {
		{"type", &part.type},     {"name", &part.name},       {"unit", &part.unit},
		{"endValue", &part.end},  {"samples", &part.samples}, {"weights", &part.weights},
		{"events", &part.events},
	};

	json_slice_members(slice, members, ARRAY_LEN(members));
	return part;
}

static int value_type(struct document *d, const char *type, const char *unit, uint32_t *ret)
{
	const struct profile *p = d->profile;
	int r;

	for (uint32_t i = 0; i < p->value_types.len; i++)
		if (strcmp(strtab_text(&p->strings, p->value_types.data[i].type), type) == 0 &&
		    strcmp(strtab_text(&p->strings, p->value_types.data[i].unit), unit) == 0) {
			*ret = i;
			return 0;
		}
	*ret = (uint32_t)p->value_types.len;
	if (*ret == VALUES_MAX)
		return err_set(d->err, -EBADMSG, "more than %d kinds of profiles", VALUES_MAX);
	r = profile_add_value_type(d->profile, type, unit);
	return MIN(r, 0);
}

static int choose_value(struct document *d, struct part *part)
{
	static const struct {
		const char *name, *type, *unit;
		double scale;
	} units[] = {
		{"none", "samples", "count", 1},
		{"nanoseconds", "time", "nanoseconds", 1},
		{"microseconds", "time", "nanoseconds", 1e3},
		{"milliseconds", "time", "nanoseconds", 1e6},
		{"seconds", "time", "nanoseconds", 1e9},
		{"bytes", "space", "bytes", 1},
	};
	struct str name = {0};
	size_t i = ARRAY_LEN(units);
	int r;

	while (--i > 0 && !text_is(d, part->unit, units[i].name))
		;
	part->scale = units[i].scale;
	if (d->ours)
		json_slice_text(part->name, &name);
	r = value_type(d, name.len > 0 ? str_text(&name) : units[i].type, units[i].unit,
		       &part->value);
	str_fini(&name);
	return r;
}

/* Between value types and samples: all parts are known before the first sample is added. */
static int read_parts(struct document *d, struct json_slice profiles)
{
	struct json_walk walk = json_walk_make(profiles);
	struct json_slice slice;
	int r = 0;

	while (r == 0 && json_walk_next(&walk, &slice)) {
		struct part part = part_of(slice);

		r = choose_value(d, &part);
		if (r == 0)
			r = vec_push(&d->parts, part);
	}
	json_walk_fini(&walk);
	return r;
}

static int add(struct document *d, const struct part *part, uint32_t stack, uint32_t labels,
	       int64_t amount)
{
	int64_t values[VALUES_MAX] = {0};

	values[part->value] = amount;
	return amount == 0 ? 0 : profile_add(d->profile, stack, labels, values);
}

static int frame_number(struct document *d, const char *text, uint64_t *ret)
{
	struct json_amount number = json_amount_of(text);

	if (!number.is_whole || number.whole < 0 || (uint64_t)number.whole >= d->locations.len)
		return err_set(d->err, -EBADMSG, "frame %s of %zu", text, d->locations.len);
	*ret = (uint64_t)number.whole;
	return 0;
}

/* One stack, root first; the reader stands behind its opening bracket. */
static int read_stack(struct document *d, struct json_reader *reader, uint32_t *ret)
{
	enum json_token token;
	uint64_t frame = 0;
	int r = 0;

	*ret = 0;
	while (r == 0 && (token = json_next(reader)) != JSON_ARRAY_END) {
		if (token != JSON_NUMBER)
			return err_set(d->err, -EBADMSG, "a stack holds what is no frame");
		r = frame_number(d, str_text(&reader->text), &frame);
		if (r == 0)
			r = profile_stack(d->profile, *ret, d->locations.data[frame], ret);
	}
	return r;
}

static int read_sampled(struct document *d, const struct part *part, uint32_t labels)
{
	struct json_reader stacks = json_reader_make(part->samples.at, part->samples.size),
			   weights = json_reader_make(part->weights.at, part->weights.size);
	struct json_carry carry = {.scale = part->scale};
	enum json_token stack_token, weight_token;
	uint32_t stack;
	int64_t amount;
	int r = 0;

	if (json_next(&stacks) != JSON_ARRAY || json_next(&weights) != JSON_ARRAY)
		r = err_set(d->err, -EBADMSG, "samples and weights must be lists");
	while (r == 0) {
		stack_token = json_next(&stacks);
		weight_token = json_next(&weights);
		if (stack_token == JSON_ARRAY_END && weight_token == JSON_ARRAY_END)
			break;
		if (stack_token != JSON_ARRAY || weight_token != JSON_NUMBER)
			r = err_set(d->err, -EBADMSG,
				    "as many samples as weights must be there, stacks and numbers");
		if (r == 0)
			r = read_stack(d, &stacks, &stack);
		if (r == 0 &&
		    !json_carry_add(&carry, json_amount_of(str_text(&weights.text)), &amount))
			r = -EOVERFLOW;
		if (r == 0)
			r = add(d, part, stack, labels, amount);
	}
	json_reader_fini(&stacks);
	json_reader_fini(&weights);
	return r;
}

/* Opens or closes a frame. number: of the event, from 1. */
static int turn(struct document *d, struct json_slice event, uint64_t number)
{
	uint32_t stack = d->open.len ? d->open.data[d->open.len - 1].stack : 0;
	bool opens = text_is(d, json_slice_member(event, "type"), "O");
	uint64_t frame = 0;
	int r;

	if (!opens && !text_is(d, json_slice_member(event, "type"), "C"))
		return err_set(d->err, -EBADMSG, "event %ju: neither O nor C", (uintmax_t)number);
	if (!json_slice_text(json_slice_member(event, "frame"), &d->text))
		return err_set(d->err, -EBADMSG, "event %ju: no frame", (uintmax_t)number);
	r = frame_number(d, str_text(&d->text), &frame);
	if (r < 0)
		return r;
	if (opens) {
		r = profile_stack(d->profile, stack, d->locations.data[frame], &stack);
		return r < 0 ? r : vec_push(&d->open, ((struct open_frame){frame, stack}));
	}
	if (d->open.len == 0 || d->open.data[d->open.len - 1].frame != frame)
		return err_set(d->err, -EBADMSG,
			       "event %ju closes frame %ju, which is not the innermost open one",
			       (uintmax_t)number, (uintmax_t)frame);
	d->open.len--;
	return 0;
}

static int pass_time(struct document *d, const struct part *part, uint32_t labels,
		     struct json_carry *carry, double from, double to)
{
	uint32_t stack = d->open.len ? d->open.data[d->open.len - 1].stack : 0;
	int64_t amount;

	if (stack == 0 || to == from)
		return 0;
	if (!json_carry_add(carry, (struct json_amount){.value = to - from}, &amount))
		return -EOVERFLOW;
	return add(d, part, stack, labels, amount);
}

/* Frames that are open at the end last until the profile's end. */
static int read_evented(struct document *d, const struct part *part, uint32_t labels)
{
	struct json_walk walk = json_walk_make(part->events);
	struct json_carry carry = {.scale = part->scale};
	struct json_slice event;
	double last = -INFINITY, at;
	uint64_t number = 0;
	int r = 0;

	d->open.len = 0;
	while (r == 0 && !walk.object && json_walk_next(&walk, &event)) {
		number++;
		if (!json_slice_number(json_slice_member(event, "at"), &at) || at < last)
			r = err_set(d->err, -EBADMSG, "event %ju: its time is missing or goes back",
				    (uintmax_t)number);
		if (r == 0)
			r = pass_time(d, part, labels, &carry, last, at);
		last = at;
		if (r == 0)
			r = turn(d, event, number);
	}
	json_walk_fini(&walk);
	if (r == 0 && json_slice_number(part->end, &at) && at > last)
		r = pass_time(d, part, labels, &carry, last, at);
	return r;
}

static int read_part(struct document *d, const struct part *part)
{
	struct profile_label label = {0};
	uint32_t labels = 0;
	int r = 0;

	if (!d->ours && d->parts.len > 1)
		r = intern(d, part->name, &label.text);
	if (r == 0 && label.text != 0) {
		r = strtab_intern_text(&d->profile->strings, "comm", &label.key);
		if (r == 0)
			r = profile_label_set(d->profile, &label, 1, &labels);
	}
	if (r < 0)
		return r;
	if (text_is(d, part->type, "sampled"))
		return read_sampled(d, part, labels);
	if (text_is(d, part->type, "evented"))
		return read_evented(d, part, labels);
	return err_set(d->err, -EBADMSG, "neither sampled nor evented");
}

static int read_document(struct document *d, struct json_slice top)
{
	struct json_slice shared = {0}, profiles = {0}, exporter = {0}, shown = {0};
	const struct json_member members[] = {{"shared", &shared},
					      {"profiles", &profiles},
					      {"exporter", &exporter},
					      {"activeProfileIndex", &shown}};
	double active;
	int r;

	json_slice_members(top, members, ARRAY_LEN(members));
	d->ours = text_is(d, exporter, "culprit");
	r = read_frames(d, json_slice_member(shared, "frames"));
	if (r == 0)
		r = read_parts(d, profiles);
	if (r == 0 && d->parts.len == 0)
		r = err_set(d->err, -EBADMSG, "there are no profiles in it");
	for (size_t i = 0; r == 0 && i < d->parts.len; i++) {
		r = read_part(d, &d->parts.data[i]);
		if (r < 0 && r != -ENOMEM)
			err_wrap(d->err, r, "profile %zu", i);
	}
	if (r == 0 && json_slice_number(shown, &active) && active >= 0 &&
	    active < (double)d->parts.len)
		d->profile->default_type =
			d->profile->value_types.data[d->parts.data[(size_t)active].value].type;
	return r;
}

static int fill(void *top, struct profile *profile, struct err *err)
{
	struct document d = {.profile = profile, .err = err};
	int r = read_document(&d, *(const struct json_slice *)top);

	vec_fini(&d.parts);
	vec_fini(&d.locations);
	vec_fini(&d.open);
	str_fini(&d.text);
	return r;
}

int speedscope_read(const void *data, size_t size, struct profile *ret, struct err *err)
{
	struct json_slice top;
	int r = json_slice_document(data, size, &top, err);

	return r < 0 ? r : profile_make(fill, &top, ret, err);
}

bool speedscope_detect(const void *data, size_t size)
{
	static const char *const keys[] = {"shared", "profiles"};

	return json_top_keys(data, size, keys, ARRAY_LEN(keys)) == 3;
}
