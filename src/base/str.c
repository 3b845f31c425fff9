#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "base/vec.h"

static int str_room(struct str *s, size_t more)
{
	if (s->status == 0 &&
	    (more >= SIZE_MAX - s->len || vec_grow(&s->data, &s->cap, s->len + more + 1, 1) < 0))
		s->status = -ENOMEM;
	return s->status;
}

void str_append(struct str *s, const void *bytes, size_t len)
{
	if (str_room(s, len) < 0)
		return;
	if (len > 0)
		memcpy(s->data + s->len, bytes, len);
	s->len += len;
	s->data[s->len] = '\0';
}

void str_puts(struct str *s, const char *text)
{
	str_append(s, text, strlen(text));
}

void str_putc(struct str *s, char c)
{
	str_append(s, &c, 1);
}

void str_vprintf(struct str *s, const char *fmt, va_list args)
{
	va_list again;
	int need;

	va_copy(again, args);
	need = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (need < 0 || str_room(s, (size_t)need) < 0)
		return;
	vsnprintf(s->data + s->len, (size_t)need + 1, fmt, args);
	s->len += (size_t)need;
}

void str_printf(struct str *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	str_vprintf(s, fmt, args);
	va_end(args);
}

void str_clear(struct str *s)
{
	s->len = 0;
	s->status = 0;
	if (s->data)
		s->data[0] = '\0';
}

void str_fini(struct str *s)
{
	free(s->data);
	*s = (struct str){0};
}

int str_status(const struct str *s)
{
	return s->status;
}

int str_take(struct str *s, char **ret_text)
{
	if (str_room(s, 0) < 0)
		return s->status;
	s->data[s->len] = '\0';
	*ret_text = s->data;
	*s = (struct str){0};
	return 0;
}

const char *str_text(const struct str *s)
{
	return s->data ?: "";
}

int str_prefix(const char *text, const char *prefix, const char **ret_rest)
{
	size_t len = strlen(prefix);

	if (strncmp(text, prefix, len) != 0)
		return 0;
	if (ret_rest)
		*ret_rest = text + len;
	return 1;
}

int str_glob(const char *pattern, const char *text)
{
	return fnmatch(pattern, text, FNM_CASEFOLD | FNM_NOESCAPE) == 0;
}

#define DISTANCE_MAX 127

unsigned str_distance(const char *a, const char *b)
{
	unsigned char rows[3][DISTANCE_MAX + 1];
	size_t la = MIN(strlen(a), (size_t)DISTANCE_MAX), lb = MIN(strlen(b), (size_t)DISTANCE_MAX);

	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned char *row = rows[i % 3], *prev = rows[(i - 1) % 3],
			      *prev2 = rows[(i + 1) % 3];

		row[0] = (unsigned char)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned best = prev[j - 1] + (a[i - 1] != b[j - 1]);

			best = MIN(best, prev[j] + 1U);
			best = MIN(best, row[j - 1] + 1U);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, prev2[j - 2] + 1U);
			row[j] = (unsigned char)best;
		}
	}
	return rows[la % 3][lb];
}

size_t str_utf8_cut(const char *s, size_t max)
{
	size_t len = strnlen(s, max + 1);

	if (len <= max)
		return len;
	len = max;
	while (len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	return len;
}

int parse_u64(const char *text, unsigned base, unsigned long long *ret)
{
	unsigned long long value;
	char *end;

	if (!text || !isxdigit((unsigned char)*text)) /* strtoull would take " -1" */
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, (int)base);
	if (*end != '\0' || end == text)
		return -EINVAL;
	if (errno == ERANGE)
		return -ERANGE;
	*ret = value;
	return 0;
}

int parse_double(const char *text, double *ret)
{
	double value;
	char *end;

	if (!text || *text == '\0')
		return -EINVAL;
	errno = 0;
	value = strtod(text, &end);
	if (*end != '\0' || !isfinite(value))
		return -EINVAL;
	*ret = value;
	return 0;
}

struct unit {
	const char *suffix;
	unsigned long long scale;
};

/* number + unit -> integer; a number with a fraction is rounded to the nearest. */
static int parse_scaled(const char *text, const struct unit *units, size_t nunits,
			unsigned long long bare, unsigned long long *ret)
{
	unsigned long long scale = bare;
	long double value;
	char *end;

	if (!text || !strchr("0123456789.", *text) || *text == '\0')
		return -EINVAL;
	value = strtold(text, &end);
	if (end == text)
		return -EINVAL;
	if (*end != '\0') {
		size_t i;

		for (i = 0; i < nunits && strcasecmp(units[i].suffix, end) != 0; i++)
			;
		if (i == nunits)
			return -EINVAL;
		scale = units[i].scale;
	}
	value *= (long double)scale;
	if (!(value < 18446744073709551615.0L))
		return -ERANGE;
	*ret = (unsigned long long)(value + 0.5L);
	return 0;
}

int parse_duration_ns(const char *text, unsigned long long bare_unit_ns, unsigned long long *ret_ns)
{
	static const struct unit units[] = {
		{"ns", 1},
		{"us", NSEC_PER_USEC},
		{"ms", NSEC_PER_MSEC},
		{"s", NSEC_PER_SEC},
		{"m", 60 * NSEC_PER_SEC},
		{"min", 60 * NSEC_PER_SEC},
		{"h", 3600 * NSEC_PER_SEC},
		{"d", 86400 * NSEC_PER_SEC},
	};

	return parse_scaled(text, units, ARRAY_LEN(units), bare_unit_ns, ret_ns);
}

int parse_size(const char *text, unsigned long long *ret_bytes)
{
	static const struct unit units[] = {
		{"B", 1},           {"K", 1ULL << 10},   {"KB", 1ULL << 10},  {"KiB", 1ULL << 10},
		{"M", 1ULL << 20},  {"MB", 1ULL << 20},  {"MiB", 1ULL << 20}, {"G", 1ULL << 30},
		{"GB", 1ULL << 30}, {"GiB", 1ULL << 30}, {"T", 1ULL << 40},
	};

	return parse_scaled(text, units, ARRAY_LEN(units), 1, ret_bytes);
}
