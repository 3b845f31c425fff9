/* The small scanners of the text formats. No text here ends in NUL. */
#include <string.h>

#include "profile/legacy-internal.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

void span_blanks(struct span *s)
{
	while (s->at < s->end && is_blank(*s->at))
		s->at++;
}

void span_trim(struct span *s)
{
	span_blanks(s);
	while (s->end > s->at && is_blank(s->end[-1]))
		s->end--;
}

bool span_is_empty(const struct span *s)
{
	return s->at == s->end;
}

bool next_line(struct line_reader *reader, struct span *ret_line)
{
	const char *end;

	if (reader->at == reader->end)
		return false;
	end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
	*ret_line = (struct span){reader->at, end ? end : reader->end};
	reader->at = end ? end + 1 : reader->end;
	reader->number++;
	span_trim(ret_line);
	return true;
}

bool span_starts(const struct span *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

bool span_word(struct span *s, const char *word)
{
	if (!span_starts(s, word))
		return false;
	s->at += strlen(word);
	return true;
}

bool span_has(const struct span *s, const char *text)
{
	return memmem(s->at, (size_t)(s->end - s->at), text, strlen(text)) != NULL;
}

bool span_i64(struct span *s, int64_t *ret)
{
	const char *at = s->at;
	bool negative = at < s->end && *at == '-';
	int64_t value = 0;

	at += negative;
	if (at == s->end || *at < '0' || *at > '9')
		return false;
	for (; at < s->end && *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *at - '0', &value))
			return false;
	*ret = negative ? -value : value;
	s->at = at;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool span_hex(struct span *s, uint64_t *ret)
{
	const char *at = s->at;
	uint64_t value = 0;

	for (; at < s->end && hex_digit(*at) >= 0; at++) {
		if (value >> 60 != 0)
			return false;
		value = value << 4 | (uint64_t)hex_digit(*at);
	}
	if (at == s->at)
		return false;
	*ret = value;
	s->at = at;
	return true;
}

bool span_address(struct span *s, uint64_t *ret)
{
	struct span rest = *s;

	if (!span_word(&rest, "0x") || !span_hex(&rest, ret))
		return false;
	*s = rest;
	return true;
}
