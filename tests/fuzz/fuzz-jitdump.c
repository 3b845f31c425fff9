/* jitdump files. */
#include <stdlib.h>

#include "symbols/jitdump-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symtab_builder builder = {0};
	struct symbol symbol;
	struct symtab tab;
	struct jitdump dump;
	size_t bad = 0;

	if (jitdump_load(data, size, &builder, &bad) == 0 &&
	    symtab_finish(&builder, SYMTAB_LATEST, &tab) == 0) {
		tab.no_demangle = true;
		for (uint64_t address = 0; address < 1 << 12; address += 64)
			(void)symtab_lookup(&tab, address, &symbol);
		symtab_fini(&tab);
	}
	symtab_builder_fini(&builder);
	if (jitdump_parse(data, size, &dump) == 0) {
		const struct jitdump_code *code;

		vec_for_each(&dump.codes, it)
			for (uint64_t offset = 0; offset < it->size && offset < 64; offset += 7) {
				const struct jitdump_line *line =
					jitdump_find_line(&dump, it->base + offset, &code);

				if (line && (code != it || line->offset > offset))
					abort();
			}
	}
	jitdump_fini(&dump);
	return 0;
}
