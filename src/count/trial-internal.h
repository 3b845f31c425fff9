/* Trials of counters on this very thread: shared by plan.c and trial.c. */
#pragma once

#include <stdbool.h>

#include "count/ops.h"
#include "count/set.h"

struct trial {
	struct count_set *set;
	const struct counter_ops *ops;
	void *ctx;
};

/* Lets the trial's few microseconds pass. */
void trial_wait(const struct trial *t);
/* Opens events as one group on this thread. The leader's descriptor, or the negative errno and, in
 * *ret_failed, how many members had been tried. */
int trial_open(const struct trial *t, const unsigned *members, unsigned len, bool pinned,
	       bool enabled, int *fds, unsigned *ret_failed);
void trial_close(const struct trial *t, const int *fds, unsigned len);
enum trial_run {
	TRIAL_NEVER,
	TRIAL_PARTLY,
	TRIAL_ALWAYS
};
/* How much of the time it was enabled this leader has run so far. */
enum trial_run trial_run_of(const struct trial *t, int fd);
/* Did this leader run at all? Enough for a group that is the only one taking turns. */
bool trial_ran(const struct trial *t, int fd);
/* Can these events run as one group, beside what is open? */
bool trial_group_fits(const struct trial *t, const unsigned *members, unsigned len, bool pinned);
/* The same, for counters that another user holds at the moment: waits some turns of the kernel, up
 * to 20 ms. */
bool trial_group_gets_turns(const struct trial *t, const unsigned *members, unsigned len);
/* Opens all these events at once, groups of the user's as such. Those that cannot be opened get
 * their status; the rest tells whether everything fits together. At most TRIAL_MAX are tried. */
bool trial_all_fit(const struct trial *t, const unsigned *members, unsigned len);

/* To a CPU of this kind of core; NULL: back. */
int trial_move(const struct trial *t, const struct cpuset *cpus);

#define TRIAL_MAX (4 * COUNT_GROUP_MAX)
