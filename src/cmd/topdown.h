/* The parts of culprit topdown: where counts come from, and how the tree is shown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/command.h"
#include "count/ops.h"
#include "events/topdown.h"
#include "host/host.h"

/* What is counted on: this machine through its kernel, or what a test puts in its place. */
struct topdown_machine {
	const struct host *host;
	const struct counter_ops *ops;
	void *ops_ctx;
};

struct topdown_options {
	const char *cpu, *import, *explain, *nodes, *pids, *vs;
	uint64_t level, interval_ns, interval_count, duration_ns;
	bool all, json, csv, no_multiplex, all_cpus, cpi_stack, list_cpus;
};

/* One count: by line of a file, or by run of a command (section = run). */
struct topdown_count {
	unsigned event, line;
	struct expr_value value;
};

struct topdown_counts {
	const struct topdown_table *table;
	VEC(struct topdown_count) counts;
	struct expr_value literals[2]; /* smt_on, system_tsc_freq */
	bool by_run;                   /* sections are runs, else nearness of lines */
	unsigned unknown;              /* events in the file that the table has no use for */
	char first_unknown[64];
};

struct topdown_job {
	const struct command *self;
	const struct topdown_machine *machine;
	struct topdown_options options;
	const struct topdown_table *table;
	struct topdown *topdown;
	struct topdown_counts counts;
	char cpu_model[160];
	struct str title; /* what was counted */
	struct str notes; /* lines below the tree */
	char **argv;
	struct json json;
	bool *chosen;     /* --nodes, one for each node; NULL: not given */
	uint64_t time_ns; /* -I: since the start */
	unsigned runs;
	bool header_done;
	int exit_status;
};

/* topdown.c: the whole command on a machine; the process's exit status */
int topdown_main(const struct command *self, const struct topdown_machine *machine, int argc,
		 char **argv);

/* topdown-import.c */
int topdown_import(struct topdown_counts *counts, const char *path, struct err *err);
void topdown_counts_inputs(struct topdown_counts *counts, struct topdown_inputs *ret);
int topdown_counts_add(struct topdown_counts *counts, unsigned event, unsigned line,
		       const struct expr_value *value);
void topdown_counts_fini(struct topdown_counts *counts);

/* topdown-live.c: the table of this machine (-ENOENT with what is missing), and counting here */
int topdown_detect(struct topdown_job *job, struct err *err);
int topdown_live(struct topdown_job *job, struct err *err);
/* topdown-software.c: what can be said without counters */
int topdown_software(struct topdown_job *job, const char *missing, struct err *err);

/* topdown-print.c: one result in the form asked for */
int topdown_show(struct topdown_job *job, const struct topdown_result *result, struct err *err);
int topdown_show_end(struct topdown_job *job);
int topdown_explain(struct topdown_job *job, const struct topdown_result *result, struct err *err);
unsigned topdown_max_level(const struct topdown_job *job);

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
void topdown_cpi_text(struct topdown_job *job, const struct topdown_result *a,
		      const struct topdown_result *b, struct str *out);
