/*
 * A log-linear histogram of nanoseconds (or any uint64_t): values below 128 have a bucket each,
 * above that every power of two is cut into 128 equal buckets, so a bucket is at most 1/128 (0.8 %)
 * of its value wide over the whole 64-bit range. There is no overflow bucket: nothing is ever put
 * aside. Count, minimum, maximum and sum are exact.
 *
 * Zero-initialized is empty. Memory grows with the largest value seen (8 bytes a bucket: 25 KiB
 * reach 1 s); a real-time loop reserves first and then never allocates below that.
 */
#pragma once

#include <stdint.h>

#define HISTOGRAM_BITS 7 /* log2 of the buckets per power of two */

struct histogram {
	uint64_t *buckets;
	unsigned bucket_count;    /* allocated */
	uint64_t count, min, max; /* min and max mean nothing while count is 0 */
	unsigned __int128 sum;
};

/* Makes room for values up to max: afterwards histogram_add() of such values cannot fail. 0,
 * -ENOMEM. */
int histogram_reserve(struct histogram *h, uint64_t max);
int histogram_add(struct histogram *h, uint64_t value);
/* value, times times; a count that would pass 2^64 is -EOVERFLOW and changes nothing. */
int histogram_add_n(struct histogram *h, uint64_t value, uint64_t times);
int histogram_merge(struct histogram *into, const struct histogram *from);
/* Forgets the values, keeps the memory. */
void histogram_clear(struct histogram *h);
void histogram_fini(struct histogram *h);

double histogram_mean(const struct histogram *h); /* NaN when empty */
/*
 * The smallest value that at least share (0..1) of all values do not exceed: the upper edge of its
 * bucket, never beyond the exact maximum; share 0 is the minimum. 0 when empty: ask count first.
 */
uint64_t histogram_percentile(const struct histogram *h, double share);
/* Values above limit; exact when limit is a bucket's upper edge, else counts that bucket as above.
 */
uint64_t histogram_count_above(const struct histogram *h, uint64_t limit);

unsigned histogram_bucket_of(uint64_t value);
/* First and last value of a bucket, both inside. */
uint64_t histogram_bucket_low(unsigned bucket);
uint64_t histogram_bucket_high(unsigned bucket);
