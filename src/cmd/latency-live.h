/* A measurement under way: latency-live.c runs it, latency-setup.c begins and ends it. */
#pragma once

#include <signal.h>

#include "cmd/latency-run.h"
#include "latency/analysis.h"
#include "latency/journal.h"
#include "latency/reader-watch.h"
#include "latency/trace-flight.h"

struct live {
	const struct command *self;
	struct latency_cli *cli;
	struct latency_options options;
	const struct latency_engine_ops *ops;
	struct latency_engine *engine;
	struct reader_watch *watch; /* NULL: real-time priorities are not permitted */
	struct latency_run run;
	struct latency_analysis *analysis;
	struct latency_view view;
	struct latency_sink sink;
	struct journal *journal; /* PM QoS, idle states, our own flight recorder */
	struct tracefs tracefs;
	struct trace_flight *flight; /* of events, where the engine keeps none */
	bool warming;                /* what comes is thrown away */
	uint64_t begin_ns, end_ns;   /* of the measurement; 0: no end */
	uint64_t drawn_ns;
	bool drawing; /* the terminal shows our screen */
	bool hit;     /* a threshold was reached */
	sigset_t signals;
};

/* Options, engine, knobs, run; starts measuring. An exit status. */
int latency_live_begin(struct live *live);
/* Starts the engine, again after a stop. */
int latency_live_start_engine(struct live *live, struct err *err);
void latency_live_stop_engine(struct live *live);
/* Everything back. */
void latency_live_fini(struct live *live);
/* Writes the flight recorder; file NULL: the default names. */
int latency_live_trace(void *arg, const char *file, struct err *err);
