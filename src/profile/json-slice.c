#include "profile/json-slice.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int json_slice_document(const void *data, size_t size, struct json_slice *ret, struct err *err)
{
	struct json_reader reader = json_reader_make(data, size);
	enum json_token token = json_skip(&reader, json_next(&reader));
	size_t end = reader.pos;
	int r = 0;

	if (token != JSON_BAD)
		token = json_next(&reader);
	if (token != JSON_END)
		r = json_reader_why(&reader, err);
	json_reader_fini(&reader);
	if (r == 0)
		*ret = (struct json_slice){data, end};
	return r;
}

struct json_walk json_walk_make(struct json_slice slice)
{
	struct json_walk walk = {.reader = json_reader_make(slice.at ? slice.at : "", slice.size)};

	walk.object = json_next(&walk.reader) == JSON_OBJECT;
	return walk;
}

void json_walk_fini(struct json_walk *walk)
{
	json_reader_fini(&walk->reader);
	str_fini(&walk->key);
}

/* Where the next value begins: no value begins with what may stand before it. */
static size_t value_start(const struct json_reader *reader)
{
	size_t pos = reader->pos;

	while (pos < reader->size && memchr(" \t\r\n,:", reader->data[pos], 6))
		pos++;
	return pos;
}

bool json_walk_next(struct json_walk *walk, struct json_slice *ret)
{
	struct json_reader *reader = &walk->reader;
	enum json_token token;
	size_t start;

	if (reader->depth != 1)
		return false;
	if (walk->object) {
		if (json_next(reader) != JSON_KEY)
			return false;
		str_clear(&walk->key);
		str_append(&walk->key, reader->text.data, reader->text.len);
		if (str_status(&walk->key) < 0)
			return false;
	}
	start = value_start(reader);
	token = json_next(reader);
	if (token == JSON_ARRAY_END || token <= JSON_END || json_skip(reader, token) <= JSON_END)
		return false;
	*ret = (struct json_slice){reader->data + start, reader->pos - start};
	return true;
}

void json_slice_members(struct json_slice object, const struct json_member *members, size_t count)
{
	struct json_walk walk = json_walk_make(object);
	struct json_slice value;

	while (walk.object && json_walk_next(&walk, &value))
		for (size_t i = 0; i < count; i++)
			if (strcmp(str_text(&walk.key), members[i].key) == 0)
				*members[i].to = value;
	json_walk_fini(&walk);
}

struct json_slice json_slice_member(struct json_slice object, const char *key)
{
	struct json_slice found = {0};

	json_slice_members(object, &(struct json_member){key, &found}, 1);
	return found;
}

bool json_slice_number(struct json_slice slice, double *ret)
{
	struct json_reader reader = json_reader_make(slice.at ? slice.at : "", slice.size);
	bool is = json_next(&reader) == JSON_NUMBER;

	if (is)
		*ret = strtod(str_text(&reader.text), NULL);
	json_reader_fini(&reader);
	return is;
}

bool json_slice_text(struct json_slice slice, struct str *ret)
{
	struct json_reader reader = json_reader_make(slice.at ? slice.at : "", slice.size);
	enum json_token token = json_next(&reader);

	str_clear(ret);
	if (token == JSON_STRING || token == JSON_NUMBER)
		str_append(ret, reader.text.data, reader.text.len);
	json_reader_fini(&reader);
	return token == JSON_STRING || token == JSON_NUMBER;
}

struct json_amount json_amount_of(const char *text)
{
	struct json_amount amount = {0};
	char *end;

	if (!strpbrk(text, ".eE")) {
		errno = 0;
		amount.whole = strtoll(text, &end, 10);
		amount.is_whole = errno == 0;
		amount.value = (double)amount.whole;
	}
	if (!amount.is_whole)
		amount.value = strtod(text, NULL);
	return amount;
}

bool json_carry_add(struct json_carry *carry, struct json_amount amount, int64_t *ret)
{
	double scaled = amount.value * carry->scale + carry->rest, rounded = round(scaled);

	if (amount.is_whole && carry->scale == 1 && carry->rest == 0) {
		*ret = amount.whole;
		return true;
	}
	if (!isfinite(rounded) || fabs(rounded) >= 0x1p63)
		return false;
	carry->rest = scaled - rounded;
	*ret = (int64_t)rounded;
	return true;
}

unsigned json_top_keys(const void *data, size_t size, const char *const *keys, unsigned count)
{
	struct json_reader reader = json_reader_make(size ? data : "", size);
	unsigned found = 0;

	if (json_next(&reader) != JSON_OBJECT) {
		json_reader_fini(&reader);
		return 0;
	}
	while (found != (1u << count) - 1 && json_next(&reader) == JSON_KEY) {
		for (unsigned i = 0; i < count; i++)
			if (strcmp(str_text(&reader.text), keys[i]) == 0)
				found |= 1u << i;
		if (found == (1u << count) - 1 ||
		    json_skip(&reader, json_next(&reader)) == JSON_BAD)
			break;
	}
	json_reader_fini(&reader);
	return found;
}
