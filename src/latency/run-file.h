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
int latency_run_read(const char *path, struct latency_run *run, struct err *err);
