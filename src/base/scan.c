#include "base/scan.h"

#include "base/util.h"

struct scan scan_word(struct scan *s)
{
	while (s->at < s->end && scan_blank(*s->at))
		s->at++;
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

bool scan_skip(struct scan *s, const char *text)
{
	struct scan trimmed = {s->at, s->end};
	while (trimmed.at < trimmed.end && scan_blank(*trimmed.at))
		trimmed.at++;
	if (!scan_starts(trimmed, text))
		return false;
	s->at = trimmed.at + strlen(text);
	return true;
}

const char *scan_find(struct scan s, const char *text)
{
	return s.at == s.end ? NULL : memmem(s.at, scan_len(s), text, strlen(text));
}

bool scan_u64(struct scan *s, uint64_t *ret)
{
	const char *at = s->at;
	while (at < s->end && scan_blank(*at))
		at++;
	uint64_t value = 0;
	const char *first = at;
	for (; at < s->end && *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return false;
	}
	if (at == first)
		return false;
	s->at = at;
	*ret = value;
	return true;
}

bool scan_nano(struct scan *s, int64_t *ret)
{
	struct scan rest = *s;
	while (rest.at < rest.end && scan_blank(*rest.at))
		rest.at++;
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
