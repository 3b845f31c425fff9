/*
 * A top-down table from the user's vendor metrics (events/metrics.h): the same tree, evaluated and
 * shown by the same code as the tables that are built in.
 *
 * The tree: perfmon's ParentCategory and Level, perf's groups ("TopdownL1", "tma_x_group",
 * "PipelineL2;x_group"), Arm's decision tree (a metric that several branches lead to stands under
 * each). Metrics that formulas name but the tree does not have become lets. Percent become
 * fractions; metrics that are no share ("MPKI") keep their number (TOPDOWN_RATE). Conditions become
 * thresholds ("over N%", "or NODE over N%"); where Arm publishes none those of level 1 are ours.
 *
 * A formula that needs itself is refused with the way round.
 */
#pragma once

#include "events/metrics.h"
#include "events/parse.h"
#include "events/topdown.h"

#define TOPDOWN_LOAD_MAX 250 /* nodes, and events, of one table */

struct topdown_loaded;

/* cpu: a short name, whose built-in table gives encodings and other names of events; NULL: none. */
int topdown_load(const struct metrics *metrics, const char *cpu, struct topdown_loaded **ret,
		 struct err *err);
void topdown_loaded_free(struct topdown_loaded *loaded);
const struct topdown_table *topdown_loaded_table(const struct topdown_loaded *loaded);

/* Looks for the encodings that are missing among the names that env knows; what is not found stays
 * no_code. Returns how many those are. */
unsigned topdown_loaded_encode(struct topdown_loaded *loaded, struct event_env *env);
