#include <ctype.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "base/vec.h"
#include "host/host.h"
#include "latency/trace-dat-internal.h"
#include "latency/trace-dat.h"
#include "latency/trace-format.h"
#include "symbols/kallsyms.h"

#define KALLSYMS_MAX_BYTES (256 << 20)

struct dat {
	const struct tracefs *tracefs;
	const struct trace_instance *instance;
	struct trace_page_layout layout;
	struct str head; /* everything before the pages */
	size_t table;    /* where in head the CPUs' offsets and sizes stand */
	unsigned cpus;
	int fd;
	struct err *err;
};

/* --- pieces ---------------------------------------------------------------------------------- */

void dat_number(struct str *out, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[BYTE_ORDER == BIG_ENDIAN ? size - 1 - i : i] = (uint8_t)(value >> 8 * i);
	str_append(out, bytes, size);
}

void dat_sized(struct str *out, const void *data, size_t size, size_t size_bytes)
{
	dat_number(out, size, size_bytes);
	str_append(out, data, size);
}

void dat_start(struct str *out, size_t page_size)
{
	static const uint8_t magic[] = {0x17, 0x08, 0x44};

	str_append(out, magic, sizeof(magic));
	str_append(out, "tracing6", 9); /* with its NUL */
	dat_number(out, BYTE_ORDER == BIG_ENDIAN, 1);
	dat_number(out, sizeof(long), 1);
	dat_number(out, page_size, 4);
}

void dat_option(struct str *out, enum trace_dat_option id, const void *data, size_t size)
{
	dat_number(out, id, 2);
	dat_sized(out, data, size, 4);
}

void dat_options_of_machine(struct str *out)
{
	static const char version[] = "culprit " CULPRIT_VERSION;
	struct utsname name;
	struct str text = {0};

	if (uname(&name) == 0) {
		str_printf(&text, "%s %s %s %s", name.sysname, name.nodename, name.release,
			   name.machine);
		dat_option(out, DAT_UNAME, str_text(&text), text.len + 1);
		str_fini(&text);
	}
	dat_option(out, DAT_VERSION, version, sizeof(version));
}

size_t dat_reserve_table(struct str *out, unsigned cpus)
{
	size_t at;

	str_append(out, "flyrecord", 10);
	at = out->len;
	for (unsigned i = 0; i < cpus * 2; i++)
		dat_number(out, 0, 8);
	return at;
}

/* A file of tracefs with its size in front. */
static int put_file(struct dat *dat, struct str *out, size_t size_bytes, const char *path)
{
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = tracefs_read(dat->tracefs, &text, &size, dat->err, "%s", path);

	if (r == 0)
		dat_sized(out, text, size, size_bytes);
	return r;
}

static int put_start(struct dat *dat)
{
	struct str *out = &dat->head;
	int r;

	dat_start(out, dat->layout.page_size);
	str_append(out, "header_page", 12);
	r = put_file(dat, out, 8, "events/header_page");
	if (r < 0)
		return r;
	str_append(out, "header_event", 13);
	return put_file(dat, out, 8, "events/header_event");
}

/* --- formats --------------------------------------------------------------------------------- */

/* The formats of the kernel's own events: every folder of events/ftrace that has one. */
static int put_ftrace_formats(struct dat *dat)
{
	char path[PATH_MAX], name[PATH_MAX];
	struct str formats = {0};
	uint32_t count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s%s/events/ftrace", dat->tracefs->root, dat->tracefs->path);
	folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "events/ftrace/%s/format", entry->d_name);
		if (tracefs_has(dat->tracefs, "%s", name) && put_file(dat, &formats, 8, name) == 0)
			count++;
	}
	if (folder)
		closedir(folder);
	dat_number(&dat->head, count, 4);
	str_append(&dat->head, formats.data, formats.len);
	str_fini(&formats);
	return str_status(&dat->head);
}

struct system {
	char name[64];
	uint32_t count;
	struct str formats;
};

typedef VEC(struct system) systems_vec;

/* "SYSTEM:EVENT" lines, as set_event lists what is enabled; a system's events stand together. */
static int take_event(struct dat *dat, systems_vec *systems, char *line)
{
	char *event = strchr(line, ':'), path[256];
	struct system *system = systems->len ? &systems->data[systems->len - 1] : NULL;

	if (!event)
		return 0;
	*event++ = '\0';
	if (!system || strcmp(system->name, line) != 0) {
		struct system fresh = {.count = 0};

		snprintf(fresh.name, sizeof(fresh.name), "%s", line);
		if (vec_push(systems, fresh) < 0)
			return -ENOMEM;
		system = &systems->data[systems->len - 1];
	}
	snprintf(path, sizeof(path), "events/%s/%s/format", line, event);
	if (put_file(dat, &system->formats, 8, path) == 0)
		system->count++;
	return str_status(&system->formats);
}

static int put_event_formats(struct dat *dat)
{
	size_t size;
	CLEANUP_FREE char *list = NULL;
	systems_vec systems = {0};
	int r = tracefs_read(&dat->instance->at, &list, &size, dat->err, "set_event");

	for (char *save, *line = r == 0 ? strtok_r(list, "\n", &save) : NULL; line && r == 0;
	     line = strtok_r(NULL, "\n", &save))
		r = take_event(dat, &systems, line);
	dat_number(&dat->head, systems.len, 4);
	vec_for_each(&systems, system) {
		str_append(&dat->head, system->name, strlen(system->name) + 1);
		dat_number(&dat->head, system->count, 4);
		str_append(&dat->head, system->formats.data, system->formats.len);
		str_fini(&system->formats);
	}
	vec_fini(&systems);
	return r;
}

/* --- names ----------------------------------------------------------------------------------- */

/* Functions only: the lines "ADDRESS TYPE NAME[\t[MODULE]]" of code. */
static int put_functions(struct dat *dat)
{
	const struct host host = {.root = dat->tracefs->root};
	struct str functions = {0};
	size_t size = 0;
	CLEANUP_FREE char *text = NULL;

	if (host_read(&host, "/proc/kallsyms", KALLSYMS_MAX_BYTES, &text, &size, NULL) < 0)
		size = 0; /* addresses will be shown instead */
	for (const char *at = text, *end = text ? text + size : NULL; at && at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const char *blank = memchr(at, ' ', (size_t)(end - at));

		stop = stop ? stop + 1 : end;
		if (blank && blank + 1 < stop && kallsyms_is_code(blank[1]))
			str_append(&functions, at, (size_t)(stop - at));
		at = stop;
	}
	dat_sized(&dat->head, functions.data, functions.len, 4);
	str_fini(&functions);
	return str_status(&dat->head);
}

static bool line_known(const char *lines, const char *pid)
{
	size_t len = strlen(pid);

	for (const char *at = lines; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (strncmp(at, pid, len) == 0 && at[len] == ' ')
			return true;
	return false;
}

/* What the kernel remembers of thread names, and those of the processes that live now. */
static int put_comms(struct dat *dat)
{
	const struct tracefs proc = {.root = dat->tracefs->root, .path = "/proc"};
	char path[PATH_MAX];
	size_t size;
	CLEANUP_FREE char *saved = NULL;
	struct str lines = {0};
	int r = tracefs_read(dat->tracefs, &saved, &size, dat->err, "saved_cmdlines");
	DIR *folder;

	if (r < 0)
		return r;
	str_append(&lines, saved, size);
	snprintf(path, sizeof(path), "%s/proc", proc.root);
	folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		char comm[64];

		if (isdigit((unsigned char)entry->d_name[0]) && !line_known(saved, entry->d_name) &&
		    tracefs_value(&proc, comm, sizeof(comm), "%s/comm", entry->d_name) == 0)
			str_printf(&lines, "%s %s\n", entry->d_name, comm);
	}
	if (folder)
		closedir(folder);
	dat_sized(&dat->head, lines.data, lines.len, 8);
	str_fini(&lines);
	return str_status(&dat->head);
}

/* --- options and CPUs ------------------------------------------------------------------------ */

static int option_file(struct dat *dat, unsigned id, const char *path)
{
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = tracefs_read(&dat->instance->at, &text, &size, dat->err, "%s", path);

	if (r == 0)
		dat_option(&dat->head, id, text, size + 1);
	return r;
}

/* Statistics of a CPU with a line that says which, as trace-cmd writes them. */
static int option_stats(struct dat *dat, unsigned cpu)
{
	size_t size;
	CLEANUP_FREE char *text = NULL;
	struct str line = {0};
	int r = tracefs_read(&dat->instance->at, &text, &size, dat->err, "per_cpu/cpu%u/stats",
			     cpu);

	if (r < 0)
		return r;
	str_printf(&line, "CPU: %u\n%s", cpu, text);
	dat_option(&dat->head, DAT_CPUSTAT, str_text(&line), line.len + 1);
	str_fini(&line);
	return 0;
}

static int put_options(struct dat *dat)
{
	struct str count = {0};
	int r = option_file(dat, DAT_TRACECLOCK, "trace_clock");

	dat_options_of_machine(&dat->head);
	for (unsigned cpu = 0; r == 0 && cpu < dat->cpus; cpu++)
		if (tracefs_has(&dat->instance->at, "per_cpu/cpu%u/stats", cpu))
			r = option_stats(dat, cpu);
	dat_number(&count, dat->cpus, 4);
	dat_option(&dat->head, DAT_CPUCOUNT, count.data, count.len);
	dat_number(&dat->head, DAT_DONE, 2);
	str_fini(&count);
	return r;
}

/* One more than the highest CPU that has a buffer. */
static unsigned count_cpus(const struct trace_instance *instance)
{
	char path[PATH_MAX];
	unsigned cpus = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s%s/per_cpu", instance->at.root, instance->at.path);
	folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		const char *digits;
		unsigned long long cpu;

		if (str_prefix(entry->d_name, "cpu", &digits) && parse_u64(digits, 10, &cpu) == 0 &&
		    cpu < CPUSET_MAX)
			cpus = MAX(cpus, (unsigned)cpu + 1);
	}
	if (folder)
		closedir(folder);
	return cpus;
}

/* --- pages ----------------------------------------------------------------------------------- */

static int copy_pages(struct dat *dat, unsigned cpu, uint64_t *size)
{
	CLEANUP_CLOSE int from = tracefs_open(&dat->instance->at, O_RDONLY | O_NONBLOCK,
					      "per_cpu/cpu%u/trace_pipe_raw", cpu);
	CLEANUP_FREE uint8_t *page = malloc(dat->layout.page_size);

	if (!page)
		return -ENOMEM;
	if (from < 0)
		return from == -ENOENT || from == -ENODEV ? 0 : from;
	for (;;) {
		ssize_t n = read(from, page, dat->layout.page_size);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 || errno == EAGAIN ? 0 : -errno;
		/* A short one would shift all that follow. */
		memset(page + n, 0, dat->layout.page_size - (size_t)n);
		r = fd_write_all(dat->fd, page, dat->layout.page_size);
		if (r < 0)
			return r;
		*size += dat->layout.page_size;
	}
}

/* The CPUs' pages one after the other, each at a page's boundary; then where they are. */
static int write_pages(struct dat *dat)
{
	uint64_t at = ALIGN_UP(dat->head.len, dat->layout.page_size);
	struct str table = {0};
	int r = lseek(dat->fd, (off_t)at, SEEK_SET) < 0 ? -errno : 0;

	for (unsigned cpu = 0; r == 0 && cpu < dat->cpus; cpu++) {
		uint64_t size = 0;

		r = copy_pages(dat, cpu, &size);
		dat_number(&table, at, 8);
		dat_number(&table, size, 8);
		at += size;
	}
	if (r == 0)
		r = str_status(&table);
	if (r == 0 && table.len > 0)
		memcpy(dat->head.data + dat->table, table.data, table.len);
	if (r == 0 && pwrite(dat->fd, dat->head.data, dat->head.len, 0) != (ssize_t)dat->head.len)
		r = errno ? -errno : -EIO;
	if (r == 0 && ftruncate(dat->fd, (off_t)at) < 0) /* no CPU had a page */
		r = -errno;
	str_fini(&table);
	return r;
}

static int put_head(struct dat *dat)
{
	int r = put_start(dat);

	if (r == 0)
		r = put_ftrace_formats(dat);
	if (r == 0)
		r = put_event_formats(dat);
	if (r == 0)
		r = put_functions(dat);
	if (r == 0)
		r = put_file(dat, &dat->head, 4, "printk_formats");
	if (r == 0)
		r = put_comms(dat);
	if (r < 0)
		return r;
	dat_number(&dat->head, dat->cpus, 4);
	str_append(&dat->head, "options  ", 10);
	r = put_options(dat);
	dat->table = dat_reserve_table(&dat->head, dat->cpus);
	return r < 0 ? r : str_status(&dat->head);
}

int trace_dat_write(const struct tracefs *tracefs, const struct trace_instance *instance,
		    const char *path, struct err *err)
{
	struct dat dat = {.tracefs = tracefs,
			  .instance = instance,
			  .cpus = count_cpus(instance),
			  .fd = -1,
			  .err = err};
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = tracefs_read(tracefs, &text, &size, err, "events/header_page");

	if (r == 0)
		r = trace_page_layout_parse(text, size, BYTE_ORDER == BIG_ENDIAN, &dat.layout, err);
	if (r == 0)
		r = put_head(&dat);
	if (r == 0) {
		dat.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		r = dat.fd < 0 ? -errno : write_pages(&dat);
		if (r < 0)
			err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	}
	if (dat.fd >= 0 && close(dat.fd) < 0 && r == 0)
		r = err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	str_fini(&dat.head);
	return r;
}
