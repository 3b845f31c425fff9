/* The reader of libculprit's files: merging of threads and processes, and damaged input. */
#include <errno.h>
#include <stdlib.h>

#include "count/regions.h"
#include "harness/tap.h"

#define HEAD "culprit-regions\t1\nprocess\t7\tprog\t0\nevent\twall\tcounted\tclock\t\n"

static int add(struct regions *r, const char *text, struct err *err)
{
	return regions_add(r, text, strlen(text), err);
}

static const struct regions_row *find(const struct regions *r, const char *name, int tid)
{
	for (size_t i = 0; i < r->rows.len; i++)
		if (strcmp(strtab_text(&r->names, r->rows.data[i].name), name) == 0 &&
		    r->rows.data[i].tid == tid)
			return &r->rows.data[i];
	return NULL;
}

static const char two_threads[] = HEAD "event\tcycles\tcounted\tdirect\t\n"
				       "cost\t60\t200\n"
				       "thread\t7\t1\t2\n"
				       "region\ta\t2\t1\t100\t60\t1000\t600\n"
				       "region\tb \\x09\\x5c\t1\t0\t40\t40\t400\t400\n"
				       "thread\t8\t0\t0\n"
				       "region\ta\t3\t0\t10\t10\t100\t100\n"
				       "end\n";

TEST(threads_are_put_together)
{
	struct regions r;
	const struct regions_row *a;

	ASSERT(regions_init(&r, false) == 0);
	ASSERT(add(&r, two_threads, NULL) == 0);
	EXPECT_INT(r.rows.len, 2);
	a = find(&r, "a", 0);
	ASSERT(a != NULL);
	EXPECT_INT(a->calls, 5);
	EXPECT_INT(a->threads, 2);
	EXPECT_INT(a->unbalanced, 1);
	EXPECT_INT(a->total[0], 110);
	EXPECT_INT(a->self[1], 700);
	EXPECT(find(&r, "b \t\\", 0) != NULL);
	EXPECT_INT(r.lost, 1);
	EXPECT_INT(r.stray_ends, 2);
	EXPECT_INT(r.pair_ns, 60);
	EXPECT_INT(r.pair_cycles, 200);
	EXPECT(r.events[1].direct);
	regions_fini(&r);
	ASSERT(regions_init(&r, true) == 0);
	ASSERT(add(&r, two_threads, NULL) == 0);
	EXPECT_INT(r.rows.len, 3);
	a = find(&r, "a", 8);
	ASSERT(a != NULL);
	EXPECT_INT(a->calls, 3);
	regions_fini(&r);
}

/* Events are matched by name, and one that some process did not count is not known of the sum. */
TEST(processes_are_put_together)
{
	static const char other[] = HEAD "event\tfaults\tcounted\tread\t\n"
					 "event\tcycles\tnot_counted\t-\tno counter\n"
					 "thread\t9\t0\t0\nregion\ta\t1\t0\t5\t5\t77\t70\nend\n";
	const struct regions_row *a;
	struct regions r;

	ASSERT(regions_init(&r, false) == 0);
	ASSERT(add(&r, two_threads, NULL) == 0);
	ASSERT(add(&r, other, NULL) == 0);
	EXPECT_INT(r.processes, 2);
	EXPECT_INT(r.event_count, 3);
	EXPECT_INT(r.events[1].state, REGIONS_NOT_COUNTED);
	EXPECT_STR(strtab_text(&r.names, r.events[1].reason), "no counter");
	a = find(&r, "a", 0);
	ASSERT(a != NULL);
	EXPECT_INT(a->total[0], 115);
	EXPECT_INT(a->total[2], 77);
	EXPECT_INT(a->total[1], 1100);
	regions_fini(&r);
}

TEST(damage_is_told_by_line)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"", "line 0: the end is missing"},
		{"nonsense\n", "line 1: not a file of libculprit"},
		{"culprit-regions\t2\n", "line 1: not a file of libculprit"},
		{HEAD "thread\t7\t0\t0\n", "line 4: the end is missing"},
		{HEAD "region\ta\t1\t0\t5\t5\nend\n", "line 4: a region outside a thread"},
		{HEAD "thread\t7\t0\t0\nregion\ta\t1\t0\t5\nend\n",
		 "line 5: values and events do not match"},
		{HEAD "thread\t7\t0\t0\nregion\ta\tx\t0\t5\t5\nend\n", "line 5: not a number"},
		{HEAD "thread\t7\t0\t0\nregion\ta\t99999999999999999999\t0\t5\t5\nend\n",
		 "line 5: not a number"},
		{HEAD "thread\t7\t0\t0\nregion\ta\\x4\t1\t0\t5\t5\nend\n", "line 5: a broken \\"},
		{HEAD "thread\t7\nend\n", "line 4: a number is missing"},
		{HEAD "event\tx\tmaybe\t-\t\nend\n", "line 4: an event's state is not known"},
		{HEAD "end\nregion\n", "line 5: something behind the end"},
		{HEAD "thread\t99999999999\t0\t0\nend\n", "line 4: not a thread's number"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct regions r;
		struct err err = {0};

		ASSERT(regions_init(&r, false) == 0);
		EXPECT_INT(add(&r, cases[i].text, &err), -EBADMSG);
		tap_expect(strncmp(err.text, cases[i].words, strlen(cases[i].words)) == 0, __FILE__,
			   __LINE__, "have '%s', want '%s'", err.text, cases[i].words);
		regions_fini(&r);
	}
}

TEST(every_prefix_is_refused_or_read)
{
	for (size_t len = 0; len < sizeof(two_threads) - 1; len++) {
		struct regions r;
		char *copy = malloc(len ? len : 1); /* exact size, for the sanitizer */

		ASSERT(copy && regions_init(&r, false) == 0);
		memcpy(copy, two_threads, len);
		EXPECT(regions_add(&r, copy, len, NULL) ==
		       (len == sizeof(two_threads) - 2 ? 0 : -EBADMSG));
		regions_fini(&r);
		free(copy);
	}
}
