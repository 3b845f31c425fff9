/* Paths below the root, and the two kinds of small files that /proc and /sys are made of. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "host/host.h"

int host_path(const struct host *host, char *buf, size_t size, const char *fmt, ...)
{
	const char *root = host && host->root ? host->root : "";
	size_t root_len = strlen(root);
	va_list args;
	int len;

	if (root_len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, root, root_len);
	va_start(args, fmt);
	len = vsnprintf(buf + root_len, size - root_len, fmt, args);
	va_end(args);
	return len < 0 || (size_t)len >= size - root_len ? -ENAMETOOLONG : 0;
}

int host_read(const struct host *host, const char *path, size_t max, char **ret_data,
	      size_t *ret_size, struct err *err)
{
	char full[PATH_MAX];
	int r = host_path(host, full, sizeof(full), "%s", path);

	if (r < 0)
		return err_set(err, r, "%s: the path is too long", path);
	return file_read(full, max, ret_data, ret_size, err);
}

static const char *read_failure(int error)
{
	switch (error) {
	case -ENOENT:
		return "does not exist";
	case -EACCES:
	case -EPERM:
		return "may not be read";
	default:
		return strerrordesc_np(-error);
	}
}

struct host_text host_line(const struct host *host, const char *path)
{
	struct host_text text = {0};
	size_t size = 0, start = 0, end;
	CLEANUP_FREE char *data = NULL;
	int r = host_read(host, path, 1 << 20, &data, &size, NULL);

	if (r < 0) {
		snprintf(text.why, sizeof(text.why), "%s %s", path, read_failure(r));
		return text;
	}
	while (start < size && (data[start] == ' ' || data[start] == '\t'))
		start++;
	end = start + strcspn(data + start, "\n");
	while (end > start && (data[end - 1] == ' ' || data[end - 1] == '\t'))
		end--;
	if (end - start >= sizeof(text.value))
		end = start + sizeof(text.value) - 1;
	memcpy(text.value, data + start, end - start);
	text.known = true;
	return text;
}

struct host_number host_number(const struct host *host, const char *path)
{
	struct host_text line = host_line(host, path);
	struct host_number number = {0};
	char *end;

	if (!line.known) {
		memcpy(number.why, line.why, sizeof(number.why));
		return number;
	}
	errno = 0;
	number.value = strtoll(line.value, &end, 0);
	if (end == line.value || errno != 0) {
		number.value = 0;
		snprintf(number.why, sizeof(number.why), "%s holds no number", path);
		return number;
	}
	number.known = true;
	return number;
}
