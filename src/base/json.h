/*
 * Streaming JSON writer. Commas, nesting, indentation and escaping are its business. Text that is
 * not UTF-8 and control bytes are escaped (each invalid byte becomes U+FFFD), so the output always
 * parses. A key is given inside objects and NULL inside arrays. Output is buffered in a struct str.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct json {
	struct str out;
	unsigned depth;
	bool need_comma, compact;
};

/* Length of the UTF-8 sequence at text (at most left bytes, left > 0), 0 when it is not one. */
size_t json_utf8_sequence(const void *text, size_t left);

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_end_array(struct json *json);
void json_text(struct json *json, const char *key, const char *value); /* NULL: null */
void json_text_n(struct json *json, const char *key, const char *value, size_t len);
void json_u64(struct json *json, const char *key, uint64_t value);
void json_u64_if(struct json *json, const char *key, bool known, uint64_t value); /* else null */
void json_i64(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value); /* not finite: null */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
