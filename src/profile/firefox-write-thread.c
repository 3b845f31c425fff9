/* The tables of one thread: rows are made as stacks need them, then written column by column. */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "profile/firefox-write-internal.h"

int firefox_thread_init(struct firefox_thread *t, const struct profile *profile)
{
	*t = (struct firefox_thread){.profile = profile};
	return strtab_init(&t->strings);
}

void firefox_thread_fini(struct firefox_thread *t)
{
	strtab_fini(&t->strings);
	vec_fini(&t->frames);
	vec_fini(&t->funcs);
	vec_fini(&t->stacks);
	vec_fini(&t->resources);
	u64_map_fini(&t->frame_of);
	u64_map_fini(&t->func_of);
	u64_map_fini(&t->stack_of);
	u64_map_fini(&t->resource_of);
	vec_fini(&t->path);
}

static int put_string(struct firefox_thread *t, uint32_t id, int64_t *ret)
{
	const struct strtab_entry *entry = &t->profile->strings.entries.data[id];
	uint32_t at;
	int r = strtab_intern(&t->strings, entry->text, entry->len, &at);

	*ret = at;
	return r;
}

static int resource(struct firefox_thread *t, uint32_t mapping, int64_t *ret)
{
	uint32_t at;
	int r = 0;

	if (!u64_map_get(&t->resource_of, mapping, &at)) {
		at = (uint32_t)t->resources.len;
		r = vec_push(&t->resources, mapping);
		if (r == 0)
			r = u64_map_put(&t->resource_of, mapping, at);
	}
	*ret = at;
	return r;
}

/* A location without names is a function that is called what its address is. */
static int address_name(struct firefox_thread *t, uint64_t address, int64_t *ret)
{
	char text[32];
	uint32_t at;
	int r;

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	r = strtab_intern_text(&t->strings, text, &at);
	*ret = at;
	return r;
}

static int add_func(struct firefox_thread *t, uint64_t key, uint32_t function_id, uint32_t mapping,
		    uint64_t address, int64_t *ret)
{
	const struct profile *p = t->profile;
	const struct profile_function *function = &p->functions.data[function_id];
	struct func_row row = {.resource = NONE, .file = NONE, .line = NONE};
	uint32_t name = function->name != 0 ? function->name : function->system_name, at;
	int r = 0;

	if (u64_map_get(&t->func_of, key, &at)) {
		*ret = at;
		return 0;
	}
	if (name != 0)
		r = put_string(t, name, &row.name);
	else
		r = address_name(t, address, &row.name);
	if (r == 0 && function->filename != 0)
		r = put_string(t, function->filename, &row.file);
	if (function->start_line > 0)
		row.line = function->start_line;
	if (r == 0 && p->mappings.data[mapping].filename != 0)
		r = resource(t, mapping, &row.resource);
	*ret = (int64_t)t->funcs.len;
	if (r == 0)
		r = vec_push(&t->funcs, row);
	return r < 0 ? r : u64_map_put(&t->func_of, key, (uint32_t)*ret);
}

/* The frames of a location, outermost first; *ret is the first one. */
static int add_frames(struct firefox_thread *t, uint32_t id, uint32_t *ret)
{
	const struct profile *p = t->profile;
	const struct profile_location *location = &p->locations.data[id];
	const struct profile_mapping *mapping = &p->mappings.data[location->mapping];
	uint64_t address = location->address - mapping->start + mapping->offset, key;
	int r = 0;

	if (u64_map_get(&t->frame_of, id, ret))
		return 0;
	*ret = (uint32_t)t->frames.len;
	for (uint32_t i = MAX(location->line_count, 1u); r == 0 && i-- > 0;) {
		struct frame_row row = {.address = NONE, .kind = mapping->kind};
		struct profile_line line = {0};

		if (location->line_count > 0)
			line = p->lines.data[location->first_line + i];
		if (location->address != 0 && mapping->filename != 0 && address < UINT64_C(1) << 53)
			row.address = (int64_t)address;
		row.depth = (int64_t)MAX(location->line_count, 1u) - 1 - i;
		row.line = line.line > 0 ? line.line : NONE;
		row.column = line.column > 0 ? line.column : NONE;
		key = line.function != 0 ? (uint64_t)line.function << 32 | location->mapping
					 : UINT64_C(1) << 63 | id;
		r = add_func(t, key, line.function, location->mapping,
			     mapping->filename ? address : location->address, &row.func);
		if (r == 0)
			r = vec_push(&t->frames, row);
	}
	return r < 0 ? r : u64_map_put(&t->frame_of, id, *ret);
}

static int add_node(struct firefox_thread *t, uint32_t stack, int64_t *prefix)
{
	const struct profile *p = t->profile;
	uint32_t id = p->stacks.data[stack].location, first;
	uint32_t count = MAX(p->locations.data[id].line_count, 1u);
	int r = add_frames(t, id, &first);

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = vec_push(&t->stacks, ((struct stack_row){*prefix, (int64_t)first + i}));
		*prefix = (int64_t)t->stacks.len - 1;
	}
	return r < 0 ? r : u64_map_put(&t->stack_of, stack, (uint32_t)*prefix);
}

int firefox_thread_stack(struct firefox_thread *t, uint32_t stack, int64_t *ret)
{
	uint32_t known = 0;
	int r = 0;

	t->path.len = 0;
	for (; r == 0 && stack != 0 && !u64_map_get(&t->stack_of, stack, &known);
	     stack = t->profile->stacks.data[stack].parent)
		r = vec_push(&t->path, stack);
	*ret = stack != 0 ? known : NONE;
	while (r == 0 && t->path.len > 0)
		r = add_node(t, t->path.data[--t->path.len], ret);
	return r;
}

static void put_number(struct json *json, int64_t value)
{
	json_i64(json, NULL, value);
}

#define PUT_COLUMN_WITH(put, json, key, rows, expression) \
	do {                                              \
		json_array(json, key);                    \
		vec_for_each(rows, row)                   \
			put(json, (int64_t)(expression)); \
		json_end_array(json);                     \
	} while (0)
#define PUT_COLUMN(json, key, rows, expression) \
	PUT_COLUMN_WITH(put_or_null, json, key, rows, expression)
/* Where the format's "none" is -1, not null. */
#define PUT_COLUMN_FROM_MINUS_1(json, key, rows, expression) \
	PUT_COLUMN_WITH(put_number, json, key, rows, expression)

static void put_frames(struct firefox_thread *t, struct json *json)
{
	json_object(json, "frameTable");
	json_u64(json, "length", t->frames.len);
	PUT_COLUMN_FROM_MINUS_1(json, "address", &t->frames, row->address);
	PUT_COLUMN(json, "inlineDepth", &t->frames, row->depth);
	PUT_COLUMN(json, "category", &t->frames, row->kind);
	PUT_COLUMN(json, "subcategory", &t->frames, 0);
	PUT_COLUMN(json, "func", &t->frames, row->func);
	PUT_COLUMN(json, "nativeSymbol", &t->frames, NONE);
	PUT_COLUMN(json, "innerWindowID", &t->frames, NONE);
	PUT_COLUMN(json, "implementation", &t->frames, NONE);
	PUT_COLUMN(json, "line", &t->frames, row->line);
	PUT_COLUMN(json, "column", &t->frames, row->column);
	json_end_object(json);
	json_object(json, "stackTable");
	json_u64(json, "length", t->stacks.len);
	PUT_COLUMN(json, "prefix", &t->stacks, row->prefix);
	PUT_COLUMN(json, "frame", &t->stacks, row->frame);
	PUT_COLUMN(json, "category", &t->stacks, t->frames.data[row->frame].kind);
	PUT_COLUMN(json, "subcategory", &t->stacks, 0);
	json_end_object(json);
}

static void put_flags(struct json *json, const char *key, size_t count)
{
	json_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_bool(json, NULL, false);
	json_end_array(json);
}

static void put_funcs(struct firefox_thread *t, struct json *json)
{
	json_object(json, "funcTable");
	json_u64(json, "length", t->funcs.len);
	PUT_COLUMN(json, "name", &t->funcs, row->name);
	put_flags(json, "isJS", t->funcs.len);
	put_flags(json, "relevantForJS", t->funcs.len);
	PUT_COLUMN_FROM_MINUS_1(json, "resource", &t->funcs, row->resource);
	PUT_COLUMN(json, "fileName", &t->funcs, row->file);
	PUT_COLUMN(json, "lineNumber", &t->funcs, row->line);
	PUT_COLUMN(json, "columnNumber", &t->funcs, NONE);
	json_end_object(json);
}

/* Libraries are mappings without the first, which is none. */
static int put_resources(struct firefox_thread *t, struct json *json)
{
	VEC(int64_t) names = {0};
	int r = 0;

	vec_for_each(&t->resources, mapping) {
		int64_t name;

		r = put_string(t, t->profile->mappings.data[*mapping].filename, &name);
		if (r == 0)
			r = vec_push(&names, name);
		if (r < 0)
			break;
	}
	json_object(json, "resourceTable");
	json_u64(json, "length", t->resources.len);
	PUT_COLUMN(json, "lib", &t->resources, (int64_t)*row - 1);
	PUT_COLUMN(json, "name", &names, *row);
	PUT_COLUMN(json, "host", &t->resources, NONE);
	PUT_COLUMN(json, "type", &t->resources, 1); /* a library */
	json_end_object(json);
	vec_fini(&names);
	return r;
}

int firefox_thread_put(struct firefox_thread *t, struct json *json)
{
	int r = put_resources(t, json);

	put_frames(t, json);
	put_funcs(t, json);
	return r;
}
