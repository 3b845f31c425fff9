/*
 * The text of perf script: a line for each sample, "comm pid/tid [cpu] time: period event:", then
 * its frames, leaf first, "address symbol+0xoffset (object)", then an empty line. Fields other than
 * comm, pid and event may be missing, times, CPUs and periods included; a sample without a stack
 * may have its one frame on its own line. Lines of sources (-F +srcline) and comments are skipped.
 *
 * Frames of the object "(inlined)" are inlined into the frame that follows them. Value types are
 * those of a recording (sample/collect.h); without periods there are counts alone. Labels: comm,
 * and pid when it is told: a number alone is the thread's, and is kept as tid.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/profile.h"

struct perfscript_options {
	char *(*demangle)(const char *raw_name); /* NULL when it is not mangled; may be NULL */
	const char *event;                       /* glob: only these; NULL: all */
	bool tid;                                /* label tid always */
};

struct perfscript_info {
	uint64_t samples, lines;
	uint64_t bad_lines, first_bad_line; /* what is neither sample nor frame; from 1, 0: none */
};

/* True when the first lines have samples and frames in them. */
bool perfscript_detect(const void *data, size_t size);

/*
 * Initializes and fills *ret; untouched on failure. -EBADMSG when there is no sample, -ENOENT when
 * none is of the event asked for, -EOVERFLOW. *ret_info may be NULL.
 */
int perfscript_read(const void *data, size_t size, const struct perfscript_options *options,
		    struct profile *ret, struct perfscript_info *ret_info, struct err *err);
