/* What estimates and tests give. */
#pragma once

struct interval {
	double low, high;
};

struct test_result {
	double statistic;
	double p;           /* two-sided; NaN when the samples are too small to say anything */
	double probability; /* of b being above a, where the test tells it, else NaN */
};
