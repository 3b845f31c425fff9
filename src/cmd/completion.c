/*
 * culprit completion bash: a completion script made from the option tables. It is plain data (one
 * case per command), so completing does not start culprit.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/option.h"

static const struct option_spec completion_options[] = {
	OPT_END,
};

static void print_options(const struct command *command)
{
	printf("\t%s) options=\"", command->name);
	for (const struct option_spec *spec = command->options; spec->kind != OPTION_END; spec++) {
		if (spec->name)
			printf("--%s ", spec->name);
		if (spec->short_name)
			printf("-%c ", spec->short_name);
	}
	printf("--help\" ;;\n");
}

static void print_words(const struct command *command)
{
	for (const struct option_spec *spec = command->options; spec->kind != OPTION_END; spec++) {
		if (!spec->complete || spec->complete[0] == '@')
			continue;
		printf("\t");
		if (spec->name)
			printf("%s:--%s%s", command->name, spec->name, spec->short_name ? "|" : "");
		if (spec->short_name)
			printf("%s:-%c", command->name, spec->short_name);
		printf(") words=\"%s\" ;;\n", spec->complete);
	}
}

static int completion_run(const struct command *self, int argc, char **argv)
{
	int first = options_parse(self, NULL, argc, argv);

	if (first >= argc || strcmp(argv[first], "bash") != 0)
		return cmd_failf(self, "expected the shell's name; supported: bash");
	printf("_culprit()\n{\n\tlocal command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} "
	       "options= words=\n"
	       "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W \"");
	for (size_t i = 0; commands[i]; i++)
		printf("%s ", commands[i]->name);
	printf("\" -- \"$word\"))\n\t\treturn\n\tfi\n\tcase $command:${COMP_WORDS[COMP_CWORD-1]} "
	       "in\n");
	for (size_t i = 0; commands[i]; i++)
		print_words(commands[i]);
	printf("\tesac\n\tif [[ $words ]]; then\n\t\tCOMPREPLY=($(compgen -W \"$words\" -- "
	       "\"$word\"))\n\t\treturn\n\tfi\n"
	       "\tcase $command in\n");
	for (size_t i = 0; commands[i]; i++)
		print_options(commands[i]);
	printf("\tesac\n\tif [[ $word == -* ]]; then\n\t\tCOMPREPLY=($(compgen -W \"$options\" -- "
	       "\"$word\"))\n"
	       "\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n\tfi\n}\n"
	       "complete -o filenames -F _culprit culprit\n");
	return cmd_write_stdout(self, "", 0);
}

const struct command command_completion = {
	.name = "completion",
	.args = "bash",
	.summary = "print a shell completion script",
	.examples = "culprit completion bash > /etc/bash_completion.d/culprit\n\tcomplete commands "
		    "and options in new shells\n",
	.options = completion_options,
	.run = completion_run,
};
