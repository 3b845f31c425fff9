#include "shared.h"

static inline long step(long n, long *state)
{
	*state = nested<3>::run(*state) + n;
	return *state > 100 ? middle(*state) : leaf(n);
}

__attribute__((noinline)) static long loop(long n)
{
	long state = 1, sum = 0;

	for (long i = 0; i < n; i++)
		sum += step(i, &state);
	return sum;
}

long other(long n)
{
	pair p = {n, loop(n)};

	switch (n) {
	case 1:
		return p.sum() + middle(n);
	case 2:
		return p.scaled(3) + leaf(p.a);
	case 3:
		fail(p.b);
		return nested<2>::run(n);
	default:
		return loop(n + 1);
	}
}
