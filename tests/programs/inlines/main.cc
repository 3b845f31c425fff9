// Inlined functions of several kinds and depths, in two units: calls in calls, methods, templates, lambdas, loops the
// compiler unrolls, cold parts in another section, a function that nothing calls. It does nothing of use.
#include "shared.h"

volatile long sink;

namespace {

template <typename T, typename F> inline T fold(const T *values, int count, F f)
{
	T result = 0;

	for (int i = 0; i < count; i++)
		result = f(result, values[i]);
	return result;
}

class list {
	long values[16];

public:
	explicit list(long seed)
	{
		for (int i = 0; i < 16; i++)
			values[i] = nested<2>::run(seed + i);
	}
	long total() const
	{
		return fold(values, 16, [](long a, long b) { return a ^ middle(b); });
	}
	void sort()
	{
		for (int i = 1; i < 16; i++)
			for (int k = i; k > 0 && values[k - 1] > values[k]; k--)
				swap(k);
	}

private:
	inline void swap(int k)
	{
		long t = values[k];

		values[k] = values[k - 1];
		values[k - 1] = t;
	}
};

__attribute__((noinline)) long checked(long n)
{
	if (__builtin_expect(n < 0, 0)) {
		fail(leaf(n));
		fail(middle(n) + nested<3>::run(n));
	}
	return nested<5>::run(n);
}

} // namespace

__attribute__((noinline)) long unused(long n)
{
	return nested<4>::run(n) + leaf(n);
}

void fail(long n)
{
	for (long i = 0; i < n; i++)
		sink = middle(i) + nested<1>::run(n);
}

static __attribute__((noinline)) long recursive(long n)
{
	return n <= 0 ? leaf(n) : recursive(n - 1) + middle(n);
}

int main(int argc, char **argv)
{
	list values(argc);
	pair p = {argc, checked(argc)};

	values.sort();
	sink = values.total() + p.scaled(other(argc)) + recursive(argc);
	return argv[0] && sink == 1;
}
