/*
 * Error convention of the whole program.
 *
 * A function that can fail returns int: 0 or positive is success, a negative errno is failure, and
 * its ret_* outputs are untouched on failure. Where words help it also takes a struct err *, which
 * collects one line. The line is written where the failure is found and wrapped on the way up, so
 * that it reads from the general to the particular:
 *
 *	perf.data: section 3: truncated at byte 4096
 *
 * Only cmd/ prints the line. A NULL struct err * is allowed everywhere and discards the words.
 */
#pragma once

#define ERR_TEXT_BYTES 1024

struct err {
	char text[ERR_TEXT_BYTES];
};

/* Replaces the line. Returns code, so that "return err_set(err, -EINVAL, ...)" is the whole exit.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "fmt: " in front of the line; an empty line becomes "fmt: strerror(-code)". Returns code. */
int err_wrap(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The line, or strerror(-code) when nothing was said. The pointer lives as long as err. */
const char *err_text(const struct err *err, int code);
