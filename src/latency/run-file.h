/*
 * The run file: one JSON document (schema 1, kind the tool's name) that holds a whole run. A
 * superset of what
 * --json prints: sparse histograms, sources, verdicts, conditions.
 */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "latency/run.h"

/* full: with histogram buckets, as -o keeps it; else the document of --json. */
int latency_run_write(const struct latency_run *run, FILE *out, bool full, struct err *err);
/*
 * Makes run (not initialized before) from a document of either form; without buckets the series
 * have no distribution. Memory is bounded; what is damaged is refused by the key's name
 * ("cpus[3].irq.count: not a number"). Unknown keys are passed over; a newer schema is refused.
 */
int latency_run_read(const char *path, struct latency_run *run, struct err *err);
int latency_run_read_bytes(const void *data, size_t size, struct latency_run *run, struct err *err);
