/*
 * Pull reader of JSON (RFC 8259): one token per call, no tree, bounded memory.
 *
 *	struct json_reader r = json_reader_make(data, size);
 *	while ((token = json_next(&r)) > JSON_END) ...
 *
 * Texts are decoded to UTF-8 in r.text (valid until the next call; r.text.len bytes, which may hold
 * NULs); unpaired surrogates become U+FFFD, bytes that are not UTF-8 are passed on. Numbers keep
 * their spelling in r.text. Nesting deeper than JSON_DEPTH_MAX and anything malformed is JSON_BAD,
 * which is sticky; json_reader_why() then says what and where.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define JSON_DEPTH_MAX 64

enum json_token {
	JSON_BAD = -1,
	JSON_END = 0, /* the document is complete */
	JSON_OBJECT,  /* { */
	JSON_OBJECT_END,
	JSON_ARRAY, /* [ */
	JSON_ARRAY_END,
	JSON_KEY, /* of the value that follows */
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
};

struct json_reader {
	const char *data;
	size_t size, pos;
	struct str text;
	unsigned depth;
	uint8_t state;
	bool in_object[JSON_DEPTH_MAX];
	const char *problem; /* NULL: none */
};

struct json_reader json_reader_make(const void *data, size_t size);
void json_reader_fini(struct json_reader *reader);

enum json_token json_next(struct json_reader *reader);
/* Passes over the value whose first token was just read (a scalar: nothing to do). JSON_BAD when it
 * is malformed, else the token that closes it. */
enum json_token json_skip(struct json_reader *reader, enum json_token first);
/* The words of JSON_BAD with the byte offset: -EBADMSG, or -ENOMEM. */
int json_reader_why(const struct json_reader *reader, struct err *err);
