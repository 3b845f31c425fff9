/* shares [SECONDS [THREADS]]: uses that much CPU time per thread, in the shares of shares.h;
 * threads are named burner-0 and so on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shares.h"

#define THREADS_MAX 64

uint64_t alpha(uint64_t x);
uint64_t beta(uint64_t x);
uint64_t delta(uint64_t x);
uint64_t outer(uint64_t x);

static volatile uint64_t sink;
static double seconds = 1;

KEEP uint64_t alpha(uint64_t x)
{
	SHARES_FRAME();
	return shares_burn(x, 60 * SHARES_UNIT) + 1;
}

KEEP uint64_t delta(uint64_t x)
{
	SHARES_FRAME();
	return shares_burn(x, 10 * SHARES_UNIT) + 2;
}

KEEP uint64_t beta(uint64_t x)
{
	x = delta(shares_burn(x, 30 * SHARES_UNIT));
	return x + 3;
}

KEEP uint64_t outer(uint64_t x)
{
	x = beta(alpha(x));
	return x + 4;
}

static void burn_for(double limit)
{
	uint64_t end = (uint64_t)(limit * 1e9), x = 1;

	while (shares_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		x = outer(x);
	sink = x;
}

static void *burner(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "burner-%d", (int)(intptr_t)arg);
	pthread_setname_np(pthread_self(), name);
	burn_for(seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t ids[THREADS_MAX];

	if (argc > 1)
		seconds = atof(argv[1]);
	if (threads == 0)
		burn_for(seconds);
	for (int i = 0; i < threads && i < THREADS_MAX; i++)
		pthread_create(&ids[i], NULL, burner, (void *)(intptr_t)i);
	for (int i = 0; i < threads && i < THREADS_MAX; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
