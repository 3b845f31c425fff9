/* Shared by topdown-live.c (runs) and topdown-plan.c (what each run counts). */
#pragma once

#include "cmd/topdown.h"
#include "cmd/workload.h"

#define NODES_MAX TOPDOWN_EVENTS_MAX

struct batch {
	bool nodes[NODES_MAX];
	bool cpi; /* instructions too */
};

struct live_tree {
	struct topdown_tree *tree;
	struct topdown_places places;
	struct topdown_set ts;
	struct count_session *session;
	VEC(struct batch) batches;
	bool counted[NODES_MAX]; /* in a batch, run or not */
	bool known[NODES_MAX];   /* has run: its events need not be counted again for nodes that
				  * use its value */
	bool cpi_known;
};

struct live {
	struct topdown_job *job;
	struct topdown_side *side;
	struct live_tree trees[TOPDOWN_TREES_MAX];
	unsigned tree_count;
	struct workload work;
	bool command;     /* what is counted is the command, not processes or CPUs */
	bool drills;      /* further runs for what lies below the mark */
	bool batched;     /* runs for what does not fit at once, instead of turns */
	bool interrupted; /* Ctrl-C: no further runs */
	unsigned section; /* of the run: batches and passes have their own, repeats share it */
	uint64_t repeat;
	int signals;
};

/* What is counted first: what was asked for, else levels 1 and 2 when they fit at once, else
 * level 1.
 */
int topdown_first_batches(struct live *live, struct live_tree *lt, struct err *err);
/* The children of the mark that no run has counted yet, and what lies below them as long as all of
 * it fits at once; without a mark, what thresholds of level 1 hang on. *ret_any: there are some. */
int topdown_next_batches(struct live *live, struct live_tree *lt, bool *ret_any, struct err *err);
/* Plans the events of these nodes; *ret_fits: all count all the time, in one run. */
int topdown_make_set(struct live *live, struct live_tree *lt, const struct batch *batch,
		     bool *ret_fits, struct err *err);
/* A run for the cycles per instruction alone, when no other had room for them. */
int topdown_cpi_batch(struct live_tree *lt, bool *ret_any, struct err *err);
/* The nodes of a batch that was run. */
void topdown_batch_known(struct live_tree *lt, const struct batch *batch);
