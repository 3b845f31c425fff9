/* The function table of Go programs. The first byte chooses the byte order. */
#include "symbols/gopclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symtab_builder builder = {0};
	struct go_table table = {0};
	struct symbol symbol;
	struct symtab tab;

	if (size == 0)
		return 0;
	table.data = data + 1;
	table.size = size - 1;
	table.swap = data[0] & 1;
	table.text = data[0] & 2 ? 0x1000 : 0;
	if (go_table_load(&table, &builder) == 0 &&
	    symtab_finish(&builder, SYMTAB_INNERMOST, &tab) == 0) {
		tab.no_demangle = true;
		for (uint64_t address = 0; address < 1 << 14; address += 256)
			(void)symtab_lookup(&tab, address, &symbol);
		symtab_fini(&tab);
	}
	symtab_builder_fini(&builder);
	return 0;
}
