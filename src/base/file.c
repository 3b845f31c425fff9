#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "base/vec.h"

#define READ_STEP (64 * 1024)

int fd_read_all(int fd, size_t max, char **ret_data, size_t *ret_size)
{
	CLEANUP_FREE char *data = NULL;
	size_t len = 0, cap = 0;

	for (;;) {
		ssize_t n;

		if (vec_grow(&data, &cap, len + READ_STEP / 16 + 1, 1) < 0)
			return -ENOMEM;
		n = read(fd, data + len, cap - len - 1);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	data[len] = '\0';
	*ret_data = TAKE_PTR(data);
	*ret_size = len;
	return 0;
}

int file_read_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size,
		 struct err *err)
{
	CLEANUP_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	r = fd_read_all(fd, max, ret_data, ret_size);
	if (r == -EFBIG)
		return err_set(err, r, "%s: larger than %zu bytes", path, max);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	return 0;
}

int file_read(const char *path, size_t max, char **ret_data, size_t *ret_size, struct err *err)
{
	return file_read_at(AT_FDCWD, path, max, ret_data, ret_size, err);
}

int file_map_fd(int fd, struct file_map *ret)
{
	struct stat st;
	void *data;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size == 0) {
		*ret = (struct file_map){0};
		return 0;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret = (struct file_map){.data = data, .size = (size_t)st.st_size};
	return 0;
}

int file_map_open(const char *path, struct file_map *ret, struct err *err)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	r = file_map_fd(fd, ret);
	if (r == -EINVAL)
		return err_set(err, r, "%s: not a regular file", path);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	return 0;
}

void file_map_close(struct file_map *map)
{
	if (map->data)
		munmap((void *)(uintptr_t)map->data, map->size);
	*map = (struct file_map){0};
}

int fd_write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

int fd_pread_all(int fd, void *data, size_t size, uint64_t offset)
{
	char *at = data;

	while (size > 0) {
		ssize_t n = pread(fd, at, size, (off_t)offset);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return -ENODATA;
		at += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_renamed(const char *path, const void *data, size_t size, mode_t mode, bool sync,
			 struct err *err)
{
	CLEANUP_FREE char *temp = NULL;
	CLEANUP_CLOSE int fd = -1;
	int r;

	if (asprintf(&temp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", temp, strerrordesc_np(errno));
	r = fd_write_all(fd, data, size);
	if (r == 0 && (fchmod(fd, mode) < 0 || (sync && fsync(fd) < 0) || rename(temp, path) < 0))
		r = -errno;
	if (r < 0) {
		unlink(temp);
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	}
	return 0;
}

int file_write_atomic(const char *path, const void *data, size_t size, mode_t mode, struct err *err)
{
	return write_renamed(path, data, size, mode, true, err);
}

int file_replace(const char *path, const void *data, size_t size, mode_t mode)
{
	return write_renamed(path, data, size, mode, false, NULL);
}

bool cache_dir(char *buf, size_t size)
{
	const char *own = getenv("CULPRIT_CACHE"), *base = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (own && (own[0] == '\0' || strcmp(own, "off") == 0))
		return false;
	if (own)
		n = snprintf(buf, size, "%s", own);
	else if (base && base[0] == '/')
		n = snprintf(buf, size, "%s/culprit", base);
	else if (home && home[0] == '/' && access(home, W_OK | X_OK) == 0)
		n = snprintf(buf, size, "%s/.cache/culprit", home);
	else
		return false; /* a home that does not exist is not ours to make */
	return n > 0 && (size_t)n < size;
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
	CLEANUP_FREE char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *slash = copy + 1;; slash++) {
		char saved = *slash;

		if (saved != '/' && saved != '\0')
			continue;
		*slash = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return err_set(err, -errno, "%s: %s", copy, strerrordesc_np(errno));
		*slash = saved;
		if (saved == '\0')
			return 0;
	}
}
