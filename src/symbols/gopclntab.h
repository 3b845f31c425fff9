/*
 * The table of Go's runtime that maps addresses to functions, source lines and inlined calls. It
 * stays in binaries that are stripped (strip, -ldflags="-s -w"), since tracebacks of the program
 * itself need it. All layouts are read: those of Go 1.2, 1.16, 1.18 and 1.20, which later versions
 * still write; inlined calls from 1.18 on.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "symbols/elf-file-internal.h"
#include "symbols/symtab-internal.h"

/* Its bytes, and what numbers in it are relative to. */
struct go_table {
	const uint8_t *data;
	size_t size;
	bool swap;
	uint64_t address;
	uint64_t text;   /* address of runtime.text; used from 1.18 on */
	uint64_t gofunc; /* address of go:func.*, where trees of inlined calls are; 0 unknown */
	const struct elf_file *elf; /* has what lies outside the table; NULL: nothing has */
};

/* The table of a binary; bytes are to be freed by elf_bytes_fini(). -ENOENT, -ENOMEM. */
int elf_go_table(const struct elf_file *elf, struct elf_bytes *ret_bytes, struct go_table *ret);

/*
 * Adds the functions of a binary that has such a table, else none. The names stay with the builder.
 * 0, or -ENOMEM: damage only names less.
 */
int elf_load_go(const struct elf_file *elf, struct symtab_builder *builder);

bool elf_has_go(const struct elf_file *elf);

/* The same of the table alone. Names are borrowed from it. */
int go_table_load(const struct go_table *table, struct symtab_builder *builder);

/*
 * Source lines and inlined calls. Opening reads the table and decodes nothing; an answer decodes
 * the one function that has the address. Not thread safe.
 */
struct go_lines;

/* Takes *elf over in every case; *ret is NULL when there is no table. The texts of the answers go
 * to the arena, which must outlive them and not the struct go_lines. 0 or -ENOMEM. */
int go_lines_open(struct elf_file *elf, struct arena *arena, struct go_lines **ret);
/* The same of a table alone, which is borrowed. */
int go_lines_of(const struct go_table *table, struct arena *arena, struct go_lines **ret);
void go_lines_free(struct go_lines *lines);

/* As module_inlines(), for a virtual address. Columns are not known. */
int go_lines_find(struct go_lines *lines, uint64_t address, struct inline_frame *frames,
		  size_t max);
