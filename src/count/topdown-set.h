/*
 * The events of a top-down table as a set to count, and counted values as input of the formulas.
 *
 * PERF_METRICS stand in one group behind slots, as the hardware wants it. The other events of
 * level 1 form one group too, when they fit together, so that its parts are of the same time.
 */
#pragma once

#include <stdbool.h>

#include "count/session.h"
#include "count/set.h"
#include "events/topdown.h"

#define TOPDOWN_EVENTS_MAX 256

struct topdown_set {
	const struct topdown_table *table;
	struct count_set set;
	unsigned event_of[TOPDOWN_EVENTS_MAX]; /* set event -> table event; internal ones have none
						*/
	unsigned len;
};

/* wanted and together: one for each event of the table; together ones get a group. pmu_type: of the
 * core PMU in sysfs. */
int topdown_set_init(struct topdown_set *ts, const struct topdown_table *table, const bool *wanted,
		     const bool *together, unsigned pmu_type, bool user_only);
void topdown_set_fini(struct topdown_set *ts);

/* Calls add for every event that this session (of this pass of an exact plan) was to count. */
int topdown_set_values(const struct topdown_set *ts, const struct count_session *session,
		       unsigned row, int pass,
		       int (*add)(void *ctx, unsigned event, const struct expr_value *value),
		       void *ctx);
