/*
 * The profiles of the Firefox profiler (https://profiler.firefox.com): the processed format, which
 * it saves and which samply and other tools write, of every version with tables of columns; and
 * the format that Firefox and simpleperf give to it (Gecko's), which has tables of rows.
 *
 * What is read are the samples of all threads, with weights where there are some ("samples" count,
 * "time" nanoseconds, "space" bytes), and the CPU time between samples ("cpu" nanoseconds) where
 * its unit is one of time. Labels: comm (the thread's name), pid, and tid when asked. Markers,
 * counters and allocations are passed over, and so are samples without a stack: the thread was
 * idle then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* True for a JSON object with the keys that every such profile has. */
bool firefox_detect(const void *data, size_t size);

/*
 * Initializes and fills *ret; untouched on failure: -EBADMSG with the byte or the sample that is
 * wrong, -ENODATA when there is no thread, -EOVERFLOW, -ENOMEM.
 */
int firefox_read(const void *data, size_t size, bool tid, struct profile *ret, struct err *err);

/*
 * Appends a document of the processed format with one value (negative: the default one): a thread
 * for each comm, pid and tid, inlined functions, lines, addresses and build ids where they are
 * known. Times are weights in milliseconds. name is the product's.
 */
int firefox_write(const struct profile *profile, int value, const char *name, struct str *out,
		  struct err *err);
