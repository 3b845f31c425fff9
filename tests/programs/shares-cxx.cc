// shares-cxx [SECONDS]: as shares.c, with C++ names: a template, a member function and one of a
// namespace.
#include <cstdlib>

#include "shares.h"

namespace work
{
template <typename T> struct Alpha {
	KEEP T run(T x)
	{
		SHARES_FRAME();
		return shares_burn(x, 60 * SHARES_UNIT) + 1;
	}
};

class Beta
{
      public:
	KEEP uint64_t run(uint64_t x)
	{
		x = small(shares_burn(x, 30 * SHARES_UNIT), 1.0);
		return x + 3;
	}

      private:
	KEEP static uint64_t small(uint64_t x, double)
	{
		SHARES_FRAME();
		return shares_burn(x, 10 * SHARES_UNIT) + 2;
	}
};

KEEP uint64_t outer(uint64_t x)
{
	x = Beta().run(Alpha<unsigned long>().run(x));
	return x + 4;
}
} // namespace work

static volatile uint64_t sink;

int main(int argc, char **argv)
{
	uint64_t end = (uint64_t)((argc > 1 ? atof(argv[1]) : 1) * 1e9), x = 1;

	while (shares_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		x = work::outer(x);
	sink = x;
	return 0;
}
