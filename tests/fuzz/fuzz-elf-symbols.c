/* Every path of the ELF reader that works on bytes: headers, tables, PLT, notes, debuglink,
 * minidebuginfo. */
#include <stdlib.h>

#include "symbols/elf-symbols-internal.h"
#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct module *module)
{
	struct symbol symbol;

	for (uint64_t offset = 0; offset < 1u << 16; offset += 251)
		if (module_lookup(module, offset, &symbol) && (!symbol.name || !symbol.raw_name[0]))
			abort();
	(void)module_lookup(module, UINT64_MAX, &symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct module_ref ref = {.kind = MODULE_VDSO, .image = data, .image_size = size};
	struct elf_file elf = {.fd = -1};
	struct symbols *symbols;
	struct module *module;
	struct build_id id;
	char link[256];
	uint32_t crc;

	if (elf_open_image(data, size, NULL, &elf, NULL) == 0) {
		(void)elf_debuglink(&elf, link, &crc);
		(void)elf_build_id(&elf, &id);
		(void)elf_crc32(&elf, &crc);
		elf_close(&elf);
	}
	if (symbols_new(NULL, &symbols) < 0)
		return 0;
	if (symbols_module(symbols, &ref, &module) == 0)
		look_up(module);
	symbols_free(symbols);
	return 0;
}
