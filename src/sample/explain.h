/*
 * Why an event cannot be opened, in words that end in a remedy: the setting, its value, the command
 * that changes it. The facts are those of perf_event_open(2) and kernel/events/core.c.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* code: the negative errno of perf_event_open(). pid -1: the whole machine. Returns code. */
int explain_event_open(const struct perf_event_attr *attr, const char *name, pid_t pid, int cpu,
		       int code, struct err *err);
/* code: the negative errno of mapping a ring of ring_bytes. Returns code. */
int explain_ring_open(uint64_t ring_bytes, int code, struct err *err);
/* The addresses of /proc/kallsyms are all 0 for this user. */
int explain_hidden_kernel(int code, struct err *err);
