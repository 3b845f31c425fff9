/* Compiled for the targets that read ELF files: inlined calls, a jump, a call through the PLT. */
extern int other(int);

static inline int square(int x)
{
	return x * x;
}

static inline int both(int x)
{
	return x > 3 ? square(x) - 1 : square(x + 1);
}

__attribute__((noinline)) static int twice(int x)
{
	return both(x) + both(x + 1);
}

int seed(int count);

int seed(int count)
{
	volatile int sum = 0;

	for (int i = 0; i < count; i++)
		sum += twice(i) + other(i);
	return sum;
}
