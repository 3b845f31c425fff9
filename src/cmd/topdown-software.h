/* Shared by topdown-software.c (watching) and topdown-accounts.c (what the kernel accounts for). */
#pragma once

#include "cmd/topdown.h"
#include "cmd/workload.h"

/* Sums since some start; seconds and counts. NaN: not known. */
struct accounts {
	double wall, user, system, idle, waiting, steal;
	double minor, major, voluntary, preempted, switches;
};

struct accounts unknown_accounts(void);
/* The machine's since it was started; unknown when /proc/stat cannot be read. */
void accounts_of_machine(struct accounts *ret);
/* Of the processes of -p, of the machine with -a, else of a command that runs and its descendants.
 */
struct accounts accounts_now(const struct topdown_job *job, int command);
/* A command that ended: the kernel's own sums, ended children that were waited for included. waited
 * and steal in seconds. */
struct accounts accounts_of_command(const struct workload *work, double waited, double steal);
/* Processes that ended take their numbers with them: no difference is below 0. */
struct accounts accounts_between(const struct accounts *before, const struct accounts *now);
