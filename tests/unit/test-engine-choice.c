/* Which engine is chosen, and how that is said: engines that only pretend. */
#include <errno.h>
#include <string.h>

#include "harness/tap.h"
#include "latency/engine.h"

static int can(const struct latency_options *options, struct err *err)
{
	return 0;
}

static int cannot(const struct latency_options *options, struct err *err)
{
	return err_set(err, -EPERM, "not permitted: be root");
}

static int cannot_silently(const struct latency_options *options, struct err *err)
{
	return -ENOSYS;
}

static const struct latency_engine_ops tracer = {.id = ENGINE_TRACER, .probe = cannot};
static const struct latency_engine_ops bpf = {.id = ENGINE_BPF, .probe = cannot_silently};
static const struct latency_engine_ops light = {.id = ENGINE_LIGHT, .probe = can};
static const struct latency_engine_ops user = {.id = ENGINE_USER, .probe = can};
static const struct latency_engine_ops *const rows[] = {&tracer, &bpf, &light, &user};
static const struct latency_options options = {.tool = LATENCY_TIMERLAT};

TEST(the_first_that_can_with_reasons)
{
	const struct latency_engine_ops *chosen = NULL;
	char reason[256];
	struct err err = {0};

	EXPECT_INT(latency_engine_choose_from(rows, 4, &options, 0, &chosen, reason, sizeof(reason),
					      &err),
		   0);
	EXPECT(chosen == &light);
	EXPECT_STR(reason, "not K: not permitted: be root; not B: Function not implemented");
}

TEST(the_best_needs_no_excuse)
{
	const struct latency_engine_ops *chosen = NULL;
	char reason[256];
	struct err err = {0};

	EXPECT_INT(latency_engine_choose_from(rows + 2, 2, &options, 0, &chosen, reason,
					      sizeof(reason), &err),
		   0);
	EXPECT_STR(reason, "the best there is");
}

TEST(a_forced_one_or_the_reason)
{
	const struct latency_engine_ops *chosen = NULL;
	char reason[256] = "";
	struct err err = {0};

	EXPECT_INT(latency_engine_choose_from(rows, 4, &options, 'u', &chosen, reason,
					      sizeof(reason), &err),
		   0);
	EXPECT(chosen == &user);
	chosen = NULL;
	EXPECT_INT(latency_engine_choose_from(rows, 4, &options, 'K', &chosen, reason,
					      sizeof(reason), &err),
		   -EPERM);
	EXPECT_STR(err.text, "engine K (kernel tracer): not permitted: be root");
	EXPECT_INT(latency_engine_choose_from(rows, 4, &options, 'x', &chosen, reason,
					      sizeof(reason), &err),
		   -EINVAL);
	EXPECT(chosen == NULL);
}

TEST(none_at_all)
{
	const struct latency_engine_ops *chosen = NULL;
	char reason[256];
	struct err err = {0};

	EXPECT_INT(latency_engine_choose_from(rows, 2, &options, 0, &chosen, reason, sizeof(reason),
					      &err),
		   -ENOSYS);
	EXPECT(strstr(err.text, "no engine can measure this here: not K: not permitted") != NULL);
}
