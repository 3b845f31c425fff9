/* Function symbols of an ELF file: .symtab, .dynsym, PLT stubs, and the facts that find its debug
 * file. */
#pragma once

#include "symbols/elf-file-internal.h"
#include "symbols/symtab-internal.h"

/* .symtab, or .dynsym (by section headers, else by PT_DYNAMIC). bias is added to every address.
 * *ret_found (may be NULL) says whether the table exists. */
int elf_load_symtab(const struct elf_file *elf, uint64_t bias, struct symtab_builder *builder,
		    bool *ret_found);
int elf_load_dynsym(const struct elf_file *elf, uint64_t bias, struct symtab_builder *builder);
/* Stubs named after what they jump to, "name@plt". To be called last: IRELATIVE stubs are named by
 * the resolver's symbol in the builder. */
int elf_load_plt(const struct elf_file *elf, struct symtab_builder *builder);

/* -ENOENT when there is none. */
int elf_build_id(const struct elf_file *elf, struct build_id *ret);
/* The name (a plain file name, not a path) and CRC of .gnu_debuglink. -ENOENT when there is none.
 */
int elf_debuglink(const struct elf_file *elf, char name[256], uint32_t *ret_crc);
/* The ELF file inside .gnu_debugdata. -ENOENT when there is none. */
int elf_debugdata(const struct elf_file *elf, struct elf_file *ret);
/* CRC-32 of the whole file, as .gnu_debuglink wants it. */
int elf_crc32(const struct elf_file *elf, uint32_t *ret);

/* The dynamic section's facts that a file without section headers offers. Offsets are into the
 * file. */
struct elf_dynamic {
	uint64_t symtab, strtab, strsz, syment, count;
};
int elf_dynamic(const struct elf_file *elf, struct elf_dynamic *ret);

/* One symbol. */
struct elf_sym {
	uint32_t name;
	uint8_t info, other;
	uint16_t shndx;
	uint64_t value, size;
};

static inline size_t elf_sym_bytes(const struct elf_file *elf)
{
	return elf->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static inline struct elf_sym elf_sym_read(const struct elf_file *elf, struct reader *r)
{
	struct elf_sym s;

	s.name = reader_u32(r);
	if (elf->is64) {
		s.info = reader_u8(r);
		s.other = reader_u8(r);
		s.shndx = reader_u16(r);
		s.value = reader_u64(r);
		s.size = reader_u64(r);
	} else {
		s.value = reader_u32(r);
		s.size = reader_u32(r);
		s.info = reader_u8(r);
		s.other = reader_u8(r);
		s.shndx = reader_u16(r);
	}
	return s;
}
