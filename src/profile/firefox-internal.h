/* The tables of a Firefox profile as they stand, and what becomes of them. */
#pragma once

#include "base/vec.h"
#include "profile/firefox.h"
#include "profile/json-slice.h"

/* What the writer says of itself: times and intervals of its documents mean nothing. */
#define FIREFOX_OWN "culprit"
/* A process must be told there. */
#define FIREFOX_NO_PID "unknown"

#define FIREFOX_COLUMNS 8

/* Numbers; NAN for everything else. Columns may be of different lengths, missing cells are NAN. */
struct firefox_table {
	VEC(double) columns[FIREFOX_COLUMNS];
};

enum {
	FRAME_FUNC,
	FRAME_LOCATION,
	FRAME_ADDRESS,
	FRAME_DEPTH,
	FRAME_LINE,
	FRAME_COLUMN,
	FRAME_CATEGORY
};
enum {
	FUNC_NAME,
	FUNC_RESOURCE,
	FUNC_FILE,
	FUNC_SOURCE,
	FUNC_LINE
};
enum {
	STACK_PREFIX,
	STACK_FRAME
};
enum {
	SAMPLE_STACK,
	SAMPLE_WEIGHT,
	SAMPLE_CPU,
	SAMPLE_TIME,
	SAMPLE_DELTA
};

struct firefox_lib {
	uint32_t path, build_id; /* strings */
	uint64_t start, end;     /* of Gecko's absolute addresses; 0: addresses are relative */
	uint64_t offset;
};

typedef VEC(uint32_t) firefox_ids;
typedef VEC(struct firefox_lib) firefox_libs;

/* What frames of a stack become names with. Shared by all threads or a thread's own. */
struct firefox_tables {
	firefox_ids own_strings;
	const firefox_ids *strings; /* by index: ids of the profile's strings */
	struct firefox_table frame, func, stack, resource;
	const struct firefox_table *sources;
	const firefox_libs *libs;
	firefox_ids stacks; /* by index of the stack table: ids of the profile's stacks */
};

struct firefox_document {
	struct profile *profile;
	struct err *err;
	firefox_ids categories; /* names: ids of the profile's strings */
	struct firefox_table sources;
	struct str text;
};

/*
 * The named columns of a table in either form; names that are not there make empty columns.
 * columns: FIREFOX_COLUMNS at most.
 */
int firefox_table_read(struct json_slice slice, const char *const *names, unsigned columns,
		       struct firefox_table *ret);
void firefox_table_fini(struct firefox_table *table);

/* NAN when there is no such cell. */
double firefox_value(const struct firefox_table *table, unsigned column, uint64_t row);
/* The cell as an index or address; -1 when it is none. */
int64_t firefox_index(const struct firefox_table *table, unsigned column, uint64_t row);

/* A list of texts, interned; what is no text becomes "". */
int firefox_strings(struct firefox_document *d, struct json_slice slice, firefox_ids *ret);
int firefox_libs_read(struct firefox_document *d, struct json_slice slice, firefox_libs *ret);

/* Fills tables->stacks from the other tables. */
int firefox_resolve(struct firefox_document *d, struct firefox_tables *tables);
void firefox_tables_fini(struct firefox_tables *tables);
