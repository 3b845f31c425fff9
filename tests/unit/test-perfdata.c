/* The perf.data reader on small files built here: what is in them is known to the byte. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/steady-map.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/collect.h"
#include "sample/maps.h"
#include "sample/perfdata.h"
#include "sample/session.h"

#define TYPE (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_CALLCHAIN)

struct log {
	struct str text;
	uint64_t samples;
};

/* "comm: object+0x10 < caller+0x20 < ...\n" */
static int log_sample(void *arg, const struct sample *sample)
{
	struct log *log = arg;

	log->samples++;
	str_printf(&log->text, "%s:", sample->comm);
	for (uint32_t i = 0; i < sample->frame_count; i++)
		str_printf(&log->text, "%s%s+0x%llx", i ? " < " : " ",
			   sample->frames[i].dso ? sample->frames[i].dso->path : "?",
			   (unsigned long long)sample->frames[i].address);
	str_putc(&log->text, '\n');
	return 0;
}

static int replay(const void *data, size_t size, struct log *log, struct session_stats *ret_stats)
{
	struct session *session;
	struct err err = {0};
	int r = session_open(write_recording(data, size), &session, &err);

	if (r < 0)
		return r;
	r = session_run(session, log_sample, log, &err);
	if (ret_stats)
		*ret_stats = *session_stats(session);
	session_close(session);
	return r;
}

/* A process that forks and execs, seen by samples before, between and after, and the kernel. */
static void put_story(struct builder *b)
{
	static const uint64_t user[] = {CONTEXT_USER, 0x401010, 0x401101, 0x7f0000001000, 0};
	static const uint64_t kernel[] = {CONTEXT_KERNEL,
					  0xffffffff81000100,
					  0xffffffff81000201,
					  CONTEXT_USER,
					  0x401020,
					  0x401101,
					  0};

	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, 0, UINT64_C(0xffffffff82000000),
		 UINT64_C(0xffffffff81000000), "[kernel.kallsyms]_text", 0);
	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, UINT64_C(0xffffffffc0000000), 0x4000, 0,
		 "/lib/modules/6.1/kernel/fs/nls-utf8.ko.xz", 0);
	put_comm(b, 10, 10, "shell", false, 0);
	put_mmap(b, REC_MISC_USER, 10, 0x400000, 0x10000, 0, "/bin/shell", 0);
	put_mmap(b, REC_MISC_USER, 10, 0x7f0000000000, 0x4000, 0x2000, "/lib/libc.so", 0);
	put_sample(b, REC_MISC_USER, 10, 10, 100, 0x401010, user);
	/* Out of order on purpose: another CPU's records come later in the file. */
	put_sample(b, REC_MISC_USER, 11, 11, 300, 0x401010, user);
	put_fork(b, 11, 10, 11, 10, 200);
	put_sample(b, REC_MISC_USER, 11, 11, 210, 0x401010, user);
	put_comm(b, 11, 11, "child", true, 250);
	put_mmap(b, REC_MISC_USER, 11, 0x400000, 0x10000, 0x1000, "/bin/child", 251);
	put_sample(b, REC_MISC_KERNEL, 11, 11, 310, UINT64_C(0xffffffff81000100), kernel);
	put_sample(b, REC_MISC_KERNEL, 0, 0, 320, UINT64_C(0xffffffffc0000010), NULL);
	put_sample(b, REC_MISC_USER, 12, 13, 330, 0x10, NULL);
}

static const char story[] = "shell: /bin/shell+0x1010 < /bin/shell+0x1100 < /lib/libc.so+0x2fff\n"
			    "child: /bin/child+0x2010 < /bin/child+0x2100 < ?+0x7f0000000fff\n"
			    "shell: /bin/shell+0x1010 < /bin/shell+0x1100 < /lib/libc.so+0x2fff\n"
			    "child: [kernel.kallsyms]+0xffffffff81000100 < "
			    "[kernel.kallsyms]+0xffffffff81000200 < /bin/child+0x2020 < "
			    "/bin/child+0x2100\n"
			    "swapper: [nls_utf8]+0xffffffffc0000010\n"
			    ":13: ?+0x10\n";

TEST(story_in_both_byte_orders)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct log log = {0};

		file_begin(&b, TYPE);
		put_story(&b);
		file_end(&b);
		EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, NULL), 0);
		EXPECT_STR(str_text(&log.text), story);
		str_fini(&log.text);
		str_fini(&b.bytes);
	}
}

TEST(story_through_a_pipe)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct log log = {0};

		pipe_begin(&b, TYPE);
		put_story(&b);
		EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, NULL), 0);
		EXPECT_STR(str_text(&log.text), story);
		str_fini(&log.text);
		str_fini(&b.bytes);
	}
}

TEST(cut_at_every_byte_shows_what_is_before)
{
	struct builder b = {0};
	struct session_stats stats;
	size_t first = 0;

	file_begin(&b, TYPE);
	first = b.bytes.len;
	put_story(&b);
	file_end(&b);
	for (size_t size = 0; size < b.bytes.len; size++) {
		struct log log = {0};
		int r = replay(b.bytes.data, size, &log, &stats);
		size_t same = strncmp(str_text(&log.text), story, log.text.len);

		if (size < first) {
			if (r >= 0 && log.samples > 0)
				EXPECT(false);
		} else if (r < 0 || stats.missing_bytes != b.bytes.len - size ||
			   (size > first && !stats.problem[0])) {
			EXPECT_INT(r, 0);
			EXPECT_INT(stats.missing_bytes, b.bytes.len - size);
		} else if (size == b.bytes.len - 1) {
			EXPECT_INT(log.samples, 5);
			EXPECT_INT(same, 0);
		}
		str_fini(&log.text);
	}
	str_fini(&b.bytes);
}

TEST(what_cannot_be_mapped_is_read)
{
	struct steady_map taken[64] = {0};
	struct log mapped = {0}, read = {0};
	struct builder b = {0};
	int fd = -1;

	file_begin(&b, TYPE);
	put_story(&b);
	file_end(&b);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &mapped, NULL), 0);
	fd = open(write_recording(b.bytes.data, b.bytes.len), O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		EXPECT_INT(steady_map_fd(fd, b.bytes.len, &taken[i]), 0);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &read, NULL), 0);
	EXPECT_STR(str_text(&read.text), str_text(&mapped.text));
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		steady_map_close(&taken[i]);
	close(fd);
	str_fini(&mapped.text);
	str_fini(&read.text);
	str_fini(&b.bytes);
}

TEST(a_recording_may_be_cut_while_it_is_open)
{
	struct collect_options options = {.no_symbols = true};
	struct session *session;
	struct profile profile;
	struct log log = {0};
	struct builder b = {0};
	const char *path;
	uint64_t all;

	file_begin(&b, TYPE);
	for (unsigned i = 0; i < 400; i++)
		put_story(&b);
	file_end(&b);
	path = write_recording(b.bytes.data, b.bytes.len);
	ASSERT(session_open(path, &session, NULL) == 0);
	all = session_stats(session)->samples;
	EXPECT_INT(truncate(path, 3 * 4096), 0);
	EXPECT_INT(session_run(session, log_sample, &log, NULL), 0);
	EXPECT(log.samples > 10 && log.samples < all);
	EXPECT(strncmp(session_stats(session)->problem, "cut or unreadable from byte ", 28) == 0);
	EXPECT_INT(profile_init(&profile), 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	profile_fini(&profile);
	session_close(session);
	str_fini(&log.text);
	str_fini(&b.bytes);
}

struct watched {
	double looking, reading;
	unsigned backwards, others;
};

static void watch(void *arg, const char *what, double share)
{
	struct watched *watched = arg;
	double *last = strcmp(what, "looking through the records") == 0 ? &watched->looking
		       : strcmp(what, "reading samples") == 0           ? &watched->reading
									: NULL;

	watched->others += !last && strcmp(what, "naming functions") != 0;
	if (!last)
		return;
	watched->backwards += share < *last || share > 1;
	*last = share;
}

/*
 * Larger than what is asked of the disk at once and than the window of names: many pieces, samples
 * that stay in the mapping while others are counted, and all the same whoever takes which piece.
 */
TEST(a_large_recording_is_collected_in_pieces)
{
	struct watched watched = {0};
	struct collect_options options = {
		.comm = "shell", .progress = watch, .progress_arg = &watched, .no_symbols = true};
	uint64_t chain[] = {CONTEXT_USER, 0x401010, 0x401101, 0x401200, 0};
	enum {
		SAMPLES = 400000
	};
	struct session *session;
	struct profile profile;
	struct builder b = {0};
	int64_t total = 0;

	file_begin(&b, TYPE);
	put_comm(&b, 10, 10, "shell", false, 0);
	put_comm(&b, 11, 11, "other", false, 0);
	put_mmap(&b, REC_MISC_USER, 10, 0x400000, 0x10000, 0, "/bin/shell", 0);
	put_mmap(&b, REC_MISC_USER, 11, 0x400000, 0x10000, 0, "/bin/other", 0);
	for (unsigned i = 0; i < SAMPLES; i++) {
		chain[2] = 0x401100 + i % 1000 * 8;
		chain[3] = i % 3 ? 0x409000 + i % 7 : 0;
		/* Of three samples one is not wanted. */
		put_sample(&b, REC_MISC_USER, 10 + (i % 3 == 2), 10 + (i % 3 == 2), 100 + i,
			   0x401010, chain);
	}
	file_end(&b);
	ASSERT(b.bytes.len > (16u << 20));
	ASSERT(session_open_watched(write_recording(b.bytes.data, b.bytes.len), watch, &watched,
				    &session, NULL) == 0);
	EXPECT_INT(session_stats(session)->samples, SAMPLES);
	EXPECT_INT(profile_init(&profile), 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	EXPECT_INT(profile_total(&profile, 0, &total), 0);
	EXPECT_INT(total, SAMPLES - SAMPLES / 3);
	/* 1000 chains without a third caller, 7000 with one of seven. */
	EXPECT_INT(profile.samples.len, 8000);
	for (size_t i = 0; i < profile.samples.len; i++)
		EXPECT(profile.values.data[2 * i] >= 18);
	EXPECT(watched.looking > 0.5 && watched.reading > 0.5);
	EXPECT_INT(watched.backwards + watched.others, 0);
	profile_fini(&profile);
	session_close(session);
	str_fini(&b.bytes);
}

TEST(unfinished_header_is_scanned)
{
	struct builder b = {0};
	struct log log = {0};
	struct session_stats stats;

	file_begin(&b, TYPE);
	put_story(&b);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, &stats), 0);
	EXPECT_STR(str_text(&log.text), story);
	EXPECT(stats.unfinished);
	/* Zeros behind the records, as a crash leaves them in a preallocated file. */
	for (int i = 0; i < 100; i++)
		put64(&b, 0);
	str_clear(&log.text);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, &stats), 0);
	EXPECT_STR(str_text(&log.text), story);
	str_fini(&log.text);
	str_fini(&b.bytes);
}

TEST(gzip_is_unpacked)
{
	struct builder b = {0};
	struct log log = {0};
	struct str packed = {0};

	file_begin(&b, TYPE);
	put_story(&b);
	file_end(&b);
	EXPECT_INT(gzip_deflate(b.bytes.data, b.bytes.len, 6, &packed, NULL), 0);
	EXPECT_INT(replay(packed.data, packed.len, &log, NULL), 0);
	EXPECT_STR(str_text(&log.text), story);
	str_fini(&packed);
	str_fini(&log.text);
	str_fini(&b.bytes);
}

/* The story in COMPRESSED records of a few bytes each: frames and records span them. */
TEST(compressed_records_span)
{
	for (unsigned two = 0; two < 2; two++) {
		struct builder inner = {.sample_type = TYPE}, b = {0};
		struct log log = {0};
		struct str packed = {0};
		struct session_stats stats;

		put_story(&inner);
		EXPECT_INT(zstd_compress(inner.bytes.data, inner.bytes.len, 1, &packed, NULL), 0);
		pipe_begin(&b, TYPE);
		for (size_t at = 0; at < packed.len; at += 40) {
			size_t size = MIN(packed.len - at, (size_t)40);

			record_begin(&b, two ? REC_COMPRESSED2 : REC_COMPRESSED, 0);
			if (two)
				put64(&b, size);
			str_append(&b.bytes, packed.data + at, size);
			while (two && b.bytes.len % 8)
				put8(&b, 0);
			record_end(&b);
		}
		EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, &stats), 0);
		EXPECT_STR(str_text(&log.text), story);
		EXPECT_STR(stats.problem, "");
		/* Damage in the middle: what was unpacked before it stays. */
		memset(b.bytes.data + b.bytes.len / 2, 0xff, 24);
		str_clear(&log.text);
		EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, &stats), 0);
		EXPECT(stats.problem[0] != '\0');
		str_fini(&packed);
		str_fini(&inner.bytes);
		str_fini(&b.bytes);
		str_fini(&log.text);
	}
}

static void put_string(struct builder *b, const char *text)
{
	put32(b, 16);
	put_text(b, text, 16);
}

TEST(mappings_become_objects)
{
	static const struct {
		const char *mapped, *object;
		enum module_kind kind;
	} cases[] = {
		{"//anon", "/tmp/perf-10.map", MODULE_PERF_MAP},
		{"", "/tmp/perf-10.map", MODULE_PERF_MAP},
		{"/memfd:doublemapper (deleted)", "/tmp/perf-10.map", MODULE_PERF_MAP},
		{"/memfd:program (deleted)", "/memfd:program (deleted)", MODULE_ELF},
		{"/usr/lib/libx.so (deleted)", "/usr/lib/libx.so (deleted)", MODULE_ELF},
		{"[vdso]", "[vdso]", MODULE_VDSO},
		{"[heap]", "[heap]", MODULE_ELF},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct builder b = {0};
		struct session *session;
		const struct dso *dso;

		file_begin(&b, TYPE);
		put_mmap(&b, REC_MISC_USER, 10, 0x400000, 0x10000, 0, cases[i].mapped, 0);
		file_end(&b);
		ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, NULL) ==
		       0);
		dso = session_dso(session, session_dso_count(session) - 1);
		EXPECT_STR(dso->path, cases[i].object);
		EXPECT_INT(dso->kind, cases[i].kind);
		session_close(session);
		str_fini(&b.bytes);
	}
}

/* A file with features: host name, event names, build ids, our symbols. */
TEST(features_are_read)
{
	static const char kallsyms[] =
		"ffffffff81000000 T _text\nffffffff81000100 T do_work\nffffffff81000300 T next\n";
	static const unsigned bits[] = {FEAT_BUILD_ID, FEAT_HOSTNAME, FEAT_EVENT_DESC,
					FEAT_CULPRIT_SYMBOLS};
	size_t at[ARRAY_LEN(bits) + 1], table;
	struct builder b = {0};
	struct str packed = {0};
	struct session *session;
	struct err err = {0};
	uint32_t events;
	size_t size;

	file_begin(&b, TYPE);
	put_story(&b);
	file_end(&b);
	table = b.bytes.len;
	for (size_t i = 0; i < 2 * ARRAY_LEN(bits); i++)
		put64(&b, 0);
	at[0] = b.bytes.len;
	record_begin(&b, 0, REC_MISC_USER);
	put32(&b, 10);
	for (int i = 0; i < 24; i++)
		put8(&b, (uint8_t)(i < 20 ? i + 1 : 0));
	put_text(&b, "/lib/libc.so", 16);
	record_end(&b);
	at[1] = b.bytes.len;
	put_string(&b, "machine");
	at[2] = b.bytes.len;
	put32(&b, 1);
	put32(&b, 64);
	for (int i = 0; i < 8; i++)
		put64(&b, 0);
	put32(&b, 1);
	put_string(&b, "my-event");
	put64(&b, 7);
	at[3] = b.bytes.len;
	put32(&b, 1);
	put32(&b, 1);
	put64(&b, strlen(kallsyms));
	EXPECT_INT(zstd_compress(kallsyms, strlen(kallsyms), 1, &packed, NULL), 0);
	str_append(&b.bytes, packed.data, packed.len);
	at[4] = b.bytes.len;
	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		b.bytes.data[72 + bits[i] / 8] |= (char)(1 << bits[i] % 8);
		patch64(&b, table + 16 * i, at[i]);
		patch64(&b, table + 16 * i + 8, at[i + 1] - at[i]);
	}
	ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, &err) == 0);
	EXPECT_STR(session_info(session)->hostname, "machine");
	EXPECT_STR(session_events(session, &events)[0].name, "my-event");
	EXPECT_INT(session_events(session, &events)[0].frequency_hz, 99);
	EXPECT(session_kallsyms(session, &size) && size == strlen(kallsyms));
	for (uint32_t i = 0; i < session_dso_count(session); i++)
		if (strcmp(session_dso(session, i)->path, "/lib/libc.so") == 0)
			EXPECT_INT(session_dso(session, i)->build_id.bytes[19], 20);
	session_close(session);

	/* Cut inside the last section: what it holds is named. */
	ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len - 3), &session, &err) == 0);
	EXPECT_INT(session_stats(session)->missing_bytes, 3);
	EXPECT(strstr(session_stats(session)->problem, "not there: kernel symbols") != NULL);
	EXPECT(session_stats(session)->samples > 0);
	session_close(session);
	str_fini(&packed);
	str_fini(&b.bytes);
}

/* Kernels set the flag of a build id where device and inode numbers stand. */
TEST(a_build_id_of_a_mapping_that_is_none)
{
	static const struct {
		uint8_t head[4], first, last;
		uint8_t want;
	} cases[] = {
		{{20, 0, 0, 0}, 7, 9, 20},  {{8, 0, 0, 0}, 7, 0, 8},  {{8, 0, 0, 0}, 7, 9, 0},
		{{0xfe, 0, 0, 0}, 7, 9, 0}, {{20, 1, 0, 0}, 7, 9, 0}, {{0, 0, 0, 0}, 7, 9, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t body[8 + 24 + 24 + 8 + 8] = {0};
		struct perfdata_mmap map;

		memcpy(body + 32, cases[i].head, 4);
		body[36] = cases[i].first;
		body[55] = cases[i].last;
		memcpy(body + 64, "/lib/a", 7);
		ASSERT(perfdata_mmap_decode(REC_MMAP2, REC_MISC_BUILD_ID, body, sizeof(body), false,
					    &map));
		EXPECT_INT(map.build_id.size, cases[i].want);
		EXPECT_STR(map.path, "/lib/a");
	}
}

static const char *function_of(const struct profile *profile, uint32_t stack)
{
	const struct profile_location *location =
		&profile->locations.data[profile->stacks.data[stack].location];

	if (!location->line_count)
		return "";
	return strtab_text(
		&profile->strings,
		profile->functions.data[profile->lines.data[location->first_line].function].name);
}

TEST(collect_filters_labels_and_unknown_frames)
{
	struct collect_options options = {.comm = ":1*", .tid = true};
	struct builder b = {0};
	struct session *session;
	struct profile profile;
	int64_t tid = 0;

	file_begin(&b, TYPE);
	put_story(&b);
	file_end(&b);
	ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, NULL) == 0);
	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	ASSERT(profile.samples.len == 1);
	EXPECT_STR(function_of(&profile, profile.samples.data[0].stack), "[unknown]");
	EXPECT_STR(profile_label_text(&profile, profile.samples.data[0].labels, "comm"), ":13");
	EXPECT(profile_label_number(&profile, profile.samples.data[0].labels, "tid", &tid) &&
	       tid == 13);
	EXPECT_INT(profile.values.data[0], 1);
	EXPECT_INT(profile.values.data[1], 1000);
	EXPECT_STR(strtab_text(&profile.strings, profile.value_types.data[1].type), "cpu");
	profile_fini(&profile);

	options = (struct collect_options){.dso = "shell", .no_symbols = true};
	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	ASSERT(profile.samples.len == 2); /* two pids, one stack */
	EXPECT_INT(profile.samples.data[0].stack, profile.samples.data[1].stack);
	profile_fini(&profile);

	options = (struct collect_options){.event = "other"};
	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	EXPECT_INT(profile.samples.len, 0);
	profile_fini(&profile);
	session_close(session);
	str_fini(&b.bytes);
}

TEST(refusals_name_object_place_and_remedy)
{
	static const struct {
		const char *bytes;
		size_t size;
		int code;
		const char *words;
	} cases[] = {
		{"", 0, -ENODATA, "empty file"},
		{"PERF", 4, -EINVAL, "no PERFILE2 at byte 0"},
		{"not a recording at all", 22, -EINVAL, "no PERFILE2 at byte 0"},
		{"PERFILE2\x68\0\0\0\0\0\0\0", 16, -ENODATA, "cut at byte 16"},
		{"PERFILE2\x10\0\0\0\0\0\0\0", 16, -ENODATA, "no events"},
	};
	struct session *session;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *path = write_recording(cases[i].bytes, cases[i].size);

		err = (struct err){0};
		EXPECT_INT(session_open(path, &session, &err), cases[i].code);
		EXPECT(strstr(err.text, path) == err.text && strstr(err.text, cases[i].words));
	}
	EXPECT_INT(session_open("/tmp", &session, &err), -EISDIR);
	EXPECT(strstr(err.text, "directory"));
	EXPECT_INT(session_open("/dev/null", &session, &err), -EINVAL);
	EXPECT(strstr(err.text, "neither a file nor a pipe"));
	EXPECT_INT(session_open("/nonexistent/file", &session, &err), -ENOENT);
}

/* Mappings against a plain array of pages, old roots included. */
TEST(maps_remember_every_version)
{
	enum {
		PAGES = 64,
		STEPS = 400
	};
	static uint32_t want[STEPS][PAGES];
	struct map_store store = {.version = 1};
	uint32_t roots[STEPS], seed = 12345, wrong = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		struct map map;

		seed = seed * 1664525 + 1013904223;
		map.start = seed >> 8 & (PAGES - 1);
		map.end = MIN(map.start + 1 + (seed >> 16 & 15), (uint64_t)PAGES);
		map.pgoff = 1000 * step;
		map.dso = step + 1;
		roots[step] = step ? roots[step - 1] : 0;
		/* Every third change is made in place: the root before it is given up. */
		if (step % 3)
			map_store_step(&store);
		EXPECT_INT(map_store_add(&store, &roots[step], &map), 0);
		for (uint64_t page = 0; page < PAGES; page++) {
			const struct map *found = map_store_find(&store, roots[step], page);

			if (page >= map.start && page < map.end)
				wrong += !found || found->dso != step + 1 ||
					 page - found->start + found->pgoff !=
						 page - map.start + map.pgoff;
			else if (step)
				wrong += (found ? found->dso : 0) != want[step - 1][page];
			want[step][page] = found ? found->dso : 0;
		}
	}
	for (unsigned step = 0; step + 1 < STEPS; step++)
		for (uint64_t page = 0; page < PAGES && (step + 1) % 3; page++) {
			const struct map *found = map_store_find(&store, roots[step], page);

			wrong += (found ? found->dso : 0) != want[step][page];
		}
	EXPECT_INT(wrong, 0);
	map_store_fini(&store);
}

TEST(exec_takes_effect_with_its_first_mapping)
{
	struct builder b = {0};
	struct log log = {0};

	file_begin(&b, TYPE);
	put_comm(&b, 10, 10, "old", false, 0);
	put_mmap(&b, REC_MISC_USER, 10, 0x400000, 0x1000, 0, "/bin/old", 0);
	put_mmap(&b, REC_MISC_USER, 10, 0x500000, 0x1000, 0, "/bin/old-library", 0);
	put_comm(&b, 10, 10, "new", true, 100);
	put_sample(&b, REC_MISC_USER, 10, 10, 110, 0x500010, NULL);
	put_mmap(&b, REC_MISC_USER, 10, 0x400000, 0x1000, 0, "/bin/new", 120);
	put_sample(&b, REC_MISC_USER, 10, 10, 130, 0x400010, NULL);
	put_sample(&b, REC_MISC_USER, 10, 10, 130, 0x500010, NULL);
	file_end(&b);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, NULL), 0);
	EXPECT_STR(str_text(&log.text),
		   "new: /bin/old-library+0x10\nnew: /bin/new+0x10\nnew: ?+0x500010\n");
	str_fini(&log.text);
	str_fini(&b.bytes);
}

static void put_feature(struct builder *b, uint64_t feature, const void *bytes, size_t size)
{
	record_begin(b, REC_HEADER_FEATURE, 0);
	put64(b, feature);
	str_append(&b->bytes, bytes, size);
	record_end(b);
}

static int find_call(void *arg, const struct sample *sample)
{
	*(const struct dso **)arg = sample->frames[0].dso;
	return 0;
}

/* A recording of another kernel: its vdso is named by the image that came with it alone. */
TEST(vdso_of_another_kernel)
{
	size_t size;
	const void *image = symbols_own_vdso(&size);

	SKIP_IF(!image, "this kernel gives no vdso");
	for (unsigned saved = 0; saved < 2; saved++) {
		const struct collect_options options = {0};
		struct builder b = {0}, section = {0};
		const struct dso *dso = NULL;
		struct session *session;
		struct module *module;
		struct symbols *symbols;
		struct profile profile;
		struct symbol symbol;
		uint64_t address = 0;

		pipe_begin(&b, TYPE);
		put_string(&section, "9.9.9-other");
		put_feature(&b, FEAT_OSRELEASE, section.bytes.data, section.bytes.len);
		str_clear(&section.bytes);
		put32(&section, 1), put32(&section, 0), put64(&section, size);
		EXPECT_INT(zstd_compress(image, size, 1, &section.bytes, NULL), 0);
		if (saved)
			put_feature(&b, FEAT_CULPRIT_VDSO, section.bytes.data, section.bytes.len);
		/* An address that has a name. */
		EXPECT_INT(symbols_new(&options.symbols, &symbols), 0);
		EXPECT_INT(
			symbols_module(symbols, &(struct module_ref){.kind = MODULE_VDSO}, &module),
			0);
		while (address < size && !module_lookup(module, address, &symbol))
			address++;
		put_comm(&b, 9, 9, "clock", false, 0);
		put_mmap(&b, REC_MISC_USER, 9, 0x7fff00000000, size, 0, "[vdso]", 0);
		put_sample(&b, REC_MISC_USER, 9, 9, 100, 0x7fff00000000 + address, NULL);
		ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, NULL) ==
		       0);
		EXPECT_INT(session_run(session, find_call, &dso, NULL), 0);
		EXPECT(dso && dso->kind == MODULE_VDSO);
		EXPECT(!!session_vdso(session, &size) == saved);
		EXPECT_INT(profile_init(&profile), 0);
		EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
		EXPECT((strtab_find(&profile.strings, symbol.name, strlen(symbol.name)) !=
			HASH_NONE) == saved);
		profile_fini(&profile);
		session_close(session);
		symbols_free(symbols);
		str_fini(&section.bytes);
		str_fini(&b.bytes);
		image = symbols_own_vdso(&size);
	}
}

/* A recording of another kernel with the file of its module here, packed or not: its functions are
 * named by it, if the build id is the recorded one. */
TEST(kernel_modules_by_their_files)
{
	static const char *const packers[] = {"", ".xz", ".zst", ".gz"};
	static const uint8_t id[20] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
				       0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa};
	const char *dir = tap_dir();
	char file[128];

	if (tap_shell("cd %s && printf '.text\\nfirst: .skip 64\\n.globl second\\nsecond: .skip "
		      "64\\n' "
		      "|"
		      " cc -c -x assembler -o x.o - 2>/dev/null && cc -r -nostdlib "
		      "-Wl,--build-id=0x112233445566778899aa112233445566778899aa -o nls-x.ko x.o "
		      "2>/dev/null",
		      dir) != 0)
		SKIP("no compiler that makes relocatable objects with a build id");
	for (unsigned i = 0; i < 2 * ARRAY_LEN(packers); i++) {
		const char *packer = packers[i / 2];
		const struct collect_options options = {0};
		struct builder b = {0}, section = {0};
		struct session *session;
		struct profile profile;
		bool same = i % 2 == 0;

		snprintf(file, sizeof(file), "%s/nls-x.ko%s", dir, packer);
		if (packer[0] && tap_shell("cd %s && %s -kf nls-x.ko 2>/dev/null", dir,
					   packer[1] == 'x'   ? "xz"
					   : packer[1] == 'z' ? "zstd -q"
							      : "gzip") != 0)
			continue;
		pipe_begin(&b, TYPE);
		put_string(&section, "9.9.9-other");
		put_feature(&b, FEAT_OSRELEASE, section.bytes.data, section.bytes.len);
		record_begin(&b, REC_BUILD_ID, REC_MISC_KERNEL);
		put32(&b, UINT32_MAX);
		str_append(&b.bytes, id, sizeof(id));
		if (!same)
			b.bytes.data[b.bytes.len - 1]++;
		put32(&b, 0);
		put_text(&b, file, (strlen(file) + 8) & ~(size_t)7);
		record_end(&b);
		put_comm(&b, 9, 9, "x", false, 0);
		put_mmap(&b, REC_MISC_KERNEL, UINT32_MAX, UINT64_C(0xffffffffc0000000), 0x1000, 0,
			 file, 0);
		put_sample(&b, REC_MISC_KERNEL, 9, 9, 100, UINT64_C(0xffffffffc0000044), NULL);
		ASSERT(session_open(write_recording(b.bytes.data, b.bytes.len), &session, NULL) ==
		       0);
		EXPECT_INT(profile_init(&profile), 0);
		EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
		EXPECT((strtab_find(&profile.strings, "second", 6) != HASH_NONE) == same);
		EXPECT(strtab_find(&profile.strings, "first", 5) == HASH_NONE);
		EXPECT(strtab_find(&profile.strings, "[nls_x]", 7) != HASH_NONE);
		profile_fini(&profile);
		session_close(session);
		str_fini(&section.bytes);
		str_fini(&b.bytes);
	}
}
