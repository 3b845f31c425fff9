#include "base/clock.h"

#include <stdio.h>

#include "base/util.h"

uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

const char *duration_text(uint64_t ns, char *buf, unsigned size)
{
	static const struct {
		uint64_t scale;
		const char *unit;
	} units[] = {{NSEC_PER_SEC, "s"}, {NSEC_PER_MSEC, "ms"}, {NSEC_PER_USEC, "us"}};

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		double value = (double)ns / (double)units[i].scale;

		if (ns < units[i].scale)
			continue;
		snprintf(buf, size, "%.*f %s",
			 value >= 100  ? 0
			 : value >= 10 ? 1
				       : 2,
			 value, units[i].unit);
		return buf;
	}
	snprintf(buf, size, "%llu ns", (unsigned long long)ns);
	return buf;
}
