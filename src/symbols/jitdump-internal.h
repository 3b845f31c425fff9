/* The names of code that a just-in-time compiler wrote into a jitdump file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "symbols/symtab-internal.h"

bool jitdump_detect(const void *data, size_t size);

/*
 * Adds the symbols in the order in which they were placed; the bytes must live until
 * symtab_finish(). Damaged records are counted and left out. -EBADMSG for what is no jitdump,
 * -ENOMEM.
 */
int jitdump_load(const void *data, size_t size, struct symtab_builder *builder,
		 size_t *ret_bad_records);
