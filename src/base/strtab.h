/*
 * String interning: equal strings get equal ids, ids count from 0 in order of first use, id 0 is
 * "". Strings may hold any byte, NUL included; lengths are kept. Pointers stay valid until
 * strtab_fini().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"

struct strtab_entry {
	const char *text;
	uint32_t len;
};

struct strtab {
	VEC(struct strtab_entry) entries;
	struct hash_index index;
	struct arena arena;
};

/* Must be called before anything else: makes id 0. 0 or -ENOMEM. */
int strtab_init(struct strtab *tab);
void strtab_fini(struct strtab *tab);
/* The id of the string, added when new; -ENOMEM, or -E2BIG when a string has 4 GiB. */
int strtab_intern(struct strtab *tab, const char *text, size_t len, uint32_t *ret_id);
int strtab_intern_text(struct strtab *tab, const char *text, uint32_t *ret_id);
/* HASH_NONE when it was never interned. */
uint32_t strtab_find(const struct strtab *tab, const char *text, size_t len);

/* The NUL-terminated text; "" for ids out of range. */
static inline const char *strtab_text(const struct strtab *tab, uint32_t id)
{
	return id < tab->entries.len ? tab->entries.data[id].text : "";
}
