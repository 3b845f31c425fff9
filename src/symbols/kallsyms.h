/*
 * The text of /proc/kallsyms: "ADDRESS TYPE NAME[\t[MODULE]]" a line, in no order one can rely on.
 *
 * Sizes are not told: a symbol reaches to the next higher address of any type. Where that belongs
 * to another module the symbol is cut one to two pages behind its start, for modules lie far apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct kallsyms_entry {
	uint64_t address;
	uint32_t name, module; /* offsets into the text; module 0: the kernel itself */
	uint16_t name_len;
	uint8_t module_len; /* brackets included */
	char type;          /* as nm: t T w W are code */
};

struct kallsyms {
	const char *text;               /* borrowed; must outlive this */
	struct kallsyms_entry *entries; /* ascending by address, equal ones in file order */
	size_t count;
	size_t bad_lines;
	bool hidden; /* every address is 0: the kernel does not tell this reader */
};

/* 0, -ENOMEM, or -EFBIG from 4 GiB on. */
int kallsyms_parse(const char *text, size_t size, struct kallsyms *ret);
void kallsyms_fini(struct kallsyms *kallsyms);

static inline bool kallsyms_is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/*
 * Appends to out the lines that name the addresses (ascending, or not): every code symbol at the
 * covering address, and the successor that ends it. A successor that names none of the addresses
 * gets the type 'N', so that the excerpt never names what it cannot bound.
 */
int kallsyms_excerpt(const char *text, size_t size, const uint64_t *addresses, size_t count,
		     struct str *out);
