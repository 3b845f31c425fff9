#include "base/scan.h"

#include "base/util.h"

struct scan scan_word(struct scan *s)
{
	scan_blanks(s);
	struct scan word = {s->at, s->at};
	while (word.end < s->end && !scan_blank(*word.end))
		word.end++;
	s->at = word.end;
	return word;
}

bool scan_is(struct scan s, const char *text)
{
	return scan_len(s) == strlen(text) && scan_starts(s, text);
}

bool scan_starts(struct scan s, const char *text)
{
	size_t len = strlen(text);
	return scan_len(s) >= len && memcmp(s.at, text, len) == 0;
}

bool scan_take(struct scan *s, const char *text)
{
	if (!scan_starts(*s, text))
		return false;
	s->at += strlen(text);
	return true;
}

bool scan_skip(struct scan *s, const char *text)
{
	struct scan rest = *s;
	scan_blanks(&rest);
	if (!scan_take(&rest, text))
		return false;
	*s = rest;
	return true;
}

const char *scan_find(struct scan s, const char *text)
{
	return s.at == s.end ? NULL : memmem(s.at, scan_len(s), text, strlen(text));
}

bool scan_u64(struct scan *s, uint64_t *ret)
{
	struct scan rest = *s;
	scan_blanks(&rest);
	uint64_t value = 0;
	const char *first = rest.at;
	for (; rest.at < rest.end && *rest.at >= '0' && *rest.at <= '9'; rest.at++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*rest.at - '0'), &value))
			return false;
	}
	if (rest.at == first)
		return false;
	*s = rest;
	*ret = value;
	return true;
}

bool scan_i64(struct scan *s, int64_t *ret)
{
	struct scan rest = *s;
	bool negative = scan_take(&rest, "-");
	uint64_t value;
	if (rest.at == rest.end || scan_blank(*rest.at) || !scan_u64(&rest, &value) ||
	    value > INT64_MAX)
		return false;
	*s = rest;
	*ret = negative ? -(int64_t)value : (int64_t)value;
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

bool scan_hex(struct scan *s, uint64_t *ret)
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
	s->at = at;
	*ret = value;
	return true;
}

bool scan_address(struct scan *s, uint64_t *ret)
{
	struct scan rest = *s;
	if (!scan_take(&rest, "0x") || !scan_hex(&rest, ret))
		return false;
	*s = rest;
	return true;
}

bool scan_nano(struct scan *s, int64_t *ret)
{
	struct scan rest = *s;
	scan_blanks(&rest);
	bool negative = rest.at < rest.end && *rest.at == '-';
	if (negative)
		rest.at++;
	uint64_t whole;
	if (rest.at == rest.end || scan_blank(*rest.at) || !scan_u64(&rest, &whole) ||
	    whole > INT64_MAX / NSEC_PER_SEC - 1)
		return false;
	uint64_t value = whole * NSEC_PER_SEC;
	if (rest.at < rest.end && *rest.at == '.') {
		uint64_t place = NSEC_PER_SEC / 10;
		for (rest.at++; rest.at < rest.end && *rest.at >= '0' && *rest.at <= '9';
		     rest.at++) {
			value += place * (uint64_t)(*rest.at - '0');
			place /= 10;
		}
	}
	s->at = rest.at;
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

const char *scan_copy(struct scan s, char *buffer, size_t bytes)
{
	size_t len = MIN(scan_len(s), bytes - 1);
	memcpy(buffer, s.at, len);
	buffer[len] = 0;
	return buffer;
}
