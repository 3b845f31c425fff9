#include "sample/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"

/* How long a named pipe may stay without a writer. */
#define FIFO_WAIT_MS 10000
/* A packed recording may grow to this on disk. */
#define UNPACKED_MAX_BYTES  (UINT64_C(16) << 30)
#define DIRECTORY_FILES_MAX 4096

ssize_t input_read_at(int fd, void *data, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int temporary_file(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = -1;

	if (dir && *dir)
		fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = memfd_create("recording", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int spool(int from, int to, struct err *err)
{
	CLEANUP_FREE char *buffer = malloc(1 << 16);
	int r;

	if (!buffer)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(from, buffer, 1 << 16);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, -errno, "reading the pipe: %s", strerror(errno));
		if (n == 0)
			return 0;
		r = fd_write_all(to, buffer, (size_t)n);
		if (r < 0)
			return err_set(err, r,
				       "copying the pipe to a temporary file: %s; point TMPDIR to "
				       "a larger disk",
				       strerror(-r));
	}
}

static int add_file(struct input *input, int fd)
{
	struct input_file file = {.fd = fd};
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	file.size = (uint64_t)st.st_size;
	/* Some file systems cannot map, and of a directory's files not all need to be. */
	(void)steady_map_fd(fd, file.size, &file.map);
	r = vec_push(&input->files, file);
	if (r < 0)
		steady_map_close(&file.map);
	return r;
}

/* Replaces the descriptor by one that can be read at any offset. */
static int from_pipe(struct input *input, int *fd, bool named, struct err *err)
{
	CLEANUP_CLOSE int copy = -1;
	struct pollfd wait = {.fd = *fd, .events = POLLIN};
	int r;

	if (named && poll(&wait, 1, FIFO_WAIT_MS) == 0)
		return err_set(err, -ENODATA,
			       "named pipe without a writer for %d s; start the writer first",
			       FIFO_WAIT_MS / 1000);
	r = fcntl(*fd, F_GETFL);
	if (r >= 0)
		fcntl(*fd, F_SETFL, r & ~O_NONBLOCK);
	copy = temporary_file();
	if (copy < 0)
		return err_set(err, copy, "no temporary file for the pipe: %s; set TMPDIR",
			       strerror(-copy));
	r = spool(*fd, copy, err);
	if (r < 0)
		return r;
	close(*fd);
	*fd = TAKE_FD(copy);
	input->copied = true;
	return 0;
}

static int unpack_gzip(struct input *input, int *fd, struct err *err)
{
	CLEANUP_CLOSE int copy = temporary_file();
	struct err words = {0};
	int r;

	if (copy < 0)
		return err_set(err, copy, "no temporary file to unpack to: %s; set TMPDIR",
			       strerror(-copy));
	r = gzip_inflate_fd(*fd, copy, UNPACKED_MAX_BYTES, &words);
	if (r < 0 && lseek(copy, 0, SEEK_END) <= 0)
		return err_set(err, r, "%s; unpack it by hand", err_text(&words, r));
	if (r < 0)
		snprintf(input->problem, sizeof(input->problem), "%s", err_text(&words, r));
	close(*fd);
	*fd = TAKE_FD(copy);
	input->copied = true;
	return 0;
}

static int open_one(struct input *input, const char *path, struct err *err)
{
	CLEANUP_CLOSE int fd = -1;
	uint8_t magic[2];
	struct stat st;
	int r;

	if (strcmp(path, "-") == 0)
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot be opened: %s", strerror(errno));
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) {
		r = from_pipe(input, &fd, strcmp(path, "-") != 0, err);
		if (r < 0)
			return r;
	} else if (!S_ISREG(st.st_mode)) {
		return err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL, "%s; give a recording",
			       S_ISDIR(st.st_mode) ? "is a directory"
						   : "is neither a file nor a pipe");
	}
	if (input_read_at(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
		r = unpack_gzip(input, &fd, err);
		if (r < 0)
			return r;
	}
	r = add_file(input, fd);
	if (r == 0)
		fd = -1;
	return r;
}

static int open_directory(struct input *input, const char *path, struct err *err)
{
	char name[4096];
	int r;

	snprintf(name, sizeof(name), "%s/data", path);
	if (access(name, F_OK) < 0)
		return err_set(err, -EISDIR,
			       "is a directory without a file \"data\"; give the recording in it");
	r = open_one(input, name, err);
	for (unsigned i = 0; r == 0 && i < DIRECTORY_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "%s/data.%u", path, i);
		if (access(name, F_OK) < 0)
			break;
		r = open_one(input, name, err);
		if (r < 0)
			return err_wrap(err, r, "data.%u", i);
	}
	return r;
}

int input_open(const char *path, struct input *ret, struct err *err)
{
	struct input input = {0};
	struct stat st;
	int r;

	if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		r = open_directory(&input, path, err);
	else
		r = open_one(&input, path, err);
	if (r < 0) {
		input_close(&input);
		return r;
	}
	*ret = input;
	return 0;
}

void input_close(struct input *input)
{
	vec_for_each(&input->files, file) {
		steady_map_close(&file->map);
		close(file->fd);
	}
	vec_fini(&input->files);
}
