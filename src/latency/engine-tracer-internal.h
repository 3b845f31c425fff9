/* Engine K, shared by its files: engine-tracer.c (life cycle, reading), engine-tracer-setup.c (the
 * kernel's settings), engine-tracer-threads.c (who is measured: kernel threads or ours). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "latency/engine.h"
#include "latency/journal.h"
#include "latency/kernel-names.h"
#include "latency/trace-decode.h"
#include "latency/trace-flight.h"
#include "latency/tracefs.h"

enum tracer_kind {
	TRACER_TIMERLAT,
	TRACER_OSNOISE,
	TRACER_HWLAT, /* hardware noise on kernels whose osnoise cannot switch interrupts off */
};

struct tracer_pipe {
	unsigned cpu;
	int fd;
};

struct latency_engine {
	struct latency_options options; /* what it points to is borrowed */
	enum tracer_kind kind;
	struct journal *journal;
	struct tracefs tracefs;
	struct trace_instance instance;
	struct trace_flight *flight; /* NULL none */
	struct trace_page_layout layout;
	struct trace_decoder *decoder;
	struct kernel_names names;
	struct tracer_pipe *pipes;
	unsigned pipe_count;
	int epoll;
	uint8_t *page;
	char comm[64];     /* of the latest answer */
	pid_t workload;    /* process of our threads, 0 none */
	bool shared;       /* another instance runs the tracer: its settings stay */
	bool stopped_told; /* the kernel's message about a stop came by */
	unsigned last_cpu; /* of the latest sample */
};

const char *tracer_name(enum tracer_kind kind); /* "timerlat" */
/* Which tracer does this tool's work here; the fields' limits too. -errno with the remedy. */
int tracer_choose(const struct tracefs *tracefs, const struct latency_options *options,
		  enum tracer_kind *ret, struct err *err);
/* Where user threads read their timer, below tracefs: "osnoise/per_cpu/cpuN/timerlat_fd". */
bool tracer_has_user_threads(const struct tracefs *tracefs, unsigned cpu);
enum latency_workload tracer_workload(const struct tracefs *tracefs,
				      const struct latency_options *options);

/* The instance with events, then the global settings through the journal. */
int tracer_set_up_instance(struct latency_engine *engine, struct err *err);
int tracer_set_up_settings(struct latency_engine *engine, struct err *err);
/* Lets the tracer's threads run, or ends them: while they are held back (from the settings on) all
 * instances can be set to the tracer, so that they see the same first and last sample. */
int tracer_gate(struct latency_engine *engine, bool open, struct err *err);
/* Formats, kernel names. */
int tracer_set_up_decoder(struct latency_engine *engine, struct err *err);

/* Policy and cgroup of the kernel's threads, or our own threads. After the tracer has started. */
int tracer_start_threads(struct latency_engine *engine, enum latency_workload workload,
			 struct err *err);
/* Ends our own threads. Async-signal-safe. */
void tracer_kill_threads(struct latency_engine *engine);
