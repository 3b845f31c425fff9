#include "base/strtab.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool entry_equal(const void *owner, uint32_t id, const void *key)
{
	const struct strtab *tab = owner;
	const struct strtab_entry *want = key, *have = &tab->entries.data[id];

	return have->len == want->len && memcmp(have->text, want->text, want->len) == 0;
}

int strtab_init(struct strtab *tab)
{
	uint32_t id;

	*tab = (struct strtab){0};
	return strtab_intern(tab, "", 0, &id);
}

void strtab_fini(struct strtab *tab)
{
	vec_fini(&tab->entries);
	hash_index_fini(&tab->index);
	arena_fini(&tab->arena);
}

int strtab_intern(struct strtab *tab, const char *text, size_t len, uint32_t *ret_id)
{
	struct strtab_entry entry = {.text = text, .len = (uint32_t)len};
	uint64_t hash = hash_bytes(text, len);
	uint32_t id;
	int r;

	if (len >= UINT32_MAX)
		return -E2BIG;
	id = hash_index_find(&tab->index, hash, entry_equal, tab, &entry);
	if (id == HASH_NONE) {
		id = (uint32_t)tab->entries.len;
		if (id == HASH_NONE)
			return -E2BIG;
		entry.text = arena_strndup(&tab->arena, text, len);
		if (!entry.text || vec_push(&tab->entries, entry) < 0)
			return -ENOMEM;
		r = hash_index_add(&tab->index, hash, id);
		if (r < 0) {
			tab->entries.len--;
			return r;
		}
	}
	*ret_id = id;
	return 0;
}

int strtab_intern_text(struct strtab *tab, const char *text, uint32_t *ret_id)
{
	return strtab_intern(tab, text, strlen(text), ret_id);
}

uint32_t strtab_find(const struct strtab *tab, const char *text, size_t len)
{
	struct strtab_entry key = {.text = text, .len = (uint32_t)len};

	return hash_index_find(&tab->index, hash_bytes(text, len), entry_equal, tab, &key);
}
