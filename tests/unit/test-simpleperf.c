/*
 * simpleperf's recordings: the names they bring of objects that are not here. Built ones in both
 * forms of the feature, and a real one against the stacks that simpleperf itself printed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/collect.h"
#include "sample/session-internal.h"

#define TYPE (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD)

struct object {
	const char *path;
	uint32_t type;
	uint64_t min_vaddr, file_offset; /* UINT64_MAX: not written */
	struct {
		uint64_t start;
		uint32_t size;
		const char *name;
	} symbols[3];
};

/* An object whose code begins at 0x12e000 in memory and at 0x12d000 in the file. */
static const struct object objects[] = {
	{"[kernel.kallsyms]", 0, 0, UINT64_MAX, {{0xffffffff81000100, 0x80, "do_work"}}},
	{"/system/lib64/libart.so",
	 2,
	 0x12e000,
	 0x12d000,
	 {{0x131a00, 0x34, "_ZN3art7Monitor4WaitEv"}, {0x131000, 0x10, "first"}}},
	{"/system/lib64/old.so", 2, 0x7000, UINT64_MAX, {{0x7100, 0x10, "of_old"}}},
	{"/system/framework/core-oj.jar", 3, 0, UINT64_MAX, {{0x44c, 16, "Thread.run"}}},
	{"perf.data_jit_app_cache:1-2", 2, 0, 0, {{0x9c9eb7f0, 332, "MainActivity$1.run"}}},
	{"/vendor/lib/modules/wifi-x.ko", 1, 0x40, 0x10, {{0x140, 32, "wifi_send"}}},
};

static void put_cstr(struct builder *b, const char *text)
{
	put_text(b, text, strlen(text) + 1);
}

/* The feature FILE. */
static void put_files(struct builder *b)
{
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		const struct object *o = &objects[i];
		struct builder one = {.big = b->big};
		uint32_t count = 0;

		while (count < 3 && o->symbols[count].name)
			count++;
		put_cstr(&one, o->path);
		put32(&one, o->type);
		put64(&one, o->min_vaddr);
		put32(&one, count);
		for (uint32_t s = 0; s < count; s++) {
			put64(&one, o->symbols[s].start);
			put32(&one, o->symbols[s].size);
			put_cstr(&one, o->symbols[s].name);
		}
		if (o->type == 3) {
			put32(&one, 1);
			put64(&one, 0x28);
		}
		if (o->file_offset != UINT64_MAX)
			put64(&one, o->file_offset);
		put32(b, (uint32_t)one.bytes.len);
		str_append(&b->bytes, one.bytes.data, one.bytes.len);
		str_fini(&one.bytes);
	}
}

/* The feature FILE2. */
static void put_files2(struct builder *b)
{
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		const struct object *o = &objects[i];
		struct str one = {0}, symbol = {0};

		proto_put_bytes(&one, 1, o->path, strlen(o->path));
		proto_put_nonzero(&one, 2, o->type);
		proto_put_nonzero(&one, 3, o->min_vaddr);
		for (uint32_t s = 0; s < 3 && o->symbols[s].name; s++) {
			str_clear(&symbol);
			proto_put_nonzero(&symbol, 1, o->symbols[s].start);
			proto_put_nonzero(&symbol, 2, o->symbols[s].size);
			proto_put_bytes(&symbol, 3, o->symbols[s].name, strlen(o->symbols[s].name));
			proto_put_bytes(&one, 4, symbol.data, symbol.len);
		}
		str_clear(&symbol);
		if (o->file_offset != UINT64_MAX) {
			proto_put_nonzero(&symbol, 1, o->file_offset);
			proto_put_bytes(&one, o->type == 1 ? 7 : 6, str_text(&symbol), symbol.len);
		}
		put32(b, (uint32_t)one.len);
		str_append(&b->bytes, one.data, one.len);
		str_fini(&one);
		str_fini(&symbol);
	}
}

static void put_jit_mmap(struct builder *b)
{
	record_begin(b, REC_MMAP2, REC_MISC_USER);
	put32(b, 10);
	put32(b, 10);
	put64(b, 0x9c9eb000);
	put64(b, 0x1000);
	put64(b, 0x3c78);
	put64(b, 0);
	put64(b, 0);
	put64(b, 0);
	put32(b, 0x4000);
	put32(b, 0);
	put_text(b, objects[4].path, 32);
	put_sample_id(b, 10, 10, 1);
	record_end(b);
}

static void put_recording(struct builder *b, unsigned feature, size_t *ret_section)
{
	size_t section;

	file_begin(b, TYPE);
	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, 0, UINT64_MAX, 0, "[kernel.kallsyms]", 0);
	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, 0xffffffffc0001000, 0x2000, 0, objects[5].path, 0);
	put_mmap(b, REC_MISC_USER, 10, 0x70000000, 0x10000, 0x12d000, objects[1].path, 1);
	put_mmap(b, REC_MISC_USER, 10, 0x71000000, 0x10000, 0x5000, objects[2].path, 1);
	put_mmap(b, REC_MISC_USER, 10, 0x72000000, 0x10000, 0, objects[3].path, 1);
	put_jit_mmap(b);
	put_sample(b, REC_MISC_USER, 10, 10, 2, 0x70003a08, NULL);
	put_sample(b, REC_MISC_USER, 10, 10, 2, 0x70003a34, NULL); /* behind the function */
	put_sample(b, REC_MISC_USER, 10, 10, 2, 0x71000108, NULL);
	put_sample(b, REC_MISC_USER, 10, 10, 2, 0x7200044c, NULL);
	put_sample(b, REC_MISC_USER, 10, 10, 2, 0x9c9eb800, NULL);
	put_sample(b, REC_MISC_KERNEL, 10, 10, 2, 0xffffffff81000110, NULL);
	put_sample(b, REC_MISC_KERNEL, 10, 10, 2, 0xffffffffc0001118, NULL);
	file_end(b);
	section = b->bytes.len;
	put64(b, section + 16);
	put64(b, 0);
	if (feature == FEAT_SIMPLEPERF_FILE)
		put_files(b);
	else
		put_files2(b);
	patch64(b, section + 8, b->bytes.len - section - 16);
	/* The bits are words of the file's byte order. */
	b->bytes.data[72 + feature / 64 * 8 + (b->big ? 7 - feature % 64 / 8 : feature % 64 / 8)] |=
		(char)(1 << feature % 8);
	*ret_section = section + 16;
}

/* "name;name;..." of the samples in the order in which they were first seen, "?" without. */
static void collect_to(const char *file, struct str *out)
{
	struct collect_options options = {0};
	struct session *session = NULL;
	struct profile profile;
	struct err err = {0};

	if (session_open(file, &session, &err) < 0) {
		EXPECT_STR(err.text, "");
		return;
	}
	EXPECT_INT(profile_init(&profile), 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	for (size_t i = 0; i < profile.samples.len; i++) {
		uint32_t stack = profile.samples.data[i].stack;
		const struct profile_location *location =
			&profile.locations.data[profile.stacks.data[stack].location];

		str_printf(
			out, "%s;",
			location->line_count
				? strtab_text(&profile.strings,
					      profile.functions
						      .data[profile.lines.data[location->first_line]
								    .function]
						      .name)
				: "?");
	}
	profile_fini(&profile);
	session_close(session);
}

TEST(names_in_the_recording)
{
	static const unsigned features[] = {FEAT_SIMPLEPERF_FILE, FEAT_SIMPLEPERF_FILE2};

	for (unsigned i = 0; i < 4; i++) {
		struct builder b = {.big = i >= 2};
		struct str text = {0};
		size_t section;

		put_recording(&b, features[i % 2], &section);
		collect_to(write_recording(b.bytes.data, b.bytes.len), &text);
		EXPECT_STR(str_text(&text),
			   "art::Monitor::Wait();?;of_old;Thread.run;MainActivity$1.run;do_work;"
			   "wifi_send;");
		str_fini(&text);
		str_fini(&b.bytes);
	}
}

/* Every length in the feature can lie: each byte of it turned around, the samples stay. */
TEST(damaged_names_only_say_less)
{
	static const unsigned features[] = {FEAT_SIMPLEPERF_FILE, FEAT_SIMPLEPERF_FILE2};

	for (unsigned i = 0; i < 2; i++) {
		struct builder b = {0};
		size_t section;

		put_recording(&b, features[i], &section);
		for (size_t at = section; at < b.bytes.len; at += 3) {
			char byte = b.bytes.data[at];
			struct session *session = NULL;

			b.bytes.data[at] = (char)~byte;
			EXPECT_INT(session_open(write_recording(b.bytes.data, b.bytes.len),
						&session, NULL),
				   0);
			if (session)
				EXPECT_INT(session_stats(session)->samples, 7);
			session_close(session);
			b.bytes.data[at] = byte;
		}
		str_fini(&b.bytes);
	}
}

/* Records of simpleperf's own: the kernel's symbols, ids of events; sizes above 64 KiB. */
TEST(records_of_its_own)
{
	static const char kallsyms[] = "ffffffff81000100 T from_kallsyms\n";
	struct builder b = {0};
	struct str text = {0};
	size_t size;

	file_begin(&b, TYPE);
	put_mmap(&b, REC_MISC_KERNEL, UINT32_MAX, 0, UINT64_MAX, 0, "[kernel.kallsyms]", 0);
	size = 8 + 4 + 400000;
	put32(&b, REC_SIMPLEPERF_KERNEL_SYMBOLS);
	put16(&b, (uint16_t)(size >> 16));
	put16(&b, (uint16_t)size);
	put32(&b, 400000);
	put_text(&b, kallsyms, 400000);
	put32(&b, REC_SIMPLEPERF_EVENT_ID);
	put16(&b, 0);
	put16(&b, 8 + 8 + 16);
	put64(&b, 1);
	put64(&b, 0);
	put64(&b, 77);
	put_sample(&b, REC_MISC_KERNEL, 10, 10, 2, 0xffffffff81000110, NULL);
	file_end(&b);
	collect_to(write_recording(b.bytes.data, b.bytes.len), &text);
	EXPECT_STR(str_text(&text), "from_kallsyms;");
	str_fini(&text);
	str_fini(&b.bytes);
}

struct oracle {
	const struct session *session;
	char *text; /* what simpleperf printed */
	uint64_t samples, found, same, frames, named, different;
};

/* The next line of the other's stack; its name, "" when it has none. */
static bool next_frame(const char **at, uint64_t *ret_ip, char *name, size_t size)
{
	char line[16384], *from, *to;
	size_t len;

	if (**at != '\t')
		return false;
	len = strcspn(*at, "\n");
	snprintf(line, sizeof(line), "%.*s", (int)len, *at);
	*at += len + ((*at)[len] == '\n');
	*ret_ip = strtoull(line, &from, 16);
	to = strrchr(line, '(');
	name[0] = '\0';
	if (to && to - 1 > from && *from == ' ' && !strstr(line, "[+"))
		snprintf(name, size, "%.*s", (int)(to - 1 - from - 1), from + 1);
	return true;
}

/* Its demangler closes templates with ">>", ours with "> >". */
static bool same_but_spaces(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		if (*a != *b)
			return false;
		if (*a == '\0')
			return true;
	}
}

/* Its frames occur in ours, in order and with the same names: it leaves out those of the Java
 * interpreter. */
static int compare_sample(void *arg, const struct sample *sample)
{
	struct oracle *oracle = arg;
	char head[64], name[16384];
	const char *at;
	uint32_t mine = 0;
	bool same = true;
	uint64_t ip;

	snprintf(head, sizeof(head),
		 " %llu.%06llu: ", (unsigned long long)(sample->time_ns / NSEC_PER_SEC),
		 (unsigned long long)(sample->time_ns % NSEC_PER_SEC / 1000));
	oracle->samples++;
	at = strstr(oracle->text, head);
	at = at ? strchr(at, '\n') : NULL;
	if (!at)
		return 0;
	at++;
	oracle->found++;
	while (next_frame(&at, &ip, name, sizeof(name))) {
		const struct sample_frame *frame;
		const char *raw;
		char *plain;

		/* It moves callers into the call by its own step. */
		while (mine < sample->frame_count && sample->frames[mine].ip - ip > 8 &&
		       ip - sample->frames[mine].ip > 8)
			mine++;
		if (mine == sample->frame_count) {
			same = false;
			break;
		}
		frame = &sample->frames[mine++];
		raw = frame->dso
			      ? session_recorded_name(oracle->session, frame->dso, frame->address)
			      : NULL;
		plain = raw ? demangle(raw) : NULL;
		oracle->frames++;
		oracle->named += raw != NULL;
		if (!same_but_spaces(plain ? plain : raw ? raw : "", name)) {
			if (oracle->different++ < 5)
				printf("# ip 0x%llx: have %s, simpleperf %s\n",
				       (unsigned long long)ip, plain ? plain : raw, name);
			same = false;
		}
		free(plain);
	}
	oracle->same += same;
	return 0;
}

TEST(stacks_and_names_as_simpleperf_prints_them)
{
	const char *file = tap_data("sampling/simpleperf/perf_display_bitmaps.data"),
		   *script = tap_data("sampling/simpleperf/perf_display_bitmaps.perf-script.gz");
	struct oracle oracle = {0};
	struct session *session = NULL;
	struct str text = {0};
	CLEANUP_FREE char *packed = NULL;
	size_t size;

	SKIP_IF(!file || !script, "no recordings: set CULPRIT_TEST_DATA");
	ASSERT(file_read(script, 1 << 20, &packed, &size, NULL) == 0);
	ASSERT(gzip_inflate(packed, size, 16 << 20, &text, NULL) == 0);
	ASSERT(session_open(file, &session, NULL) == 0);
	oracle.session = session;
	oracle.text = text.data;
	EXPECT_INT(session_run(session, compare_sample, &oracle, NULL), 0);
	printf("# %llu samples, %llu printed by simpleperf, %llu the same; %llu frames, %llu "
	       "named, "
	       "%llu otherwise\n",
	       (unsigned long long)oracle.samples, (unsigned long long)oracle.found,
	       (unsigned long long)oracle.same, (unsigned long long)oracle.frames,
	       (unsigned long long)oracle.named, (unsigned long long)oracle.different);
	EXPECT_INT(oracle.samples, 525);
	EXPECT_INT(oracle.found, 525);
	/* Five names that the demanglers write differently: "!(false)", "[clone .llvm.1]". */
	EXPECT_INT(oracle.different, 5);
	EXPECT_INT(oracle.same, 520);
	EXPECT(oracle.named > 15000);
	session_close(session);
	str_fini(&text);
}
