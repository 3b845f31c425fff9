/*
 * Parsing of command lines against option tables, and their printed forms. getopt_long does the
 * splitting; the tables are turned into its form for each call.
 */
#include "cmd/option.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "cmd/command.h"

#define OPTIONS_MAX 128
#define VALUE_BASE  256 /* getopt value of row i's long name */
#define HELP_VALUE  (VALUE_BASE + OPTIONS_MAX)
#define HELP_COLUMN 28
#define HELP_WIDTH  96

struct getopt_tables {
	struct option longs[OPTIONS_MAX + 2];
	char shorts[3 * OPTIONS_MAX + 4];
};

static bool arg_is_optional(const struct option_spec *spec)
{
	return spec->arg && spec->arg[0] == '[';
}

static void build_tables(const struct command *command, struct getopt_tables *tables)
{
	char *s = tables->shorts;
	size_t n = 0;

	if (command->stops_at_operand)
		*s++ = '+';
	*s++ = ':';
	for (size_t i = 0; command->options[i].kind != OPTION_END; i++) {
		const struct option_spec *spec = &command->options[i];
		int has_arg = arg_is_optional(spec) ? optional_argument
			      : spec->arg           ? required_argument
						    : no_argument;

		if (spec->short_name) {
			*s++ = spec->short_name;
			for (int colon = 0; colon < has_arg; colon++)
				*s++ = ':';
		}
		if (spec->name)
			tables->longs[n++] =
				(struct option){spec->name, has_arg, NULL, VALUE_BASE + (int)i};
	}
	*s = '\0';
	tables->longs[n++] = (struct option){"help", no_argument, NULL, HELP_VALUE};
	tables->longs[n] = (struct option){0};
}

static const struct option_spec *spec_of(const struct command *command, int value)
{
	if (value >= VALUE_BASE)
		return &command->options[value - VALUE_BASE];
	for (const struct option_spec *spec = command->options; spec->kind != OPTION_END; spec++)
		if (spec->short_name == value)
			return spec;
	return NULL;
}

static int store_number(const struct option_spec *spec, void *slot, const char *value,
			struct err *err)
{
	unsigned long long number = 0;
	double real = 0;
	int r = -EINVAL;

	switch (spec->kind) {
	case OPTION_U64:
		r = parse_u64(value, 0, &number);
		break;
	case OPTION_DURATION:
		r = parse_duration_ns(value, spec->unit ? spec->unit : NSEC_PER_SEC, &number);
		break;
	case OPTION_SIZE:
		r = parse_size(value, &number);
		break;
	case OPTION_DOUBLE:
		r = parse_double(value, &real);
		if (r == 0)
			*(double *)slot = real;
		break;
	default:
		break;
	}
	if (r == -ERANGE)
		return err_set(err, r, "'%s' is too large", value);
	if (r < 0)
		return err_set(err, r, "'%s' is not %s", value,
			       spec->kind == OPTION_DURATION ? "a time such as 10s, 250ms or 50us"
			       : spec->kind == OPTION_SIZE   ? "a size such as 64K or 16M"
							     : "a number");
	if (spec->kind != OPTION_DOUBLE)
		*(uint64_t *)slot = number;
	return 0;
}

static int store_value(const struct option_spec *spec, void *options, const char *value,
		       struct err *err)
{
	void *slot = (char *)options + spec->offset;

	switch (spec->kind) {
	case OPTION_FLAG:
		*(bool *)slot = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)slot = value ? value : "";
		return 0;
	case OPTION_CALL:
		return spec->set(options, value, err);
	default:
		return store_number(spec, slot, value, err);
	}
}

static void fail_unknown(const struct command *command, const char *given)
{
	const struct option_spec *nearest = NULL;
	size_t len = strcspn(given, "=");
	unsigned best = 4;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), given);
	for (const struct option_spec *spec = command->options; spec->kind != OPTION_END; spec++) {
		unsigned distance = spec->name && str_prefix(name, "--", NULL)
					    ? str_distance(name + 2, spec->name)
					    : 99;

		if (distance < best) {
			best = distance;
			nearest = spec;
		}
	}
	if (nearest)
		cmd_failf(command, "unknown option %s; did you mean --%s?", name, nearest->name);
	else
		cmd_failf(command, "unknown option %s; see 'culprit %s --help'", name,
			  command->name);
	exit(EXIT_FAILED);
}

static void spec_label(const struct option_spec *spec, char *buf, size_t size)
{
	if (spec->name)
		snprintf(buf, size, "--%s", spec->name);
	else
		snprintf(buf, size, "-%c", spec->short_name);
}

int options_parse(const struct command *command, void *options, int argc, char **argv)
{
	struct getopt_tables tables;
	struct err err = {0};
	char label[80];
	int value;

	build_tables(command, &tables);
	opterr = 0;
	optind = 0;
	while ((value = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		const struct option_spec *spec = value == ':' ? spec_of(command, optopt) : NULL;

		if (value == HELP_VALUE) {
			options_print_help(command);
			exit(fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED);
		}
		if (value == ':' && spec) {
			spec_label(spec, label, sizeof(label));
			cmd_failf(command, "%s needs %s", label, spec->arg);
			exit(EXIT_FAILED);
		}
		if (value == '?' || value == ':') {
			const char *given = argv[optind - 1];
			char letter[3] = {'-', (char)optopt, '\0'};

			fail_unknown(command, optopt > 0 && optopt < VALUE_BASE && given[1] != '-'
						      ? letter
						      : given);
		}
		spec = spec_of(command, value);
		if (spec && store_value(spec, options, optarg, &err) < 0) {
			spec_label(spec, label, sizeof(label));
			cmd_failf(command, "%s: %s", label, err.text);
			exit(EXIT_FAILED);
		}
	}
	return optind;
}

/* Prints text wrapped at HELP_WIDTH, continuation lines indented by column. */
static void print_wrapped(const char *text, size_t column)
{
	size_t at = column;

	while (*text != '\0') {
		size_t word = strcspn(text, " \n");

		if (at > column && at + 1 + word > HELP_WIDTH) {
			printf("\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			putchar(' ');
			at++;
		}
		printf("%.*s", (int)word, text);
		at += word;
		text += word;
		if (*text == '\n') {
			printf("\n%*s", (int)column, "");
			at = column;
			text++;
		}
		while (*text == ' ')
			text++;
	}
	putchar('\n');
}

/* "-F, --frequency HZ", "--call-graph[=MODE]" */
static void option_usage(const struct option_spec *spec, char *buf, size_t size)
{
	char shorts[8] = "", arg[64] = "";

	if (spec->short_name)
		snprintf(shorts, sizeof(shorts), "-%c%s", spec->short_name, spec->name ? ", " : "");
	if (arg_is_optional(spec))
		snprintf(arg, sizeof(arg), spec->name ? "[=%.*s]" : "[%.*s]",
			 (int)strlen(spec->arg) - 2, spec->arg + 1);
	else if (spec->arg)
		snprintf(arg, sizeof(arg), " %s", spec->arg);
	snprintf(buf, size, "%s%s%s%s", shorts, spec->name ? "--" : "",
		 spec->name ? spec->name : "", arg);
}

void options_print_help(const struct command *command)
{
	char usage[128];

	printf("Usage: culprit %s %s\n\n", command->name, command->args);
	print_wrapped(command->summary, 0);
	if (command->details) {
		putchar('\n');
		print_wrapped(command->details, 0);
	}
	if (command->options[0].kind != OPTION_HEADING)
		printf("\nOptions:\n");
	for (const struct option_spec *spec = command->options; spec->kind != OPTION_END; spec++) {
		if (spec->kind == OPTION_HEADING) {
			printf("\n%s:\n", spec->help);
			continue;
		}
		option_usage(spec, usage, sizeof(usage));
		printf("  %-*s", HELP_COLUMN - 2, usage);
		if (strlen(usage) >= HELP_COLUMN - 2)
			printf("\n%*s", HELP_COLUMN, "");
		print_wrapped(spec->help, HELP_COLUMN);
	}
	printf("  %-*sPrint this help.\n", HELP_COLUMN - 2, "--help");
	if (command->examples)
		printf("\nExamples:\n%s", command->examples);
	printf("\nExit status:\n%s", command->exits ? command->exits : "0 done, 1 failure.\n");
}

/* Escapes what roff would interpret. */
static void roff_text(const char *text)
{
	bool line_start = true;

	for (; *text != '\0'; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
		line_start = *text == '\n';
	}
}

static void roff_paragraphs(const char *text)
{
	const char *gap;

	while ((gap = strstr(text, "\n\n")) != NULL) {
		CLEANUP_FREE char *paragraph = strndup(text, (size_t)(gap - text));

		roff_text(paragraph ? paragraph : "");
		printf("\n.PP\n");
		text = gap + 2;
	}
	roff_text(text);
	putchar('\n');
}

void options_print_roff(const struct command *command)
{
	char usage[128];

	printf(".TH CULPRIT\\-%s 1 \"\" \"culprit %s\" \"User Commands\"\n.SH NAME\nculprit\\-",
	       command->name, CULPRIT_VERSION);
	roff_text(command->name);
	printf(" \\- ");
	roff_text(command->summary);
	printf("\n.SH SYNOPSIS\n.B culprit ");
	roff_text(command->name);
	putchar(' ');
	roff_text(command->args);
	putchar('\n');
	if (command->details) {
		printf(".SH DESCRIPTION\n");
		roff_paragraphs(command->details);
	}
	printf(".SH OPTIONS\n");
	for (const struct option_spec *spec = command->options; spec->kind != OPTION_END; spec++) {
		if (spec->kind == OPTION_HEADING) {
			printf(".SS ");
			roff_text(spec->help);
			putchar('\n');
			continue;
		}
		option_usage(spec, usage, sizeof(usage));
		printf(".TP\n.B ");
		roff_text(usage);
		putchar('\n');
		roff_text(spec->help);
		putchar('\n');
	}
	printf(".TP\n.B \\-\\-help\nPrint this help.\n");
	if (command->examples) {
		printf(".SH EXAMPLES\n.nf\n");
		roff_text(command->examples);
		printf(".fi\n");
	}
	printf(".SH \"EXIT STATUS\"\n");
	roff_text(command->exits ? command->exits : "0 done, 1 failure.\n");
	printf(".SH \"SEE ALSO\"\n.BR culprit (1)\n");
}
