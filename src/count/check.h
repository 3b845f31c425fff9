/*
 * Refusing impossible values. A counter that lies (a virtual PMU, an erratum, a frozen pinned
 * event) shows itself by numbers that cannot be: those become VALUE_INVALID with the reason in
 * words.
 */
#pragma once

#include "count/set.h"
#include "count/value.h"

#define COUNT_WIDEST_IPC 12.0 /* no core retires more instructions per cycle (2026: 10 wide) */

/* values[i] belongs to set->events[i]; all of one row. */
void count_check_values(const struct count_set *set, struct count_value *values);
