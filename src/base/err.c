#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return code;
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
	char line[ERR_TEXT_BYTES];
	va_list args;
	int used;

	if (!err)
		return code;
	va_start(args, fmt);
	used = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof(line))
		snprintf(line + used, sizeof(line) - (size_t)used, ": %s", err_text(err, code));
	memcpy(err->text, line, sizeof(line));
	return code;
}

const char *err_text(const struct err *err, int code)
{
	if (err && err->text[0])
		return err->text;
	return strerrordesc_np(code < 0 ? -code : code) ?: "unknown error";
}
