/*
 * Reading pprof. A message may hold its parts in any order, so it is walked four times by its
 * outermost fields, which is cheap: strings and header, then functions and mappings, then
 * locations, then samples.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"
#include "base/util.h"
#include "profile/pprof-internal.h"

struct decoder {
	struct reader bytes;
	struct profile *profile;
	struct err *err;
	size_t budget_bytes;
	VEC(uint32_t) strings; /* index in the message -> id */
	struct u64_map mappings, functions, locations;
	VEC(uint32_t) zero_functions; /* functions with the id 0, in order */
	size_t function_count, location_count;
	uint32_t singular_seen; /* bit per field */
	uint32_t last_field;
	VEC(struct profile_line) lines;
	VEC(struct profile_label) labels;
	VEC(uint32_t) stack; /* location ids, leaf first */
	VEC(int64_t) values;
};

static int bad(const struct decoder *d, size_t pos, const char *fmt, ...) PRINTF(3, 4);

static int bad(const struct decoder *d, size_t pos, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(d->err, -EBADMSG, "%s at byte %zu", text, pos);
}

/* What the tables hold, roughly; adversarial bytes may be small and unfold to much. */
static int check_budget(const struct decoder *d)
{
	const struct profile *p = d->profile;
	size_t used = p->stacks.len * 24 + p->locations.len * 80 +
		      p->lines.len * sizeof(*p->lines.data) +
		      p->labels.len * sizeof(*p->labels.data) + p->label_sets.len * 24 +
		      p->samples.len * 24 + p->values.len * 8 + p->mappings.len * 128 +
		      p->functions.len * 96;

	if (used <= d->budget_bytes)
		return 0;
	return err_set(d->err, -EFBIG, "its tables need more than %zu MB", d->budget_bytes >> 20);
}

static int want_number(const struct decoder *d, const struct proto_field *field)
{
	return field->type == PROTO_VARINT
		       ? 0
		       : bad(d, field->start, "field %u is not a number", field->number);
}

static int want_message(const struct decoder *d, const struct proto_field *field)
{
	return field->type == PROTO_BYTES
		       ? 0
		       : bad(d, field->start, "field %u is not a message", field->number);
}

/* A field that holds the index of a string. */
static int get_string(const struct decoder *d, const struct proto_field *field, uint32_t *ret)
{
	int r = want_number(d, field);

	if (r < 0)
		return r;
	if (field->value >= d->strings.len)
		return bad(d, field->start, "string %lld of a table of %zu",
			   (long long)field->value, d->strings.len);
	*ret = d->strings.data[field->value];
	return 0;
}

/* Field 1 or 2 of a ValueType. */
static int read_value_type(struct decoder *d, const struct proto_field *message,
			   struct profile_value_type *ret)
{
	struct reader r = proto_message(&d->bytes, message);
	struct proto_field field;
	int code = want_message(d, message);

	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0) {
		if (field.number == 1)
			code = get_string(d, &field, &ret->type);
		else if (field.number == 2)
			code = get_string(d, &field, &ret->unit);
	}
	return code;
}

static int read_strings(struct decoder *d)
{
	struct reader r = d->bytes;
	struct proto_field field;
	int code;

	while ((code = proto_next(&r, &field, d->err)) > 0) {
		uint32_t id;

		if (field.number != FIELD_STRING)
			continue;
		code = want_message(d, &field);
		if (code < 0)
			return code;
		if (d->strings.len == 0 && field.end > field.pos)
			return bad(d, field.start, "the first string is not empty");
		code = strtab_intern(&d->profile->strings, (const char *)r.data + field.pos,
				     field.end - field.pos, &id);
		if (code == 0)
			code = vec_push(&d->strings, id);
		if (code < 0)
			return err_set(d->err, code, "out of memory for strings");
	}
	/* Without a table the index 0 is still good. */
	if (code == 0 && d->strings.len == 0)
		code = vec_push(&d->strings, 0);
	return code;
}

/* Two messages in a row parse as one: what must be there once is there twice, or a run begins
 * again. */
static int check_concatenated(struct decoder *d, const struct proto_field *field)
{
	bool again = false;
	uint32_t bit = UINT32_C(1) << MIN(field->number, 31U);

	switch (field->number) {
	case FIELD_SAMPLE_TYPE:
	case FIELD_STRING:
		again = (d->singular_seen & bit) && d->last_field != field->number;
		break;
	case FIELD_DROP_FRAMES:
	case FIELD_KEEP_FRAMES:
	case FIELD_TIME_NS:
	case FIELD_DURATION_NS:
	case FIELD_PERIOD_TYPE:
	case FIELD_PERIOD:
	case FIELD_DEFAULT_TYPE:
	case FIELD_DOC_URL:
		again = d->singular_seen & bit;
		break;
	default:
		break;
	}
	d->singular_seen |= bit;
	d->last_field = field->number;
	if (again)
		return bad(d, field->start,
			   "two profiles one after the other: field %u comes again", field->number);
	return 0;
}

static int read_comments(struct decoder *d, const struct proto_field *field)
{
	size_t cursor = field->pos;
	uint64_t index;
	int code;

	while ((code = proto_next_number(&d->bytes, field, &cursor, &index, d->err)) > 0) {
		if (index >= d->strings.len)
			return bad(d, field->start, "string %lld of a table of %zu",
				   (long long)index, d->strings.len);
		code = vec_push(&d->profile->comments, d->strings.data[index]);
		if (code < 0)
			return code;
	}
	return code;
}

static int read_int(const struct decoder *d, const struct proto_field *field, int64_t *ret)
{
	int r = want_number(d, field);

	if (r == 0)
		*ret = (int64_t)field->value;
	return r;
}

static int read_header_field(struct decoder *d, const struct proto_field *field)
{
	struct profile *p = d->profile;
	struct profile_value_type type = {0};
	int r;

	switch (field->number) {
	case FIELD_SAMPLE_TYPE:
		r = read_value_type(d, field, &type);
		return r < 0 ? r : vec_push(&p->value_types, type);
	case FIELD_DROP_FRAMES:
		return get_string(d, field, &p->drop_frames);
	case FIELD_KEEP_FRAMES:
		return get_string(d, field, &p->keep_frames);
	case FIELD_TIME_NS:
		return read_int(d, field, &p->time_ns);
	case FIELD_DURATION_NS:
		return read_int(d, field, &p->duration_ns);
	case FIELD_PERIOD_TYPE:
		return read_value_type(d, field, &p->period_type);
	case FIELD_PERIOD:
		return read_int(d, field, &p->period);
	case FIELD_COMMENT:
		return read_comments(d, field);
	case FIELD_DEFAULT_TYPE:
		return get_string(d, field, &p->default_type);
	case FIELD_DOC_URL:
		return get_string(d, field, &p->doc_url);
	default:
		return 0;
	}
}

static int read_header(struct decoder *d)
{
	struct reader r = d->bytes;
	struct proto_field field;
	int code;

	while ((code = proto_next(&r, &field, d->err)) > 0) {
		code = check_concatenated(d, &field);
		if (code == 0)
			code = read_header_field(d, &field);
		if (code < 0)
			return code;
	}
	if (code == 0 && d->profile->value_types.len == 0)
		return err_set(d->err, -EBADMSG, "no sample types: not a pprof profile");
	return code;
}

/* Remembers id -> entry; what is the noun of a complaint. */
static int define(const struct decoder *d, struct u64_map *map, const char *what, uint64_t id,
		  uint32_t entry, size_t pos)
{
	uint32_t other;

	if (id == 0)
		return bad(d, pos, "%s with the id 0", what);
	if (u64_map_get(map, id, &other))
		return bad(d, pos, "%s id %llu is used twice", what, (unsigned long long)id);
	return u64_map_put(map, id, entry);
}

/* Build ids are lower-case hex in the model; text that is not hex stays as it is. */
static int normalize_build_id(struct decoder *d, uint32_t *string)
{
	const char *text = strtab_text(&d->profile->strings, *string);
	size_t len = strlen(text);
	char lower[80];

	if (len >= sizeof(lower) || strspn(text, "0123456789abcdefABCDEF") != len ||
	    strpbrk(text, "ABCDEF") == NULL)
		return 0;
	for (size_t i = 0; i <= len; i++)
		lower[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i]);
	return strtab_intern(&d->profile->strings, lower, len, string);
}

static int read_mapping_field(struct decoder *d, const struct proto_field *field,
			      struct profile_mapping *m, uint64_t *id)
{
	int r;

	if (field->number == 5)
		return get_string(d, field, &m->filename);
	if (field->number == 6)
		return get_string(d, field, &m->build_id);
	if (field->number > 10)
		return 0;
	r = want_number(d, field);
	switch (field->number) {
	case 1:
		*id = field->value;
		break;
	case 2:
		m->start = field->value;
		break;
	case 3:
		m->limit = field->value;
		break;
	case 4:
		m->offset = field->value;
		break;
	case 7:
		m->has_functions = field->value != 0;
		break;
	case 8:
		m->has_filenames = field->value != 0;
		break;
	case 9:
		m->has_line_numbers = field->value != 0;
		break;
	default:
		m->has_inline_frames = field->value != 0;
		break;
	}
	return r;
}

static int read_mapping(struct decoder *d, const struct proto_field *message)
{
	struct reader r = proto_message(&d->bytes, message);
	struct profile_mapping mapping = {0};
	struct proto_field field;
	uint64_t id = 0;
	uint32_t entry;
	int code = want_message(d, message);

	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0)
		code = read_mapping_field(d, &field, &mapping, &id);
	if (code == 0)
		code = normalize_build_id(d, &mapping.build_id);
	if (code < 0)
		return code;
	mapping.kind = profile_kind_of_object(strtab_text(&d->profile->strings, mapping.filename));
	code = profile_mapping(d->profile, &mapping, &entry);
	return code < 0 ? code : define(d, &d->mappings, "mapping", id, entry, message->start);
}

static int read_function(struct decoder *d, const struct proto_field *message)
{
	struct reader r = proto_message(&d->bytes, message);
	struct profile_function function = {0};
	struct proto_field field;
	uint64_t id = 0;
	uint32_t entry;
	int code = want_message(d, message);

	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0) {
		if (field.number == 1) {
			code = want_number(d, &field);
			id = field.value;
		} else if (field.number == 2) {
			code = get_string(d, &field, &function.name);
		} else if (field.number == 3) {
			code = get_string(d, &field, &function.system_name);
		} else if (field.number == 4) {
			code = get_string(d, &field, &function.filename);
		} else if (field.number == 5) {
			code = read_int(d, &field, &function.start_line);
		}
	}
	if (code == 0)
		code = profile_function(d->profile, &function, &entry);
	if (code < 0)
		return code;
	d->function_count++;
	if (id == 0)
		return vec_push(&d->zero_functions, entry);
	return define(d, &d->functions, "function", id, entry, message->start);
}

static int read_line(struct decoder *d, const struct proto_field *message)
{
	struct reader r = proto_message(&d->bytes, message);
	struct profile_line line = {0};
	struct proto_field field;
	int code = want_message(d, message);

	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0) {
		if (field.number == 1) {
			code = want_number(d, &field);
			if (code == 0 && field.value != 0 && d->zero_functions.len == 0 &&
			    !u64_map_get(&d->functions, field.value, &line.function))
				code = bad(d, field.start, "function %llu does not exist",
					   (unsigned long long)field.value);
		} else if (field.number == 2) {
			code = read_int(d, &field, &line.line);
		} else if (field.number == 3) {
			code = read_int(d, &field, &line.column);
		}
	}
	return code < 0 ? code : vec_push(&d->lines, line);
}

static int read_location_field(struct decoder *d, const struct proto_field *field,
			       struct profile_location *location, uint64_t *id)
{
	int r;

	if (field->number == 4)
		return read_line(d, field);
	if (field->number > 5)
		return 0;
	r = want_number(d, field);
	if (r < 0)
		return r;
	if (field->number == 1)
		*id = field->value;
	else if (field->number == 3)
		location->address = field->value;
	else if (field->number == 5)
		location->folded = field->value != 0;
	else if (field->value != 0 && !u64_map_get(&d->mappings, field->value, &location->mapping))
		return bad(d, field->start, "mapping %llu does not exist",
			   (unsigned long long)field->value);
	return 0;
}

static int read_location(struct decoder *d, const struct proto_field *message)
{
	struct reader r = proto_message(&d->bytes, message);
	struct profile_location location = {0};
	size_t index = d->location_count++;
	struct proto_field field;
	uint64_t id = 0;
	uint32_t entry;
	int code = want_message(d, message);

	d->lines.len = 0;
	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0)
		code = read_location_field(d, &field, &location, &id);
	if (code < 0)
		return code;
	/* The .NET sender: the n-th location belongs to the n-th function. */
	if (index < d->zero_functions.len && d->lines.len == 1)
		d->lines.data[0].function = d->zero_functions.data[index];
	location.line_count = (uint32_t)d->lines.len;
	code = profile_location(d->profile, &location, d->lines.data, &entry);
	return code < 0 ? code : define(d, &d->locations, "location", id, entry, message->start);
}

static int read_label(struct decoder *d, const struct proto_field *message)
{
	struct reader r = proto_message(&d->bytes, message);
	struct profile_label label = {0};
	struct proto_field field;
	int code = want_message(d, message);

	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0) {
		if (field.number == 1)
			code = get_string(d, &field, &label.key);
		else if (field.number == 2)
			code = get_string(d, &field, &label.text);
		else if (field.number == 3)
			code = read_int(d, &field, &label.number);
		else if (field.number == 4)
			code = get_string(d, &field, &label.number_unit);
	}
	if (label.text) /* a text with a number beside it is a text */
		label.number = label.number_unit = 0;
	return code < 0 ? code : vec_push(&d->labels, label);
}

static int read_sample_field(struct decoder *d, const struct proto_field *field)
{
	size_t cursor = field->pos;
	uint64_t number;
	uint32_t location;
	int code;

	if (field->number == 3)
		return read_label(d, field);
	if (field->number > 3)
		return 0;
	while ((code = proto_next_number(&d->bytes, field, &cursor, &number, d->err)) > 0) {
		if (field->number == 2) {
			code = vec_push(&d->values, (int64_t)number);
		} else if (!u64_map_get(&d->locations, number, &location)) {
			return bad(d, field->start, "location %llu does not exist",
				   (unsigned long long)number);
		} else {
			code = vec_push(&d->stack, location);
		}
		if (code < 0)
			return code;
	}
	return code;
}

static int read_sample(struct decoder *d, const struct proto_field *message)
{
	struct reader r = proto_message(&d->bytes, message);
	struct proto_field field;
	uint32_t stack = 0, labels;
	int code = want_message(d, message);

	d->labels.len = d->stack.len = d->values.len = 0;
	while (code >= 0 && (code = proto_next(&r, &field, d->err)) > 0)
		code = read_sample_field(d, &field);
	if (code < 0)
		return code;
	if (d->values.len != d->profile->value_types.len)
		return bad(d, message->start, "a sample of %zu values where %zu belong",
			   d->values.len, d->profile->value_types.len);
	code = profile_label_set(d->profile, d->labels.data, (uint32_t)d->labels.len, &labels);
	for (size_t i = d->stack.len; code == 0 && i-- > 0;)
		code = profile_stack(d->profile, stack, d->stack.data[i], &stack);
	if (code == 0)
		code = profile_add(d->profile, stack, labels, d->values.data);
	if (code == -EOVERFLOW)
		return err_set(d->err, code,
			       "equal samples add up to more than 64 bits at byte %zu",
			       message->start);
	return code;
}

/* One walk over the outermost fields: those of the given number. */
static int read_each(struct decoder *d, uint32_t number,
		     int (*read)(struct decoder *d, const struct proto_field *message))
{
	struct reader r = d->bytes;
	struct proto_field field;
	int code;

	while ((code = proto_next(&r, &field, d->err)) > 0) {
		if (field.number != number)
			continue;
		code = read(d, &field);
		if (code == 0)
			code = check_budget(d);
		if (code < 0)
			return code;
	}
	return code;
}

static int count_location(struct decoder *d, const struct proto_field *message)
{
	(void)message;
	d->location_count++;
	return 0;
}

/* Functions of id 0 make sense only when all are and each location has its own. */
static int check_zero_functions(struct decoder *d)
{
	int r = 0;

	if (d->zero_functions.len == 0)
		return 0;
	r = read_each(d, FIELD_LOCATION, count_location);
	if (r == 0 &&
	    (d->zero_functions.len != d->function_count || d->location_count != d->function_count))
		r = err_set(d->err, -EBADMSG, "%zu of %zu functions have the id 0",
			    d->zero_functions.len, d->function_count);
	d->location_count = 0;
	return r;
}

static int read_message(struct decoder *d)
{
	int r = read_strings(d);

	if (r == 0)
		r = read_header(d);
	if (r == 0)
		r = read_each(d, FIELD_MAPPING, read_mapping);
	if (r == 0)
		r = read_each(d, FIELD_FUNCTION, read_function);
	if (r == 0)
		r = check_zero_functions(d);
	if (r == 0)
		r = read_each(d, FIELD_LOCATION, read_location);
	if (r == 0)
		r = read_each(d, FIELD_SAMPLE, read_sample);
	return r;
}

static int fill(void *arg, struct profile *profile, struct err *err)
{
	struct decoder *d = arg;
	int r;

	d->profile = profile;
	d->err = err;
	r = read_message(d);
	vec_fini(&d->strings);
	u64_map_fini(&d->mappings);
	u64_map_fini(&d->functions);
	u64_map_fini(&d->locations);
	vec_fini(&d->zero_functions);
	vec_fini(&d->lines);
	vec_fini(&d->labels);
	vec_fini(&d->stack);
	vec_fini(&d->values);
	return r;
}

int pprof_decode(const void *data, size_t size, size_t max_bytes, struct profile *ret,
		 struct err *err)
{
	struct decoder d = {
		.bytes = reader_make(data, size, false),
		.budget_bytes = max_bytes > SIZE_MAX / 4 ? SIZE_MAX : max_bytes * 4,
	};

	return profile_make(fill, &d, ret, err);
}
