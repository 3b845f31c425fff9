/*
 * A counted value and how far it can be trusted. A number is never without its state, and a state
 * that has no number has value NaN, not 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum value_state {
	VALUE_MEASURED,      /* counted the whole time */
	VALUE_ESTIMATED,     /* counted part of the time, the rest estimated */
	VALUE_WEAK,          /* estimated from less than VALUE_WEAK_SHARE of the time */
	VALUE_NOT_COUNTED,   /* opened, but never ran (reason) */
	VALUE_NOT_SUPPORTED, /* cannot be opened here (reason) */
	VALUE_INVALID,       /* impossible, so not shown (reason) */
};

#define VALUE_WEAK_SHARE 0.40
#define VALUE_MIN_SHARE  0.01 /* below this nothing is extrapolated: not counted */

#define VALUE_REASON_BYTES 120

struct count_value {
	double value;   /* NaN in the states without a number */
	double stderr_; /* one standard error of value; 0 when measured, NaN when not known */
	uint64_t raw;   /* as counted, unscaled, summed over threads and CPUs */
	uint64_t enabled_ns, running_ns;
	uint64_t available_ns; /* on a kind of core that counts it at all; 0: enabled_ns */
	enum value_state state;
	bool phases; /* the slices disagree by more than sampling: the work has phases */
	char reason[VALUE_REASON_BYTES];
};

/* "measured", "estimated", "weak", "not_counted", "not_supported", "invalid" */
const char *value_state_name(enum value_state state);

static inline bool value_has_number(const struct count_value *value)
{
	return value->state <= VALUE_WEAK;
}

/* running / available, NaN when it was never enabled. */
double value_share(const struct count_value *value);
