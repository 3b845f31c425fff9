/*
 * Reading a text line by line and field by field in place: nothing is copied, no text ends in NUL.
 * A scan is what is left of a text; the readers pass over what they took and leave the rest alone
 * when it is something else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct scan {
	const char *at, *end; /* at <= end */
};

struct scan_lines {
	struct scan rest;
	uint64_t number; /* of the line last given, from 1 */
};

static inline struct scan scan_of(const char *text, size_t size)
{
	return (struct scan){text, text + size};
}

static inline size_t scan_len(struct scan s)
{
	return (size_t)(s.end - s.at);
}

static inline bool scan_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n');
}

static inline void scan_blanks(struct scan *s)
{
	while (s->at < s->end && scan_blank(*s->at))
		s->at++;
}

static inline struct scan scan_trim(struct scan s)
{
	scan_blanks(&s);
	while (s.end > s.at && scan_blank(s.end[-1]))
		s.end--;
	return s;
}

/* The next line without its line break; false at the end. */
static inline bool scan_line(struct scan_lines *lines, struct scan *ret)
{
	if (lines->rest.at == lines->rest.end)
		return false;
	const char *stop = memchr(lines->rest.at, '\n', scan_len(lines->rest));
	*ret = (struct scan){lines->rest.at, stop ? stop : lines->rest.end};
	lines->rest.at = stop ? stop + 1 : lines->rest.end;
	lines->number++;
	return true;
}

/* The next line without the blanks around it. */
static inline bool scan_trimmed_line(struct scan_lines *lines, struct scan *ret)
{
	if (!scan_line(lines, ret))
		return false;
	*ret = scan_trim(*ret);
	return true;
}

/* The next word, blanks before it passed over; empty at the end. */
struct scan scan_word(struct scan *s);
bool scan_is(struct scan s, const char *text);
bool scan_starts(struct scan s, const char *text);
/* Passes over text at the very start of s; false when it is not there. */
bool scan_take(struct scan *s, const char *text);
/* The same, blanks before the text passed over too. */
bool scan_skip(struct scan *s, const char *text);
/* The first place of text in s, NULL when there is none. */
const char *scan_find(struct scan s, const char *text);
/* An unsigned decimal number at the start of s, passed over; false when there is none or it
 * overflows. */
bool scan_u64(struct scan *s, uint64_t *ret);
/* The same with a sign allowed, and with no blanks before it. */
bool scan_i64(struct scan *s, int64_t *ret);
/* Hexadecimal digits, and behind 0x, right at the start of s; passed over. */
bool scan_hex(struct scan *s, uint64_t *ret);
bool scan_address(struct scan *s, uint64_t *ret);
/* A decimal number with up to nine places as 1e-9 units ("12.5" is 12500000000); sign allowed. */
bool scan_nano(struct scan *s, int64_t *ret);
/* Copies into buffer, cut at bytes - 1, NUL-terminated. */
const char *scan_copy(struct scan s, char *buffer, size_t bytes);
