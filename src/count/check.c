#include "count/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"

#define SIGMAS 4 /* an estimate may exceed a bound by its own error */

__attribute__((format(printf, 2, 3))) static void refuse(struct count_value *value, const char *fmt,
							 ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(value->reason, sizeof(value->reason), fmt, args);
	va_end(args);
	value->state = VALUE_INVALID;
	value->value = NAN;
	value->stderr_ = NAN;
}

static double slack(const struct count_value *a, const struct count_value *b)
{
	double ea = isnan(a->stderr_) ? 0.5 * a->value : a->stderr_,
	       eb = isnan(b->stderr_) ? 0.5 * b->value : b->stderr_;

	return SIGMAS * sqrt(ea * ea + eb * eb);
}

static void check_instructions(struct count_value *instructions, struct count_value *cycles)
{
	double most;

	if (!value_has_number(instructions) || !value_has_number(cycles))
		return;
	if (cycles->value == 0 && instructions->value > 0) {
		refuse(cycles,
		       "0 cycles beside %.0f instructions: the cycle counter does not count",
		       instructions->value);
		return;
	}
	most = COUNT_WIDEST_IPC * cycles->value;
	if (instructions->value > most + slack(instructions, cycles))
		refuse(instructions, "%.1f instructions per cycle is more than any core can do",
		       instructions->value / cycles->value);
}

static void check_misses(struct count_value *misses, const struct count_value *accesses)
{
	if (!value_has_number(misses) || !value_has_number(accesses))
		return;
	/* Reads race by a few events even in one group: a thousandth and a handful are allowed. */
	if (misses->value > accesses->value * 1.001 + 16 + slack(misses, accesses))
		refuse(misses, "more misses than accesses (%.1f times)",
		       misses->value / accesses->value);
}

static bool is_hardware(const struct perf_event_attr *attr, uint32_t config)
{
	return attr->type == PERF_TYPE_HARDWARE && (uint32_t)attr->config == config;
}

static bool counts_misses(const struct perf_event_attr *attr)
{
	if (attr->type == PERF_TYPE_HW_CACHE)
		return (attr->config >> 16 & 0xff) == PERF_COUNT_HW_CACHE_RESULT_MISS;
	return is_hardware(attr, PERF_COUNT_HW_BRANCH_MISSES) ||
	       is_hardware(attr, PERF_COUNT_HW_CACHE_MISSES);
}

void count_check_values(const struct count_set *set, struct count_value *values)
{
	for (size_t i = 0; i < set->events.len; i++) {
		const struct count_event *a = &set->events.data[i];

		for (size_t j = 0; j < set->events.len; j++) {
			const struct count_event *b = &set->events.data[j];

			if (i == j || a->internal || b->internal ||
			    !count_is_pair(&a->attr, &b->attr))
				continue;
			if (is_hardware(&a->attr, PERF_COUNT_HW_INSTRUCTIONS))
				check_instructions(&values[i], &values[j]);
			else if (counts_misses(&a->attr))
				check_misses(&values[i], &values[j]);
		}
	}
}
