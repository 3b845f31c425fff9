/* Shared by the files that write Firefox profiles: the tables of one thread. */
#pragma once

#include "base/json.h"
#include "profile/firefox-internal.h"

#define NONE INT64_C(-1)

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
struct firefox_thread {
	const struct profile *profile;
	struct strtab strings; /* its ids are those of the document */
	VEC(struct frame_row) frames;
	VEC(struct func_row) funcs;
	VEC(struct stack_row) stacks;
	VEC(uint32_t) resources;              /* mappings of the profile */
	struct u64_map frame_of, func_of;     /* the profile's location, function and mapping */
	struct u64_map stack_of, resource_of; /* stack, mapping */
	VEC(uint32_t) path;                   /* scratch */
};

int firefox_thread_init(struct firefox_thread *t, const struct profile *profile);
void firefox_thread_fini(struct firefox_thread *t);
/* The row of a stack, made with those of its callers; NONE for the empty stack. */
int firefox_thread_stack(struct firefox_thread *t, uint32_t stack, int64_t *ret);
/* Writes the tables of resources, frames, stacks and functions. Once all stacks are there; only
 * then the strings are complete. */
int firefox_thread_put(struct firefox_thread *t, struct json *json);

static inline void put_or_null(struct json *json, int64_t value)
{
	if (value == NONE)
		json_null(json, NULL);
	else
		json_i64(json, NULL, value);
}
