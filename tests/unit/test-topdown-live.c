/* The whole of culprit topdown on simulated machines: what it counts, finds, says and refuses. */
#include "topdown-sim.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "events/parse.h"
#include "harness/tap.h"

static bool printed(const char *text)
{
	bool found = strstr(str_text(&sim.out), text) != NULL;

	if (!found)
		printf("# not printed: %s\n# %s\n", text, sim.error);
	return found;
}

static double percent_behind(const char *text)
{
	const char *at = strstr(str_text(&sim.out), text);

	return at ? strtod(at + strlen(text), NULL) : NAN;
}

static const struct {
	const char *cpu, *cpuinfo;
	unsigned counters; /* general ones, and two or three for what fixed ones count */
	const char *mark;  /* where the drill ends */
} families[] = {
	{"skl", SIM_SKL, 6, "ports_utilization"},
	{"icl", SIM_ICL, 10, "memory_bound"},
	{"spr", SIM_SPR, 10, "mem_latency"},
	{"lnl-p", SIM_LNL, 10, NULL},
	{"srf", SIM_SRF, 10, NULL},
	{"zen4", SIM_ZEN4, 6, NULL},
	{"zen5", SIM_ZEN5, 6, NULL},
	{"n1", SIM_ARM("0xd0c"), 6, NULL},
	{"n2", SIM_ARM("0xd49"), 6, NULL},
	{"n3", SIM_ARM("0xd8e"), 6, NULL},
	{"v1", SIM_ARM("0xd40"), 6, NULL},
	{"v2", SIM_ARM("0xd4f"), 6, NULL},
	{"v3", SIM_ARM("0xd84"), 6, NULL},
};

/* Every level 1 and 2 of the file of counts comes out live, measured; drilling runs what it needs.
 */
TEST(every_family_drills_to_the_truth)
{
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const struct topdown_table *table = topdown_table_find(families[f].cpu);
		double truth[256];
		char words[600];

		sim_make(families[f].cpu, families[f].cpuinfo, families[f].counters);
		snprintf(words, sizeof(words), "--cpu %s --import %s/%s.counts --json",
			 families[f].cpu, COUNTS_DIR, families[f].cpu);
		sim_topdown(words);
		for (size_t i = 0; i < table->node_count; i++)
			truth[i] = sim_share(table->nodes[i].name);
		sim_topdown("--json -- true");
		EXPECT_INT(sim.status, 0);
		EXPECT_INT(sim.metrics_alone, 0);
		for (size_t i = 0; i < table->node_count; i++) {
			const char *name = table->nodes[i].name;

			if (isnan(truth[i]) || table->nodes[i].level > 1)
				continue;
			if (!EXPECT_NEAR(sim_share(name), truth[i], 0.002))
				printf("# %s of %s\n", name, families[f].cpu);
			EXPECT_STR(sim_value(name, "state"), "measured");
		}
		if (families[f].mark)
			EXPECT_STR(sim_value(families[f].mark, "bottleneck"), "true");
		EXPECT(printed("\"formula_set\""));
		sim_end();
	}
}

TEST(drilling_follows_the_mark_to_level_four)
{
	sim_make("spr", SIM_SPR, 10);
	sim_topdown("-- true");
	EXPECT(printed("L3_Miss_Bound                  69.0%"));
	EXPECT(printed("MEM_Latency                  85.0%          ####################.... "
		       "cycles     <=="));
	EXPECT(printed("level 1 adds up to 100.0%; 1.923 cycles per instruction"));
	EXPECT(printed("What helps: Prefetching"));
	EXPECT(printed("Find the code: culprit record -e cpu/event=0xd1,umask=0x20,"
		       "name=MEM_LOAD_RETIRED.L3_MISS/pp -c 50021 -- true"));
	EXPECT(sim.runs > 1);
	sim_topdown("--drill -l 3 --json -- true");
	EXPECT_STR(sim_value("l3_miss_bound", "bottleneck"), "true");
	sim_topdown("-l 1 --json -- true");
	EXPECT_STR(sim_value("backend_bound", "bottleneck"), "true");
	EXPECT_INT(sim.runs, 1);
	sim_end();
}

/* The machine has fewer counters than level 1 has events: several runs, and still measured. */
TEST(level_one_in_several_runs)
{
	sim_make("n2", SIM_ARM("0xd49"), 3);
	sim_topdown("--json -- true");
	EXPECT_STR(sim_value("frontend_bound", "state"), "measured");
	EXPECT_NEAR(sim_share("frontend_bound"), 0.213, 0.002);
	EXPECT(sim.runs > 1);
	sim_topdown("-l 2 --json -- true"); /* asked for at once: in turns */
	EXPECT_INT(sim.runs, 1);
	EXPECT(strcmp(sim_value("frontend_bound", "state"), "measured") != 0);
	sim_topdown("-l 2 --no-multiplex --json -- true");
	EXPECT(sim.runs > 1);
	EXPECT_STR(sim_value("frontend_bound", "state"), "measured");
	sim_end();
}

/* Retiring below its threshold, heavy operations over theirs: known only by counting these too. */
TEST(thresholds_that_hang_on_deeper_nodes)
{
	sim_make("skl", SIM_SKL, 6);
	sim_truth(0, 0x2c2, 2.6);
	sim_truth(0, 0x4c2, 0.06);
	sim_truth(0, 0x10e, 2.8);
	sim_truth(0, 0x10d, 0.05);
	sim_truth(0, 0x19c, 0.4);
	sim_truth(0, 0xc0, 1.5);
	sim_topdown("-- true");
	EXPECT(printed("Retiring                           65.0%"));
	EXPECT(printed("Retiring dominates"));
	EXPECT(!strstr(str_text(&sim.out), "No bottleneck"));
	sim_end();
	sim_make("skl", SIM_SKL, 12);
	sim_topdown("-a -d 5ms -l 1 --json");
	EXPECT_STR(sim_value("backend_bound", "bottleneck"), "true");
	sim_end();
}

/* Processes and the machine are not counted again: level 1 alone rather than everything in turns.
 */
TEST(what_cannot_be_run_again_is_measured)
{
	sim_make("skl", SIM_SKL, 7);
	sim_topdown("-a -d 20ms --json");
	EXPECT_STR(sim_value("backend_bound", "state"), "measured");
	EXPECT_STR(sim_value("memory_bound", "state"), "not_counted");
	sim_topdown("-a -d 20ms -l 2 --json");
	EXPECT(strcmp(sim_value("memory_bound", "state"), "not_counted") != 0);
	EXPECT(strcmp(sim_value("memory_bound", "state"), "measured") != 0);
	sim_end();
}

TEST(counters_held_by_others_are_no_error)
{
	sim_make("skl", SIM_SKL, 6);
	sim.pmus[0].fake.taken = 1;
	fake_root_file(&sim.root, "/proc/sys/kernel/nmi_watchdog", "1\n");
	sim_topdown("--json -- true");
	EXPECT(printed("kernel.nmi_watchdog=0 frees it"));
	EXPECT_NEAR(sim_share("retiring"), 0.26, 0.002);
	EXPECT_STR(sim_value("retiring", "state"), "measured");
	sim_end();
}

TEST(two_kinds_of_cores_have_two_trees)
{
	sim_make(NULL, SIM_ADL, 0);
	sim_add_pmu("cpu_core", 4, "spr", 10, "0-1\n");
	sim_add_pmu("cpu_atom", 10, "adl-e", 9, "2-3\n");
	sim.core_share = 0.75;
	sim_topdown("--json -- true");
	EXPECT_INT(sim.status, 0);
	EXPECT(printed("\"core_type\": \"P-cores (cpu_core)\""));
	EXPECT_NEAR(sim_share_after("P-cores", "backend_bound"), 0.84, 0.002);
	EXPECT_NEAR(sim_share_after("E-cores", "frontend_bound"), 0.44, 0.002);
	sim_topdown("-l 1 -- true");
	EXPECT_NEAR(percent_behind("on P-cores (cpu_core), "), 75, 15);
	EXPECT_NEAR(percent_behind("on E-cores (cpu_atom), "), 25, 15);
	EXPECT(printed("Find the code: culprit record -e cpu_core/"));
	sim_topdown("-a -d 10ms -l 1 --csv");
	EXPECT(printed("P-cores (cpu_core),"));
	sim_end();
	/* Turns on one kind are scaled by the cycles of that kind, not by the time elsewhere. */
	sim_make(NULL, SIM_ADL, 0);
	sim_add_pmu("cpu_core", 4, "spr", 10, "0-1\n");
	sim_add_pmu("cpu_atom", 10, "adl-e", 6, "2-3\n");
	sim.core_share = 0.5;
	sim_topdown("-l 2 --json -- sleep 0.2");
	EXPECT_INT(sim.runs, 1);
	EXPECT_NEAR(sim_share_after("P-cores", "backend_bound"), 0.84, 0.002);
	EXPECT_NEAR(sim_share_after("E-cores", "frontend_bound"), 0.44, 0.05);
	EXPECT_NEAR(sim_share_after("E-cores", "retiring"), 0.29, 0.05);
	sim_end();
}

/* A thread sees one of the two threads that share the slots of its core. */
TEST(half_a_core_is_never_marked)
{
	sim_make("skl", SIM_SKL, 20);
	fake_root_file(&sim.root, "/sys/devices/system/cpu/smt/active", "1\n");
	sim_topdown("-- true");
	EXPECT(printed("weak: Frontend_Bound"));
	EXPECT(printed("only one of the two threads that share the core's slots was counted"));
	EXPECT(printed("No bottleneck is marked"));
	EXPECT(printed("-a --per-core, counts both"));
	/* Both threads: each counts the core's cycles, the sum halved are the core's. */
	sim_truth(0, 0x20003c, 1);
	sim_truth(0, 0x20010d, 0.11);
	sim_truth(0, 0x19c, 0.32);
	sim_truth(0, 0x10e, 1.30);
	sim_topdown("-a --per-core -d 10ms --json");
	EXPECT(printed("\"row\": \"S0-D0-C1\""));
	EXPECT_NEAR(sim_share("retiring"), 0.52, 0.01); /* twice that of one thread */
	EXPECT_STR(sim_value("retiring", "state"), "measured");
	sim_topdown("-a --per-thread -d 10ms --json");
	EXPECT(printed("\"row\": \"CPU3\""));
	EXPECT_STR(sim_value("retiring", "state"), "weak");
	sim_end();
}

TEST(repeats_have_the_spread_between_runs)
{
	double low, middle;

	sim_make("icl", SIM_ICL, 10);
	sim_topdown("-l 1 --json -- true");
	middle = sim_share("backend_bound");
	sim.wobbly = 0x8300; /* topdown-be-bound */
	sim.wobble = 0.1;
	sim_topdown("-r 3 -l 1 --json -- true");
	EXPECT_INT(sim.runs, 3);
	EXPECT_NEAR(sim_share("backend_bound"), middle, 0.01);
	low = strtod(sim_value("backend_bound", "stderr_share"), NULL);
	EXPECT(low > 0.005 && low < 0.05);
	EXPECT(printed("\"repeats\": 3"));
	sim.wobble = 0.6; /* the runs disagree: no mark is certain */
	sim_topdown("-r 3 -l 1 -- true");
	EXPECT(printed("+- is the standard error between the runs"));
	sim_end();
}

TEST(two_commands_stand_beside_each_other)
{
	sim_make("icl", SIM_ICL, 10);
	sim_topdown("-- true --vs true");
	EXPECT(printed("  A: true\n  B: true\n"));
	EXPECT(printed("<== A B"));
	EXPECT(printed("A: level 1 adds up to 100.0%"));
	EXPECT(printed("B: Memory_Bound: "));
	sim_topdown("--cpi-stack -- true --vs true");
	EXPECT(printed("Cycles per instruction: first and second"));
	EXPECT(printed("(+0.0%)"));
	sim_topdown("--json -- true --vs true");
	EXPECT_NEAR(sim_share_after("\"side\": \"b\"", "backend_bound"), sim_share("backend_bound"),
		    1e-3);
	sim_end();
}

TEST(intervals_and_threads)
{
	char words[64];

	sim_make("icl", SIM_ICL, 10);
	sim_topdown("-I 20 --interval-count 2 --json -- sleep 5");
	EXPECT(printed("\"intervals\""));
	EXPECT_NEAR(sim_share("retiring"), sim_share_after("\"time_ns\"", "retiring"), 1e-9);
	snprintf(words, sizeof(words), "-p %d --per-thread -d 20ms", (int)getpid());
	sim_topdown(words);
	EXPECT(printed("test-topdown-li-"));
	EXPECT(printed("level 1 adds up to 100.0%"));
	sim_topdown("-a --drill -d 5ms --json");
	EXPECT_STR(sim_value("memory_bound", "bottleneck"), "true");
	sim_end();
}

TEST(explained_with_the_counts_of_its_run)
{
	sim_make("icl", SIM_ICL, 10);
	sim_topdown("--explain Memory_Bound -- true");
	EXPECT(printed("formula (Intel TMA 5.1, Ice Lake family"));
	EXPECT(printed("CYCLE_ACTIVITY.STALLS_MEM_ANY"));
	EXPECT(printed("threshold: over 20%, below parents over theirs: holds"));
	sim_topdown("--explain Memory_Bound --json -- true");
	EXPECT(strstr(sim_value("memory_bound", "formula"), "cycle_activity.stalls_mem_any"));
	EXPECT(printed("\"inputs\""));
	sim_topdown("--nodes mem* --json -- true");
	EXPECT(!isnan(sim_share("memory_bound")));
	EXPECT_STR(sim_value("core_bound", "state"), "none");
	sim_end();
}

TEST(impossible_counts_are_refused_live)
{
	sim_make("skl", SIM_SKL, 9);
	sim_truth(0, 0x10e, 130); /* uops issued: a counter that lies */
	sim_topdown("-- true");
	EXPECT(printed("impossible; its counts are not of the same time, or a counter lies"));
	EXPECT(printed("No bottleneck is marked"));
	sim_topdown("--json -- true");
	EXPECT_STR(sim_value("retiring", "value_share"), "null");
	EXPECT_STR(sim_value("retiring", "state"), "invalid");
	sim_end();
}

TEST(cores_without_a_table_have_stalled_cycles)
{
	sim_make(NULL, SIM_HSW, 4);
	sim_truth(0, PERF_COUNT_HW_INSTRUCTIONS, 0.5);
	sim_truth(0, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 0.3);
	sim_truth(0, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 0.1);
	sim_truth(0, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0.1);
	sim_topdown("-- true");
	EXPECT(printed("cycle accounting by the kernel's events"));
	EXPECT(printed("Frontend_Stalled                   30.0%"));
	EXPECT(printed("2.000 cycles per instruction"));
	EXPECT(printed("No top-down events are known for this core (hsw)"));
	sim_topdown("--cpi-stack -- true");
	EXPECT(printed("Front end                   0.600"));
	sim_end();
}

/* An emulated core lists events and counts 0 for them; others it does not even list. */
TEST(stall_counters_that_stand_still_are_refused)
{
	sim_make(NULL, SIM_ARM("0xd07"), 6);
	fake_root_file(&sim.root, "/sys/bus/event_source/devices/armv8_pmuv3_0/events/cpu_cycles",
		       "event=0x0011\n");
	fake_root_file(&sim.root, "/sys/bus/event_source/devices/armv8_pmuv3_0/events/inst_retired",
		       "event=0x0008\n");
	fake_root_file(&sim.root,
		       "/sys/bus/event_source/devices/armv8_pmuv3_0/events/stall_frontend",
		       "event=0x0023\n");
	sim_truth(0, 0x11, 1);
	sim_truth(0, 0x08, 0.5);
	sim_topdown("-- true");
	EXPECT(printed("stall_frontend stood at 0 for"));
	EXPECT(printed("stall_backend: this core does not have it"));
	EXPECT(printed("2.000 cycles per instruction"));
	EXPECT(printed("It counts: cpu_cycles inst_retired; not:"));
	EXPECT(printed("Its counters know: cpu_cycles inst_retired stall_frontend"));
	sim_end();
}

TEST(without_a_pmu_the_kernels_accounts)
{
	sim_make(NULL, SIM_SPR, 0);
	sim_topdown("-- true");
	EXPECT(printed("No top-down tree: the kernel shows no counters of the core"));
	EXPECT(printed("off CPU (of one thread)"));
	EXPECT(printed("Find the code: culprit record -- true"));
	sim_topdown("-r 2 --json -- true");
	EXPECT(printed("\"missing\""));
	sim_topdown("--explain retiring -- true");
	EXPECT_INT(sim.status, 1);
	EXPECT(strstr(sim.error, "no counters of the core") != NULL);
	sim_end();
}

static void add_formats(const char *pmu, const char *const (*formats)[2], size_t count)
{
	char path[160], text[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/format/%s", pmu,
			 formats[i][0]);
		snprintf(text, sizeof(text), "%s\n", formats[i][1]);
		fake_root_file(&sim.root, path, text);
	}
}

/* The text of the line means the event that was tried. */
static void check_line(const struct topdown_job *job, struct event_env *env, const char *node)
{
	struct topdown_record record = {0};
	struct event_list list = {0};
	struct err err = {0};

	sim.last = (struct perf_event_attr){.type = UINT32_MAX};
	EXPECT_INT(topdown_record_line(job, &job->sides[0], &record), 0);
	EXPECT_STR(record.argv.data[0], "record");
	if (strcmp(record.argv.data[1], "-e") == 0) {
		const char *text = record.argv.data[2];

		if (!EXPECT(events_parse(text, env, &list, &err) == 0 && list.events.len == 1))
			printf("# %s: %s: %s\n", node, text, err.text);
		else if (strncmp(text, "ibs_", 4) != 0) {
			const struct perf_event_attr *attr = &list.events.data[0].attr;

			EXPECT_INT(attr->config, sim.last.config);
			EXPECT_INT(attr->config1, sim.last.config1);
			EXPECT_INT(attr->precise_ip, sim.last.precise_ip);
		}
		EXPECT_STR(record.argv.data[3], "-c");
	}
	event_list_fini(&list);
	topdown_record_fini(&record);
}

TEST(every_mark_has_a_line_that_culprit_record_takes)
{
	static const char *const x86[][2] = {{"event", "config:0-7"},
					     {"umask", "config:8-15"},
					     {"edge", "config:18"},
					     {"cmask", "config:24-31"},
					     {"frontend", "config1:0-23"}};
	static const char *const amd[][2] = {{"event", "config:0-7,32-35"},
					     {"umask", "config:8-15"}};
	static const char *const arm[][2] = {{"event", "config:0-15"}};
	static char name[] = "true", *command[] = {name, NULL};

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const struct topdown_table *table = topdown_table_find(families[f].cpu);
		struct topdown_job job = {.machine = &sim.machine, .side_count = 1};
		struct topdown_tree *tree = &job.sides[0].trees[0];
		struct event_env_options options = {.events_dir = "", .no_libpfm = true};
		struct event_env *env = NULL;
		struct topdown_row *row;

		sim_make(families[f].cpu, families[f].cpuinfo, families[f].counters);
		if (table->vendor == TOPDOWN_ARM)
			add_formats("armv8_pmuv3_0", arm, ARRAY_LEN(arm));
		else if (table->vendor == TOPDOWN_AMD)
			add_formats("cpu", amd, ARRAY_LEN(amd));
		else
			add_formats("cpu", x86, ARRAY_LEN(x86));
		fake_root_file(&sim.root, "/sys/bus/event_source/devices/ibs_op/type", "11\n");
		fake_root_file(&sim.root, "/sys/bus/event_source/devices/ibs_fetch/type", "12\n");
		options.host = &sim.root.host;
		ASSERT(event_env_new(&options, &env, NULL) == 0);
		*tree = (struct topdown_tree){.table = table, .pmu = {.type = 4}};
		snprintf(tree->pmu_name, sizeof(tree->pmu_name), "%s",
			 table->vendor == TOPDOWN_ARM ? "armv8_pmuv3_0" : "cpu");
		job.sides[0].tree_count = 1;
		job.sides[0].argv = command;
		ASSERT(topdown_tree_row(&job, tree, "") == 0);
		row = &tree->rows.data[0];
		row->result.nodes = calloc(table->node_count, sizeof(*row->result.nodes));
		for (size_t i = 0; i < table->node_count; i++) {
			row->result.bottleneck = (int)i;
			check_line(&job, env, table->nodes[i].name);
		}
		topdown_side_fini(&job, &job.sides[0]);
		event_env_free(env);
		sim_end();
	}
}

TEST(without_rights_user_mode_alone)
{
	sim_make("icl", SIM_ICL, 10);
	fake_root_file(&sim.root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	sim_topdown("-l 1 -- true");
	EXPECT(printed("User mode only: counting the kernel needs CAP_PERFMON"));
	EXPECT(printed("level 1 adds up to 100.0%"));
	sim_topdown("-a -d 5ms");
	EXPECT(printed("counting the whole machine needs CAP_PERFMON"));
	EXPECT(printed("on CPU, kernel")); /* the accounts instead */
	sim_end();
}

TEST(the_time_stamp_counter_has_a_frequency)
{
	struct topdown_tsc tsc;
	struct expr_value hz;

	topdown_tsc_begin(&tsc);
	SKIP_IF(tsc.hz == 0 && tsc.start == 0, "no time stamp counter");
	usleep(20000);
	hz = topdown_tsc_frequency(&tsc);
	EXPECT(expr_has_number(&hz));
	EXPECT(hz.value > 1e8 && hz.value < 1e10);
	printf("# %.0f Hz\n", hz.value);
	tsc = (struct topdown_tsc){.hz = 0};
	hz = topdown_tsc_frequency(&tsc);
	EXPECT(!expr_has_number(&hz));
}
