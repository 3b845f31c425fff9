/* What has been counted for one CPU between two readings of /proc/interrupts or /proc/softirqs. */
#pragma once

#include "base/str.h"

/*
 * Appends "NAME COUNT, NAME COUNT" of the most rows with the most counts, most first. Interrupts
 * that devices have are named by them, others by the kernel's words for them. Returns how many rows
 * have counted, 0 none (or the CPU has no column), -ENOMEM.
 */
int proc_deltas(const char *before, const char *after, unsigned cpu, unsigned most,
		struct str *out);
