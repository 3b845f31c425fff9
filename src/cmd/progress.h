/* How far a long read is: one line on a terminal, once a second has passed, gone at the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *path; /* what is read */
	uint64_t start_ns, shown_ns;
	bool off, shown;
};

/* Shows nothing when standard error is no terminal. */
void progress_begin(struct progress *progress, const char *path);
/* A session_progress_fn; arg is the struct progress. */
void progress_show(void *arg, const char *what, double share);
/* Takes the line away: before other words, and at the end. */
void progress_clear(struct progress *progress);
