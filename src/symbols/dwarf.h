/*
 * Inlined functions and source lines from DWARF 2 to 5: plain, compressed, split (.dwo, .dwp) and
 * squeezed by dwz.
 *
 * Opening costs the headers of the units and their root entries. What is inside a unit is decoded
 * when the first address falls into it, once: its functions and inlined calls as sorted pieces of
 * the address space, its line table as sorted rows. Only the bytes that are used are read.
 *
 * Not thread safe: one thread, or one lock, per struct dwarf. Damaged data gives no or wrong names,
 * never an error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "symbols/elf-file-internal.h"
#include "symbols/symbols.h"

struct dwarf_options {
	const char *path;              /* of the file: split and supplementary files are looked for
					  beside it; NULL: nowhere */
	const char *const *debug_dirs; /* NULL-terminated; NULL: none */
	const char *root;              /* before the absolute paths that a file names; NULL: none */
	bool no_demangle;
};

struct dwarf;

/* True when the file has anything to offer here. */
bool dwarf_is_in(const struct elf_file *elf);

/*
 * Takes *elf over in every case. The texts of the answers go to the arena, which must outlive the
 * answers and not the struct dwarf. Strings of options are borrowed. 0 or -ENOMEM.
 */
int dwarf_new(const struct dwarf_options *options, struct elf_file *elf, struct arena *arena,
	      struct dwarf **ret);
void dwarf_free(struct dwarf *dwarf);

/* A file that the debug information refers to was not found: answers may lack names. */
bool dwarf_incomplete(const struct dwarf *dwarf);

/* As module_inlines(), for a virtual address. */
int dwarf_inlines(struct dwarf *dwarf, uint64_t address, struct inline_frame *frames, size_t max);
