/*
 * Finding Go's table in a binary, and what it is relative to.
 *
 * It has a section of its own, but for position-independent programs of older versions that another
 * linker has put together (cgo): there it is a part of .data.rel.ro, and its first bytes tell.
 * Where runtime.text is does not always stand in the table: position-independent binaries have a
 * relocation there, and since 1.26 it is always 0. It is .text's address, except in programs with
 * C code before it; the runtime's own description of the module (runtime.moduledata) then says it,
 * and where the trees of inlined calls are. Its words stand in the file, or in the relocations that
 * fill them in.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "symbols/gopclntab-internal.h"

#define DATA_MAX        (64u << 20) /* of a section in which something is looked for */
#define RELOCATIONS_MAX (256u << 20)
#define CANDIDATES      8
#define TABLE_ALIGN     8

/* Words of runtime.moduledata. */
enum {
	MODULE_TABLE,
	MODULE_MINPC = 20,
	MODULE_MAXPC,
	MODULE_TEXT,
	MODULE_ETEXT,
	MODULE_GOFUNC_1_18 = 38,
	MODULE_GOFUNC_1_20 = 40,
	MODULE_WORDS
};

struct words {
	uint64_t at[MODULE_WORDS];
};

static bool in_segment(const struct elf_file *elf, uint64_t address, uint32_t flags)
{
	for (uint32_t i = 0; i < elf->nsegments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & flags) == flags && address >= s->vaddr &&
		    address - s->vaddr < s->memsz)
			return true;
	}
	return false;
}

static bool is_module(const struct elf_file *elf, const struct words *words)
{
	return words->at[MODULE_TEXT] <= words->at[MODULE_MINPC] &&
	       words->at[MODULE_MINPC] < words->at[MODULE_MAXPC] &&
	       words->at[MODULE_MAXPC] <= words->at[MODULE_ETEXT] &&
	       in_segment(elf, words->at[MODULE_TEXT], PF_X);
}

/* A description of the module of the table at that address, among words of data. */
static bool module_in(const struct elf_file *elf, const struct elf_bytes *bytes, uint64_t table,
		      struct words *ret)
{
	size_t word = elf->is64 ? 8 : 4;
	struct reader r = elf_reader(elf, bytes);

	for (size_t at = 0; at + MODULE_WORDS * word <= bytes->size; at += word) {
		reader_seek(&r, at);
		if (elf_word(elf, &r) != table)
			continue;
		ret->at[0] = table;
		for (size_t i = 1; i < MODULE_WORDS; i++)
			ret->at[i] = elf_word(elf, &r);
		if (is_module(elf, ret))
			return true;
	}
	return false;
}

/* The next relocation that puts a known address into a word; false at the end. */
static bool next_relative(const struct elf_file *elf, struct reader *r, uint64_t *ret_at,
			  uint64_t *ret_value)
{
	size_t word = elf->is64 ? 8 : 4;

	while (reader_left(r) >= 3 * word) {
		uint64_t symbol;

		*ret_at = elf_word(elf, r);
		symbol = elf_word(elf, r) >> (elf->is64 ? 32 : 8);
		*ret_value = elf_word(elf, r);
		if (symbol == 0)
			return true;
	}
	return false;
}

static bool module_at(const struct elf_file *elf, const struct elf_bytes *relocations,
		      uint64_t module, struct words *ret)
{
	struct reader r = elf_reader(elf, relocations);
	size_t word = elf->is64 ? 8 : 4;
	uint64_t at, value;

	*ret = (struct words){0};
	while (next_relative(elf, &r, &at, &value))
		if (at >= module && at - module < MODULE_WORDS * word)
			ret->at[(at - module) / word] = value;
	return is_module(elf, ret);
}

static bool module_relocated(const struct elf_file *elf, const struct elf_bytes *relocations,
			     uint64_t table, struct words *ret)
{
	struct reader r = elf_reader(elf, relocations);
	uint64_t at, value;

	for (unsigned tries = 0; tries < CANDIDATES && next_relative(elf, &r, &at, &value);) {
		if (value != table)
			continue;
		tries++;
		if (module_at(elf, relocations, at, ret))
			return true;
	}
	return false;
}

/* By the words in the file, else by its relocations. */
static bool find_module(const struct elf_file *elf, uint64_t table, struct words *ret)
{
	static const char *const names[] = {".go.module",   ".noptrdata", ".data",
					    ".data.rel.ro", ".rela.dyn",  ".rela"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(names) && !found; i++) {
		const struct elf_section *section = elf_section_named(elf, names[i]);
		struct elf_bytes bytes = {0};
		bool relocations;

		if (!section)
			continue;
		relocations = section->type == SHT_RELA;
		if (section->size > (relocations ? RELOCATIONS_MAX : DATA_MAX) ||
		    elf_section_bytes(elf, section, &bytes) < 0)
			continue;
		found = relocations ? module_relocated(elf, &bytes, table, ret)
				    : module_in(elf, &bytes, table, ret);
		elf_bytes_fini(&bytes);
	}
	return found;
}

/* Does a table begin here? */
static bool begins(const struct elf_file *elf, const struct elf_bytes *bytes, size_t at)
{
	struct go_table table = {
		.data = bytes->data + at, .size = bytes->size - at, .swap = elf->swap};
	struct go_layout layout;

	return go_layout_read(&table, &layout) && layout.ptr_size == (elf->is64 ? 8 : 4) &&
	       layout.count > 0;
}

/* Removes what lies before the table; false when there is none. */
static bool trim_front(const struct elf_file *elf, struct elf_bytes *bytes, uint64_t *address)
{
	uint64_t start = ALIGN_UP(*address, (uint64_t)TABLE_ALIGN) - *address;

	for (size_t at = start; at + GO_HEADER_BYTES <= bytes->size; at += TABLE_ALIGN) {
		/* All magic numbers have these bytes. */
		if (bytes->data[at + 1] != 0xff || bytes->data[at + 2] != 0xff ||
		    !begins(elf, bytes, at))
			continue;
		bytes->data += at;
		bytes->size -= at;
		*address += at;
		return true;
	}
	return false;
}

static const struct elf_section *find_section(const struct elf_file *elf, bool *ret_shared)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	const struct elf_section *section = NULL;

	for (size_t i = 0; i < ARRAY_LEN(names) && !section; i++)
		section = elf_section_named(elf, names[i]);
	*ret_shared = !section;
	if (!section &&
	    (elf_section_named(elf, ".go.buildinfo") || elf_section_named(elf, ".note.go.buildid")))
		section = elf_section_named(elf, ".data.rel.ro");
	return section && section->type == SHT_PROGBITS ? section : NULL;
}

static int find_bytes(const struct elf_file *elf, struct elf_bytes *ret, uint64_t *ret_address)
{
	struct elf_bytes bytes = {0};
	const struct elf_section *section;
	uint64_t address;
	bool shared;
	int r;

	section = find_section(elf, &shared);
	if (!section || (shared && section->size > DATA_MAX))
		return -ENOENT;
	r = elf_section_bytes(elf, section, &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	address = section->addr;
	if (shared && !trim_front(elf, &bytes, &address)) {
		elf_bytes_fini(&bytes);
		return -ENOENT;
	}
	*ret = bytes;
	*ret_address = address;
	return 0;
}

int elf_go_table(const struct elf_file *elf, struct elf_bytes *ret_bytes, struct go_table *ret)
{
	const struct elf_section *text;
	struct go_table table = {.swap = elf->swap, .elf = elf};
	struct words words;
	struct reader magic;
	int r = find_bytes(elf, ret_bytes, &table.address);

	if (r < 0)
		return r;
	table.data = ret_bytes->data;
	table.size = ret_bytes->size;
	magic = go_read_at(&table, 0);
	if (find_module(elf, table.address, &words)) {
		unsigned gofunc = reader_u32(&magic) == GO_MAGIC_1_18 ? MODULE_GOFUNC_1_18
								      : MODULE_GOFUNC_1_20;

		table.text = words.at[MODULE_TEXT];
		if (in_segment(elf, words.at[gofunc], PF_R))
			table.gofunc = words.at[gofunc];
	} else {
		text = elf_section_named(elf, ".text");
		table.text = text ? text->addr : 0;
	}
	*ret = table;
	return 0;
}

bool elf_has_go(const struct elf_file *elf)
{
	struct elf_bytes bytes = {0};
	uint64_t address;
	bool shared;

	if (!find_section(elf, &shared))
		return false;
	if (!shared)
		return true;
	if (find_bytes(elf, &bytes, &address) < 0)
		return false;
	elf_bytes_fini(&bytes);
	return true;
}

int elf_load_go(const struct elf_file *elf, struct symtab_builder *builder)
{
	struct elf_bytes bytes = {0};
	struct go_table table;
	int r = elf_go_table(elf, &bytes, &table);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (bytes.owned) {
		r = symtab_builder_own(builder, TAKE_PTR(bytes.owned));
		if (r < 0)
			return r;
	}
	return go_table_load(&table, builder);
}
