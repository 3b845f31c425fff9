#include "base/cpuset.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void cpuset_add(struct cpuset *set, unsigned cpu)
{
	if (cpu < CPUSET_MAX)
		set->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

bool cpuset_has(const struct cpuset *set, unsigned cpu)
{
	return cpu < CPUSET_MAX && (set->bits[cpu / 64] >> cpu % 64 & 1);
}

unsigned cpuset_count(const struct cpuset *set)
{
	unsigned count = 0;

	for (size_t i = 0; i < ARRAY_LEN(set->bits); i++)
		count += (unsigned)__builtin_popcountll(set->bits[i]);
	return count;
}

int cpuset_next(const struct cpuset *set, unsigned from)
{
	for (unsigned word = from / 64; word < ARRAY_LEN(set->bits); word++) {
		uint64_t bits = set->bits[word];

		if (word == from / 64)
			bits &= ~UINT64_C(0) << from % 64;
		if (bits)
			return (int)(word * 64 + (unsigned)__builtin_ctzll(bits));
	}
	return -1;
}

static int parse_cpu(const char **at, unsigned long *ret)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	*ret = strtoul(*at, &end, 10);
	*at = end;
	return *ret >= CPUSET_MAX ? -ERANGE : 0;
}

int cpuset_parse(const char *text, struct cpuset *ret, struct err *err)
{
	struct cpuset set = {0};
	const char *at = text;
	int r = 0;

	while (r == 0 && *at != '\0' && !isspace((unsigned char)*at)) {
		unsigned long first, last;

		r = parse_cpu(&at, &first);
		last = first;
		if (r == 0 && *at == '-') {
			at++;
			r = parse_cpu(&at, &last);
		}
		if (r == 0 && last < first)
			r = -EINVAL;
		for (unsigned long cpu = first; r == 0 && cpu <= last; cpu++)
			cpuset_add(&set, (unsigned)cpu);
		if (r == 0 && *at == ',' && isdigit((unsigned char)at[1]))
			at++;
		else if (r == 0 && *at != '\0' && !isspace((unsigned char)*at))
			r = -EINVAL;
	}
	if (r == -ERANGE)
		return err_set(err, r, "CPU list '%s': CPU numbers go up to %d", text,
			       CPUSET_MAX - 1);
	if (r < 0)
		return err_set(err, r, "CPU list '%s': expected numbers and ranges such as 0-3,8",
			       text);
	*ret = set;
	return 0;
}

void cpuset_format(const struct cpuset *set, struct str *out)
{
	const char *comma = "";

	for (int cpu = cpuset_next(set, 0); cpu >= 0; comma = ",") {
		int last = cpu;

		while (cpuset_has(set, (unsigned)last + 1))
			last++;
		str_printf(out, last > cpu ? "%s%d-%d" : "%s%d", comma, cpu, last);
		cpu = cpuset_next(set, (unsigned)last + 1);
	}
}
