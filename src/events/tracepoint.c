#include "events/tracepoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/util.h"

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_REG;
}

/* The sub-directories of path that match, sorted. The caller frees each entry and the list. */
static int list(const char *path, struct dirent ***ret_entries)
{
	int count = scandir(path, ret_entries, not_hidden, alphasort);

	return count < 0 ? -errno : count;
}

static void list_free(struct dirent **entries, int count)
{
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
}

static bool is_literal(const char *glob)
{
	return strpbrk(glob, "*?[") == NULL;
}

static int each_name(const char *events, const char *system, const char *glob,
		     int (*fn)(void *arg, const char *system, const char *name), void *arg)
{
	char path[PATH_MAX];
	struct dirent **entries;
	int count, matches = 0, r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", events, system) >= sizeof(path))
		return -ENAMETOOLONG;
	count = list(path, &entries);
	if (count < 0)
		return count == -ENOENT || count == -ENOTDIR ? 0 : count;
	for (int i = 0; i < count && r >= 0; i++) {
		if (!str_glob(glob, entries[i]->d_name))
			continue;
		r = fn(arg, system, entries[i]->d_name);
		matches++;
	}
	list_free(entries, count);
	return r < 0 ? r : matches;
}

int tracepoints_each(const struct host *host, const char *system_glob, const char *name_glob,
		     int (*fn)(void *arg, const char *system, const char *name), void *arg,
		     struct err *err)
{
	char mount[256], path[PATH_MAX];
	struct dirent **entries;
	int count, matches = 0, r = host_tracefs(host, mount, sizeof(mount), err);

	if (r < 0)
		return r;
	if (host_path(host, path, sizeof(path), "%s/events", mount) < 0)
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long", mount);
	if (is_literal(system_glob))
		return strchr(system_glob, '/') ? 0
						: each_name(path, system_glob, name_glob, fn, arg);
	count = list(path, &entries);
	if (count < 0)
		return err_set(err, count, "%s: %s", path, strerrordesc_np(-count));
	for (int i = 0; i < count && r >= 0; i++) {
		if (!str_glob(system_glob, entries[i]->d_name))
			continue;
		r = each_name(path, entries[i]->d_name, name_glob, fn, arg);
		matches += MAX(r, 0);
	}
	list_free(entries, count);
	return r < 0 ? r : matches;
}

/* The usual mount, in one open and one read; false: look properly. */
static bool id_at_usual_place(const struct host *host, const char *system, const char *name,
			      uint64_t *ret_id)
{
	char path[PATH_MAX], text[32];
	unsigned long long id;
	ssize_t n;
	int fd;

	if (host_path(host, path, sizeof(path), "/sys/kernel/tracing/events/%s/%s/id", system,
		      name) < 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[MAX(n, 0)] = '\0';
	if (n <= 0 || parse_u64(text, 10, &id) < 0)
		return false;
	*ret_id = id;
	return true;
}

int tracepoint_id(const struct host *host, const char *system, const char *name, uint64_t *ret_id,
		  struct err *err)
{
	char mount[256], path[PATH_MAX];
	struct host_number id;
	int r;

	if (id_at_usual_place(host, system, name, ret_id))
		return 0;
	r = host_tracefs(host, mount, sizeof(mount), err);
	if (r < 0)
		return r;
	if ((size_t)snprintf(path, sizeof(path), "%s/events/%s/%s/id", mount, system, name) >=
	    sizeof(path))
		return err_set(err, -ENAMETOOLONG, "%s:%s: the name is too long", system, name);
	id = host_number(host, path);
	if (!id.known || id.value < 0)
		return err_set(err, -ENOENT, "tracepoint %s:%s: %s", system, name, id.why);
	*ret_id = (uint64_t)id.value;
	return 0;
}
