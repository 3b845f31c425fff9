/*
 * The recording that finds the code behind a mark: an event that happens where the loss is made,
 * precise where the core has it (PEBS, IBS), at a period that gives a few thousand samples a
 * second. A node without an event of its own takes that of the node above it; without any, the
 * cycles that culprit record samples by default.
 *
 * Periods are prime, so that they do not beat with loops; those of IBS are multiples of 16, which
 * its counter wants.
 *
 * Sources: LocateWith and the event files of github.com/intel/perfmon; AMD's and Arm's manuals.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd/topdown.h"

#define RECORDING "perf.data" /* culprit record's own default */

enum {
	SKL = 1,
	ICL = 2,
	GLC = 4,
	LNC = 8,
	ANY_INTEL = SKL | ICL | GLC | LNC,
	ATOM = 16,
	AMD = 32,
	ARM = 64,
};

struct locate {
	unsigned families;
	const char *node;
	const char *event; /* vendor's name */
	uint64_t config;   /* of the core PMU */
	uint32_t frontend; /* config1 */
	bool precise;
	uint32_t period;
	const char *pmu; /* instead of the core's, NULL: the core's */
};

static const struct locate rows[] = {
	{SKL, "frontend_bound", "FRONTEND_RETIRED.LATENCY_GE_4", 0x1c6, 0x400406, true, 100007,
	 NULL},
	{ICL, "frontend_bound", "FRONTEND_RETIRED.LATENCY_GE_4", 0x1c6, 0x500406, true, 100007,
	 NULL},
	{GLC, "frontend_bound", "FRONTEND_RETIRED.LATENCY_GE_4", 0x1c6, 0x600406, true, 100007,
	 NULL},
	{SKL, "fetch_latency", "FRONTEND_RETIRED.LATENCY_GE_16", 0x1c6, 0x401006, true, 100007,
	 NULL},
	{ICL, "fetch_latency", "FRONTEND_RETIRED.LATENCY_GE_16", 0x1c6, 0x501006, true, 100007,
	 NULL},
	{GLC, "fetch_latency", "FRONTEND_RETIRED.LATENCY_GE_16", 0x1c6, 0x601006, true, 100007,
	 NULL},
	{LNC, "fetch_latency", "FRONTEND_RETIRED.LATENCY_GE_16", 0x3c6, 0x601006, true, 100007,
	 NULL},
	{SKL | ICL | GLC, "fetch_bandwidth", "FRONTEND_RETIRED.LATENCY_GE_2_BUBBLES_GE_1", 0x1c6,
	 0x100206, true, 100007, NULL},
	{SKL | ICL | GLC, "icache_misses", "FRONTEND_RETIRED.L1I_MISS", 0x1c6, 0x12, true, 100007,
	 NULL},
	{LNC, "icache_misses", "FRONTEND_RETIRED.L1I_MISS", 0x3c6, 0x12, true, 100007, NULL},
	{SKL | ICL | GLC, "itlb_misses", "FRONTEND_RETIRED.ITLB_MISS", 0x1c6, 0x14, true, 100007,
	 NULL},
	{LNC, "itlb_misses", "FRONTEND_RETIRED.ITLB_MISS", 0x3c6, 0x14, true, 100007, NULL},
	{GLC, "unknown_branches", "FRONTEND_RETIRED.UNKNOWN_BRANCH", 0x1c6, 0x17, true, 100007,
	 NULL},
	{GLC, "ms_switches", "FRONTEND_RETIRED.MS_FLOWS", 0x1c6, 0x8, true, 100007, NULL},
	{SKL | ICL | GLC, "dsb_switches", "FRONTEND_RETIRED.DSB_MISS", 0x1c6, 0x11, true, 100007,
	 NULL},
	{SKL | ICL | GLC, "mite", "FRONTEND_RETIRED.ANY_DSB_MISS", 0x1c6, 0x1, true, 100007, NULL},
	{ANY_INTEL, "bad_speculation", "BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, true, 50021, NULL},
	{ANY_INTEL, "branch_resteers", "BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, true, 50021, NULL},
	{ANY_INTEL, "machine_clears", "MACHINE_CLEARS.COUNT", 0x10401c3, 0, false, 100003, NULL},
	{ICL | GLC | LNC, "backend_bound", "TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, false, 10000003,
	 NULL},
	{ANY_INTEL, "memory_bound", "MEM_LOAD_RETIRED.L1_MISS", 0x8d1, 0, true, 200003, NULL},
	{ANY_INTEL, "l1_bound", "MEM_LOAD_RETIRED.L1_HIT", 0x1d1, 0, true, 1000003, NULL},
	{ANY_INTEL, "dtlb_load", "MEM_INST_RETIRED.STLB_MISS_LOADS", 0x11d0, 0, true, 100003, NULL},
	{ANY_INTEL, "lock_latency", "MEM_INST_RETIRED.LOCK_LOADS", 0x21d0, 0, true, 100007, NULL},
	{ANY_INTEL, "split_loads", "MEM_INST_RETIRED.SPLIT_LOADS", 0x41d0, 0, true, 100003, NULL},
	{ANY_INTEL, "l2_bound", "MEM_LOAD_RETIRED.L2_HIT", 0x2d1, 0, true, 200003, NULL},
	{ANY_INTEL, "l3_bound", "MEM_LOAD_RETIRED.L3_HIT", 0x4d1, 0, true, 100021, NULL},
	{SKL | ICL, "contested_accesses", "MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM", 0x4d2, 0, true,
	 20011, NULL},
	{GLC, "contested_accesses", "MEM_LOAD_L3_HIT_RETIRED.XSNP_FWD", 0x4d2, 0, true, 20011,
	 NULL},
	{SKL | ICL, "data_sharing", "MEM_LOAD_L3_HIT_RETIRED.XSNP_HIT", 0x2d2, 0, true, 20011,
	 NULL},
	{GLC | LNC, "data_sharing", "MEM_LOAD_L3_HIT_RETIRED.XSNP_NO_FWD", 0x2d2, 0, true, 20011,
	 NULL},
	{ANY_INTEL, "dram_bound", "MEM_LOAD_RETIRED.L3_MISS", 0x20d1, 0, true, 50021, NULL},
	{ANY_INTEL, "l3_miss_bound", "MEM_LOAD_RETIRED.L3_MISS", 0x20d1, 0, true, 50021, NULL},
	{ANY_INTEL, "store_bound", "MEM_INST_RETIRED.ALL_STORES", 0x82d0, 0, true, 1000003, NULL},
	{ANY_INTEL, "split_stores", "MEM_INST_RETIRED.SPLIT_STORES", 0x42d0, 0, true, 100003, NULL},
	{ANY_INTEL, "dtlb_store", "MEM_INST_RETIRED.STLB_MISS_STORES", 0x12d0, 0, true, 100003,
	 NULL},
	{SKL, "divider", "ARITH.DIVIDER_ACTIVE", 0x1000114, 0, false, 2000003, NULL},
	{ICL, "divider", "ARITH.DIVIDER_ACTIVE", 0x1000914, 0, false, 1000003, NULL},
	{GLC | LNC, "divider", "ARITH.DIV_ACTIVE", 0x10009b0, 0, false, 1000003, NULL},
	{SKL, "serializing_operation", "PARTIAL_RAT_STALLS.SCOREBOARD", 0x159, 0, false, 2000003,
	 NULL},
	{ICL | GLC | LNC, "serializing_operation", "RESOURCE_STALLS.SCOREBOARD", 0x2a2, 0, false,
	 100003, NULL},
	{SKL | ICL | GLC | LNC, "ports_utilization", "EXE_ACTIVITY.1_PORTS_UTIL", 0x2a6, 0, false,
	 2000003, NULL},
	{SKL, "retiring", "UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, false, 2000003, NULL},
	{ICL | GLC | LNC, "retiring", "UOPS_RETIRED.SLOTS", 0x2c2, 0, false, 2000003, NULL},
	{SKL, "light_operations", "INST_RETIRED.PREC_DIST", 0x1c0, 0, true, 2000003, NULL},
	{ICL | GLC | LNC, "light_operations", "INST_RETIRED.PREC_DIST", 0x100, 0, true, 2000003,
	 NULL},
	{GLC | LNC, "heavy_operations", "UOPS_RETIRED.HEAVY", 0x1c2, 0, false, 2000003, NULL},
	{ATOM, "bad_speculation", "BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, true, 200003, NULL},
	{ATOM, "frontend_bound", "TOPDOWN_FE_BOUND.ALL", 0x71, 0, false, 1000003, NULL},
	{ATOM, "backend_bound", "TOPDOWN_BE_BOUND.ALL", 0x74, 0, false, 1000003, NULL},
	{AMD, "frontend_bound", "", 0, 0, false, 100000, "ibs_fetch"},
	{AMD, "bad_speculation", "ex_ret_brn_misp", 0xc3, 0, false, 20011, NULL},
	{AMD, "backend_bound", "", 0, 0, false, 100000, "ibs_op"},
	{AMD, "retiring", "", 0, 0, false, 100000, "ibs_op"},
	{AMD, "microcode", "ex_ret_ucode_ops", 0x1000000c2, 0, false, 100003, NULL},
	{ARM, "frontend_bound", "STALL_FRONTEND", 0x23, 0, false, 1000003, NULL},
	{ARM, "frontend_stalled", "STALL_FRONTEND", 0x23, 0, false, 1000003, NULL},
	{ARM, "frontend_cache", "L1I_CACHE_REFILL", 0x01, 0, false, 20011, NULL},
	{ARM, "frontend_tlb", "ITLB_WALK", 0x35, 0, false, 20011, NULL},
	{ARM, "bad_speculation", "BR_MIS_PRED_RETIRED", 0x22, 0, false, 20011, NULL},
	{ARM, "branch_mispredict_rate", "BR_MIS_PRED_RETIRED", 0x22, 0, false, 20011, NULL},
	{ARM, "backend_bound", "STALL_BACKEND", 0x24, 0, false, 1000003, NULL},
	{ARM, "backend_stalled", "STALL_BACKEND", 0x24, 0, false, 1000003, NULL},
	{ARM, "backend_cache", "L1D_CACHE_REFILL", 0x03, 0, false, 20011, NULL},
	{ARM, "backend_tlb", "DTLB_WALK", 0x34, 0, false, 20011, NULL},
	{ARM, "retiring", "INST_RETIRED", 0x08, 0, false, 1000003, NULL},
};

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

static unsigned family_of(const struct topdown_table *table)
{
	static const struct {
		const char *cpu;
		unsigned family;
	} intel[] = {{"skl", SKL}, {"skx", SKL},  {"clx", SKL},   {"icl", ICL},   {"spr", GLC},
		     {"glc", GLC}, {"srf", ATOM}, {"lnl-p", LNC}, {"adl-e", ATOM}};

	if (table == &topdown_generic_table)
		return 0;
	if (table->vendor != TOPDOWN_INTEL)
		return table->vendor == TOPDOWN_AMD ? AMD : ARM;
	for (size_t i = 0; i < ARRAY_LEN(intel); i++)
		if (has_word(table->cpus, intel[i].cpu))
			return intel[i].family;
	return 0;
}

/* The row for a node, or for the nearest above it that has one. */
static const struct locate *find_row(const struct topdown_table *table, int node)
{
	unsigned family = family_of(table);

	for (; node >= 0; node = table->nodes[node].parent)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			if ((rows[i].families & family) &&
			    strcmp(rows[i].node, table->nodes[node].name) == 0)
				return &rows[i];
	return NULL;
}

/* Can it be sampled here? */
static bool opens(const struct topdown_job *job, const struct topdown_tree *tree,
		  const struct locate *row, bool precise)
{
	const struct topdown_machine *machine = job->machine;
	struct perf_event_attr attr = {.type = tree->pmu.type,
				       .size = sizeof(attr),
				       .config = row->config,
				       .config1 = row->frontend,
				       .sample_period = row->period,
				       .sample_type = PERF_SAMPLE_IP,
				       .disabled = 1,
				       .precise_ip = precise ? 2 : 0};
	char path[96];
	int fd;

	if (job->options.import)
		return true;
	if (row->pmu) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", row->pmu);
		/* IBS cannot leave the kernel out */
		return !tree->pmu.user_only && host_number(machine->host, path).known;
	}
	attr.exclude_kernel = attr.exclude_hv = tree->pmu.user_only;
	fd = machine->ops->open(machine->ops_ctx, &attr, 0, -1, -1, 0);
	if (fd >= 0)
		machine->ops->close(machine->ops_ctx, fd);
	return fd >= 0;
}

/* The event as culprit record takes it. */
static void event_text(const struct topdown_tree *tree, const struct locate *row, bool precise,
		       struct str *out)
{
	unsigned long long config = row->config;

	if (row->pmu) {
		str_printf(out, "%s//", row->pmu);
		return;
	}
	if (tree->table->vendor == TOPDOWN_ARM) {
		str_printf(out, "%s/event=0x%llx,name=%s/", tree->pmu_name, config, row->event);
		return;
	}
	str_printf(out, "%s/event=0x%llx", tree->pmu_name,
		   (config & 0xff) | (config >> 24 & 0xf00));
	if (config >> 8 & 0xff)
		str_printf(out, ",umask=0x%llx", config >> 8 & 0xff);
	if (tree->table->vendor == TOPDOWN_INTEL && (config >> 24 & 0xff))
		str_printf(out, ",cmask=%llu", config >> 24 & 0xff);
	if (config >> 18 & 1)
		str_puts(out, ",edge=1");
	if (row->frontend)
		str_printf(out, ",frontend=0x%x", (unsigned)row->frontend);
	str_printf(out, ",name=%s/%s", row->event, precise ? "pp" : "");
}

static int push(struct topdown_record *record, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	if (vec_push(&record->argv, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static int push_event(const struct topdown_job *job, const struct topdown_tree *tree, int node,
		      struct topdown_record *record)
{
	const struct locate *row = find_row(tree->table, node);
	bool precise = row && row->precise && opens(job, tree, row, true);
	struct str text = {0};
	char period[32];
	int r;

	if (!row || (!precise && !opens(job, tree, row, false)))
		return 0;
	event_text(tree, row, precise, &text);
	snprintf(period, sizeof(period), "%u", (unsigned)row->period);
	snprintf(record->event, sizeof(record->event), "%s", row->pmu ? row->pmu : row->event);
	r = str_status(&text);
	if (r == 0)
		r = push(record, "-e");
	if (r == 0)
		r = push(record, str_text(&text));
	if (r == 0)
		r = push(record, "-c");
	if (r == 0)
		r = push(record, period);
	str_fini(&text);
	return r;
}

static int push_target(const struct topdown_job *job, const struct topdown_side *side,
		       struct topdown_record *record)
{
	const struct topdown_options *o = &job->options;
	char duration[32];
	int r = 0;

	if (o->all_cpus)
		r = push(record, "-a");
	if (o->pids && (r = push(record, "-p")) == 0)
		r = push(record, o->pids);
	if (r == 0 && o->duration_ns && !side->argv) {
		snprintf(duration, sizeof(duration), "%llums",
			 (unsigned long long)(o->duration_ns / NSEC_PER_MSEC));
		r = push(record, "-d");
		if (r == 0)
			r = push(record, duration);
	}
	if (r == 0 && (side->argv || o->import))
		r = push(record, "--");
	for (size_t i = 0; r == 0 && side->argv && side->argv[i]; i++)
		r = push(record, side->argv[i]);
	if (r == 0 && o->import)
		r = push(record, "COMMAND");
	return r == 0 ? push(record, NULL) : r;
}

/* The mark of the row with the most cycles. */
static const struct topdown_row *marked_row(const struct topdown_side *side,
					    const struct topdown_tree **ret_tree)
{
	const struct topdown_row *best = NULL;
	double most = -1;

	for (unsigned t = 0; t < side->tree_count; t++)
		vec_for_each(&side->trees[t].rows, row) {
			double cycles =
				expr_has_number(&row->result.cycles) ? row->result.cycles.value : 0;

			if (!row->result.nodes || row->result.bottleneck < 0 || cycles <= most)
				continue;
			most = cycles;
			best = row;
			*ret_tree = &side->trees[t];
		}
	return best;
}

int topdown_record_line(const struct topdown_job *job, const struct topdown_side *side,
			struct topdown_record *ret)
{
	const struct topdown_tree *tree = NULL;
	const struct topdown_row *row = marked_row(side, &tree);
	int r = push(ret, "record");

	if (r == 0 && row)
		r = push_event(job, tree, row->result.bottleneck, ret);
	return r == 0 ? push_target(job, side, ret) : r;
}

static bool is_plain(const char *word)
{
	for (const char *c = word; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_-./,:=+@%", *c))
			return false;
	return *word != '\0';
}

/* As a shell takes it. */
void topdown_record_text(const struct topdown_record *record, struct str *out)
{
	str_puts(out, "culprit");
	for (size_t i = 0; i < record->argv.len && record->argv.data[i]; i++) {
		const char *word = record->argv.data[i];

		str_putc(out, ' ');
		if (is_plain(word)) {
			str_puts(out, word);
			continue;
		}
		str_putc(out, '\'');
		for (const char *c = word; *c; c++)
			if (*c == '\'')
				str_puts(out, "'\\''");
			else
				str_putc(out, *c);
		str_putc(out, '\'');
	}
}

void topdown_record_fini(struct topdown_record *record)
{
	vec_for_each(&record->argv, word)
		free(*word);
	vec_fini(&record->argv);
}

/* Runs another command of this executable; its exit status, or a negative errno. */
static int run_self(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		execv("/proc/self/exe", argv);
		_exit(EXIT_NOT_FOUND);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int topdown_record_run(struct topdown_job *job)
{
	static char name[] = "culprit", report[] = "report";
	char *show[] = {name, report, NULL};
	struct topdown_record record = {0};
	struct str text = {0};
	VEC(char *) argv = {0};
	struct stat before = {0}, after = {0};
	int r = topdown_record_line(job, &job->sides[0], &record), status;

	if (r == 0)
		r = vec_push(&argv, name);
	for (size_t i = 0; r == 0 && i < record.argv.len; i++)
		r = vec_push(&argv, record.argv.data[i]);
	topdown_record_text(&record, &text);
	str_putc(&text, '\n');
	if (r == 0 && cmd_write_stdout(job->self, str_text(&text), text.len) != EXIT_DONE)
		r = -EPIPE;
	stat(RECORDING, &before);
	status = r == 0 ? run_self(argv.data) : EXIT_FAILED;
	/* A command that fails is still recorded: its status is passed on, the report shown. */
	if (r == 0 && stat(RECORDING, &after) == 0 &&
	    (after.st_ino != before.st_ino || after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
	     after.st_mtim.tv_nsec != before.st_mtim.tv_nsec))
		r = MIN(run_self(show), 0);
	if (r == 0 && job->exit_status == 0)
		job->exit_status = status < 0 ? EXIT_FAILED : status;
	vec_fini(&argv);
	str_fini(&text);
	topdown_record_fini(&record);
	return r;
}
