/*
 * Records beyond the story of a process: groups of counters, cgroups, BPF programs that come and
 * go, old headers. Small files built here, in both byte orders.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/collect.h"
#include "sample/perfdata.h"
#include "sample/session.h"

#define TYPE  (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD)
#define GROUP (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID | SAMPLE_READ)

/* "event ip period;" */
static int log_sample(void *arg, const struct sample *sample)
{
	struct str *text = arg;

	str_printf(text, "%u %llx %llu;", sample->event, (unsigned long long)sample->frames[0].ip,
		   (unsigned long long)sample->period);
	return 0;
}

static void replay_to(const struct str *bytes, struct str *text, uint64_t *ret_samples)
{
	struct session *session = NULL;
	struct err err = {0};

	if (session_open(write_recording(bytes->data, bytes->len), &session, &err) < 0) {
		EXPECT_STR(err.text, "");
		return;
	}
	EXPECT_INT(session_run(session, log_sample, text, &err), 0);
	if (ret_samples)
		*ret_samples = session_stats(session)->samples;
	session_close(session);
}

/* A sample of the leader, id 7, that reads all three counters. */
static void put_group(struct builder *b, uint32_t tid, uint64_t ip, uint64_t clock, uint64_t faults,
		      uint64_t switches)
{
	const uint64_t values[] = {clock, faults, switches};

	record_begin(b, REC_SAMPLE, REC_MISC_USER);
	put64(b, ip);
	put32(b, 10);
	put32(b, tid);
	put64(b, 100);
	put64(b, 7);
	put64(b, 3);
	if (b->read_format & READ_TIME_ENABLED)
		put64(b, 1);
	if (b->read_format & READ_TIME_RUNNING)
		put64(b, 1);
	for (uint64_t i = 0; i < 3; i++) {
		put64(b, values[i]);
		put64(b, 7 + i);
		if (b->read_format & READ_LOST)
			put64(b, 0);
	}
	record_end(b);
}

/* What a counter grew by since the reading before is the weight; one that stood still gives
 * nothing. */
TEST(leader_sampling_gives_what_counters_grew_by)
{
	static const uint64_t formats[] = {
		READ_GROUP | READ_ID,
		READ_GROUP | READ_ID | READ_TIME_ENABLED | READ_TIME_RUNNING,
		READ_GROUP | READ_ID | READ_LOST,
		READ_GROUP | READ_ID | READ_LOST | READ_TIME_ENABLED,
	};

	for (unsigned i = 0; i < 4 * ARRAY_LEN(formats); i++) {
		struct builder b = {.big = i & 1, .events = 3, .read_format = formats[i / 4]};
		struct str text = {0};
		uint64_t samples = 0;

		if (i & 2)
			pipe_begin(&b, GROUP);
		else
			file_begin(&b, GROUP);
		put_group(&b, 10, 0x1000, 500, 3, 0);
		put_group(&b, 11, 0x2000, 900, 3, 0);
		put_group(&b, 10, 0x3000, 1000, 5, 1);
		put_group(&b, 10, 0x4000, 20, 1, 1); /* reset: what it grew by is not known */
		put_group(&b, 10, 0x5000, 30, 1, 2);
		if (!(i & 2))
			file_end(&b);
		replay_to(&b.bytes, &text, &samples);
		EXPECT_STR(str_text(&text), "0 1000 500;1 1000 3;0 2000 400;0 3000 100;1 3000 2;"
					    "2 3000 1;0 5000 10;2 5000 1;");
		EXPECT_INT(samples, 5);
		str_fini(&text);
		str_fini(&b.bytes);
	}
}

/* Threads that inherit an event share its id, not its counter. */
TEST(leader_sampling_of_inherited_events)
{
	struct builder b = {.events = 3, .read_format = READ_GROUP | READ_ID, .inherit = true};
	struct str text = {0};

	file_begin(&b, GROUP);
	put_group(&b, 10, 0x1000, 500, 3, 0);
	put_group(&b, 11, 0x2000, 100, 0, 0);
	put_group(&b, 10, 0x3000, 600, 3, 0);
	put_group(&b, 11, 0x4000, 250, 1, 0);
	file_end(&b);
	replay_to(&b.bytes, &text, NULL);
	EXPECT_STR(str_text(&text),
		   "0 1000 500;1 1000 3;0 2000 100;0 3000 100;0 4000 150;1 4000 1;");
	str_fini(&text);
	str_fini(&b.bytes);
}

/* More samples than one chunk of the file has: counters go on across its border, in all readers. */
TEST(leader_sampling_of_a_long_recording)
{
	struct builder b = {.events = 3, .read_format = READ_GROUP | READ_ID};
	struct collect_options options = {.no_symbols = true};
	struct session *session = NULL;
	struct profile profile;
	int64_t clock = 0, faults = 0;

	file_begin(&b, GROUP);
	for (uint64_t i = 1; i <= 40000; i++)
		put_group(&b, 10, 0x1000 + i % 100, 10 * i, i / 2, 0);
	file_end(&b);
	EXPECT(b.bytes.len > 3 << 20);
	ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, NULL) == 0);
	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	EXPECT_INT(profile.value_types.len, 4); /* context-switches have no samples */
	EXPECT_INT(profile_total(&profile, 1, &clock), 0);
	EXPECT_INT(profile_total(&profile, 3, &faults), 0);
	EXPECT_INT(clock, 400000);
	EXPECT_INT(faults, 20000);
	profile_fini(&profile);
	session_close(session);
	str_fini(&b.bytes);
}

/* A count of members that lies. */
TEST(a_damaged_group_is_no_sample_of_others)
{
	struct builder b = {.events = 3, .read_format = READ_GROUP | READ_ID};
	struct str text = {0};

	file_begin(&b, GROUP);
	put_group(&b, 10, 0x1000, 500, 3, 0);
	patch64(&b, b.bytes.len - 56, UINT64_MAX / 16);
	put_group(&b, 10, 0x2000, 600, 3, 0);
	file_end(&b);
	replay_to(&b.bytes, &text, NULL);
	EXPECT_STR(str_text(&text), "0 1000 1;0 2000 600;1 2000 3;");
	str_fini(&text);
	str_fini(&b.bytes);
}

/* The first version's magic is the same text on all machines. */
TEST(headers_of_the_first_version)
{
	for (int big = 0; big < 2; big++) {
		for (int bare = 0; bare < 2; bare++) {
			struct builder b = {.big = big};
			struct str text = {0};

			file_begin(&b, TYPE);
			put_sample(&b, REC_MISC_USER, 10, 10, 100, 0x1000, NULL);
			file_end(&b);
			memcpy(b.bytes.data, "PERFFILE", 8);
			if (bare) { /* ends before the bits of the features: what stands there is
				       none */
				patch64(&b, 8, 72);
				b.bytes.data[72] = b.bytes.data[79] = 0x0c;
			}
			replay_to(&b.bytes, &text, NULL);
			EXPECT_STR(str_text(&text), "0 1000 1000;");
			str_fini(&text);
			str_fini(&b.bytes);
		}
	}
}

/* The program "a" leaves, and "b" takes its address: samples between are the kernel's. */
static void put_ksymbol(struct builder *b, uint64_t addr, uint32_t len, uint16_t flags,
			const char *name, uint64_t time)
{
	record_begin(b, REC_KSYMBOL, 0);
	put64(b, addr);
	put32(b, len);
	put16(b, 1);
	put16(b, flags);
	put_text(b, name, 40);
	put_sample_id(b, 0, 0, time);
	record_end(b);
}

static const char *function_of(const struct profile *profile, size_t sample)
{
	const struct profile_location *location =
		&profile->locations
			 .data[profile->stacks.data[profile->samples.data[sample].stack].location];

	return location->line_count
		       ? strtab_text(
				 &profile->strings,
				 profile->functions
					 .data[profile->lines.data[location->first_line].function]
					 .name)
		       : "?";
}

static void collect_names_to(const struct str *bytes, const struct collect_options *options,
			     struct profile *profile)
{
	struct session *session = NULL;

	EXPECT_INT(session_open(write_recording(bytes->data, bytes->len), &session, NULL), 0);
	EXPECT_INT(profile_init(profile), 0);
	if (session)
		EXPECT_INT(collect_profile(session, options, profile, NULL), 0);
	session_close(session);
}

#define PROGRAM UINT64_C(0xffffffffc0001000)

TEST(programs_of_bpf_come_and_go)
{
	static const uint64_t times[] = {110, 210, 310, 410};

	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct collect_options options = {0};
		struct profile profile;
		struct str text = {0};

		file_begin(&b, TYPE);
		put_mmap(&b, REC_MISC_KERNEL, UINT32_MAX, 0, UINT64_MAX, 0,
			 "[kernel.kallsyms]_text", 0);
		/* Another CPU's records come first in the file. */
		for (size_t i = 0; i < ARRAY_LEN(times); i++)
			put_sample(&b, REC_MISC_KERNEL, 10, 10, times[i], PROGRAM + 0x10, NULL);
		put_ksymbol(&b, PROGRAM, 0x100, 0, "bpf_prog_0123456789abcdef_first", 100);
		put_ksymbol(&b, PROGRAM, 0x100, KSYMBOL_UNREGISTER,
			    "bpf_prog_0123456789abcdef_first", 200);
		put_ksymbol(&b, PROGRAM - 0x800, 0x1000, 0, "bpf_trampoline_42", 300);
		put_ksymbol(&b, PROGRAM, 0x80, 0, "bpf_prog_00000000000000ff_second", 400);
		file_end(&b);
		collect_names_to(&b.bytes, &options, &profile);
		for (size_t i = 0; i < profile.samples.len; i++)
			str_printf(&text, "%s;", function_of(&profile, i));
		EXPECT_STR(str_text(&text), "bpf_prog_0123456789abcdef_first;?;bpf_trampoline_42;"
					    "bpf_prog_00000000000000ff_second;");
		str_fini(&text);
		profile_fini(&profile);
		str_fini(&b.bytes);
	}
}

/* count pairs of device and inode: 100 and following. */
static void put_namespaces(struct builder *b, uint32_t pid, uint32_t tid, uint64_t count,
			   uint64_t first, uint64_t time)
{
	record_begin(b, REC_NAMESPACES, 0);
	put32(b, pid);
	put32(b, tid);
	put64(b, count);
	for (uint64_t i = 0; i < MIN(count, 7u); i++) {
		put64(b, 4);
		put64(b, first + i);
	}
	put_sample_id(b, pid, tid, time);
	record_end(b);
}

/* A process goes into others, a thread of it has none of its own, another process tells nothing. */
TEST(namespaces_are_labels)
{
	static const struct {
		uint32_t pid, tid;
		uint64_t time;
	} samples[] = {{10, 10, 110}, {10, 10, 210}, {10, 11, 220}, {12, 12, 230}, {14, 14, 240}};

	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct collect_options options = {
			.no_symbols = true, .tid = true, .namespaces = true};
		struct profile profile;
		struct str text = {0};

		file_begin(&b, TYPE);
		for (size_t i = 0; i < ARRAY_LEN(samples); i++)
			put_sample(&b, REC_MISC_USER, samples[i].pid, samples[i].tid,
				   samples[i].time, 0x1000, NULL);
		put_namespaces(&b, 10, 10, 7, 200, 200);
		put_namespaces(&b, 10, 10, 7, 100, 100);
		put_namespaces(&b, 14, 14, 4, 300, 100); /* a kernel without the last ones */
		put_namespaces(&b, 12, 12, UINT64_MAX, 400, 100); /* more than there are */
		file_end(&b);
		collect_names_to(&b.bytes, &options, &profile);
		for (size_t i = 0; i < profile.samples.len; i++) {
			uint32_t labels = profile.samples.data[i].labels;
			const char *pidns = profile_label_text(&profile, labels, "pidns"),
				   *cgroupns = profile_label_text(&profile, labels, "cgroupns");

			str_printf(&text, "%s %s;", pidns ? pidns : "-", cgroupns ? cgroupns : "-");
		}
		EXPECT_STR(str_text(&text), "pid:[103] cgroup:[106];pid:[203] cgroup:[206];"
					    "pid:[203] cgroup:[206];pid:[403] cgroup:[406];"
					    "pid:[303] -;");
		str_fini(&text);
		profile_fini(&profile);
		str_fini(&b.bytes);
	}
}

TEST(cgroups_are_labels_by_path)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct collect_options options = {.no_symbols = true, .cgroup = true};
		struct profile profile;
		struct str text = {0};

		file_begin(&b, TYPE | SAMPLE_CGROUP);
		record_begin(&b, REC_CGROUP, 0);
		put64(&b, 77);
		put_text(&b, "/system.slice/x.service", 24);
		put_sample_id(&b, 0, 0, 1);
		record_end(&b);
		for (uint64_t cgroup = 76; cgroup <= 78; cgroup++) {
			record_begin(&b, REC_SAMPLE, REC_MISC_USER);
			put64(&b, 0x1000);
			put32(&b, 10);
			put32(&b, 10);
			put64(&b, 100);
			put64(&b, 5);
			put64(&b, cgroup == 78 ? 77 : cgroup);
			record_end(&b);
		}
		file_end(&b);
		collect_names_to(&b.bytes, &options, &profile);
		for (size_t i = 0; i < profile.samples.len; i++) {
			const char *cgroup = profile_label_text(
				&profile, profile.samples.data[i].labels, "cgroup");

			str_printf(&text, "%s %d;", cgroup ? cgroup : "none",
				   (int)profile.values.data[2 * i + 1]);
		}
		EXPECT_STR(str_text(&text), ":76 5;/system.slice/x.service 10;");
		str_fini(&text);
		profile_fini(&profile);
		str_fini(&b.bytes);
	}
}

/* Ten samples, one each 100 ms from 5 s on; the file's order is another. */
TEST(parts_of_a_recording_by_time)
{
	static const struct {
		const char *time;
		int samples; /* or the error */
	} cases[] = {
		{NULL, 10},
		{"5.3,5.5", 3},
		{"5.3,", 7},
		{",5.35", 4},
		{"5.300000000,5.3", 1},
		{"+0.3,+0.5", 3},
		{"0%,50%", 5},
		{"50%,100%", 5},
		{"+0.85", 1},
		{",", 10},
		{"7,8", 0},
		{"5.5,5.3", -EINVAL},
		{"x", -EINVAL},
		{"5.3,5.5,", -EINVAL},
		{"-1,", -EINVAL},
		{"+10%,", -EINVAL},
		{"99999999999999999999,", -EINVAL},
	};

	for (int feature = 0; feature < 2; feature++) {
		struct builder b = {.big = feature};
		struct session *session = NULL;

		file_begin(&b, TYPE);
		for (uint64_t i = 0; i < 10; i++)
			put_sample(&b, REC_MISC_USER, 10, 10,
				   UINT64_C(5000000000) + i * 7 % 10 * 100000000, 0x1000, NULL);
		file_end(&b);
		if (feature) { /* the header tells the first and the last time */
			b.bytes.data[72 + 7 - FEAT_SAMPLE_TIME / 8] |= 1 << FEAT_SAMPLE_TIME % 8;
			put64(&b, b.bytes.len + 16);
			put64(&b, 16);
			put64(&b, UINT64_C(5000000000));
			put64(&b, UINT64_C(5900000000));
		}
		ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, NULL) ==
		       0);
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			struct collect_options options = {.no_symbols = true,
							  .time = cases[i].time};
			struct profile profile;
			int64_t count = 0;
			int r;

			ASSERT(profile_init(&profile) == 0);
			r = collect_profile(session, &options, &profile, NULL);
			if (r == 0 && profile.value_types.len > 0)
				(void)profile_total(&profile, 0, &count);
			if ((r < 0 ? r : (int)count) != cases[i].samples) {
				EXPECT_STR(cases[i].time, "");
				EXPECT_INT(r < 0 ? r : (int)count, cases[i].samples);
			}
			profile_fini(&profile);
		}
		session_close(session);
		str_fini(&b.bytes);
	}
}
