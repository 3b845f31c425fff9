/* What is said of a comparison: made-up runs, the words and the numbers that must follow. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/compare.h"
#include "harness/tap.h"
#include "stats/rng.h"

#define PAIRS 40

struct fixture {
	struct compare_side sides[2];
	struct compare_counters counters;
	struct compare_result result;
	struct str text;
};

static char *words[2][2] = {{(char[]){"old"}, NULL}, {(char[]){"new"}, NULL}};

/* A's time is 10 ms and some noise; waits for a CPU are up to `disturbed` times as long. */
static void make_runs(struct fixture *f, double change, double disturbed, bool children)
{
	struct rng rng = rng_seed(42);

	*f = (struct fixture){
		.sides = {{"A", words[0], 1, NULL}, {"B", words[1], 1, NULL}},
		.counters = {.reason = "none in this test"},
	};
	f->result = (struct compare_result){.sides = f->sides,
					    .counters = &f->counters,
					    .seed = 1,
					    .looks = 1,
					    .alpha = COMPARE_P,
					    .max_regression = NAN,
					    .steal_share = NAN};
	for (int i = 0; i < 2 * PAIRS; i++) {
		struct compare_pair pair = {.b_first = i % 2};
		double wait = rng_unit(&rng) * disturbed,
		       *v = i % 2 ? pair.b.values : pair.a.values;

		if (i % 2)
			pair = f->result.pairs.data[--f->result.pairs.len];
		for (int m = METRIC_INSTRUCTIONS; m < METRIC_COUNT; m++)
			v[m] = NAN;
		v[METRIC_CPU] = v[METRIC_USER] =
			1e7 * (1 + 0.02 * rng_unit(&rng)) * (i % 2 ? 1 + change : 1);
		v[METRIC_WALL] = v[METRIC_CPU] * (1 + wait);
		v[METRIC_READY] = children ? NAN : v[METRIC_CPU] * wait;
		v[METRIC_UNDISTURBED] = children ? NAN : v[METRIC_CPU];
		if (vec_push(&f->result.pairs, pair) < 0)
			abort();
	}
}

static const char *told(struct fixture *f)
{
	if (compare_decide(&f->result) < 0 || compare_evaluate(&f->result) < 0 ||
	    compare_print_text(&f->result, false, &f->text) < 0)
		abort();
	return str_text(&f->text);
}

static void fixture_fini(struct fixture *f)
{
	vec_fini(&f->result.pairs);
	str_fini(&f->text);
}

#define EXPECT_SAYS(f, part)                                                       \
	tap_expect(strstr(str_text(&(f)->text), part) != NULL, __FILE__, __LINE__, \
		   "%s not in: %s", part, str_text(&(f)->text))
#define EXPECT_SILENT(f, part)                                                                     \
	tap_expect(strstr(str_text(&(f)->text), part) == NULL, __FILE__, __LINE__, "%s is in: %s", \
		   part, str_text(&(f)->text))

TEST(wall_time_answers_first)
{
	struct fixture f;

	make_runs(&f, 0.05, 0, false);
	told(&f);
	EXPECT_INT(f.result.verdict, VERDICT_SLOWER);
	EXPECT_INT(f.result.clock, CLOCK_WALL);
	EXPECT_NEAR(compare_answer(&f.result)->change, 0.05, 0.005);
	EXPECT_SAYS(&f, "B is slower: ");
	EXPECT_SAYS(&f, "% more time (95% interval ");
	EXPECT_SAYS(&f, "CPU time accounts for 100% of the change");
	EXPECT_SILENT(&f, "disturbed it");
	EXPECT_SILENT(&f, "kept A and B waiting");
	fixture_fini(&f);
}

TEST(a_disturbed_wall_time_is_told)
{
	struct fixture f;

	make_runs(&f, -0.05, 3, false);
	f.result.max_regression = 0.05;
	f.result.steal_share = 0.25;
	told(&f);
	EXPECT_INT(f.result.verdict, VERDICT_FASTER);
	EXPECT_INT(f.result.clock, CLOCK_SECOND);
	EXPECT_NEAR(compare_answer(&f.result)->change, -0.05, 0.005);
	EXPECT_SAYS(&f, "B is faster: ");
	EXPECT_SAYS(&f, "% less time not counting its waits for a CPU");
	EXPECT_SAYS(&f, "Wall time cannot tell it: other programs disturbed it");
	EXPECT_SAYS(&f, "Other programs kept A and B waiting for a CPU for 6");
	EXPECT_SAYS(&f, "The hypervisor took 25% of the CPUs' time");
	EXPECT_SAYS(&f, "Within the 5% allowed.\n");
	EXPECT(!f.result.findings[METRIC_WALL].decided);
	EXPECT(f.result.findings[METRIC_UNDISTURBED].decided &&
	       !f.result.findings[METRIC_UNDISTURBED].more);
	fixture_fini(&f);
}

TEST(a_disturbed_but_clear_wall_time_names_both)
{
	struct fixture f;

	make_runs(&f, 1, 0.5, false);
	told(&f);
	EXPECT_INT(f.result.clock, CLOCK_WALL);
	EXPECT_SAYS(&f, "Not counting waits for a CPU: ");
	EXPECT_SAYS(&f, "% more time (95% interval ");
	EXPECT_SAYS(&f, "kept A and B waiting");
	fixture_fini(&f);
}

TEST(cpu_time_alone_is_no_verdict_on_time)
{
	struct fixture f;

	make_runs(&f, 0.05, 3, true);
	f.result.max_regression = 0.01;
	told(&f);
	EXPECT_INT(f.result.verdict, VERDICT_NO_DIFFERENCE);
	EXPECT(compare_cpu_alone(&f.result));
	EXPECT(!f.result.regression);
	EXPECT_SAYS(&f, "No difference in time that can be told.");
	EXPECT_SAYS(&f, "But CPU time tells what wall time cannot: B takes ");
	EXPECT_SAYS(&f, "% more CPU time (95% interval ");
	EXPECT_SAYS(&f, "cannot be ruled out");
	EXPECT_SILENT(&f, "kept A and B waiting");
	fixture_fini(&f);
}

TEST(the_same_is_no_difference)
{
	struct fixture f;

	make_runs(&f, 0, 3, false);
	told(&f);
	EXPECT_INT(f.result.verdict, VERDICT_NO_DIFFERENCE);
	EXPECT(!compare_cpu_alone(&f.result));
	/* It names what the better clock could have shown, not what the disturbed one could. */
	EXPECT_INT(f.result.clock, CLOCK_SECOND);
	EXPECT(f.result.smallest > 0.001 && f.result.smallest < 0.02);
	EXPECT_SILENT(&f, "CPU time tells");
	fixture_fini(&f);
}

TEST(few_pairs_and_unknown_metrics)
{
	struct fixture f;

	make_runs(&f, 1, 0, false);
	f.result.pairs.len = 5;
	told(&f);
	EXPECT_INT(f.result.verdict, VERDICT_NO_DIFFERENCE);
	EXPECT(isnan(f.result.smallest));
	EXPECT_SAYS(&f, "Fewer than 8 pairs cannot show any");
	EXPECT_SILENT(&f, "per cycle");
	EXPECT(!f.result.findings[METRIC_CYCLES].known);
	str_clear(&f.text);
	ASSERT(compare_print_csv(&f.result, &f.text) == 0);
	EXPECT_SAYS(&f, "\nundisturbed_ns,");
	EXPECT_SAYS(&f, "\ncycles,,,,,,,,,,,\n");
	fixture_fini(&f);
}
