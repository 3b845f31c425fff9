/*
 * Writing pprof. Strings, functions and locations get their numbers in the order in which the
 * samples use them, so the bytes depend on the samples alone, not on what the tables went through
 * before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compress.h"
#include "base/protobuf.h"
#include "base/util.h"
#include "profile/pprof.h"

/* Numbers given out in order of first use: number[id] is 0 for unused. */
struct numbering {
	uint32_t *number;
	VEC(uint32_t) order;
};

struct encoder {
	const struct profile *profile;
	struct str *out;
	struct str message, inner; /* being built: lengths stand before contents */
	struct numbering strings, functions, locations;
	uint32_t *mapping_number;
};

static int numbering_init(struct numbering *numbering, size_t len)
{
	numbering->number = calloc(len + 1, sizeof(*numbering->number));
	return numbering->number ? 0 : -ENOMEM;
}

static void numbering_fini(struct numbering *numbering)
{
	free(numbering->number);
	vec_fini(&numbering->order);
}

static uint32_t number_of(struct encoder *e, struct numbering *numbering, uint32_t id)
{
	if (id == 0)
		return 0;
	if (numbering->number[id] == 0) {
		if (vec_push(&numbering->order, id) < 0) {
			e->out->status = -ENOMEM;
			return 0;
		}
		numbering->number[id] = (uint32_t)numbering->order.len;
	}
	return numbering->number[id];
}

static void put_string(struct encoder *e, struct str *message, uint32_t field, uint32_t string)
{
	proto_put_nonzero(message, field, number_of(e, &e->strings, string));
}

static void put_message(struct encoder *e, uint32_t field, struct str *message)
{
	proto_put_bytes(e->out, field, message->data, message->len);
	if (str_status(message) < 0)
		e->out->status = -ENOMEM;
	str_clear(message);
}

static void put_value_type(struct encoder *e, uint32_t field, const struct profile_value_type *type)
{
	put_string(e, &e->message, 1, type->type);
	put_string(e, &e->message, 2, type->unit);
	put_message(e, field, &e->message);
}

static void put_label(struct encoder *e, const struct profile_label *label)
{
	str_clear(&e->inner);
	put_string(e, &e->inner, 1, label->key);
	put_string(e, &e->inner, 2, label->text);
	if (label->text == 0) {
		proto_put_nonzero(&e->inner, 3, (uint64_t)label->number);
		put_string(e, &e->inner, 4, label->number_unit);
	}
	proto_put_bytes(&e->message, 3, e->inner.data, e->inner.len);
}

static void put_sample(struct encoder *e, size_t index)
{
	const struct profile *p = e->profile;
	const struct profile_sample *sample = &p->samples.data[index];
	const struct profile_label_set *set = &p->label_sets.data[sample->labels];

	str_clear(&e->inner);
	for (uint32_t stack = sample->stack; stack != 0; stack = p->stacks.data[stack].parent) {
		uint32_t location = number_of(e, &e->locations, p->stacks.data[stack].location);

		/* A frame about which nothing is known has no location to be written. */
		if (location != 0)
			proto_put_varint(&e->inner, location);
	}
	if (e->inner.len > 0)
		proto_put_bytes(&e->message, 1, e->inner.data, e->inner.len);
	str_clear(&e->inner);
	for (size_t i = 0; i < p->value_types.len; i++)
		proto_put_varint(&e->inner,
				 (uint64_t)p->values.data[index * p->value_types.len + i]);
	proto_put_bytes(&e->message, 2, e->inner.data, e->inner.len);
	for (uint32_t i = 0; i < set->count; i++)
		put_label(e, &p->labels.data[set->first + i]);
	put_message(e, 2, &e->message);
}

static bool is_library(const char *filename)
{
	const char *so = strstr(filename, ".so");

	for (; so; so = strstr(so + 1, ".so"))
		if (so[3] == '\0' || so[3] == '.' || so[3] == '_')
			return true;
	return false;
}

/* The mapping that readers should take for the program: the first of user code that is no library.
 */
static uint32_t main_mapping(const struct profile *p)
{
	for (uint32_t i = 1; i < p->mappings.len; i++) {
		const char *filename = strtab_text(&p->strings, p->mappings.data[i].filename);

		if (p->mappings.data[i].kind == PROFILE_USER && filename[0] != '\0' &&
		    filename[0] != '[' && !is_library(filename))
			return i;
	}
	return 1;
}

static void put_mapping(struct encoder *e, uint32_t id)
{
	const struct profile_mapping *m = &e->profile->mappings.data[id];

	proto_put_number(&e->message, 1, e->mapping_number[id]);
	proto_put_nonzero(&e->message, 2, m->start);
	proto_put_nonzero(&e->message, 3, m->limit);
	proto_put_nonzero(&e->message, 4, m->offset);
	put_string(e, &e->message, 5, m->filename);
	put_string(e, &e->message, 6, m->build_id);
	proto_put_nonzero(&e->message, 7, m->has_functions);
	proto_put_nonzero(&e->message, 8, m->has_filenames);
	proto_put_nonzero(&e->message, 9, m->has_line_numbers);
	proto_put_nonzero(&e->message, 10, m->has_inline_frames);
	put_message(e, 3, &e->message);
}

static void put_mappings(struct encoder *e)
{
	const struct profile *p = e->profile;
	uint32_t first = main_mapping(p), number = 0;

	if (p->mappings.len <= 1)
		return;
	e->mapping_number[first] = ++number;
	put_mapping(e, first);
	for (uint32_t i = 1; i < p->mappings.len; i++) {
		if (i == first)
			continue;
		e->mapping_number[i] = ++number;
		put_mapping(e, i);
	}
}

static void put_location(struct encoder *e, uint32_t id)
{
	const struct profile *p = e->profile;
	const struct profile_location *location = &p->locations.data[id];

	proto_put_number(&e->message, 1, e->locations.number[id]);
	proto_put_nonzero(&e->message, 2, e->mapping_number[location->mapping]);
	proto_put_nonzero(&e->message, 3, location->address);
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct profile_line *line = &p->lines.data[location->first_line + i];

		str_clear(&e->inner);
		proto_put_nonzero(&e->inner, 1, number_of(e, &e->functions, line->function));
		proto_put_nonzero(&e->inner, 2, (uint64_t)line->line);
		proto_put_nonzero(&e->inner, 3, (uint64_t)line->column);
		proto_put_bytes(&e->message, 4, e->inner.data, e->inner.len);
	}
	proto_put_nonzero(&e->message, 5, location->folded);
	put_message(e, 4, &e->message);
}

static void put_function(struct encoder *e, uint32_t id)
{
	const struct profile_function *function = &e->profile->functions.data[id];

	proto_put_number(&e->message, 1, e->functions.number[id]);
	put_string(e, &e->message, 2, function->name);
	put_string(e, &e->message, 3, function->system_name);
	put_string(e, &e->message, 4, function->filename);
	proto_put_nonzero(&e->message, 5, (uint64_t)function->start_line);
	put_message(e, 5, &e->message);
}

static void put_header(struct encoder *e)
{
	const struct profile *p = e->profile;

	put_string(e, e->out, 7, p->drop_frames);
	put_string(e, e->out, 8, p->keep_frames);
	proto_put_nonzero(e->out, 9, (uint64_t)p->time_ns);
	proto_put_nonzero(e->out, 10, (uint64_t)p->duration_ns);
	if (p->period_type.type != 0 || p->period_type.unit != 0)
		put_value_type(e, 11, &p->period_type);
	proto_put_nonzero(e->out, 12, (uint64_t)p->period);
	for (size_t i = 0; i < p->comments.len; i++)
		proto_put_number(e->out, 13, number_of(e, &e->strings, p->comments.data[i]));
	put_string(e, e->out, 14, p->default_type);
	put_string(e, e->out, 15, p->doc_url);
}

static void put_all(struct encoder *e)
{
	const struct profile *p = e->profile;

	for (size_t i = 0; i < p->value_types.len; i++)
		put_value_type(e, 1, &p->value_types.data[i]);
	for (size_t i = 0; i < p->samples.len; i++)
		put_sample(e, i);
	put_mappings(e);
	for (size_t i = 0; i < e->locations.order.len; i++)
		put_location(e, e->locations.order.data[i]);
	for (size_t i = 0; i < e->functions.order.len; i++)
		put_function(e, e->functions.order.data[i]);
	put_header(e);
	/* Strings come last: by now everything that is used has its number. */
	proto_put_bytes(e->out, 6, "", 0);
	for (size_t i = 0; i < e->strings.order.len; i++) {
		const struct strtab_entry *entry =
			&p->strings.entries.data[e->strings.order.data[i]];

		proto_put_bytes(e->out, 6, entry->text, entry->len);
	}
}

int pprof_encode(const struct profile *profile, struct str *out, struct err *err)
{
	struct encoder e = {.profile = profile, .out = out};
	int r;

	if (profile->value_types.len == 0)
		return err_set(err, -EINVAL,
			       "a profile without value types cannot be written as pprof");
	e.mapping_number = calloc(profile->mappings.len + 1, sizeof(*e.mapping_number));
	r = e.mapping_number ? 0 : -ENOMEM;
	if (r == 0)
		r = numbering_init(&e.strings, profile->strings.entries.len);
	if (r == 0)
		r = numbering_init(&e.functions, profile->functions.len);
	if (r == 0)
		r = numbering_init(&e.locations, profile->locations.len);
	if (r == 0) {
		put_all(&e);
		r = str_status(out);
	}
	numbering_fini(&e.strings);
	numbering_fini(&e.functions);
	numbering_fini(&e.locations);
	free(e.mapping_number);
	str_fini(&e.message);
	str_fini(&e.inner);
	return r < 0 ? err_set(err, r, "out of memory for the pprof message") : 0;
}

int pprof_write(const struct profile *profile, struct str *out, struct err *err)
{
	struct str plain = {0};
	int r = pprof_encode(profile, &plain, err);

	if (r == 0)
		r = gzip_deflate(plain.data, plain.len, 6, out, err);
	str_fini(&plain);
	return r;
}
