/*
 * The whole of culprit topdown on recorded reads: every family plans, runs, drills and prints as on
 * its machine, and what it prints is compared byte by byte (tests/cli/topdown/recorded/CPU.out and
 * .json). Trials go to the simulated PMU; what a counter of the command reads is the recording's
 * count, the first time and ever after, so nothing depends on how long anything took.
 *
 * TOPDOWN_RECORDED_WRITE=1 writes the files anew.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/util.h"
#include "harness/tap.h"
#include "topdown-sim.h"

#define ENABLED_NS NSEC_PER_SEC

struct recorded {
	uint64_t config, config1, count;
};

static struct {
	struct recorded events[SIM_PMUS][SIM_EVENTS];
	unsigned len[SIM_PMUS];
	double share[SIM_PMUS]; /* of the time that the thread was on these cores */
	const struct counter_ops *under;
} replay;

/* --- reads ----------------------------------------------------------------------------------- */

static const struct fake_event *event_of(int fd)
{
	return &sim.pmus[fd / 1000 - 1].fake.events[fd % 1000];
}

static bool is_live(int fd)
{
	return event_of(fd)->pid > 0 || event_of(fd)->cpu >= 0;
}

static uint64_t count_of(unsigned pmu, const struct perf_event_attr *attr)
{
	uint64_t config = attr->config;

	if (attr->type == PERF_TYPE_HARDWARE)
		config = 0x3c; /* the anchor of a PMU that not all CPUs have */
	for (unsigned i = 0; i < replay.len[pmu]; i++)
		if (replay.events[pmu][i].config == config &&
		    replay.events[pmu][i].config1 == attr->config1)
			return replay.events[pmu][i].count;
	return 0;
}

static int replay_read(void *ctx, int fd, uint64_t *words, unsigned count)
{
	unsigned pmu = (unsigned)fd / 1000 - 1, n = 3;
	const struct fake_pmu *fake = &sim.pmus[pmu].fake;

	if (!is_live(fd))
		return replay.under->read(ctx, fd, words, count);
	words[1] = ENABLED_NS;
	words[2] = (uint64_t)(replay.share[pmu] * ENABLED_NS);
	for (unsigned i = (unsigned)fd % 1000; i < fake->event_count && n < count; i++)
		if (fake->events[i].open && fake->events[i].leader == fd % 1000)
			words[n++] = count_of(pmu, &fake->events[i].attr);
	words[0] = n - 3;
	return (int)n;
}

static int replay_open(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu,
		       int group_fd, unsigned long flags)
{
	return replay.under->open(ctx, attr, pid, cpu, group_fd, flags);
}

static int replay_enable(void *ctx, int fd)
{
	return is_live(fd) ? 0 : replay.under->enable(ctx, fd);
}

static int replay_disable(void *ctx, int fd)
{
	return is_live(fd) ? 0 : replay.under->disable(ctx, fd);
}

static void replay_close(void *ctx, int fd)
{
	replay.under->close(ctx, fd);
}

static uint64_t replay_clock(void *ctx)
{
	return sim.live ? sim.now : replay.under->clock(ctx);
}

static int replay_run_on(void *ctx, const struct cpuset *cpus)
{
	return 0;
}

static const struct counter_ops replay_ops_topdown = {replay_open,    replay_read,  replay_enable,
						      replay_disable, replay_close, replay_clock,
						      replay_run_on};

/* --- recordings ------------------------------------------------------------------------------ */

static void load(unsigned pmu, const char *cpu)
{
	const struct topdown_table *table = topdown_table_find(cpu);
	CLEANUP_FREE char *text = NULL;
	char path[512], *save = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s/recorded/%s.counts", COUNTS_DIR, cpu);
	if (file_read(path, 1 << 20, &text, &size, NULL) < 0 || !table)
		abort();
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char name[128];
		unsigned long long count;
		unsigned factor;
		int event;

		if (line[0] == '#' || sscanf(line, "%127s %llu", name, &count) != 2)
			continue;
		event = topdown_event_match(table, name, &factor);
		if (event < 0)
			continue;
		replay.events[pmu][replay.len[pmu]++] =
			(struct recorded){sim_kernel_code(table, table->events[event].config),
					  table->events[event].config1, count};
	}
}

static void use_replay(void)
{
	replay.under = sim.machine.ops;
	sim.machine.ops = &replay_ops_topdown;
}

static void make(const char *cpu, const char *cpuinfo, unsigned counters)
{
	memset(&replay, 0, sizeof(replay));
	sim_make(cpu, cpuinfo, counters);
	replay.share[0] = 1;
	load(0, cpu);
	use_replay();
}

/* Both kinds of cores have CPU 0, so that trials on each find a CPU on every machine. */
static void make_hybrid(void)
{
	memset(&replay, 0, sizeof(replay));
	sim_make(NULL, SIM_ADL, 0);
	sim_add_pmu("cpu_core", 4, "adl-p", 10, "0-1\n");
	sim_add_pmu("cpu_atom", 10, "adl-e", 9, "0,2-3\n");
	replay.share[0] = 0.75;
	replay.share[1] = 0.25;
	load(0, "adl-p");
	load(1, "adl-e");
	use_replay();
}

/* --- golden files ---------------------------------------------------------------------------- */

static bool writing(void)
{
	return getenv("TOPDOWN_RECORDED_WRITE") != NULL;
}

static void compare(const char *file, const char *text)
{
	CLEANUP_FREE char *want = NULL;
	char path[512];
	size_t size, at = 0, line = 1;
	FILE *out;

	snprintf(path, sizeof(path), "%s/recorded/%s", COUNTS_DIR, file);
	if (writing()) {
		out = fopen(path, "w");
		if (!out || fputs(text, out) < 0 || fclose(out) != 0)
			abort();
		return;
	}
	if (file_read(path, 1 << 20, &want, &size, NULL) < 0) {
		tap_expect(false, __FILE__, __LINE__, "%s is missing", file);
		return;
	}
	while (want[at] && want[at] == text[at])
		line += want[at++] == '\n';
	while (at > 0 && want[at - 1] != '\n')
		at--;
	tap_expect(strcmp(want, text) == 0, __FILE__, __LINE__,
		   "%s, line %zu: have '%.*s', want '%.*s'", file, line,
		   (int)strcspn(text + at, "\n"), text + at, (int)strcspn(want + at, "\n"),
		   want + at);
}

/* One command after the other, each under its line. */
static void run(struct str *all, const char *words)
{
	sim_topdown(words);
	str_printf(all, "$ culprit topdown %s\n%s%s\n", words, str_text(&sim.out),
		   sim.error[0] ? sim.error : "");
	EXPECT_INT(sim.status, 0);
	EXPECT_INT(sim.metrics_alone, 0);
}

static void run_family(const char *cpu, const char *explain, bool json)
{
	struct str all = {0};
	char words[128], file[64];

	run(&all, "-- true");
	run(&all, "--cpi-stack -- true");
	snprintf(words, sizeof(words), "--explain %s -- true", explain);
	run(&all, words);
	snprintf(file, sizeof(file), "%s.out", cpu);
	compare(file, str_text(&all));
	str_fini(&all);
	if (!json)
		return;
	sim_topdown("--json --drill -l 2 -- true");
	snprintf(file, sizeof(file), "%s.json", cpu);
	compare(file, str_text(&sim.out));
}

static const struct {
	const char *cpu, *cpuinfo;
	unsigned counters; /* general ones, and those that stand for fixed ones */
	const char *explain;
	bool json;
} families[] = {
	{"skl", SIM_SKL, 6, "Bad_Speculation", false},
	{"icl", SIM_ICL, 10, "Fetch_Latency", false},
	{"spr", SIM_SPR, 10, "MEM_Latency", true},
	{"lnl-p", SIM_LNL, 10, "Retiring", false},
	{"srf", SIM_SRF, 10, "IFetch_Latency", false},
	{"zen4", SIM_ZEN4, 6, "Frontend_Latency", false},
	{"zen5", SIM_ZEN5, 6, "Memory_Bound", true},
	{"n1", SIM_ARM("0xd0c"), 6, "Backend_Stalled", false},
	{"n2", SIM_ARM("0xd49"), 6, "Frontend_Bound", false},
	{"n3", SIM_ARM("0xd8e"), 6, "Backend_Memory", true},
	{"v1", SIM_ARM("0xd40"), 6, "Bad_Speculation", false},
	{"v2", SIM_ARM("0xd4f"), 6, "Backend_Bound", false},
	{"v3", SIM_ARM("0xd84"), 6, "Frontend_Flush", false},
};

TEST(every_family_prints_what_its_recording_says)
{
	sim_counts_folder = "recorded/";
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		make(families[f].cpu, families[f].cpuinfo, families[f].counters);
		run_family(families[f].cpu, families[f].explain, families[f].json);
		sim_end();
	}
}

/* r0p1 counts a slot a cycle too many; with its own formulas the tree is that of r0p3. */
TEST(neoverse_n2_by_revision)
{
	static const char info[] =
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: "
		"0x0\nCPU part\t: 0xd49\nCPU revision\t: 1\n\n";

	sim_counts_folder = "recorded/";
	make("n2-r0p1", info, 6);
	run_family("n2-r0p1", "Frontend_Bound", false);
	sim_topdown("--json -- true");
	EXPECT_NEAR(sim_share("frontend_bound"), 0.33, 1e-6);
	EXPECT_NEAR(sim_share("retiring"), 0.35, 1e-6);
	sim_end();
}

TEST(two_kinds_of_cores)
{
	sim_counts_folder = "recorded/";
	make_hybrid();
	run_family("adl", "Core_Bound", true);
	sim_end();
}

/* The tree of a vendor's file, counted: encodings from the built-in table and from the file. */
TEST(trees_of_vendor_files_are_counted_too)
{
	char words[600];

	sim_counts_folder = "recorded/";
	make("spr", SIM_SPR, 10);
	snprintf(words, sizeof(words), "--metrics %s/metrics/perfmon.json --json -- true",
		 COUNTS_DIR);
	sim_topdown(words);
	EXPECT_INT(sim.status, 0);
	EXPECT_NEAR(sim_share("backend_bound"), 0.83, 1e-3);
	EXPECT_STR(sim_value("backend_bound", "state"), "measured");
	sim_end();
	make("n2", SIM_ARM("0xd49"), 6);
	snprintf(words, sizeof(words), "--metrics %s/metrics/arm -l 1 -- true", COUNTS_DIR);
	sim_topdown(words);
	EXPECT(strstr(str_text(&sim.out), "Arm Neoverse N2 r0p3 (neoverse-n2-r0p3.json)") != NULL);
	EXPECT(strstr(str_text(&sim.out), "Frontend_Bound                     33.0%") != NULL);
	sim_end();
	make_hybrid();
	snprintf(words, sizeof(words), "--metrics %s/metrics/perf-hybrid.json -l 1 -- true",
		 COUNTS_DIR);
	sim_topdown(words);
	EXPECT_STR(sim.error, "");
	EXPECT(strstr(str_text(&sim.out), "E-cores (cpu_atom)") != NULL);
	EXPECT(strstr(str_text(&sim.out), "Backend_Bound                      72.0%") != NULL);
	sim_end();
}
