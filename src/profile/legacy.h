/*
 * Profiles from before profile.proto, read only:
 *
 * - CPU profiles of gperftools: words of 32 or 64 bits in either byte order, followed by the text
 * of /proc/self/maps; those of Java agents, followed by names; and the symbolized form, which
 * begins with "--- symbol" (https://gperftools.github.io/gperftools/cpuprofile-fileformat.html).
 * - Text: "heap profile:" of tcmalloc and Go (with sampling undone), growth and fragmentation;
 *   "--- contentionz", "--- contention:" and "--- mutex:"; "--- threadz"; Go's counts
 *   ("goroutine profile: total 7"), with the names of their comments; heapz and contentionz of
 * Java.
 *
 * What the numbers become is what pprof makes of the same files: addresses of callers lie within
 * the call (one less than the return address), heap samples are divided by their chance to be seen,
 * the frames that the profiler's signal handler pushed are taken out. Samples of equal stack and
 * labels are added up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "profile/profile.h"

/* True when the first bytes are those of one of these formats. */
bool legacy_detect(const void *data, size_t size);

/*
 * Initializes and fills *ret; untouched on failure. -EBADMSG with the line or byte for damaged
 * input, -EOVERFLOW when a value leaves 64 bits. Memory is a small multiple of size.
 */
int legacy_read(const void *data, size_t size, struct profile *ret, struct err *err);
