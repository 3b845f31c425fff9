/*
 * The events of a top-down table as a set to count, and counted values as input of the formulas.
 *
 * PERF_METRICS stand in one group behind slots, as the hardware wants it. The other events of
 * level 1 form one group too, when they fit together, so that its parts are of the same time.
 *
 * On a machine with two kinds of cores a set belongs to the PMU of one kind; its events say so
 * (count_event.partial), and the plan is made on one of its CPUs.
 */
#pragma once

#include <stdbool.h>

#include "count/session.h"
#include "count/set.h"
#include "events/topdown.h"

#define TOPDOWN_EVENTS_MAX 256

/* What the events of a table are opened on. */
struct topdown_pmu {
	unsigned type; /* of the core PMU in sysfs */
	bool generic;  /* the table's events are the kernel's own (PERF_TYPE_HARDWARE) */
	bool partial;  /* it exists on some of the CPUs only: these */
	struct cpuset cpus;
	bool user_only; /* the kernel may not be counted */
};

struct topdown_set {
	const struct topdown_table *table;
	struct topdown_pmu pmu;
	struct count_set set;
	unsigned event_of[TOPDOWN_EVENTS_MAX]; /* set event -> table event; anchors have none */
	unsigned len;
};

/* wanted and together: one for each event of the table; together ones get a group. */
int topdown_set_init(struct topdown_set *ts, const struct topdown_table *table, const bool *wanted,
		     const bool *together, const struct topdown_pmu *pmu);
void topdown_set_fini(struct topdown_set *ts);

/* A table's event that this machine's PMU says it lacks: not opened, and said so. */
void topdown_set_lacks(struct topdown_set *ts, unsigned event, const char *why);

/*
 * Calls add for every event that this session (of this pass of an exact plan) was to count: its
 * value for the formulas, and as it was counted.
 */
typedef int topdown_add(void *ctx, unsigned event, const struct expr_value *value,
			const struct count_value *counted);
int topdown_set_values(const struct topdown_set *ts, const struct count_session *session,
		       unsigned row, int pass, topdown_add *add, void *ctx);
