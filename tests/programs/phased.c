/*
 * Two phases of random length take turns, computing and system calls:  phased SEED PHASES.
 * The same seed gives the same work.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long next(unsigned long *seed)
{
	*seed = *seed * 6364136223846793005UL + 1442695040888963407UL;
	return *seed >> 33;
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	unsigned long phases = argc > 2 ? strtoul(argv[2], NULL, 0) : 40;
	volatile unsigned long sink = 0;

	for (unsigned long p = 0; p < phases; p++) {
		/* 1 to 8 ms each at 500 million instructions a second */
		unsigned long length = 1 + next(&seed) % 8;

		if (p % 2 == 0)
			for (unsigned long i = 0; i < length * 80000; i++)
				sink += i;
		else
			for (unsigned long i = 0; i < length * 900; i++)
				syscall(SYS_getppid);
	}
	return 0;
}
