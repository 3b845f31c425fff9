/*
 * The ring that the kernel writes samples into (perf_event_open(2), MMAP layout). The reader sees
 * the unread bytes as one or two pieces inside the ring itself: nothing is copied.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring {
	int fd; /* the event that owns the ring; not closed by ring_close() */
	uint32_t cpu;
	void *base; /* control page, then the data */
	size_t map_bytes, data_bytes;
	uint64_t tail; /* read up to here */
};

/* Maps 2^n data pages. -EPERM: over the mlock limit; -EINVAL: not a power of two. */
int ring_open(int fd, uint32_t cpu, size_t data_bytes, struct ring *ret);
void ring_close(struct ring *ring);

/* The unread bytes, at most two pieces; returns their number of bytes (0: nothing new). */
size_t ring_peek(const struct ring *ring, struct iovec pieces[2]);
/* Gives the first bytes of what ring_peek() showed back to the kernel. */
void ring_consume(struct ring *ring, size_t bytes);
