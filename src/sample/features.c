/* The header's features: who recorded, on what machine, which events, which build ids. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compress.h"
#include "base/util.h"
#include "sample/session-internal.h"

/* Larger sections are not read: no feature that is used comes near it. */
#define FEATURE_MAX_BYTES  (64u << 20)
#define KALLSYMS_MAX_BYTES (64u << 20)

static int keep_string(struct session *session, struct reader *r, const char **ret)
{
	size_t len;
	const char *text = perfdata_feature_string(r, &len);

	if (!text || len == 0)
		return 0;
	*ret = arena_strndup(&session->arena, text, len);
	return *ret ? 0 : -ENOMEM;
}

static int feature_cmdline(struct session *session, struct reader *r)
{
	uint32_t count = reader_u32(r);
	struct str line = {0};
	int status;

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		size_t len;
		const char *text = perfdata_feature_string(r, &len);

		if (!text)
			break;
		if (i > 0)
			str_putc(&line, ' ');
		str_append(&line, text, len);
	}
	status = str_status(&line);
	if (status == 0 && line.len > 0) {
		session->info.cmdline = arena_strndup(&session->arena, line.data, line.len);
		status = session->info.cmdline ? 0 : -ENOMEM;
	}
	str_fini(&line);
	return status;
}

static void name_event(struct event *event, const char *text, size_t len)
{
	if (len == 0)
		return;
	snprintf(event->name, sizeof(event->name), "%.*s", (int)MIN(len, sizeof(event->name) - 1),
		 text);
	event->named = true;
}

static void feature_event_desc(struct session *session, struct reader *r)
{
	uint32_t count = reader_u32(r), attr_size = reader_u32(r);

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		struct event *event = NULL;
		uint32_t ids;
		const char *text;
		size_t len;

		reader_skip(r, attr_size);
		ids = reader_u32(r);
		text = perfdata_feature_string(r, &len);
		for (uint32_t id = 0; id < ids && !r->failed; id++) {
			uint64_t value = reader_u64(r);

			if (!event && !r->failed)
				event = session_event_by_id(session, value);
		}
		if (!event && i < session->events.len)
			event = &session->events.data[i];
		if (event && text)
			name_event(event, text, len);
	}
}

/* When it began to record, in seconds; the clock of the records is another one. */
static void meta_timestamp(struct session *session, const char *text)
{
	unsigned long long seconds;

	if (parse_u64(text, 10, &seconds) == 0 && seconds < UINT64_MAX / NSEC_PER_SEC)
		session->info.wall_time_ns = seconds * NSEC_PER_SEC;
}

/* Lines of "name,type,config". */
static void meta_event_types(struct session *session, const char *value)
{
	while (*value) {
		size_t len = strcspn(value, "\n"), name = strcspn(value, ",");
		unsigned long long config = 0;
		unsigned type = 0;

		if (name < len && sscanf(value + name, ",%u,%llu", &type, &config) == 2)
			vec_for_each(&session->events, event)
				if (event->attr.type == type && event->attr.config == config)
					name_event(event, value, name);
		value += len + (value[len] == '\n');
	}
}

/* simpleperf's pairs of NUL-terminated texts. */
static int feature_meta_info(struct session *session, struct reader *r)
{
	static const char *const told[] = {
		"simpleperf_version", "android_version",        "android_build_type",
		"product_props",      "app_package_name",       "app_type",
		"trace_offcpu",       "system_wide_collection", "record_stat"};
	int status = 0;

	while (reader_left(r) > 0 && !r->failed) {
		const char *key = reader_cstr(r), *value = key ? reader_cstr(r) : NULL;

		/* Its recorder moves the kernel's return addresses into the calls, its unwinder
		 * those of native code; addresses of Java code are exact. */
		session->calls_in_chains |= key && strcmp(key, "simpleperf_version") == 0;
		if (!value)
			break;
		for (size_t i = 0; i < ARRAY_LEN(told) && status == 0; i++)
			if (strcmp(key, told[i]) == 0)
				status = session_text_fact(session, told[i], value);
		if (status < 0)
			return status;
		if (strcmp(key, "timestamp") == 0)
			meta_timestamp(session, value);
		if (strcmp(key, "event_type_info") == 0)
			meta_event_types(session, value);
	}
	return 0;
}

static int feature_symbols(struct session *session, struct reader *r)
{
	uint32_t version = reader_u32(r), kind = reader_u32(r);
	uint64_t raw_size = reader_u64(r);
	int status;

	if (r->failed || version != 1 || kind != 1 || raw_size > KALLSYMS_MAX_BYTES)
		return 0;
	str_clear(&session->kallsyms);
	status = zstd_decompress(r->data + r->pos, reader_left(r), (size_t)raw_size,
				 &session->kallsyms, NULL);
	return status == -ENOMEM ? status : 0;
}

static int feature_vdso(struct session *session, struct reader *r)
{
	uint32_t version = reader_u32(r);
	uint64_t size;
	int status;

	reader_skip(r, 4);
	size = reader_u64(r);
	if (r->failed || version != 1 || size > VDSO_MAX)
		return 0;
	str_clear(&session->vdso);
	status = zstd_decompress(r->data + r->pos, reader_left(r), (size_t)size, &session->vdso,
				 NULL);
	if (status < 0)
		str_clear(&session->vdso);
	return status == -ENOMEM ? status : 0;
}

/* The counts themselves come from the samples. */
static void feature_stacks(struct session *session, struct reader *r)
{
	struct session_stats *stats = &session->stats;
	uint32_t version = reader_u32(r);
	uint64_t frame_pointer_stacks;
	const char *text;

	reader_skip(r, 4 + 8 + 8 + 8);
	frame_pointer_stacks = reader_u64(r);
	text = reader_cstr(r);
	if (version != 1 || !text)
		return;
	stats->unwound_live = true;
	stats->frame_pointer_stacks = frame_pointer_stacks;
	snprintf(stats->lost_in, sizeof(stats->lost_in), "%s", text);
}

static void feature_cpus(struct session *session, struct reader *r)
{
	uint32_t configured = reader_u32(r), online = reader_u32(r);

	if (r->failed)
		return;
	session->info.cpus_configured = configured;
	session->info.cpus_online = online;
}

static void feature_times(struct session *session, struct reader r)
{
	uint64_t first = reader_u64(&r), last = reader_u64(&r);

	if (r.failed || first > last)
		return;
	session->sampled_first_ns = first;
	session->sampled_last_ns = last;
}

/* The same moment by the wall clock and by the clock of the records. */
static void feature_clock(struct session *session, struct reader *r)
{
	uint32_t version = reader_u32(r), clock = reader_u32(r);
	uint64_t wall = reader_u64(r), event = reader_u64(r);

	if (r->failed || version != 1)
		return;
	session->info.clock = (int32_t)clock;
	session->clock_wall_ns = wall;
	session->clock_event_ns = event;
}

static int feature_bpf(struct session *session, unsigned feature, const struct reader *r)
{
	int status = session_bpf_feature(session, feature, r->data, r->size);

	return status < 0 ? status : session_feature_fact(session, feature, r);
}

static int feature_build_ids(struct session *session, struct reader *r)
{
	struct perfdata_build_id entry;
	int status = 0;

	while (status == 0 && perfdata_build_id_next(r, &entry))
		status = session_add_build_id(session, &entry);
	return status;
}

int session_feature(struct session *session, unsigned feature, const uint8_t *data, size_t size)
{
	struct reader r = reader_make(data, size, session->header.swap);

	switch (feature) {
	case FEAT_BUILD_ID:
		return feature_build_ids(session, &r);
	case FEAT_HOSTNAME:
		return keep_string(session, &r, &session->info.hostname);
	case FEAT_OSRELEASE:
		return keep_string(session, &r, &session->info.os_release);
	case FEAT_VERSION:
		return keep_string(session, &r, &session->info.version);
	case FEAT_ARCH:
		return keep_string(session, &r, &session->info.arch);
	case FEAT_CPUDESC:
		return keep_string(session, &r, &session->info.cpu_desc);
	case FEAT_CMDLINE:
		return feature_cmdline(session, &r);
	case FEAT_NRCPUS:
		feature_cpus(session, &r);
		return 0;
	case FEAT_EVENT_DESC:
		feature_event_desc(session, &r);
		return 0;
	case FEAT_SIMPLEPERF_META_INFO:
		return feature_meta_info(session, &r);
	case FEAT_SIMPLEPERF_FILE:
		return session_recorded_files(session, &r);
	case FEAT_SIMPLEPERF_FILE2:
		return session_recorded_files2(session, &r);
	case FEAT_BRANCH_STACK:
		session->info.branches = true;
		return 0;
	case FEAT_SAMPLE_TIME:
		feature_times(session, r);
		return session_feature_fact(session, feature, &r);
	case FEAT_COMPRESSED:
		session->info.compressed = true;
		return session_feature_fact(session, feature, &r);
	case FEAT_CLOCK_DATA:
		feature_clock(session, &r);
		return 0;
	case FEAT_BPF_PROG_INFO:
	case FEAT_BPF_BTF:
		return feature_bpf(session, feature, &r);
	case FEAT_CULPRIT_SYMBOLS:
		return feature_symbols(session, &r);
	case FEAT_CULPRIT_VDSO:
		return feature_vdso(session, &r);
	case FEAT_CULPRIT_STACKS:
		feature_stacks(session, &r);
		return 0;
	default:
		return session_feature_fact(session, feature, &r);
	}
}

static bool feature_wanted(unsigned feature)
{
	switch (feature) {
	case FEAT_TRACING_DATA: /* trace formats: large, and names come from EVENT_DESC */
		return false;
	default:
		return feature < 32 || feature == FEAT_SIMPLEPERF_META_INFO ||
		       feature == FEAT_SIMPLEPERF_FILE || feature == FEAT_SIMPLEPERF_FILE2 ||
		       feature == FEAT_CULPRIT_SYMBOLS || feature == FEAT_CULPRIT_STACKS ||
		       feature == FEAT_CULPRIT_VDSO;
	}
}

static const char missing_machine[] = "the machine's parts";

/* What a reader misses without the section; NULL: nothing that is shown comes from it. */
static const char *feature_holds(unsigned feature)
{
	switch (feature) {
	case FEAT_BUILD_ID:
		return "build ids";
	case FEAT_HOSTNAME:
		return "host name";
	case FEAT_OSRELEASE:
		return "kernel release";
	case FEAT_VERSION:
		return "recorder";
	case FEAT_ARCH:
		return "architecture";
	case FEAT_NRCPUS:
		return "CPUs";
	case FEAT_CPUDESC:
		return "CPU model";
	case FEAT_CMDLINE:
		return "command line";
	case FEAT_SIMPLEPERF_META_INFO:
	case FEAT_EVENT_DESC:
		return "names of events";
	case FEAT_SIMPLEPERF_FILE:
	case FEAT_SIMPLEPERF_FILE2:
		return "names of functions";
	case FEAT_BPF_PROG_INFO:
		return "BPF programs";
	case FEAT_BPF_BTF:
		return "lines of BPF programs";
	case FEAT_CLOCK_DATA:
		return "wall-clock time";
	case FEAT_CPUID:
	case FEAT_TOTAL_MEM:
	case FEAT_CPU_TOPOLOGY:
	case FEAT_NUMA_TOPOLOGY:
	case FEAT_PMU_MAPPINGS:
	case FEAT_CACHE:
	case FEAT_MEM_TOPOLOGY:
	case FEAT_CPU_PMU_CAPS:
	case FEAT_HYBRID_TOPOLOGY:
	case FEAT_PMU_CAPS:
		return missing_machine;
	case FEAT_CULPRIT_SYMBOLS:
		return "kernel symbols";
	case FEAT_CULPRIT_VDSO:
		return "vdso";
	case FEAT_CULPRIT_STACKS:
		return "where stacks were lost";
	default:
		return NULL;
	}
}

/* The end of what is missing, and the words of a warning: which features lie behind the cut. */
struct features_missing {
	uint64_t end;
	struct str names;
	unsigned others;
	bool machine; /* said already */
};

static void feature_missing(struct features_missing *missing, unsigned feature, uint64_t end)
{
	const char *holds = feature_holds(feature);

	missing->end = MAX(missing->end, end);
	if (holds == missing_machine && missing->machine)
		return;
	missing->machine |= holds == missing_machine;
	if (holds)
		str_printf(&missing->names, "%s%s", missing->names.len ? ", " : "", holds);
	else
		missing->others++;
}

static void report_missing(struct session *session, struct features_missing *missing)
{
	uint64_t size = session->input.files.data[0].size;

	if (missing->end <= size)
		return;
	if (missing->others)
		str_printf(&missing->names, "%s%u of no use here", missing->names.len ? ", " : "",
			   missing->others);
	session->stats.missing_bytes = missing->end - size;
	snprintf(session->stats.problem, sizeof(session->stats.problem),
		 "cut at byte %llu, behind the samples, which are all there; not there: %s",
		 (unsigned long long)size, str_text(&missing->names));
}

static int read_section(struct session *session, unsigned feature,
			const struct perfdata_section *section)
{
	CLEANUP_FREE uint8_t *data = malloc((size_t)section->size);

	if (!data)
		return -ENOMEM;
	if (input_read_at(session->input.files.data[0].fd, data, (size_t)section->size,
			  section->offset) != (ssize_t)section->size)
		return 0; /* the file shrinks while it is read */
	return session_feature(session, feature, data, (size_t)section->size);
}

/* The table behind the data: one section for each bit that is set, in order. */
int session_features_read(struct session *session)
{
	const struct input_file *file = &session->input.files.data[0];
	uint64_t at = session->header.data.offset + session->header.data.size;
	struct features_missing missing = {0};
	int status = 0;

	if (at < session->header.data.offset || at > file->size)
		return 0; /* cut inside the data: the scan says how much is missing */
	for (unsigned feature = 1; feature < FEAT_BITS && status == 0; feature++) {
		struct perfdata_section section;
		uint8_t raw[16];
		struct reader r = reader_make(raw, sizeof(raw), session->header.swap);

		if (!perfdata_has_feature(&session->header, feature))
			continue;
		at += sizeof(raw);
		if (input_read_at(file->fd, raw, sizeof(raw), at - sizeof(raw)) != sizeof(raw)) {
			feature_missing(&missing, feature, at);
			continue;
		}
		section.offset = reader_u64(&r);
		section.size = reader_u64(&r);
		if (section.size == 0) { /* a mere flag */
			session->info.branches |= feature == FEAT_BRANCH_STACK;
			continue;
		}
		if (section.offset > file->size || section.size > file->size - section.offset)
			feature_missing(&missing, feature,
					section.size > UINT64_MAX - section.offset
						? UINT64_MAX
						: section.offset + section.size);
		else if (feature_wanted(feature) && section.size <= FEATURE_MAX_BYTES)
			status = read_section(session, feature, &section);
	}
	if (status == 0)
		report_missing(session, &missing);
	str_fini(&missing.names);
	return status;
}
