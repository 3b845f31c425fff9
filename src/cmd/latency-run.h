/*
 * Measuring latency and noise: what timerlat, osnoise and hwnoise share. A command's options fill a
 * struct latency_cli; latency_measure() does the rest.
 */
#pragma once

#include <sys/types.h>

#include "base/cpuset.h"
#include "base/util.h"
#include "base/vec.h"
#include "cmd/command.h"
#include "cmd/latency-tables.h"
#include "cmd/option.h"
#include "latency/engine.h"

enum latency_mode {
	MODE_TOP,
	MODE_HIST,
	MODE_TRACE,
};

enum action_kind {
	ACTION_TRACE,
	ACTION_SIGNAL,
	ACTION_SHELL,
	ACTION_CONTINUE,
};

struct latency_action {
	enum action_kind kind;
	const char *text; /* file, shell command; NULL: the default file */
	int signal;
	pid_t pid;
};

struct latency_actions {
	VEC(struct latency_action) list;
};

struct latency_cli {
	enum latency_tool tool;
	enum latency_mode mode;
	struct cpuset cpus, housekeeping;
	bool has_cpus;
	uint64_t period_ns, runtime_ns, threshold_ns;
	bool has_threshold;
	uint64_t irq_ns, thread_ns, stack_ns, single_ns, total_ns;
	uint64_t aa_only_ns;
	uint64_t duration_ns, warm_up_ns;
	uint64_t buffer_kib;
	uint64_t dma_latency_us; /* UINT64_MAX: not set */
	int deepest_idle;
	bool has_deepest_idle;
	const char *cgroup; /* NULL: not given, "" our own */
	int policy, priority;
	uint64_t dl_runtime_ns, dl_period_ns;
	uint64_t align_ns;
	bool aligned;
	bool trace;
	const char *trace_file; /* NULL: the default */
	VEC(struct latency_event) events;
	VEC(char *) texts; /* what events and actions point into */
	struct latency_actions on_threshold, on_end;
	bool user_threads, kernel_threads, user_load;
	bool nano, quiet, debug, no_aa, dump_tasks;
	uint64_t bucket, entries; /* 0: the default */
	bool no_irq, no_thread, no_header, no_summary, no_index, with_zeros;
	bool json, csv;
	const char *output, *engine;
};

/* Defaults of the tool. */
void latency_cli_init(struct latency_cli *cli, enum latency_tool tool);
void latency_cli_fini(struct latency_cli *cli);
/* Parses, checks ranges, and measures. The process's exit status. */
int latency_command(const struct command *self, enum latency_tool tool, int argc, char **argv);

/* Setters of option rows. */
int latency_set_cpus(void *options, const char *value, struct err *err);
int latency_set_housekeeping(void *options, const char *value, struct err *err);
int latency_set_priority(void *options, const char *value, struct err *err);
int latency_set_cgroup(void *options, const char *value, struct err *err);
int latency_set_event(void *options, const char *value, struct err *err);
int latency_set_filter(void *options, const char *value, struct err *err);
int latency_set_trigger(void *options, const char *value, struct err *err);
int latency_set_trace(void *options, const char *value, struct err *err);
int latency_set_auto(void *options, const char *value, struct err *err);
int latency_set_threshold(void *options, const char *value, struct err *err);
int latency_set_aligned(void *options, const char *value, struct err *err);
int latency_set_deepest_idle(void *options, const char *value, struct err *err);
int latency_set_duration(void *options, const char *value, struct err *err);
int latency_set_on_threshold(void *options, const char *value, struct err *err);
int latency_set_on_end(void *options, const char *value, struct err *err);

/* Rows that all three tools have; the tool's own go between. */
#define LATENCY_ROWS_CPUS                                                                         \
	OPT_CALL('c', "cpus", "LIST", latency_set_cpus,                                           \
		 "Measure these CPUs (0,2-3). Default: those this process may run on."),          \
		OPT_CALL('H', "house-keeping", "LIST", latency_set_housekeeping,                  \
			 "Run culprit's own reading and printing on these CPUs."),                \
		OPT_CALL('C', "cgroup", "[GROUP]", latency_set_cgroup,                            \
			 "Put the measuring threads into this control group (without a value: "   \
			 "that of "                                                               \
			 "culprit)."),                                                            \
		OPT_CALL('P', "priority", "PRIO", latency_set_priority,                           \
			 "Policy and priority of the measuring threads: o:NICE, r:PRIO, f:PRIO, " \
			 "or "                                                                    \
			 "d:RUNTIME:PERIOD in microseconds or with a unit.")

#define LATENCY_ROWS_RUN(type)                                                                     \
	OPT_CALL('d', "duration", "TIME", latency_set_duration,                                    \
		 "Measure for so long (10s, 5m, 2h, 1d). Default: until interrupted."),            \
		OPT_DURATION(0, "warm-up", "TIME", type, warm_up_ns, NSEC_PER_SEC,                 \
			     "Throw away what the first seconds give."),                           \
		OPT_TEXT(0, "engine", "K|B|L|U", type, engine,                                     \
			 "Measure with the kernel's tracer (K), BPF (B), BPF for latencies alone " \
			 "(L) or "                                                                 \
			 "user space alone (U). Default: the first of these that can.")

#define LATENCY_ROWS_TRACE(type)                                                                   \
	OPT_CALL('t', "trace", "[FILE]", latency_set_trace,                                        \
		 "Keep the latest events and write them to FILE when a threshold stops the "       \
		 "measurement: text, or trace.dat when the name ends in .dat. Default: "           \
		 "TOOL_trace.txt."),                                                               \
		OPT_CALL('e', "event", "SYS[:EVENT]", latency_set_event,                           \
			 "Keep these trace events too; may be given again."),                      \
		OPT_CALL(0, "filter", "FILTER", latency_set_filter,                                \
			 "Only those of the previous -e that pass the kernel's filter."),          \
		OPT_CALL(0, "trigger", "TRIGGER", latency_set_trigger,                             \
			 "A kernel trigger of the previous -e; what a hist: trigger counted goes " \
			 "to "                                                                     \
			 "SYS_EVENT_hist.txt."),                                                   \
		OPT_SIZE_KIB(0, "trace-buffer-size", "KB", type, buffer_kib,                       \
			     "Size of each CPU's buffer in KiB."),                                 \
		OPT_CALL(0, "on-threshold", "ACTION", latency_set_on_threshold,                    \
			 "What to do when a threshold is reached; may be given again, done in "    \
			 "order "                                                                  \
			 "until one fails: trace[,file=FILE], signal,num=N,pid=PID|parent, "       \
			 "shell,command=COMMAND, continue (go on measuring)."),                    \
		OPT_CALL(0, "on-end", "ACTION", latency_set_on_end,                                \
			 "The same at the end of the measurement.")

#define OPT_SIZE_KIB(s, l, a, type, member, help_) OPT_U64(s, l, a, type, member, help_)

#define LATENCY_ROWS_OUTPUT(type)                                                                \
	OPT_FLAG('q', "quiet", type, quiet, "Print only at the end, also on a terminal."),       \
		OPT_FLAG('D', "debug", type, debug,                                              \
			 "Say on standard error what is done and why."),                         \
		OPT_TEXT('o', "output", "FILE", type, output,                                    \
			 "Keep everything in a run file, for culprit latency show, diff, check " \
			 "and "                                                                  \
			 "plot."),                                                               \
		OPT_FLAG(0, "json", type, json, "Print JSON."),                                  \
		OPT_FLAG(0, "csv", type, csv, "Print CSV.")

#define LATENCY_ROWS_HIST(type)                                                                    \
	OPT_U64('b', "bucket-size", "N", type, bucket,                                             \
		"Width of a row of the histogram in microseconds (with -n: nanoseconds). "         \
		"Default: 1."),                                                                    \
		OPT_U64('E', "entries", "N", type, entries,                                        \
			"Rows of the histogram, 10 to 9999999. Default: 256. Larger values are "   \
			"counted as over, and known to the percentiles."),                         \
		OPT_FLAG(0, "no-header", type, no_header, "No heading."),                          \
		OPT_FLAG(0, "no-summary", type, no_summary, "Nothing after the table."),           \
		OPT_FLAG(0, "no-index", type, no_index,                                            \
			 "No index column; needs --with-zeros, or rows could not be told apart."), \
		OPT_FLAG(0, "with-zeros", type, with_zeros, "Also rows without a value.")

/* All rows of the two commands that measure noise: runtime_help_ says how much of a period is run.
 */
#define LATENCY_ROWS_NOISE(type, runtime_help_)                                                    \
	OPT_HEADING("What is measured"), LATENCY_ROWS_CPUS,                                        \
		OPT_DURATION('p', "period", "US", type, period_ns, NSEC_PER_USEC,                  \
			     "Length of a period, 1 us to 10 s. A bare number is in "              \
			     "microseconds. Default: 1 s."),                                       \
		OPT_DURATION('r', "runtime", "US", type, runtime_ns, NSEC_PER_USEC,                \
			     runtime_help_),                                                       \
		OPT_CALL('T', "threshold", "US", latency_set_threshold,                            \
			 "Shortest gap that counts as noise. Default: 5 us."),                     \
		LATENCY_ROWS_RUN(type), OPT_HEADING("Thresholds"),                                 \
		OPT_CALL('a', "auto", "US", latency_set_auto, "The same as -s US -T 1 -t."),       \
		OPT_DURATION('s', "stop", "US", type, single_ns, NSEC_PER_USEC,                    \
			     "Stop at a single gap of this length."),                              \
		OPT_DURATION('S', "stop-total", "US", type, total_ns, NSEC_PER_USEC,               \
			     "Stop when a period has this much noise."),                           \
		OPT_HEADING("Trace and actions"), LATENCY_ROWS_TRACE(type), OPT_HEADING("Output"), \
		OPT_FLAG('n', "nano", type, nano, "Print nanoseconds."),                           \
		LATENCY_ROWS_OUTPUT(type), OPT_HEADING("Histogram"), LATENCY_ROWS_HIST(type),      \
		OPT_END

/* --- latency-live.c -------------------------------------------------------------------------- */

int latency_measure(const struct command *self, struct latency_cli *cli);

/* --- latency-actions.c ----------------------------------------------------------------------- */

int latency_action_parse(const char *text, struct latency_cli *cli, struct latency_actions *into,
			 struct err *err);
/* Does them in order until one fails. trace() writes a file (NULL: the default). *ret_continue:
 * measuring goes on. */
int latency_actions_do(const struct latency_actions *actions,
		       int (*trace)(void *arg, const char *file, struct err *err), void *arg,
		       bool *ret_continue, struct err *err);
/* What runs on each measured CPU now, as text. */
void latency_dump_tasks(const struct cpuset *cpus, struct str *out);
