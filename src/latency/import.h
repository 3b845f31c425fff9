/*
 * Measurements of other tools as runs: the tables, histograms and automatic analysis of rtla; the
 * trace text of the kernel's tracers and of trace-cmd report; trace.dat; cyclictest and oslat, text
 * and JSON; hwlatdetect.
 *
 * What a source does not tell stays unknown. A file with measurements of several tools is refused
 * with the line of each, so is text that holds none, with what it holds instead.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "latency/run.h"

/* keep: how many of the worst samples of each CPU of a trace are analysed when nothing in it says
 * that a limit was hit. */
struct latency_import_options {
	unsigned keep;
	struct latency_limits limits; /* analyse the samples beyond them instead */
};

/* Initializes run; on failure there is nothing to free. -EBADMSG with the reason for refused files.
 */
int latency_import(const char *path, const struct latency_import_options *options,
		   struct latency_run *run, struct err *err);
/* The same from memory; name stands in messages. */
int latency_import_bytes(const void *data, size_t size, const char *name,
			 const struct latency_import_options *options, struct latency_run *run,
			 struct err *err);
