/* Go's function table. The first byte chooses the byte order and whether runtime.text is known, the
 * next two say where the trees of inlined calls are. */
#include "base/util.h"
#include "symbols/gopclntab.h"

#define HEAD    3
#define ADDRESS 0x9000
#define CODE    0x4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_lines(const struct go_table *table)
{
	struct inline_frame frames[16];
	struct go_lines *lines = NULL;
	struct arena arena = {0};

	if (go_lines_of(table, &arena, &lines) == 0 && lines)
		for (uint64_t address = table->text; address < table->text + CODE; address += 88)
			(void)go_lines_find(lines, address, frames, ARRAY_LEN(frames));
	go_lines_free(lines);
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symtab_builder builder = {0};
	struct go_table table = {.address = ADDRESS};
	struct symbol symbol;
	struct symtab tab;

	if (size < HEAD)
		return 0;
	table.data = data + HEAD;
	table.size = size - HEAD;
	table.swap = data[0] & 1;
	table.text = data[0] & 2 ? 0x1000 : 0;
	table.gofunc = ADDRESS + data[1] + 256u * data[2];
	if (go_table_load(&table, &builder) == 0 &&
	    symtab_finish(&builder, SYMTAB_INNERMOST, &tab) == 0) {
		tab.no_demangle = true;
		for (uint64_t address = 0; address < CODE; address += 256)
			(void)symtab_lookup(&tab, address, &symbol);
		symtab_fini(&tab);
	}
	symtab_builder_fini(&builder);
	find_lines(&table);
	return 0;
}
