/* The table of Go's runtime in every layout, made here, and in a program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "symbols/gopclntab.h"

static const struct {
	uint64_t entry;
	const char *name;
} functions[] = {
	{0x1000, "main.main"}, {0x1040, "main.(*T).Run"}, {0x1100, ""}, {0x1180, "runtime.goexit"}};

#define END 0x1200

struct shape {
	uint32_t magic;
	unsigned ptr_size;
	bool swap;
};

static void put_byte(struct str *out, uint64_t value, unsigned index)
{
	str_putc(out, (char)(index < sizeof(value) ? value >> 8 * index : 0));
}

static void put(struct str *out, uint64_t value, unsigned size, bool swap)
{
	for (unsigned i = 0; i < size; i++)
		put_byte(out, value, swap ? size - 1 - i : i);
}

static void patch(struct str *out, size_t at, uint64_t value, unsigned size, bool swap)
{
	struct str bytes = {0};

	put(&bytes, value, size, swap);
	memcpy(out->data + at, bytes.data, size);
	str_fini(&bytes);
}

/* Pairs of a value and where it ends, as differences to what was before; a value of 0 ends it. */
static void put_stream(struct str *out, const int (*pairs)[2])
{
	int value = -1, end = 0;

	for (size_t i = 0; pairs[i][1] != 0; i++) {
		int change = pairs[i][0] - value;

		str_putc(out, (char)(change < 0 ? ~(change * 2) : change * 2));
		str_putc(out, (char)(pairs[i][1] - end));
		value = pairs[i][0];
		end = pairs[i][1];
	}
	str_putc(out, '\0');
}

/* What the streams of every function say, of its first 64 bytes. */
static const int line_pairs[][2] = {{10, 4}, {11, 8}, {30, 16}, {40, 24}, {12, 64}, {0, 0}};
static const int tree_pairs[][2] = {{-1, 8}, {0, 16}, {1, 24}, {-1, 64}, {0, 0}};
static const int file_pairs[][2] = {{0, 16}, {1, 24}, {0, 64}, {0, 0}};
/* In 1.2, files are counted from 1. */
static const int old_file_pairs[][2] = {{1, 16}, {2, 24}, {1, 64}, {0, 0}};

#define FILE_ONE "/src/one.go"
#define FILE_TWO "/src/two.go"
#define OUTER    "inline.outer" /* called at 4; it calls inner at 8 */
#define INNER    "inline.inner"

struct places { /* offsets of the parts */
	size_t names, units, files, values, list, nodes;
	size_t name[ARRAY_LEN(functions)], outer, inner;
	size_t file_stream, line_stream, tree_stream;
};

/* Everything but the list and the records. Offsets in it are relative to their parts, 1.2's to 0.
 */
static void put_parts(struct str *out, const struct shape *shape, struct places *at)
{
	bool split = shape->magic != 0xfffffffb;
	size_t two;

	at->names = split ? out->len : 0;
	str_putc(out, '\0');
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		at->name[i] = out->len - at->names;
		str_append(out, functions[i].name, strlen(functions[i].name) + 1);
	}
	at->outer = out->len - at->names;
	str_append(out, OUTER, sizeof(OUTER));
	at->inner = out->len - at->names;
	str_append(out, INNER, sizeof(INNER));
	two = sizeof(FILE_ONE);
	at->files = out->len;
	str_append(out, FILE_ONE, sizeof(FILE_ONE));
	str_append(out, FILE_TWO, sizeof(FILE_TWO));
	at->units = out->len;
	put(out, split ? 0 : 3, 4, shape->swap); /* of 1.2: how many there are */
	put(out, split ? two : at->files, 4, shape->swap);
	put(out, split ? 0 : at->files + two, 4, shape->swap);
	at->values = split ? out->len : 0;
	str_putc(out, '\0');
	at->file_stream = out->len - at->values;
	put_stream(out, split ? file_pairs : old_file_pairs);
	at->line_stream = out->len - at->values;
	put_stream(out, line_pairs);
	at->tree_stream = out->len - at->values;
	put_stream(out, tree_pairs);
	at->nodes = out->len;
	for (int node = 0; node < 2; node++) {
		put(out, 0, shape->magic == 0xfffffff0 ? 12 : 4, false);
		put(out, node == 0 ? at->outer : at->inner, 4, shape->swap);
		put(out, node == 0 ? 4 : 8, 4, shape->swap);
		if (shape->magic == 0xfffffff1)
			put(out, 1, 4, shape->swap);
	}
}

static void put_record(struct str *out, const struct shape *shape, const struct places *at,
		       size_t i, uint64_t text)
{
	bool relative = shape->magic == 0xfffffff0 || shape->magic == 0xfffffff1;

	put(out, functions[i].entry - text, relative ? 4 : shape->ptr_size, shape->swap);
	put(out, at->name[i], 4, shape->swap);
	put(out, 0, 12, false);
	put(out, at->file_stream, 4, shape->swap);
	put(out, at->line_stream, 4, shape->swap);
	put(out, 3, 4, shape->swap);
	if (shape->magic != 0xfffffffb)
		put(out, 0, 4, shape->swap); /* unit */
	if (shape->magic == 0xfffffff1)
		put(out, 9, 4, shape->swap);
	put(out, 0, 3, false);
	put(out, 4, 1, false);
	put(out, 0, 8, false);
	put(out, at->tree_stream, 4, shape->swap);
	put(out, UINT64_MAX, 8, false); /* none of the other trees */
	put(out, UINT32_MAX, 4, false);
	put(out, 0, 4, false); /* the tree: where go:func.* begins */
}

/* text: what entries are relative to, in the layouts that have it. */
static void build(struct str *out, const struct shape *shape, uint64_t text, struct places *at)
{
	bool relative = shape->magic == 0xfffffff0 || shape->magic == 0xfffffff1,
	     split = shape->magic != 0xfffffffb;
	unsigned words = relative ? 8 : split ? 7 : 1, size = relative ? 4 : shape->ptr_size;

	put(out, shape->magic, 4, shape->swap);
	put(out, 0, 2, false);
	put(out, 1, 1, false);
	put(out, shape->ptr_size, 1, false);
	for (unsigned i = 0; i < words; i++)
		put(out, i == 0 ? ARRAY_LEN(functions) : 0, shape->ptr_size, shape->swap);
	if (split)
		put_parts(out, shape, at);
	at->list = out->len;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		put(out, functions[i].entry - text, size, shape->swap);
		put(out, 0, size, shape->swap); /* where the record is: below */
	}
	put(out, END - text, size, shape->swap);
	if (!split) {
		size_t files = out->len;

		put(out, 0, 4, false);
		put_parts(out, shape, at);
		patch(out, files, at->units, 4, shape->swap);
	}
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		patch(out, at->list + (2 * i + 1) * size, out->len - (split ? at->list : 0), size,
		      shape->swap);
		put_record(out, shape, at, i, text);
	}
	if (split) {
		const size_t parts[] = {at->names, at->units, at->files, at->values, at->list};

		for (unsigned i = 0; i < ARRAY_LEN(parts); i++)
			patch(out, 8 + (words - 5 + i) * shape->ptr_size, parts[i], shape->ptr_size,
			      shape->swap);
	}
}

static const char *name_at(const struct symtab *tab, uint64_t address)
{
	struct symbol symbol;

	return symtab_lookup(tab, address, &symbol) ? symbol.raw_name : "?";
}

static const struct shape shapes[] = {
	{0xfffffffb, 8, false}, {0xfffffffb, 4, true}, {0xfffffffa, 8, false},
	{0xfffffff0, 8, false}, {0xfffffff1, 8, true}, {0xfffffff1, 4, false},
};

TEST(every_layout)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		uint64_t text =
			shapes[i].magic == 0xfffffff0 || shapes[i].magic == 0xfffffff1 ? 0x1000 : 0;
		struct symtab_builder builder = {0};
		struct str bytes = {0};
		struct places places;
		struct symtab tab;

		build(&bytes, &shapes[i], text, &places);
		const struct go_table table = {.data = (const uint8_t *)bytes.data,
					       .size = bytes.len,
					       .swap = shapes[i].swap,
					       .text = text};
		EXPECT_INT(go_table_load(&table, &builder), 0);
		ASSERT(symtab_finish(&builder, SYMTAB_INNERMOST, &tab) == 0);
		tab.no_demangle = true;
		EXPECT_STR(name_at(&tab, 0xfff), "?");
		EXPECT_STR(name_at(&tab, 0x1000), "main.main");
		EXPECT_STR(name_at(&tab, 0x10ff), "main.(*T).Run");
		EXPECT_STR(name_at(&tab, 0x1120), "?"); /* it has no name */
		EXPECT_STR(name_at(&tab, 0x11ff), "runtime.goexit");
		EXPECT_STR(name_at(&tab, 0x1200), "?");
		symtab_fini(&tab);
		symtab_builder_fini(&builder);
		str_fini(&bytes);
	}
}

static bool has_tree(const struct shape *shape)
{
	return shape->magic == 0xfffffff0 || shape->magic == 0xfffffff1;
}

static void check_lines(struct go_lines *lines, const struct shape *shape)
{
	struct inline_frame frames[8];
	int deep = has_tree(shape) ? 3 : 1;

	EXPECT_INT(go_lines_find(lines, 0x0fff, frames, 8), 0);
	EXPECT_INT(go_lines_find(lines, 0x1000, frames, 8), 1);
	EXPECT_STR(frames[0].function, "main.main");
	EXPECT_STR(frames[0].file, FILE_ONE);
	EXPECT_INT(frames[0].line, 10);
	EXPECT_INT(go_lines_find(lines, 0x1004, frames, 8), 1);
	EXPECT_INT(frames[0].line, 11);
	EXPECT_INT(go_lines_find(lines, 0x103f, frames, 8), 1);
	EXPECT_INT(frames[0].line, 12);
	EXPECT(!frames[0].inlined);
	EXPECT_INT(go_lines_find(lines, 0x1040 + 20, frames, 8), deep);
	EXPECT_STR(frames[0].file, FILE_TWO);
	EXPECT_INT(frames[0].line, 40);
	EXPECT_STR(frames[deep - 1].raw_function, "main.(*T).Run");
	EXPECT_INT(go_lines_find(lines, 0x1080, frames, 8), 0); /* behind the lines */
	EXPECT_INT(go_lines_find(lines, 0x1101, frames, 8), 1);
	EXPECT(!frames[0].function);
	EXPECT_INT(frames[0].line, 10);
	EXPECT_INT(go_lines_find(lines, END, frames, 8), 0);
	EXPECT_INT(go_lines_find(lines, UINT64_MAX, frames, 8), 0);
	EXPECT_INT(go_lines_find(lines, 0x1000, frames, 0), 0);
	if (!has_tree(shape))
		return;
	EXPECT_INT(go_lines_find(lines, 0x1040 + 20, frames, 8), 3);
	EXPECT_STR(frames[0].function, INNER);
	EXPECT(frames[0].inlined);
	EXPECT_STR(frames[1].function, OUTER);
	EXPECT(frames[1].inlined);
	EXPECT_STR(frames[1].file, FILE_ONE);
	EXPECT_INT(frames[1].line, 30);
	EXPECT_INT(frames[2].line, 11);
	/* Of more than fit, the outermost. */
	EXPECT_INT(go_lines_find(lines, 0x1040 + 20, frames, 2), 2);
	EXPECT_STR(frames[0].function, INNER);
	EXPECT_STR(frames[1].function, "main.(*T).Run");
}

TEST(lines_and_inlined_calls)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct arena arena = {0};
		struct str bytes = {0};
		struct places places;
		struct go_lines *lines;

		build(&bytes, &shapes[i], has_tree(&shapes[i]) ? 0x1000 : 0, &places);
		const struct go_table table = {.data = (const uint8_t *)bytes.data,
					       .size = bytes.len,
					       .swap = shapes[i].swap,
					       .address = 0x9000,
					       .text = 0x1000,
					       .gofunc = 0x9000 + places.nodes};
		ASSERT(go_lines_of(&table, &arena, &lines) == 0 && lines);
		check_lines(lines, &shapes[i]);
		go_lines_free(lines);
		arena_fini(&arena);
		str_fini(&bytes);
	}
}

/* Trees that lead nowhere, to themselves, or that are none. */
TEST(damaged_trees)
{
	static const struct shape shape = {0xfffffff1, 8, false};
	struct inline_frame frames[1024];
	struct arena arena = {0};
	struct str bytes = {0};
	struct places places;
	struct go_lines *lines;

	build(&bytes, &shape, 0x1000, &places);
	struct go_table table = {.data = (const uint8_t *)bytes.data,
				 .size = bytes.len,
				 .address = 0x9000,
				 .text = 0x1000,
				 .gofunc = 0x9000 + places.nodes};
	patch(&bytes, places.nodes + 8, 8, 4, false); /* outer is called by itself */
	ASSERT(go_lines_of(&table, &arena, &lines) == 0);
	EXPECT_INT(go_lines_find(lines, 0x1008, frames, 1024), 513);
	EXPECT_STR(frames[512].function, "main.main");
	patch(&bytes, places.nodes + 8, 0x40, 4, false); /* outside the function */
	EXPECT_INT(go_lines_find(lines, 0x1008, frames, 8), 1);
	patch(&bytes, places.nodes + 8, 4, 4, false);
	EXPECT_INT(go_lines_find(lines, 0x1008, frames, 8), 2);
	patch(&bytes, places.nodes + 4, places.outer + 1, 4, false); /* inside a name */
	EXPECT_INT(go_lines_find(lines, 0x1008, frames, 8), 1);
	go_lines_free(lines);
	table.gofunc = 0;
	ASSERT(go_lines_of(&table, &arena, &lines) == 0);
	EXPECT_INT(go_lines_find(lines, 0x1014, frames, 8), 1);
	go_lines_free(lines);
	table.gofunc = 0x100000; /* no file has it */
	ASSERT(go_lines_of(&table, &arena, &lines) == 0);
	EXPECT_INT(go_lines_find(lines, 0x1014, frames, 8), 1);
	go_lines_free(lines);
	arena_fini(&arena);
	str_fini(&bytes);
}

/* Cut anywhere: what is whole has its name, nothing is read behind the end. */
TEST(cut_tables)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct str bytes = {0};
		struct places places;

		build(&bytes, &shapes[i], 0x1000, &places);
		for (size_t size = 0; size < bytes.len; size++) {
			struct symtab_builder builder = {0};
			struct inline_frame frames[8];
			struct arena arena = {0};
			struct go_lines *lines;
			uint8_t *copy = malloc(MAX(size, 1u)); /* the sanitizer knows its end */
			const struct go_table table = {.data = copy,
						       .size = size,
						       .swap = shapes[i].swap,
						       .address = 0x9000,
						       .text = 0x1000,
						       .gofunc = 0x9000 + places.nodes};

			ASSERT(copy);
			memcpy(copy, bytes.data, size);
			EXPECT_INT(go_table_load(&table, &builder), 0);
			EXPECT(builder.raw.len <= ARRAY_LEN(functions));
			symtab_builder_fini(&builder);
			EXPECT_INT(go_lines_of(&table, &arena, &lines), 0);
			for (uint64_t at = 0x1000; lines && at < END; at += 4)
				EXPECT(go_lines_find(lines, at, frames, 8) <= 3);
			go_lines_free(lines);
			arena_fini(&arena);
			free(copy);
		}
		str_fini(&bytes);
	}
}

/* Where that program's code begins, and where in the file. */
static bool find_work(const char *path, uint64_t *ret_offset)
{
	const struct elf_section *section;
	struct elf_bytes bytes = {0};
	struct elf_file elf;
	struct reader r;
	bool found = false;

	if (elf_open(path, &elf, NULL) < 0)
		return false;
	section = elf_section_named(&elf, ".go.buildinfo");
	if (section && elf_section_bytes(&elf, section, &bytes) == 0) {
		r = elf_reader(&elf, &bytes);
		found = elf_vaddr_to_offset(&elf, section->addr + (uint64_t)(int32_t)reader_u32(&r),
					    ret_offset);
	}
	elf_bytes_fini(&bytes);
	elf_close(&elf);
	return found;
}

TEST(table_among_other_data_behind_relocations)
{
	const char *dir = getenv("CULPRIT_TEST_PROGRAMS");
	struct inline_frame frames[4];
	struct symbols *symbols;
	struct symbol symbol;
	struct module *module;
	char path[4096];
	uint64_t work;

	snprintf(path, sizeof(path), "%s/goprog", dir ? dir : "");
	SKIP_IF(access(path, R_OK) != 0, "the program was not built");
	struct module_ref ref = {.kind = MODULE_ELF, .path = path};

	ASSERT(find_work(path, &work));
	ASSERT(symbols_new(NULL, &symbols) == 0);
	EXPECT_INT(symbols_module(symbols, &ref, &module), 0);
	EXPECT(!module_stripped(module));
	EXPECT(module_lookup(module, work + 31, &symbol) && strcmp(symbol.name, "main.work") == 0);
	EXPECT(module_lookup(module, work + 32, &symbol) && strcmp(symbol.name, "main.other") == 0);
	EXPECT(!module_lookup(module, work + 48, &symbol) || symbol.name[0] == '_');
	EXPECT_INT(module_inlines(module, work + 8, frames, 4), 1);
	EXPECT_STR(frames[0].file, "/src/main.go");
	EXPECT_INT(frames[0].line, 30);
	EXPECT_INT(module_inlines(module, work + 16, frames, 4), 2);
	EXPECT_STR(frames[0].function, "main.inlined");
	EXPECT_INT(frames[0].line, 30);
	EXPECT_STR(frames[1].function, "main.work");
	EXPECT_INT(frames[1].line, 20);
	EXPECT_INT(module_inlines(module, work + 32, frames, 4), 0);
	module_release_inlines(module);
	EXPECT_INT(module_inlines(module, work + 16, frames, 4), 2);
	symbols_free(symbols);
}
