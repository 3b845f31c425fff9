/* Expected numbers were computed with Python from the definitions, by other methods than the
 * code's: enumeration for Mann-Whitney, numerical integration of the density for Student's t. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "harness/tap.h"
#include "stats/histogram.h"
#include "stats/paired.h"
#include "stats/ratio.h"
#include "stats/rng.h"
#include "stats/summary.h"

TEST(figures_of_a_known_sample)
{
	static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* numpy: var(ddof=1), quantile */

	EXPECT_NEAR(stats_mean(values, 8), 5, 0);
	EXPECT_NEAR(stats_variance(values, 8), 32.0 / 7, 1e-12);
	EXPECT_NEAR(stats_stderr(values, 8), 0.7559289460184544, 1e-12);
	EXPECT_NEAR(stats_quantile_sorted(values, 8, 0.5), 4.5, 0);
	EXPECT_NEAR(stats_quantile_sorted(values, 8, 0.9), 7.6, 1e-12);
}

TEST(unknown_is_not_zero)
{
	double one = 3;

	EXPECT(isnan(stats_mean(NULL, 0)) && isnan(stats_quantile_sorted(NULL, 0, 0.5)));
	EXPECT(isnan(stats_variance(&one, 1)) && stats_mean(&one, 1) == 3);
	EXPECT(isnan(ratio_of_slices(&one, &(double){0}, 1).value));
}

TEST(variance_survives_a_large_offset)
{
	static const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};

	EXPECT_NEAR(stats_variance(values, 4), 30, 1e-6);
}

TEST(student_t_quantiles)
{
	EXPECT_NEAR(stats_t_quantile(0.95, 1), 12.706204736, 1e-6);
	EXPECT_NEAR(stats_t_quantile(0.95, 2), 4.302652730, 1e-6);
	EXPECT_NEAR(stats_t_quantile(0.95, 4), 2.776445105, 1e-6);
	EXPECT_NEAR(stats_t_quantile(0.95, 10), 2.228138852, 1e-6);
	EXPECT_NEAR(stats_t_quantile(0.95, 1e6), 1.95996, 1e-4);
	EXPECT_NEAR(stats_t_cdf(0, 3), 0.5, 1e-12);
	EXPECT_NEAR(stats_normal_cdf(1.959963985), 0.975, 1e-9);
	EXPECT(isnan(stats_t_quantile(0.95, 0)));
}

TEST(rng_is_the_published_one)
{
	struct rng rng = rng_seed(1234567);

	/* first outputs of SplitMix64 for this seed, as published with Java's SplittableRandom
	 * ports */
	EXPECT(rng_next(&rng) == UINT64_C(6457827717110365317));
	EXPECT(rng_next(&rng) == UINT64_C(3203168211198807973));
	EXPECT(rng_next(&rng) == UINT64_C(9817491932198370423));
}

TEST(ratio_known_sample)
{
	static const double x[] = {10, 12, 0, 9, 30, 31, 29}, a[] = {100, 110, 0, 95, 100, 105, 98};
	struct ratio r = ratio_of_slices(x, a, 7);

	EXPECT_INT(r.slices, 6);
	EXPECT_NEAR(r.value, 0.19901315789473684, 1e-15);
	EXPECT_NEAR(r.stderr_, 0.025498176683245978, 1e-14);
	EXPECT_NEAR(ratio_of_runs(x, a, 7).stderr_, 0.043699191904021516, 1e-14);
	EXPECT(r.neumann < 1); /* one change of level: a phase */
	EXPECT(isnan(ratio_of_slices(x, a, 2).stderr_));
}

TEST(ratio_tells_phases_from_noise)
{
	struct rng rng = rng_seed(3);
	double noise[200], phases[200], flips[200], a[200];

	for (int i = 0; i < 200; i++) {
		a[i] = 1000;
		noise[i] = 500 + 100 * rng_unit(&rng);
		phases[i] = (i / 25 % 2 ? 900 : 100) + 10 * rng_unit(&rng);
		flips[i] = (i % 2 ? 900 : 100) + 10 * rng_unit(&rng);
	}
	EXPECT_NEAR(ratio_of_slices(noise, a, 200).neumann, 2, 0.5);
	EXPECT(ratio_of_slices(phases, a, 200).neumann < 0.5);
	EXPECT(ratio_of_slices(flips, a, 200).neumann > 3.5);
	EXPECT(ratio_of_slices(phases, a, 200).spread > 0.5);
	EXPECT(ratio_of_slices(noise, a, 200).spread < 0.1);
}

/* Half of the slices seen, at random: the total must lie within two standard errors 95 times of
 * 100. */
TEST(ratio_total_error_is_honest)
{
	struct rng rng = rng_seed(11);
	unsigned inside = 0;

	for (int run = 0; run < 500; run++) {
		double x[60], a[60], truth = 0, anchor = 0, seen = 0;
		struct estimate e;
		struct ratio r;

		for (int i = 0; i < 60; i++) {
			double cycles = 900 + 200 * rng_unit(&rng),
			       count = cycles * (0.5 + rng_unit(&rng));
			bool counted = rng_below(&rng, 2);

			truth += count;
			anchor += cycles;
			seen += counted ? cycles : 0;
			x[i] = counted ? count : 0;
			a[i] = counted ? cycles : 0;
		}
		r = ratio_of_slices(x, a, 60);
		e = ratio_total(&r, seen, anchor);
		inside += fabs(e.total - truth) <= 2 * e.stderr_;
	}
	EXPECT_NEAR(inside, 475, 20);
}

TEST(ratio_total_of_everything_has_no_error)
{
	static const double x[] = {1, 2, 3}, a[] = {10, 10, 10};
	struct ratio r = ratio_of_slices(x, a, 3);
	struct estimate e = ratio_total(&r, 30, 30);

	EXPECT_NEAR(e.total, 6, 1e-12);
	EXPECT_NEAR(e.stderr_, 0, 0);
}

TEST(histogram_buckets_tile_the_range)
{
	unsigned last = histogram_bucket_of(UINT64_MAX);

	EXPECT_INT(histogram_bucket_low(0), 0);
	EXPECT(histogram_bucket_high(last) == UINT64_MAX);
	for (unsigned i = 0; i < last; i++) {
		uint64_t low = histogram_bucket_low(i), high = histogram_bucket_high(i);

		if (high + 1 != histogram_bucket_low(i + 1) || histogram_bucket_of(low) != i ||
		    histogram_bucket_of(high) != i || (low >= 128 && high - low > low / 128))
			EXPECT_INT(i, -1);
	}
	EXPECT_INT(last + 1, 58 * 128);
}

TEST(histogram_is_exact_where_promised)
{
	struct histogram h = {0}, other = {0};
	struct rng rng = rng_seed(5);
	static double values[20000];
	uint64_t sum = 0;

	EXPECT_INT(histogram_percentile(&h, 0.5), 0);
	EXPECT(isnan(histogram_mean(&h)));
	for (int i = 0; i < 20000; i++) {
		uint64_t value = rng_below(&rng, UINT64_C(1) << (1 + rng_below(&rng, 40)));

		values[i] = (double)value;
		sum += value;
		ASSERT(histogram_add(i % 3 ? &h : &other, value) == 0);
	}
	ASSERT(histogram_merge(&h, &other) == 0);
	stats_sort(values, 20000);
	EXPECT_INT(h.count, 20000);
	EXPECT(h.sum == sum);
	EXPECT(h.min == (uint64_t)values[0] && h.max == (uint64_t)values[19999]);
	EXPECT_INT(histogram_percentile(&h, 1), h.max);
	EXPECT_INT(histogram_percentile(&h, 0), h.min);
	for (int p = 1; p < 100; p++) {
		double exact = values[(int)ceil(20000.0 * p / 100) - 1];
		double have = (double)histogram_percentile(&h, p / 100.0);

		if (have < exact || have > exact * (1 + 1 / 128.0) + 1)
			EXPECT_NEAR(have, exact, exact / 128);
	}
	ASSERT(histogram_add(&h, UINT64_MAX) == 0);
	EXPECT(histogram_percentile(&h, 1) == UINT64_MAX);
	EXPECT_INT(histogram_count_above(&h, UINT64_C(1) << 41), 1);
	EXPECT_INT(histogram_add_n(&h, 1, UINT64_MAX), -EOVERFLOW);
	histogram_clear(&h);
	EXPECT_INT(h.count, 0);
	EXPECT_INT(histogram_add_n(&h, 5, 3), 0);
	EXPECT_INT(histogram_percentile(&h, 0.5), 5);
	histogram_fini(&h);
	histogram_fini(&other);
}

TEST(signed_rank_agrees_with_published_p)
{
	/* Darwin's maize, differences in eighths of an inch (Fisher, Design of Experiments): W- =
	 * 24, exact p = 0.0412597656 */
	static const double d[15] = {6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75};
	double zero[15] = {0}, a[200], b[200];
	struct test_result t;
	struct rng rng = rng_seed(3);
	int found = 0;

	ASSERT(signed_rank_test(zero, d, 15, &t) == 0);
	EXPECT_NEAR(t.statistic, 96, 0);
	EXPECT_NEAR(t.p, 0.041259765625, 1e-12);
	EXPECT_NEAR(t.probability, 13 / 15.0, 1e-12);
	ASSERT(signed_rank_test(d, zero, 15, &t) == 0);
	EXPECT_NEAR(t.p, 0.041259765625, 1e-12);
	ASSERT(signed_rank_test(zero, zero, 15, &t) == 0);
	EXPECT(isnan(t.p));
	EXPECT_INT(signed_rank_test(zero, d, 0, &t), -EINVAL);
	/* Same distribution, drifting: 5 % of the tests may find something at 5 %. */
	for (int round = 0; round < 400; round++) {
		for (int i = 0; i < 100; i++) {
			a[i] = i + rng_unit(&rng);
			b[i] = i + rng_unit(&rng);
		}
		ASSERT(signed_rank_test(a, b, round % 2 ? 100 : 30, &t) == 0);
		found += t.p < 0.05;
	}
	EXPECT_NEAR(found, 20, 13);
	for (int i = 0; i < 200; i++) {
		a[i] = 1000 + i % 7;
		b[i] = a[i] + 1 + i % 3;
	}
	ASSERT(signed_rank_test(a, b, 200, &t) == 0);
	EXPECT(t.p < 1e-20);
}

TEST(paired_figures_cover_the_change)
{
	struct rng rng = rng_seed(11);
	double a[41], b[41];
	struct paired_quantiles m;
	struct paired_shift shift;
	int covered = 0, median_covered = 0;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 41; i++) {
			double drift = 1 + 0.5 * i;

			a[i] = drift * (1 + 0.02 * rng_unit(&rng));
			b[i] = 1.05 * drift * (1 + 0.02 * rng_unit(&rng));
		}
		ASSERT(paired_shift(a, b, 41, 0.95, &shift) == 0);
		covered += shift.ci.low <= 0.05 && shift.ci.high >= 0.05;
		EXPECT(shift.ci.low <= shift.change && shift.change <= shift.ci.high);
		/* The drift of a factor of 21 falls out of the change. */
		EXPECT(shift.ci.high - shift.ci.low < 0.06);
		ASSERT(paired_quantiles(a, b, 41, 0.5, 0.95, 500, (uint64_t)round, &m) == 0);
		median_covered += m.a_ci.low <= 11.1 && m.a_ci.high >= 11.1;
	}
	EXPECT(covered >= 180);
	EXPECT(median_covered >= 180);
	ASSERT(paired_quantiles(a, b, 1, 0.5, 0.95, 10, 1, &m) == 0);
	EXPECT_NEAR(m.a, a[0], 0);
	EXPECT_NEAR(m.b_ci.high, b[0], 0);
	EXPECT_INT(paired_quantiles(a, b, 0, 0.5, 0.95, 10, 1, &m), -EINVAL);
	a[3] = 0;
	ASSERT(paired_quantiles(a, b, 4, 0, 0.95, 100, 1, &m) == 0);
	EXPECT(isnan(m.change) && isnan(m.change_ci.low));
}
