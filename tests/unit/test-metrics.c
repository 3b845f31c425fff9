/*
 * Vendor metrics and the trees made of them: every layout (the files that the command's tests use
 * too), published counts with the published digits, loops, and documents that are wrong.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "events/builtin-metrics.h"
#include "events/expr-host.h"
#include "events/topdown-load.h"
#include "fake-root.h"
#include "harness/tap.h"

struct count {
	const char *name;
	double value;
};

struct counts {
	const struct topdown_table *table;
	const struct count *data;
	size_t len;
};

struct loaded {
	struct metrics metrics;
	struct topdown_loaded *loaded;
	const struct topdown_table *table;
	struct err err;
};

static const char *source(const char *name)
{
	static char path[4096];
	const char *dir = getenv("TESTS_SOURCE_DIR");

	snprintf(path, sizeof(path), "%s/cli/topdown/metrics/%s", dir ? dir : "..", name);
	return path;
}

static bool load(struct loaded *l, const char *name, const char *cpu)
{
	*l = (struct loaded){.err = {""}};
	EXPECT_INT(metrics_read(&l->metrics, source(name), NULL, cpu, &l->err), 0);
	EXPECT_INT(topdown_load(&l->metrics, cpu, &l->loaded, &l->err), 0);
	EXPECT_STR(l->err.text, "");
	l->table = l->loaded ? topdown_loaded_table(l->loaded) : NULL;
	return l->table != NULL;
}

static void unload(struct loaded *l)
{
	topdown_loaded_free(l->loaded);
	metrics_fini(&l->metrics);
}

static void count_of(void *ctx, unsigned event, int section, struct expr_value *ret)
{
	const struct counts *c = ctx;
	unsigned factor;

	for (size_t i = 0; i < c->len; i++)
		if (topdown_event_match(c->table, c->data[i].name, &factor) == (int)event)
			*ret = expr_number(c->data[i].value / factor);
}

/* "41.4", or the state; an own text for each call of a statement. */
static const char *digits(const struct loaded *l, const struct count *data, size_t len,
			  const char *name)
{
	static char text[8][32];
	static unsigned next;
	struct counts counts = {l->table, data, len};
	struct topdown_inputs inputs = {&counts, count_of, NULL, NULL, false};
	struct topdown_result result = {0};
	struct topdown *topdown = NULL;
	int node = topdown_node_find(l->table, name);
	char *buf = text[next++ % 8];

	snprintf(buf, 32, "no node");
	if (node < 0 || topdown_new(l->table, &topdown, NULL) < 0)
		return buf;
	EXPECT_INT(topdown_eval(topdown, &inputs, 9, &result), 0);
	if (expr_has_number(&result.nodes[node].value))
		snprintf(buf, 32, "%.1f", 100 * result.nodes[node].value.value);
	else
		snprintf(buf, 32, "%s", expr_state_name(result.nodes[node].value.state));
	topdown_result_fini(&result);
	topdown_free(topdown);
	return buf;
}

#define DIGITS(l, data, name) digits(l, data, ARRAY_LEN(data), name)

static const struct topdown_node *node(const struct loaded *l, const char *name)
{
	static const struct topdown_node none = {.name = "none", .formula = ""};
	int index = topdown_node_find(l->table, name);

	return index >= 0 ? &l->table->nodes[index] : &none;
}

static const struct topdown_event *event(const struct loaded *l, const char *name)
{
	static const struct topdown_event none = {.name = "none", .title = ""};
	int index = topdown_event_find(l->table, name);

	return index >= 0 ? &l->table->events[index] : &none;
}

TEST(perfmon_gives_the_tree_and_the_published_digits)
{
	static const struct count counts[] = {{"TOPDOWN.SLOTS:u", 3245820},
					      {"topdown-retiring:u", 564859},
					      {"topdown-fe-bound:u", 1370999},
					      {"topdown-be-bound:u", 603271},
					      {"PERF_METRICS.BAD_SPECULATION", 744874},
					      {"INT_MISC.UOP_DROPPING:u", 12661},
					      {"cpu/UOPS_RETIRED.MS,cmask=1,edge/", 1000},
					      {"UOPS_RETIRED.SLOTS", 500000},
					      {"UOPS_ISSUED.ANY", 1000000},
					      {"ITLB_MISSES.STLB_HIT", 1000},
					      {"cycles", 100000}};
	struct loaded l;

	if (load(&l, "perfmon.json", "spr")) {
		EXPECT_STR(l.table->set, "Intel TMA 9.9 (perfmon.json)");
		EXPECT_INT(l.table->node_count, 9);
		EXPECT_STR(DIGITS(&l, counts, "backend_bound"), "18.4");
		EXPECT_STR(DIGITS(&l, counts, "retiring"), "17.2");
		EXPECT_STR(DIGITS(&l, counts, "bad_speculation"), "23.1");
		EXPECT_STR(DIGITS(&l, counts, "frontend_bound"), "41.4");
		EXPECT_STR(DIGITS(&l, counts, "fetch_latency"), "not_counted");
		EXPECT_STR(DIGITS(&l, counts, "ms_switches"), "6.0");
		EXPECT_STR(DIGITS(&l, counts, "dtlb_fetch"),
			   "7.0"); /* no latencies: the constant */
		EXPECT_INT(node(&l, "icache_misses")->level, 3);
		EXPECT_INT(node(&l, "icache_misses")->unit, TOPDOWN_CLOCKS);
		EXPECT_NEAR(node(&l, "frontend_bound")->over, 0.15, 1e-12);
		EXPECT_NEAR(node(&l, "dtlb_fetch")->over, 0.05, 1e-12); /* fractions there */
		EXPECT_NEAR(node(&l, "retiring")->over, 0.70, 1e-12);
		EXPECT_INT(node(&l, "retiring")->or_node,
			   topdown_node_find(l.table, "heavy_operations"));
		EXPECT_NEAR(node(&l, "retiring")->or_over, 0.10, 1e-12);
		EXPECT(node(&l, "fetch_latency")->with_parent);
		EXPECT(node(&l, "frontend_bound")->means[0] != '\0');
		EXPECT_INT(event(&l, "topdown-fe-bound")->config, 0x8200);
		EXPECT_INT(event(&l, "int_misc.uop_dropping")->config, 0x10ad);
		EXPECT(!event(&l, "int_misc.uop_dropping")->no_code);
		EXPECT(event(&l, "itlb_misses.stlb_hit")->no_code);
		EXPECT(strstr(str_text(&l.metrics.problems), "cannot_be_read: column") != NULL);
		EXPECT_STR(metrics_find(&l.metrics, "info_core_frequency", "")->formula,
			   "( CPU_CLK_UNHALTED.THREAD / CPU_CLK_UNHALTED.REF_TSC ) * "
			   "(#system_tsc_freq * duration_time) / 1000000000 if #smt_on else "
			   "CPU_CLK_UNHALTED.THREAD / "
			   "20");
	}
	unload(&l);
}

TEST(perf_layout_with_metrics_of_metrics)
{
	static const struct count counts[] = {
		{"ex_ret_brn_misp", 21958894},
		{"de_src_op_disp.all", 20284275971},
		{"resyncs_or_nc_redirects", 51318},
		{"ls_not_halted_cyc", 4895089444},
		{"ex_ret_ops", 18657737631},
		{"ex_no_retire.load_not_complete", 681847357},
		{"de_no_dispatch_per_slot.backend_stalls", 3602363546},
		{"ex_no_retire.not_complete", 1068036530},
		{"de_no_dispatch_per_slot.no_ops_from_frontend", 5460578458},
		{"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/", 563718873},
		{"instructions", 1000000000}};
	static const char *const want[][2] = {{"bad_speculation", "5.5"},
					      {"bad_speculation_mispredicts", "5.5"},
					      {"retiring", "63.5"},
					      {"backend_bound", "12.3"},
					      {"frontend_bound", "18.6"},
					      {"backend_bound_memory", "7.8"},
					      {"backend_bound_cpu", "4.4"},
					      {"frontend_bound_latency", "11.5"},
					      {"smt_contention", "not_counted"}};
	struct loaded l;

	if (load(&l, "perf.json", "zen4")) {
		EXPECT_INT(l.table->vendor, TOPDOWN_AMD);
		for (size_t i = 0; i < ARRAY_LEN(want); i++)
			EXPECT_STR(DIGITS(&l, counts, want[i][0]), want[i][1]);
		EXPECT_NEAR(node(&l, "backend_bound_memory")->over, 0.05, 1e-12);
		EXPECT(isnan(node(&l, "frontend_bound_latency")->over));
		EXPECT_INT(node(&l, "mispredicts_pti")->unit, TOPDOWN_RATE);
		EXPECT_STR(node(&l, "mispredicts_pti")->unit_text, "per_1k_instr");
		/* 21.958894 per thousand, not a share: above 1 is no reason to refuse it */
		EXPECT_STR(DIGITS(&l, counts, "mispredicts_pti"), "2195.9");
		EXPECT_INT(event(&l, "de_no_dispatch_per_slot.no_ops_from_frontend:c6")->config,
			   0x1060001a0);
	}
	unload(&l);
}

TEST(hybrid_files_have_a_tree_for_each_kind_of_core)
{
	static const struct count core[] = {{"slots", 6000},
					    {"topdown-retiring", 3000},
					    {"topdown-fe-bound", 1000},
					    {"topdown-be-bound", 1300},
					    {"topdown-bad-spec", 700},
					    {"topdown-heavy-ops", 600},
					    {"cpu_core/INT_MISC.UOP_DROPPING/", 60}};
	static const struct count atom[] = {{"cpu_atom/CPU_CLK_UNHALTED.CORE/", 1000},
					    {"cpu_atom/TOPDOWN_FE_BOUND.ALL/", 1000},
					    {"TOPDOWN_BE_BOUND.ALL", 2000},
					    {"TOPDOWN_RETIRING.ALL", 1500}};
	struct loaded l;

	if (load(&l, "perf-hybrid.json", "adl-p")) {
		EXPECT_STR(l.table->pmu, "cpu_core");
		EXPECT_INT(l.table->node_count, 7);
		EXPECT_STR(DIGITS(&l, core, "frontend_bound"), "15.7");
		EXPECT_STR(DIGITS(&l, core, "bad_speculation"), "12.7");
		EXPECT_STR(DIGITS(&l, core, "heavy_operations"), "10.0");
		EXPECT_STR(node(&l, "ms_switches")->title, "MS_Switches");
		EXPECT_STR(event(&l, "uops_retired.ms:c1:e1")->title,
			   "cpu_core/UOPS_RETIRED.MS,cmask=0x1,edge=0x1/");
	}
	unload(&l);
	if (load(&l, "perf-hybrid.json", "adl-e")) {
		EXPECT_STR(l.table->pmu, "cpu_atom");
		EXPECT_STR(DIGITS(&l, atom, "frontend_bound"), "20.0");
		EXPECT_STR(DIGITS(&l, atom, "bad_speculation"), "10.0");
		EXPECT_NEAR(node(&l, "backend_bound")->over, 0.10, 1e-12);
	}
	unload(&l);
}

TEST(arm_decision_tree_and_the_file_of_the_revision)
{
	static const struct count counts[] = {
		{"CPU_CYCLES", 1000}, {"STALL_SLOT_FRONTEND", 1500}, {"STALL_SLOT_BACKEND", 1000},
		{"STALL_SLOT", 2500}, {"OP_RETIRED", 1800},          {"OP_SPEC", 2000},
		{"BR_MIS_PRED", 10},  {"BR_MIS_PRED_RETIRED", 8},    {"INST_RETIRED", 1600},
		{"BR_RETIRED", 320}};
	struct loaded l;

	if (load(&l, "arm", "n2")) { /* no revision: the newest */
		EXPECT_STR(l.table->set, "Arm Neoverse N2 r0p3 (neoverse-n2-r0p3.json)");
		EXPECT_STR(DIGITS(&l, counts, "frontend_bound"), "29.0");
		EXPECT_STR(DIGITS(&l, counts, "backend_bound"), "17.0");
		EXPECT_STR(DIGITS(&l, counts, "bad_speculation"), "9.0");
		EXPECT_STR(DIGITS(&l, counts, "retiring"), "45.0");
		EXPECT_STR(DIGITS(&l, counts, "Branch_MPKI"), "500.0");
		EXPECT_STR(node(&l, "Branch_MPKI")->unit_text, "MPKI");
		EXPECT_INT(node(&l, "simd_percentage")->parent,
			   topdown_node_find(l.table, "retiring"));
		EXPECT_INT(node(&l, "bad_speculation.branch_mpki")->parent,
			   topdown_node_find(l.table, "bad_speculation"));
		EXPECT_INT(event(&l, "stall_slot")->config, 0x3f);
		EXPECT(l.table->own_thresholds && node(&l, "retiring")->over > 0);
	}
	unload(&l);
	if (load(&l, "arm", "n2-r0p1")) { /* older than all: the oldest */
		EXPECT_STR(l.table->set, "Arm Neoverse N2 r0p2 (neoverse-n2.json)");
		EXPECT_STR(DIGITS(&l, counts, "frontend_bound"), "9.0");
		EXPECT_STR(DIGITS(&l, counts, "retiring"), "63.0");
	}
	unload(&l);
}

static int parse(struct metrics *metrics, const char *text, struct err *err)
{
	*metrics = (struct metrics){0};
	return metrics_parse(metrics, text, strlen(text), "test.json", NULL, err);
}

TEST(formulas_that_need_themselves_are_refused_with_the_way)
{
	static const char loop[] =
		"[{\"MetricName\":\"top\",\"MetricExpr\":\"a + 1\",\"MetricGroup\":\"TopdownL1\","
		"\"ScaleUnit\":\"100%\"},"
		"{\"MetricName\":\"a\",\"MetricExpr\":\"b\"},{\"MetricName\":\"b\",\"MetricExpr\":"
		"\"c * 2\"},{\"MetricName\":\"c\",\"MetricExpr\":\"a\"}]";
	static const char own[] =
		"[{\"MetricName\":\"ex_ret_ops\",\"MetricExpr\":\"ex_ret_ops / slots\","
		"\"MetricGroup\":\"TopdownL1\",\"ScaleUnit\":\"100%\"}]";
	struct topdown_loaded *loaded = NULL;
	struct metrics metrics;
	struct err err = {""};

	EXPECT_INT(parse(&metrics, loop, &err), 0);
	EXPECT_INT(topdown_load(&metrics, NULL, &loaded, &err), -ELOOP);
	EXPECT_STR(err.text, "test.json: a formula needs itself: top > a > b > c > a");
	metrics_fini(&metrics);
	EXPECT_INT(parse(&metrics, own, &err), 0); /* its own name is the event's */
	EXPECT_INT(topdown_load(&metrics, "zen4", &loaded, &err), 0);
	EXPECT_STR(topdown_loaded_table(loaded)->nodes[0].formula, "ex_ret_ops / slots");
	topdown_loaded_free(loaded);
	metrics_fini(&metrics);
}

/* Each metric uses the one before twice: without memory that is 2^25 evaluations. */
TEST(metrics_of_metrics_are_evaluated_once)
{
	struct str text = {0};
	struct topdown_loaded *loaded = NULL;
	struct loaded l = {.err = {""}};
	static const struct count counts[] = {{"x", 1}};

	str_puts(&text, "[{\"MetricName\":\"m0\",\"MetricExpr\":\"x\"}");
	for (int i = 1; i <= 25; i++)
		str_printf(&text, ",{\"MetricName\":\"m%d\",\"MetricExpr\":\"(m%d + m%d) / 2\"}", i,
			   i - 1, i - 1);
	str_puts(&text, ",{\"MetricName\":\"top\",\"MetricExpr\":\"m25 / 4\",\"MetricGroup\":"
			"\"TopdownL1\",\"ScaleUnit\":\"100%\"}]");
	EXPECT_INT(parse(&l.metrics, str_text(&text), &l.err), 0);
	EXPECT_INT(topdown_load(&l.metrics, NULL, &loaded, &l.err), 0);
	l.loaded = loaded;
	l.table = loaded ? topdown_loaded_table(loaded) : NULL;
	if (l.table)
		EXPECT_STR(DIGITS(&l, counts, "top"), "25.0");
	unload(&l);
	str_clear(&text);
	str_puts(&text, "[{\"MetricName\":\"m0\",\"MetricExpr\":\"x\"}");
	for (int i = 1; i <= 60; i++)
		str_printf(&text, ",{\"MetricName\":\"m%d\",\"MetricExpr\":\"m%d\"}", i, i - 1);
	str_puts(&text, ",{\"MetricName\":\"top\",\"MetricExpr\":\"m60\",\"MetricGroup\":"
			"\"TopdownL1\",\"ScaleUnit\":\"100%\"}]");
	EXPECT_INT(parse(&l.metrics, str_text(&text), &l.err), 0);
	EXPECT_INT(topdown_load(&l.metrics, NULL, &loaded, &l.err), -E2BIG);
	metrics_fini(&l.metrics);
	str_fini(&text);
}

/* perfmon: latencies without a guard, times that cancel, a parent of the wrong level, a digit
 * first. */
TEST(perfmon_traps)
{
	static const char text[] =
		"{\"Metrics\":["
		"{\"MetricName\":\"Backend_Bound\",\"Level\":1,\"UnitOfMeasure\":\"percent\","
		"\"CountDomain\":\"Slots\",\"Category\":\"TMA\",\"Formula\":\"100 * ( a / b )\","
		"\"Events\":[{\"Name\":\"X\",\"Alias\":\"a\"},{\"Name\":\"CYC\",\"Alias\":\"b\"}]},"
		"{\"MetricName\":\"Core_Bound\",\"Level\":2,\"UnitOfMeasure\":\"percent\","
		"\"ParentCategory\":\"Backend_Bound\",\"Formula\":\"7\"},"
		"{\"MetricName\":\"Ports\",\"Level\":3,\"UnitOfMeasure\":\"percent\","
		"\"ParentCategory\":\"Core_Bound\",\"Formula\":\"8\"},"
		"{\"MetricName\":\"4K_Serial\",\"Level\":3,\"UnitOfMeasure\":\"percent\","
		"\"ParentCategory\":\"Ports\",\"Category\":\"TMA\",\"CountDomain\":\"Clocks\","
		"\"Formula\":\"100 * ( a * ( b / c ) / ( d / 1000 ) )\","
		"\"Events\":[{\"Name\":\"X\",\"Alias\":\"a\"},{\"Name\":\"CYC\",\"Alias\":\"c\"}],"
		"\"Constants\":[{\"Name\":\"SYSTEM_TSC_FREQ\",\"Alias\":\"b\"},{\"Name\":"
		"\"DURATIONTIMEINMILLISECONDS\",\"Alias\":\"d\"}],\"Threshold\":{\"Formula\":"
		"\"a > 10 & b > 15\",\"ThresholdMetrics\":[{\"Alias\":\"a\",\"Value\":"
		"\"metric_TMA_....4K_Serial(%)\"},{\"Alias\":\"b\",\"Value\":"
		"\"metric_TMA_..Core_Bound(%)\"}]}},"
		"{\"MetricName\":\"Locks\",\"Level\":3,\"UnitOfMeasure\":\"percent\","
		"\"ParentCategory\":\"Core_Bound\",\"Formula\":\"100 * ( a * b / c )\",\"Events\":["
		"{\"Name\":\"X\",\"Alias\":\"a\"},{\"Name\":\"X:retire_latency\",\"Alias\":\"b\"},"
		"{\"Name\":\"CYC\",\"Alias\":\"c\"}]}]}";
	static const struct count counts[] = {{"X", 10}, {"CYC", 1000}};
	struct loaded l = {.err = {""}};

	EXPECT_INT(parse(&l.metrics, text, &l.err), 0);
	EXPECT_INT(topdown_load(&l.metrics, NULL, &l.loaded, &l.err), 0);
	l.table = l.loaded ? topdown_loaded_table(l.loaded) : NULL;
	if (l.table) {
		EXPECT_STR(node(&l, "4K_Serial")->formula,
			   "x * ( (#system_tsc_freq * 1) / cyc ) / ( (1 * 1000) / 1000 )");
		EXPECT_NEAR(node(&l, "4K_Serial")->over, 0.10, 1e-12);
		EXPECT_INT(node(&l, "4K_Serial")->parent, topdown_node_find(l.table, "core_bound"));
		EXPECT_STR(DIGITS(&l, counts, "locks"), "not_counted");
		EXPECT_STR(DIGITS(&l, counts, "backend_bound"), "1.0");
	}
	unload(&l);
}

/* perf: groups of levels are no parents, ticks stand for a frequency, a register behind "=". */
TEST(perf_traps)
{
	static const char text[] =
		"[{\"MetricName\":\"tma_backend_bound\",\"MetricGroup\":\"TopdownL1;tma_L1_group\","
		"\"MetricExpr\":\"X / CYC\",\"ScaleUnit\":\"100%\"},"
		"{\"MetricName\":\"tma_l1_bound\",\"MetricGroup\":\"TopdownL2;tma_L2_group;"
		"tma_issueL1;tma_backend_bound_group\",\"MetricExpr\":\"2 * "
		"cpu@OCR.READ\\\\,offcore_rsp\\\\=0x1f@ / CYC\",\"ScaleUnit\":\"100%slots\"},"
		"{\"MetricName\":\"tma_deep\",\"MetricGroup\":\"TopdownL3;tma_L3_group;"
		"tma_l1_bound_group\",\"MetricExpr\":\"X * msr@tsc\\\\,cpu=cpu_core@ / 1e9 / "
		"duration_time\",\"ScaleUnit\":\"100%\",\"BriefDescription\":\"Share of uops.\"}]";
	struct loaded l = {.err = {""}};

	EXPECT_INT(parse(&l.metrics, text, &l.err), 0);
	EXPECT_STR(str_text(&l.metrics.problems), "");
	EXPECT_INT(topdown_load(&l.metrics, NULL, &l.loaded, &l.err), 0);
	l.table = l.loaded ? topdown_loaded_table(l.loaded) : NULL;
	if (l.table) {
		EXPECT_INT(node(&l, "deep")->parent, topdown_node_find(l.table, "l1_bound"));
		EXPECT_INT(node(&l, "deep")->level, 3);
		EXPECT_INT(node(&l, "deep")->unit, TOPDOWN_UOPS);
		EXPECT_STR(node(&l, "deep")->formula, "x * #system_tsc_freq / 1e9 / 1");
		EXPECT_STR(node(&l, "l1_bound")->formula, "2 * ocr.read:ocr_msr_val=0x1f / cyc");
		EXPECT_INT(node(&l, "l1_bound")->unit, TOPDOWN_SLOTS);
	}
	unload(&l);
}

TEST(documents_that_are_wrong)
{
	static const struct {
		const char *text;
		int result;
		size_t metrics;
	} cases[] = {
		{"", -EBADMSG, 0},
		{"7", -EBADMSG, 0},
		{"[", -EBADMSG, 0},
		{"[{\"MetricName\":\"a\",\"MetricExpr\":\"1\"", -EBADMSG, 0},
		{"[1,\"x\",null,[],{}]", 0, 0},
		{"{\"Metrics\":{},\"Header\":[],\"metrics\":[],\"events\":[]}", 0, 0},
		{"[{\"MetricName\":7,\"MetricExpr\":[1],\"Formula\":{}}]", 0, 0},
		{"[{\"MetricName\":\"a\",\"MetricExpr\":\"1 +\"},{\"MetricName\":\"b\","
		 "\"MetricExpr\":\"1\"}]",
		 0, 1},
		{"[{\"MetricName\":\"a\",\"MetricExpr\":\"1\"},{\"MetricName\":\"A\","
		 "\"MetricExpr\":\"2\"}]",
		 0, 1},
		{"{\"product_configuration\":{\"part_num\":{}},\"metrics\":{\"a\":{\"formula\":"
		 "\"x\"}},\"groups\":{\"metrics\":{\"G\":{\"metrics\":[\"a\",7]}}}}",
		 -EBADMSG, 1},
		{"{\"methodologies\":{\"topdown_methodology\":{\"decision_tree\":{\"metrics\":[{"
		 "\"next_items\":[\"x\"]}]}}}}",
		 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct metrics metrics;
		struct topdown_loaded *loaded = NULL;
		struct err err = {""};
		int r = parse(&metrics, cases[i].text, &err);

		tap_expect(r == cases[i].result && metrics.list.len == cases[i].metrics, __FILE__,
			   __LINE__, "%s: %d, %zu metrics", cases[i].text, r, metrics.list.len);
		EXPECT(topdown_load(&metrics, NULL, &loaded, &err) < 0);
		topdown_loaded_free(loaded);
		metrics_fini(&metrics);
	}
}

TEST(what_formulas_ask_about_the_machine)
{
	struct fake_root root;
	struct host_cpu_model model;
	struct expr_host host;
	struct expr_value v;

	fake_root_arm(&root);
	host_cpu_model_read(&root.host, &model);
	expr_host_read(&root.host, &model, &host);
	v = expr_missing(EXPR_NOT_COUNTED, "open");
	expr_host_constant(&host, EXPR_CPUID, "0x00000000410fd0c0", &v);
	EXPECT_NEAR(v.value, 1, 0);
	expr_host_constant(&host, EXPR_CPUID, "0x00000000410fd490", &v);
	EXPECT_NEAR(v.value, 0, 0);
	expr_host_constant(&host, EXPR_LITERAL, "system_tsc_freq", &v);
	EXPECT_INT(v.state, EXPR_NOT_COUNTED);
	expr_host_constant(&host, EXPR_LITERAL, "EBS_Mode", &v);
	EXPECT_NEAR(v.value, 0, 0);
	expr_host_constant(&host, EXPR_LITERAL, "has_pmem", &v);
	EXPECT_NEAR(v.value, 0, 0);
	expr_host_constant(&host, EXPR_LITERAL, "no_such_thing", &v);
	EXPECT_INT(v.state, EXPR_NOT_SUPPORTED);
	v = expr_missing(EXPR_INVALID, "open");
	expr_host_constant(&host, EXPR_HAS_EVENT, "cycles", &v);
	EXPECT_INT(v.state, EXPR_INVALID); /* stays open */
	fake_root_remove(&root);
	fake_root_hybrid(&root);
	host_cpu_model_read(&root.host, &model);
	expr_host_read(&root.host, &model, &host);
	v = expr_missing(EXPR_NOT_COUNTED, "open");
	expr_host_constant(&host, EXPR_LITERAL, "NUM_CPUS_ONLINE", &v);
	EXPECT(v.value >= 8 || v.state == EXPR_NOT_COUNTED);
	expr_host_constant(&host, EXPR_CPUID, "GenuineIntel-6-(97|9A|B7|BA|BF)", &v);
	EXPECT(v.state == EXPR_MEASURED);
	fake_root_remove(&root);
}

/* Every metric of the table parses, and is found by its name and its groups. */
TEST(the_builtin_table_is_sound)
{
	EXPECT(builtin_metrics_len > 15);
	for (size_t i = 0; i < builtin_metrics_len; i++) {
		const struct metric *metric = &builtin_metrics[i].metric;
		struct expr *expr = NULL;
		struct err err = {""};

		tap_expect(expr_parse(metric->formula, &expr, &err) == 0, __FILE__, __LINE__,
			   "%s: %s", metric->name, err.text);
		expr_free(expr);
		EXPECT(builtin_metric_find(metric->name) == &builtin_metrics[i]);
		EXPECT(metric->unit[0] && metric->description[0] && metric->groups[0]);
	}
	EXPECT(builtin_metric_find("IPC") != NULL);
	EXPECT(builtin_metric_find("nope") == NULL);
	EXPECT(metric_in_group(NULL, &builtin_metric_find("branch_mpki")->metric, "mpki"));
	EXPECT(!metric_in_group(NULL, &builtin_metric_find("branch_mpki")->metric, "MPK"));
}

/* pm/158: a metric that does not parse is told and the others stay. */
TEST(failure_46_a_formula_that_does_not_parse_is_told)
{
	static const char text[] = "[{\"MetricName\": \"bad\", \"MetricExpr\": \"a / / b\"},"
				   "{\"MetricName\": \"good\", \"MetricExpr\": \"a\"}]";
	struct metrics metrics = {0};

	EXPECT_INT(metrics_parse(&metrics, text, strlen(text), "file", NULL, NULL), 0);
	EXPECT(metrics_find(&metrics, "bad", "") == NULL);
	EXPECT(metrics_find(&metrics, "good", "") != NULL);
	EXPECT(strstr(str_text(&metrics.problems), "bad: column 5") != NULL);
	metrics_fini(&metrics);
}
