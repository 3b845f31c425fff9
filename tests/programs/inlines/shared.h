// Functions that both files inline; the same header in two units, so that dwz has something to share.
#pragma once

struct pair {
	long a, b;
	long sum() const { return a + b; }
	long scaled(long n) const { return sum() * n; }
};

extern volatile long sink;

static inline __attribute__((always_inline)) long leaf(long x)
{
	sink = sink + x;
	return x * 3 + sink;
}

static inline __attribute__((always_inline)) long middle(long x)
{
	long y = leaf(x);

	if (y & 1)
		y += leaf(x + 1) * 5;
	return y;
}

template <int depth> struct nested {
	static inline __attribute__((always_inline)) long run(long x)
	{
		return nested<depth - 1>::run(x + depth) ^ middle(x);
	}
};

template <> struct nested<0> {
	static inline __attribute__((always_inline)) long run(long x) { return leaf(x); }
};

long other(long n);
void fail(long n) __attribute__((cold, noinline));
