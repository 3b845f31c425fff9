#include "base/json-read.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* What may come next. */
enum state {
	WANT_VALUE,
	WANT_FIRST_KEY,   /* or } */
	WANT_FIRST_VALUE, /* or ] */
	WANT_SEPARATOR,   /* , or the closing bracket */
	WANT_NOTHING,     /* the top value is complete */
};

struct json_reader json_reader_make(const void *data, size_t size)
{
	struct json_reader reader = {.data = data, .size = size, .state = WANT_VALUE};

	/* A byte order mark is not JSON, but common. */
	if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
		reader.pos = 3;
	return reader;
}

void json_reader_fini(struct json_reader *reader)
{
	str_fini(&reader->text);
}

static enum json_token bad(struct json_reader *r, const char *problem)
{
	if (!r->problem)
		r->problem = problem;
	return JSON_BAD;
}

static void skip_blanks(struct json_reader *r)
{
	while (r->pos < r->size && (r->data[r->pos] == ' ' || r->data[r->pos] == '\t' ||
				    r->data[r->pos] == '\n' || r->data[r->pos] == '\r'))
		r->pos++;
}

static int peek(struct json_reader *r)
{
	skip_blanks(r);
	return r->pos < r->size ? (unsigned char)r->data[r->pos] : -1;
}

static void put_utf8(struct str *out, uint32_t c)
{
	if (c < 0x80) {
		str_putc(out, (char)c);
	} else if (c < 0x800) {
		str_putc(out, (char)(0xc0 | c >> 6));
		str_putc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		str_putc(out, (char)(0xe0 | c >> 12));
		str_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		str_putc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		str_putc(out, (char)(0xf0 | c >> 18));
		str_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		str_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		str_putc(out, (char)(0x80 | (c & 0x3f)));
	}
}

/* Four hexadecimal digits at pos, or -1. */
static int hex4(const struct json_reader *r, size_t pos)
{
	int value = 0;

	if (r->size - pos < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		int c = (unsigned char)r->data[pos + i];

		if (!isxdigit(c))
			return -1;
		value = value << 4 | (isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

/* Behind "\u". */
static bool read_unicode(struct json_reader *r)
{
	int high = hex4(r, r->pos), low;
	uint32_t code;

	if (high < 0)
		return false;
	r->pos += 4;
	code = (uint32_t)high;
	if (high >= 0xd800 && high < 0xdc00 && r->size - r->pos >= 6 && r->data[r->pos] == '\\' &&
	    r->data[r->pos + 1] == 'u') {
		low = hex4(r, r->pos + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 +
			       (((uint32_t)high - 0xd800) << 10 | ((uint32_t)low - 0xdc00));
			r->pos += 6;
		}
	}
	put_utf8(&r->text, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
	return true;
}

static bool read_escape(struct json_reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	char c;

	if (r->pos >= r->size)
		return false;
	c = r->data[r->pos++];
	if (c == 'u')
		return read_unicode(r);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return false;
	str_putc(&r->text, to[at - from]);
	return true;
}

/* From the opening quote. */
static enum json_token read_string(struct json_reader *r, enum json_token token)
{
	str_clear(&r->text);
	r->pos++;
	for (;;) {
		size_t start = r->pos;

		while (r->pos < r->size && r->data[r->pos] != '"' && r->data[r->pos] != '\\' &&
		       (unsigned char)r->data[r->pos] >= 0x20)
			r->pos++;
		str_append(&r->text, r->data + start, r->pos - start);
		if (r->pos >= r->size)
			return bad(r, "the text is never closed");
		if ((unsigned char)r->data[r->pos] < 0x20)
			return bad(r, "a control character in a text");
		if (r->data[r->pos++] == '"')
			break;
		if (!read_escape(r))
			return bad(r, "wrong escape in a text");
	}
	return str_status(&r->text) < 0 ? bad(r, "out of memory") : token;
}

static size_t digits(const struct json_reader *r, size_t pos)
{
	size_t start = pos;

	while (pos < r->size && isdigit((unsigned char)r->data[pos]))
		pos++;
	return pos - start;
}

static enum json_token read_number(struct json_reader *r)
{
	size_t start = r->pos, at = r->pos, n;

	at += r->data[at] == '-';
	n = digits(r, at);
	if (n == 0 || (n > 1 && r->data[at] == '0'))
		return bad(r, "wrong number");
	at += n;
	if (at < r->size && r->data[at] == '.') {
		n = digits(r, at + 1);
		if (n == 0)
			return bad(r, "wrong number");
		at += 1 + n;
	}
	if (at < r->size && (r->data[at] == 'e' || r->data[at] == 'E')) {
		at++;
		at += at < r->size && (r->data[at] == '+' || r->data[at] == '-');
		n = digits(r, at);
		if (n == 0)
			return bad(r, "wrong number");
		at += n;
	}
	str_clear(&r->text);
	str_append(&r->text, r->data + start, at - start);
	r->pos = at;
	return str_status(&r->text) < 0 ? bad(r, "out of memory") : JSON_NUMBER;
}

static enum json_token read_word(struct json_reader *r)
{
	static const struct {
		const char *word;
		enum json_token token;
	} words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].word);

		if (r->size - r->pos >= len && memcmp(r->data + r->pos, words[i].word, len) == 0) {
			r->pos += len;
			return words[i].token;
		}
	}
	return bad(r, "expected a value");
}

static enum json_token open_nest(struct json_reader *r, bool object)
{
	if (r->depth == JSON_DEPTH_MAX)
		return bad(r, "nested too deep");
	r->in_object[r->depth++] = object;
	r->pos++;
	r->state = object ? WANT_FIRST_KEY : WANT_FIRST_VALUE;
	return object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_token close_nest(struct json_reader *r)
{
	bool object = r->in_object[--r->depth];

	r->pos++;
	r->state = r->depth ? WANT_SEPARATOR : WANT_NOTHING;
	return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static enum json_token read_value(struct json_reader *r)
{
	int c = peek(r);
	enum json_token token;

	if (c == '{' || c == '[')
		return open_nest(r, c == '{');
	if (c == '"')
		token = read_string(r, JSON_STRING);
	else if (c == '-' || (c >= 0 && isdigit(c)))
		token = read_number(r);
	else if (c < 0)
		return bad(r, "ends where a value is expected");
	else
		token = read_word(r);
	r->state = r->depth ? WANT_SEPARATOR : WANT_NOTHING;
	return token;
}

static enum json_token read_key(struct json_reader *r)
{
	enum json_token token;

	if (peek(r) != '"')
		return bad(r, "expected a key");
	token = read_string(r, JSON_KEY);
	if (token == JSON_BAD)
		return token;
	if (peek(r) != ':')
		return bad(r, "expected ':'");
	r->pos++;
	r->state = WANT_VALUE;
	return token;
}

/* Behind a value inside an object or array. */
static enum json_token read_separator(struct json_reader *r)
{
	bool object = r->in_object[r->depth - 1];
	int c = peek(r);

	if (c == (object ? '}' : ']'))
		return close_nest(r);
	if (c != ',')
		return bad(r, object ? "expected ',' or '}'" : "expected ',' or ']'");
	r->pos++;
	return object ? read_key(r) : read_value(r);
}

enum json_token json_next(struct json_reader *r)
{
	if (r->problem)
		return JSON_BAD;
	switch ((enum state)r->state) {
	case WANT_VALUE:
		return read_value(r);
	case WANT_FIRST_KEY:
		return peek(r) == '}' ? close_nest(r) : read_key(r);
	case WANT_FIRST_VALUE:
		return peek(r) == ']' ? close_nest(r) : read_value(r);
	case WANT_SEPARATOR:
		return read_separator(r);
	case WANT_NOTHING:
		break;
	}
	return peek(r) < 0 ? JSON_END : bad(r, "something follows the document");
}

enum json_token json_skip(struct json_reader *r, enum json_token first)
{
	unsigned depth = r->depth - 1;
	enum json_token token = first;

	if (first != JSON_OBJECT && first != JSON_ARRAY)
		return first;
	while (token > JSON_END && r->depth > depth)
		token = json_next(r);
	return token;
}

int json_reader_why(const struct json_reader *r, struct err *err)
{
	if (str_status(&r->text) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return err_set(err, -EBADMSG, "byte %zu: %s", r->pos, r->problem ? r->problem : "no error");
}
