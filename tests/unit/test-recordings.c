/*
 * The reader on real recordings of many kernels and tools. Where another parser's dump of a
 * recording is beside it, the counts of every record type, the sums of sample addresses and periods
 * and all thread names must be the same.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/protobuf.h"
#include "base/util.h"
#include "harness/tap.h"
#include "sample/collect.h"
#include "sample/perfdata.h"
#include "sample/session.h"
#include "sample/walk.h"

#define TYPES 64

struct sums {
	uint64_t records[TYPES]; /* by type, kernel records only */
	uint64_t ips, periods, comms, mapped_bytes;
};

/* What has its dump in "<name>.pb_text", ".pb_text.gz" or ".pr.out.pb_text". */
static const char *const with_dump[] = {
	"perf.data.armv7.perf_3.14-3.8",
	"perf.data.branch-4.14",
	"perf.data.branch_stack_spec",
	"perf.data.busy.0-3.8",
	"perf.data.callgraph-3.4",
	"perf.data.ctx_switch_namespaces-4.14",
	"perf.data.group_desc-4.14",
	"perf.data.hybrid_topology",
	"perf.data.i686-3.4",
	"perf.data.intel_pt-4.14",
	"perf.data.lost_samples-4.4",
	"perf.data.piped.header_features-4.16",
	"perf.data.piped.header_feautres_group_desc-6.8",
	"perf.data.piped.no_attr_ids-4.14",
	"perf.data.piped.target-3.4",
	"perf.data.piped.target.throttled-3.4",
	"perf.data.proc.map.timeout-3.18",
	"perf.data.raw-3.4",
	"perf.data.remmap-3.2",
	"perf.data.singleprocess-3.4",
	"perf.data.systemwide.0-3.4",
	/* and in binary form */
	"perf.data.forkexit-3.8",
	"multi-event-single-process.perf.data",
};

static int read_dump(const char *name, struct str *ret, bool *ret_binary)
{
	static const char *const endings[] = {".pb_text", ".pb_text.gz", ".pr.out.pb_text",
					      ".pb_data.gz", "_data.pb.gz"};
	char file[256], *data;
	size_t size;
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		const char *found;

		snprintf(file, sizeof(file), "sampling/quipper/%.*s%s",
			 (int)(strlen(name) - (i == 4 ? strlen(".data") : 0)), name, endings[i]);
		found = tap_data(file);
		if (!found)
			continue;
		r = file_read(found, 64 << 20, &data, &size, NULL);
		if (r < 0)
			return r;
		*ret_binary = i >= 3;
		if (str_glob("*.gz", endings[i]))
			r = gzip_inflate(data, size, 64 << 20, ret, NULL);
		else
			str_append(ret, data, size);
		free(data);
		return r;
	}
	return r;
}

/* The dump is protobuf text: "events {", in it "  header {" with "    type: N" and one block of
 * fields. */
static void sum_dump(char *text, struct sums *sums)
{
	char *save = NULL;
	bool event = false, header = false, sample = false, comm = false, map = false;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long long number = 0;

		if (line[0] != ' ') {
			event = strcmp(line, "events {") == 0;
			continue;
		}
		if (!event)
			continue;
		if (line[2] != ' ') {
			header = strcmp(line, "  header {") == 0;
			sample = strcmp(line, "  sample_event {") == 0;
			comm = strcmp(line, "  comm_event {") == 0;
			map = strcmp(line, "  mmap_event {") == 0;
		} else if (header && sscanf(line, "    type: %llu", &number) == 1 &&
			   number < TYPES) {
			sums->records[number]++;
		} else if (sample && sscanf(line, "    ip: %llu", &number) == 1) {
			sums->ips += number;
		} else if (sample && sscanf(line, "    period: %llu", &number) == 1) {
			sums->periods += number;
		} else if (map && sscanf(line, "    len: %llu", &number) == 1) {
			sums->mapped_bytes += number;
		} else if (comm && str_prefix(line, "    comm: \"", NULL)) {
			sums->comms += hash_bytes(line + 11, strlen(line + 11) - 1);
		}
	}
}

/* The number of a field inside a field of a message, 0 when it is not there. */
static uint64_t number_in(const struct reader *outer, const struct proto_field *field,
			  uint32_t number)
{
	struct reader r = proto_message(outer, field);
	struct proto_field inner;

	while (proto_next(&r, &inner, NULL) == 1)
		if (inner.number == number)
			return inner.value;
	return 0;
}

/* One event: 1 is its header (type), 2 a mapping (length: 4), 3 a sample (address: 1, period: 8), 4
 * a name (text: 3). */
static void sum_proto_event(struct reader r, struct sums *sums)
{
	struct proto_field field;

	while (proto_next(&r, &field, NULL) == 1) {
		struct reader inner = proto_message(&r, &field);
		struct proto_field text;

		if (field.number == 1 && number_in(&r, &field, 1) < TYPES) {
			sums->records[number_in(&r, &field, 1)]++;
		} else if (field.number == 2) {
			sums->mapped_bytes += number_in(&r, &field, 4);
		} else if (field.number == 3) {
			sums->ips += number_in(&r, &field, 1);
			sums->periods += number_in(&r, &field, 8);
		} else if (field.number == 4) {
			while (proto_next(&inner, &text, NULL) == 1)
				if (text.number == 3)
					sums->comms += hash_bytes(inner.data + text.pos,
								  text.end - text.pos);
		}
	}
}

static void sum_proto(const struct str *dump, struct sums *sums)
{
	struct reader r = reader_make(dump->data, dump->len, false);
	struct proto_field field;

	while (proto_next(&r, &field, NULL) == 1)
		if (field.number == 2)
			sum_proto_event(proto_message(&r, &field), sums);
}

static int add_sample(void *arg, const struct sample *sample)
{
	struct sums *sums = arg;

	sums->ips += sample->frames[0].ip;
	sums->periods += sample->period;
	return 0;
}

static void sum_records(const char *file, struct sums *sums)
{
	struct perfdata_header header;
	struct record record;
	struct walk walk;
	uint8_t raw[PERFDATA_HEADER_BYTES];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, raw, sizeof(raw));

	if (n < 16 || perfdata_header_decode(raw, (size_t)n, &header, NULL) < 0 ||
	    walk_init(&walk, fd, header.pipe ? 16 : header.data.offset,
		      header.pipe ? (uint64_t)lseek(fd, 0, SEEK_END)
				  : header.data.offset + header.data.size,
		      header.swap) < 0) {
		EXPECT(false);
		return;
	}
	while (walk_next(&walk, &record) == 1) {
		struct perfdata_comm comm;
		struct perfdata_mmap map;

		if (record.header.type < TYPES)
			sums->records[record.header.type]++;
		if ((record.header.type == REC_MMAP || record.header.type == REC_MMAP2) &&
		    perfdata_mmap_decode(record.header.type, record.header.misc, record.body,
					 record.body_size, header.swap, &map))
			sums->mapped_bytes += map.len;
		if (record.header.type == REC_COMM &&
		    perfdata_comm_decode(record.header.misc, record.body, record.body_size,
					 header.swap, &comm))
			sums->comms += hash_bytes(comm.comm, strlen(comm.comm));
	}
	walk_fini(&walk);
	close(fd);
}

TEST(records_are_what_another_parser_saw)
{
	SKIP_IF(!tap_data("sampling/quipper"), "no recordings: set CULPRIT_TEST_DATA");
	for (size_t i = 0; i < ARRAY_LEN(with_dump); i++) {
		struct sums want = {0}, have = {0};
		struct session *session;
		struct err err = {0};
		struct str dump = {0};
		char name[256];
		const char *file;
		bool binary;

		snprintf(name, sizeof(name), "sampling/quipper/%s", with_dump[i]);
		if (read_dump(with_dump[i], &dump, &binary) < 0 || !(file = tap_data(name))) {
			EXPECT_STR(name, "readable");
			continue;
		}
		if (binary)
			sum_proto(&dump, &want);
		else
			sum_dump(dump.data, &want);
		str_fini(&dump);
		sum_records(file, &have);
		if (session_open(file, &session, &err) < 0) {
			EXPECT_STR(err.text, "");
			continue;
		}
		EXPECT_INT(session_run(session, add_sample, &have, &err), 0);
		EXPECT_INT(session_stats(session)->samples, want.records[REC_SAMPLE]);
		for (unsigned type = 0; type < TYPES; type++)
			/* The dump joins mappings that touch, and leaves out BPF_EVENT. */
			if (type == REC_MMAP ? have.records[type] < want.records[type]
					     : type != REC_BPF_EVENT &&
						       have.records[type] != want.records[type])
				tap_expect(false, __FILE__, __LINE__,
					   "%s: type %u: have %llu, want %llu", name, type,
					   (unsigned long long)have.records[type],
					   (unsigned long long)want.records[type]);
		EXPECT(have.comms == want.comms);
		EXPECT(have.mapped_bytes == want.mapped_bytes);
		EXPECT(have.ips == want.ips);
		/* Without PERIOD in the samples the dump has none, and we take the attribute's. */
		if (want.periods && have.periods != want.periods)
			tap_expect(false, __FILE__, __LINE__, "%s: periods: have %llu, want %llu",
				   name, (unsigned long long)have.periods,
				   (unsigned long long)want.periods);
		session_close(session);
	}
}

/* Samples, or the error that opening must give. */
static const struct {
	const char *file;
	long long outcome;
} outcomes[] = {
	{"sampling/quipper/multi-event-single-process.perf.data", 39217},
	{"sampling/quipper/multi-event-single-process.perf_data.pb.gz", -EINVAL},
	{"sampling/quipper/perf.data.armv7.perf_3.14-3.8", 700},
	{"sampling/quipper/perf.data.branch-4.14", 13},
	{"sampling/quipper/perf.data.branch_stack_spec", 8},
	{"sampling/quipper/perf.data.busy.0-3.8", 4},
	{"sampling/quipper/perf.data.callgraph-3.4", 1548},
	{"sampling/quipper/perf.data.callgraph_and_branch-3.4", 923},
	{"sampling/quipper/perf.data.ctx_switch_namespaces-4.14", 2},
	{"sampling/quipper/perf.data.forkexit-3.8", 10335},
	{"sampling/quipper/perf.data.group_desc-4.14", 13},
	{"sampling/quipper/perf.data.hybrid_topology", 7},
	{"sampling/quipper/perf.data.i686-3.4", 703},
	{"sampling/quipper/perf.data.intel_pt-4.14", 15},
	{"sampling/quipper/perf.data.lost_samples-4.4", 191},
	{"sampling/quipper/perf.data.piped.corrupted.zero_size_sample-3.2", 0},
	{"sampling/quipper/perf.data.piped.header_features-4.16", 2},
	{"sampling/quipper/perf.data.piped.header_feautres_group_desc-6.8", 21},
	{"sampling/quipper/perf.data.piped.hw_and_sw-3.4", 4275},
	{"sampling/quipper/perf.data.piped.no_attr_ids-4.14", 7},
	{"sampling/quipper/perf.data.piped.target-3.4", 1414},
	{"sampling/quipper/perf.data.piped.target.throttled-3.4", 228},
	{"sampling/quipper/perf.data.proc.map.timeout-3.18", 8},
	{"sampling/quipper/perf.data.raw-3.4", 441},
	{"sampling/quipper/perf.data.remmap-3.2", 198},
	{"sampling/quipper/perf.data.singleprocess-3.4", 77},
	{"sampling/quipper/perf.data.systemwide.0-3.4", 507},
	{"sampling/hotspot/perf.data.PerfFormatLost", 68}, /* 34 of a leader that reads two */
	{"sampling/hotspot/perf.data.broken.gz", -EINVAL},
	{"sampling/hotspot/perf.data.true.v1", 0},
	{"sampling/hotspot/perf.data.true.v2.gz", 1},
	{"sampling/perfparser/contentsize.data", 69},
	{"sampling/perfparser/probe.data.file", 1},
	{"sampling/perfparser/probe.data.stream", 1},
	{"sampling/perfparser/cpp-inlining/cpp-inlining.perf.data", 539},
	{"sampling/simpleperf/debug_unwind_small_map_range.data", 1},
	{"sampling/simpleperf/generated_by_linux_perf.data", 156},
	{"sampling/simpleperf/inject_lbr.data", -EINVAL},
	{"sampling/simpleperf/invalid_perf.data", -EINVAL},
	{"sampling/simpleperf/perf.data", 2409},
	{"sampling/simpleperf/perf_b.data", 150},
	{"sampling/simpleperf/perf_display_bitmaps.data", 525},
	{"sampling/simpleperf/perf_etm.data", 0},
	{"sampling/simpleperf/perf_g_fp.data", 10},
	{"sampling/simpleperf/perf_lbr.data", 19},
	{"sampling/simpleperf/perf_need_proguard_mapping.data", 1},
	{"sampling/simpleperf/perf_no_unwind.data", 8},
	{"sampling/simpleperf/perf_test_max_stack_and_percent_limit.data", 121},
	{"sampling/simpleperf/perf_with_callchain_record.data", 21},
	{"sampling/simpleperf/perf_with_ip_zero_in_callchain.data", 1},
	{"sampling/simpleperf/perf_with_jit_symbol.data", 151},
	{"sampling/simpleperf/perf_with_kernel_symbols_available_true.data", 228},
	{"sampling/simpleperf/perf_with_long_callchain.data", 1},
	{"sampling/simpleperf/perf_with_meta_info.data", 1},
	{"sampling/simpleperf/perf_with_mini_debug_info.data", 1151},
	{"sampling/simpleperf/perf_with_multiple_pids_and_tids.data", 533},
	{"sampling/simpleperf/perf_with_symbols.data", 935},
	{"sampling/simpleperf/perf_with_trace_offcpu_v2.data", 304},
	{"sampling/simpleperf/perf_with_tracepoint_event.data", 45},
	{"sampling/simpleperf/perf_with_two_event_types.data", 10},
	{"sampling/simpleperf/runtest_two_functions_arm64_perf.data", 2},
	{"sampling/simpleperf/two_process_perf.data", 271},
	{"sampling/perfdata/sleep.compressed.data", 8},
	{"sampling/perfdata/sleep.compressed.pipe.data", 8},
	{"sampling/perfdata/sleep.compressed2.data", 7},
	{"sampling/perfdata/sleep.data", 7},
	{"sampling/autofdo/perf-kernel.data", 24},
	{"sampling/autofdo/ro_sample.perf", 13},
};

static int count_sample(void *arg, const struct sample *sample)
{
	++*(long long *)arg;
	return 0;
}

static long long open_and_count(const char *file, struct err *err)
{
	struct session *session;
	long long count = 0;
	int r = session_open(file, &session, err);

	if (r < 0)
		return r;
	r = session_run(session, count_sample, &count, err);
	session_close(session);
	return r < 0 ? r : count;
}

static bool has_outcome(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
		if (strcmp(outcomes[i].file, name) == 0)
			return true;
	return false;
}

/* No recording of a folder is left out above. */
static void expect_outcomes_of(const char *folder)
{
	const char *path = tap_data(folder);
	DIR *dir = path ? opendir(path) : NULL;
	struct dirent *entry;

	EXPECT(dir);
	while (dir && (entry = readdir(dir))) {
		char name[512], magic[8] = "";
		CLEANUP_CLOSE int fd = -1;

		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		path = tap_data(name);
		fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd < 0 || read(fd, magic, sizeof(magic)) != sizeof(magic))
			continue;
		if ((memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "PERFFILE", 8) == 0 ||
		     str_glob("*.data", name)) &&
		    !has_outcome(name))
			EXPECT_STR(name, "in the table of outcomes");
	}
	if (dir)
		closedir(dir);
}

TEST(every_recording_has_its_outcome)
{
	static const char *const folders[] = {
		"sampling/quipper",    "sampling/hotspot",
		"sampling/perfparser", "sampling/perfparser/cpp-inlining",
		"sampling/simpleperf", "sampling/perfdata",
		"sampling/autofdo"};
	unsigned opened = 0;

	SKIP_IF(!tap_data("sampling/quipper"), "no recordings: set CULPRIT_TEST_DATA");
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		expect_outcomes_of(folders[i]);
	for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
		const char *file = tap_data(outcomes[i].file);
		struct err err = {0};
		long long outcome;

		if (!file) {
			EXPECT_STR(outcomes[i].file, "readable");
			continue;
		}
		outcome = open_and_count(file, &err);
		tap_expect(outcome == outcomes[i].outcome, __FILE__, __LINE__,
			   "%s: have %lld, want %lld", file, outcome, outcomes[i].outcome);
		opened += outcome >= 0;
		if (outcome < 0)
			EXPECT(strchr(err.text, '\n') == NULL &&
			       strstr(err.text, file) == err.text);
	}
	printf("# %zu files: %u opened, %zu refused\n", ARRAY_LEN(outcomes), opened,
	       ARRAY_LEN(outcomes) - opened);
}

TEST(files_made_to_crash_parsers_are_refused_or_empty)
{
	const char *folder = tap_data("sampling/fuzz_perfdata");
	struct dirent *entry;
	unsigned seen = 0;
	DIR *dir;

	SKIP_IF(!folder, "no recordings: set CULPRIT_TEST_DATA");
	dir = opendir(folder);
	ASSERT(dir);
	while ((entry = readdir(dir))) {
		char file[4096];
		struct err err = {0};

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
		EXPECT(open_and_count(file, &err) <= 0);
		seen++;
	}
	closedir(dir);
	EXPECT_INT(seen, 19);
}

TEST(cut_recording_shows_what_is_before_the_cut)
{
	const char *file = tap_data("sampling/quipper/perf.data.systemwide.0-3.4");
	char copy[64], *data;
	long long before = 507;
	size_t size;
	int fd;

	SKIP_IF(!file, "no recordings: set CULPRIT_TEST_DATA");
	ASSERT(file_read(file, 1 << 20, &data, &size, NULL) == 0);
	snprintf(copy, sizeof(copy), "%s/cut", tap_dir());
	fd = open(copy, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ASSERT(fd >= 0 && fd_write_all(fd, data, size) == 0);
	while (size > 97) {
		struct err err = {0};
		long long samples;

		size -= 97;
		if (ftruncate(fd, (off_t)size) < 0)
			break;
		samples = open_and_count(copy, &err);
		/* Each sample is larger than nothing and smaller than the step. */
		if (samples > before || (samples < before - 3 && samples >= 0) ||
		    (samples < 0 && before > 0)) {
			EXPECT_INT(samples, before);
			break;
		}
		before = samples;
	}
	EXPECT(size <= 97);
	close(fd);
	free(data);
}

/* simpleperf's folded stacks: the sums by thread name. */
TEST(collected_totals_agree_with_folded_stacks)
{
	static const struct {
		const char *file, *event, *comm;
		long long total;
	} cases[] = {
		{"sampling/simpleperf/perf_with_two_event_types.data", "cycles", "simpleperf",
		 70372},
		{"sampling/simpleperf/perf_with_two_event_types.data", "cycles", "sleep", 3913545},
		{"sampling/simpleperf/perf_with_two_event_types.data", "cpu-clock", "sleep",
		 500000},
		{"sampling/simpleperf/perf_with_jit_symbol.data", NULL, "BusyThread", 19227293},
	};

	SKIP_IF(!tap_data("sampling/simpleperf"), "no recordings: set CULPRIT_TEST_DATA");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct collect_options options = {.event = cases[i].event, .comm = cases[i].comm};
		struct session *session;
		struct profile profile;
		long long total = 0;
		uint32_t types;

		ASSERT(session_open(tap_data(cases[i].file), &session, NULL) == 0 &&
		       profile_init(&profile) == 0);
		EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
		types = (uint32_t)profile.value_types.len;
		for (size_t s = 0; s < profile.samples.len; s++)
			total += profile.values.data[s * types + profile_default_value(&profile)];
		EXPECT_INT(total, cases[i].total);
		profile_fini(&profile);
		session_close(session);
	}
}
