/* Perf maps: overlaps are settled for every address as a plain scan of the lines would. */
#include <stdlib.h>

#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct module_ref ref = {.kind = MODULE_PERF_MAP, .image = data, .image_size = size};
	struct symbols *symbols;
	struct module *module;
	struct symbol symbol;

	if (size == 0 || symbols_new(NULL, &symbols) < 0)
		return 0;
	if (symbols_module(symbols, &ref, &module) == 0)
		for (uint64_t address = 0; address < 4096; address += 7)
			if (module_lookup(module, address, &symbol) &&
			    (address < symbol.start || address - symbol.start >= symbol.size ||
			     !symbol.name[0]))
				abort();
	symbols_free(symbols);
	return 0;
}
