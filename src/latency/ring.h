/*
 * Writing and reading the rings of bpf/latency-shared.h from user space. A writer never waits and
 * never fails; a reader that comes too late finds out how many records it missed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/latency-shared.h"

struct ring {
	struct lat_record *slots;
	unsigned mask;            /* slots - 1 */
	unsigned long long *head; /* in the CPU's state; shared with the writers */
	uint64_t tail;            /* the reader's position */
	uint64_t lost;            /* records it missed so far */
};

/* Lock-free, for threads and BPF programs of any CPU together. seq of record is ignored. */
void ring_write(const struct ring *ring, const struct lat_record *record);
/* The next record. False: none is complete now. final: the writers have ended, so what is not
 * complete never will be and counts as lost. */
bool lat_ring_read(struct ring *ring, bool final, struct lat_record *ret);
/* The record at a position, without taking it; false: not there (any more). */
bool lat_ring_peek(const struct ring *ring, uint64_t position, struct lat_record *ret);
