/*
 * How events are laid onto counters: kinds of core, events shared between groups, the events of one
 * metric; and what a run needs of the system. Tests named failure_NN_... hold a failure that users
 * of other tools reported.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "count-world.h"
#include "harness/tap.h"

static void open_on_cpu(struct world *w, const struct count_plan_options *options)
{
	struct count_place place = {.pid = -1, .cpu = 0, .cgroup = -1};
	struct count_session_options how = {.keep_slices = true};

	if (count_plan(&w->set, &fake_ops, &w->pmu, options) < 0 ||
	    count_session_open(&w->set, &fake_ops, &w->pmu, &place, 1, 1, &how, &w->session, NULL) <
		    0)
		abort();
	count_session_enable(w->session);
	w->started = w->pmu.now;
}

/* PerfSpect/pull/565: the same uncore event in two groups was opened twice and counts added up. */
TEST(failure_14_the_same_uncore_event_is_opened_once_and_shared)
{
	static const struct count_plan_options none;
	static const struct {
		uint64_t config;
		int group;
	} asked[] = {{1, 0}, {2, 0}, {1, 1}, {3, 1}, {1, -1}};
	struct world w;
	struct cpuset cpus = {0};

	world_init(&w, 8);
	cpuset_add(&cpus, 0);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		char name[] = "uncore/clockticks/";
		struct count_event event = {.name = name,
					    .scale = 1,
					    .kind = COUNT_UNCORE,
					    .user_group = asked[i].group,
					    .cpus = &cpus};

		event.attr.type = 20;
		event.attr.config = asked[i].config;
		ASSERT(count_set_add(&w.set, &event) == 0);
	}
	open_on_cpu(&w, &none);
	EXPECT_INT(w.pmu.opens, 3);
	world_run(&w, 20 * NSEC_PER_MSEC);
	EXPECT_INT(value_of(&w, 0).state, VALUE_MEASURED);
	EXPECT_NEAR(value_of(&w, 0).value, truth_of(&w, 0), 1e-3 * truth_of(&w, 0));
	EXPECT_NEAR(value_of(&w, 2).value, value_of(&w, 0).value, 0);
	EXPECT_NEAR(value_of(&w, 4).value, value_of(&w, 0).value, 0);
	EXPECT(value_of(&w, 3).value > 0);
	world_fini(&w);
}

/* Two kinds of core: PMU types 4 and 10, or the upper half of config of generic events. */
static int kind_of_event(const struct perf_event_attr *attr)
{
	uint64_t pmu = attr->type == PERF_TYPE_HARDWARE ? attr->config >> 32 : attr->type;

	return pmu == 10;
}

static double rate_by_config(const struct perf_event_attr *attr, uint64_t now)
{
	(void)now;
	return attr->type == PERF_TYPE_HARDWARE ? 1 : 0.01 * (double)(attr->config & 0xff);
}

static void wander(struct fake_pmu *pmu)
{
	pmu->at_kind = pmu->now / (12 * NSEC_PER_MSEC) % 2;
}

static unsigned add_partial(struct world *w, unsigned type, uint64_t config, unsigned first_cpu)
{
	char name[] = "cpu_x/event/";
	struct count_event event = {
		.name = name, .scale = 1, .kind = COUNT_CORE, .user_group = -1, .partial = true};
	struct cpuset cpus = {0};

	for (unsigned cpu = first_cpu; cpu < first_cpu + 4; cpu++)
		cpuset_add(&cpus, cpu);
	event.cpus = &cpus;
	event.attr.type = type;
	event.attr.config = config;
	if (count_set_add(&w->set, &event) < 0)
		abort();
	return (unsigned)w->set.events.len - 1;
}

static bool is_of_one_pool(const struct world *w, const struct count_group *group)
{
	for (unsigned i = 1; i < group->len; i++)
		if (kind_of_event(&w->set.events.data[group->members[i]].attr) !=
		    kind_of_event(&w->set.events.data[group->members[0]].attr))
			return false;
	return true;
}

static void hybrid_world(struct world *w, unsigned core, unsigned atom)
{
	world_init(w, 8);
	w->pmu.kind_of = kind_of_event;
	w->pmu.kind_counters[0] = 4;
	w->pmu.kind_counters[1] = 2;
	w->pmu.rate = rate_by_config;
	for (unsigned i = 0; i < core; i++)
		add_partial(w, 4, 0x40 + i, 0);
	for (unsigned i = 0; i < atom; i++)
		add_partial(w, 10, 0x40 + i, 4);
}

/*
 * ip/pull/299: a group of cpu_core and other PMUs was never counted. Each kind has its own
 * counters: three events fit the four of one kind, and five take turns on the two of the other,
 * whatever the machine has in all. What the thread did elsewhere is no multiplexing.
 */
TEST(failure_32_each_kind_of_core_is_planned_by_itself)
{
	struct world w;
	double cycles = NAN;

	hybrid_world(&w, 3, 5);
	w.pmu.on_tick = NULL;
	world_start(&w, NULL);
	EXPECT(w.set.multiplexed);
	EXPECT_INT(w.pmu.at_kind, 0); /* back where it was */
	vec_for_each(&w.set.groups, group) {
		const struct count_event *leader = &w.set.events.data[group->members[0]];

		EXPECT(is_of_one_pool(&w, group));
		/* One counter of the small kind goes to cycles that are always on: fixed here. */
		if (kind_of_event(&leader->attr) == 1)
			EXPECT(group->len <= 2 + (group->anchor >= 0));
		EXPECT(kind_of_event(&leader->attr) == 1 || group->anchor < 0);
	}
	w.pmu.on_tick = wander;
	world_run(&w, 600 * NSEC_PER_MSEC);
	for (unsigned i = 0; i < 3; i++) {
		struct count_value v = value_of(&w, i);

		EXPECT_INT(v.state, VALUE_MEASURED);
		EXPECT_NEAR(v.value, 0.01 * (0x40 + i) * 300e6, 0.05 * v.value);
	}
	vec_for_each(&w.set.groups, group)
		if (group->pinned)
			cycles = value_of(&w, group->members[0]).value;
	EXPECT_NEAR(cycles, 300e6, 15e6);
	for (unsigned i = 3; i < 8; i++) {
		struct count_value v = value_of(&w, i);
		double rate = 0.01 * (0x40 + i - 3);

		EXPECT(v.state == VALUE_ESTIMATED || v.state == VALUE_WEAK);
		EXPECT_NEAR(v.value, rate * cycles, 1e-3 * v.value);
		EXPECT(value_share(&v) > 0.1 && value_share(&v) < 0.9);
	}
	world_fini(&w);
}

/* The same in passes: the larger kind needs one, the smaller three, and they go together. */
TEST(failure_32_exact_passes_are_shared_by_the_kinds)
{
	static const struct count_plan_options exact = {.exact = true};
	struct world w;

	hybrid_world(&w, 3, 5);
	EXPECT_INT(count_plan(&w.set, &fake_ops, &w.pmu, &exact), 0);
	EXPECT_INT(w.set.passes, 3);
	EXPECT(!w.set.multiplexed);
	vec_for_each(&w.set.groups, group)
		EXPECT(is_of_one_pool(&w, group));
	world_fini(&w);
}

static void tie(struct world *w, const char *name, const unsigned *members, unsigned len)
{
	struct count_bundle bundle = {.len = len};

	snprintf(bundle.name, sizeof(bundle.name), "%s", name);
	memcpy(bundle.members, members, len * sizeof(*members));
	if (vec_push(&w->set.bundles, bundle) < 0)
		abort();
}

static int group_of_bundle(const struct world *w, size_t b)
{
	const struct count_bundle *bundle = &w->set.bundles.data[b];

	return count_session_common_group(w->session, bundle->members, bundle->len);
}

/* The events of a metric share a group; what two metrics need is opened again rather than torn. */
TEST(events_of_a_metric_are_counted_together)
{
	struct world w;
	unsigned e[9];
	char name[16];

	world_init(&w, 3);
	for (unsigned i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "r%x", 0x10 + i);
		e[i] = add_event(&w.set, name, -1);
	}
	tie(&w, "first", (unsigned[]){e[0], e[1], e[2]}, 3);
	tie(&w, "second", (unsigned[]){e[0], e[3]}, 2);
	tie(&w, "third", (unsigned[]){e[4], e[5], e[0]}, 3);
	tie(&w, "too_large", (unsigned[]){e[4], e[5], e[6], e[7]}, 4);
	world_start(&w, NULL);
	world_run(&w, 400 * NSEC_PER_MSEC);
	for (size_t b = 0; b < 3; b++)
		EXPECT(group_of_bundle(&w, b) >= 0);
	EXPECT_INT(group_of_bundle(&w, 3), -1);
	EXPECT(strstr(str_text(&w.set.notes), "the 4 events of too_large") != NULL);
	for (unsigned i = 0; i < 9; i++) {
		struct count_value v = value_of(&w, e[i]);

		EXPECT(value_has_number(&v));
		EXPECT_NEAR(v.value, truth_of(&w, e[i]), 0.01 * v.value);
	}
	/* The twin of e[0] in the third metric counts what e[0] counts. */
	EXPECT(w.set.bundles.data[2].members[2] != e[0]);
	EXPECT_NEAR(value_of(&w, w.set.bundles.data[2].members[2]).value, value_of(&w, e[0]).value,
		    0.01 * value_of(&w, e[0]).value);
	world_fini(&w);
}

TEST(events_of_a_metric_are_of_one_run_in_exact_plans)
{
	static const struct count_plan_options exact = {.exact = true};
	struct world w;
	unsigned e[5];
	char name[16];

	world_init(&w, 2);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "r%x", 0x10 + i);
		e[i] = add_event(&w.set, name, -1);
	}
	tie(&w, "first", (unsigned[]){e[0], e[1]}, 2);
	tie(&w, "second", (unsigned[]){e[0], e[2]}, 2);
	EXPECT_INT(count_plan(&w.set, &fake_ops, &w.pmu, &exact), 0);
	EXPECT_INT(w.set.passes, 3);
	for (size_t b = 0; b < 2; b++) {
		const struct count_bundle *bundle = &w.set.bundles.data[b];
		int first = count_set_group_of(&w.set, bundle->members[0], NULL),
		    second = count_set_group_of(&w.set, bundle->members[1], NULL);

		ASSERT(first >= 0 && second >= 0);
		EXPECT_INT(w.set.groups.data[first].pass, w.set.groups.data[second].pass);
	}
	world_fini(&w);
}

/* x / y of one group: the error of a formula by its derivatives is the ratio's own. */
TEST(error_of_a_formula_is_that_of_the_ratio)
{
	struct world w;
	struct count_ratio ratio;
	unsigned e[6];
	char name[16];
	double weights[2], error;
	int group;

	world_init(&w, 3);
	for (unsigned i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "r%x", 0x10 + i);
		e[i] = add_event(&w.set, name, -1);
	}
	tie(&w, "ratio", (unsigned[]){e[0], e[1]}, 2);
	world_start(&w, NULL);
	world_run(&w, 400 * NSEC_PER_MSEC);
	count_session_ratio(w.session, 0, e[0], e[1], &ratio);
	EXPECT(ratio.together);
	EXPECT(ratio.share > 0 && ratio.share < 1);
	group = count_session_common_group(w.session, (unsigned[]){e[0], e[1]}, 2);
	ASSERT(group >= 0);
	weights[0] = 1 / value_of(&w, e[1]).value;
	weights[1] = -value_of(&w, e[0]).value / pow(value_of(&w, e[1]).value, 2);
	error = count_session_sum_error(w.session, 0, (unsigned)group, (unsigned[]){e[0], e[1]},
					weights, 2);
	EXPECT_NEAR(error, ratio.stderr_, 1e-6 + 0.01 * ratio.stderr_);
	world_fini(&w);
}

/* pm/492, pm/516: the share of the time came from another program's text. Every value and every
 * ratio knows its own. */
TEST(failure_17_every_derived_value_knows_its_share)
{
	struct world w;
	struct count_ratio ratio;
	unsigned e[8];
	char name[16];

	world_init(&w, 2);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "r%x", 0x10 + i);
		e[i] = add_event(&w.set, name, -1);
	}
	world_start(&w, NULL);
	world_run(&w, 400 * NSEC_PER_MSEC);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < 8; k++) {
			struct count_value a = value_of(&w, e[i]), b = value_of(&w, e[k]);

			count_session_ratio(w.session, 0, e[i], e[k], &ratio);
			EXPECT_NEAR(ratio.share, fmin(value_share(&a), value_share(&b)), 0);
			EXPECT(ratio.share > 0.05 && ratio.share < 0.95);
		}
	world_fini(&w);
}

/* pm/184: too many open files on many CPUs. The limit is raised to the need; when that cannot be,
 * the need is said before anything is opened. */
TEST(failure_40_open_files_are_reckoned_and_raised)
{
	static const struct count_plan_options none;
	enum {
		PLACES = 300
	};
	struct count_place places[PLACES];
	struct count_session_options how = {0};
	struct world w;
	struct err err = {""};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct rlimit limit;
		bool raised, told;

		world_init(&w, 8);
		add_event(&w.set, "cycles", -1);
		add_event(&w.set, "instructions", -1);
		count_plan(&w.set, &fake_ops, &w.pmu, &none);
		for (unsigned i = 0; i < PLACES; i++)
			places[i] = (struct count_place){.pid = -1, .cpu = (int)i, .cgroup = -1};
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = 64;
		setrlimit(RLIMIT_NOFILE, &limit);
		/* The simulated PMU is full before: what counts is that the limit went up first. */
		(void)count_session_open(&w.set, &fake_ops, &w.pmu, places, PLACES, 1, &how,
					 &w.session, &err);
		getrlimit(RLIMIT_NOFILE, &limit);
		raised = limit.rlim_cur >= 2 * PLACES;
		limit.rlim_cur = limit.rlim_max = 64;
		setrlimit(RLIMIT_NOFILE, &limit);
		err = (struct err){""};
		if (setuid(65534) < 0) /* root may raise hard limits too */
			_exit(3);
		told = count_session_open(&w.set, &fake_ops, &w.pmu, places, PLACES, 1, &how,
					  &w.session, &err) == -EMFILE &&
		       strstr(err.text, "needs 664 open files, the hard limit is 64") != NULL;
		_exit(raised && told ? 0 : 1);
	}
	EXPECT(pid > 0);
	waitpid(pid, &status, 0);
	SKIP_IF(WIFEXITED(status) && WEXITSTATUS(status) == 3 && geteuid() != 0,
		"an unprivileged user cannot be had");
	EXPECT_INT(status, 0);
}
