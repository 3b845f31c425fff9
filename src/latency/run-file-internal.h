/*
 * The scalars of the run file as tables: the writer and the reader walk the same rows, so a key
 * cannot be written and not read.
 */
#pragma once

#include <stddef.h>

#include "latency/analysis.h"
#include "latency/run.h"

#define RUN_FILE_SCHEMA 1

enum field_kind {
	FIELD_U64,      /* uint64_t */
	FIELD_POSITIVE, /* uint64_t, null when 0: unknown or none */
	FIELD_TIME,     /* int64_t, null when LATENCY_UNKNOWN_NS */
	FIELD_UINT,     /* unsigned */
	FIELD_INT,      /* int, null when -1 */
	FIELD_BOOL,
	FIELD_NAME, /* uint32_t, id in run->names; null when 0 */
};

struct field {
	const char *key;
	enum field_kind kind;
	size_t offset;
};

#define FIELD(kind_, type, member)                     \
	{                                              \
#member, kind_, offsetof(type, member) \
	}

struct field_table {
	const struct field *fields;
	unsigned count;
};

extern const struct field_table run_fields, limit_fields, cpu_fields, series_fields, source_fields,
	verdict_fields, part_fields;

/* "unexplained" ... "thread", as kinds of culprits. -1: none of them. */
int noise_class_find(const char *name);

/* The run file keeps the rows as they were joined: these two join nothing (run.c). The first wants
 * a source that is new; it moves into the run. NULL: no memory, the source stays the caller's. */
struct noise_source *latency_run_source_add(struct latency_run *run,
					    const struct noise_source *source);
bool latency_run_source_known(const struct latency_run *run, const struct noise_source *source);
