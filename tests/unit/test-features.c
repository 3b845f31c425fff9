/*
 * The header's features, each built here in both byte orders and read back; then with every byte
 * damaged. The real ones come from recordings of many kernels.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/perfdata.h"
#include "sample/session.h"

#define TYPE (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD)

/* A length that covers padding, and the text. */
static void put_string(struct builder *b, const char *text)
{
	put32(b, 64);
	put_text(b, text, 64);
}

static void put_list(struct builder *b, const char *first, const char *second)
{
	put32(b, second ? 2 : 1);
	put_string(b, first);
	if (second)
		put_string(b, second);
}

/* The bytes of one feature, as perf writes them. */
static void put_feature(struct builder *b, unsigned feature)
{
	switch (feature) {
	case FEAT_HOSTNAME:
		put_string(b, "host");
		break;
	case FEAT_OSRELEASE:
		put_string(b, "6.1.0");
		break;
	case FEAT_VERSION:
		put_string(b, "6.2");
		break;
	case FEAT_ARCH:
		put_string(b, "s390x");
		break;
	case FEAT_NRCPUS:
		put32(b, 4);
		put32(b, 3);
		break;
	case FEAT_CPUDESC:
		put_string(b, "a CPU");
		break;
	case FEAT_CPUID:
		put_string(b, "GenuineIntel,6,85,4");
		break;
	case FEAT_TOTAL_MEM:
		put64(b, 16384);
		break;
	case FEAT_CMDLINE:
		put_list(b, "perf", "record");
		break;
	case FEAT_EVENT_DESC:
		put32(b, 1);
		put32(b, 64);
		put_text(b, "", 64);
		put32(b, 1);
		put_string(b, "cpu-clock:u");
		put64(b, 7);
		break;
	case FEAT_CPU_TOPOLOGY:
		put_list(b, "0-1", "2-3");
		put_list(b, "0,2", "1,3");
		for (uint32_t cpu = 0; cpu < 4; cpu++) {
			put32(b, cpu % 2);
			put32(b, cpu / 2);
		}
		put_list(b, "0-3", NULL);
		break;
	case FEAT_NUMA_TOPOLOGY:
		put32(b, 2);
		for (uint32_t node = 0; node < 2; node++) {
			put32(b, node);
			put64(b, 2048 + 1024 * node);
			put64(b, 1000);
			put_string(b, node ? "2-3" : "0-1");
		}
		break;
	case FEAT_PMU_MAPPINGS:
		put32(b, 2);
		put32(b, 4);
		put_string(b, "cpu");
		put32(b, 1);
		put_string(b, "software");
		break;
	case FEAT_GROUP_DESC:
		put32(b, 1);
		put_string(b, "{anon_group}");
		put32(b, 0);
		put32(b, 1);
		break;
	case FEAT_CACHE:
		put32(b, 1);
		put32(b, 1);
		put32(b, 1);
		put32(b, 64);
		put32(b, 64);
		put32(b, 8);
		put_string(b, "Data");
		put_string(b, "32K");
		put_string(b, "0-1");
		break;
	case FEAT_SAMPLE_TIME:
		put64(b, 1500000000);
		put64(b, 2750000000);
		break;
	case FEAT_MEM_TOPOLOGY:
		put64(b, 1);
		put64(b, 128 << 20);
		put64(b, 1);
		put64(b, 0);
		put64(b, 70);
		put64(b, 70);
		put64(b, UINT64_MAX);
		put64(b, 0x3f);
		break;
	case FEAT_CLOCKID:
		put64(b, 4);
		break;
	case FEAT_DIR_FORMAT:
		put64(b, 1);
		break;
	case FEAT_BPF_PROG_INFO:
		put32(b, 1);
		put32(b, 104);
		put32(b, 8);
		put64(b, 0);
		put32(b, 1);
		put32(b, 42);
		put_text(b, "", 56);
		put_text(b, "handle_exec", 40);
		put64(b, 0);
		break;
	case FEAT_BPF_BTF:
		put32(b, 1);
		put32(b, 9);
		put32(b, 16);
		put_text(b, "", 16);
		break;
	case FEAT_COMPRESSED:
		put32(b, 1);
		put32(b, 1);
		put32(b, 3);
		put32(b, 8);
		put32(b, 4096);
		break;
	case FEAT_CPU_PMU_CAPS:
		put32(b, 2);
		put_string(b, "branches");
		put_string(b, "32");
		put_string(b, "max_precise");
		put_string(b, "3");
		break;
	case FEAT_CLOCK_DATA:
		put32(b, 1);
		put32(b, 1);
		put64(b, UINT64_C(1700000000123456789));
		put64(b, 1000);
		break;
	case FEAT_HYBRID_TOPOLOGY:
		put32(b, 2);
		put_string(b, "cpu_core");
		put_string(b, "0-7");
		put_string(b, "cpu_atom");
		put_string(b, "8-15");
		break;
	case FEAT_PMU_CAPS:
		put32(b, 1);
		put32(b, 1);
		put_string(b, "branches");
		put_string(b, "32");
		put_string(b, "cpu_core");
		break;
	default: /* BRANCH_STACK, STAT, AUXTRACE: a flag */
		break;
	}
}

static const unsigned features[] = {
	FEAT_HOSTNAME,     FEAT_OSRELEASE,    FEAT_VERSION,       FEAT_ARCH,
	FEAT_NRCPUS,       FEAT_CPUDESC,      FEAT_CPUID,         FEAT_TOTAL_MEM,
	FEAT_CMDLINE,      FEAT_EVENT_DESC,   FEAT_CPU_TOPOLOGY,  FEAT_NUMA_TOPOLOGY,
	FEAT_BRANCH_STACK, FEAT_PMU_MAPPINGS, FEAT_GROUP_DESC,    FEAT_AUXTRACE,
	FEAT_STAT,         FEAT_CACHE,        FEAT_SAMPLE_TIME,   FEAT_MEM_TOPOLOGY,
	FEAT_CLOCKID,      FEAT_DIR_FORMAT,   FEAT_BPF_PROG_INFO, FEAT_BPF_BTF,
	FEAT_COMPRESSED,   FEAT_CPU_PMU_CAPS, FEAT_CLOCK_DATA,    FEAT_HYBRID_TOPOLOGY,
	FEAT_PMU_CAPS,
};

static const struct {
	const char *key, *text;
} facts[] = {
	{"cpu_id", "GenuineIntel,6,85,4"},
	{"memory_kib", "16384 KiB"},
	{"cpu_topology", "sockets 0-1, 2-3; cores 0,2, 1,3; dies 0-3"},
	{"numa", "node 0: 2 MiB, CPUs 0-1; node 1: 3 MiB, CPUs 2-3"},
	{"pmus", "cpu 4, software 1"},
	{"groups", "{cpu-clock:u}"},
	{"caches", "L1 8-way Data 32K lines of 64, CPUs 0-1"},
	{"sampled", "1.500000 to 2.750000 s"},
	{"memory_blocks", "blocks of 128 MiB; node 0: 70"},
	{"clock_resolution_ns", "4 ns"},
	{"directory_format", "1"},
	{"bpf_programs", "42 handle_exec"},
	{"bpf_types", "1 descriptions, 16 bytes"},
	{"compression", "zstd, level 3, 8 : 1"},
	{"cpu_pmu_caps", "branches=32, max_precise=3"},
	{"core_types", "cpu_core: CPUs 0-7; cpu_atom: CPUs 8-15"},
	{"pmu_caps", "cpu_core: branches=32"},
};

static void put_one_sample(struct builder *b)
{
	put_sample(b, REC_MISC_USER, 10, 10, 2000, 0x1000, NULL);
}

static int no_sample(void *arg, const struct sample *sample)
{
	(void)sample;
	++*(unsigned *)arg;
	return 0;
}

static void expect_everything(const char *file)
{
	const struct session_info *info;
	const struct session_fact *have;
	struct session *session = NULL;
	unsigned samples = 0;
	uint32_t count;

	EXPECT_INT(session_open(file, &session, NULL), 0);
	if (!session)
		return;
	EXPECT_INT(session_run(session, no_sample, &samples, NULL), 0);
	EXPECT_INT(samples, 1);
	info = session_info(session);
	EXPECT_STR(info->hostname, "host");
	EXPECT_STR(info->os_release, "6.1.0");
	EXPECT_STR(info->version, "6.2");
	EXPECT_STR(info->arch, "s390x");
	EXPECT_STR(info->cpu_desc, "a CPU");
	EXPECT_STR(info->cmdline, "perf record");
	EXPECT_INT(info->cpus_configured, 4);
	EXPECT_INT(info->cpus_online, 3);
	EXPECT_INT(info->clock, 1);
	/* The sample is 1 us behind the moment at which both clocks were read. */
	EXPECT(info->wall_time_ns == UINT64_C(1700000000123457789));
	EXPECT(info->compressed);
	EXPECT_STR(session_events(session, &count)[0].name, "cpu-clock:u");
	have = session_facts(session, &count);
	EXPECT_INT(count, ARRAY_LEN(facts));
	for (uint32_t i = 0; i < MIN(count, (uint32_t)ARRAY_LEN(facts)); i++) {
		EXPECT_STR(have[i].key, facts[i].key);
		EXPECT_STR(have[i].text, facts[i].text);
	}
	session_close(session);
}

TEST(every_feature_in_both_byte_orders)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};

		file_begin(&b, TYPE);
		put_one_sample(&b);
		file_end(&b);
		put_features(&b, features, ARRAY_LEN(features), put_feature);
		expect_everything(write_recording(b.bytes.data, b.bytes.len));
		str_fini(&b.bytes);
	}
}

TEST(every_feature_through_a_pipe)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};

		pipe_begin(&b, TYPE);
		for (size_t i = 0; i < ARRAY_LEN(features); i++) {
			record_begin(&b, REC_HEADER_FEATURE, 0);
			put64(&b, features[i]);
			put_feature(&b, features[i]);
			record_end(&b);
		}
		put_one_sample(&b);
		expect_everything(write_recording(b.bytes.data, b.bytes.len));
		str_fini(&b.bytes);
	}
}

/* Counts and lengths that lie: less is known, the sample stays, memory and time are bounded. */
TEST(damaged_features_only_say_less)
{
	static const uint8_t values[] = {0x00, 0x7f, 0xff};

	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		size_t first;

		file_begin(&b, TYPE);
		put_one_sample(&b);
		file_end(&b);
		first = put_features(&b, features, ARRAY_LEN(features), put_feature);
		for (size_t at = first; at < b.bytes.len; at++) {
			char byte = b.bytes.data[at];

			for (size_t v = 0; v < ARRAY_LEN(values); v++) {
				struct session *session = NULL;

				/* Texts are long; every 16th byte of them is enough. */
				if (at % 16 > 8 && byte == 0)
					continue;
				b.bytes.data[at] = (char)values[v];
				if (session_open(write_recording(b.bytes.data, b.bytes.len),
						 &session, NULL) != 0) {
					EXPECT_INT(at, 0);
					continue;
				}
				if (session_stats(session)->samples != 1)
					EXPECT_INT(at, 0);
				session_close(session);
			}
			b.bytes.data[at] = byte;
		}
		str_fini(&b.bytes);
	}
}

/* Each section cut short by its own length. */
TEST(cut_features_only_say_less)
{
	struct builder b = {0};
	size_t table;

	file_begin(&b, TYPE);
	put_one_sample(&b);
	file_end(&b);
	table = b.bytes.len;
	put_features(&b, features, ARRAY_LEN(features), put_feature);
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		uint64_t size;

		memcpy(&size, b.bytes.data + table + 16 * i + 8, 8);
		for (uint64_t less = 1; less <= MIN(size, (uint64_t)9); less++) {
			struct session *session = NULL;

			patch64(&b, table + 16 * i + 8, size - less);
			EXPECT_INT(session_open(write_recording(b.bytes.data, b.bytes.len),
						&session, NULL),
				   0);
			session_close(session);
		}
		patch64(&b, table + 16 * i + 8, size);
	}
	str_fini(&b.bytes);
}

static const char *fact_of(const struct session *session, const char *key)
{
	uint32_t count;
	const struct session_fact *have = session_facts(session, &count);

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(have[i].key, key) == 0)
			return have[i].text;
	return "";
}

TEST(features_of_real_recordings)
{
	static const struct {
		const char *file, *key, *text;
	} cases[] = {
		{"quipper/perf.data.hybrid_topology", "core_types",
		 "cpu_core: CPUs 0-3; cpu_atom: CPUs 4-11"},
		{"quipper/perf.data.group_desc-4.14", "groups", "{cache-references,branch-misses}"},
		{"quipper/perf.data.piped.header_features-4.16", "cpu_topology",
		 "sockets 0-1; cores 0-1"},
		{"simpleperf/perf_with_meta_info.data", "android_version", "11"},
	};

	SKIP_IF(!tap_data("sampling/quipper"), "no recordings: set CULPRIT_TEST_DATA");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct session *session = NULL;
		char name[256];

		snprintf(name, sizeof(name), "sampling/%s", cases[i].file);
		ASSERT(tap_data(name));
		EXPECT_INT(session_open(tap_data(name), &session, NULL), 0);
		if (session)
			EXPECT_STR(fact_of(session, cases[i].key), cases[i].text);
		session_close(session);
	}
}
