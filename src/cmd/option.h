/*
 * Options as data. One row per option serves the parser, --help, the man page and the completion,
 * so they cannot disagree. A command keeps its values in a struct of its own; rows point into it by
 * offset.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum option_kind {
	OPTION_END,      /* ends the table */
	OPTION_HEADING,  /* only help: starts a section in --help and the man page */
	OPTION_FLAG,     /* bool: true when given */
	OPTION_TEXT,     /* const char * */
	OPTION_U64,      /* uint64_t, 0x allowed */
	OPTION_DOUBLE,   /* double */
	OPTION_DURATION, /* uint64_t nanoseconds; a bare number is in unit (default: seconds) */
	OPTION_SIZE,     /* uint64_t bytes; K M G allowed */
	OPTION_CALL,     /* set() decides; value is NULL when an optional argument is left out */
};

struct option_spec {
	enum option_kind kind;
	char short_name;  /* 0: none */
	const char *name; /* long name without dashes, NULL: none */
	const char *arg;  /* placeholder; in brackets when optional ("[MODE]"); NULL for flags */
	const char *help; /* full sentences are welcome; wrapped when printed */
	size_t offset;    /* of the value in the command's options struct */
	uint64_t unit;    /* OPTION_DURATION: nanoseconds of a bare number; 0: one second */
	const char *complete; /* words for completion, separated by blanks; "@file" or "@command";
				 NULL: none */
	int (*set)(void *options, const char *value, struct err *err);
};

#define OPT_HEADING(help_)                              \
	{                                               \
		.kind = OPTION_HEADING, .help = (help_) \
	}
#define OPT_END                    \
	{                          \
		.kind = OPTION_END \
	}
#define OPT_FLAG(s, l, type, member, help_)                                  \
	{                                                                    \
		OPTION_FLAG, (s), (l), NULL, (help_), offsetof(type, member) \
	}
#define OPT_TEXT(s, l, a, type, member, help_)                              \
	{                                                                   \
		OPTION_TEXT, (s), (l), (a), (help_), offsetof(type, member) \
	}
#define OPT_U64(s, l, a, type, member, help_)                              \
	{                                                                  \
		OPTION_U64, (s), (l), (a), (help_), offsetof(type, member) \
	}
#define OPT_DOUBLE(s, l, a, type, member, help_)                              \
	{                                                                     \
		OPTION_DOUBLE, (s), (l), (a), (help_), offsetof(type, member) \
	}
#define OPT_SIZE(s, l, a, type, member, help_)                              \
	{                                                                   \
		OPTION_SIZE, (s), (l), (a), (help_), offsetof(type, member) \
	}
#define OPT_DURATION(s, l, a, type, member, unit_, help_)                                \
	{                                                                                \
		OPTION_DURATION, (s), (l), (a), (help_), offsetof(type, member), (unit_) \
	}
#define OPT_CALL(s, l, a, set_, help_)                                                            \
	{                                                                                         \
		.kind = OPTION_CALL, .short_name = (s), .name = (l), .arg = (a), .help = (help_), \
		.set = (set_)                                                                     \
	}

struct command;

/*
 * Parses argv[1..] into options (filled with defaults by the caller). Returns the index of the
 * first operand. A command with stops_at_operand ends at the first operand ("record ls -l"); "--"
 * always ends.
 * --help prints the help and exits 0; a wrong option prints one line with the nearest right one and
 * exits 1.
 */
int options_parse(const struct command *command, void *options, int argc, char **argv);

/* Prints --help (for people) or the man page (roff) to stdout. */
void options_print_help(const struct command *command);
void options_print_roff(const struct command *command);
