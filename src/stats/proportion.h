/*
 * Shares of two counts: did the part of A in n draws differ from that in m draws? And which of many
 * such answers to believe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stats/result.h"

/*
 * The two-proportion z test, two-sided, with the pooled proportion and Yates' continuity correction
 * (so it is the corrected chi-squared test of the 2 x 2 table, as R's prop.test() computes it).
 * statistic is z, positive when b's share is the larger one; df and probability are NaN. p is NaN
 * for an empty side or hits beyond the draws, 1 when all or none hit.
 */
struct test_result proportion_test(double a_hits, double a_draws, double b_hits, double b_draws);

/*
 * Benjamini and Hochberg 1995: selects so many of count p values that at most the share level of
 * the selected is expected to be wrong. NaN is never selected. 0 or -ENOMEM.
 */
int false_discovery_select(const double *p, size_t count, double level, bool *ret_selected);
