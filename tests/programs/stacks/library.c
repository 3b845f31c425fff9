/* A shared library between a program and its callback. */
long library_apply(long (*fn)(long), long n);

static volatile long sink;

__attribute__((noinline)) static long inner(long (*fn)(long), long n)
{
	long sum = 0;

	for (long i = 0; i < 3; i++) {
		sum += fn(n + i);
		sink += sum;
	}
	return sum;
}

long library_apply(long (*fn)(long), long n)
{
	return inner(fn, n) + sink % 2;
}
