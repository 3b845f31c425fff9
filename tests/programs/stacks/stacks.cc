/* Stacks that are known by construction, in C++: stacks SECONDS.
 *
 * Under burn_level there are exactly level<6> to level<0>; under burn_virtual exactly 12 frames of node::visit. Exceptions
 * are in flight while destructors and handlers burn; library code calls back lambdas. */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sink;

/* Different ones: equal functions would be made one. */
#define BURN(name, times)                               \
	NOINLINE static long name(long n)               \
	{                                               \
		for (long i = 0; i < (times); i++)      \
			sink = sink + (i ^ n);          \
		return sink;                            \
	}
BURN(burn_level, 6001)
BURN(burn_virtual, 6002)
BURN(burn_cleanup, 6003)
BURN(burn_handler, 6004)

template <int N> struct level {
	NOINLINE static long run(long x)
	{
		std::string text(static_cast<size_t>(N + 20), 'x');
		long r = level<N - 1>::run(x + N);

		sink = sink + text[static_cast<size_t>(N)];
		return r + 1;
	}
};
template <> struct level<0> {
	NOINLINE static long run(long x)
	{
		long r = burn_level(x);

		sink = sink + r;
		return r;
	}
};

struct node {
	std::unique_ptr<node> next;
	virtual ~node() = default;
	NOINLINE virtual long visit(long x)
	{
		long r = next ? next->visit(x + 1) : burn_virtual(x);

		sink = sink + r;
		return r;
	}
};

struct guard {
	long n;
	NOINLINE ~guard() { burn_cleanup(n); }
};

NOINLINE static void thrower(int depth)
{
	guard g{depth};

	if (depth == 0)
		throw std::runtime_error("in flight");
	thrower(depth - 1);
	sink = sink + 1;
}

NOINLINE static void catcher()
{
	try {
		thrower(5);
	} catch (const std::exception &e) {
		burn_handler(e.what()[0]);
	}
	sink = sink + 1;
}

NOINLINE static void library()
{
	std::vector<std::string> v;
	std::map<std::string, long> m;

	for (int i = 0; i < 200; i++)
		v.push_back(std::to_string(i * 7919 % 211));
	std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) {
		for (int i = 0; i < 20; i++)
			sink = sink + 1;
		return a > b;
	});
	for (const auto &s : v)
		m[s] += static_cast<long>(s.size());
	std::function<long(long)> f = [&m](long x) { return x + static_cast<long>(m.size()); };
	sink = sink + f(3);
}

NOINLINE static void work(double seconds)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
	std::unique_ptr<node> list;

	for (int i = 0; i < 12; i++) {
		auto one = std::make_unique<node>();
		one->next = std::move(list);
		list = std::move(one);
	}
	while (std::chrono::steady_clock::now() < end) {
		sink = sink + level<6>::run(1) + list->visit(1);
		catcher();
		library();
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	std::thread other(work, seconds);

	work(seconds);
	other.join();
	return 0;
}
