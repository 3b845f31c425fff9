/*
 * The files of one recording. A regular file is read where it lies, mapped where that is possible;
 * what cannot be read twice (a pipe) or is packed (gzip) is first copied to an unnamed temporary
 * file in $TMPDIR, else /tmp. In a directory, "data" is the file with the header and data.0, data.1
 * ... hold records alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include "base/err.h"
#include "base/steady-map.h"
#include "base/vec.h"

struct input_file {
	int fd;
	uint64_t size;
	struct steady_map map; /* without data: read it by the descriptor */
};

struct input {
	VEC(struct input_file) files; /* files.data[0] has the header */
	bool copied;                  /* from a pipe or gzip */
	char problem[128];            /* "" or what was wrong with the packing */
};

/* "-" is standard input. Errors name what is wrong and what mends it, not the path. */
int input_open(const char *path, struct input *ret, struct err *err);
void input_close(struct input *input);

/* Up to size bytes at offset, fewer only at the end; the count or negative errno. */
ssize_t input_read_at(int fd, void *data, size_t size, uint64_t offset);
