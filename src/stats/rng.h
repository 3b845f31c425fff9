/*
 * A small deterministic generator (SplitMix64; Steele, Lea and Flood, OOPSLA 2014): the same seed
 * gives the same numbers on every machine, so that resampling and shuffled orders can be repeated.
 */
#pragma once

#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline struct rng rng_seed(uint64_t seed)
{
	return (struct rng){seed};
}

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Uniform in [0, below), below > 0. The multiply-shift bias is under below / 2^64. */
static inline uint64_t rng_below(struct rng *rng, uint64_t below)
{
	return (uint64_t)(((unsigned __int128)rng_next(rng) * below) >> 64);
}

/* Uniform in [0, 1). */
static inline double rng_unit(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}
