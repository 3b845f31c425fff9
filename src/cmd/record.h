/* culprit record's pieces: record.c (options, life), record-prepare.c (events, targets),
 * record-summary.c (words). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/vec.h"
#include "cmd/workload.h"
#include "events/parse.h"
#include "sample/recorder.h"

struct command;

struct record_ids {
	pid_t *data;
	size_t len, cap;
};

struct record_options {
	VEC(const char *) event_texts;
	VEC(const char *) filters; /* by event text; NULL: none */
	struct record_ids pids, tids;
	struct cpuset cpus;
	bool cpus_given, system_wide, no_inherit, frequency_max, quiet, verbose;
	const char *user, *output;
	uint64_t frequency_hz, period, duration_ns, delay_ns, ring_bytes;
	enum callgraph callgraph;
	uint32_t stack_bytes;
	int zstd_level;
};

struct record_job {
	struct record_options options;
	bool has_command;
	struct event_env *env;
	struct event_list list;
	VEC(struct recorder_event) events;
	struct recorder_options recorder_options;
	struct recorder *recorder;
	struct recorder_result result;
	struct workload work;
	bool default_event; /* nobody asked for a particular one */
	bool no_pmu;        /* the default had to be cpu-clock */
	bool user_only;     /* the kernel is forbidden to this user */
	bool frequency_cut; /* to kernel.perf_event_max_sample_rate */
};

/* Checks the options against each other, parses and probes the events, finds the targets. */
int record_prepare(struct record_job *job, struct err *err);
void record_job_fini(struct record_job *job);
void record_print_summary(const struct command *self, const struct record_job *job);
