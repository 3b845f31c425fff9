/*
 * The processed format, version 48: every thread has tables of its own, made of columns. Newer
 * front ends turn it into theirs. A profile has no times: samples stand one after the other, an
 * interval apart, with their values as weights.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "profile/firefox-write-internal.h"

#define VERSION       48
#define GECKO_VERSION 24 /* of the profile that it would have been made of */

static const struct {
	const char *name, *color;
} categories[] = {
	[PROFILE_USER] = {"User", "yellow"},   [PROFILE_KERNEL] = {"Kernel", "orange"},
	[PROFILE_JIT] = {"JIT", "green"},      [PROFILE_VDSO] = {"vDSO", "blue"},
	[PROFILE_GUEST] = {"Guest", "purple"},
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
};

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

static int put_stacks(struct writer *w, struct firefox_thread *t, const struct group *group)
{
	int64_t stack = NONE;
	int r = 0;

	json_array(&w->json, "stack");
	for (size_t i = 0; r == 0 && i < group->count; i++) {
		uint32_t sample = w->order.data[group->first + i];

		r = firefox_thread_stack(t, w->profile->samples.data[sample].stack, &stack);
		put_or_null(&w->json, stack);
	}
	json_end_array(&w->json);
	return r;
}

static int put_samples(struct writer *w, struct firefox_thread *t, const struct group *group)
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
	struct firefox_thread t;
	int r = firefox_thread_init(&t, w->profile);

	json_object(json, NULL);
	put_head(json, &w->groups.data[group], group);
	if (r == 0)
		r = put_samples(w, &t, &w->groups.data[group]);
	if (r == 0)
		r = firefox_thread_put(&t, json);
	put_empty(json, "markers", markers);
	put_empty(json, "nativeSymbols", symbols);
	json_array(json, "stringArray");
	vec_for_each(&t.strings.entries, entry)
		json_text_n(json, NULL, entry->text, entry->len);
	json_end_array(json);
	json_end_object(json);
	firefox_thread_fini(&t);
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
	str_fini(&w.json.out);
	return r < 0 ? err_set(err, r, "out of memory for the Firefox profile") : 0;
}
