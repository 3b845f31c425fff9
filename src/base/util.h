/* Small macros that every file may use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))
/* What one thread writes all the time lies apart from what others read. Two lines: processors fetch
 * them in pairs. */
#define CACHE_LINE_BYTES    128
#define ALIGN_UP(x, to)     (((x) + ((to)-1)) & ~((__typeof__(x))(to)-1)) /* to: a power of two */
#define PRINTF(fmt, args)   __attribute__((format(printf, fmt, args)))
#define CLEANUP(destructor) __attribute__((cleanup(destructor)))
#define CLEANUP_FREE        CLEANUP(cleanup_free)
#define CLEANUP_CLOSE       CLEANUP(cleanup_close)
#define CLEANUP_FILE        CLEANUP(cleanup_file)

#define NSEC_PER_SEC  UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

static inline void cleanup_free(void *slot)
{
	free(*(void **)slot);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Takes the value out of an owning pointer, so that its cleanup does nothing. */
#define TAKE_PTR(slot)                            \
	({                                        \
		__typeof__(slot) taken_ = (slot); \
		(slot) = NULL;                    \
		taken_;                           \
	})

#define TAKE_FD(slot)                \
	({                           \
		int taken_ = (slot); \
		(slot) = -1;         \
		taken_;              \
	})

/*
 * The first of count indexes for which the condition does not hold, by halving: the condition, in
 * which i is the index, holds for none behind it. count when it holds for all.
 *
 *	behind = partition_point(ips.len, i, ips.data[i] <= address);
 */
#define partition_point(count, i, condition)                  \
	({                                                    \
		size_t low_ = 0, high_ = (count);             \
                                                              \
		while (low_ < high_) {                        \
			size_t i = low_ + (high_ - low_) / 2; \
                                                              \
			if (condition)                        \
				low_ = i + 1;                 \
			else                                  \
				high_ = i;                    \
		}                                             \
		low_;                                         \
	})
