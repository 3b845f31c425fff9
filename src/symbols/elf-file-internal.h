/*
 * Reading ELF files of either class and byte order, a field at a time.
 *
 * Only what is asked for is read: opening costs the headers, a section costs its own bytes (pread,
 * so a file that shrinks while it is read is an error and not a SIGBUS). Everything is checked
 * against the size of the file; allocations are bounded by it, or for compressed sections by what
 * they really unpack to. No library is used: libelf reads and validates more of a file than names
 * need.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct elf_section {
	uint32_t name, type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz, align;
};

struct elf_file {
	int fd; /* -1: bytes in memory */
	const uint8_t *image;
	void *owned_image; /* NULL: image is borrowed */
	uint64_t size;
	bool is64, swap;
	uint16_t type, machine;
	struct elf_section *sections;
	uint32_t nsections;
	struct elf_segment *segments;
	uint32_t nsegments;
	char *section_names;
	size_t section_names_size;
};

/* Bytes of a file; owned is to be freed by elf_bytes_fini(). One NUL stands behind them when owned.
 */
struct elf_bytes {
	const uint8_t *data;
	size_t size;
	void *owned;
};

/* Opens regular files only. -ENOEXEC: not an ELF file. */
int elf_open(const char *path, struct elf_file *ret, struct err *err);
/* The bytes must outlive the file; take != NULL is freed with it. */
int elf_open_image(const void *image, size_t size, void *take, struct elf_file *ret,
		   struct err *err);
void elf_close(struct elf_file *elf);

int elf_read(const struct elf_file *elf, uint64_t offset, uint64_t size, struct elf_bytes *ret);
void elf_bytes_fini(struct elf_bytes *bytes);

/* NULL when there is none of that name. */
const struct elf_section *elf_section_named(const struct elf_file *elf, const char *name);
const char *elf_section_name(const struct elf_file *elf, const struct elf_section *section);
/* The contents, unpacked when compressed (SHF_COMPRESSED, .zdebug). -ENODATA: takes no room in the
 * file. */
int elf_section_bytes(const struct elf_file *elf, const struct elf_section *section,
		      struct elf_bytes *ret);

/* True and *ret when a loaded segment holds the virtual address / the file offset. */
bool elf_vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_offset);
bool elf_offset_to_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *ret_vaddr);

static inline struct reader elf_reader(const struct elf_file *elf, const struct elf_bytes *bytes)
{
	return reader_make(bytes->data, bytes->size, elf->swap);
}

/* A word of the file's class. */
static inline uint64_t elf_word(const struct elf_file *elf, struct reader *reader)
{
	return elf->is64 ? reader_u64(reader) : reader_u32(reader);
}
