/* Debug information made by hand: what compilers do not write, and damaged files have. */
#include <elf.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "symbols/dwarf.h"

#define PARTS_MAX 6

struct part {
	const char *name;
	const void *data;
	size_t size;
};

/* A 64-bit little-endian file of these sections, their names last. */
static void make_elf(const struct part *parts, size_t count, struct str *out)
{
	Elf64_Shdr sections[PARTS_MAX + 2] = {0};
	struct str names = {0};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(count + 2),
		.e_shstrndx = (Elf64_Half)(count + 1),
	};
	size_t at = sizeof(header);

	str_putc(&names, '\0');
	for (size_t i = 0; i < count + 1; i++) {
		const char *name = i < count ? parts[i].name : ".shstrtab";

		sections[i + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)names.len,
					       .sh_type = i < count ? SHT_PROGBITS : SHT_STRTAB,
					       .sh_offset = at};
		str_append(&names, name, strlen(name) + 1);
		sections[i + 1].sh_size = i < count ? parts[i].size : names.len;
		at += sections[i + 1].sh_size;
	}
	header.e_shoff = at;
	str_append(out, &header, sizeof(header));
	for (size_t i = 0; i < count; i++)
		str_append(out, parts[i].data, parts[i].size);
	str_append(out, names.data, names.len);
	str_append(out, sections, (count + 2) * sizeof(sections[0]));
	str_fini(&names);
}

/* The frames at an address of a file with these .debug_info and .debug_abbrev. */
static int frames_at(const struct part *parts, size_t count, uint64_t address)
{
	const struct dwarf_options options = {.no_demangle = true};
	struct inline_frame frames[4];
	struct elf_file elf = {.fd = -1};
	struct arena arena = {0};
	struct str image = {0};
	struct dwarf *dwarf;
	int result = -1;

	make_elf(parts, count, &image);
	if (elf_open_image(image.data, image.len, NULL, &elf, NULL) == 0 &&
	    dwarf_new(&options, &elf, &arena, &dwarf) == 0) {
		result = dwarf_inlines(dwarf, address, frames, ARRAY_LEN(frames));
		dwarf_free(dwarf);
	}
	arena_fini(&arena);
	str_fini(&image);
	return result;
}

/* length, version 4, abbreviations at 0, addresses of 8 bytes; then the root entry */
#define UNIT_4(size_, ...) (size_) + 7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, __VA_ARGS__

/* A table of abbreviations without a single attribute keeps none. */
TEST(entries_without_attributes_are_read)
{
	static const uint8_t info[] = {UNIT_4(3, 1, 2, 0)},
			     abbrev[] = {1, 0x11, 1, 0, 0, 2, 0x2e, 0, 0, 0, 0};
	const struct part parts[] = {{".debug_info", info, sizeof(info)},
				     {".debug_abbrev", abbrev, sizeof(abbrev)}};

	EXPECT_INT(frames_at(parts, ARRAY_LEN(parts), 0x1000), 0);
}

/* The same reader finds a function where there is one. */
TEST(a_unit_made_by_hand_names_its_function)
{
	static const uint8_t info[] = {UNIT_4(
		2 * (1 + 8 + 4) + 2 + 1, 1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, /* root */
		2, 'f', 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0,                  /* f */
		0)},
			     abbrev[] = {
				     1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0,    0, /* low, high */
				     2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, 0};
	const struct part parts[] = {{".debug_info", info, sizeof(info)},
				     {".debug_abbrev", abbrev, sizeof(abbrev)}};

	EXPECT_INT(frames_at(parts, ARRAY_LEN(parts), 0x1010), 1);
	EXPECT_INT(frames_at(parts, ARRAY_LEN(parts), 0x1030), 0);
	EXPECT_INT(frames_at(parts, ARRAY_LEN(parts), 0x2000), 0);
}
