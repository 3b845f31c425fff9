/*
 * Top-down: every table is usable; published counts give the published digits; counts that cannot
 * be true are refused; errors and marks. Oracles: perf outputs that people published, recomputed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "events/topdown.h"
#include "harness/tap.h"

struct count {
	const char *name;
	double value;
	int section;
	double error, share;
};

struct counts {
	const struct topdown_table *table;
	const struct count *data;
	size_t len;
};

static void count_of(void *ctx, unsigned event, int section, struct expr_value *ret)
{
	const struct counts *c = ctx;

	for (size_t i = 0; i < c->len; i++) {
		unsigned factor;

		if (topdown_event_match(c->table, c->data[i].name, &factor) != (int)event)
			continue;
		if (section >= 0 && c->data[i].section != section)
			continue;
		*ret = expr_number(c->data[i].value / factor);
		ret->variance = c->data[i].error * c->data[i].error;
		if (c->data[i].share > 0)
			ret->state = c->data[i].share < 0.4 ? EXPR_WEAK : EXPR_ESTIMATED;
		return;
	}
}

static int section_of(void *ctx, const unsigned *events, size_t len)
{
	for (int section = 1; section < 8; section++) {
		size_t found = 0;

		for (size_t i = 0; i < len; i++) {
			struct expr_value value = expr_missing(EXPR_NOT_COUNTED, "none");

			count_of(ctx, events[i], section, &value);
			found += expr_has_number(&value);
		}
		if (found == len)
			return section;
	}
	return -1;
}

static struct topdown_result evaluate(const char *cpu, const struct count *data, size_t len,
				      bool smt_on)
{
	struct counts counts = {topdown_table_find(cpu), data, len};
	struct topdown_inputs inputs = {&counts, count_of, section_of, NULL, smt_on};
	struct topdown_result result = {0};
	struct topdown *topdown = NULL;

	EXPECT_INT(topdown_new(counts.table, &topdown, NULL), 0);
	EXPECT_INT(topdown_eval(topdown, &inputs, 9, &result), 0);
	topdown_free(topdown);
	return result;
}

#define EVALUATE(cpu, data) evaluate(cpu, data, ARRAY_LEN(data), false)

static const struct topdown_value *node(const char *cpu, const struct topdown_result *result,
					const char *name)
{
	return &result->nodes[topdown_node_find(topdown_table_find(cpu), name)];
}

/* The value as "18.4", or the state. */
static const char *digits(const char *cpu, const struct topdown_result *result, const char *name)
{
	static char text[8][32];
	static unsigned next;
	const struct topdown_value *v = node(cpu, result, name);
	char *buf = text[next++ % 8];

	if (expr_has_number(&v->value))
		snprintf(buf, 32, "%.1f", 100 * v->value.value);
	else
		snprintf(buf, 32, "%s", expr_state_name(v->value.state));
	return buf;
}

TEST(every_table_parses_and_every_event_is_reached)
{
	for (size_t i = 0; i < topdown_tables_len; i++) {
		const struct topdown_table *table = &topdown_tables[i];
		bool all[256] = {false}, wanted[256], smt[256];
		struct topdown *topdown = NULL;
		struct err err = {""};
		size_t reached = 0;

		ASSERT(table->node_count < 256 && table->event_count < 256);
		memset(all, 1, table->node_count);
		if (!tap_expect(topdown_new(table, &topdown, &err) == 0, __FILE__, __LINE__,
				"%s: %s", table->set, err.text))
			continue;
		topdown_events(topdown, all, false, true, wanted);
		topdown_free(topdown);
		ASSERT(topdown_new(table, &topdown, &err) == 0);
		topdown_events(topdown, all, true, true, smt);
		topdown_free(topdown);
		for (size_t e = 0; e < table->event_count; e++)
			reached += wanted[e] || smt[e];
		tap_expect(reached == table->event_count, __FILE__, __LINE__,
			   "%s: %zu of %zu events", table->set, reached, table->event_count);
		for (size_t e = 1; e < table->event_count; e++)
			tap_expect(strcmp(table->events[e - 1].name, table->events[e].name) < 0,
				   __FILE__, __LINE__, "%s: %s is out of order", table->set,
				   table->events[e].name);
	}
}

TEST(folding_saves_events)
{
	const struct topdown_table *table = topdown_table_find("skl");
	bool nodes[256] = {false}, wanted[256];
	struct topdown *topdown;

	ASSERT(topdown_new(table, &topdown, NULL) == 0);
	nodes[topdown_node_find(table, "bad_speculation")] = true;
	topdown_events(topdown, nodes, false, false, wanted);
	EXPECT(!wanted[topdown_event_find(table, "int_misc.recovery_cycles_any")]);
	EXPECT(wanted[topdown_event_find(table, "int_misc.recovery_cycles")]);
	EXPECT(!wanted[topdown_event_find(table, "cpu_clk_unhalted.thread_any")]);
	topdown_free(topdown);
}

/* Servers measure other distances than the client they are like; SMT decides about events. */
TEST(tables_like_others)
{
	const struct topdown_table *skl = topdown_table_find("skl"),
				   *skx = topdown_table_find("skx"),
				   *clx = topdown_table_find("clx"),
				   *spr = topdown_table_find("spr"),
				   *gnr = topdown_table_find("gnr");
	bool nodes[256] = {false}, wanted[256];
	struct topdown *topdown;

	EXPECT(skl != skx && skx != clx && spr != gnr && gnr == topdown_table_find("adl-p"));
	EXPECT(strstr(skl->nodes[topdown_node_find(skl, "l3_hit_latency")].formula, "(10 * GHz)"));
	EXPECT(strstr(skx->nodes[topdown_node_find(skx, "l3_hit_latency")].formula,
		      "(20.5 * GHz)"));
	EXPECT_INT(topdown_event_find(skx, "offcore_response.demand_rfo.l3_hit.snoop_hitm"), -1);
	EXPECT(topdown_event_find(clx, "ocr.demand_rfo.l3_miss.remote_hitm") >= 0);
	EXPECT(topdown_node_find(clx, "slow_pause") >= 0 &&
	       topdown_node_find(skx, "slow_pause") < 0);
	EXPECT_INT(topdown_node_find(gnr, "l1_bound"), -1); /* levels 1 and 2 */
	EXPECT_INT(gnr->node_count, 12);
	EXPECT(topdown_node_find(skl, "4K_aliasing") >= 0);
	nodes[topdown_node_find(spr, "dsb")] = true;
	ASSERT(topdown_new(spr, &topdown, NULL) == 0);
	topdown_events(topdown, nodes, false, false, wanted);
	EXPECT(!wanted[topdown_event_find(spr, "cpu_clk_unhalted.distributed")]);
	topdown_free(topdown);
	ASSERT(topdown_new(spr, &topdown, NULL) == 0);
	topdown_events(topdown, nodes, true, false, wanted);
	EXPECT(wanted[topdown_event_find(spr, "cpu_clk_unhalted.distributed")]);
	topdown_free(topdown);
}

TEST(names_of_events)
{
	const struct topdown_table *spr = topdown_table_find("spr"),
				   *zen4 = topdown_table_find("zen4");
	const struct topdown_table *skl = topdown_table_find("clx");
	unsigned factor;

	EXPECT(topdown_table_find("ZEN5") && !topdown_table_find("zen") &&
	       !topdown_table_find("") && !topdown_table_find("spr emr"));
	EXPECT_INT(topdown_event_match(spr, "TOPDOWN.SLOTS:u", &factor),
		   topdown_event_find(spr, "slots"));
	EXPECT_INT(topdown_event_match(spr, "slots", &factor), topdown_event_find(spr, "slots"));
	EXPECT_INT(topdown_event_match(spr, "cpu_core/topdown-retiring/u", &factor),
		   topdown_event_find(spr, "topdown-retiring"));
	EXPECT_INT(topdown_event_match(spr, "INT_MISC.UOP_DROPPING:uk", &factor),
		   topdown_event_find(spr, "int_misc.uop_dropping"));
	EXPECT_INT(topdown_event_match(
			   zen4, "cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/",
			   &factor),
		   topdown_event_find(zen4, "de_no_dispatch_per_slot.no_ops_from_frontend:c6"));
	EXPECT_INT(topdown_event_match(skl, "topdown-total-slots", &factor),
		   topdown_event_find(skl, "cpu_clk_unhalted.thread"));
	EXPECT_INT(factor, 4);
	EXPECT_INT(topdown_event_match(skl, "no-such-event", &factor), -1);
	EXPECT_INT(topdown_event_match(skl, "///", &factor), -1);
	EXPECT_INT(topdown_event_match(skl, "", &factor), -1);
}

TEST(sapphire_rapids_with_uop_dropping)
{
	static const struct count counts[] = {{"TOPDOWN.SLOTS:u", 3245820},
					      {"topdown-retiring:u", 564859},
					      {"topdown-fe-bound:u", 1370999},
					      {"topdown-be-bound:u", 603271},
					      {"topdown-bad-spec:u", 744874},
					      {"INT_MISC.UOP_DROPPING:u", 12661},
					      {"cycles:u", 540970},
					      {"instructions:u", 556325}};
	struct topdown_result r = EVALUATE("spr", counts);

	EXPECT_STR(digits("spr", &r, "backend_bound"), "18.4");
	EXPECT_STR(digits("spr", &r, "retiring"), "17.2");
	EXPECT_STR(digits("spr", &r, "bad_speculation"), "23.1");
	EXPECT_STR(digits("spr", &r, "frontend_bound"), "41.4");
	EXPECT_STR(digits("spr", &r, "fetch_latency"), "not_counted");
	EXPECT_NEAR(r.sum, 1, 1e-12);
	EXPECT_NEAR(r.cpi.value, 540970. / 556325, 1e-12);
	EXPECT(node("spr", &r, "frontend_bound")->bottleneck &&
	       node("spr", &r, "bad_speculation")->holds);
	EXPECT(!node("spr", &r, "backend_bound")->holds && !node("spr", &r, "retiring")->holds);
	topdown_result_fini(&r);
}

TEST(ice_lake_without_corrections)
{
	/* slots, retiring, bad, fe, be; then the printed digits in the same order; weak: the gap is
	 * large */
	static const struct {
		double counts[5];
		const char *digits[4];
		bool weak;
	} cases[] = {
		{{71229087, 8336760, 5066320, 22769750, 35080387},
		 {"11.7", "7.1", "32.0", "49.2"},
		 false},
		{{22511903971150, 7377211958188, 3145247374138, 8018664899041, 4167103609622},
		 {"32.5", "13.9", "35.3", "18.4"},
		 false},
		{{289245492485, 179258216211, 75430267605, 17593012308, 23494753955},
		 {"60.6", "25.5", "5.9", "7.9"},
		 false},
		{{110012224180, 46249288201, 66840325235, 11551676669, 4200795487},
		 {"35.9", "51.9", "9.0", "3.3"},
		 true},
		{{126172157990, 55613976450, 55596409379, 10209440926, 7530072334},
		 {"43.1", "43.1", "7.9", "5.8"},
		 false},
		{{96357040585, 55076267037, 31139434659, 11234677820, 6477665317},
		 {"53.0", "30.0", "10.8", "6.2"},
		 true},
		{{1718355823412, 333238633815, 1027585489317, 11428105361, 538164217329},
		 {"17.4", "53.8", "0.6", "28.2"},
		 true},
	};
	static const char *const events[] = {"slots", "topdown-retiring", "topdown-bad-spec",
					     "topdown-fe-bound", "topdown-be-bound"};
	static const char *const nodes[] = {"retiring", "bad_speculation", "frontend_bound",
					    "backend_bound"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct count counts[5];
		struct topdown_result r;

		for (int e = 0; e < 5; e++)
			counts[e] = (struct count){.name = events[e], .value = cases[i].counts[e]};
		r = EVALUATE("icx", counts);
		for (int n = 0; n < 4; n++)
			EXPECT_STR(digits("icx", &r, nodes[n]), cases[i].digits[n]);
		EXPECT_INT(node("icx", &r, "retiring")->value.state == EXPR_WEAK, cases[i].weak);
		EXPECT_INT(r.bottleneck >= 0, !cases[i].weak);
		topdown_result_fini(&r);
	}
}

TEST(zen4_levels_one_and_two)
{
	static const struct count counts[] = {
		{"ex_ret_brn_misp", 21958894, 1},
		{"de_src_op_disp.all", 20284275971, 1},
		{"resyncs_or_nc_redirects", 51318, 1},
		{"ls_not_halted_cyc", 4895089444, 1},
		{"ex_ret_ops", 18657737631, 1},
		{"ex_no_retire.load_not_complete", 681847357, 2},
		{"de_no_dispatch_per_slot.backend_stalls", 3602363546, 2},
		{"ex_no_retire.not_complete", 1068036530, 2},
		{"ls_not_halted_cyc", 4894584247, 2},
		{"ex_ret_ucode_ops", 8854312, 3},
		{"ls_not_halted_cyc", 4895098597, 3},
		{"ex_ret_ops", 18620594832, 3},
		{"de_no_dispatch_per_slot.no_ops_from_frontend", 5460578458, 4},
		{"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/", 563718873, 4},
		{"ls_not_halted_cyc", 4894729709, 4},
		{"de_no_dispatch_per_slot.smt_contention", 79739703, 5},
		{"ls_not_halted_cyc", 4894939755, 5},
	};
	static const char *const want[][2] = {
		{"bad_speculation", "5.5"},   {"mispredicts", "5.5"},
		{"pipeline_restarts", "0.0"}, {"retiring", "63.5"},
		{"backend_bound", "12.3"},    {"memory_bound", "7.8"},
		{"cpu_bound", "4.4"},         {"fastpath", "63.4"},
		{"microcode", "0.0"},         {"frontend_bound", "18.6"},
		{"frontend_latency", "11.5"}, {"frontend_bandwidth", "7.1"},
		{"smt_contention", "0.3"},
	};
	struct topdown_result r = EVALUATE("zen4", counts);

	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		EXPECT_STR(digits("zen4", &r, want[i][0]), want[i][1]);
	EXPECT_NEAR(r.sum, 1.0, 0.01);
	EXPECT(node("zen4", &r, "frontend_latency")->bottleneck);
	topdown_result_fini(&r);
}

TEST(zen4_level_one)
{
	static const struct {
		double disp, cycles1, ret, smt, cycles2, fe, cycles3, be, cycles4;
		const char *digits[5];
	} cases[] = {
		{74722674738,
		 29557874567,
		 64382628404,
		 87109879,
		 29522675914,
		 99571510280,
		 29508518726,
		 2964589640,
		 29528187809,
		 {"5.8", "36.3", "0.0", "56.2", "1.7"}},
		{219730483625,
		 44116386583,
		 214351198437,
		 0,
		 44116420605,
		 5543991665,
		 44116420605,
		 39403115284,
		 44117209499,
		 {"2.0", "81.0", "0.0", "2.1", "14.9"}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct count counts[] = {
			{"de_src_op_disp.all", cases[i].disp, 1},
			{"ls_not_halted_cyc", cases[i].cycles1, 1},
			{"ex_ret_ops", cases[i].ret, 1},
			{"de_no_dispatch_per_slot.smt_contention", cases[i].smt, 2},
			{"ls_not_halted_cyc", cases[i].cycles2, 2},
			{"de_no_dispatch_per_slot.no_ops_from_frontend", cases[i].fe, 3},
			{"ls_not_halted_cyc", cases[i].cycles3, 3},
			{"de_no_dispatch_per_slot.backend_stalls", cases[i].be, 4},
			{"ls_not_halted_cyc", cases[i].cycles4, 4}};
		static const char *const names[] = {"bad_speculation", "retiring", "smt_contention",
						    "frontend_bound", "backend_bound"};
		struct topdown_result r = EVALUATE("zen4", counts);

		for (int n = 0; n < 5; n++)
			EXPECT_STR(digits("zen4", &r, names[n]), cases[i].digits[n]);
		topdown_result_fini(&r);
	}
}

TEST(impossible_counts_are_refused)
{
	static const struct count counts[] = {{"CPU_CLK_UNHALTED.THREAD", 1000},
					      {"IDQ_UOPS_NOT_DELIVERED.CORE", 400},
					      {"UOPS_ISSUED.ANY", 600000},
					      {"UOPS_RETIRED.RETIRE_SLOTS", 2000},
					      {"INT_MISC.RECOVERY_CYCLES", 10}};
	static const struct count no_cycles[] = {{"CPU_CLK_UNHALTED.THREAD", 0},
						 {"UOPS_RETIRED.RETIRE_SLOTS", 2000}};
	struct topdown_result r = EVALUATE("skl", counts);

	EXPECT_STR(digits("skl", &r, "bad_speculation"), "invalid");
	EXPECT_STR(digits("skl", &r, "frontend_bound"), "invalid");
	EXPECT_STR(digits("skl", &r, "retiring"), "invalid");
	EXPECT(strstr(node("skl", &r, "retiring")->value.reason, "impossible") != NULL);
	EXPECT_INT(r.bottleneck, -1);
	topdown_result_fini(&r);
	r = EVALUATE("skl", no_cycles);
	EXPECT_STR(digits("skl", &r, "retiring"), "invalid");
	EXPECT_STR(node("skl", &r, "retiring")->value.reason, "division by 0");
	EXPECT_STR(digits("skl", &r, "backend_bound"), "not_counted");
	topdown_result_fini(&r);
}

TEST(smt_and_neoverse)
{
	static const struct count smt[] = {{"CPU_CLK_UNHALTED.THREAD", 1000},
					   {"CPU_CLK_UNHALTED.THREAD_ANY", 4000},
					   {"UOPS_RETIRED.RETIRE_SLOTS", 4000}};
	static const struct count n2[] = {
		{"CPU_CYCLES", 1000}, {"STALL_SLOT_FRONTEND", 1500}, {"STALL_SLOT_BACKEND", 1000},
		{"STALL_SLOT", 2500}, {"OP_RETIRED", 1800},          {"OP_SPEC", 2000},
		{"BR_MIS_PRED", 10}};
	struct topdown_result r = evaluate("skl", smt, ARRAY_LEN(smt), true);

	EXPECT_STR(digits("skl", &r, "retiring"), "50.0");
	topdown_result_fini(&r);
	r = EVALUATE("n2", n2);
	EXPECT_STR(digits("n2", &r, "frontend_bound"), "29.0");
	EXPECT_STR(digits("n2", &r, "backend_bound"), "17.0");
	EXPECT_STR(digits("n2", &r, "bad_speculation"), "9.0");
	EXPECT_STR(digits("n2", &r, "retiring"), "45.0");
	topdown_result_fini(&r);
	r = EVALUATE("n2-r0p1", n2); /* the same machine counts a slot a cycle too many */
	EXPECT_STR(digits("n2-r0p1", &r, "frontend_bound"), "9.0");
	EXPECT_STR(digits("n2-r0p1", &r, "retiring"), "63.0");
	topdown_result_fini(&r);
}

TEST(errors_follow_the_counts)
{
	struct count counts[] = {{"slots", 6000},
				 {"topdown-retiring", 3000},
				 {"topdown-fe-bound", 1000, 0, 20},
				 {"topdown-be-bound", 1300},
				 {"topdown-bad-spec", 700}};
	struct topdown_result r = EVALUATE("lnl-p", counts);

	/* d(F / S4) = dF (S4 - F) / S4^2, which errors carried through operators would overstate */
	EXPECT_NEAR(node("lnl-p", &r, "frontend_bound")->stderr_, 20. * 5000 / 36e6, 2e-5);
	EXPECT_NEAR(node("lnl-p", &r, "retiring")->stderr_, 20. * 3000 / 36e6, 2e-5);
	EXPECT(node("lnl-p", &r, "backend_bound")->bottleneck);
	topdown_result_fini(&r);
	counts[3].error = 400; /* 21.7 % +- 6 %: no longer sure to be over 20 % */
	r = EVALUATE("lnl-p", counts);
	EXPECT(!node("lnl-p", &r, "backend_bound")->holds);
	topdown_result_fini(&r);
	counts[3].error = 0;
	counts[1].share = 0.2; /* everything hangs on a count seen a fifth of the time */
	r = EVALUATE("lnl-p", counts);
	EXPECT_INT(node("lnl-p", &r, "backend_bound")->value.state, EXPR_WEAK);
	EXPECT_INT(r.bottleneck, -1);
	topdown_result_fini(&r);
}
