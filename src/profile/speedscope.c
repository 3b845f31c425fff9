#include "profile/speedscope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"

struct writer {
	const struct profile *profile;
	struct json json;
	uint32_t *function_frame, *location_frame; /* number of the frame + 1; 0: none yet */
	uint32_t frames;
	VEC(uint32_t) path;
};

static void put_string(struct json *json, const struct strtab *strings, const char *key,
		       uint32_t id)
{
	json_text_n(json, key, strings->entries.data[id].text, strings->entries.data[id].len);
}

static void put_function(struct writer *w, uint32_t id)
{
	const struct profile *p = w->profile;
	const struct profile_function *function = &p->functions.data[id];
	uint32_t name = function->name != 0 ? function->name : function->system_name;

	if (w->function_frame[id] != 0)
		return;
	w->function_frame[id] = ++w->frames;
	json_object(&w->json, NULL);
	if (name != 0)
		put_string(&w->json, &p->strings, "name", name);
	else
		json_text(&w->json, "name", "[unknown]");
	if (function->filename != 0)
		put_string(&w->json, &p->strings, "file", function->filename);
	if (function->start_line > 0)
		json_i64(&w->json, "line", function->start_line);
	json_end_object(&w->json);
}

/* A location without names is a frame of its own: object+0xoffset. */
static void put_location(struct writer *w, uint32_t id)
{
	const struct profile *p = w->profile;
	const struct profile_location *location = &p->locations.data[id];
	const struct profile_mapping *mapping = &p->mappings.data[location->mapping];
	const char *filename = strtab_text(&p->strings, mapping->filename);
	const char *base = strrchr(filename, '/');
	uint64_t offset = location->address - mapping->start + mapping->offset;
	struct str name = {0};

	if (w->location_frame[id] != 0)
		return;
	w->location_frame[id] = ++w->frames;
	base = base && base[1] != '\0' ? base + 1 : filename;
	if (base[0] == '\0')
		str_printf(&name, "[unknown] 0x%" PRIx64, location->address);
	else
		str_printf(&name, "%s+0x%" PRIx64, base, offset);
	json_object(&w->json, NULL);
	json_text(&w->json, "name", str_text(&name));
	if (filename[0] != '\0')
		json_text(&w->json, "file", filename);
	json_end_object(&w->json);
	str_fini(&name);
}

static void put_frames(struct writer *w)
{
	const struct profile *p = w->profile;

	json_array(&w->json, "frames");
	for (uint32_t i = 1; i < p->stacks.len; i++) {
		const struct profile_location *location =
			&p->locations.data[p->stacks.data[i].location];

		for (uint32_t j = 0; j < location->line_count; j++)
			put_function(w, p->lines.data[location->first_line + j].function);
		if (location->line_count == 0)
			put_location(w, p->stacks.data[i].location);
	}
	json_end_array(&w->json);
}

static int put_sample(struct writer *w, uint32_t stack)
{
	const struct profile *p = w->profile;
	int r = 0;

	w->path.len = 0;
	for (; r == 0 && stack != 0; stack = p->stacks.data[stack].parent)
		r = vec_push(&w->path, p->stacks.data[stack].location);
	json_array(&w->json, NULL);
	for (size_t i = w->path.len; i-- > 0;) {
		const struct profile_location *location = &p->locations.data[w->path.data[i]];

		if (location->line_count == 0)
			json_u64(&w->json, NULL, w->location_frame[w->path.data[i]] - 1);
		for (uint32_t j = location->line_count; j-- > 0;)
			json_u64(&w->json, NULL,
				 w->function_frame[p->lines.data[location->first_line + j]
							   .function] -
					 1);
	}
	json_end_array(&w->json);
	return r;
}

static const char *unit_of(const char *unit)
{
	static const char *const known[] = {"nanoseconds", "microseconds", "milliseconds",
					    "seconds", "bytes"};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(unit, known[i]) == 0)
			return known[i];
	return "none";
}

static int put_profile(struct writer *w, uint32_t value)
{
	const struct profile *p = w->profile;
	const struct profile_value_type *type = &p->value_types.data[value];
	size_t width = p->value_types.len;
	int64_t total = 0;
	int r = profile_total(p, value, &total);

	json_object(&w->json, NULL);
	json_text(&w->json, "type", "sampled");
	put_string(&w->json, &p->strings, "name", type->type);
	json_text(&w->json, "unit", unit_of(strtab_text(&p->strings, type->unit)));
	json_i64(&w->json, "startValue", 0);
	json_i64(&w->json, "endValue", total);
	json_array(&w->json, "samples");
	for (size_t i = 0; r == 0 && i < p->samples.len; i++)
		if (p->values.data[i * width + value] != 0)
			r = put_sample(w, p->samples.data[i].stack);
	json_end_array(&w->json);
	json_array(&w->json, "weights");
	for (size_t i = 0; i < p->samples.len; i++)
		if (p->values.data[i * width + value] != 0)
			json_i64(&w->json, NULL, p->values.data[i * width + value]);
	json_end_array(&w->json);
	json_end_object(&w->json);
	return r;
}

static int put_document(struct writer *w, const char *name)
{
	struct json *json = &w->json;
	int r = 0;

	json_object(json, NULL);
	json_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(json, "exporter", "culprit");
	json_text(json, "name", name);
	json_u64(json, "activeProfileIndex", profile_default_value(w->profile));
	json_object(json, "shared");
	put_frames(w);
	json_end_object(json);
	json_array(json, "profiles");
	for (uint32_t i = 0; r == 0 && i < w->profile->value_types.len; i++)
		r = put_profile(w, i);
	json_end_array(json);
	json_end_object(json);
	return r < 0 ? r : str_status(&json->out);
}

int speedscope_write(const struct profile *profile, const char *name, struct str *out,
		     struct err *err)
{
	struct writer w = {.profile = profile, .json = {.compact = true}};
	int r = -ENOMEM;

	w.function_frame = calloc(profile->functions.len + 1, sizeof(*w.function_frame));
	w.location_frame = calloc(profile->locations.len + 1, sizeof(*w.location_frame));
	if (w.function_frame && w.location_frame)
		r = put_document(&w, name);
	if (r == 0) {
		str_append(out, w.json.out.data, w.json.out.len);
		str_putc(out, '\n');
		r = str_status(out);
	}
	free(w.function_frame);
	free(w.location_frame);
	vec_fini(&w.path);
	str_fini(&w.json.out);
	if (r == -EOVERFLOW)
		return err_set(err, r, "the values add up to more than 64 bits");
	return r < 0 ? err_set(err, r, "out of memory for the speedscope document") : 0;
}
