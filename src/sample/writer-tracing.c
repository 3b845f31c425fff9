/*
 * The TRACING_DATA feature: the formats of the recorded tracepoints, without which readers cannot
 * take their fields apart. The layout is that of trace.dat's head, version 0.6
 * (trace-cmd.dat.v6(5)): only the parts that describe the events have content.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "host/host.h"
#include "sample/writer-internal.h"

#define FORMAT_MAX  (1U << 20)
#define TRACEFS_MAX 256

static void put_number(struct str *out, uint64_t value, size_t size)
{
	str_append(out, &value, size); /* little endian on every machine that records so far */
}

/* name (when given) NUL, u64 size, the file's bytes. A file that cannot be read is an empty one. */
static void put_file(struct str *out, const char *name, const char *path)
{
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;

	if (file_read(path, FORMAT_MAX, &text, &size, NULL) < 0)
		size = 0;
	if (name)
		str_append(out, name, strlen(name) + 1);
	put_number(out, size, sizeof(uint64_t));
	str_append(out, text, size);
}

/* "sched:sched_switch" (with modifiers behind) -> directory of its format; false: no such shape. */
static bool split_name(const char *name, char *system, size_t size, char *event, size_t event_size)
{
	const char *colon = strchr(name, ':');

	if (!colon || (size_t)(colon - name) >= size)
		return false;
	snprintf(system, size, "%.*s", (int)(colon - name), name);
	snprintf(event, event_size, "%.*s", (int)strcspn(colon + 1, ":"), colon + 1);
	return true;
}

/* One section per system; every event of it that was recorded. */
static void put_systems(struct writer *writer, const char *tracefs, struct str *out)
{
	struct str body = {0};
	uint32_t systems = 0;

	for (uint32_t i = 0; i < writer->event_count; i++) {
		char system[64], event[128], other[64], path[TRACEFS_MAX + 256];
		struct str formats = {0};
		uint32_t count = 0;
		bool earlier = false;

		if (writer->events[i].attr.type != PERF_TYPE_TRACEPOINT ||
		    !split_name(writer->events[i].name, system, sizeof(system), event,
				sizeof(event)))
			continue;
		for (uint32_t j = 0; j < i; j++)
			earlier |= writer->events[j].attr.type == PERF_TYPE_TRACEPOINT &&
				   split_name(writer->events[j].name, other, sizeof(other), event,
					      sizeof(event)) &&
				   strcmp(other, system) == 0;
		for (uint32_t j = i; !earlier && j < writer->event_count; j++) {
			if (writer->events[j].attr.type != PERF_TYPE_TRACEPOINT ||
			    !split_name(writer->events[j].name, other, sizeof(other), event,
					sizeof(event)) ||
			    strcmp(other, system) != 0)
				continue;
			snprintf(path, sizeof(path), "%s/events/%s/%s/format", tracefs, system,
				 event);
			put_file(&formats, NULL, path);
			count++;
		}
		if (!earlier) {
			str_append(&body, system, strlen(system) + 1);
			put_number(&body, count, sizeof(uint32_t));
			str_append(&body, formats.data, formats.len);
			systems++;
		}
		str_fini(&formats);
	}
	put_number(out, systems, sizeof(uint32_t));
	str_append(out, body.data, body.len);
	str_fini(&body);
}

int writer_tracing_feature(struct writer *writer)
{
	static const char magic[] = "\x17\x08\x44tracing0.6";
	char tracefs[TRACEFS_MAX], path[TRACEFS_MAX + 32];
	struct str bytes = {0};
	bool wanted = false;
	int r;

	for (uint32_t i = 0; i < writer->event_count; i++)
		wanted |= writer->events[i].attr.type == PERF_TYPE_TRACEPOINT;
	if (!wanted || host_tracefs(&(struct host){.root = ""}, tracefs, sizeof(tracefs), NULL) < 0)
		return 0;
	str_append(&bytes, magic, sizeof(magic)); /* with the version's NUL */
	put_number(&bytes, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 1);
	put_number(&bytes, sizeof(long), 1);
	put_number(&bytes, (uint64_t)sysconf(_SC_PAGESIZE), sizeof(uint32_t));
	snprintf(path, sizeof(path), "%s/events/header_page", tracefs);
	put_file(&bytes, "header_page", path);
	snprintf(path, sizeof(path), "%s/events/header_event", tracefs);
	put_file(&bytes, "header_event", path);
	put_number(&bytes, 0, sizeof(uint32_t)); /* events of ftrace itself */
	put_systems(writer, tracefs, &bytes);
	put_number(&bytes, 0, sizeof(uint32_t)); /* kallsyms */
	put_number(&bytes, 0, sizeof(uint32_t)); /* printk formats */
	put_number(&bytes, 0, sizeof(uint64_t)); /* saved command lines */
	r = str_status(&bytes);
	if (r == 0)
		r = writer_feature(writer, FEATURE_TRACING_DATA, bytes.data, bytes.len);
	str_fini(&bytes);
	return r;
}
