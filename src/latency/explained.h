/*
 * What of a gap of the sampling loop has a known source: interruptions are recorded when they end,
 * so all that lie inside a gap stand before it in the records of their CPU.
 */
#pragma once

#include <stdint.h>

struct explained {
	struct explained_noise *recent; /* a ring, made when the first is noted */
	unsigned count, next;
};

/* An interruption. Without memory it explains nothing. */
void explained_note(struct explained *explained, uint64_t start_ns, uint64_t duration_ns);
/* Net durations of what began at start_ns or later since the last gap; forgets them all. */
uint64_t explained_take(struct explained *explained, uint64_t start_ns);
/* Records are missing: what was noted may belong to another gap. */
void explained_forget(struct explained *explained);
void explained_fini(struct explained *explained);
