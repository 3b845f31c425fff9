/* Loops ITERATIONS times over two instructions of known number: spin ITERATIONS. */
#include <stdio.h>
#include <stdlib.h>

static void spin(unsigned long count)
{
#if defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(count) : : "cc");
#elif defined(__x86_64__)
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(count) : : "cc");
#else
	for (volatile unsigned long i = 0; i < count; i++)
		;
#endif
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000;

	if (count > 0)
		spin(count);
	return 0;
}
