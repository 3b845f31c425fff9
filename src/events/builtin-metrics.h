/*
 * The metrics that every machine has: ratios of the kernel's own events, in the language of
 * events/expr.h. Names in a formula are events, other metrics, or duration_time in seconds; clocks
 * count nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "events/metrics.h"

struct builtin_metric {
	struct metric metric; /* name, description, formula, groups and unit are filled in */
	unsigned digits;      /* after the point, for people */
	bool beside; /* shown beside its first event whenever the rest of the formula is counted */
	bool share;  /* a part of a whole: more than 100 % is impossible */
};

extern const struct builtin_metric builtin_metrics[];
extern const size_t builtin_metrics_len;

const struct builtin_metric *builtin_metric_find(const char *name); /* case ignored; NULL */
/* Is the metric in this group ("A;B;C"), case ignored? Arm's groups stand beside the metrics:
 * metrics may be NULL. */
bool metric_in_group(const struct metrics *metrics, const struct metric *metric, const char *group);
