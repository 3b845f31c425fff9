/* Sets of CPU numbers and their text form, as in /sys: "0-3,8,10-11". At most CPUSET_MAX CPUs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define CPUSET_MAX 4096

struct cpuset {
	uint64_t bits[CPUSET_MAX / 64];
};

void cpuset_add(struct cpuset *set, unsigned cpu);
bool cpuset_has(const struct cpuset *set, unsigned cpu);
unsigned cpuset_count(const struct cpuset *set);
/* The first CPU >= from, or -1. */
int cpuset_next(const struct cpuset *set, unsigned from);
/* -EINVAL for bad syntax, -ERANGE for CPU numbers of CPUSET_MAX and more; blanks at the end are
 * skipped. */
int cpuset_parse(const char *text, struct cpuset *ret, struct err *err);
void cpuset_format(const struct cpuset *set, struct str *out);

#define cpuset_for_each(set, cpu) \
	for (int cpu = cpuset_next((set), 0); cpu >= 0; cpu = cpuset_next((set), (unsigned)cpu + 1))
