/*
 * What changed between two runs: the quantiles of every context, and the sources of noise.
 *
 * A quantile changed significantly when the share of values beyond the base's quantile differs
 * between the runs (two-proportion test, false discoveries held at 5 % over all rows). Neighbouring
 * samples of one run depend on each other, so a small p is a hint and not a proof; several runs of
 * each side are better.
 */
#pragma once

#include <stdbool.h>

#include "base/vec.h"
#include "latency/run.h"

struct latency_diff_row {
	int context;             /* enum latency_context, -1: gaps */
	double share;            /* of the quantile; 1: the maximum, which has no test */
	int64_t base_ns, new_ns; /* LATENCY_UNKNOWN_NS unknown */
	double ratio;            /* new / base, NaN unknown */
	double p;                /* NaN: no test */
	bool significant;
};

struct latency_diff_source {
	enum noise_class class;
	const char *name, *function; /* of the runs' string tables; function "" none */
	int number;
	double base_rate, new_rate;       /* events a second */
	double base_share, new_share;     /* of the time of the measured CPUs */
	uint64_t base_max_ns, new_max_ns; /* 0 none */
	double p;                         /* of the rates */
	bool is_new, is_gone, significant;
};

struct latency_diff {
	VEC(struct latency_diff_row) rows;
	VEC(struct latency_diff_source) sources; /* the largest change of share first */
	bool rates_known;                        /* both runs tell how long they took */
};

/* 0, -ENOMEM. The runs must outlive the diff. */
int latency_diff_make(const struct latency_run *base, const struct latency_run *new,
		      struct latency_diff *ret);
void latency_diff_fini(struct latency_diff *diff);
