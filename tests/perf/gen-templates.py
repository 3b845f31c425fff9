#!/usr/bin/env python3
"""Writes C++ that makes much DWARF: template-heavy code in a namespace, and a main() that calls many.

usage: gen-templates.py DIR NAMESPACES

DIR/ns_00.cpp holds the code of one namespace, DIR/main.cpp calls ns_00::enter() to
ns_NN::enter(). Inlined calls nest through the standard library, lambdas, recursive templates and
functions of their own namespace. tests/perf/big-program makes the other namespaces of the first.
"""
import os
import sys

BODY = """
namespace ns_00 {{
template <int N> struct level {{
	template <class F> static inline long run(F f, long x) {{
		return level<N - 1>::run([f](long y) {{ return f(y) + N * 13; }}, x ^ N) + f(x);
	}}
}};
template <> struct level<0> {{
	template <class F> static inline long run(F f, long x) {{ return f(x); }}
}};
struct item {{
	std::string name;
	long weight;
	bool operator<(const item &o) const {{ return weight < o.weight || (weight == o.weight && name < o.name); }}
}};
static inline long clamp(long x) {{ return x < 0 ? -x % 13 : x % 100003; }}
template <class C> __attribute__((noinline)) long total(const C &c) {{
	return std::accumulate(c.begin(), c.end(), 0L, [](long a, const auto &i) {{ return clamp(a + i.weight); }});
}}
template <int N> __attribute__((noinline)) long stir(std::vector<item> &v, long seed) {{
	std::map<std::string, long> seen;
	for (auto &i : v) {{
		i.weight = level<N % 6 + 3>::run([&](long y) {{ return clamp(y * seed); }}, i.weight);
		seen[i.name] += i.weight;
	}}
	std::sort(v.begin(), v.end());
	std::stable_sort(v.begin(), v.end(), [](const item &a, const item &b) {{ return a.name < b.name; }});
	std::unordered_map<long, std::function<long(long)>> table;
	for (auto &s : seen)
		table.emplace(s.second, [s](long x) {{ return x + s.second; }});
	long sum = total(v);
	for (auto &t : table)
		sum += t.second(t.first);
	return sum;
}}
class base {{
public:
	virtual ~base() = default;
	virtual long work(long x) = 0;
}};
template <int N> class derived : public base {{
	std::vector<item> items_;
public:
	derived() {{
		for (int i = 0; i < 20 + N; i++)
			items_.push_back({{"item" + std::to_string(i * N % 17), i * 7919L % (N + 11)}});
	}}
	long work(long x) override {{ return stir<N>(items_, x); }}
}};
long enter(long x) {{
	std::vector<std::unique_ptr<base>> all;
{instances}
	std::set<long> results;
	for (auto &one : all)
		try {{
			results.insert(one->work(x));
			if (x == 13 * 1000003L)
				throw std::runtime_error("never");
		}} catch (const std::exception &e) {{
			x += e.what()[0];
		}}
	return std::accumulate(results.begin(), results.end(), x);
}}
}}
"""
HEAD = "".join(f"#include <{h}>\n" for h in (
    "algorithm", "functional", "map", "memory", "numeric", "set", "stdexcept", "string",
    "unordered_map", "vector"))


INSTANCES = (2, 3, 5, 8, 11, 13, 17, 19, 23, 27, 29, 31)


def main():
    folder = sys.argv[1]
    count = int(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/ns_00.cpp", "w", encoding="ascii") as out:
        out.write(HEAD)
        out.write(BODY.format(instances="\n".join(
            f"\tall.push_back(std::make_unique<derived<{n}>>());" for n in INSTANCES)))
    with open(f"{folder}/main.cpp", "w", encoding="ascii") as out:
        out.write("#include <cstdio>\n#include <cstdlib>\n")
        for n in range(count):
            out.write(f"namespace ns_{n:02} {{ long enter(long); }}\n")
        out.write("int main(int argc, char **argv) {\n\tlong rounds = argc > 1 ? atol(argv[1]) : 1, sum = 0;\n")
        out.write("\tfor (long i = 0; i < rounds; i++) {\n")
        for n in range(count):
            out.write(f"\t\tsum += ns_{n:02}::enter(sum % 1000 + i);\n")
        out.write('\t}\n\tprintf("%ld\\n", sum);\n}\n')


main()
