/*
 * Asks the disk for a file in large pieces ahead of who reads it, on a thread of its own: the
 * kernel's own reading ahead keeps too little in flight for a fast disk. What is in the page cache
 * already costs next to nothing.
 */
#pragma once

#include <stdint.h>

struct read_ahead;

/* [offset, end) of the file; NULL when the range is small or there is no thread for it. */
struct read_ahead *read_ahead_start(int fd, uint64_t offset, uint64_t end);
/* All before offset was read. ahead may be NULL, here and below. */
void read_ahead_at(struct read_ahead *ahead, uint64_t offset);
void read_ahead_stop(struct read_ahead *ahead);
