/*
 * One table model for every result: the same rows print as aligned text, as CSV and as JSON.
 * Rows are built cell by cell, left to right; texts are copied. Colour only when asked (a
 * terminal).
 *
 * A value that does not fit its column's kind (a text in a COUNT column) is an unknown cell. Column
 * keys and titles are borrowed and must outlive the table; the array of columns is copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/str.h"

enum cell_kind {
	CELL_TEXT,
	CELL_COUNT,   /* uint64, digits grouped in text: 1,234,567 */
	CELL_SHARE,   /* fraction of 1, text: 12.34% */
	CELL_TIME_NS, /* uint64 nanoseconds, text: 1.23 ms */
	CELL_BYTES,   /* uint64, text: 1.5 MiB */
	CELL_DOUBLE,
};

struct table_column {
	const char *key;   /* JSON and CSV name */
	const char *title; /* text heading; NULL: the column is not in the text form */
	enum cell_kind kind;
	uint8_t digits;     /* after the point, for SHARE (0: two) and DOUBLE */
	bool left;          /* alignment; texts are left anyway */
	uint16_t max_width; /* texts in the text form: cut in the middle with ".." beyond; 0: never
			     */
};

struct table;

int table_new(const struct table_column *columns, unsigned column_count, struct table **ret);
void table_free(struct table *table);

/* Cells of the current row; a row ends by itself after the last column. -ENOMEM is sticky. */
void table_text(struct table *table, const char *text); /* NULL: unknown */
void table_count(struct table *table, uint64_t value);  /* also TIME_NS and BYTES columns */
void table_double(struct table *table, double value); /* also SHARE columns; not finite: unknown */
void table_unknown(struct table *table);              /* text: -, CSV: empty, JSON: null */

int table_status(const struct table *table);
uint64_t table_row_count(const struct table *table);

/* Sorts by a column, descending when asked; stable; unknown cells last. */
void table_sort(struct table *table, unsigned column, bool descending);

struct table_style {
	bool color;
	unsigned width; /* of the terminal: the widest texts are cut to fit; 0: unlimited */
	bool no_header;
};

void table_print_text(const struct table *table, const struct table_style *style, struct str *out);
/* A header row of keys, then all columns; quoted as in RFC 4180, C locale, shares as fractions,
 * times in nanoseconds, unknown is empty. Lines end in a bare LF, which line-based tools want. */
void table_print_csv(const struct table *table, char separator, struct str *out);
/* Adds "key": [ {column: value, ...}, ... ] to an open JSON object. */
void table_print_json(const struct table *table, const char *key, struct json *json);
