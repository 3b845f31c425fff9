/* Metrics of stat: formulas over counted events. Shared by stat-formula.c (what is asked for),
 * stat-metrics.c (what stands beside the events), stat-evaluate.c and stat-explain.c. */
#pragma once

#include <math.h>

#include "cmd/stat.h"
#include "events/env.h"
#include "events/expr.h"

/* The event that part k of a leaf is counted by, after the plan. */
static inline unsigned stat_leaf_event(const struct stat_job *job, const struct stat_metric *metric,
				       const struct stat_leaf *leaf, unsigned k)
{
	int slot = leaf->slots[k];

	return slot < 0 ? (unsigned)(-1 - slot)
			: job->set.bundles.data[metric->bundle].members[slot];
}

int stat_leaf_find(const struct stat_metric *metric, const char *name); /* -1 none */
/* The machine's event environment, made at the first call. */
int stat_env(struct stat_job *job, struct event_env **ret, struct err *err);

/* What the leaves of a metric are worth in one row; inputs[leaf_count]. */
void stat_metric_inputs(const struct stat_job *job, const struct stat_metric *metric,
			const struct count_value *values, const struct stat_result *result,
			struct expr_value *inputs);
/* The formula over these inputs, times its scale. */
void stat_metric_formula(const struct stat_metric *metric, const struct expr_value *inputs,
			 struct expr_value *ret);
/* Its derivatives: weights[leaf_count]. */
void stat_metric_weights(const struct stat_metric *metric, const struct expr_value *inputs,
			 double *weights);
/* Value, error, state and togetherness in a row. session NULL: values alone are known. */
void stat_metric_evaluate(const struct stat_job *job, const struct count_session *session,
			  unsigned row, const struct stat_metric *metric,
			  const struct count_value *values, const struct stat_result *result,
			  struct count_ratio *ret);
