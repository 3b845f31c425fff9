/*
 * Which symbols of an ELF file name code: functions and IFUNCs with a definition, and what
 * assembler leaves in executable sections, untyped labels and data with a size, but no mapping
 * symbols ($x, $d) and no .L labels.
 */
#include "symbols/elf-symbols-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compress.h"
#include "base/util.h"

#define DEBUGDATA_MAX   (UINT64_C(256) << 20)
#define DYNAMIC_ENTRIES 4096
#define NOTES_READ      64    /* sections or segments of notes */
#define NAME_MAX_BYTES  65536 /* longer names are cut */

struct symbol_source {
	const struct elf_file *elf;
	struct elf_bytes names;
	uint64_t bias;
	struct symtab_builder *builder;
};

/* Is the address in an executable section (segment, when there are no sections)? *ret_end is its
 * end. */
static bool code_room(const struct elf_file *elf, const struct elf_sym *sym, uint64_t *ret_end)
{
	if (sym->shndx > 0 && sym->shndx < elf->nsections) {
		const struct elf_section *s = &elf->sections[sym->shndx];

		*ret_end = s->addr + s->size;
		if (elf->type == ET_REL)
			*ret_end = s->size;
		return s->flags & SHF_EXECINSTR;
	}
	for (uint32_t i = 0; i < elf->nsegments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X) && sym->value >= s->vaddr &&
		    sym->value - s->vaddr < s->memsz) {
			*ret_end = s->vaddr + s->memsz;
			return true;
		}
	}
	return false;
}

/* Is that type one of code, or of what may be code? */
static bool names_code(const struct elf_file *elf, const struct elf_sym *sym, bool in_code)
{
	switch (sym->info & 0xf) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return in_code;
	case STT_OBJECT:
		/* Without sections, data lies in the same segment. */
		return in_code && sym->size > 0 && sym->shndx < elf->nsections;
	default:
		return false;
	}
}

static uint8_t rank_of(unsigned bind)
{
	return bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 0 : bind == STB_WEAK ? 1 : 2;
}

static bool uninteresting_label(const char *name)
{
	return name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

static int add_symbol(const struct symbol_source *source, const struct elf_sym *sym)
{
	const struct elf_file *elf = source->elf;
	unsigned type = sym->info & 0xf;
	struct symtab_raw raw = {.rank = rank_of(sym->info >> 4)};
	uint64_t room = UINT64_MAX, value = sym->value;
	bool in_code;

	if (sym->name == 0 || sym->name >= source->names.size || sym->shndx == SHN_UNDEF ||
	    (sym->shndx >= SHN_LORESERVE && sym->shndx != SHN_XINDEX))
		return 0;
	in_code = code_room(elf, sym, &room);
	if (!names_code(elf, sym, in_code))
		return 0;
	raw.name = (const char *)source->names.data + sym->name;
	raw.name_len = (uint32_t)strnlen(
		raw.name, MIN(source->names.size - sym->name, (size_t)NAME_MAX_BYTES));
	if (type == STT_NOTYPE && (raw.name_len < 2 || uninteresting_label(raw.name)))
		return 0;
	if (elf->machine == EM_ARM && (type == STT_FUNC || type == STT_GNU_IFUNC))
		value &= ~UINT64_C(1); /* Thumb */
	if (elf->type == ET_REL && sym->shndx < elf->nsections) {
		value += elf->sections[sym->shndx].offset;
		room = in_code ? room + elf->sections[sym->shndx].offset : room;
	}
	raw.no_size = sym->size == 0;
	if (raw.no_size && !in_code)
		return 0;
	raw.start = value + source->bias;
	raw.end = raw.no_size ? room + source->bias : raw.start + sym->size;
	return symtab_builder_add(source->builder, &raw);
}

/* Walks a table of symbols; the names stay with the builder. */
static int add_table(const struct elf_file *elf, const struct elf_bytes *table,
		     struct elf_bytes *names, size_t entsize, uint64_t bias,
		     struct symtab_builder *builder)
{
	struct symbol_source source = {
		.elf = elf, .names = *names, .bias = bias, .builder = builder};
	struct reader r = elf_reader(elf, table);
	size_t count;
	int status;

	if (entsize < elf_sym_bytes(elf))
		entsize = elf_sym_bytes(elf);
	count = table->size / entsize;
	if (names->owned) {
		status = symtab_builder_own(builder, TAKE_PTR(names->owned));
		if (status < 0)
			return status;
	}
	if (vec_reserve(&builder->raw, builder->raw.len + MIN(count, 64u)) < 0)
		return -ENOMEM;
	for (size_t i = 1; i < count; i++) {
		struct elf_sym sym;

		reader_seek(&r, i * entsize);
		sym = elf_sym_read(elf, &r);
		status = add_symbol(&source, &sym);
		if (status < 0)
			return status;
	}
	return 0;
}

static int load_section_table(const struct elf_file *elf, uint32_t type, uint64_t bias,
			      struct symtab_builder *builder, bool *ret_found)
{
	for (uint32_t i = 1; i < elf->nsections; i++) {
		const struct elf_section *s = &elf->sections[i];
		struct elf_bytes table = {0}, names = {0};
		int r;

		if (s->type != type || s->link == 0 || s->link >= elf->nsections)
			continue;
		r = elf_section_bytes(elf, s, &table);
		if (r == 0)
			r = elf_section_bytes(elf, &elf->sections[s->link], &names);
		if (r == 0)
			r = add_table(elf, &table, &names, s->entsize, bias, builder);
		elf_bytes_fini(&names);
		elf_bytes_fini(&table);
		if (r == 0)
			*ret_found = true;
		return r == -ENOMEM ? r : 0;
	}
	return 0;
}

int elf_load_symtab(const struct elf_file *elf, uint64_t bias, struct symtab_builder *builder,
		    bool *ret_found)
{
	bool found = false;
	int r = load_section_table(elf, SHT_SYMTAB, bias, builder, &found);

	if (ret_found)
		*ret_found = found;
	return r;
}

/* The number of dynamic symbols by DT_HASH: its second word. */
static uint64_t count_by_hash(const struct elf_file *elf, uint64_t hash)
{
	struct elf_bytes bytes = {0};
	struct reader r;
	uint64_t count = 0;

	if (elf_read(elf, hash, 8, &bytes) < 0)
		return 0;
	r = elf_reader(elf, &bytes);
	reader_u32(&r);
	count = reader_u32(&r);
	elf_bytes_fini(&bytes);
	return count;
}

/* By DT_GNU_HASH: the end of the chain that starts last. */
static uint64_t count_by_gnu_hash(const struct elf_file *elf, uint64_t hash)
{
	struct elf_bytes bytes = {0};
	uint32_t nbuckets, symoffset, bloom, last = 0, value = 0;
	uint64_t buckets, chains, at;
	struct reader r;

	if (elf_read(elf, hash, 16, &bytes) < 0)
		return 0;
	r = elf_reader(elf, &bytes);
	nbuckets = reader_u32(&r);
	symoffset = reader_u32(&r);
	bloom = reader_u32(&r);
	elf_bytes_fini(&bytes);
	buckets = hash + 16 + (uint64_t)bloom * (elf->is64 ? 8 : 4);
	chains = buckets + (uint64_t)nbuckets * 4;
	if (elf_read(elf, buckets, (uint64_t)nbuckets * 4, &bytes) < 0)
		return 0;
	r = elf_reader(elf, &bytes);
	for (uint32_t i = 0; i < nbuckets; i++) {
		value = reader_u32(&r);
		last = MAX(last, value);
	}
	elf_bytes_fini(&bytes);
	if (last < symoffset || chains > elf->size)
		return 0;
	at = chains + (uint64_t)(last - symoffset) * 4;
	if (at > elf->size || elf_read(elf, at, (elf->size - at) & ~UINT64_C(3), &bytes) < 0)
		return 0;
	r = elf_reader(elf, &bytes);
	do {
		value = reader_u32(&r);
		last++;
	} while (!r.failed && !(value & 1));
	elf_bytes_fini(&bytes);
	return r.failed ? 0 : last;
}

int elf_dynamic(const struct elf_file *elf, struct elf_dynamic *ret)
{
	uint64_t hash = 0, gnu_hash = 0, at;
	struct elf_dynamic dynamic = {.syment = elf_sym_bytes(elf)};
	struct elf_bytes bytes = {0};
	const struct elf_segment *segment = NULL;
	struct reader r;

	for (uint32_t i = 0; i < elf->nsegments && !segment; i++)
		if (elf->segments[i].type == PT_DYNAMIC)
			segment = &elf->segments[i];
	if (!segment)
		return -ENOENT;
	at = segment->offset;
	/* A vdso's dump and some packers have a wrong p_offset: the address is what the loader
	 * uses. */
	(void)elf_vaddr_to_offset(elf, segment->vaddr, &at);
	if (elf_read(elf, at, MIN(segment->filesz, DYNAMIC_ENTRIES * 16u), &bytes) < 0)
		return -ENODATA;
	r = elf_reader(elf, &bytes);
	while (reader_left(&r) >= (elf->is64 ? 16u : 8u)) {
		uint64_t tag = elf_word(elf, &r), value = elf_word(elf, &r), offset = 0;

		if (tag == DT_NULL)
			break;
		if (tag == DT_STRSZ)
			dynamic.strsz = value;
		else if (tag == DT_SYMENT && value >= elf_sym_bytes(elf))
			dynamic.syment = value;
		else if (!elf_vaddr_to_offset(elf, value, &offset))
			continue;
		else if (tag == DT_SYMTAB)
			dynamic.symtab = offset;
		else if (tag == DT_STRTAB)
			dynamic.strtab = offset;
		else if (tag == DT_HASH)
			hash = offset;
		else if (tag == DT_GNU_HASH)
			gnu_hash = offset;
	}
	elf_bytes_fini(&bytes);
	if (dynamic.symtab == 0 || dynamic.strtab == 0)
		return -ENOENT;
	if (hash)
		dynamic.count = count_by_hash(elf, hash);
	if (dynamic.count == 0 && gnu_hash)
		dynamic.count = count_by_gnu_hash(elf, gnu_hash);
	if (dynamic.count == 0 && dynamic.strtab > dynamic.symtab)
		dynamic.count = (dynamic.strtab - dynamic.symtab) / dynamic.syment;
	*ret = dynamic;
	return 0;
}

int elf_load_dynsym(const struct elf_file *elf, uint64_t bias, struct symtab_builder *builder)
{
	struct elf_bytes table = {0}, names = {0};
	struct elf_dynamic dynamic;
	bool found = false;
	uint64_t room;
	int r;

	r = load_section_table(elf, SHT_DYNSYM, bias, builder, &found);
	if (r < 0 || found || elf_dynamic(elf, &dynamic) < 0)
		return r;
	room = elf->size - MIN(elf->size, dynamic.symtab);
	if (dynamic.count > room / dynamic.syment)
		dynamic.count = room / dynamic.syment;
	r = elf_read(elf, dynamic.symtab, dynamic.count * dynamic.syment, &table);
	if (r == 0)
		r = elf_read(elf, dynamic.strtab,
			     MIN(dynamic.strsz, elf->size - MIN(elf->size, dynamic.strtab)),
			     &names);
	if (r == 0)
		r = add_table(elf, &table, &names, dynamic.syment, bias, builder);
	elf_bytes_fini(&names);
	elf_bytes_fini(&table);
	return r == -ENOMEM ? r : 0;
}

static int build_id_in(const struct elf_file *elf, uint64_t offset, uint64_t size,
		       struct build_id *ret)
{
	struct elf_bytes bytes = {0};
	int r = elf_read(elf, offset, MIN(size, UINT64_C(1) << 20), &bytes);

	if (r < 0)
		return -ENOENT;
	r = build_id_in_notes(bytes.data, bytes.size, elf->swap, ret);
	elf_bytes_fini(&bytes);
	return r;
}

int elf_build_id(const struct elf_file *elf, struct build_id *ret)
{
	unsigned notes = 0;

	for (uint32_t i = 1; i < elf->nsections; i++)
		if (elf->sections[i].type == SHT_NOTE && notes++ < NOTES_READ &&
		    build_id_in(elf, elf->sections[i].offset, elf->sections[i].size, ret) == 0)
			return 0;
	for (uint32_t i = 0; i < elf->nsegments; i++)
		if (elf->segments[i].type == PT_NOTE && notes++ < 2 * NOTES_READ &&
		    build_id_in(elf, elf->segments[i].offset, elf->segments[i].filesz, ret) == 0)
			return 0;
	return -ENOENT;
}

int elf_debuglink(const struct elf_file *elf, char name[256], uint32_t *ret_crc)
{
	const struct elf_section *section = elf_section_named(elf, ".gnu_debuglink");
	struct elf_bytes bytes = {0};
	struct reader r;
	const char *link;
	int status = -ENOENT;

	if (!section || elf_section_bytes(elf, section, &bytes) < 0)
		return -ENOENT;
	r = elf_reader(elf, &bytes);
	link = reader_cstr(&r);
	if (link && link[0] && strlen(link) < 256 && !strchr(link, '/') &&
	    strcmp(link, "..") != 0) {
		uint32_t crc;

		reader_seek(&r, ALIGN_UP(r.pos, 4u));
		crc = reader_u32(&r);
		if (!r.failed) {
			memcpy(name, link, strlen(link) + 1);
			*ret_crc = crc;
			status = 0;
		}
	}
	elf_bytes_fini(&bytes);
	return status;
}

int elf_debugdata(const struct elf_file *elf, struct elf_file *ret)
{
	const struct elf_section *section = elf_section_named(elf, ".gnu_debugdata");
	struct elf_bytes bytes = {0};
	struct str plain = {0};
	char *image = NULL;
	size_t size;
	int r;

	if (!section)
		return -ENOENT;
	r = elf_section_bytes(elf, section, &bytes);
	if (r < 0)
		return r;
	r = xz_decompress(bytes.data, bytes.size, DEBUGDATA_MAX, &plain, NULL);
	elf_bytes_fini(&bytes);
	size = plain.len;
	if (r >= 0)
		r = str_take(&plain, &image);
	str_fini(&plain);
	if (r < 0)
		return r;
	r = elf_open_image(image, size, image, ret, NULL);
	if (r < 0)
		free(image);
	return r;
}

static uint32_t crc_table[4][256];

__attribute__((constructor)) static void crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? UINT32_C(0xedb88320) ^ (c >> 1) : c >> 1;
		crc_table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int slice = 1; slice < 4; slice++)
			crc_table[slice][i] = crc_table[0][crc_table[slice - 1][i] & 0xff] ^
					      (crc_table[slice - 1][i] >> 8);
}

static uint32_t crc_update(uint32_t crc, const uint8_t *data, size_t size)
{
	for (; size >= 4; data += 4, size -= 4) {
		crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
		       (uint32_t)data[3] << 24;
		crc = crc_table[3][crc & 0xff] ^ crc_table[2][crc >> 8 & 0xff] ^
		      crc_table[1][crc >> 16 & 0xff] ^ crc_table[0][crc >> 24];
	}
	for (; size > 0; data++, size--)
		crc = crc_table[0][(crc ^ *data) & 0xff] ^ (crc >> 8);
	return crc;
}

int elf_crc32(const struct elf_file *elf, uint32_t *ret)
{
	uint32_t crc = UINT32_MAX;

	for (uint64_t at = 0; at < elf->size;) {
		uint64_t step = MIN(elf->size - at, UINT64_C(1) << 20);
		struct elf_bytes bytes = {0};
		int r = elf_read(elf, at, step, &bytes);

		if (r < 0)
			return r;
		crc = crc_update(crc, bytes.data, bytes.size);
		elf_bytes_fini(&bytes);
		at += step;
	}
	*ret = ~crc;
	return 0;
}
