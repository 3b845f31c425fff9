#include "latency/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "host/host.h"
#include "latency/journal-internal.h"

#define TRACEFS_MAX_BYTES (64 << 20)

/* root + folder + "/" + formatted name. */
static int full_path(const struct tracefs *tracefs, char *buf, size_t size, const char *fmt,
		     va_list args) __attribute__((format(printf, 4, 0)));

static int full_path(const struct tracefs *tracefs, char *buf, size_t size, const char *fmt,
		     va_list args)
{
	int head = snprintf(buf, size, "%s%s/", tracefs->root, tracefs->path), len;

	if (head < 0 || (size_t)head >= size)
		return -ENAMETOOLONG;
	len = vsnprintf(buf + head, size - (size_t)head, fmt, args);
	return len < 0 || (size_t)len >= size - (size_t)head ? -ENAMETOOLONG : 0;
}

/* The path of the format and its arguments into full, or return. */
#define FULL_PATH(tracefs, full, fmt)                                          \
	({                                                                     \
		va_list args_;                                                 \
		int r_;                                                        \
		va_start(args_, fmt);                                          \
		r_ = full_path((tracefs), (full), sizeof(full), (fmt), args_); \
		va_end(args_);                                                 \
		r_;                                                            \
	})

static int refused(const struct host *host, const char *path, int error, struct err *err)
{
	struct host_text lockdown = host_lockdown(host);

	if (lockdown.known && strcmp(lockdown.value, "confidentiality") == 0)
		return err_set(err, -EPERM,
			       "the kernel is locked down (confidentiality): tracefs may not be "
			       "used by anybody; boot with lockdown=integrity or without");
	return err_set(err, error, "%s may not be used by this user: run as root", path);
}

int tracefs_find(const char *root, struct journal *journal, struct tracefs *ret, struct err *err)
{
	static const char usual[] = "/sys/kernel/tracing";
	const struct host host = {.root = root ? root : ""};
	char full[PATH_MAX];
	struct tracefs tracefs = {.root = host.root};
	int r = host_tracefs(&host, tracefs.path, sizeof(tracefs.path), err);

	if (r < 0 && journal) {
		snprintf(tracefs.path, sizeof(tracefs.path), "%s", usual);
		r = journal_mount(journal, "tracefs", usual, err);
		if (r == -ENOENT || r == -ENODEV)
			r = err_set(err, -ENOENT,
				    "this kernel has no tracefs (CONFIG_FTRACE is not set)");
		else if (r == -EPERM || r == -EACCES)
			r = refused(&host, usual, r, err);
	}
	if (r < 0)
		return r;
	r = host_path(&host, full, sizeof(full), "%s/instances", tracefs.path);
	if (r == 0 && access(full, R_OK | W_OK | X_OK) < 0)
		r = refused(&host, tracefs.path, -errno, err);
	if (r < 0)
		return r;
	*ret = tracefs;
	return 0;
}

bool tracefs_has(const struct tracefs *tracefs, const char *fmt, ...)
{
	char full[PATH_MAX];

	return FULL_PATH(tracefs, full, fmt) == 0 && access(full, F_OK) == 0;
}

int tracefs_read(const struct tracefs *tracefs, char **ret_text, size_t *ret_size, struct err *err,
		 const char *fmt, ...)
{
	char full[PATH_MAX];
	int r = FULL_PATH(tracefs, full, fmt);

	return r < 0 ? err_set(err, r, "%s: the path is too long", fmt)
		     : file_read(full, TRACEFS_MAX_BYTES, ret_text, ret_size, err);
}

int tracefs_value(const struct tracefs *tracefs, char *buf, size_t size, const char *fmt, ...)
{
	char full[PATH_MAX], *value;
	int r = FULL_PATH(tracefs, full, fmt);

	if (r == 0)
		r = journal_read("", full, buf, size);
	if (r < 0)
		return r;
	value = journal_value_of(buf);
	memmove(buf, value, strlen(value) + 1);
	return 0;
}

int tracefs_write(const struct tracefs *tracefs, const char *value, struct err *err,
		  const char *fmt, ...)
{
	char full[PATH_MAX];
	int r = FULL_PATH(tracefs, full, fmt);

	if (r == 0)
		r = journal_write("", full, value);
	return r < 0 ? err_set(err, r, "%s: %s cannot be written: %s", full, value,
			       strerrordesc_np(-r))
		     : 0;
}

int tracefs_open(const struct tracefs *tracefs, int flags, const char *fmt, ...)
{
	char full[PATH_MAX];
	int r = FULL_PATH(tracefs, full, fmt);

	if (r == 0) {
		r = open(full, flags | O_CLOEXEC);
		r = r < 0 ? -errno : r;
	}
	return r;
}

bool tracefs_has_tracer(const struct tracefs *tracefs, const char *tracer)
{
	size_t size, len = strlen(tracer);
	CLEANUP_FREE char *list = NULL;

	if (tracefs_read(tracefs, &list, &size, NULL, "available_tracers") < 0)
		return false;
	for (char *at = list; *at;) {
		size_t word = strcspn(at, " \n");

		if (word == len && memcmp(at, tracer, len) == 0)
			return true;
		at += word + strspn(at + word, " \n");
	}
	return false;
}

static bool shares_settings(const struct tracefs *tracefs, const char *folder, char *tracer,
			    size_t bytes)
{
	return tracefs_value(tracefs, tracer, bytes, "%scurrent_tracer", folder) == 0 &&
	       (strcmp(tracer, "timerlat") == 0 || strcmp(tracer, "osnoise") == 0);
}

bool tracefs_osnoise_user(const struct tracefs *tracefs, char *instance, size_t instance_bytes,
			  char *tracer, size_t tracer_bytes)
{
	char full[PATH_MAX];
	bool found = false;
	DIR *folder;

	if (shares_settings(tracefs, "", tracer, tracer_bytes)) {
		snprintf(instance, instance_bytes, "%s", "");
		return true;
	}
	if ((size_t)snprintf(full, sizeof(full), "%s%s/instances", tracefs->root, tracefs->path) >=
		    sizeof(full) ||
	    !(folder = opendir(full)))
		return false;
	for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
		char name[NAME_MAX + 16];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "instances/%s/", entry->d_name);
		found = shares_settings(tracefs, name, tracer, tracer_bytes);
		if (found)
			snprintf(instance, instance_bytes, "%s", entry->d_name);
	}
	closedir(folder);
	return found;
}

int trace_instance_make(const struct tracefs *tracefs, struct journal *journal, const char *suffix,
			struct trace_instance *ret, struct err *err)
{
	struct trace_instance instance = {.at.root = tracefs->root};
	char boot[64];
	int r;

	journal_boot_id(tracefs->root, boot, sizeof(boot));
	boot[8] = '\0';
	snprintf(instance.name, sizeof(instance.name), "culprit-%s-%d%s", boot[0] ? boot : "0",
		 (int)getpid(), suffix);
	if ((size_t)snprintf(instance.at.path, sizeof(instance.at.path), "%s/instances/%s",
			     tracefs->path, instance.name) >= sizeof(instance.at.path))
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long", tracefs->path);
	r = journal_make_instance(journal, instance.at.path, err);
	if (r < 0)
		return r;
	*ret = instance;
	return 0;
}

int trace_instance_clock(const struct trace_instance *instance, const char *clock, struct err *err)
{
	size_t size;
	CLEANUP_FREE char *clocks = NULL;
	int r = tracefs_write(&instance->at, clock, err, "trace_clock");

	if (r == -EINVAL && tracefs_read(&instance->at, &clocks, &size, NULL, "trace_clock") == 0) {
		clocks[strcspn(clocks, "\n")] = '\0';
		err_set(err, r, "no trace clock %s; there are %s", clock, clocks);
	}
	return r;
}

int trace_instance_event(const struct trace_instance *instance, const char *system,
			 const char *event, const char *filter, const char *trigger,
			 struct err *err)
{
	char folder[160];
	int r;

	snprintf(folder, sizeof(folder), "events/%s%s%s", system, event ? "/" : "",
		 event ? event : "");
	if (strchr(system, '/') || (event && strchr(event, '/')) ||
	    !tracefs_has(&instance->at, "%s/enable", folder))
		return err_set(err, -ENOENT,
			       "this kernel has no event %s%s%s; culprit list shows those it has",
			       system, event ? ":" : "", event ? event : "");
	if (filter) {
		r = tracefs_write(&instance->at, filter, NULL, "%s/filter", folder);
		if (r < 0)
			return err_set(err, r, "the kernel refuses the filter \"%s\" of %s: %s",
				       filter, folder + 7, strerrordesc_np(-r));
	}
	if (trigger) {
		r = event ? tracefs_write(&instance->at, trigger, NULL, "%s/trigger", folder)
			  : -EINVAL;
		if (r < 0)
			return err_set(err, r, "the kernel refuses the trigger \"%s\" of %s: %s",
				       trigger, folder + 7,
				       event ? strerrordesc_np(-r)
					     : "triggers belong to one event");
	}
	return tracefs_write(&instance->at, "1", err, "%s/enable", folder);
}

/* The mask is written in hexadecimal words of 32 CPUs, the last first. */
int trace_instance_cpus(const struct trace_instance *instance, const struct cpuset *cpus,
			struct err *err)
{
	struct str mask = {0};
	int r, top = 0;

	cpuset_for_each(cpus, cpu)
		top = cpu / 32;
	for (int word = top; word >= 0; word--)
		str_printf(&mask, "%s%08x", word < top ? "," : "",
			   (unsigned)(cpus->bits[word / 2] >> (word % 2 ? 32 : 0)));
	r = str_status(&mask);
	if (r == 0)
		r = tracefs_write(&instance->at, str_text(&mask), err, "tracing_cpumask");
	str_fini(&mask);
	return r;
}

bool trace_instance_on(const struct trace_instance *instance)
{
	char text[16];

	return tracefs_value(&instance->at, text, sizeof(text), "tracing_on") == 0 &&
	       text[0] != '0';
}
