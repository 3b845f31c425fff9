/* A folder for decoders that read files by name: in memory where that can be had, since a busy disk
 * looks like a decoder that hangs. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRATCH_BYTES 64

static inline void scratch_make(char folder[SCRATCH_BYTES])
{
	snprintf(folder, SCRATCH_BYTES, "%s/culprit-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(folder))
		abort();
}
