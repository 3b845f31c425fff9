/* The names of code that a just-in-time compiler wrote into a jitdump file. */
#pragma once

#include "symbols/jitdump.h"
#include "symbols/symtab-internal.h"

/*
 * Adds the symbols by their addresses in the process, in the order in which they were placed: where
 * the time is not known. The bytes must live until symtab_finish(). As jitdump_parse().
 */
int jitdump_load(const void *data, size_t size, struct symtab_builder *builder,
		 size_t *ret_bad_records);
/* The same by the addresses of the file's own space. */
int jitdump_add_codes(const struct jitdump *dump, struct symtab_builder *builder);
