/* Mounts of cgroups and tracefs, from /proc/self/mounts. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "host/host.h"

#define MOUNTS_BYTES (16 << 20)

/* One line of mounts: "device point type options ...". The line is cut up in place. */
struct mount {
	char *point, *type, *options;
};

/* Blanks in a mount point are written \040. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
		    from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

static bool mount_next(char **lines, struct mount *ret)
{
	char *line;

	while ((line = strsep(lines, "\n")) != NULL) {
		(void)strsep(&line, " ");
		ret->point = strsep(&line, " ");
		ret->type = strsep(&line, " ");
		ret->options = strsep(&line, " ");
		if (!ret->options)
			continue;
		unescape(ret->point);
		return true;
	}
	return false;
}

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

int host_cgroups_read(const struct host *host, struct host_cgroups *ret, struct err *err)
{
	struct host_cgroups cgroups = {.layout = CGROUP_NONE};
	size_t size;
	CLEANUP_FREE char *text = NULL;
	char *lines;
	struct mount mount;
	bool v1 = false;
	int r = host_read(host, "/proc/self/mounts", MOUNTS_BYTES, &text, &size, err);

	if (r < 0)
		return r;
	lines = text;
	while (mount_next(&lines, &mount)) {
		if (strcmp(mount.type, "cgroup2") == 0 && cgroups.v2[0] == '\0')
			snprintf(cgroups.v2, sizeof(cgroups.v2), "%s", mount.point);
		if (strcmp(mount.type, "cgroup") == 0) {
			v1 = true;
			if (has_option(mount.options, "perf_event"))
				snprintf(cgroups.perf_event, sizeof(cgroups.perf_event), "%s",
					 mount.point);
		}
	}
	if (v1)
		cgroups.layout = cgroups.v2[0] ? CGROUP_HYBRID : CGROUP_V1;
	else if (cgroups.v2[0])
		cgroups.layout = CGROUP_V2;
	/* Without a v1 hierarchy of its own, perf_event is part of the unified one. */
	if (cgroups.perf_event[0] == '\0')
		memcpy(cgroups.perf_event, cgroups.v2, sizeof(cgroups.perf_event));
	*ret = cgroups;
	return 0;
}

int host_cgroup_of(const struct host *host, const struct host_cgroups *cgroups, int pid, char *buf,
		   size_t size, struct err *err)
{
	bool unified = strcmp(cgroups->perf_event, cgroups->v2) == 0;
	char path[64];
	size_t bytes;
	CLEANUP_FREE char *text = NULL;
	char *lines, *line;
	int r;

	if (pid > 0)
		snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/cgroup");
	r = host_read(host, path, 1 << 20, &text, &bytes, err);
	if (r < 0)
		return r;
	lines = text;
	/* "ID:CONTROLLERS:PATH"; the unified hierarchy is "0::PATH". */
	while ((line = strsep(&lines, "\n")) != NULL) {
		const char *id = strsep(&line, ":"), *controllers = strsep(&line, ":");

		if (!line)
			continue;
		if (unified ? strcmp(id, "0") != 0 || controllers[0] != '\0'
			    : !has_option(controllers, "perf_event"))
			continue;
		if ((size_t)snprintf(buf, size, "%s", line) >= size)
			return err_set(err, -ENAMETOOLONG, "%s: the path is too long", path);
		return 0;
	}
	return err_set(err, -ENOENT, "%s: no cgroup that perf_event knows", path);
}

int host_tracefs(const struct host *host, char *buf, size_t size, struct err *err)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char full[PATH_MAX];
	bool denied = false;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (host_path(host, full, sizeof(full), "%s/events", places[i]) < 0)
			continue;
		if (access(full, R_OK | X_OK) == 0) {
			if ((size_t)snprintf(buf, size, "%s", places[i]) >= size)
				return -ENAMETOOLONG;
			return 0;
		}
		denied |= errno == EACCES;
	}
	if (denied)
		return err_set(
			err, -EACCES,
			"tracefs may not be read by this user; run as root, or: sudo mount -o "
			"remount,mode=755 /sys/kernel/tracing");
	return err_set(err, -ENOENT,
		       "tracefs is not mounted; run: mount -t tracefs nodev /sys/kernel/tracing");
}
