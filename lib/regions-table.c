/* The regions of a thread by name: chunks that never move, and an index by hash over them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "regions-internal.h"

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

static int index_grow(struct thread *t)
{
	uint32_t mask = t->index_mask ? t->index_mask * 2 + 1 : 63;
	uint32_t *index = calloc((size_t)mask + 1, sizeof(*index));

	if (!index)
		return -ENOMEM;
	for (unsigned i = 0; i < t->count; i++) {
		uint32_t slot = region_at(t, i)->hash & mask;

		while (index[slot])
			slot = (slot + 1) & mask;
		index[slot] = i + 1;
	}
	free(t->index);
	t->index = index;
	t->index_mask = mask;
	return 0;
}

static struct region *region_add(struct thread *t, const char *name, uint32_t hash, uint32_t slot)
{
	struct region **chunk = &t->chunks[t->count / CHUNK_REGIONS], *region;

	if (t->count >= CHUNKS_MAX * CHUNK_REGIONS)
		return NULL;
	if (!*chunk)
		*chunk = calloc(CHUNK_REGIONS, sizeof(**chunk));
	if (!*chunk)
		return NULL;
	region = region_at(t, t->count);
	region->name = strdup(name);
	if (!region->name)
		return NULL;
	region->hash = hash;
	t->index[slot] = t->count + 1;
	__atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELEASE);
	return region;
}

struct region *culprit_region_find_slow(struct thread *t, const char *name, bool add)
{
	uint32_t hash = hash_name(name), slot;

	if ((t->count + 1) * 4 > t->index_mask * 3 && index_grow(t) < 0)
		return NULL;
	for (slot = hash & t->index_mask; t->index[slot]; slot = (slot + 1) & t->index_mask) {
		struct region *region = region_at(t, t->index[slot] - 1);

		if (region->hash == hash && strcmp(region->name, name) == 0)
			return region;
	}
	return add ? region_add(t, name, hash, slot) : NULL;
}
