/* Time as uint64_t nanoseconds. Code that must be testable takes a clock as a parameter instead. */
#pragma once

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t clock);

static inline uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* "1.234 s", "56.7 ms", "890 ns": three digits that mean something; returns buf. */
const char *duration_text(uint64_t ns, char *buf, unsigned size);
