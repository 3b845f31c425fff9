/*
 * Which of two is slower, from runs taken in pairs whose order was drawn by a fair coin, for each
 * pair anew.
 *
 * The test is Fisher's: if the two were the same, the very same times would have been measured
 * whichever of them ran first, so every other outcome of the coins is as likely as the one that was
 * drawn. p is the share of outcomes whose statistic is at least as far out. Nothing is assumed of
 * the noise: it may drift, come in bursts that last for seconds or have any tail, and neighbouring
 * runs may depend on each other. (All outcomes are tried up to 14 pairs, else a sample of them
 * that holds the drawn one, which keeps the level exactly.)
 *
 * Each clock (a way to measure the same runs) is looked at in two ways:
 *   typical  the sum of the pairs' bounded log ratios, with Huber's estimate (stats/paired.h);
 *   quiet    the lowest fifth of all runs of one against the other's: what disturbs only makes
 *            slower, so that the fast runs say most where many are disturbed.
 * All looks share one level: their p are those of the smallest p among them (Westfall and Young,
 * Resampling-based Multiple Testing, 1993), so that the chance that any of them speaks up falsely
 * is the level, no matter how they depend on each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/result.h"

#define VERDICT_CLOCKS_MAX 2
#define VERDICT_QUIET      0.2 /* the quantile of the quiet look */

enum verdict_look {
	LOOK_TYPICAL,
	LOOK_QUIET,
	LOOK_COUNT,
};

struct verdict_view {
	double p;           /* adjusted for all looks of all clocks */
	double change;      /* b / a - 1 */
	struct interval ci; /* of change */
	double stderr_;     /* of log(b / a) */
	bool decided;       /* p below the level, and the interval on one side of 0 */
};

/* a[i] and b[i] are of pair i, greater than 0. */
struct verdict_clock {
	const double *a, *b;
	struct verdict_view views[LOOK_COUNT];
};

/* Sets the p of all views. 0, -EINVAL without pairs or with more clocks than the maximum,
 * -ENOMEM. */
int verdict_test(struct verdict_clock *clocks, size_t clock_count, size_t pairs, uint64_t seed);

/* Sets the rest of all views: intervals at `level` (0.95), decided by `alpha` (0.01). The quiet
 * look's interval is a bootstrap over pairs. After verdict_test(). 0, -EINVAL, -ENOMEM. */
int verdict_measure(struct verdict_clock *clocks, size_t clock_count, size_t pairs, double level,
		    double alpha, uint64_t seed);

/* The relative difference that a view would find with a probability of 80 % at `alpha`, about. */
double verdict_smallest(const struct verdict_view *view, double alpha);
