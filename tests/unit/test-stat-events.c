/* The texts of -e as events of a set: groups, the fields of PERF_METRICS, kinds of core. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/stat-formula.h"
#include "fake-root.h"
#include "harness/tap.h"

struct fixture {
	struct fake_root root;
	struct stat_job job;
};

/* stat-formula.c has it for the machine itself. */
int stat_env(struct stat_job *job, struct event_env **ret, struct err *err)
{
	(void)err;
	*ret = job->env;
	return 0;
}

static void setup(struct fixture *f, void (*make)(struct fake_root *))
{
	struct event_env_options options = {.events_dir = "", .no_libpfm = true};

	*f = (struct fixture){0};
	make(&f->root);
	options.host = &f->root.host;
	if (event_env_new(&options, &f->job.env, NULL) < 0)
		abort();
}

static void teardown(struct fixture *f)
{
	count_set_fini(&f->job.set);
	event_env_free(f->job.env);
	fake_root_remove(&f->root);
}

static const struct count_event *at(const struct fixture *f, size_t i)
{
	return &f->job.set.events.data[i];
}

/* ip/318, ip/99: topdown events without the group of slots were all zero. A field that stands alone
 * gets slots before it, several share one group, and a group of the user's stays what it is. */
TEST(failure_33_fields_of_perf_metrics_get_slots_before_them)
{
	static const char *const alone[] = {
		"cpu_core/topdown-retiring/,cycles:u,cpu_core/topdown-retiring/u"};
	static const char *const grouped[] = {"{cpu_core/slots/,cpu_core/topdown-retiring/}"};
	struct fixture f;

	setup(&f, fake_root_hybrid);
	ASSERT(stat_add_event_texts(&f.job, alone, 1, NULL) == 0);
	ASSERT(f.job.set.events.len == 5); /* cycles of both kinds of core */
	EXPECT_STR(at(&f, 0)->name, "cpu_core/slots/");
	EXPECT(at(&f, 0)->user_group >= 0);
	EXPECT_INT(at(&f, 1)->user_group, at(&f, 0)->user_group);
	EXPECT_INT(at(&f, 2)->user_group, -1);
	EXPECT_INT(at(&f, 4)->user_group, at(&f, 0)->user_group);
	EXPECT(!at(&f, 0)->weak); /* it must not be torn apart */
	EXPECT(at(&f, 2)->partial && at(&f, 2)->cpus && !cpuset_has(at(&f, 2)->cpus, 4));
	ASSERT(stat_add_event_texts(&f.job, grouped, 1, NULL) == 0);
	EXPECT_INT(f.job.set.events.len, 7);
	EXPECT(at(&f, 5)->user_group > at(&f, 0)->user_group);
	EXPECT_INT(at(&f, 6)->user_group, at(&f, 5)->user_group);
	teardown(&f);
}

/* What a metric needs is found again when it is counted already, in the same modes only. */
TEST(events_needed_twice_are_added_once)
{
	static const char *const asked[] = {"cycles:u,instructions"};
	struct fixture f;
	size_t first = 99, count = 99;

	setup(&f, fake_root_intel);
	ASSERT(stat_add_event_texts(&f.job, asked, 1, NULL) == 0);
	ASSERT(stat_need_text(&f.job, "instructions", &first, &count, NULL) == 0);
	EXPECT(first == 1 && count == 1);
	ASSERT(stat_need_text(&f.job, "cycles", &first, &count, NULL) == 0);
	EXPECT(first == 2 && count == 1);
	ASSERT(stat_need_text(&f.job, "cycles:u", &first, &count, NULL) == 0);
	EXPECT(first == 0 && count == 1);
	EXPECT_INT(f.job.set.events.len, 3);
	EXPECT_INT(stat_need_text(&f.job, "no-such", &first, &count, NULL), -ENOENT);
	EXPECT_INT(f.job.set.events.len, 3);
	teardown(&f);
}
