/*
 * BPF programs that only the header's features describe: names of their functions from the types
 * they were loaded with, lines, when they were there. Built here, in both byte orders.
 */
#include <string.h>

#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/bpf-info.h"
#include "sample/bpf-loaded.h"
#include "sample/collect.h"
#include "sample/perfdata.h"
#include "sample/session.h"

#define TYPE       (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD)
#define OUTER      UINT64_C(0xffffffffc0001000)
#define INNER      UINT64_C(0xffffffffc0003000)
#define NAMELESS   UINT64_C(0xffffffffc0002000)
#define OTHER      UINT64_C(0xffffffffc0005000)
#define INFO_BYTES 208

/* One entry of BPF_PROG_INFO while it is put together. */
struct entry {
	struct builder info, data;
	uint64_t arrays;
};

/* A field of the structure that is put together, in the file's byte order. */
static void set(struct entry *entry, size_t at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		entry->info.bytes.data[at + (entry->info.big ? bytes - 1 - i : i)] =
			(char)(value >> 8 * i);
}

static void entry_begin(struct entry *entry, bool big, uint32_t id, uint32_t types,
			const char *name)
{
	*entry = (struct entry){.info = {.big = big}, .data = {.big = big}};
	put_text(&entry->info, "", INFO_BYTES);
	set(entry, BPF_INFO_ID, 4, id);
	set(entry, BPF_INFO_TAG, 1, 0xa0);
	set(entry, BPF_INFO_BTF_ID, 4, types);
	strcpy(entry->info.bytes.data + BPF_INFO_NAME, name);
}

/* The array that is put into data from here on; each_at 0: its entries have a fixed size. */
static void array_begin(struct entry *entry, enum bpf_array_bit bit, size_t pointer,
			size_t count_at, uint32_t count, size_t each_at, uint32_t each)
{
	put_text(&entry->data, "", -entry->data.bytes.len & 7);
	entry->arrays |= UINT64_C(1) << bit;
	set(entry, pointer, 8, entry->data.bytes.len);
	set(entry, count_at, 4, count);
	if (each_at)
		set(entry, each_at, 4, each);
}

static void entry_end(struct entry *entry, struct builder *b)
{
	put32(b, INFO_BYTES);
	put32(b, (uint32_t)entry->data.bytes.len);
	put64(b, entry->arrays);
	str_append(&b->bytes, entry->info.bytes.data, INFO_BYTES);
	str_append(&b->bytes, entry->data.bytes.data, entry->data.bytes.len);
	str_fini(&entry->info.bytes);
	str_fini(&entry->data.bytes);
}

/* Three functions, of which the last has no type, and four lines. */
static void put_program(struct builder *b)
{
	static const uint64_t starts[] = {OUTER, INNER, NAMELESS};
	static const struct {
		uint64_t address;
		uint32_t file, line;
	} lines[] = {
		{OUTER, 22, 10}, {INNER, 22, 20}, {INNER + 0x40, 30, 21}, {NAMELESS + 8, 22, 30}};
	struct entry e;

	entry_begin(&e, b->big, 42, 9, "outer_but_cut_s");
	array_begin(&e, BPF_ARRAY_JITED_KSYMS, BPF_INFO_KSYMS, BPF_INFO_NR_KSYMS, 3, 0, 0);
	for (size_t i = 0; i < 3; i++)
		put64(&e.data, starts[i]);
	array_begin(&e, BPF_ARRAY_JITED_FUNC_LENS, BPF_INFO_FUNC_LENS, BPF_INFO_NR_FUNC_LENS, 3, 0,
		    0);
	for (size_t i = 0; i < 3; i++)
		put32(&e.data, 0x80);
	array_begin(&e, BPF_ARRAY_FUNC_INFO, BPF_INFO_FUNC_INFO, BPF_INFO_NR_FUNC_INFO, 2,
		    BPF_INFO_FUNC_INFO_BYTES, 12);
	for (uint32_t i = 0; i < 2; i++) {
		put32(&e.data, 5 * i);
		put32(&e.data, 4 + i);
		put32(&e.data, 0xffffffff); /* a kernel that tells more */
	}
	array_begin(&e, BPF_ARRAY_LINE_INFO, BPF_INFO_LINE_INFO, BPF_INFO_NR_LINE_INFO, 4,
		    BPF_INFO_LINE_BYTES, 16);
	for (uint32_t i = 0; i < 4; i++) {
		put32(&e.data, i);
		put32(&e.data, lines[i].file);
		put32(&e.data, 0);
		put32(&e.data, lines[i].line << 10 | 3);
	}
	array_begin(&e, BPF_ARRAY_JITED_LINE_INFO, BPF_INFO_JITED_LINES, BPF_INFO_NR_JITED_LINES, 4,
		    BPF_INFO_JITED_LINE_BYTES, 8);
	for (size_t i = 0; i < 4; i++)
		put64(&e.data, lines[i].address);
	array_begin(&e, BPF_ARRAY_PROG_TAGS, BPF_INFO_TAGS, BPF_INFO_NR_TAGS, 3, 0, 0);
	for (uint8_t i = 0; i < 3; i++) {
		put_text(&e.data, "", 7);
		put8(&e.data, (uint8_t)(i + 1));
	}
	entry_end(&e, b);
}

/* No types, no lines, one function. */
static void put_plain_program(struct builder *b)
{
	struct entry e;

	entry_begin(&e, b->big, 43, 0, "plain");
	array_begin(&e, BPF_ARRAY_JITED_KSYMS, BPF_INFO_KSYMS, BPF_INFO_NR_KSYMS, 1, 0, 0);
	put64(&e.data, OTHER);
	array_begin(&e, BPF_ARRAY_JITED_FUNC_LENS, BPF_INFO_FUNC_LENS, BPF_INFO_NR_FUNC_LENS, 1, 0,
		    0);
	put32(&e.data, 0x10);
	entry_end(&e, b);
}

/* INT, STRUCT of one member, FUNC_PROTO with a parameter, FUNC outer, FUNC inner. */
static void put_types(struct builder *b)
{
	static const char strings[] = "\0int\0outer_function\0x\0outer.c\0inner.h";
	static const uint32_t types[] = {
		1,  1u << 24,      4, 32,       /* int */
		0,  4u << 24 | 1,  8, 20, 1, 0, /* struct { int x; } */
		0,  13u << 24 | 1, 1, 20, 1,    /* int (int x) */
		5,  12u << 24,     3,           /* outer_function */
		26, 12u << 24 | 1, 3,           /* "r.c" */
	};

	put16(b, 0xeb9f);
	put8(b, 1);
	put8(b, 0);
	put32(b, 24);
	put32(b, 0);
	put32(b, sizeof(types));
	put32(b, sizeof(types));
	put32(b, sizeof(strings));
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		put32(b, types[i]);
	str_append(&b->bytes, strings, sizeof(strings));
}

static void put_feature_body(struct builder *b, unsigned feature)
{
	struct builder types = {.big = b->big};

	if (feature == FEAT_BPF_PROG_INFO) {
		put32(b, 2);
		put_program(b);
		put_plain_program(b);
		return;
	}
	put_types(&types);
	put32(b, 1);
	put32(b, 9);
	put32(b, (uint32_t)types.bytes.len);
	str_append(&b->bytes, types.bytes.data, types.bytes.len);
	str_fini(&types.bytes);
}

static const unsigned features[] = {FEAT_BPF_PROG_INFO, FEAT_BPF_BTF};

static void put_bpf_event(struct builder *b, uint16_t what, uint32_t id, uint64_t time)
{
	record_begin(b, REC_BPF_EVENT, 0);
	put16(b, what);
	put16(b, 0);
	put32(b, id);
	put64(b, 0);
	put_sample_id(b, 0, 0, time);
	record_end(b);
}

static void put_ksymbol(struct builder *b, uint64_t address, const char *name, uint64_t time)
{
	record_begin(b, REC_KSYMBOL, 0);
	put64(b, address);
	put32(b, 0x80);
	put16(b, 1);
	put16(b, 0);
	put_text(b, name, 40);
	put_sample_id(b, 0, 0, time);
	record_end(b);
}

static const struct {
	uint64_t time, ip;
	const char *place;
} samples[] = {
	{50, INNER, "?"}, /* not loaded yet */
	{60, OTHER + 1, "bpf_prog_a000000000000000_plain :0:0"},
	{200, OUTER + 0x7f, "bpf_prog_0000000000000001_told outer.c:10:3"},
	{200, INNER + 0x3f, "bpf_prog_0000000000000002_r.c outer.c:20:3"},
	{200, INNER + 0x40, "bpf_prog_0000000000000002_r.c inner.h:21:3"},
	{200, NAMELESS, "bpf_prog_0000000000000003_F :0:0"}, /* before its first line */
	{200, NAMELESS + 9, "bpf_prog_0000000000000003_F outer.c:30:3"},
	{350, INNER + 0x20, "?"}, /* not any more */
};

static void put_records(struct builder *b)
{
	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, 0, UINT64_MAX, 0, "[kernel.kallsyms]_text", 0);
	put_bpf_event(b, 1, 42, 100);
	put_ksymbol(b, OUTER, "bpf_prog_0000000000000001_told", 100);
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		put_sample(b, REC_MISC_KERNEL, 10, 10, samples[i].time, samples[i].ip, NULL);
	put_bpf_event(b, 2, 42, 300);
	put_bpf_event(b, 7, 42, 10); /* what this may be is not known */
}

static void put_place(const struct profile *profile, size_t sample, struct str *out)
{
	const struct profile_location *location =
		&profile->locations
			 .data[profile->stacks.data[profile->samples.data[sample].stack].location];
	const struct profile_line *line = &profile->lines.data[location->first_line];
	const struct profile_function *function;

	if (location->line_count != 1) {
		str_puts(out, "?");
		return;
	}
	function = &profile->functions.data[line->function];
	str_printf(out, "%s %s:%lld:%lld", strtab_text(&profile->strings, function->name),
		   strtab_text(&profile->strings, function->filename), (long long)line->line,
		   (long long)line->column);
}

static void collect(const struct str *bytes, struct profile *profile)
{
	struct collect_options options = {0};
	struct session *session = NULL;

	EXPECT_INT(session_open(write_recording(bytes->data, bytes->len), &session, NULL), 0);
	EXPECT_INT(profile_init(profile), 0);
	if (session)
		EXPECT_INT(collect_profile(session, &options, profile, NULL), 0);
	session_close(session);
}

static void expect_places(const struct str *bytes)
{
	struct profile profile;

	collect(bytes, &profile);
	EXPECT_INT(profile.samples.len, ARRAY_LEN(samples));
	for (size_t i = 0; i < MIN(profile.samples.len, ARRAY_LEN(samples)); i++) {
		struct str text = {0};

		put_place(&profile, i, &text);
		EXPECT_STR(str_text(&text), samples[i].place);
		str_fini(&text);
	}
	profile_fini(&profile);
}

TEST(functions_and_lines_from_the_features)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};

		file_begin(&b, TYPE);
		put_records(&b);
		file_end(&b);
		put_features(&b, features, ARRAY_LEN(features), put_feature_body);
		expect_places(&b.bytes);
		str_fini(&b.bytes);
	}
}

TEST(functions_and_lines_through_a_pipe)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};

		pipe_begin(&b, TYPE);
		put_records(&b);
		for (unsigned feature = FEAT_BPF_PROG_INFO; feature <= FEAT_BPF_BTF; feature++) {
			record_begin(&b, REC_HEADER_FEATURE, 0);
			put64(&b, feature);
			put_feature_body(&b, feature);
			record_end(&b);
		}
		expect_places(&b.bytes);
		str_fini(&b.bytes);
	}
}

/* Each byte of both features in turn: the samples stay, whatever they are called. */
TEST(damage_only_loses_names)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		size_t first;

		file_begin(&b, TYPE);
		put_records(&b);
		file_end(&b);
		first = put_features(&b, features, ARRAY_LEN(features), put_feature_body);
		for (size_t at = first; at < b.bytes.len; at++) {
			char kept = b.bytes.data[at];
			struct profile profile;

			b.bytes.data[at] = (char)(at % 3 ? 0xff : 0x7f);
			collect(&b.bytes, &profile);
			EXPECT_INT(profile.samples.len, ARRAY_LEN(samples));
			profile_fini(&profile);
			b.bytes.data[at] = kept;
		}
		str_fini(&b.bytes);
	}
}

TEST(types_of_either_byte_order)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct btf btf;

		put_types(&b);
		EXPECT_INT(btf_read(b.bytes.data, b.bytes.len, &btf), 0);
		EXPECT_INT(btf.names.len, 5);
		EXPECT_STR(btf_type_name(&btf, 1), "int");
		EXPECT(!btf_type_name(&btf, 0));
		EXPECT(!btf_type_name(&btf, 2)); /* "" */
		EXPECT_STR(btf_type_name(&btf, 4), "outer_function");
		EXPECT(!btf_type_name(&btf, 6));
		EXPECT(!btf_string(&btf, 1000));
		btf_fini(&btf);
		EXPECT_INT(btf_read(b.bytes.data, b.bytes.len - 1, &btf), -EBADMSG);
		btf_fini(&btf);
		str_fini(&b.bytes);
	}
}

static int count_function(void *arg, const struct bpf_info *info, uint32_t index, const char *name)
{
	EXPECT(info->id > 0);
	EXPECT(index < info->functions);
	EXPECT(str_prefix(name, "bpf_prog_", NULL));
	++*(unsigned *)arg;
	return 0;
}

/* What is loaded here, none or many: of addresses that no program has, nothing is kept. */
TEST(programs_of_this_machine)
{
	uint64_t addresses[] = {3, 1, 2};
	struct str infos = {0}, types = {0};
	struct bpf_loaded *loaded = NULL;
	unsigned count = 0;

	EXPECT_INT(bpf_loaded_new(&loaded), 0);
	EXPECT_INT(bpf_loaded_read(loaded), 0);
	EXPECT_INT(bpf_loaded_functions(loaded, count_function, &count), 0);
	EXPECT_INT(bpf_loaded_sections(loaded, addresses, 3, &infos, &types), 0);
	EXPECT_INT(infos.len, 0);
	EXPECT_INT(types.len, 0);
	str_fini(&infos);
	str_fini(&types);
	bpf_loaded_free(loaded);
}
