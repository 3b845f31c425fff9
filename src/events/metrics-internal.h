/* Shared by the files that read vendor metrics. */
#pragma once

#include "base/json-read.h"
#include "events/metrics.h"

#define METRIC_TEXT_MAX    (64u << 10) /* of one formula */
#define METRIC_BRIEF_MAX   2000u
#define METRICS_MAX        20000u
#define METRIC_ALIASES_MAX 1000u

struct metrics_document {
	struct metrics *metrics;
	const struct host_cpu_model *model; /* NULL: any */
	const char *file;
	struct json_reader reader;
	bool other_cpu;
	size_t before; /* metrics there were */
};

/* The reader's text in the arena, cut; NULL: out of memory. */
const char *metrics_keep(struct metrics_document *d, size_t max);
const char *metrics_keep_str(struct metrics *metrics, const struct str *text);
/* Adds one that parses; others are told in problems. A name that is there stays as it is. */
int metrics_add(struct metrics_document *d, struct metric *metric);

/* metrics-intel.c: behind the '{' of one entry of perfmon's or perf's list. */
int metrics_read_entry(struct metrics_document *d);
/* metrics-arm.c: behind the key of a member of Arm's document; 0 not one of them, 1 read. */
int metrics_read_arm(struct metrics_document *d, const char *key);
