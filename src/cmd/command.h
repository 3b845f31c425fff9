/*
 * The table of subcommands: one row and one file each. To add one: write src/cmd/NAME.c with a
 * "const struct command command_NAME", add it to commands[] in commands.c, to src/cmd/meson.build,
 * and write tests/cli/test-NAME.sh that exercises every option.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct option_spec;

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_THRESHOLD = 2,  /* threshold or regression found */
	EXIT_INCOMPLETE = 3, /* the result stands, but data is missing */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

struct command {
	const char *name;
	const char *args;    /* synopsis behind the name: "[OPTIONS] -- COMMAND [ARG...]" */
	const char *summary; /* one line, no full stop */
	const char *details; /* paragraphs of --help and the man page, separated by an empty line */
	const char *examples; /* "COMMAND LINE\n\twhat it does\n" repeated */
	const char
		*exits; /* exit status where it differs from 0 done, 1 failure; NULL: it does not */
	const struct option_spec *options;
	bool stops_at_operand;
	/* The process's exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* All subcommands, ended by NULL, in the order of the overview. */
extern const struct command *const commands[];

const struct command *command_find(const char *name);

/* Prints "culprit NAME: text" to stderr and returns EXIT_FAILED; for "return cmd_fail(...)". */
int cmd_fail(const struct command *self, int code, const struct err *err);
/* The same with words of the command's own. */
int cmd_failf(const struct command *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A remark that does not end the command: "culprit NAME: warning: text". */
void cmd_warnf(const struct command *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes a finished document to stdout; EXIT_DONE, or EXIT_FAILED with a message when it did not
 * arrive (EPIPE, from "| head", is silent). */
int cmd_write_stdout(const struct command *self, const void *text, unsigned long size);
