/* A top-down table on a simulated PMU: groups as the hardware wants them, and the truth found. */
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "count/topdown-set.h"
#include "fake-pmu.h"
#include "harness/tap.h"

struct collected {
	struct expr_value values[TOPDOWN_EVENTS_MAX];
	bool have[TOPDOWN_EVENTS_MAX];
};

static int collect(void *ctx, unsigned event, const struct expr_value *value,
		   const struct count_value *counted)
{
	struct collected *c = ctx;

	c->values[event] = *value;
	c->have[event] = true;
	return 0;
}

static void count_of(void *ctx, unsigned event, int section, struct expr_value *ret)
{
	struct collected *c = ctx;

	if (c->have[event])
		*ret = c->values[event];
}

/* Cycles tick once a ns. Six slots each: half frontend bound, a third backend bound. */
static double zen4_rate(const struct perf_event_attr *attr, uint64_t now)
{
	uint64_t select = (attr->config & 0xff) | (attr->config >> 24 & 0xf00),
		 umask = attr->config >> 8 & 0xff;

	if (attr->type == PERF_TYPE_HARDWARE || select == 0x76)
		return 1;
	if (select == 0x1a0 && (attr->config >> 24 & 0xff) == 0)
		return umask == 0x01 ? 3 : umask == 0x1e ? 2 : 0;
	return select == 0xc1 || select == 0xaa ? 1 : 0.1;
}

static struct topdown_result run(struct fake_pmu *pmu, const char *cpu, unsigned level,
				 struct topdown_set *ts)
{
	const struct topdown_table *table = topdown_table_find(cpu);
	bool nodes[256] = {false}, first[256] = {false}, wanted[256] = {false},
	     together[256] = {false};
	static const struct count_plan_options plan;
	struct count_place place = {.pid = 100, .cpu = -1, .cgroup = -1};
	struct count_session_options how = {.keep_slices = true};
	struct count_session *session = NULL;
	static struct collected c;
	struct topdown_inputs inputs = {&c, count_of, NULL, NULL, false};
	struct topdown_result result = {0};
	struct topdown *topdown = NULL;

	memset(&c, 0, sizeof(c));
	for (size_t i = 0; i < table->node_count; i++) {
		nodes[i] = table->nodes[i].level <= level;
		first[i] = table->nodes[i].level == 1;
	}
	EXPECT_INT(topdown_new(table, &topdown, NULL), 0);
	topdown_events(topdown, first, false, false, together);
	topdown_events(topdown, nodes, false, level > 1, wanted);
	EXPECT_INT(topdown_set_init(ts, table, wanted, together, &(struct topdown_pmu){.type = 4}),
		   0);
	EXPECT_INT(count_plan(&ts->set, &fake_ops, pmu, &plan), 0);
	EXPECT_INT(count_session_open(&ts->set, &fake_ops, pmu, &place, 1, 1, &how, &session, NULL),
		   0);
	count_session_enable(session);
	for (int i = 0; i < 200; i++) {
		fake_advance(pmu, 10 * NSEC_PER_MSEC);
		count_session_read(session);
	}
	EXPECT_INT(topdown_set_values(ts, session, 0, 0, collect, &c), 0);
	EXPECT_INT(topdown_eval(topdown, &inputs, 9, &result), 0);
	count_session_close(session);
	topdown_free(topdown);
	return result;
}

TEST(level_one_is_one_group_and_measured)
{
	static struct fake_pmu pmu;
	struct topdown_set ts;
	struct topdown_result r;
	int fe = topdown_node_find(topdown_table_find("zen4"), "frontend_bound");
	int be = topdown_node_find(topdown_table_find("zen4"), "backend_bound");

	fake_init(&pmu, 6);
	pmu.rate = zen4_rate;
	r = run(&pmu, "zen4", 1, &ts);
	EXPECT(!ts.set.multiplexed);
	EXPECT_INT(r.nodes[fe].value.state, EXPR_MEASURED);
	EXPECT_NEAR(r.nodes[fe].value.value, 0.5, 1e-6);
	EXPECT_NEAR(r.nodes[be].value.value, 2. / 6, 1e-6);
	EXPECT_NEAR(r.nodes[fe].stderr_, 0, 1e-12);
	EXPECT(r.nodes[fe].bottleneck);
	topdown_set_fini(&ts);
	topdown_result_fini(&r);
}

TEST(level_two_takes_turns_and_finds_the_truth)
{
	static struct fake_pmu pmu;
	struct topdown_set ts;
	struct topdown_result r;
	int fe = topdown_node_find(topdown_table_find("zen4"), "frontend_bound");

	fake_init(&pmu, 6);
	pmu.rate = zen4_rate;
	r = run(&pmu, "zen4", 2, &ts);
	EXPECT(ts.set.multiplexed);
	EXPECT(expr_has_number(&r.nodes[fe].value));
	EXPECT_NEAR(r.nodes[fe].value.value, 0.5, 0.01);
	topdown_set_fini(&ts);
	topdown_result_fini(&r);
}

TEST(slots_lead_the_metrics)
{
	static struct fake_pmu pmu;
	struct topdown_set ts;
	struct topdown_result r;
	unsigned position;
	int group;

	fake_init(&pmu, 12);
	r = run(&pmu, "spr", 2, &ts);
	group = count_set_group_of(&ts.set, 0, &position);
	ASSERT(group >= 0);
	EXPECT_STR(ts.set.events.data[0].name, "slots");
	EXPECT_INT(position, 0);
	for (unsigned i = 1; i < 9; i++) {
		EXPECT_INT(count_set_group_of(&ts.set, i, &position), group);
		EXPECT(strncmp(ts.set.events.data[i].name, "topdown-", 8) == 0);
	}
	topdown_set_fini(&ts);
	topdown_result_fini(&r);
}
