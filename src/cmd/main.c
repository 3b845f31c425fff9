/* culprit: the dispatcher. Finds the subcommand's row and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cmd/command.h"

static int unknown_command(const char *name)
{
	const char *nearest = NULL;
	unsigned best = 3;

	for (size_t i = 0; commands[i]; i++) {
		unsigned distance = str_distance(name, commands[i]->name);

		if (distance < best) {
			best = distance;
			nearest = commands[i]->name;
		}
	}
	if (nearest)
		return cmd_failf(NULL, "unknown command '%s'; did you mean '%s'?", name, nearest);
	return cmd_failf(NULL, "unknown command '%s'; see 'culprit help'", name);
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name = argc > 1 ? argv[1] : "help";

	signal(SIGPIPE, SIG_IGN);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	command = command_find(name);
	if (!command)
		return unknown_command(name);
	return command->run(command, argc > 1 ? argc - 1 : 1, argc > 1 ? argv + 1 : argv);
}
