/*
 * One object's symbols as sorted arrays: 16 bytes a symbol and its name, nothing else.
 *
 * A builder collects symbols in any order; symtab_finish() sorts them, settles aliases and overlaps
 * and keeps the result. After that the table never changes but for its cache of demangled names,
 * which threads fill without a lock.
 *
 * The address space is cut into pieces that do not overlap. Most symbols are one piece. Where
 * symbols overlap the policy says who owns the shared part, and a symbol of several pieces is
 * described whole in a side table, so that a lookup is one binary search in every case.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"
#include "symbols/symbols.h"

struct symtab_raw {
	uint64_t start, end; /* end: when the size is unknown, the latest address it may reach */
	const char *name;    /* borrowed until symtab_finish() */
	uint32_t name_len;
	uint16_t object; /* index into the builder's objects, 0 none */
	uint8_t rank;    /* among aliases the lowest wins */
	bool no_size;
};

enum symtab_policy {
	SYMTAB_INNERMOST, /* ELF: the symbol that starts last owns the shared part; aliases are
			     settled */
	SYMTAB_LATEST,    /* perf maps: the symbol that was added last owns it */
};

struct symtab_builder {
	VEC(struct symtab_raw) raw;
	VEC(void *) owned;   /* buffers the names live in; free()d by symtab_builder_fini() */
	VEC(char *) objects; /* names of objects; owned; raw.object - 1 */
	struct arena arena;  /* for names that are put together */
};

void symtab_builder_fini(struct symtab_builder *builder);
int symtab_builder_add(struct symtab_builder *builder, const struct symtab_raw *raw);
/* Takes the buffer over in every case. 0 or -ENOMEM. */
int symtab_builder_own(struct symtab_builder *builder, void *buffer);

struct symtab_whole {
	uint64_t start;
	uint32_t size, name;
};

struct symtab {
	uint64_t *starts; /* of pieces, ascending */
	struct symtab_info {
		uint32_t size;
		uint32_t name; /* offset into names, or SYMTAB_PART | index into wholes */
	} * infos;
	uint16_t *piece_objects; /* NULL: no piece has one */
	char **objects;
	struct symtab_whole *wholes;
	char *names;
	char **demangled; /* per piece, filled by atomic exchange */
	size_t count, symbols, wholes_len, objects_len, names_len;
	bool no_demangle;
};

#define SYMTAB_PART UINT32_C(0x80000000)

int symtab_finish(struct symtab_builder *builder, enum symtab_policy policy, struct symtab *ret);
void symtab_fini(struct symtab *tab);
bool symtab_lookup(const struct symtab *tab, uint64_t address, struct symbol *ret);

/* Sorts ascending by key, stable; scratch holds count pairs too. */
struct sort_pair {
	uint64_t key;
	uint32_t value;
};
void sort_pairs(struct sort_pair *pairs, struct sort_pair *scratch, size_t count);

/* Fills a builder with the code symbols of kallsyms; the text must live until symtab_finish(). */
struct kallsyms;
int kallsyms_load(const struct kallsyms *kallsyms, struct symtab_builder *builder);

/*
 * The text of a perf map: "START SIZE NAME" a line, START and SIZE in hex with or without 0x, the
 * name reaches to the end of the line. The text must live until symtab_finish(). Lines that are not
 * like this are counted and skipped.
 */
int perf_map_load(const char *text, size_t size, struct symtab_builder *builder,
		  size_t *ret_bad_lines);
