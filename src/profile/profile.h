/*
 * The profile: what everything that can be drawn becomes (a recording, a pprof file, folded text,
 * later a store query). Its meaning is that of pprof's profile.proto; its shape is made for merging
 * and drawing: every distinct string, mapping, function, location, stack and label set exists once
 * and is named by a small id, so that samples are pairs of ids with values.
 *
 * Ids are indices. Index 0 of every table means "none" (the empty string, no mapping, no function,
 * the empty stack, no labels) and always exists.
 *
 * A stack is a node of a prefix tree: its parent is the caller's stack, its location the leaf.
 * Equal stacks are the same node. Parents have smaller ids than their children, so one pass from
 * the last id to the first accumulates totals.
 *
 * A location may stand for several frames: lines[0] is the innermost inlined function, the last
 * line is the function that really has the code (pprof's order). A location without lines is
 * unsymbolized and shown as object+0xoffset.
 *
 * Values: value_types.len int64 per sample; samples with equal (stack, labels) are added together.
 *
 * Functions return 0 or negative errno (-ENOMEM, -EOVERFLOW when a sum leaves int64, -E2BIG when a
 * table would pass 2^32 - 1 entries). Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "base/vec.h"

/* Decides colours and the default grouping; pprof has no such field: derived from names there. */
enum profile_kind {
	PROFILE_USER,
	PROFILE_KERNEL,
	PROFILE_JIT,
	PROFILE_VDSO,
	PROFILE_GUEST,
};

struct profile_value_type {
	uint32_t type, unit; /* strings: "samples" "count", "cpu" "nanoseconds" */
};

struct profile_mapping {
	uint64_t start, limit;       /* addresses [start, limit); 0 unknown */
	uint64_t offset;             /* file offset of start */
	uint32_t filename, build_id; /* strings; build id in lower-case hex */
	enum profile_kind kind;
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames; /* pprof's hints */
};

struct profile_function {
	uint32_t name, system_name; /* strings: demangled, as in the object */
	uint32_t filename;          /* string: source file */
	int64_t start_line;         /* 0 unknown */
};

struct profile_line {
	uint32_t function;
	int64_t line, column; /* 0 unknown */
};

struct profile_location {
	uint32_t mapping;
	uint64_t address;                /* as in mapping's range; 0 when only the name is known */
	uint32_t first_line, line_count; /* in profile.lines */
	bool folded;                     /* several symbols share this address (pprof is_folded) */
};

struct profile_stack {
	uint32_t parent, location;
};

struct profile_label {
	uint32_t key, text; /* strings; text 0: the label is a number */
	int64_t number;
	uint32_t number_unit; /* string */
};

struct profile_label_set {
	uint32_t first, count; /* in profile.labels, sorted by (key text, text, number) */
};

struct profile_sample {
	uint32_t stack, labels;
};

struct profile {
	struct strtab strings;
	VEC(struct profile_value_type) value_types;
	VEC(struct profile_mapping) mappings;
	VEC(struct profile_function) functions;
	VEC(struct profile_line) lines;
	VEC(struct profile_location) locations;
	VEC(struct profile_stack) stacks;
	VEC(struct profile_label) labels;
	VEC(struct profile_label_set) label_sets;
	VEC(struct profile_sample) samples;
	VEC(int64_t) values; /* samples.len * value_types.len, sample by sample */

	int64_t time_ns;     /* start, UTC; 0 unknown */
	int64_t duration_ns; /* 0 unknown */
	struct profile_value_type period_type;
	int64_t period;
	uint32_t default_type; /* string naming the value type to show; 0: the last one */
	uint32_t drop_frames, keep_frames, doc_url;
	VEC(uint32_t) comments;

	struct hash_index mapping_index, function_index, location_index, stack_index, label_index,
		sample_index;
};

int profile_init(struct profile *profile);
void profile_fini(struct profile *profile);
/*
 * How a decoder makes a profile: fill() gets an empty one, which becomes *ret unless fill() fails;
 * then *ret stays untouched, and what was said of it, at least the name of the errno, is in err.
 */
int profile_make(int (*fill)(void *arg, struct profile *profile, struct err *err), void *arg,
		 struct profile *ret, struct err *err);

/* What the name of an object says about its code; PROFILE_USER when nothing. */
enum profile_kind profile_kind_of_object(const char *filename);

/* Value types first: -EINVAL once there are samples. */
int profile_add_value_type(struct profile *profile, const char *type, const char *unit);

/*
 * Each returns the id of an equal entry, adding it when new. The has_ hints of a mapping are no
 * part of its identity; they stay true only as long as all givers say so.
 */
int profile_mapping(struct profile *profile, const struct profile_mapping *mapping,
		    uint32_t *ret_id);
int profile_function(struct profile *profile, const struct profile_function *function,
		     uint32_t *ret_id);
/* lines (line_count of them) are copied; location->first_line is ignored. */
int profile_location(struct profile *profile, const struct profile_location *location,
		     const struct profile_line *lines, uint32_t *ret_id);
int profile_stack(struct profile *profile, uint32_t parent, uint32_t location, uint32_t *ret_id);
/* Labels in any order. */
int profile_label_set(struct profile *profile, const struct profile_label *labels, uint32_t count,
		      uint32_t *ret_id);
/* Adds values[value_types.len] to the sample (stack, labels). */
int profile_add(struct profile *profile, uint32_t stack, uint32_t labels, const int64_t *values);

/*
 * Gives an unsymbolized location its lines, afterwards: stacks stay as they are. Two locations of
 * equal content may then exist; views compare functions, not locations.
 */
int profile_location_set_lines(struct profile *profile, uint32_t location,
			       const struct profile_line *lines, uint32_t line_count);

/* The value type that a view should show: default_type, else the last; an index into value_types.
 */
uint32_t profile_default_value(const struct profile *profile);
/* Index of the value type of that name, or -ENOENT. */
int profile_find_value(const struct profile *profile, const char *type);
/* Sum of one value over all samples. */
int profile_total(const struct profile *profile, uint32_t value, int64_t *ret_total);
/* The text of the label of that key, or NULL; numbers are not text. */
const char *profile_label_text(const struct profile *profile, uint32_t label_set, const char *key);
/* True and *ret for a numeric label. */
bool profile_label_number(const struct profile *profile, uint32_t label_set, const char *key,
			  int64_t *ret);

/*
 * dst += src, strings and ids translated. -EINVAL when the value types (by name and unit, in any
 * order), the period types or the drop and keep expressions differ; a dst without samples takes
 * those of src. Durations add up, the earliest time and the largest period stay. After a failure
 * past these checks dst holds a part of src and should be thrown away.
 */
int profile_merge(struct profile *dst, const struct profile *src);
