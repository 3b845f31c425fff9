/*
 * A growable byte string, always NUL-terminated once anything was appended. Zero-initialized is
 * empty. Failure (-ENOMEM) is sticky: later appends do nothing, str_status() tells once at the end.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct str {
	char *data;
	size_t len, cap;
	int status;
};

void str_append(struct str *s, const void *bytes, size_t len);
void str_puts(struct str *s, const char *text);
void str_putc(struct str *s, char c);
void str_printf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vprintf(struct str *s, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
void str_clear(struct str *s);
void str_fini(struct str *s);
/* 0, or -ENOMEM when an append was lost. */
int str_status(const struct str *s);
/* Gives the text away (never NULL on success, "" when empty); s is empty afterwards. */
int str_take(struct str *s, char **ret_text);
/* The text so far, "" when empty. */
const char *str_text(const struct str *s);

/* True when text starts with prefix; *ret_rest (may be NULL) then points behind it. */
int str_prefix(const char *text, const char *prefix, const char **ret_rest);

/* Shell-like match of * ? and [set] over the whole text, ASCII case ignored. */
int str_glob(const char *pattern, const char *text);

/* Edit distance (insert, delete, replace, swap of neighbours) for "did you mean"; texts over 127
 * bytes are cut there. */
unsigned str_distance(const char *a, const char *b);

/* The bytes of s that fit in max without cutting a UTF-8 character. */
size_t str_utf8_cut(const char *s, size_t max);

/*
 * Parsers of command-line quantities: whole text or -EINVAL; overflow is -ERANGE.
 * Durations take ns us ms s m h (a bare number is in bare_unit_ns); sizes take K M G T (powers of
 * 1024).
 */
int parse_u64(const char *text, unsigned base, unsigned long long *ret);
int parse_double(const char *text, double *ret);
int parse_duration_ns(const char *text, unsigned long long bare_unit_ns,
		      unsigned long long *ret_ns);
int parse_size(const char *text, unsigned long long *ret_bytes);
