/* The main thread leaves at once; another one works on for the given milliseconds of wall time. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void *work(void *arg)
{
	int64_t end = now_ms() + (intptr_t)arg;

	while (now_ms() < end)
		;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work,
			   (void *)(intptr_t)(argc > 1 ? atoi(argv[1]) : 1000)) != 0)
		return 1;
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	pthread_exit(NULL);
}
