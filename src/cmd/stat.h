/* The parts of culprit stat: what is counted, where, for how long, and how it is shown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/cpuset.h"
#include "base/err.h"
#include "base/json.h"
#include "base/vec.h"
#include "cmd/command.h"
#include "count/session.h"
#include "count/set.h"
#include "events/expr-host.h"

struct event_env;
struct expr;

enum stat_aggregate {
	STAT_SUM, /* one row */
	STAT_PER_CPU,
	STAT_PER_CORE,
	STAT_PER_SOCKET,
	STAT_PER_NODE,
	STAT_PER_THREAD,
	STAT_PER_CGROUP,
};

enum stat_format {
	STAT_TEXT,
	STAT_JSON,
	STAT_CSV,  /* header, constant columns, states */
	STAT_PERF, /* -x: the columns of perf stat */
};

struct stat_options {
	VEC(const char *) events; /* every -e */
	const char *pids, *tids, *cpus, *cgroups, *metrics, *explain, *output, *control, *separator,
		*events_dir;
	bool all_cpus, append, big_numbers, plain_numbers, verbose, null_run, exact, pinned,
		no_inherit, regions, regions_by_thread, json, csv;
	uint64_t repeat, interval_ns, interval_count, timeout_ns;
	int64_t delay_ms; /* -1: start disabled */
	unsigned detail;
	enum stat_aggregate aggregate;
	enum stat_format format;
};

enum stat_leaf_kind {
	STAT_LEAF_EVENTS, /* the sum of events */
	STAT_LEAF_WALL,   /* seconds */
	STAT_LEAF_USER,
	STAT_LEAF_SYSTEM,
	STAT_LEAF_METRIC,  /* another formula, of the same leaves */
	STAT_LEAF_MISSING, /* nothing here is called so */
};

/* What a name of a formula stands for. */
struct stat_leaf {
	char *name;
	enum stat_leaf_kind kind;
	int *slots; /* places in the metric's bundle; below 0: -1 - index of the event */
	size_t count;
	double scale;
	struct expr *expr; /* and formula: of a metric */
	const char *formula;
	char reason[120];
};

/* A derived number: a formula of events/expr.h times scale. */
struct stat_metric {
	const char *name; /* in JSON, CSV and -M */
	const char *unit; /* as printed behind the number */
	const char *formula, *description;
	struct expr *expr;
	struct stat_leaf *leaves;
	unsigned leaf_count;
	double scale;
	unsigned digits;
	int bundle;   /* of the set; -1: none */
	int shown_at; /* the event beside which it is printed; -1 none */
	bool asked;   /* by -M or --explain */
	bool explain;
	bool per_time;    /* the unit gets K, M, G in text */
	bool share;       /* above 100 % is impossible */
	bool expr_shared; /* expr belongs to another metric */
	char *own_name;
};

struct stat_row {
	char label[64]; /* "CPU3", "S0-D0-C1", "bash-4701", a cgroup; "" for the one row of a plain
			   run */
	unsigned cpus;  /* CPUs or threads summed up in it */
	int cpu;        /* -A: the CPU, else -1 */
};

/* Where counting happens. */
struct stat_target {
	VEC(struct count_place) places;
	VEC(struct stat_row) rows;
	VEC(int) pidfds;     /* of -p and -t: ends when all have ended */
	VEC(int) cgroup_fds; /* one per row of --for-each-cgroup */
	bool system_wide;
};

/* What is shown: rows * events values and rows * metrics ratios. */
struct stat_result {
	struct count_value *values;
	struct count_ratio *ratios;
	uint64_t time_ns; /* -I: since the start */
	uint64_t wall_ns, user_ns, sys_ns;
	double wall_stderr_ns, user_stderr_ns, sys_stderr_ns; /* -r; NaN otherwise */
	unsigned runs;
	bool has_times; /* user and sys are known */
};

struct stat_job {
	const struct command *self;
	struct stat_options options;
	struct count_set set;
	VEC(struct stat_metric) metrics;
	struct expr_host machine; /* what formulas ask about it, once one is asked for */
	bool machine_read;
	struct arena texts;    /* formulas typed in */
	struct event_env *env; /* names of events and metrics; NULL until one is looked up */
	struct stat_target target;
	char **argv; /* the command, NULL without one */
	char *title; /* what was counted, in words */
	FILE *out;
	struct json json; /* STAT_JSON: grows while intervals come */
	bool header_done;
	int exit_status;
	/* per run, for -r and --exact: [run][row * events + event] */
	VEC(struct count_value *) run_values;
	VEC(uint64_t) run_walls, run_users, run_systems;
	struct stat_regions *regions; /* --regions, else NULL */
};

static inline size_t stat_events(const struct stat_job *job)
{
	return job->set.events.len;
}

/* stat-events.c */
int stat_choose_events(struct stat_job *job, struct err *err);
/* One of the usual events that the set needs: added unless it is there. Its index, -ENOENT when it
 * is not one of them, or -ENOMEM. */
int stat_need_event(struct stat_job *job, const char *name);
/* stat-known.c: events that need no look-up in /sys, since the common start must not pay for one.
 */
struct stat_known {
	const char *name;
	uint32_t type;
	uint64_t config;
};
extern const struct stat_known stat_known_events[];
const struct stat_known *stat_known_find(const char *name); /* NULL none */
/* The usual event that an attribute is, with the PMU of a hybrid machine left out; NULL none. */
const char *stat_known_name(const struct perf_event_attr *attr);
/* stat-parse.c: the texts of -e */
int stat_add_event_texts(struct stat_job *job, const char *const *texts, size_t count,
			 struct err *err);
/* Any event text that the set needs: added unless it is there. *ret_first and *ret_count: where its
 * events are. */
int stat_need_text(struct stat_job *job, const char *text, size_t *ret_first, size_t *ret_count,
		   struct err *err);
/* stat-regions.c: begin sets the command's environment, show prints or adds to the JSON document,
 * end removes the files */
int stat_regions_begin(struct stat_job *job, struct err *err);
int stat_regions_show(struct stat_job *job, struct err *err);
void stat_regions_end(struct stat_job *job);
/* stat-formula.c: adds what -M and --explain need */
int stat_metric_events(struct stat_job *job, struct err *err);
void stat_metric_fini(struct stat_metric *metric);
/* stat-metrics.c */
int stat_choose_metrics(struct stat_job *job, struct err *err);
void stat_fill_result(const struct stat_job *job, const struct count_session *session,
		      struct stat_result *result);
int stat_merge_runs(const struct stat_job *job, struct stat_result *result);
/* stat-explain.c */
void stat_explain(const struct stat_job *job, const struct stat_result *result);
/* stat-target.c */
int stat_choose_target(struct stat_job *job, struct err *err);
/* stat-run.c: every run, interval and print; the exit status of the command counted is in
 * exit_status */
int stat_run_all(struct stat_job *job, struct err *err);
/* stat-text.c, stat-output.c */
void stat_print_text(struct stat_job *job, const struct stat_result *result);
void stat_print_perf(struct stat_job *job, const struct stat_result *result);
void stat_print_csv(struct stat_job *job, const struct stat_result *result);
void stat_json_begin(struct stat_job *job);
void stat_json_result(struct stat_job *job, const struct stat_result *result);
void stat_json_end(struct stat_job *job);
/* The value as people read it: "0.46" msec of task-clock, "1,234,567"; "" in states without a
 * number. */
void stat_value_text(const struct stat_job *job, unsigned event, const struct count_value *value,
		     bool grouped, char *buf, size_t size);
const char *stat_unit(const struct stat_job *job, unsigned event);

int stat_result_new(const struct stat_job *job, struct stat_result *ret);
void stat_result_free(struct stat_result *result);
