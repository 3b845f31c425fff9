/* Differences of profiles and the tests behind them. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/tap.h"
#include "profile/diff.h"
#include "profile/folded.h"
#include "stats/proportion.h"

TEST(proportions_as_r_tests_them)
{
	/* prop.test(c(15, 25), c(50, 50)): X-squared = 3.375, p-value = 0.06619 */
	struct test_result r = proportion_test(15, 50, 25, 50);

	EXPECT_NEAR(r.statistic * r.statistic, 3.375, 1e-9);
	EXPECT(r.statistic > 0);
	EXPECT_NEAR(r.p, 0.06619, 5e-6);
	EXPECT_NEAR(proportion_test(25, 50, 15, 50).p, r.p, 1e-12);
	EXPECT_NEAR(proportion_test(7, 70, 1, 10).p, 1, 1e-12);
	EXPECT_NEAR(proportion_test(0, 5, 0, 7).p, 1, 0);
	EXPECT(isnan(proportion_test(0, 0, 1, 7).p));
	EXPECT(isnan(proportion_test(9, 8, 1, 7).p));
}

TEST(false_discoveries)
{
	/* The example of Benjamini and Hochberg 1995: four of fifteen at 5 %. */
	const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
			    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
	bool selected[15] = {false};
	size_t count = 0;

	EXPECT_INT(false_discovery_select(p, 15, 0.05, selected), 0);
	for (size_t i = 0; i < 15; i++)
		count += selected[i];
	EXPECT_INT(count, 4);
	EXPECT(selected[3] && !selected[4]);
	EXPECT_INT(false_discovery_select(&(double){NAN}, 1, 0.05, selected), 0);
	EXPECT(!selected[0]);
}

static void read_text(const char *text, struct profile *ret)
{
	EXPECT_INT(folded_read(text, strlen(text), ret, NULL, NULL), 0);
}

static const struct diff_row *find(const struct profile_diff *diff, const char *name)
{
	vec_for_each(&diff->rows, row)
		if (strcmp(strtab_text(&diff->strings, row->symbol), name) == 0)
			return row;
	return NULL;
}

TEST(shares_before_and_after)
{
	struct profile base, new;
	struct profile_diff diff;
	const struct diff_row *row;

	read_text("main;f;g 30\nmain;f 10\nmain;f;f 20\nmain;gone 40\n", &base);
	read_text("main;f;g 90\nmain;f 110\n", &new);
	ASSERT(profile_diff(&base, 0, &new, 0, false, &diff) == 0);
	EXPECT_INT(diff.rows.len, 3);
	EXPECT_INT(diff.base_all, 100);
	EXPECT(diff.tested);
	row = find(&diff, "gone");
	ASSERT(row != NULL);
	EXPECT(row == diff.rows.data);
	EXPECT_NEAR(row->delta_share, -0.4, 1e-12);
	EXPECT_INT(row->new.self, 0);
	EXPECT(row->significant);
	row = find(&diff, "f");
	ASSERT(row != NULL);
	EXPECT_NEAR(row->base_share, 0.3, 1e-12);
	EXPECT_NEAR(row->new_share, 0.55, 1e-12);
	profile_diff_fini(&diff);

	ASSERT(profile_diff(&base, 0, &new, 0, true, &diff) == 0);
	row = find(&diff, "f");
	ASSERT(row != NULL);
	EXPECT_INT(row->base.total, 60); /* a recursion counts once */
	EXPECT_NEAR(row->new_share, 1, 1e-12);
	row = find(&diff, "main");
	ASSERT(row != NULL);
	EXPECT_NEAR(row->delta_share, 0, 0);
	EXPECT(!row->significant);
	profile_diff_fini(&diff);
	EXPECT_INT(profile_diff(&base, 3, &new, 0, true, &diff), -EINVAL);
	profile_fini(&base);
	profile_fini(&new);
}
