/* pprof and folded stacks: golden bytes, faults with their places, and reading back what was
 * written. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "harness/tap.h"
#include "profile/folded.h"
#include "profile/pprof.h"
#include "profile/speedscope.h"

/* Built by hand: two sample types, a library mapped before the program, an inlined function,
 * labels. */
static void build_message(struct str *out)
{
	static const char *const strings[] = {
		"",       "samples",  "count", "cpu",     "nanoseconds", "/lib/x.so",
		"/bin/p", "ABCDEF12", "main",  "inner",   "p.c",         "thread",
		"worker", "bytes",    "size",  "comment", "malloc.*"};
	struct str m = {0}, inner = {0};

#define PUT(field)                                          \
	do {                                                \
		proto_put_bytes(out, field, m.data, m.len); \
		str_clear(&m);                              \
	} while (0)
#define NUMBER(field, value) proto_put_number(&m, field, (uint64_t)(value))
#define INNER(field)                                               \
	do {                                                       \
		proto_put_bytes(&m, field, inner.data, inner.len); \
		str_clear(&inner);                                 \
	} while (0)
	NUMBER(1, 1), NUMBER(2, 2);
	PUT(1);
	NUMBER(1, 3), NUMBER(2, 4);
	PUT(1);
	/* Unpacked locations, packed values, one label of text and one number. */
	NUMBER(1, 900), NUMBER(1, 7);
	proto_put_varint(&inner, 2), proto_put_varint(&inner, 20000000);
	INNER(2);
	proto_put_number(&inner, 1, 11), proto_put_number(&inner, 2, 12);
	INNER(3);
	proto_put_number(&inner, 1, 14), proto_put_number(&inner, 3, (uint64_t)-5);
	proto_put_number(&inner, 4, 13);
	INNER(3);
	PUT(2);
	/* Packed locations, unpacked values. */
	proto_put_varint(&inner, 7);
	INNER(1);
	NUMBER(2, 1), NUMBER(2, 10000000);
	PUT(2);
	NUMBER(1, 5), NUMBER(2, 0x7000), NUMBER(3, 0x8000), NUMBER(5, 5);
	PUT(3);
	NUMBER(1, 3), NUMBER(2, 0x1000), NUMBER(3, 0x2000), NUMBER(4, 0x100), NUMBER(5, 6),
		NUMBER(6, 7);
	NUMBER(7, 1), NUMBER(10, 1);
	PUT(3);
	NUMBER(1, 7), NUMBER(2, 3), NUMBER(3, 0x1234);
	proto_put_number(&inner, 1, 70), proto_put_number(&inner, 2, 33),
		proto_put_number(&inner, 3, 4);
	INNER(4);
	proto_put_number(&inner, 1, 20), proto_put_number(&inner, 2, 12);
	INNER(4);
	PUT(4);
	NUMBER(1, 900), NUMBER(2, 5), NUMBER(3, 0x7111), NUMBER(5, 1);
	PUT(4);
	NUMBER(1, 70), NUMBER(2, 9), NUMBER(3, 9), NUMBER(4, 10), NUMBER(5, 30);
	PUT(5);
	NUMBER(1, 20), NUMBER(2, 8), NUMBER(3, 8), NUMBER(4, 10);
	PUT(5);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		proto_put_bytes(out, 6, strings[i], strlen(strings[i]));
	proto_put_number(out, 7, 16);
	proto_put_number(out, 9, 1700000000000000000);
	proto_put_number(out, 10, 1000000000);
	NUMBER(1, 3), NUMBER(2, 4);
	PUT(11);
	proto_put_number(out, 12, 10000000);
	proto_put_number(out, 13, 15);
	proto_put_number(out, 14, 1);
	str_fini(&m);
	str_fini(&inner);
}

static const char *text_of(const struct profile *p, uint32_t id)
{
	return strtab_text(&p->strings, id);
}

static void check_content(const struct profile *p)
{
	const struct profile_location *leaf, *root;
	const struct profile_mapping *mapping;
	const struct profile_line *line;
	int64_t size = 0;

	ASSERT(p->value_types.len == 2 && p->samples.len == 2);
	EXPECT_STR(text_of(p, p->value_types.data[1].unit), "nanoseconds");
	EXPECT_INT(p->values.data[0], 2);
	EXPECT_INT(p->values.data[1], 20000000);
	EXPECT_INT(p->values.data[3], 10000000);
	leaf = &p->locations.data[p->stacks.data[p->samples.data[0].stack].location];
	root = &p->locations.data[p->stacks.data[p->samples.data[1].stack].location];
	EXPECT(leaf->folded && leaf->line_count == 0 && leaf->address == 0x7111);
	ASSERT(root->line_count == 2);
	line = &p->lines.data[root->first_line];
	EXPECT_STR(text_of(p, p->functions.data[line[0].function].name), "inner");
	EXPECT_STR(text_of(p, p->functions.data[line[1].function].name), "main");
	EXPECT_INT(p->functions.data[line[0].function].start_line, 30);
	EXPECT(line[0].line == 33 && line[0].column == 4 && line[1].line == 12);
	mapping = &p->mappings.data[root->mapping];
	EXPECT_STR(text_of(p, mapping->filename), "/bin/p");
	EXPECT_STR(text_of(p, mapping->build_id), "abcdef12");
	EXPECT(mapping->start == 0x1000 && mapping->limit == 0x2000 && mapping->offset == 0x100);
	EXPECT(mapping->has_functions && !mapping->has_filenames && mapping->has_inline_frames);
	EXPECT_STR(profile_label_text(p, p->samples.data[0].labels, "thread"), "worker");
	EXPECT(profile_label_number(p, p->samples.data[0].labels, "size", &size));
	EXPECT_INT(size, -5);
	EXPECT_INT(p->samples.data[1].labels, 0);
	EXPECT_INT(p->time_ns, 1700000000000000000);
	EXPECT_INT(p->duration_ns, 1000000000);
	EXPECT_INT(p->period, 10000000);
	EXPECT_STR(text_of(p, p->period_type.type), "cpu");
	EXPECT_STR(text_of(p, p->drop_frames), "malloc.*");
	EXPECT_INT(profile_default_value(p), 0);
	ASSERT(p->comments.len == 1);
	EXPECT_STR(text_of(p, p->comments.data[0]), "comment");
}

TEST(pprof_reads_and_writes_everything)
{
	struct str message = {0}, first = {0}, second = {0}, packed = {0};
	struct profile p, q;
	struct err err = {0};

	build_message(&message);
	EXPECT(pprof_detect(message.data, message.len));
	EXPECT(!folded_detect(message.data, message.len));
	ASSERT(pprof_read(message.data, message.len, 1 << 20, &p, &err) == 0);
	check_content(&p);
	EXPECT_INT(pprof_encode(&p, &first, &err), 0);
	ASSERT(pprof_read(first.data, first.len, 1 << 20, &q, &err) == 0);
	check_content(&q);
	/* The program comes first among the mappings. */
	EXPECT_STR(text_of(&q, q.mappings.data[1].filename), "/bin/p");
	EXPECT_INT(pprof_encode(&q, &second, &err), 0);
	EXPECT(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	profile_fini(&q);
	EXPECT_INT(pprof_write(&p, &packed, &err), 0);
	EXPECT(pprof_detect(packed.data, packed.len));
	ASSERT(pprof_read(packed.data, packed.len, 1 << 20, &q, &err) == 0);
	check_content(&q);
	profile_fini(&q);
	EXPECT_INT(pprof_read(packed.data, packed.len, 100, &q, &err), -EFBIG);
	str_clear(&packed);
	EXPECT_INT(zstd_compress(message.data, message.len, 3, &packed, &err), 0);
	ASSERT(pprof_read(packed.data, packed.len, 1 << 20, &q, &err) == 0);
	check_content(&q);
	profile_fini(&q);
	profile_fini(&p);
	str_fini(&message);
	str_fini(&first);
	str_fini(&second);
	str_fini(&packed);
}

/* It has one or the other; writing both would make two samples one. */
TEST(pprof_label_of_text_and_number_is_a_text)
{
	static const char *const strings[] = {"", "samples", "count", "key", "text"};
	struct str message = {0}, sample = {0}, label = {0};
	struct profile p;
	struct err err = {0};

	proto_put_number(&sample, 1, 1), proto_put_number(&sample, 2, 2);
	proto_put_bytes(&message, 1, sample.data, sample.len);
	for (uint64_t number = 7; number < 9; number++) {
		str_clear(&sample), str_clear(&label);
		proto_put_number(&label, 1, 3), proto_put_number(&label, 2, 4);
		proto_put_number(&label, 3, number);
		proto_put_number(&sample, 2, 1);
		proto_put_bytes(&sample, 3, label.data, label.len);
		proto_put_bytes(&message, 2, sample.data, sample.len);
	}
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		proto_put_bytes(&message, 6, strings[i], strlen(strings[i]));
	ASSERT(pprof_read(message.data, message.len, 1 << 20, &p, &err) == 0);
	EXPECT_INT(p.samples.len, 1);
	EXPECT_STR(profile_label_text(&p, p.samples.data[0].labels, "key"), "text");
	profile_fini(&p);
	str_fini(&message);
	str_fini(&sample);
	str_fini(&label);
}

TEST(pprof_merge_of_a_profile_with_itself_doubles_it)
{
	struct str message = {0};
	struct profile p, q;
	struct err err = {0};
	int64_t one = 0, two = 0;

	build_message(&message);
	ASSERT(pprof_read(message.data, message.len, 1 << 20, &p, &err) == 0);
	ASSERT(profile_init(&q) == 0);
	EXPECT_INT(profile_merge(&q, &p), 0);
	check_content(&q);
	EXPECT_INT(profile_merge(&q, &p), 0);
	EXPECT_INT(q.samples.len, 2);
	EXPECT_INT(profile_total(&p, 1, &one), 0);
	EXPECT_INT(profile_total(&q, 1, &two), 0);
	EXPECT_INT(two, 2 * one);
	EXPECT_INT(q.duration_ns, 2 * p.duration_ns);
	profile_fini(&p);
	profile_fini(&q);
	str_fini(&message);
}

static void refused(const char *name, const char *bytes, size_t size, const char *words)
{
	struct profile p;
	struct err err = {0};
	int r = pprof_read(bytes, size, 1 << 20, &p, &err);

	tap_expect(r < 0 && strstr(err.text, words), __FILE__, __LINE__,
		   "%s: %d \"%s\", want \"%s\"", name, r, err.text, words);
	if (r == 0)
		profile_fini(&p);
}

#define REFUSED(bytes, words) refused(#bytes, bytes, sizeof(bytes) - 1, words)
#define TYPE                  "\x0a\x04\x08\x01\x10\x02" /* sample type 1/2 */
#define STRINGS            \
	"\x32\x00\x32\x01" \
	"a"                \
	"\x32\x01"         \
	"b"

TEST(pprof_faults_name_their_byte)
{
	refused("empty", "", 0, "empty");
	REFUSED("\x0a", "at byte 1");
	REFUSED("\x0a\x7f\x08", "field 1 at byte 0 says 127 bytes, only 1 are left");
	REFUSED("\x0b", "field 1 at byte 0 has the unknown wire type 3");
	REFUSED("\x00\x01", "bad field number at byte 0");
	REFUSED("\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "bad number at byte 1");
	REFUSED("\x48\xff", "truncated at byte 1");
	REFUSED("\x32\x01x", "the first string is not empty at byte 0");
	REFUSED("\x32\x00", "no sample types");
	REFUSED("\x0a\x02\x08\x01\x32\x00", "string 1 of a table of 1 at byte 2");
	REFUSED("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"string -1 of a table of 1 at byte 2");
	REFUSED(TYPE STRINGS "\x12\x02\x08\x01", "location 1 does not exist at byte 16");
	REFUSED(TYPE STRINGS "\x12\x00", "a sample of 0 values where 1 belong at byte 14");
	REFUSED(TYPE STRINGS "\x12\x04\x12\x02\x01\x01",
		"a sample of 2 values where 1 belong at byte 14");
	REFUSED(TYPE STRINGS "\x12\x03\x12\x01\xff", "truncated at byte 18");
	REFUSED(TYPE STRINGS "\x1a\x00", "mapping with the id 0 at byte 14");
	REFUSED(TYPE STRINGS "\x1a\x02\x08\x01\x1a\x02\x08\x01",
		"mapping id 1 is used twice at byte 18");
	REFUSED(TYPE STRINGS "\x22\x04\x08\x01\x10\x09", "mapping 9 does not exist at byte 18");
	REFUSED(TYPE STRINGS "\x22\x06\x08\x01\x22\x02\x08\x09",
		"function 9 does not exist at byte 20");
	REFUSED(TYPE STRINGS "\x22\x02\x08\x01\x22\x02\x08\x01",
		"location id 1 is used twice at byte 18");
	REFUSED(TYPE STRINGS "\x2a\x02\x08\x01\x2a\x02\x08\x01",
		"function id 1 is used twice at byte 18");
	REFUSED(TYPE STRINGS "\x2a\x02\x10\x01\x2a\x02\x08\x01", "1 of 2 functions have the id 0");
	REFUSED(TYPE STRINGS TYPE STRINGS,
		"two profiles one after the other: field 1 comes again at byte 14");
	REFUSED(TYPE STRINGS "\x48\x01\x48\x02", "two profiles one after the other: field 9");
	REFUSED(TYPE STRINGS "\x4d\x01\x01\x01\x01", "field 9 is not a number at byte 14");
	REFUSED(TYPE STRINGS "\x12\x0b\x12\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
			     "\x12\x0b\x12\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"equal samples add up to more than 64 bits at byte 27");
}

TEST(pprof_net_functions_without_ids)
{
	/* Two functions of id 0, two locations that name functions 1 and 2, one sample of both. */
	static const char bytes[] =
		TYPE STRINGS "\x2a\x02\x10\x01\x2a\x02\x10\x02"
			     "\x22\x06\x08\x01\x22\x02\x08\x01\x22\x06\x08\x02\x22\x02\x08\x02"
			     "\x12\x07\x0a\x02\x02\x01\x12\x01\x05";
	const struct folded_options options = {.value = -1};
	struct str text = {0};
	struct profile p;
	struct err err = {0};

	ASSERT(pprof_read(bytes, sizeof(bytes) - 1, 1 << 20, &p, &err) == 0);
	EXPECT_INT(folded_write(&p, &options, &text, &err), 0);
	EXPECT_STR(str_text(&text), "a;b 5\n");
	str_fini(&text);
	profile_fini(&p);
}

/* Every cut of a good message ends in an error or a profile, under a small limit of memory. */
TEST(pprof_cut_anywhere)
{
	struct str message = {0};
	size_t good = 0;

	build_message(&message);
	for (size_t cut = 0; cut < message.len; cut++) {
		/* A copy of just this size, so that a sanitizer sees any byte read beyond. */
		char *copy = malloc(cut + 1);
		struct profile p;
		struct err err = {0};

		ASSERT(copy != NULL);
		memcpy(copy, message.data, cut);
		if (pprof_read(copy, cut, 1 << 20, &p, &err) == 0) {
			good++;
			profile_fini(&p);
		} else if (err.text[0] == '\0') {
			EXPECT(err.text[0] != '\0');
		}
		free(copy);
	}
	EXPECT(good < 20);
	str_fini(&message);
}

static void expect_folded(const char *in, const char *want, uint64_t bad, uint64_t first_bad)
{
	const struct folded_options options = {.annotate = true, .value = -1};
	struct folded_info info = {0};
	struct str out = {0};
	struct profile p;
	struct err err = {0};

	ASSERT(tap_expect(folded_read(in, strlen(in), &p, &info, &err) == 0, __FILE__, __LINE__,
			  "\"%s\": %s", in, err.text));
	EXPECT_INT(folded_write(&p, &options, &out, &err), 0);
	tap_expect(strcmp(str_text(&out), want) == 0, __FILE__, __LINE__,
		   "\"%s\": have \"%s\", want \"%s\"", in, str_text(&out), want);
	EXPECT_INT(info.bad_lines, bad);
	EXPECT_INT(info.first_bad_line, first_bad);
	str_fini(&out);
	profile_fini(&p);
}

TEST(folded_lines)
{
	expect_folded("a;b 1\nb 2\na;b 4\n", "a;b 5\nb 2\n", 0, 0);
	expect_folded("a;b 1\r\n\r\nb 2", "a;b 1\nb 2\n", 0, 0);
	expect_folded("# interval: 100\n#\nmain 1\n", "main 1\n", 0, 0);
	expect_folded("no count\na 1\n;x y\n", "a 1\n", 2, 1);
	expect_folded("a 1\n 7\n", "a 1\n", 1, 2);
	expect_folded("a 1\na -5\na 1e5\na 0x10\na 5.\na .5\na 99999999999999999999\n", "a 1\n", 6,
		      2);
	expect_folded("std::vector<T, A>::operator()(int, char) const;f(a b) 3\n",
		      "std::vector<T, A>::operator()(int, char) const;f(a b) 3\n", 0, 0);
	expect_folded("a;[libc.so.6];[unknown] 1\n", "a;[libc.so.6];[unknown] 1\n", 0, 0);
	expect_folded("a;;b 1\n", "a;[unknown];b 1\n", 0, 0);
	expect_folded("a\t\xff\xfe;b\x1b[0m\t2\n", "a\t\xff\xfe;b?[0m 2\n", 0, 0);
	expect_folded("step 2 3\nother 1\n", "other 1\nstep 2 3\n", 0, 0);
	expect_folded("a 0\nb 1\n", "b 1\n", 0, 0);
}

TEST(folded_kinds)
{
	const char *text = "main;inl_[i];deep_[i];sys_read_[k];jit_[j];wake_[w] 4\n";
	struct profile p;
	struct err err = {0};
	uint32_t stack;

	expect_folded(text, text, 0, 0);
	expect_folded("_[k];x_[q] 1\n", "_[k];x_[q] 1\n", 0, 0);
	ASSERT(folded_read(text, strlen(text), &p, NULL, &err) == 0);
	/* An inlined frame shares its caller's location: four nodes, not six. */
	EXPECT_INT(p.stacks.len - 1, 4);
	stack = p.stacks.data[p.samples.data[0].stack].parent;
	EXPECT_INT(p.mappings.data[p.locations.data[p.stacks.data[stack].location].mapping].kind,
		   PROFILE_JIT);
	stack = p.stacks.data[stack].parent;
	EXPECT_INT(p.mappings.data[p.locations.data[p.stacks.data[stack].location].mapping].kind,
		   PROFILE_KERNEL);
	profile_fini(&p);
}

TEST(folded_fractions_keep_the_total)
{
	const char *text = "a 0.4\nb 0.4\nc 0.4\nd 1.8\ne 3\n";
	struct folded_info info;
	struct profile p;
	struct err err = {0};
	int64_t total = 0;

	ASSERT(folded_read(text, strlen(text), &p, &info, &err) == 0);
	EXPECT(info.fractions);
	EXPECT_INT(profile_total(&p, 0, &total), 0);
	EXPECT_INT(total, 6);
	profile_fini(&p);
}

TEST(folded_two_columns)
{
	const char *text = "a;b 1 2\nc 0 7\n";
	const struct folded_options before = {.value = 0};
	struct folded_info info;
	struct str out = {0};
	struct profile p;
	struct err err = {0};

	expect_folded(text, text, 0, 0);
	expect_folded("a 1 2\nc\n", "a 1 2\n", 1, 2);
	ASSERT(folded_read(text, strlen(text), &p, &info, &err) == 0);
	EXPECT(info.two_columns);
	EXPECT_INT(profile_find_value(&p, "before"), 0);
	EXPECT_INT(profile_find_value(&p, "after"), 1);
	EXPECT_INT(folded_write(&p, &before, &out, &err), 0);
	EXPECT_STR(str_text(&out), "a;b 1\n");
	str_fini(&out);
	profile_fini(&p);
}

TEST(folded_refusals)
{
	struct profile p;
	struct err err = {0};

	EXPECT_INT(folded_read("", 0, &p, NULL, &err), -ENODATA);
	EXPECT_INT(folded_read("\n\n", 2, &p, NULL, &err), -ENODATA);
	EXPECT_INT(folded_read("hello\n", 6, &p, NULL, &err), -EBADMSG);
	EXPECT(strstr(err.text, "line 1: no count at the end"));
	EXPECT_INT(folded_read("a 9223372036854775807\na 1\n", 26, &p, NULL, &err), -EOVERFLOW);
	EXPECT(strstr(err.text, "line 2"));
	EXPECT(folded_detect("a;b 1\n", 6));
	EXPECT(!folded_detect("hello world\n", 12));
	EXPECT(!folded_detect("", 0));
}

TEST(folded_roots)
{
	struct folded_options options = {.root = FOLDED_ROOT_TID, .value = -1};
	struct profile_label labels[3] = {0};
	struct profile p;
	struct str out = {0};
	struct err err = {0};
	uint32_t set;
	int64_t one = 1;

	ASSERT(profile_init(&p) == 0);
	profile_add_value_type(&p, "samples", "count");
	strtab_intern_text(&p.strings, "comm", &labels[0].key);
	strtab_intern_text(&p.strings, "a;b", &labels[0].text);
	strtab_intern_text(&p.strings, "pid", &labels[1].key);
	strtab_intern_text(&p.strings, "tid", &labels[2].key);
	labels[1].number = 10;
	labels[2].number = 11;
	EXPECT_INT(profile_label_set(&p, labels, 3, &set), 0);
	EXPECT_INT(profile_add(&p, 0, set, &one), 0);
	EXPECT_INT(folded_write(&p, &options, &out, &err), 0);
	options.root = FOLDED_ROOT_PID;
	EXPECT_INT(folded_write(&p, &options, &out, &err), 0);
	options.root = FOLDED_ROOT_COMM;
	EXPECT_INT(folded_write(&p, &options, &out, &err), 0);
	options.root = FOLDED_ROOT_NONE;
	EXPECT_INT(folded_write(&p, &options, &out, &err), 0);
	EXPECT_STR(str_text(&out), "a:b-10/11 1\na:b-10 1\na:b 1\n[unknown] 1\n");
	str_clear(&out);
	EXPECT_INT(speedscope_write(&p, "x", &out, &err), 0);
	EXPECT(strstr(str_text(&out), "\"weights\":[1]"));
	str_fini(&out);
	profile_fini(&p);
}

/* Collapsed recordings of the FlameGraph tests: totals and lines survive pprof and back. */
TEST(folded_real_files)
{
	static const char *const names[] = {
		"sampling/flamegraph_perfscript/perf-java-stacks-02-collapsed-all.txt",
		"sampling/flamegraph_perfscript/perf-cycles-instructions-01-collapsed-all.txt",
	};
	const struct folded_options options = {.annotate = true, .value = -1};

	SKIP_IF(tap_data_dir() == NULL, "CULPRIT_TEST_DATA is not set");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct str first = {0}, packed = {0}, second = {0};
		struct folded_info info;
		struct profile p, q;
		struct err err = {0};
		char *data;
		size_t size;

		SKIP_IF(tap_data(names[i]) == NULL, "no %s", names[i]);
		ASSERT(file_read(tap_data(names[i]), 1 << 26, &data, &size, &err) == 0);
		ASSERT(folded_read(data, size, &p, &info, &err) == 0);
		EXPECT_INT(info.bad_lines, 0);
		EXPECT_INT(folded_write(&p, &options, &first, &err), 0);
		/* The file has one line per stack: the same lines come out, maybe in another order.
		 */
		EXPECT_INT(first.len, size);
		for (char *line = strtok(data, "\n"); line; line = strtok(NULL, "\n"))
			if (!strstr(str_text(&first), line))
				EXPECT_STR("missing", line);
		EXPECT_INT(pprof_write(&p, &packed, &err), 0);
		ASSERT(pprof_read(packed.data, packed.len, 1 << 28, &q, &err) == 0);
		EXPECT_INT(folded_write(&q, &options, &second, &err), 0);
		EXPECT(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
		profile_fini(&p);
		profile_fini(&q);
		str_fini(&first);
		str_fini(&second);
		str_fini(&packed);
		free(data);
	}
}
