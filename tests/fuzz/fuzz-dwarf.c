/* Inlined functions and lines of an ELF file: every decoder of debug sections. */
#include <elf.h>
#include <stdlib.h>

#include "base/util.h"
#include "symbols/dwarf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAMES 16

static void ask(struct dwarf *dwarf, uint64_t from)
{
	struct inline_frame frames[FRAMES];

	for (uint64_t i = 0; i < 1u << 15; i += 61)
		if (dwarf_inlines(dwarf, from + i, frames, FRAMES) > FRAMES)
			abort();
}

/* Where the code is loaded, 0 when no segment tells. */
static uint64_t first_code(const struct elf_file *elf)
{
	for (uint32_t i = 0; i < elf->nsegments; i++)
		if (elf->segments[i].type == PT_LOAD && (elf->segments[i].flags & PF_X))
			return elf->segments[i].vaddr;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dwarf_options options = {.no_demangle = true};
	struct inline_frame frame;
	struct elf_file elf = {.fd = -1};
	struct arena arena = {0};
	struct dwarf *dwarf;
	uint64_t code;

	if (elf_open_image(data, size, NULL, &elf, NULL) < 0)
		return 0;
	code = first_code(&elf);
	if (dwarf_new(&options, &elf, &arena, &dwarf) == 0) {
		ask(dwarf, 0);
		if (code)
			ask(dwarf, code);
		(void)dwarf_inlines(dwarf, UINT64_MAX, &frame, 1);
		dwarf_free(dwarf);
	}
	arena_fini(&arena);
	return 0;
}
