/* jitdump files. */
#include <stdlib.h>

#include "symbols/jitdump-internal.h"
#include "symbols/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unwind(const struct jitdump *dump, const struct jitdump_code *code)
{
	const struct unwind_frame frame = {.data = code->frame,
					   .size = code->frame_bytes,
					   .vaddr = code->base + code->size,
					   .swap = dump->swap};
	struct unwind_rule rule;

	for (uint64_t offset = 0; code->frame && offset < code->size && offset < 64; offset += 9)
		(void)unwind_frame_rule(offset % 2 ? UNWIND_ARM64 : UNWIND_X86_64, &frame,
					code->base + offset, &rule);
}

/* In pieces it is the same as at once. */
static void parse_in_pieces(const uint8_t *data, size_t size, const struct jitdump *whole)
{
	struct jitdump dump;
	size_t used;
	uint64_t at;
	int r = jitdump_begin(data, size, &dump, &at);

	for (size_t end = (size_t)at; r == 0 && end < size; end += 1 + size / 8) {
		r = jitdump_records(&dump, data + at, end - (size_t)at, &used);
		at += used;
	}
	if (dump.codes.len > whole->codes.len || dump.places.len > whole->places.len)
		abort();
	jitdump_fini(&dump);
}

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
			unwind(&dump, it);
		parse_in_pieces(data, size, &dump);
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
