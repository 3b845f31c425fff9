/*
 * A read-only mapping of a file that somebody else may cut, or whose disk may fail, while it is
 * read: what cannot be read any more is zero instead of ending the process with SIGBUS, and the
 * mapping says where that began. Any number of threads may read one. The first mapping installs a
 * handler of SIGBUS, the last takes it away; faults elsewhere go to the handler that was there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct steady_map {
	const uint8_t *data; /* NULL: none */
	size_t size;
	unsigned slot;
};

/*
 * The first size bytes of a regular file. -ENOSPC when too many are mapped at once, else errors of
 * mmap(): some file systems cannot. Nothing to map (size 0) is -EINVAL.
 */
int steady_map_fd(int fd, uint64_t size, struct steady_map *ret);
/* Does nothing without data. */
void steady_map_close(struct steady_map *map);

/* True, and the offset of the first page that could not be read: from there on all is zero. */
bool steady_map_broken(const struct steady_map *map, uint64_t *ret_offset);
/* [offset, end) was read: its pages do not count as this process's memory any more. Reading it
 * again is fine. */
void steady_map_release(const struct steady_map *map, uint64_t offset, uint64_t end);
