/*
 * Names for PLT stubs. A stub jumps through a slot of the GOT, and a relocation says whose address
 * the loader puts there: the stub's code is decoded just far enough to find the slot. This holds
 * for every linker and layout (.plt, .plt.sec, .plt.got, lazy or not, with IBT or BTI), where
 * counting entries in step with the relocations does not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "symbols/elf-symbols-internal.h"

#define NAME_MAX_BYTES 65536
#define SECTIONS_READ  16 /* of each kind; linkers make three at most */

struct slot {
	uint64_t address; /* in the GOT */
	uint64_t addend;  /* IRELATIVE: the resolver */
	const char *name; /* NULL: IRELATIVE */
	uint32_t index;   /* in .rela.plt, UINT32_MAX elsewhere */
};

struct plt {
	const struct elf_file *elf;
	struct symtab_builder *builder;
	struct elf_bytes dynsym, dynstr;
	size_t dynsym_entsize;
	VEC(struct slot) slots;    /* ascending by address */
	VEC(struct slot) in_order; /* those of .rela.plt, as they stand there */
};

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *dynsym_name(const struct plt *plt, uint64_t index)
{
	struct reader r = elf_reader(plt->elf, &plt->dynsym);
	struct elf_sym sym;

	if (index >= plt->dynsym.size / plt->dynsym_entsize)
		return NULL;
	reader_seek(&r, index * plt->dynsym_entsize);
	sym = elf_sym_read(plt->elf, &r);
	if (r.failed || sym.name == 0 || sym.name >= plt->dynstr.size)
		return NULL;
	return strnlen((const char *)plt->dynstr.data + sym.name, plt->dynstr.size - sym.name) <
			       plt->dynstr.size - sym.name
		       ? (const char *)plt->dynstr.data + sym.name
		       : NULL;
}

static bool is_irelative(uint16_t machine, uint64_t type)
{
	return (machine == EM_X86_64 && type == R_X86_64_IRELATIVE) ||
	       (machine == EM_386 && type == R_386_IRELATIVE) ||
	       (machine == EM_AARCH64 && type == R_AARCH64_IRELATIVE);
}

static bool fills_slot(uint16_t machine, uint64_t type)
{
	switch (machine) {
	case EM_X86_64:
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	case EM_386:
		return type == R_386_JMP_SLOT || type == R_386_GLOB_DAT;
	default:
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
	}
}

static int read_relocations(struct plt *plt, const struct elf_section *section, bool of_plt)
{
	const struct elf_file *elf = plt->elf;
	bool rela = section->type == SHT_RELA;
	size_t least = (elf->is64 ? 16 : 8) + (rela ? (elf->is64 ? 8u : 4u) : 0);
	struct elf_bytes bytes = {0};
	size_t entsize = MAX(section->entsize, least);
	struct reader r;
	int status = elf_section_bytes(elf, section, &bytes);

	if (status < 0)
		return status == -ENOMEM ? status : 0;
	r = elf_reader(elf, &bytes);
	for (size_t i = 0; status == 0 && i < bytes.size / entsize; i++) {
		struct slot slot = {.index = of_plt ? (uint32_t)i : UINT32_MAX};
		uint64_t info, type;

		reader_seek(&r, i * entsize);
		slot.address = elf_word(elf, &r);
		info = elf_word(elf, &r);
		slot.addend = rela ? elf_word(elf, &r) : 0;
		type = elf->is64 ? info & UINT32_MAX : info & 0xff;
		if (is_irelative(elf->machine, type))
			;
		else if (fills_slot(elf->machine, type))
			slot.name = dynsym_name(plt, elf->is64 ? info >> 32 : info >> 8);
		else if (!of_plt)
			continue;
		if (slot.name || is_irelative(elf->machine, type))
			status = vec_push(&plt->slots, slot);
		if (status == 0 && of_plt)
			status = vec_push(&plt->in_order, slot);
	}
	elf_bytes_fini(&bytes);
	return status;
}

/* IRELATIVE slots have no symbol; the resolver's own name is that of the function. */
static void name_resolvers(struct plt *plt)
{
	const struct symtab_builder *builder = plt->builder;
	struct u64_map by_start = {0};
	bool any = false;

	vec_for_each(&plt->slots, slot)
		any |= !slot->name;
	if (!any)
		return;
	for (size_t i = 0; i < builder->raw.len && i < UINT32_MAX; i++) {
		const struct symtab_raw *raw = &builder->raw.data[i];
		uint32_t have;

		if (u64_map_get(&by_start, raw->start, &have) &&
		    builder->raw.data[have].rank <= raw->rank)
			continue;
		if (u64_map_put(&by_start, raw->start, (uint32_t)i) < 0)
			break;
	}
	vec_for_each(&plt->slots, slot) {
		uint32_t i;

		if (!slot->name && u64_map_get(&by_start, slot->addend, &i) &&
		    builder->raw.data[i].name_len < NAME_MAX_BYTES)
			slot->name = arena_strndup(&plt->builder->arena, builder->raw.data[i].name,
						   builder->raw.data[i].name_len);
	}
	u64_map_fini(&by_start);
}

static int add_stub(struct plt *plt, const struct slot *slot, uint64_t start, uint64_t end)
{
	size_t len;
	char *name;

	if (!slot || !slot->name)
		return 0;
	len = strnlen(slot->name, NAME_MAX_BYTES);
	name = arena_alloc(&plt->builder->arena, len + 5);
	if (!name)
		return -ENOMEM;
	memcpy(name, slot->name, len);
	memcpy(name + len, "@plt", 5);
	return symtab_builder_add(plt->builder, &(struct symtab_raw){.start = start,
								     .end = end,
								     .name = name,
								     .name_len = (uint32_t)len + 4,
								     .rank = 3});
}

static const struct slot *slot_at(const struct plt *plt, uint64_t address)
{
	struct slot key = {.address = address};

	return plt->slots.len
		       ? bsearch(&key, plt->slots.data, plt->slots.len, sizeof(key), by_address)
		       : NULL;
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* What an x86 entry of size bytes at address jumps to. */
static const struct slot *decode_x86(const struct plt *plt, const uint8_t *code, size_t size,
				     uint64_t address, uint64_t got)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa},
			     endbr32[] = {0xf3, 0x0f, 0x1e, 0xfb};
	size_t at = 0;

	if (size >= 4 && (memcmp(code, endbr64, 4) == 0 || memcmp(code, endbr32, 4) == 0))
		at = 4;
	if (at < size && code[at] == 0xf2) /* bnd */
		at++;
	if (size - at >= 6 && code[at] == 0xff && (code[at + 1] == 0x25 || code[at + 1] == 0xa3)) {
		uint32_t value = le32(code + at + 2);

		if (plt->elf->machine == EM_X86_64)
			return slot_at(plt, address + at + 6 + (uint64_t)(int64_t)(int32_t)value);
		return slot_at(plt, code[at + 1] == 0xa3 ? (uint32_t)(got + value) : value);
	}
	/* A lazy IBT entry only pushes the relocation's number (i386: its offset) and goes to the
	 * resolver. */
	if (size - at >= 5 && code[at] == 0x68) {
		uint32_t index = le32(code + at + 1);

		if (plt->elf->machine == EM_386)
			index /= 8;
		return index < plt->in_order.len ? slot_at(plt, plt->in_order.data[index].address)
						 : NULL;
	}
	return NULL;
}

static int scan_x86(struct plt *plt, const struct elf_section *section,
		    const struct elf_bytes *code)
{
	const struct elf_section *got = elf_section_named(plt->elf, ".got.plt");
	size_t step = 16;
	int r = 0;

	if (!got)
		got = elf_section_named(plt->elf, ".got");
	/* .plt.got has 8-byte entries unless they begin with endbr. */
	if (strcmp(elf_section_name(plt->elf, section), ".plt.got") == 0 && code->size >= 8 &&
	    code->data[0] == 0xff)
		step = 8;
	for (size_t at = 0; r == 0 && at < code->size; at += step) {
		size_t size = MIN(step, code->size - at);
		uint64_t address = section->addr + at;

		r = add_stub(plt,
			     decode_x86(plt, code->data + at, size, address, got ? got->addr : 0),
			     address, address + size);
	}
	return r;
}

/* [bti c] adrp x16, page; ldr x17, [x16, #offset]; add; br x17 */
static int scan_aarch64(struct plt *plt, const struct elf_section *section,
			const struct elf_bytes *code)
{
	size_t start = SIZE_MAX;
	const struct slot *slot = NULL;
	int r = 0;

	for (size_t at = 0; r == 0 && at + 4 <= code->size; at += 4) {
		uint32_t insn = le32(code->data + at), load;
		uint64_t page;

		if ((insn & 0xfffffc1f) == 0xd61f0000 &&
		    start != SIZE_MAX) { /* br: the stub's end */
			r = add_stub(plt, slot, section->addr + start, section->addr + at + 4);
			start = SIZE_MAX;
			continue;
		}
		if ((insn & 0x9f00001f) != 0x90000010 || at + 8 > code->size)
			continue;
		load = le32(code->data + at + 4);
		if ((load & 0xffc003ff) != 0xf9400211)
			continue;
		page = ((section->addr + at) & ~UINT64_C(0xfff)) +
		       ((uint64_t)(((int64_t)((uint64_t)((insn >> 5 & 0x7ffff) << 2 |
							 (insn >> 29 & 3))
					      << 43)) >>
				   43)
			<< 12);
		slot = slot_at(plt, page + ((load >> 10 & 0xfff) << 3));
		start = at;
		if (at >= 4 && le32(code->data + at - 4) == 0xd503245f)
			start = at - 4;
	}
	return r;
}

static int scan_section(struct plt *plt, const struct elf_section *section)
{
	struct elf_bytes code = {0};
	int r;

	if (!(section->flags & SHF_EXECINSTR))
		return 0;
	r = elf_section_bytes(plt->elf, section, &code);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = plt->elf->machine == EM_AARCH64 ? scan_aarch64(plt, section, &code)
					    : scan_x86(plt, section, &code);
	elf_bytes_fini(&code);
	return r;
}

static void load_names(struct plt *plt)
{
	const struct elf_file *elf = plt->elf;

	plt->dynsym_entsize = elf_sym_bytes(elf);
	for (uint32_t i = 1; i < elf->nsections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->type != SHT_DYNSYM || s->link >= elf->nsections)
			continue;
		plt->dynsym_entsize = MAX(s->entsize, elf_sym_bytes(elf));
		if (elf_section_bytes(elf, s, &plt->dynsym) < 0 ||
		    elf_section_bytes(elf, &elf->sections[s->link], &plt->dynstr) < 0)
			elf_bytes_fini(&plt->dynsym);
		return;
	}
}

int elf_load_plt(const struct elf_file *elf, struct symtab_builder *builder)
{
	struct plt plt = {.elf = elf, .builder = builder};
	unsigned tables = 0, stubs = 0;
	int r = 0;

	if (elf->machine != EM_X86_64 && elf->machine != EM_386 && elf->machine != EM_AARCH64)
		return 0;
	load_names(&plt);
	for (uint32_t i = 1; r == 0 && i < elf->nsections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if ((s->type == SHT_RELA || s->type == SHT_REL) && (s->flags & SHF_ALLOC) &&
		    tables++ < SECTIONS_READ)
			r = read_relocations(&plt, s,
					     strstr(elf_section_name(elf, s), ".plt") != NULL);
	}
	if (plt.slots.len)
		qsort(plt.slots.data, plt.slots.len, sizeof(*plt.slots.data), by_address);
	name_resolvers(&plt);
	for (uint32_t i = 1; r == 0 && i < elf->nsections; i++) {
		const char *name = elf_section_name(elf, &elf->sections[i]);

		if ((strcmp(name, ".plt") == 0 || strcmp(name, ".plt.sec") == 0 ||
		     strcmp(name, ".plt.got") == 0 || strcmp(name, ".iplt") == 0) &&
		    stubs++ < SECTIONS_READ)
			r = scan_section(&plt, &elf->sections[i]);
	}
	vec_fini(&plt.slots);
	vec_fini(&plt.in_order);
	elf_bytes_fini(&plt.dynsym);
	elf_bytes_fini(&plt.dynstr);
	return r;
}
