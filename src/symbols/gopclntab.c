/*
 * The header says the layout, the size of addresses and how many functions there are. A list of
 * (entry, offset of a record) follows, sorted by entry and ended by the end of the code; a record
 * begins with its entry again and the offset of its name.
 *
 *	1.2	addresses in the list; names relative to the table
 *	1.16	the same, but names and records in tables of their own, found by offsets in the
 *header 1.18	32-bit offsets from runtime.text instead of addresses 1.20	as 1.18, other magic
 *
 * Where runtime.text is does not always stand in the table: position-independent binaries have a
 * relocation there, and since 1.26 it is always 0. It is .text's address, except in programs with C
 * code before it; the runtime's own description of the module (runtime.moduledata) then says it.
 */
#include "symbols/gopclntab.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

#define MAGIC_1_2  UINT32_C(0xfffffffb)
#define MAGIC_1_16 UINT32_C(0xfffffffa)
#define MAGIC_1_18 UINT32_C(0xfffffff0)
#define MAGIC_1_20 UINT32_C(0xfffffff1)

#define HEADER_BYTES 8
#define NAME_MAX     65535
#define DATA_MAX     (64u << 20) /* of a section in which the moduledata is looked for */

/* Words of runtime.moduledata. */
enum {
	MODULE_TABLE,
	MODULE_MINPC = 20,
	MODULE_MAXPC,
	MODULE_TEXT,
	MODULE_ETEXT,
	MODULE_WORDS
};

struct layout {
	const struct go_table *table;
	uint32_t magic;
	unsigned ptr_size, entry_size; /* of addresses; of numbers in the list */
	uint64_t count, text;
	uint64_t names, records, list; /* offsets in the table; records: what theirs are added to */
};

static struct reader read_at(const struct go_table *table, uint64_t offset)
{
	struct reader r = reader_make(table->data, table->size, table->swap);

	reader_seek(&r, offset > table->size ? SIZE_MAX : (size_t)offset);
	return r;
}

static uint64_t number(struct reader *r, unsigned size)
{
	return size == 8 ? reader_u64(r) : reader_u32(r);
}

static bool read_layout(const struct go_table *table, struct layout *ret)
{
	struct reader r = read_at(table, 0);
	struct layout l = {.table = table};
	uint64_t words[8] = {0};
	uint8_t zero, quantum;

	l.magic = reader_u32(&r);
	zero = reader_u8(&r) | reader_u8(&r);
	quantum = reader_u8(&r);
	l.ptr_size = reader_u8(&r);
	if (r.failed || zero != 0 || (quantum != 1 && quantum != 2 && quantum != 4) ||
	    (l.ptr_size != 4 && l.ptr_size != 8))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words) && reader_left(&r) >= l.ptr_size; i++)
		words[i] = number(&r, l.ptr_size);
	l.count = words[0];
	l.entry_size = l.ptr_size;
	switch (l.magic) {
	case MAGIC_1_2:
		l.list = HEADER_BYTES + l.ptr_size;
		break;
	case MAGIC_1_16:
		l.names = words[2];
		l.records = l.list = words[6];
		break;
	case MAGIC_1_18:
	case MAGIC_1_20:
		l.text = table->text ? table->text : words[2];
		l.names = words[3];
		l.records = l.list = words[7];
		l.entry_size = 4;
		break;
	default:
		return false;
	}
	*ret = l;
	return l.list < table->size && l.names < table->size &&
	       l.count <= (table->size - l.list) / (2 * l.entry_size);
}

/* The name of a function by the offset of its record; NULL when that leads nowhere. */
static const char *name_of(const struct layout *l, uint64_t record, size_t *ret_len)
{
	const struct go_table *table = l->table;
	struct reader r;
	const char *name;
	int32_t offset;

	if (record > table->size)
		return NULL;
	r = read_at(table, l->records + record + l->entry_size);
	offset = (int32_t)reader_u32(&r);
	if (r.failed || offset < 0)
		return NULL;
	r = read_at(table, l->names + (uint64_t)offset);
	name = reader_cstr(&r);
	if (!name)
		return NULL;
	*ret_len = strlen(name);
	return *ret_len > 0 && *ret_len <= NAME_MAX ? name : NULL;
}

int go_table_load(const struct go_table *table, struct symtab_builder *builder)
{
	uint64_t entry, next, record;
	struct layout l;
	struct reader r;
	int status = 0;

	if (!read_layout(table, &l))
		return 0;
	r = read_at(table, l.list);
	entry = number(&r, l.entry_size);
	for (uint64_t i = 0; i < l.count && status == 0; i++, entry = next) {
		struct symtab_raw raw = {.start = l.text + entry};
		size_t len;

		record = number(&r, l.entry_size);
		next = number(&r, l.entry_size); /* the last function's is where code ends */
		raw.end = l.text + next;
		if (r.failed)
			break;
		raw.name = next > entry ? name_of(&l, record, &len) : NULL;
		if (!raw.name)
			continue;
		raw.name_len = (uint32_t)len;
		status = symtab_builder_add(builder, &raw);
	}
	return status;
}

static const struct elf_section *find_table(const struct elf_file *elf)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	const struct elf_section *section = NULL;

	for (size_t i = 0; i < ARRAY_LEN(names) && !section; i++)
		section = elf_section_named(elf, names[i]);
	return section;
}

static bool is_code(const struct elf_file *elf, uint64_t address)
{
	for (uint32_t i = 0; i < elf->nsegments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X) && address >= s->vaddr &&
		    address - s->vaddr < s->memsz)
			return true;
	}
	return false;
}

/* A description of the module of that table, among words of data. */
static bool text_in(const struct elf_file *elf, const struct elf_bytes *bytes, uint64_t table,
		    uint64_t *ret)
{
	size_t word = elf->is64 ? 8 : 4;
	struct reader r = elf_reader(elf, bytes);

	for (size_t at = 0; at + MODULE_WORDS * word <= bytes->size; at += word) {
		uint64_t words[MODULE_WORDS];

		reader_seek(&r, at);
		if (elf_word(elf, &r) != table)
			continue;
		for (size_t i = 1; i < MODULE_WORDS; i++)
			words[i] = elf_word(elf, &r);
		if (words[MODULE_TEXT] <= words[MODULE_MINPC] &&
		    words[MODULE_MINPC] < words[MODULE_MAXPC] &&
		    words[MODULE_MAXPC] <= words[MODULE_ETEXT] &&
		    is_code(elf, words[MODULE_TEXT])) {
			*ret = words[MODULE_TEXT];
			return true;
		}
	}
	return false;
}

static uint64_t find_text(const struct elf_file *elf, uint64_t table)
{
	static const char *const names[] = {".go.module", ".noptrdata", ".data", ".data.rel.ro"};
	const struct elf_section *section;
	uint64_t text = 0;
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(names) && !found; i++) {
		struct elf_bytes bytes = {0};

		section = elf_section_named(elf, names[i]);
		if (!section || section->size > DATA_MAX ||
		    elf_section_bytes(elf, section, &bytes) < 0)
			continue;
		found = text_in(elf, &bytes, table, &text);
		elf_bytes_fini(&bytes);
	}
	section = elf_section_named(elf, ".text");
	return found ? text : section ? section->addr : 0;
}

bool elf_has_go(const struct elf_file *elf)
{
	return find_table(elf) != NULL;
}

int elf_load_go(const struct elf_file *elf, struct symtab_builder *builder)
{
	const struct elf_section *section = find_table(elf);
	struct elf_bytes bytes = {0};
	struct go_table table;
	int r;

	if (!section)
		return 0;
	r = elf_section_bytes(elf, section, &bytes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	table = (struct go_table){.data = bytes.data,
				  .size = bytes.size,
				  .swap = elf->swap,
				  .text = find_text(elf, section->addr)};
	if (bytes.owned) {
		r = symtab_builder_own(builder, TAKE_PTR(bytes.owned));
		if (r < 0)
			return r;
	}
	return go_table_load(&table, builder);
}
