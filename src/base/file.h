/* Files: whole reads, mappings, complete and atomic writes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Reads a whole file (of any kind that ends: procfs files and pipes too) of at most max bytes,
 * -EFBIG beyond. *ret_data is NUL-terminated (not counted in *ret_size) and owned by the caller.
 */
int file_read(const char *path, size_t max, char **ret_data, size_t *ret_size, struct err *err);
int file_read_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size,
		 struct err *err);
int fd_read_all(int fd, size_t max, char **ret_data, size_t *ret_size);

/* A read-only private mapping of a regular file. An empty file maps to size 0 with data NULL. */
struct file_map {
	const uint8_t *data;
	size_t size;
};

/* -EISDIR, -EINVAL (not a regular file) and errors of open() and mmap() are worded with the path.
 */
int file_map_open(const char *path, struct file_map *ret, struct err *err);
int file_map_fd(int fd, struct file_map *ret);
void file_map_close(struct file_map *map);

/* Writes everything or fails (-ENOSPC, -EPIPE ...); EINTR and short writes are handled. */
int fd_write_all(int fd, const void *data, size_t size);
/* Exactly size bytes at offset; -ENODATA at the end of the file. */
int fd_pread_all(int fd, void *data, size_t size, uint64_t offset);

/* Replaces path by the bytes: temporary file beside it, fsync, rename. */
int file_write_atomic(const char *path, const void *data, size_t size, mode_t mode,
		      struct err *err);
/* The same without fsync, for what can be made again: after a crash it may be gone or empty. */
int file_replace(const char *path, const void *data, size_t size, mode_t mode);

/*
 * The folder for what can be made again: $CULPRIT_CACHE, $XDG_CACHE_HOME/culprit or
 * ~/.cache/culprit. False when there is none: CULPRIT_CACHE is empty or "off", or the home does not
 * exist.
 */
bool cache_dir(char *buf, size_t size);

/* mkdir -p. */
int dir_make(const char *path, mode_t mode, struct err *err);
