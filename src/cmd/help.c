/* culprit help [COMMAND]: the overview, or one command's help. --roff prints the man page's source.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/option.h"

struct help_options {
	bool roff;
};

static const struct option_spec help_options[] = {
	OPT_FLAG(0, "roff", struct help_options, roff, "Print the source of the man page instead."),
	OPT_END,
};

static void print_overview(void)
{
	printf("culprit: why a Linux machine is slow, where the time goes, when it was late and "
	       "who was in the way\n\n"
	       "Usage: culprit COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; commands[i]; i++)
		printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n'culprit COMMAND --help' explains one command.\n");
}

static void print_overview_roff(void)
{
	printf(".TH CULPRIT 1 \"\" \"culprit %s\" \"User Commands\"\n.SH NAME\nculprit \\- why a "
	       "Linux machine is slow, "
	       "where the time goes, when it was late and who was in the way\n.SH SYNOPSIS\n.B "
	       "culprit\n.I COMMAND\n"
	       "[OPTIONS]\n.SH COMMANDS\n",
	       CULPRIT_VERSION);
	for (size_t i = 0; commands[i]; i++)
		printf(".TP\n.BR culprit\\-%s (1)\n%s\n", commands[i]->name, commands[i]->summary);
}

static int help_run(const struct command *self, int argc, char **argv)
{
	struct help_options options = {0};
	int first = options_parse(self, &options, argc, argv);
	const struct command *command;

	if (first >= argc) {
		if (options.roff)
			print_overview_roff();
		else
			print_overview();
		return cmd_write_stdout(self, "", 0);
	}
	command = command_find(argv[first]);
	if (!command)
		return cmd_failf(self, "no command '%s'", argv[first]);
	if (options.roff)
		options_print_roff(command);
	else
		options_print_help(command);
	return cmd_write_stdout(self, "", 0);
}

const struct command command_help = {
	.name = "help",
	.args = "[--roff] [COMMAND]",
	.summary = "explain culprit or one of its commands",
	.options = help_options,
	.run = help_run,
};
