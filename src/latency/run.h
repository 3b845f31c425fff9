/*
 * What one measurement found: the report model that every engine, importer, table, plot and
 * comparison shares, and that the run file (run-file.h) keeps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "latency/record.h"
#include "stats/histogram.h"

enum latency_tool {
	LATENCY_TIMERLAT,
	LATENCY_OSNOISE,
	LATENCY_HWNOISE,
	LATENCY_CYCLIC
};

/* The engine a run was measured with, or that its numbers were imported. */
enum latency_engine_id {
	ENGINE_TRACER, /* K: the kernel's osnoise, timerlat, hwlat tracers through tracefs */
	ENGINE_BPF,    /* B: BPF with full attribution */
	ENGINE_LIGHT,  /* L: BPF for the latencies only */
	ENGINE_USER,   /* U: user space alone */
	ENGINE_IMPORTED,
};

/* Sources of noise that are kept by name; beyond, threads are joined by comm, then all of a class.
 */
#define LATENCY_SOURCES_NAMED 1024
#define LATENCY_SOURCES_MAX   2048

/* Latencies of one context on one CPU. */
struct latency_series {
	struct histogram values; /* count, min, max, sum are valid even without a distribution */
	bool distribution;       /* false: the source told only count, min, average and max */
	bool has_max;            /* false: the source cut the largest values off */
	bool unknown_min;        /* the source told no minimum */
	bool unknown_average;
	uint64_t above_last;     /* of values.count: known only to be beyond the last bucket */
	uint64_t resolution_ns;  /* width of the source's buckets, 0 exact */
	uint64_t negative;       /* samples before their expiry: not in values */
	int64_t current_ns;      /* the latest, LATENCY_UNKNOWN_NS none */
	uint64_t over_threshold; /* samples at or above the run's limit of this context */
};

struct latency_cpu {
	unsigned cpu;
	struct latency_series context[LATENCY_CONTEXTS];
	/* noise */
	uint64_t periods, runtime_ns, noise_ns, max_noise_ns, max_single_ns;
	/* Counts are those of the periods; until the first one, of the single records. */
	uint64_t class_count[NOISE_CLASSES], class_ns[NOISE_CLASSES];
	bool class_known[NOISE_CLASSES];
	struct latency_series gaps;         /* length of single gaps */
	uint64_t unexplained_inside_ns;     /* rest of gaps that had a known source */
	int64_t steal_ns;                   /* LATENCY_UNKNOWN_NS unknown */
	uint64_t steal_count, steal_max_ns; /* of the records of it */
	int64_t smi_count;                  /* LATENCY_UNKNOWN_NS unknown */
	int64_t max_from_idle_ns;           /* largest IRQ latency out of idle, UNKNOWN none */
	uint64_t lost;                      /* records */
	struct latency_series inner, outer; /* hwlat */
};

/* One row of the culprit table: a source by name, over all CPUs. */
struct noise_source {
	enum noise_class class;
	int number;
	uint32_t name, function; /* ids in run->names; function 0: none */
	uint64_t count;
	uint64_t total_ns;
	struct histogram durations; /* net */
	unsigned worst_cpu;
};

struct latency_condition {
	uint32_t name, value; /* "clocksource" "tsc" */
};

struct latency_limits { /* ns, 0 none */
	uint64_t irq_ns, thread_ns, single_ns, total_ns;
};

struct latency_verdict; /* analysis.h */

struct latency_run {
	enum latency_tool tool;
	enum latency_engine_id engine;
	struct strtab names;
	uint32_t engine_reason, clock, source; /* source: imported file or command line */
	VEC(uint32_t) cannot_see;              /* what this engine is blind to, one sentence each */
	VEC(uint32_t) warnings;
	VEC(struct latency_condition)
	conditions;                     /* kernel, policy obtained, idle states, steal ... */
	uint64_t period_ns, runtime_ns; /* 0 unknown */
	uint64_t threshold_ns;          /* shortest gap that counts as noise, 0 unknown */
	struct latency_limits limits;
	uint64_t started_realtime_ns, duration_ns; /* 0 unknown */
	VEC(struct latency_cpu) cpus; /* sorted by cpu number, numbers may have holes */
	VEC(struct noise_source) sources;
	struct hash_index source_index; /* by class, number, name, function */
	uint64_t joined_sources;        /* records of sources beyond LATENCY_SOURCES_NAMED */
	struct latency_verdict *verdicts;
	unsigned verdict_count;
	bool stopped; /* a threshold ended it */
	unsigned stopped_cpu;
	/* what is missing: any of these makes the run incomplete */
	uint64_t lost_records, ring_drops, recursion_misses, unknown_lines;
	bool lost_uncounted; /* records were lost and the source does not tell how many */
};

int latency_run_init(struct latency_run *run, enum latency_tool tool,
		     enum latency_engine_id engine);
void latency_run_fini(struct latency_run *run);

/* The CPU's row, made when new. NULL: no memory. Earlier pointers into cpus end. */
struct latency_cpu *latency_run_cpu(struct latency_run *run, unsigned cpu);
/* The source's row, made when new (a joined one when there are too many). NULL: no memory. Earlier
 * pointers into sources end. */
struct noise_source *latency_run_source(struct latency_run *run, enum noise_class class, int number,
					const char *name, const char *function);
int latency_run_condition(struct latency_run *run, const char *name, const char *value);
int latency_run_warn(struct latency_run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool latency_run_incomplete(const struct latency_run *run);
/* All of lost_records, ring_drops and recursion_misses, LATENCY_UNKNOWN_NS when losses were not
 * counted. */
int64_t latency_run_lost(const struct latency_run *run);
/* True when any CPU has samples of the context: else it was not measured. */
bool latency_run_has(const struct latency_run *run, enum latency_context context);
/* The CPU with the largest latency of the context, NULL: none is known. */
const struct latency_cpu *latency_run_worst(const struct latency_run *run,
					    enum latency_context context);
/* All CPUs as one, into a zeroed or initialized series. 0 or -ENOMEM. */
int latency_run_total(const struct latency_run *run, enum latency_context context,
		      struct latency_series *into);

/* Accounts one record. 0, -ENOMEM, or -EINVAL for a CPU, context or class that cannot be. */
int latency_run_take(struct latency_run *run, const struct latency_record *record);

/* An empty series; a zeroed one is empty too, but its current_ns is 0. */
void latency_series_init(struct latency_series *series);
int latency_series_add(struct latency_series *series, int64_t value_ns);
int latency_series_merge(struct latency_series *into, const struct latency_series *from);
void latency_series_fini(struct latency_series *series);
/* The percentile, or LATENCY_UNKNOWN_NS: empty, without a distribution, or beyond the source's last
 * bucket. */
int64_t latency_series_percentile(const struct latency_series *series, double share);
/* LATENCY_UNKNOWN_NS when there is none or the source does not tell. */
int64_t latency_series_min(const struct latency_series *series);
int64_t latency_series_max(const struct latency_series *series);
double latency_series_average(const struct latency_series *series); /* NaN unknown */

const char *latency_tool_name(enum latency_tool tool);          /* "timerlat" */
const char *latency_engine_name(enum latency_engine_id engine); /* "kernel tracer" */
char latency_engine_letter(enum latency_engine_id engine);      /* 'K' 'B' 'L' 'U' 'I' */
