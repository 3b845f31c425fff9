/* The header features of a recording: where, when, with what it was made. */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"
#include "sample/writer-internal.h"
#include "symbols/symbols.h"

#define STRING_ALIGN       64
#define CPUINFO_MAX        (1 << 20)
#define CLOCK_DATA_VERSION 1
#define VDSO_VERSION       1
#define VDSO_LEVEL         9

/* A length with padding, then the text: the format's string. */
static void put_string(struct str *out, const char *text)
{
	static const char zeros[STRING_ALIGN];
	size_t len = strlen(text) + 1;
	uint32_t whole = (uint32_t)ALIGN_UP(len, (size_t)STRING_ALIGN);

	str_append(out, &whole, sizeof(whole));
	str_append(out, text, len);
	str_append(out, zeros, whole - len);
}

static void put_u32(struct str *out, uint32_t value)
{
	str_append(out, &value, sizeof(value));
}

static void put_u64(struct str *out, uint64_t value)
{
	str_append(out, &value, sizeof(value));
}

static int take_feature(struct writer *writer, enum perf_feature feature, struct str *bytes)
{
	int r = str_status(bytes);

	if (r == 0)
		r = writer_feature(writer, feature, bytes->data, bytes->len);
	str_fini(bytes);
	return r;
}

static int string_feature(struct writer *writer, enum perf_feature feature, const char *text)
{
	struct str bytes = {0};

	put_string(&bytes, text);
	return take_feature(writer, feature, &bytes);
}

/* The text behind "model name : " (x86) or the like; false when there is none. */
static bool cpu_description(char *buf, size_t size)
{
	static const char *const keys[] = {"model name", "Processor", "cpu model", "CPU part"};
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (file_read("/proc/cpuinfo", CPUINFO_MAX, &text, &len, NULL) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const char *at = strstr(text, keys[i]);
		const char *colon = at ? strchr(at, ':') : NULL;

		if (!colon || colon[1] == '\0')
			continue;
		colon += 1 + (colon[1] == ' ');
		snprintf(buf, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		return true;
	}
	return false;
}

static int cpu_features(struct writer *writer)
{
	struct str bytes = {0};
	char description[256];
	struct sysinfo info;
	int r;

	put_u32(&bytes, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	put_u32(&bytes, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	r = take_feature(writer, FEATURE_NRCPUS, &bytes);
	if (r == 0 && cpu_description(description, sizeof(description)))
		r = string_feature(writer, FEATURE_CPUDESC, description);
	if (r == 0 && sysinfo(&info) == 0) {
		put_u64(&bytes, (uint64_t)info.totalram * info.mem_unit / 1024);
		r = take_feature(writer, FEATURE_TOTAL_MEM, &bytes);
	}
	return r;
}

static int event_feature(struct writer *writer)
{
	struct str bytes = {0};

	put_u32(&bytes, writer->event_count);
	put_u32(&bytes, sizeof(struct perf_event_attr));
	for (uint32_t i = 0; i < writer->event_count; i++) {
		const struct writer_event *event = &writer->events[i];

		str_append(&bytes, &event->attr, sizeof(event->attr));
		put_u32(&bytes, event->id_count);
		put_string(&bytes, event->name);
		str_append(&bytes, event->ids, event->id_count * sizeof(uint64_t));
	}
	return take_feature(writer, FEATURE_EVENT_DESC, &bytes);
}

/* How the clock of the records maps to wall-clock time. */
static int clock_features(struct writer *writer)
{
	clockid_t clock = writer->events[0].attr.clockid;
	struct str bytes = {0};
	struct timespec resolution;
	int r;

	if (!writer->events[0].attr.use_clockid || clock_getres(clock, &resolution) < 0)
		return 0;
	put_u64(&bytes, (uint64_t)resolution.tv_nsec);
	r = take_feature(writer, FEATURE_CLOCKID, &bytes);
	if (r < 0)
		return r;
	put_u32(&bytes, CLOCK_DATA_VERSION);
	put_u32(&bytes, (uint32_t)clock);
	put_u64(&bytes, clock_ns(CLOCK_REALTIME));
	put_u64(&bytes, clock_ns(clock));
	return take_feature(writer, FEATURE_CLOCK_DATA, &bytes);
}

static int compressed_feature(struct writer *writer)
{
	uint64_t ratio = writer->position > 0
				 ? (writer->raw_bytes + writer->position / 2) / writer->position
				 : 1;
	struct str bytes = {0};

	if (!writer->zstd)
		return 0;
	put_u32(&bytes, 1); /* version */
	put_u32(&bytes, 1); /* zstd */
	put_u32(&bytes, (uint32_t)writer->zstd_level);
	put_u32(&bytes, (uint32_t)ratio);
	put_u32(&bytes,
		(uint32_t)writer->ring_bytes); /* what a reader must be ready to unpack at once */
	return take_feature(writer, FEATURE_COMPRESSED, &bytes);
}

/* For those who open the recording under another kernel: the vdso's names, and how to unwind it. */
static int vdso_feature(struct writer *writer)
{
	struct str bytes = {0};
	const void *image;
	size_t size;
	int r;

	image = symbols_own_vdso(&size);
	if (!image)
		return 0;
	put_u32(&bytes, VDSO_VERSION);
	put_u32(&bytes, 0);
	put_u64(&bytes, size);
	r = zstd_compress(image, size, VDSO_LEVEL, &bytes, NULL);
	if (r == 0)
		return take_feature(writer, FEATURE_CULPRIT_VDSO, &bytes);
	str_fini(&bytes);
	return r;
}

int writer_standard_features(struct writer *writer, int argc, char **argv)
{
	struct str bytes = {0};
	struct utsname name;
	int r = 0;

	if (uname(&name) == 0) {
		r = string_feature(writer, FEATURE_HOSTNAME, name.nodename);
		if (r == 0)
			r = string_feature(writer, FEATURE_OSRELEASE, name.release);
		if (r == 0)
			r = string_feature(writer, FEATURE_ARCH, name.machine);
	}
	if (r == 0)
		r = string_feature(writer, FEATURE_VERSION, "culprit");
	if (r == 0)
		r = cpu_features(writer);
	if (r < 0)
		return r;
	put_u32(&bytes, (uint32_t)argc);
	for (int i = 0; i < argc; i++)
		put_string(&bytes, argv[i]);
	r = take_feature(writer, FEATURE_CMDLINE, &bytes);
	if (r == 0)
		r = event_feature(writer);
	if (r == 0)
		r = clock_features(writer);
	if (r == 0)
		r = writer_tracing_feature(writer);
	if (r == 0)
		r = vdso_feature(writer);
	return r == 0 ? compressed_feature(writer) : r;
}
