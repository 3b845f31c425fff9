/* Stacks that are known by construction, in C: stacks SECONDS.
 *
 * Under burn_rec there are exactly DEPTH + 1 frames of rec. Everything else runs under work(),
 * called by main and by a thread's start: callbacks through the C library (and through a shared
 * library with -DLIBRARY), frames that are realigned and grown at run time, a signal handler that
 * interrupts all of this, system calls. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#if defined(__aarch64__)
#pragma GCC target("branch-protection=pac-ret") /* return addresses are signed */
#endif

#define DEPTH    40
#define NOINLINE __attribute__((noinline, noclone))

#ifdef LIBRARY
long library_apply(long (*fn)(long), long n);
#endif

static volatile long sink;
static double seconds;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

NOINLINE static long burn(long n)
{
	for (long i = 0; i < 4000; i++)
		sink += i * n;
	return sink;
}

NOINLINE static long burn_rec(long n)
{
	for (long i = 0; i < 8000; i++)
		sink += i ^ n;
	return sink;
}

NOINLINE static long rec(int depth)
{
	volatile char pad[48];
	long r;

	pad[depth & 31] = 1;
	r = depth ? rec(depth - 1) + pad[depth & 31] : burn_rec(3);
	sink += r;
	return r;
}

static int compare(const void *a, const void *b)
{
	for (int i = 0; i < 30; i++)
		sink++;
	return *(const int *)a - *(const int *)b;
}

NOINLINE static void sorts(void)
{
	int v[300];

	for (int i = 0; i < 300; i++)
		v[i] = rand();
	qsort(v, 300, sizeof(*v), compare);
	sink += v[0];
}

NOINLINE static void aligned(int n)
{
	_Alignas(64) volatile double v[16];
	char *p = __builtin_alloca((size_t)n * 16);

	memset(p, n, (size_t)n * 16);
	v[n & 15] = p[1];
	burn(n);
	sink += (long)v[n & 15];
}

#ifdef LIBRARY
NOINLINE static long called_back(long n)
{
	return burn(n) + 1;
}
#endif

static void handler(int number)
{
	(void)number;
	for (int i = 0; i < 3; i++)
		burn(5);
}

NOINLINE static void work(double end)
{
	char text[64];

	while (now() < end) {
		rec(DEPTH);
		sorts();
		aligned(7);
#ifdef LIBRARY
		sink += library_apply(called_back, 9);
#endif
		for (int i = 0; i < 300; i++) {
			sink += (long)now();
			sink += (long)strlen(
				strcpy(text, "some text that is copied again and again"));
		}
		for (int i = 0; i < 20; i++)
			sink += write(-1, text, sizeof(text));
	}
}

NOINLINE static void *thread(void *arg)
{
	work(now() + seconds);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 3000}, {0, 3000}};
	pthread_t other;

	seconds = argc > 1 ? atof(argv[1]) : 1;
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	if (pthread_create(&other, NULL, thread, NULL) != 0)
		return 1;
	work(now() + seconds);
	pthread_join(other, NULL);
	return 0;
}
