/*
 * Finds the functions in .eh_frame and .debug_frame: common entries (CIE), function entries (FDE),
 * pointers in their encodings. Damaged entries are left out; a damaged length ends the section.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/unwind-internal.h"

struct finder {
	struct unwind_table *table;
	VEC(struct cfi_cie) cies;
	VEC(struct cfi_fde) fdes;
	struct u64_map cie_index; /* of the section: by offset */
	bool unsorted;
};

static uint64_t pointer_value(struct reader *r, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
	case DW_EH_PE_signed:
		return reader_u64(r);
	case DW_EH_PE_uleb128:
		return reader_uleb(r);
	case DW_EH_PE_udata2:
		return reader_u16(r);
	case DW_EH_PE_udata4:
		return reader_u32(r);
	case DW_EH_PE_sleb128:
		return (uint64_t)reader_sleb(r);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)reader_u16(r);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)reader_u32(r);
	default:
		r->failed = true;
		return 0;
	}
}

bool cfi_pointer(const struct cfi_section *section, struct reader *r, uint8_t encoding,
		 uint64_t *ret)
{
	/* The reader may be over a part of the section. */
	uint64_t at = section->vaddr + (uint64_t)(r->data + r->pos - section->data), value;

	if (encoding == DW_EH_PE_omit)
		r->failed = true;
	value = pointer_value(r, encoding & 0x0f);
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		value += at;
		break;
	case DW_EH_PE_datarel:
		value += section->datarel;
		break;
	default:
		r->failed = true;
	}
	*ret = value;
	return !r->failed;
}

/* What the letters of "zPLR" say. */
static void augmentation(struct cfi_cie *cie, const char *letters, struct reader *r)
{
	uint64_t size, ignored;
	size_t end;

	cie->augmented = true;
	size = reader_uleb(r);
	if (r->failed || size > reader_left(r)) {
		r->failed = true;
		return;
	}
	end = r->pos + (size_t)size;
	for (const char *at = letters + 1; *at && !r->failed; at++) {
		uint8_t encoding;

		switch (*at) {
		case 'R':
			cie->encoding = reader_u8(r);
			break;
		case 'P':
			encoding = reader_u8(r);
			(void)cfi_pointer(cie->section, r, encoding, &ignored);
			break;
		case 'L':
			reader_skip(r, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* arm64: signed with the B key */
		case 'G': /* arm64: tagged stack */
			break;
		default: /* what follows cannot be told apart; the length leads behind it */
			reader_seek(r, end);
			return;
		}
	}
	reader_seek(r, end);
}

static void parse_cie(const struct unwind_table *table, struct cfi_cie *cie, struct reader *r)
{
	uint8_t version = reader_u8(r);
	const char *letters = reader_cstr(r);

	cie->bad = true;
	if (!letters || (version != 1 && version != 3 && version != 4))
		return;
	if (strcmp(letters, "eh") == 0)
		reader_skip(r, 8);
	else if (letters[0] && letters[0] != 'z')
		return;
	if (version == 4 && (reader_u8(r) != 8 || reader_u8(r) != 0))
		return;
	cie->code_align = reader_uleb(r);
	cie->data_align = reader_sleb(r);
	cie->ra_register = version == 1 ? reader_u8(r) : reader_uleb(r);
	if (letters[0] == 'z')
		augmentation(cie, letters, r);
	if (r->failed)
		return;
	cie->bad = !cfi_initial(table, cie, r->data + r->pos, reader_left(r));
}

/* One entry: its id field and what follows, and where it is. */
struct entry {
	const struct cfi_section *section;
	size_t offset, id_offset;
	bool wide;       /* 64-bit DWARF */
	struct reader r; /* over the whole section up to the entry's end, behind the length */
};

/* False at the end of the section. */
static bool next_entry(const struct cfi_section *section, size_t *offset, struct entry *ret)
{
	struct reader r = reader_make(section->data, section->size, section->swap);
	uint64_t length;

	reader_seek(&r, *offset);
	do { /* zero words end the part of one object file */
		ret->offset = r.pos;
		length = reader_u32(&r);
	} while (length == 0 && !r.failed);
	ret->wide = length == UINT32_MAX;
	if (ret->wide)
		length = reader_u64(&r);
	if (r.failed || length > reader_left(&r))
		return false;
	ret->section = section;
	ret->id_offset = r.pos;
	ret->r = r;
	ret->r.size = r.pos + (size_t)length;
	*offset = ret->r.size;
	return true;
}

/* True for an FDE with the offset of its CIE. */
static bool entry_cie(struct entry *entry, uint64_t *ret)
{
	/* .eh_frame's id has 4 bytes in both formats. */
	bool wide = entry->wide && entry->section->debug;
	uint64_t id = wide ? reader_u64(&entry->r) : reader_u32(&entry->r);

	if (entry->section->debug) {
		*ret = id;
		return id != (wide ? UINT64_MAX : UINT32_MAX);
	}
	*ret = entry->id_offset - id; /* wraps when damaged: no section is that large */
	return id != 0;
}

/* The CIE at an offset; bad when there is none that can be used. */
static void read_cie(const struct unwind_table *table, const struct cfi_section *section,
		     uint64_t offset, struct cfi_cie *ret)
{
	struct entry entry;
	uint64_t ignored;
	size_t at = (size_t)offset;

	*ret = (struct cfi_cie){.section = section, .bad = true};
	if (offset < section->size && next_entry(section, &at, &entry) && entry.offset == offset &&
	    !entry_cie(&entry, &ignored) && !entry.r.failed)
		parse_cie(table, ret, &entry.r);
}

static int find_cie(struct finder *finder, const struct cfi_section *section, uint64_t offset,
		    uint32_t *ret)
{
	struct cfi_cie cie;
	int r;

	if (u64_map_get(&finder->cie_index, offset, ret))
		return 0;
	read_cie(finder->table, section, offset, &cie);
	*ret = (uint32_t)finder->cies.len;
	r = vec_push(&finder->cies, cie);
	return r < 0 ? r : u64_map_put(&finder->cie_index, offset, *ret);
}

/* What follows the id of an FDE. False when it is damaged, or of a function that is not there. */
static bool parse_fde(const struct cfi_cie *cie, struct reader *r, struct cfi_fde *ret)
{
	uint64_t size;

	if (cie->bad || !cfi_pointer(cie->section, r, cie->encoding, &ret->start))
		return false;
	ret->length = pointer_value(r, cie->encoding & 0x0f);
	if (cie->augmented) {
		size = reader_uleb(r);
		if (!r->failed)
			reader_skip(r, size > reader_left(r) ? SIZE_MAX : (size_t)size);
	}
	/* Start 0: the linker removed the function. */
	if (r->failed || ret->start == 0 || ret->length == 0 ||
	    ret->start + ret->length < ret->start || reader_left(r) > UINT32_MAX)
		return false;
	ret->code = r->data + r->pos;
	ret->code_size = (uint32_t)reader_left(r);
	return true;
}

static int add_fde(struct finder *finder, struct entry *entry, uint64_t cie_offset)
{
	struct cfi_fde fde = {0};
	int error = find_cie(finder, entry->section, cie_offset, &fde.cie);

	if (error < 0)
		return error;
	if (!parse_fde(&finder->cies.data[fde.cie], &entry->r, &fde))
		return 0;
	fde.order = (uint32_t)finder->fdes.len;
	if (fde.order > 0 && finder->fdes.data[fde.order - 1].start >= fde.start)
		finder->unsorted = true;
	return vec_push(&finder->fdes, fde);
}

bool cfi_rule_of(const struct unwind_table *table, const struct cfi_section *section,
		 uint64_t offset, uint64_t pc, struct unwind_rule *ret)
{
	struct cfi_fde fde = {0};
	struct entry entry;
	struct cfi_cie cie;
	uint64_t cie_offset;
	size_t at = (size_t)offset;

	if (offset >= section->size || !next_entry(section, &at, &entry) ||
	    entry.offset != offset || !entry_cie(&entry, &cie_offset) || entry.r.failed)
		return false;
	read_cie(table, section, cie_offset, &cie);
	if (!parse_fde(&cie, &entry.r, &fde) || pc < fde.start || pc - fde.start >= fde.length)
		return false;
	cfi_rule_at(table, &cie, &fde, pc, ret);
	return true;
}

bool unwind_frame_rule(enum unwind_arch arch, const struct unwind_frame *frame, uint64_t pc,
		       struct unwind_rule *ret)
{
	const struct unwind_table table = {.arch = arch};
	const struct cfi_section section = {.data = frame->data,
					    .size = frame->size,
					    .vaddr = frame->vaddr,
					    .swap = frame->swap};
	struct entry entry;
	size_t at = 0;

	while (next_entry(&section, &at, &entry))
		if (cfi_rule_of(&table, &section, entry.offset, pc, ret))
			return true;
	return false;
}

static int find_fdes(struct finder *finder, const struct cfi_section *section)
{
	struct entry entry;
	size_t offset = 0;
	uint64_t cie;
	int r = 0;

	while (r == 0 && next_entry(section, &offset, &entry))
		if (entry_cie(&entry, &cie) && !entry.r.failed)
			r = add_fde(finder, &entry, cie);
	u64_map_fini(&finder->cie_index);
	finder->cie_index = (struct u64_map){0};
	return r;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* first_debug: the order from which on they come from .debug_frame, which only fills gaps. */
static int make_rows(struct finder *finder, size_t first_debug)
{
	struct unwind_table *table = finder->table;
	uint64_t covered = 0, last = UINT64_MAX;
	int r = 0;

	if (finder->fdes.len == 0)
		return 0;
	table->base = finder->fdes.data[0].start;
	for (size_t i = 0; i < finder->fdes.len && r == 0; i++) {
		const struct cfi_fde *fde = &finder->fdes.data[i];
		uint64_t end = fde->start + fde->length;

		if (end - table->base > UINT32_MAX || fde->start == last ||
		    (fde->order >= first_debug && fde->start < covered))
			continue;
		if (fde->order >= first_debug && i + 1 < finder->fdes.len)
			end = MIN(end, MAX(finder->fdes.data[i + 1].start, fde->start + 1));
		last = fde->start;
		covered = MAX(covered, end);
		r = cfi_run(table, &finder->cies.data[fde->cie], fde, end);
	}
	return r;
}

int cfi_compile(struct unwind_table *table, const struct cfi_section *sections, size_t count)
{
	struct finder finder = {.table = table};
	size_t first_debug = SIZE_MAX;
	int r = 0;

	if (table->rules.len == 0)
		r = vec_push(&table->rules, ((struct unwind_rule){0}));
	for (size_t i = 0; i < count && r == 0; i++) {
		if (sections[i].debug && first_debug == SIZE_MAX)
			first_debug = finder.fdes.len;
		r = find_fdes(&finder, &sections[i]);
	}
	if (r == 0 && finder.unsorted)
		qsort(finder.fdes.data, finder.fdes.len, sizeof(*finder.fdes.data), compare_fdes);
	if (r == 0)
		r = make_rows(&finder, first_debug);
	vec_fini(&finder.cies);
	vec_fini(&finder.fdes);
	u64_map_fini(&finder.cie_index);
	hash_index_fini(&table->rule_index);
	table->rule_index = (struct hash_index){0};
	return r;
}
