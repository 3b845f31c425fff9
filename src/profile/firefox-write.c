/*
 * The processed format, version 48: every thread has tables of its own, made of columns. Newer
 * front ends turn it into theirs. A profile has no times: samples stand one after the other, an
 * interval apart, with their values as weights.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "profile/firefox-internal.h"

#define VERSION       48
#define GECKO_VERSION 24 /* of the profile that it would have been made of */
#define NONE          INT64_C(-1)

static const struct {
	const char *name, *color;
} categories[] = {
	[PROFILE_USER] = {"User", "yellow"},   [PROFILE_KERNEL] = {"Kernel", "orange"},
	[PROFILE_JIT] = {"JIT", "green"},      [PROFILE_VDSO] = {"vDSO", "blue"},
	[PROFILE_GUEST] = {"Guest", "purple"},
};

struct frame_row {
	int64_t func, address, depth, line, column;
	enum profile_kind kind;
};

struct func_row {
	int64_t name, resource, file, line;
};

struct stack_row {
	int64_t prefix, frame;
};

/* One thread of the document: the samples of equal labels. */
struct thread {
	struct strtab strings; /* its ids are those of the document */
	VEC(struct frame_row) frames;
	VEC(struct func_row) funcs;
	VEC(struct stack_row) stacks;
	VEC(uint32_t) resources;              /* mappings of the profile */
	struct u64_map frame_of, func_of;     /* the profile's location, function and mapping */
	struct u64_map stack_of, resource_of; /* stack, mapping */
};

struct group {
	const char *comm;
	int64_t pid, tid;
	size_t first, count; /* in writer.order */
};

struct writer {
	const struct profile *profile;
	uint32_t value;
	const char *weight_type;
	double scale;
	struct json json;
	VEC(struct group) groups;
	VEC(uint32_t) group_of; /* by sample */
	VEC(uint32_t) order;    /* samples, group by group, those of value 0 left out */
	VEC(uint32_t) path;
};

static void thread_fini(struct thread *t)
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
}

static int put_string(const struct writer *w, struct thread *t, uint32_t id, int64_t *ret)
{
	const struct strtab_entry *entry = &w->profile->strings.entries.data[id];
	uint32_t at;
	int r = strtab_intern(&t->strings, entry->text, entry->len, &at);

	*ret = at;
	return r;
}

static int resource(struct thread *t, uint32_t mapping, int64_t *ret)
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
static int address_name(struct thread *t, uint64_t address, int64_t *ret)
{
	char text[32];
	uint32_t at;
	int r;

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	r = strtab_intern_text(&t->strings, text, &at);
	*ret = at;
	return r;
}

static int add_func(const struct writer *w, struct thread *t, uint64_t key, uint32_t function_id,
		    uint32_t mapping, uint64_t address, int64_t *ret)
{
	const struct profile *p = w->profile;
	const struct profile_function *function = &p->functions.data[function_id];
	struct func_row row = {.resource = NONE, .file = NONE, .line = NONE};
	uint32_t name = function->name != 0 ? function->name : function->system_name, at;
	int r = 0;

	if (u64_map_get(&t->func_of, key, &at)) {
		*ret = at;
		return 0;
	}
	if (name != 0)
		r = put_string(w, t, name, &row.name);
	else
		r = address_name(t, address, &row.name);
	if (r == 0 && function->filename != 0)
		r = put_string(w, t, function->filename, &row.file);
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
static int add_frames(const struct writer *w, struct thread *t, uint32_t id, uint32_t *ret)
{
	const struct profile *p = w->profile;
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
		r = add_func(w, t, key, line.function, location->mapping,
			     mapping->filename ? address : location->address, &row.func);
		if (r == 0)
			r = vec_push(&t->frames, row);
	}
	return r < 0 ? r : u64_map_put(&t->frame_of, id, *ret);
}

static int add_node(const struct writer *w, struct thread *t, uint32_t stack, int64_t *prefix)
{
	const struct profile *p = w->profile;
	uint32_t id = p->stacks.data[stack].location, first;
	uint32_t count = MAX(p->locations.data[id].line_count, 1u);
	int r = add_frames(w, t, id, &first);

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = vec_push(&t->stacks, ((struct stack_row){*prefix, (int64_t)first + i}));
		*prefix = (int64_t)t->stacks.len - 1;
	}
	return r < 0 ? r : u64_map_put(&t->stack_of, stack, (uint32_t)*prefix);
}

/* The row of a stack, made with those of its callers; NONE for the empty stack. */
static int add_stack(struct writer *w, struct thread *t, uint32_t stack, int64_t *ret)
{
	uint32_t known = 0;
	int r = 0;

	w->path.len = 0;
	for (; r == 0 && stack != 0 && !u64_map_get(&t->stack_of, stack, &known);
	     stack = w->profile->stacks.data[stack].parent)
		r = vec_push(&w->path, stack);
	*ret = stack != 0 ? known : NONE;
	while (r == 0 && w->path.len > 0)
		r = add_node(w, t, w->path.data[--w->path.len], ret);
	return r;
}

static void put_or_null(struct json *json, int64_t value)
{
	if (value == NONE)
		json_null(json, NULL);
	else
		json_i64(json, NULL, value);
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

static void put_frames(struct json *json, struct thread *t)
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

static void put_funcs(struct json *json, struct thread *t)
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
static int put_resources(const struct writer *w, struct json *json, struct thread *t)
{
	VEC(int64_t) names = {0};
	int r = 0;

	vec_for_each(&t->resources, mapping) {
		int64_t name;

		r = put_string(w, t, w->profile->mappings.data[*mapping].filename, &name);
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

static void put_empty(struct json *json, const char *key, const char *const *columns)
{
	json_object(json, key);
	json_u64(json, "length", 0);
	for (; *columns; columns++) {
		json_array(json, *columns);
		json_end_array(json);
	}
	json_end_object(json);
}

static int put_stacks(struct writer *w, struct thread *t, const struct group *group)
{
	int64_t stack = NONE;
	int r = 0;

	json_array(&w->json, "stack");
	for (size_t i = 0; r == 0 && i < group->count; i++) {
		uint32_t sample = w->order.data[group->first + i];

		r = add_stack(w, t, w->profile->samples.data[sample].stack, &stack);
		put_or_null(&w->json, stack);
	}
	json_end_array(&w->json);
	return r;
}

static int put_samples(struct writer *w, struct thread *t, const struct group *group)
{
	size_t width = w->profile->value_types.len;
	struct json *json = &w->json;
	int r;

	json_object(json, "samples");
	json_u64(json, "length", group->count);
	r = put_stacks(w, t, group);
	json_array(json, "time");
	for (size_t i = 0; i < group->count; i++)
		json_u64(json, NULL, i);
	json_end_array(json);
	json_array(json, "weight");
	for (size_t i = 0; i < group->count; i++) {
		int64_t value =
			w->profile->values.data[w->order.data[group->first + i] * width + w->value];

		if (w->scale == 1)
			json_i64(json, NULL, value);
		else
			json_double(json, NULL, (double)value * w->scale);
	}
	json_end_array(json);
	json_text(json, "weightType", w->weight_type);
	json_end_object(json);
	return r;
}

static void put_head(struct json *json, const struct group *group, size_t number)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%" PRId64, group->pid);
	json_text(json, "name", group->comm ? group->comm : "");
	json_bool(json, "isMainThread", group->tid == NONE || group->tid == group->pid);
	json_text(json, "processType", "default");
	json_text(json, "pid", group->pid == NONE ? FIREFOX_NO_PID : pid);
	json_i64(json, "tid", group->tid == NONE ? (int64_t)number : group->tid);
	json_u64(json, "registerTime", 0);
	json_null(json, "unregisterTime");
	json_u64(json, "processStartupTime", 0);
	json_null(json, "processShutdownTime");
	json_array(json, "pausedRanges");
	json_end_array(json);
}

static int put_thread(struct writer *w, uint32_t group)
{
	static const char *const markers[] = {"category", "data",      "endTime", "name",
					      "phase",    "startTime", NULL};
	static const char *const symbols[] = {"address", "functionSize", "libIndex", "name", NULL};
	struct json *json = &w->json;
	struct thread t = {0};
	int r = strtab_init(&t.strings);

	json_object(json, NULL);
	put_head(json, &w->groups.data[group], group);
	if (r == 0)
		r = put_samples(w, &t, &w->groups.data[group]);
	if (r == 0)
		r = put_resources(w, json, &t);
	put_frames(json, &t);
	put_funcs(json, &t);
	put_empty(json, "markers", markers);
	put_empty(json, "nativeSymbols", symbols);
	json_array(json, "stringArray");
	vec_for_each(&t.strings.entries, entry)
		json_text_n(json, NULL, entry->text, entry->len);
	json_end_array(json);
	json_end_object(json);
	thread_fini(&t);
	return r;
}

static void put_meta(struct writer *w, const char *name)
{
	const struct profile *p = w->profile;
	struct json *json = &w->json;

	json_object(json, "meta");
	json_u64(json, "preprocessedProfileVersion", VERSION);
	json_u64(json, "version", GECKO_VERSION);
	json_text(json, "product", name);
	json_text(json, "importedFrom", FIREFOX_OWN);
	json_double(json, "startTime", (double)p->time_ns / 1e6);
	json_u64(json, "interval", 1);
	json_u64(json, "processType", 0);
	json_u64(json, "stackwalk", 1);
	json_bool(json, "debug", false);
	json_bool(json, "symbolicated", true);
	json_array(json, "markerSchema");
	json_end_array(json);
	json_array(json, "categories");
	for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
		json_object(json, NULL);
		json_text(json, "name", categories[i].name);
		json_text(json, "color", categories[i].color);
		json_array(json, "subcategories");
		json_text(json, NULL, "Other");
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

static void put_libs(struct writer *w)
{
	const struct profile *p = w->profile;
	struct json *json = &w->json;

	json_array(json, "libs");
	for (size_t i = 1; i < p->mappings.len; i++) {
		const char *path = strtab_text(&p->strings, p->mappings.data[i].filename),
			   *id = strtab_text(&p->strings, p->mappings.data[i].build_id),
			   *base = strrchr(path, '/');

		base = base && base[1] ? base + 1 : path;
		json_object(json, NULL);
		json_text(json, "name", base);
		json_text(json, "path", path);
		json_text(json, "debugName", base);
		json_text(json, "debugPath", path);
		json_text(json, "breakpadId", "");
		json_text(json, "codeId", id[0] ? id : NULL);
		json_null(json, "arch");
		json_end_object(json);
	}
	json_end_array(json);
}

static bool group_is(const struct group *group, const struct group *other)
{
	return group->comm == other->comm && group->pid == other->pid && group->tid == other->tid;
}

/* Texts are interned, so that equal ones have one address. */
static int group_samples(struct writer *w)
{
	const struct profile *p = w->profile;
	struct u64_map seen = {0};
	uint32_t at;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->samples.len; i++) {
		uint32_t labels = p->samples.data[i].labels;
		struct group group = {.pid = NONE, .tid = NONE};

		if (u64_map_get(&seen, labels, &at)) {
			r = vec_push(&w->group_of, at);
			continue;
		}
		group.comm = profile_label_text(p, labels, "comm");
		profile_label_number(p, labels, "pid", &group.pid);
		profile_label_number(p, labels, "tid", &group.tid);
		for (at = 0; at < w->groups.len && !group_is(&w->groups.data[at], &group); at++)
			;
		if (at == w->groups.len)
			r = vec_push(&w->groups, group);
		if (r == 0)
			r = u64_map_put(&seen, labels, at);
		if (r == 0)
			r = vec_push(&w->group_of, at);
	}
	u64_map_fini(&seen);
	return r;
}

/* Each group's samples together. */
static int order_samples(struct writer *w)
{
	const struct profile *p = w->profile;
	size_t width = p->value_types.len, next = 0;
	int r = vec_reserve(&w->order, p->samples.len);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p->samples.len; i++)
		w->groups.data[w->group_of.data[i]].count +=
			p->values.data[i * width + w->value] != 0;
	vec_for_each(&w->groups, group) {
		group->first = next;
		next += group->count;
		group->count = 0;
	}
	for (size_t i = 0; i < p->samples.len; i++) {
		struct group *group = &w->groups.data[w->group_of.data[i]];

		if (p->values.data[i * width + w->value] != 0)
			w->order.data[group->first + group->count++] = (uint32_t)i;
	}
	return 0;
}

static void choose_weight(struct writer *w)
{
	static const struct {
		const char *unit, *type;
		double scale;
	} units[] = {
		{"nanoseconds", "tracing-ms", 1e-6},
		{"microseconds", "tracing-ms", 1e-3},
		{"milliseconds", "tracing-ms", 1},
		{"seconds", "tracing-ms", 1e3},
		{"bytes", "bytes", 1},
	};
	const struct profile *p = w->profile;
	const char *unit = strtab_text(&p->strings, p->value_types.data[w->value].unit);

	w->weight_type = "samples";
	w->scale = 1;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(unit, units[i].unit) == 0) {
			w->weight_type = units[i].type;
			w->scale = units[i].scale;
		}
}

int firefox_write(const struct profile *profile, int value, const char *name, struct str *out,
		  struct err *err)
{
	struct writer w = {.profile = profile, .json = {.compact = true}};
	int r = group_samples(&w);

	w.value = value < 0 ? profile_default_value(profile) : (uint32_t)value;
	choose_weight(&w);
	if (r == 0)
		r = order_samples(&w);
	json_object(&w.json, NULL);
	put_meta(&w, name);
	put_libs(&w);
	json_array(&w.json, "pages");
	json_end_array(&w.json);
	json_array(&w.json, "counters");
	json_end_array(&w.json);
	json_array(&w.json, "threads");
	for (uint32_t i = 0; r == 0 && i < w.groups.len; i++)
		r = put_thread(&w, i);
	json_end_array(&w.json);
	json_end_object(&w.json);
	if (r == 0)
		r = str_status(&w.json.out);
	if (r == 0) {
		str_append(out, w.json.out.data, w.json.out.len);
		str_putc(out, '\n');
		r = str_status(out);
	}
	vec_fini(&w.groups);
	vec_fini(&w.group_of);
	vec_fini(&w.order);
	vec_fini(&w.path);
	str_fini(&w.json.out);
	return r < 0 ? err_set(err, r, "out of memory for the Firefox profile") : 0;
}
