/*
 * The parts of culprit topdown: where counts come from, and how the tree is shown.
 *
 * A job has one side, or two with --vs (two commands, two files). A side has one tree for each kind
 * of core, each with the table of that kind. A tree has one row, or one for each core, CPU or
 * thread
 * (--per-core, --per-thread); counts and results belong to rows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/command.h"
#include "count/ops.h"
#include "count/topdown-set.h"
#include "events/topdown.h"
#include "host/host.h"

#define TOPDOWN_TREES_MAX 4

/* The time stamp counter, and the clock beside it. */
struct topdown_tsc {
	double hz; /* as the kernel says it, 0: it does not */
	uint64_t start, start_ns;
};

/* What is counted on: this machine through its kernel, or what a test puts in its place. */
struct topdown_machine {
	const struct host *host;
	const struct counter_ops *ops;
	void *ops_ctx;
};

struct topdown_options {
	const char *cpu, *import, *metrics, *explain, *nodes, *pids, *vs;
	uint64_t level, interval_ns, interval_count, duration_ns, repeat;
	bool all, json, csv, no_multiplex, all_cpus, cpi_stack, list_cpus, drill, per_core,
		per_thread, run;
};

/* One count: by line of a file, or by run of a command (line = number of the run). */
struct topdown_count {
	unsigned event, line;
	struct expr_value value;
	uint64_t raw, enabled_ns, running_ns; /* live: as counted; 0 for files */
};

struct topdown_counts {
	const struct topdown_table *table;
	VEC(struct topdown_count) counts;
	struct expr_value literals[3]; /* smt_on, system_tsc_freq, has_pmem */
	bool by_run;                   /* sections are runs, else nearness of lines */
	unsigned unknown;              /* events in the file that the table has no use for */
	char first_unknown[64];
};

struct topdown_row {
	char label[64];                 /* "" when it is the only one */
	struct topdown_counts counts;   /* summed up over the repeats */
	struct topdown_counts *repeats; /* -r: of each repeat, else NULL */
	struct topdown_result result;
};

/* The cores of one kind. */
struct topdown_tree {
	char label[48]; /* "P-cores (cpu_core)", "" when all cores are alike */
	char pmu_name[48];
	const struct topdown_table *table;
	struct topdown *topdown;
	bool borrowed; /* topdown is another side's */
	struct topdown_pmu pmu;
	VEC(struct topdown_row) rows;
	bool *chosen;  /* --nodes, one for each node; NULL: not given */
	bool *lacking; /* events that the PMU says it does not have, one for each; NULL: not known
			*/
};

struct topdown_side {
	char **argv;      /* the command, NULL: none */
	struct str title; /* what was counted */
	struct topdown_tree trees[TOPDOWN_TREES_MAX];
	unsigned tree_count;
	unsigned runs;
	uint64_t wall_ns; /* of the last run, 0: a file */
};

struct topdown_job {
	const struct command *self;
	const struct topdown_machine *machine;
	struct topdown_options options;
	struct topdown_side sides[2];
	unsigned side_count;
	char cpu_model[160];
	struct str notes; /* lines below the trees */
	char **argv;
	struct topdown_user_tables *user_tables; /* --metrics; NULL: not read */
	struct json json;
	uint64_t time_ns;       /* -I: since the start */
	struct topdown_tsc tsc; /* zero: this is a file, or a simulated machine */
	bool smt;               /* two threads of a core may be busy */
	bool half_core; /* SMT, a table of whole cores, and only one thread of them is counted */
	bool header_done;
	int exit_status;
};

/* topdown.c: the whole command on a machine; the process's exit status */
int topdown_main(const struct command *self, const struct topdown_machine *machine, int argc,
		 char **argv);

/* topdown-import.c */
int topdown_import(struct topdown_counts *counts, const char *path, struct err *err);
/* The same of a text of size bytes and a NUL, which is cut up. */
int topdown_import_text(struct topdown_counts *counts, char *text, size_t size, const char *name,
			struct err *err);
void topdown_counts_inputs(struct topdown_counts *counts, struct topdown_inputs *ret);
int topdown_counts_add(struct topdown_counts *counts, const struct topdown_count *count);
/* Adds to the count of the same event and run, when there is one. */
int topdown_counts_sum(struct topdown_counts *counts, const struct topdown_count *count);
void topdown_counts_fini(struct topdown_counts *counts);

/* topdown-tree.c: sides, trees and rows */
int topdown_tree_choose(struct topdown_job *job, struct topdown_tree *tree, struct err *err);
/* A row of this label; -ENOMEM. */
int topdown_tree_row(const struct topdown_job *job, struct topdown_tree *tree, const char *label);
/* Evaluates every row of every tree; with -r the errors are those between the repeats. */
int topdown_side_evaluate(const struct topdown_job *job, struct topdown_side *side);
void topdown_side_fini(const struct topdown_job *job, struct topdown_side *side);
/* The same trees without rows; from owns what they share and lives longer. */
void topdown_side_copy(const struct topdown_side *from, struct topdown_side *to);
unsigned topdown_max_level(const struct topdown_job *job, const struct topdown_table *table);

/* topdown-machine.c: the trees of this machine; -ENOENT and others with what is missing */
int topdown_detect(struct topdown_job *job, struct err *err);
/* Its frequency: from the kernel, else from what it did since begin (5 ms at least). */
void topdown_tsc_begin(struct topdown_tsc *tsc);
struct expr_value topdown_tsc_frequency(const struct topdown_tsc *tsc);
/* The events that the PMU of a tree has names for, each behind a blank. */
void topdown_list_events(const struct host *host, const struct topdown_tree *tree, struct str *out);
extern const struct topdown_table topdown_generic_table;

/*
 * topdown-metrics.c: --metrics. A table for a core (cpu: its short name, "": not known; model NULL:
 * not this machine); then, to count here, encodings from everything that is known about events, and
 * what the machine decides in the formulas.
 */
int topdown_user_table(struct topdown_job *job, const struct host_cpu_model *model, const char *cpu,
		       const struct topdown_table **ret, struct err *err);
int topdown_user_encode(struct topdown_job *job, struct topdown_tree *tree, struct err *err);
void topdown_user_fold(const struct topdown_job *job, const struct host_cpu_model *model,
		       struct topdown_tree *tree);
void topdown_user_tables_free(struct topdown_user_tables *user);

/* topdown-target.c: whose counts; places and rows of a tree. */
struct topdown_places {
	VEC(struct count_place) places; /* empty: the command */
};
int topdown_target_places(const struct topdown_job *job, struct topdown_tree *tree,
			  struct topdown_places *ret, struct err *err);
bool topdown_target_ended(const struct topdown_job *job);
void topdown_target_title(const struct topdown_job *job, struct topdown_side *side);

/* topdown-live.c: counting here */
int topdown_live(struct topdown_job *job, struct err *err);
/* topdown-software.c: what can be said without counters */
int topdown_software(struct topdown_job *job, const char *missing, struct err *err);

/* topdown-print.c: one result in the form asked for */
int topdown_show(struct topdown_job *job, struct err *err);
int topdown_show_end(struct topdown_job *job);
bool topdown_is_shown(const struct topdown_job *job, const struct topdown_tree *tree,
		      const struct topdown_result *result, size_t node);
const char *topdown_unit_text(const struct topdown_node *node); /* "slots", "MPKI" */
/* topdown-document.c: the same as JSON and CSV */
void topdown_json(struct topdown_job *job);
int topdown_csv(struct topdown_job *job, struct str *out);
/* topdown-explain.c: the formula of a node with its numbers */
int topdown_explain(struct topdown_job *job, struct err *err);
/* The events that a node's formula hangs on, other nodes' events left out. Both: 0 or -ENOMEM. */
int topdown_node_inputs(const struct topdown_tree *tree, size_t node, bool *events);
/* Adds the events of a node or a let, and of nodes it hangs on that are not known; these are then.
 */
int topdown_add_events(const struct topdown_tree *tree, const char *name, bool *known,
		       bool *events);

/* topdown-locate.c: the recording that finds the code behind the mark */
struct topdown_record {
	VEC(char *) argv; /* "record", ..., NULL */
	char event[64];   /* what it samples, "" the default */
};
int topdown_record_line(const struct topdown_job *job, const struct topdown_side *side,
			struct topdown_record *ret);
void topdown_record_text(const struct topdown_record *record, struct str *out);
void topdown_record_fini(struct topdown_record *record);
/* --run: does it, and shows its report. The exit status. */
int topdown_record_run(struct topdown_job *job);

/* topdown-cpi.c: parts of the cycles for each instruction, in the order of the tree */
struct topdown_cpi_part {
	const char *name;
	double cpi;
	unsigned depth;
};

#define TOPDOWN_CPI_MAX 24
/* Returns the parts (0: there is no CPI); those of depth 0 add up to the measured CPI. */
unsigned topdown_cpi_stack(const struct topdown_table *table, const struct topdown_result *result,
			   struct topdown_cpi_part parts[TOPDOWN_CPI_MAX]);
void topdown_cpi_text(const struct topdown_table *table, const struct topdown_result *a,
		      const struct topdown_result *b, struct str *out);
