/*
 * A table holds its cells row after row in one array; texts live in an arena. Text output formats
 * every cell twice (once to measure): tables that people read are short, and the memory of a
 * formatted copy would be more than the table itself.
 *
 * A failure to allocate is remembered and later cells are dropped; table_status() tells.
 */
#include "view/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/util.h"
#include "base/vec.h"
#include "view/text.h"

#define COLUMN_GAP   2
#define SHRINK_LEAST 16 /* columns of text that a narrow terminal always leaves */

#define STYLE_HEADER "\033[1m"
#define STYLE_END    "\033[0m"

struct cell {
	bool known;
	union {
		uint64_t count;
		double number;
		const char *text;
	};
};

struct table {
	struct table_column *columns;
	unsigned column_count;
	VEC(struct cell) cells;
	struct arena texts;
	int status;
};

int table_new(const struct table_column *columns, unsigned column_count, struct table **ret)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->columns = calloc(column_count ? column_count : 1, sizeof(*columns));
	if (!table->columns) {
		free(table);
		return -ENOMEM;
	}
	memcpy(table->columns, columns, column_count * sizeof(*columns));
	table->column_count = column_count;
	*ret = table;
	return 0;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	arena_fini(&table->texts);
	vec_fini(&table->cells);
	free(table->columns);
	free(table);
}

static enum cell_kind kind_of_next(const struct table *table)
{
	return table->columns[table->cells.len % table->column_count].kind;
}

static void add_cell(struct table *table, struct cell cell)
{
	if (table->status == 0)
		table->status = vec_push(&table->cells, cell);
}

void table_text(struct table *table, const char *text)
{
	struct cell cell = {.known = text && kind_of_next(table) == CELL_TEXT};

	if (cell.known) {
		cell.text = arena_strndup(&table->texts, text, strlen(text));
		if (!cell.text)
			table->status = -ENOMEM;
	}
	add_cell(table, cell);
}

void table_double(struct table *table, double value)
{
	enum cell_kind kind = kind_of_next(table);
	struct cell cell = {.known = isfinite(value) && (kind == CELL_DOUBLE || kind == CELL_SHARE),
			    .number = value};

	add_cell(table, cell);
}

void table_count(struct table *table, uint64_t value)
{
	enum cell_kind kind = kind_of_next(table);
	struct cell cell = {.known = kind != CELL_TEXT, .count = value};

	if (kind == CELL_DOUBLE || kind == CELL_SHARE) {
		table_double(table, (double)value);
		return;
	}
	add_cell(table, cell);
}

void table_unknown(struct table *table)
{
	add_cell(table, (struct cell){0});
}

int table_status(const struct table *table)
{
	return table->status;
}

uint64_t table_row_count(const struct table *table)
{
	return table->column_count ? table->cells.len / table->column_count : 0;
}

static const struct cell *cell_at(const struct table *table, uint64_t row, unsigned column)
{
	return &table->cells.data[row * table->column_count + column];
}

struct sort_context {
	const struct table *table;
	unsigned column;
	bool descending;
};

static int compare_cells(const struct cell *a, const struct cell *b, enum cell_kind kind)
{
	switch (kind) {
	case CELL_TEXT:
		return strcmp(a->text, b->text);
	case CELL_SHARE:
	case CELL_DOUBLE:
		return (a->number > b->number) - (a->number < b->number);
	default:
		return (a->count > b->count) - (a->count < b->count);
	}
}

static int compare_rows(const void *left, const void *right, void *argument)
{
	const struct sort_context *context = argument;
	uint64_t row_a = *(const uint64_t *)left, row_b = *(const uint64_t *)right;
	const struct cell *a = cell_at(context->table, row_a, context->column);
	const struct cell *b = cell_at(context->table, row_b, context->column);
	int order;

	if (a->known != b->known)
		return a->known ? -1 : 1;
	order = a->known ? compare_cells(a, b, context->table->columns[context->column].kind) : 0;
	if (order != 0)
		return context->descending ? -order : order;
	return (row_a > row_b) - (row_a < row_b);
}

void table_sort(struct table *table, unsigned column, bool descending)
{
	struct sort_context context = {table, column, descending};
	uint64_t rows = table_row_count(table);
	size_t row_bytes = table->column_count * sizeof(struct cell);
	struct cell *sorted = NULL;
	uint64_t *order;

	if (rows < 2 || column >= table->column_count)
		return;
	order = malloc(rows * sizeof(*order));
	sorted = malloc(rows * row_bytes);
	if (order && sorted) {
		for (uint64_t i = 0; i < rows; i++)
			order[i] = i;
		qsort_r(order, rows, sizeof(*order), compare_rows, &context);
		for (uint64_t i = 0; i < rows; i++)
			memcpy(sorted + i * table->column_count, cell_at(table, order[i], 0),
			       row_bytes);
		memcpy(table->cells.data, sorted, rows * row_bytes);
	} else {
		table->status = -ENOMEM;
	}
	free(order);
	free(sorted);
}

static void format_time(struct str *out, uint64_t ns)
{
	static const struct {
		uint64_t from;
		double unit;
		const char *name;
	} units[] = {
		{NSEC_PER_SEC, 1e9, "s"},
		{NSEC_PER_MSEC, 1e6, "ms"},
		{NSEC_PER_USEC, 1e3, "us"},
	};

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (ns >= units[i].from) {
			str_printf(out, "%.2f %s", (double)ns / units[i].unit, units[i].name);
			return;
		}
	str_printf(out, "%llu ns", (unsigned long long)ns);
}

static void format_bytes(struct str *out, uint64_t bytes)
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		str_printf(out, "%llu B", (unsigned long long)bytes);
		return;
	}
	for (value /= 1024; value >= 1024 && i + 1 < ARRAY_LEN(names); i++)
		value /= 1024;
	str_printf(out, "%.1f %s", value, names[i]);
}

/* The cell as text, uncut; max cuts texts. */
static void format_cell(struct str *out, const struct table_column *column, const struct cell *cell,
			unsigned max)
{
	if (!cell->known) {
		str_putc(out, '-');
		return;
	}
	switch (column->kind) {
	case CELL_TEXT:
		text_cut_middle(out, cell->text, max);
		break;
	case CELL_COUNT:
		text_group(out, cell->count);
		break;
	case CELL_SHARE:
		str_printf(out, "%.*f%%", column->digits ? column->digits : 2, cell->number * 100);
		break;
	case CELL_TIME_NS:
		format_time(out, cell->count);
		break;
	case CELL_BYTES:
		format_bytes(out, cell->count);
		break;
	case CELL_DOUBLE:
		str_printf(out, "%.*f", column->digits, cell->number);
		break;
	}
}

static bool left_aligned(const struct table_column *column)
{
	return column->left || column->kind == CELL_TEXT;
}

static unsigned widest_cell(const struct table *table, unsigned column, struct str *scratch)
{
	const struct table_column *c = &table->columns[column];
	uint64_t rows = table_row_count(table);
	unsigned width = 0;

	for (uint64_t row = 0; row < rows; row++) {
		const struct cell *cell = cell_at(table, row, column);
		unsigned w;

		if (cell->known && c->kind == CELL_TEXT) {
			w = text_width(cell->text);
		} else {
			str_clear(scratch);
			format_cell(scratch, c, cell, 0);
			w = text_width(str_text(scratch));
		}
		width = MAX(width, w);
	}
	return c->max_width && width > c->max_width ? c->max_width : width;
}

/* Takes the missing columns from the widest texts first, until each is at SHRINK_LEAST. */
static void shrink_to(const struct table *table, unsigned *widths, unsigned terminal)
{
	for (;;) {
		unsigned total = 0, widest = 0, second = SHRINK_LEAST, widest_at = 0, take;

		for (unsigned i = 0; i < table->column_count; i++) {
			if (!table->columns[i].title)
				continue;
			total += widths[i] + (total ? COLUMN_GAP : 0);
			if (table->columns[i].kind != CELL_TEXT)
				continue;
			if (widths[i] > widest) {
				second = MAX(second, widest);
				widest = widths[i];
				widest_at = i;
			} else {
				second = MAX(second, widths[i]);
			}
		}
		if (total <= terminal || widest <= SHRINK_LEAST)
			return;
		take = widest > second ? widest - second : 1;
		widths[widest_at] -= MIN(take, total - terminal);
	}
}

static unsigned *column_widths(const struct table *table, const struct table_style *style)
{
	unsigned *widths = calloc(table->column_count ? table->column_count : 1, sizeof(*widths));
	struct str scratch = {0};

	if (!widths)
		return NULL;
	for (unsigned i = 0; i < table->column_count; i++) {
		const char *title = table->columns[i].title;

		if (!title)
			continue;
		widths[i] = widest_cell(table, i, &scratch);
		if (!style->no_header)
			widths[i] = MAX(widths[i], text_width(title));
	}
	str_fini(&scratch);
	if (style->width)
		shrink_to(table, widths, style->width);
	return widths;
}

static void put_spaces(struct str *out, unsigned count)
{
	while (count-- > 0)
		str_putc(out, ' ');
}

static void trim_line(struct str *out)
{
	if (str_status(out) < 0)
		return;
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
}

/* One line: row's cells, or the titles when titles is true. */
static void print_line(const struct table *table, const unsigned *widths, uint64_t row, bool titles,
		       struct str *out)
{
	struct str text = {0};
	bool first = true;

	for (unsigned i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		unsigned width, pad;

		if (!column->title)
			continue;
		str_clear(&text);
		if (titles)
			text_cut_middle(&text, column->title, widths[i]);
		else
			format_cell(&text, column, cell_at(table, row, i), widths[i]);
		width = text_width(str_text(&text));
		pad = widths[i] > width ? widths[i] - width : 0;
		if (!first)
			put_spaces(out, COLUMN_GAP);
		first = false;
		if (!left_aligned(column))
			put_spaces(out, pad);
		str_append(out, str_text(&text), text.len);
		if (left_aligned(column))
			put_spaces(out, pad);
	}
	if (str_status(&text) < 0)
		out->status = text.status;
	str_fini(&text);
	trim_line(out);
}

void table_print_text(const struct table *table, const struct table_style *style, struct str *out)
{
	static const struct table_style plain = {0};
	uint64_t rows = table_row_count(table);
	unsigned *widths;

	if (!style)
		style = &plain;
	widths = column_widths(table, style);
	if (!widths) {
		out->status = -ENOMEM;
		return;
	}
	if (!style->no_header) {
		if (style->color)
			str_puts(out, STYLE_HEADER);
		print_line(table, widths, 0, true, out);
		if (style->color)
			str_puts(out, STYLE_END);
		str_putc(out, '\n');
	}
	for (uint64_t row = 0; row < rows; row++) {
		print_line(table, widths, row, false, out);
		str_putc(out, '\n');
	}
	free(widths);
}

static void csv_text(struct str *out, const char *text, char separator)
{
	const char special[] = {separator, '"', '\r', '\n', '\0'};
	size_t left = strlen(text);
	bool quote = text[strcspn(text, special)] != '\0' || text[0] == ' ';

	if (quote)
		str_putc(out, '"');
	while (left > 0) {
		uint32_t code;
		size_t n = text_decode(text, left, &code);

		if (*text == '"')
			str_putc(out, '"');
		if (code == 0xfffd)
			str_puts(out, "\xef\xbf\xbd");
		else
			str_append(out, text, n);
		text += n;
		left -= n;
	}
	if (quote)
		str_putc(out, '"');
}

/* The shortest digits that read back as the same number, as in JSON. */
static void csv_double(struct str *out, double value)
{
	struct json json = {.compact = true, .depth = 1};

	json_double(&json, NULL, value);
	str_append(out, str_text(&json.out), json.out.len);
	str_fini(&json.out);
}

static void csv_cell(struct str *out, const struct table_column *column, const struct cell *cell,
		     char separator)
{
	if (!cell->known)
		return;
	switch (column->kind) {
	case CELL_TEXT:
		csv_text(out, cell->text, separator);
		break;
	case CELL_SHARE:
	case CELL_DOUBLE:
		csv_double(out, cell->number);
		break;
	default:
		str_printf(out, "%llu", (unsigned long long)cell->count);
	}
}

void table_print_csv(const struct table *table, char separator, struct str *out)
{
	uint64_t rows = table_row_count(table);

	for (unsigned i = 0; i < table->column_count; i++) {
		if (i > 0)
			str_putc(out, separator);
		csv_text(out, table->columns[i].key, separator);
	}
	str_putc(out, '\n');
	for (uint64_t row = 0; row < rows; row++) {
		for (unsigned i = 0; i < table->column_count; i++) {
			if (i > 0)
				str_putc(out, separator);
			csv_cell(out, &table->columns[i], cell_at(table, row, i), separator);
		}
		str_putc(out, '\n');
	}
}

static void json_cell(struct json *json, const struct table_column *column, const struct cell *cell)
{
	if (!cell->known) {
		json_null(json, column->key);
		return;
	}
	switch (column->kind) {
	case CELL_TEXT:
		json_text(json, column->key, cell->text);
		break;
	case CELL_SHARE:
	case CELL_DOUBLE:
		json_double(json, column->key, cell->number);
		break;
	default:
		json_u64(json, column->key, cell->count);
	}
}

void table_print_json(const struct table *table, const char *key, struct json *json)
{
	uint64_t rows = table_row_count(table);

	json_array(json, key);
	for (uint64_t row = 0; row < rows; row++) {
		json_object(json, NULL);
		for (unsigned i = 0; i < table->column_count; i++)
			json_cell(json, &table->columns[i], cell_at(table, row, i));
		json_end_object(json);
	}
	json_end_array(json);
}
