/* The parts of culprit stat: what is counted, where, for how long, and how it is shown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/json.h"
#include "base/vec.h"
#include "cmd/command.h"
#include "count/session.h"
#include "count/set.h"

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
	const char *pids, *tids, *cpus, *cgroups, *metrics, *explain, *output, *control, *separator;
	bool all_cpus, append, big_numbers, plain_numbers, verbose, null_run, exact, pinned,
		no_inherit, regions, regions_by_thread, json, csv;
	uint64_t repeat, interval_ns, interval_count, timeout_ns;
	int64_t delay_ms; /* -1: start disabled */
	unsigned detail;
	enum stat_aggregate aggregate;
	enum stat_format format;
};

/* A derived number: numerator / denominator * scale. Below 0 the denominator is the wall time in
 * ns. */
struct stat_metric {
	const char *name; /* in JSON, CSV and -M */
	const char *unit; /* as printed behind the number */
	int numerator, denominator;
	double scale;
	unsigned digits;
	bool asked;    /* by -M or --explain */
	bool per_time; /* the unit gets K, M, G in text */
	int shown_at;  /* the event beside which it is printed */
};

#define STAT_WALL (-1)

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
/* An event that the set needs: added unless it is there. Its index, or a negative errno. */
int stat_need_event(struct stat_job *job, const char *name);
/* stat-parse.c: the texts of -e */
int stat_add_event_texts(struct stat_job *job, const char *const *texts, size_t count,
			 struct err *err);
/* stat-regions.c: begin sets the command's environment, show prints or adds to the JSON document, end
 * removes the files */
int stat_regions_begin(struct stat_job *job, struct err *err);
int stat_regions_show(struct stat_job *job, struct err *err);
void stat_regions_end(struct stat_job *job);
/* stat-metrics.c */
int stat_choose_metrics(struct stat_job *job, struct err *err);
int stat_metric_events(struct stat_job *job, struct err *err); /* adds what -M and --explain need */
void stat_fill_result(const struct stat_job *job, const struct count_session *session,
		      struct stat_result *result);
int stat_merge_runs(const struct stat_job *job, struct stat_result *result);
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
