/*
 * What changed between two profiles: every function's share of all, before and after. Shares make
 * recordings of different length comparable.
 *
 * A function is a name in an object (mapping); code without a name is object+0xoffset. The change
 * of a share is significant when a two-proportion test of the numbers of samples says so, all rows
 * together being allowed 5 % of false discoveries (Benjamini and Hochberg). The numbers of samples
 * come from the value type "samples"; without it nothing is known about significance. Samples of a
 * profile are taken as independent, which bursts of work are not: a change may still be a matter of
 * chance between two runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "profile/profile.h"

#define DIFF_FALSE_DISCOVERIES 0.05

struct diff_side {
	int64_t self, total;                 /* of the value; total counts a sample once */
	int64_t self_samples, total_samples; /* 0 without "samples" */
	uint32_t mark;
};

struct diff_row {
	uint32_t symbol, object; /* in strings; object: the whole path, 0 unknown */
	struct diff_side base, new;
	double base_share, new_share, delta_share; /* NaN when a side has no values at all */
	double p;                                  /* NaN unknown */
	bool significant;
};

struct profile_diff {
	struct strtab strings;
	VEC(struct diff_row) rows; /* largest change first */
	int64_t base_all, new_all; /* of the value */
	int64_t base_samples, new_samples;
	bool tested;          /* both sides have "samples" */
	struct u64_map index; /* symbol, object to row, while building */
};

/*
 * Compares value types base_value and new_value (indices); by self time, or with total by time in
 * the function and what it called. Initializes *ret. Values that are not positive are left out.
 * -EOVERFLOW when a sum leaves 64 bits, -EINVAL for a value that is not there, -ENOMEM.
 */
int profile_diff(const struct profile *base, uint32_t base_value, const struct profile *new,
		 uint32_t new_value, bool total, struct profile_diff *ret);
void profile_diff_fini(struct profile_diff *diff);
