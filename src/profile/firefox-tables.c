#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "profile/firefox-internal.h"

/* A double holds whole numbers exactly up to here. */
#define EXACT_MAX 0x1p53

void firefox_table_fini(struct firefox_table *table)
{
	for (unsigned i = 0; i < FIREFOX_COLUMNS; i++)
		vec_fini(&table->columns[i]);
}

double firefox_value(const struct firefox_table *table, unsigned column, uint64_t row)
{
	return row < table->columns[column].len ? table->columns[column].data[row] : NAN;
}

int64_t firefox_index(const struct firefox_table *table, unsigned column, uint64_t row)
{
	double value = firefox_value(table, column, row);

	return value >= 0 && value < EXACT_MAX && value == floor(value) ? (int64_t)value : -1;
}

/* What is no number becomes NAN; nested values are passed over. */
static double number_of(struct json_reader *reader, enum json_token token)
{
	if (token == JSON_NUMBER)
		return json_amount_of(str_text(&reader->text)).value;
	json_skip(reader, token);
	return NAN;
}

static int read_column(struct json_slice slice, struct firefox_table *table, unsigned column)
{
	struct json_reader reader = json_reader_make(slice.at ? slice.at : "", slice.size);
	enum json_token token;
	int r = 0;

	if (json_next(&reader) == JSON_ARRAY)
		while (r == 0 && (token = json_next(&reader)) > JSON_END && token != JSON_ARRAY_END)
			r = vec_push(&table->columns[column], number_of(&reader, token));
	json_reader_fini(&reader);
	return r;
}

/* A row may end early. place: of each column in the row. */
static int read_row(struct json_reader *reader, const int64_t *place, unsigned columns,
		    struct firefox_table *table)
{
	double cells[FIREFOX_COLUMNS];
	enum json_token token;
	int r = 0;

	for (unsigned i = 0; i < columns; i++)
		cells[i] = NAN;
	for (int64_t at = 0; (token = json_next(reader)) > JSON_END && token != JSON_ARRAY_END;
	     at++) {
		double value = number_of(reader, token);

		for (unsigned i = 0; i < columns; i++)
			if (place[i] == at)
				cells[i] = value;
	}
	for (unsigned i = 0; r == 0 && i < columns; i++)
		if (place[i] >= 0)
			r = vec_push(&table->columns[i], cells[i]);
	return r;
}

static int read_rows(struct json_slice schema, struct json_slice data, const char *const *names,
		     unsigned columns, struct firefox_table *table)
{
	struct json_reader reader = json_reader_make(data.at, data.size);
	int64_t place[FIREFOX_COLUMNS];
	enum json_token token;
	double value;
	int r = 0;

	for (unsigned i = 0; i < columns; i++)
		place[i] = json_slice_number(json_slice_member(schema, names[i]), &value) &&
					   value >= 0 && value < 1000
				   ? (int64_t)value
				   : -1;
	if (json_next(&reader) == JSON_ARRAY)
		while (r == 0 && (token = json_next(&reader)) == JSON_ARRAY)
			r = read_row(&reader, place, columns, table);
	json_reader_fini(&reader);
	return r;
}

int firefox_table_read(struct json_slice slice, const char *const *names, unsigned columns,
		       struct firefox_table *ret)
{
	struct json_slice schema = {0}, data = {0}, found[FIREFOX_COLUMNS] = {0};
	struct json_member members[FIREFOX_COLUMNS + 2] = {{"schema", &schema}, {"data", &data}};
	int r = 0;

	for (unsigned i = 0; i < columns; i++)
		members[i + 2] = (struct json_member){names[i], &found[i]};
	json_slice_members(slice, members, columns + 2);
	if (schema.at && data.at)
		return read_rows(schema, data, names, columns, ret);
	for (unsigned i = 0; r == 0 && i < columns; i++)
		r = read_column(found[i], ret, i);
	return r;
}

int firefox_strings(struct firefox_document *d, struct json_slice slice, firefox_ids *ret)
{
	struct json_reader reader = json_reader_make(slice.at ? slice.at : "", slice.size);
	enum json_token token;
	uint32_t id;
	int r = 0;

	if (json_next(&reader) == JSON_ARRAY)
		while (r == 0 && (token = json_next(&reader)) > JSON_END &&
		       token != JSON_ARRAY_END) {
			id = 0;
			if (token == JSON_STRING)
				r = strtab_intern(&d->profile->strings, str_text(&reader.text),
						  reader.text.len, &id);
			json_skip(&reader, token);
			if (r == 0)
				r = vec_push(ret, id);
		}
	json_reader_fini(&reader);
	return r;
}

static uint64_t address_of(struct json_slice slice)
{
	double value;

	return json_slice_number(slice, &value) && value >= 0 && value < 0x1p64 ? (uint64_t)value
										: 0;
}

static int text_of(struct firefox_document *d, struct json_slice slice, uint32_t *ret)
{
	*ret = 0;
	if (!slice.at || !json_slice_text(slice, &d->text))
		return str_status(&d->text);
	return strtab_intern(&d->profile->strings, str_text(&d->text), d->text.len, ret);
}

/* An ELF build id; the identifiers of other systems say nothing here. */
static int build_id_of(struct firefox_document *d, struct json_slice slice, uint32_t *ret)
{
	*ret = 0;
	if (!slice.at || !json_slice_text(slice, &d->text) || d->text.len != 40)
		return str_status(&d->text);
	for (size_t i = 0; i < d->text.len; i++) {
		if (!isxdigit((unsigned char)d->text.data[i]))
			return 0;
		d->text.data[i] = (char)tolower((unsigned char)d->text.data[i]);
	}
	return strtab_intern(&d->profile->strings, d->text.data, d->text.len, ret);
}

int firefox_libs_read(struct firefox_document *d, struct json_slice slice, firefox_libs *ret)
{
	struct json_walk walk = json_walk_make(slice);
	struct json_slice lib;
	int r = 0;

	while (r == 0 && !walk.object && json_walk_next(&walk, &lib)) {
		struct json_slice path = {0}, name = {0}, code = {0}, start = {0}, end = {0},
				  offset = {0};
		const struct json_member members[] = {{"path", &path},   {"name", &name},
						      {"codeId", &code}, {"start", &start},
						      {"end", &end},     {"offset", &offset}};
		struct firefox_lib entry = {0};

		json_slice_members(lib, members, ARRAY_LEN(members));
		entry.start = address_of(start);
		entry.end = address_of(end);
		entry.offset = address_of(offset);
		r = text_of(d, path, &entry.path);
		if (r == 0 && entry.path == 0)
			r = text_of(d, name, &entry.path);
		if (r == 0)
			r = build_id_of(d, code, &entry.build_id);
		if (r == 0)
			r = vec_push(ret, entry);
	}
	json_walk_fini(&walk);
	return r;
}

void firefox_tables_fini(struct firefox_tables *tables)
{
	firefox_table_fini(&tables->frame);
	firefox_table_fini(&tables->func);
	firefox_table_fini(&tables->stack);
	firefox_table_fini(&tables->resource);
	vec_fini(&tables->own_strings);
	vec_fini(&tables->stacks);
}
