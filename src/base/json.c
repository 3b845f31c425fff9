#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void json_newline(struct json *json)
{
	if (json->compact)
		return;
	str_putc(&json->out, '\n');
	for (unsigned i = 0; i < json->depth; i++)
		str_putc(&json->out, '\t');
}

size_t json_utf8_sequence(const void *text, size_t left)
{
	const unsigned char *p = text;
	uint32_t code;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	len = p[0] >= 0xf0 && p[0] < 0xf5   ? 4
	      : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
	      : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
					    : 0;
	if (len == 0 || len > left)
		return 0;
	code = p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3fU);
	}
	if ((len == 3 && code < 0x800) || (len == 4 && code < 0x10000) || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return len;
}

static void json_quote(struct json *json, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	str_putc(&json->out, '"');
	while (p < end) {
		const unsigned char *run = p;
		size_t n;

		while (p < end && *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
			p++;
		str_append(&json->out, run, (size_t)(p - run));
		if (p == end)
			break;
		n = json_utf8_sequence(p, (size_t)(end - p));
		if (*p == '"' || *p == '\\')
			str_printf(&json->out, "\\%c", *p);
		else if (*p == '\n')
			str_puts(&json->out, "\\n");
		else if (*p == '\t')
			str_puts(&json->out, "\\t");
		else if (*p < 0x20 || *p == 0x7f)
			str_printf(&json->out, "\\u%04x", *p);
		else if (n == 0)
			str_puts(&json->out, "\\ufffd");
		else
			str_append(&json->out, p, n);
		p += n ? n : 1;
	}
	str_putc(&json->out, '"');
}

static void json_key(struct json *json, const char *key)
{
	if (json->need_comma)
		str_putc(&json->out, ',');
	if (json->depth > 0)
		json_newline(json);
	if (key) {
		json_quote(json, key, strlen(key));
		str_puts(&json->out, json->compact ? ":" : ": ");
	}
	json->need_comma = true;
}

static void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	str_putc(&json->out, bracket);
	json->depth++;
	json->need_comma = false;
}

static void json_close(struct json *json, char bracket)
{
	bool empty = !json->need_comma;

	json->depth--;
	if (!empty)
		json_newline(json);
	str_putc(&json->out, bracket);
	json->need_comma = true;
	if (json->depth == 0)
		str_putc(&json->out, '\n');
}

void json_object(struct json *json, const char *key)
{
	json_open(json, key, '{');
}

void json_array(struct json *json, const char *key)
{
	json_open(json, key, '[');
}

void json_end_object(struct json *json)
{
	json_close(json, '}');
}

void json_end_array(struct json *json)
{
	json_close(json, ']');
}

void json_text_n(struct json *json, const char *key, const char *value, size_t len)
{
	json_key(json, key);
	json_quote(json, value, len);
}

void json_text(struct json *json, const char *key, const char *value)
{
	if (value)
		json_text_n(json, key, value, strlen(value));
	else
		json_null(json, key);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	str_printf(&json->out, "%llu", (unsigned long long)value);
}

void json_u64_if(struct json *json, const char *key, bool known, uint64_t value)
{
	if (known)
		json_u64(json, key, value);
	else
		json_null(json, key);
}

void json_i64(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	str_printf(&json->out, "%lld", (long long)value);
}

void json_double(struct json *json, const char *key, double value)
{
	char text[32];

	if (!isfinite(value)) {
		json_null(json, key);
		return;
	}
	json_key(json, key);
	/* The shortest text that reads back as the same number; always with a '.', whatever the
	 * locale. */
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	for (char *p = text; *p; p++)
		if (*p == ',')
			*p = '.';
	str_puts(&json->out, text);
}

void json_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	str_puts(&json->out, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
	json_key(json, key);
	str_puts(&json->out, "null");
}
