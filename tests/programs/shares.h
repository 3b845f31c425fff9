/*
 * A program of known shares: alpha() takes 60 of 100 parts itself, beta() 30, and delta() 10,
 * called by beta(). So in total beta() takes 40, and outer(), which calls alpha() and beta(), all
 * of it.
 *
 * One pass takes a few milliseconds, which no usual sampling period divides, so that samples do not
 * beat with the passes.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define SHARES_UNIT 20000UL

#define KEEP __attribute__((noinline, noclone, noipa))
#if defined(__clang__)
#undef KEEP
#define KEEP __attribute__((noinline))
#endif

/* A chain of dependent operations: time in proportion to count on any CPU. Inlined into each of the
 * three. */
static inline __attribute__((always_inline)) uint64_t shares_burn(uint64_t x, unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Makes a leaf function set up its frame too: without one, frame pointers miss the leaf's caller.
 */
#define SHARES_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

static inline uint64_t shares_cpu_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
