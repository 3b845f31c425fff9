/*
 * The table of Go's runtime that maps addresses to functions. It stays in binaries that are
 * stripped (strip, -ldflags=-s), since tracebacks of the program itself need it. All layouts are
 * read: those of Go 1.2, 1.16, 1.18 and 1.20, which later versions still write.
 */
#pragma once

#include <stdbool.h>

#include "symbols/elf-file-internal.h"
#include "symbols/symtab-internal.h"

/* Its bytes, and what addresses in it are relative to. */
struct go_table {
	const uint8_t *data;
	size_t size;
	bool swap;
	uint64_t text; /* address of runtime.text; used from 1.18 on */
};

/*
 * Adds the functions of a binary that has such a table, else none. The names stay with the builder.
 * 0, or -ENOMEM: damage only names less.
 */
int elf_load_go(const struct elf_file *elf, struct symtab_builder *builder);

bool elf_has_go(const struct elf_file *elf);

/* The same of the table alone. Names are borrowed from it. */
int go_table_load(const struct go_table *table, struct symtab_builder *builder);
