/* Tracepoints: the directories below events/ of tracefs. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/host.h"

/*
 * Calls fn for each tracepoint whose system and name match the globs, in the order of names; fn's
 * negative return stops and is returned. Returns the number of matches, -ENOENT without tracefs,
 * -EACCES where it may not be read (err has the remedy).
 */
int tracepoints_each(const struct host *host, const char *system_glob, const char *name_glob,
		     int (*fn)(void *arg, const char *system, const char *name), void *arg,
		     struct err *err);
/* The number that perf_event_attr.config takes. */
int tracepoint_id(const struct host *host, const char *system, const char *name, uint64_t *ret_id,
		  struct err *err);
