/* Inlined functions and lines of an ELF file: every decoder of debug sections. */
#include <stdlib.h>

#include "symbols/dwarf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dwarf_options options = {.no_demangle = true};
	struct inline_frame frames[16];
	struct elf_file elf = {.fd = -1};
	struct arena arena = {0};
	struct dwarf *dwarf;

	if (elf_open_image(data, size, NULL, &elf, NULL) < 0)
		return 0;
	if (dwarf_new(&options, &elf, &arena, &dwarf) == 0) {
		for (uint64_t address = 0; address < 1u << 16; address += 61) {
			int count = dwarf_inlines(dwarf, address, frames, 16);

			if (count > 16)
				abort();
		}
		(void)dwarf_inlines(dwarf, UINT64_MAX, frames, 1);
		dwarf_free(dwarf);
	}
	arena_fini(&arena);
	return 0;
}
