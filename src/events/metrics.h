/*
 * Vendor metrics: named formulas from the user's files, in the language of events/expr.h.
 *
 * Layouts understood, told apart by their keys:
 *
 *   intel/perfmon     {"Header": {...}, "Metrics": [{"MetricName", "Events": [{"Name", "Alias"}],
 *                     "Constants": [...], "Formula", "Threshold": {...}, "ParentCategory", ...}]}
 *   perf's pmu-events [{"MetricName", "MetricExpr", "MetricGroup", "MetricThreshold", ...}]
 *   Arm telemetry     {"product_configuration", "events", "metrics", "groups", "methodologies"}
 *
 * One shape comes out of all three: aliases are replaced by names, constants by #literals, texts
 * are unescaped. Names keep their spelling; metrics are found with case ignored.
 *
 * Times: duration_time is a name in seconds, as perf and perfmon have it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"
#include "host/host.h"

enum metric_layout {
	METRIC_PERFMON,
	METRIC_PERF,
	METRIC_ARM,
};

/* All texts live as long as the metrics they belong to; "" when the file has none. */
struct metric {
	const char *name;        /* "Fetch_Latency", "tma_fetch_latency", "frontend_bound" */
	const char *title;       /* for people; the name when there is nothing better */
	const char *description; /* cut after 2000 bytes */
	const char *formula;
	const char *groups;    /* "TmaL1;PGO" */
	const char *parent;    /* the metric it is a part of, as its file calls it */
	const char *threshold; /* a condition in the same language */
	const char *unit;      /* "%", "1GHz", "MPKI", "percent of slots": of formula * scale */
	const char *domain;    /* perfmon's CountDomain: "Slots", "Clocks" */
	const char *sample;    /* events that find the code responsible, ';' between them */
	const char *pmu;       /* "cpu_atom": only of these cores */
	double scale;
	unsigned height; /* expr_height() of the formula */
	unsigned level;  /* of the tree, 0: the file does not say */
	bool percent;    /* formula * scale is in percent */
	bool root;       /* level 1 of the vendor's tree */
	uint32_t next;   /* the same name on another PMU: its place in the list and 1; 0: none */
};

struct metric_pair {
	const char *from, *to;
};

struct metric_code { /* events that the file itself encodes */
	const char *name;
	uint64_t code;
};

struct metrics {
	VEC(struct metric) list;
	VEC(struct metric_pair) next; /* Arm's methodology: metric -> metric or group to look at */
	VEC(struct metric_pair) members; /* Arm: group -> metric */
	VEC(struct metric_code) codes;
	struct hash_index index;
	struct arena arena;
	enum metric_layout layout; /* of the file with the most metrics */
	const char *version;       /* "TMA 5.2", "Neoverse V3 r0p0"; "" not told */
	unsigned slots;            /* Arm: of each cycle, 0 not told */
	unsigned revision;         /* Arm: of the core that was read, major << 4 | minor */
	const char *file;          /* the last that had metrics, without folders; "" none */
	unsigned files;
	struct str problems; /* files and metrics passed over, "; " between them */
};

/*
 * Reads a file, or a directory: with mapfile.csv what it says belongs to the CPU, else every file.
 * cpu: a short name ("spr", "n2"), NULL: model. Damaged files and metrics are passed over and told
 * in problems; -ENOENT with words when nothing is left.
 */
int metrics_read(struct metrics *metrics, const char *path, const struct host_cpu_model *model,
		 const char *cpu, struct err *err);
/* One document. model NULL: of whatever CPU. */
int metrics_parse(struct metrics *metrics, const char *text, size_t size, const char *file,
		  const struct host_cpu_model *model, struct err *err);
void metrics_fini(struct metrics *metrics);

/* By name, case ignored; "tma_" in front may be left out. pmu: that of hybrid cores ("cpu_atom"),
 * "" the first that is there. */
const struct metric *metrics_find(const struct metrics *metrics, const char *name, const char *pmu);
