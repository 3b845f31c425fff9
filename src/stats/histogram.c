#include "stats/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define SUB_COUNT (1U << HISTOGRAM_BITS)

unsigned histogram_bucket_of(uint64_t value)
{
	unsigned octave;

	if (value < SUB_COUNT)
		return (unsigned)value;
	/* value = 1.m * 2^(octave + BITS): the BITS bits below the leading one choose the bucket */
	octave = 63U - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
	return ((octave + 1) << HISTOGRAM_BITS) + (unsigned)((value >> octave) & (SUB_COUNT - 1));
}

uint64_t histogram_bucket_low(unsigned bucket)
{
	unsigned octave = bucket >> HISTOGRAM_BITS;
	uint64_t mantissa = bucket & (SUB_COUNT - 1);

	return octave == 0 ? mantissa : (mantissa + SUB_COUNT) << (octave - 1);
}

uint64_t histogram_bucket_high(unsigned bucket)
{
	unsigned octave = bucket >> HISTOGRAM_BITS;

	return histogram_bucket_low(bucket) + (octave == 0 ? 0 : (UINT64_C(1) << (octave - 1)) - 1);
}

int histogram_reserve(struct histogram *h, uint64_t max)
{
	unsigned need = ALIGN_UP(histogram_bucket_of(max) + 1, SUB_COUNT);
	uint64_t *grown;

	if (need <= h->bucket_count)
		return 0;
	grown = realloc(h->buckets, need * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + h->bucket_count, 0, (need - h->bucket_count) * sizeof(*grown));
	h->buckets = grown;
	h->bucket_count = need;
	return 0;
}

int histogram_add_n(struct histogram *h, uint64_t value, uint64_t times)
{
	if (times == 0)
		return 0;
	if (h->count > UINT64_MAX - times)
		return -EOVERFLOW;
	if (histogram_reserve(h, value) < 0)
		return -ENOMEM;
	h->buckets[histogram_bucket_of(value)] += times;
	h->min = h->count ? MIN(h->min, value) : value;
	h->max = h->count ? MAX(h->max, value) : value;
	h->count += times;
	h->sum += (unsigned __int128)value * times;
	return 0;
}

int histogram_add(struct histogram *h, uint64_t value)
{
	return histogram_add_n(h, value, 1);
}

int histogram_merge(struct histogram *into, const struct histogram *from)
{
	if (from->count == 0)
		return 0;
	if (into->count > UINT64_MAX - from->count)
		return -EOVERFLOW;
	if (histogram_reserve(into, from->max) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < from->bucket_count && i < into->bucket_count; i++)
		into->buckets[i] += from->buckets[i];
	into->min = into->count ? MIN(into->min, from->min) : from->min;
	into->max = into->count ? MAX(into->max, from->max) : from->max;
	into->count += from->count;
	into->sum += from->sum;
	return 0;
}

void histogram_clear(struct histogram *h)
{
	if (h->buckets)
		memset(h->buckets, 0, h->bucket_count * sizeof(*h->buckets));
	h->count = h->min = h->max = 0;
	h->sum = 0;
}

void histogram_fini(struct histogram *h)
{
	free(h->buckets);
	*h = (struct histogram){0};
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : NAN;
}

uint64_t histogram_percentile(const struct histogram *h, double share)
{
	/* a share such as 0.29 may be a hair above what was meant: that must not cost one more
	 * value */
	long double wanted = (long double)h->count * (long double)share * (1 - 0x1p-52L);
	uint64_t seen = 0;

	if (!(share > 0) || h->count == 0)
		return h->count ? h->min : 0;
	if (share >= 1)
		return h->max;
	for (unsigned i = 0; i < h->bucket_count; i++) {
		seen += h->buckets[i];
		if ((long double)seen >= wanted)
			return MAX(MIN(histogram_bucket_high(i), h->max), h->min);
	}
	return h->max;
}

uint64_t histogram_count_above(const struct histogram *h, uint64_t limit)
{
	unsigned i = histogram_bucket_of(limit);
	uint64_t above = 0;

	if (histogram_bucket_high(i) == limit)
		i++;
	for (; i < h->bucket_count; i++)
		above += h->buckets[i];
	return above;
}
