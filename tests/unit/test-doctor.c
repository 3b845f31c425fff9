/* The self-test of the counters: what real machines report and what broken virtual PMUs do. */
#include "base/util.h"
#include "cmd/doctor.h"
#include "harness/tap.h"

#define MS UINT64_C(1000000)

/* 16 M instructions in 8 M cycles at 2.8 GHz. */
static const struct selftest good = {
	.instructions = 16000120,
	.cycles = 8400000,
	.expected = 16000000,
	.iterations = 8000000,
	.time_ns = 3 * MS,
	.enabled_ns = 3 * MS,
	.running_ns = 3 * MS,
};

TEST(honest_counters_pass)
{
	struct selftest test = good;
	char why[256];

	EXPECT(!selftest_judge(&test, why, sizeof(why)));
	test.expected = 0; /* an architecture without a loop of known length */
	test.instructions = 5;
	EXPECT(!selftest_judge(&test, why, sizeof(why)));
	test = good;
	test.cycles = 300000; /* an emulated machine at 100 MHz */
	EXPECT(!selftest_judge(&test, why, sizeof(why)));
}

TEST(lying_counters_are_caught)
{
	static const struct {
		const char *words;
		uint64_t instructions, cycles, running_ns;
	} rows[] = {
		{"never scheduled", 16000000, 8000000, 0},
		{"stayed 0 while a loop ran", 0, 0, 3 * MS},
		{"cycles stayed 0 while 16000000", 16000000, 0, 3 * MS},
		{"counted as 0", 0, 8000000, 3 * MS},
		{"counted as 8000000", 8000000, 8000000, 3 * MS},
		{"counted as 160000000", 160000000, 8000000, 3 * MS},
		{"which no CPU has", 16000000, 80000000000, 3 * MS},
		{"which no CPU has", 16000000, 1000, 3 * MS},
		{"only 50% of the time", 16000000, 8000000, 3 * MS / 2},
	};
	char why[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct selftest test = good;

		test.instructions = rows[i].instructions;
		test.cycles = rows[i].cycles;
		test.running_ns = rows[i].running_ns;
		EXPECT(selftest_judge(&test, why, sizeof(why)));
		tap_expect(strstr(why, rows[i].words) != NULL, __FILE__, __LINE__,
			   "\"%s\" in \"%s\"", rows[i].words, why);
	}
}

TEST(the_real_run_ends)
{
	struct selftest test;
	char why[256];

	selftest_run(&test);
	if (test.status < 0)
		SKIP("no hardware counters here");
	EXPECT(test.time_ns > 0 && test.enabled_ns > 0);
	/* Whatever it says, it says it in words or not at all. */
	EXPECT(selftest_judge(&test, why, sizeof(why)) == (why[0] != '\0'));
}
