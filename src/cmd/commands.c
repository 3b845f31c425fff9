#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/command.h"

extern const struct command command_compare;
extern const struct command command_completion;
extern const struct command command_convert;
extern const struct command command_cyclic;
extern const struct command command_diff;
extern const struct command command_doctor;
extern const struct command command_flame;
extern const struct command command_help;
extern const struct command command_hwnoise;
extern const struct command command_latency;
extern const struct command command_list;
extern const struct command command_osnoise;
extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_stat;
extern const struct command command_timerlat;
extern const struct command command_topdown;
extern const struct command command_version;

const struct command *const commands[] = {
	/* Can I trust this number? */
	&command_doctor,
	/* Why is it slow? */
	&command_list,
	&command_stat,
	&command_topdown,
	&command_compare,
	/* Where is the time going? */
	&command_record,
	&command_report,
	&command_flame,
	&command_diff,
	&command_convert,
	/* When was it late, and who was in the way? */
	&command_timerlat,
	&command_osnoise,
	&command_hwnoise,
	&command_cyclic,
	&command_latency,
	/* About culprit itself. */
	&command_help,
	&command_completion,
	&command_version,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static void print_line(const struct command *self, const char *kind, const char *text)
{
	fflush(stdout);
	fprintf(stderr, "culprit%s%s: %s%s\n", self ? " " : "", self ? self->name : "", kind, text);
}

int cmd_fail(const struct command *self, int code, const struct err *err)
{
	print_line(self, "", err_text(err, code));
	return EXIT_FAILED;
}

int cmd_failf(const struct command *self, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	print_line(self, "", text);
	return EXIT_FAILED;
}

void cmd_warnf(const struct command *self, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	print_line(self, "warning: ", text);
}

int cmd_write_stdout(const struct command *self, const void *text, unsigned long size)
{
	int r;

	if (fflush(stdout) != 0)
		r = -errno;
	else
		r = fd_write_all(STDOUT_FILENO, text, size);
	if (r == -EPIPE)
		return EXIT_FAILED;
	if (r < 0)
		return cmd_failf(self, "standard output: %s", strerrordesc_np(-r));
	return EXIT_DONE;
}
