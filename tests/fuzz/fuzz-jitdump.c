/* jitdump files. */
#include "symbols/jitdump-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symtab_builder builder = {0};
	struct symbol symbol;
	struct symtab tab;
	size_t bad = 0;

	if (jitdump_load(data, size, &builder, &bad) == 0 &&
	    symtab_finish(&builder, SYMTAB_LATEST, &tab) == 0) {
		tab.no_demangle = true;
		for (uint64_t address = 0; address < 1 << 12; address += 64)
			(void)symtab_lookup(&tab, address, &symbol);
		symtab_fini(&tab);
	}
	symtab_builder_fini(&builder);
	return 0;
}
