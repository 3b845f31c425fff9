#include "base/hash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SLOTS_MIN 64
#define SLOTS_MAX (UINT32_C(1) << 31)

struct u64_map_slot {
	uint64_t key;
	uint32_t value; /* HASH_NONE: free */
};

uint64_t hash_bytes(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

/* A free slot's number is HASH_NONE, all bits of which are set: so are those of new slots. */
static_assert(HASH_NONE == UINT32_MAX, "a table is made free by setting all bits");

/* Three quarters are used, or there is none yet. */
static bool is_full(const void *slots, uint32_t mask, uint32_t used)
{
	return !slots || used + 1 > (mask + 1) / 4 * 3;
}

/* A free table of twice the slots, and its mask. 0 or -ENOMEM. */
static int slots_double(const void *slots, size_t slot_size, uint32_t *mask, void **ret)
{
	uint32_t want = slots ? (*mask + 1) * 2 : SLOTS_MIN;
	void *grown;

	if (want > SLOTS_MAX || want == 0)
		return -ENOMEM;
	grown = malloc(want * slot_size);
	if (!grown)
		return -ENOMEM;
	memset(grown, 0xff, want * slot_size);
	*mask = want - 1;
	*ret = grown;
	return 0;
}

/*
 * The slot position comes from the low half of the hash and the tag from the high half. Growing
 * needs the position again, so the low half is rebuilt from the tag by one more mix: position =
 * mix(tag).
 */
static uint32_t slot_of(uint32_t tag)
{
	return tag * UINT32_C(0x9e3779b1) ^ tag >> 15;
}

uint32_t hash_index_find(const struct hash_index *index, uint64_t hash, hash_equal_fn equal,
			 const void *owner, const void *key)
{
	uint32_t tag = (uint32_t)(hash >> 32);

	if (!index->slots)
		return HASH_NONE;
	for (uint32_t i = slot_of(tag) & index->mask;; i = (i + 1) & index->mask) {
		const struct hash_slot *slot = &index->slots[i];

		if (slot->id == HASH_NONE)
			return HASH_NONE;
		if (slot->tag == tag && equal(owner, slot->id, key))
			return slot->id;
	}
}

static void index_place(struct hash_index *index, uint32_t tag, uint32_t id)
{
	uint32_t i = slot_of(tag) & index->mask;

	while (index->slots[i].id != HASH_NONE)
		i = (i + 1) & index->mask;
	index->slots[i] = (struct hash_slot){.tag = tag, .id = id};
}

static int index_grow(struct hash_index *index)
{
	struct hash_index grown = {.mask = index->mask, .used = index->used};
	int r = slots_double(index->slots, sizeof(*index->slots), &grown.mask,
			     (void **)&grown.slots);

	if (r < 0)
		return r;
	for (uint32_t i = 0; index->slots && i <= index->mask; i++)
		if (index->slots[i].id != HASH_NONE)
			index_place(&grown, index->slots[i].tag, index->slots[i].id);
	free(index->slots);
	*index = grown;
	return 0;
}

int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t id)
{
	int r = is_full(index->slots, index->mask, index->used) ? index_grow(index) : 0;

	if (r < 0)
		return r;
	index_place(index, (uint32_t)(hash >> 32), id);
	index->used++;
	return 0;
}

void hash_index_fini(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){0};
}

static struct u64_map_slot *map_slot(const struct u64_map *map, uint64_t key)
{
	uint32_t i = (uint32_t)hash_u64(key) & map->mask;

	while (map->slots[i].value != HASH_NONE && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

bool u64_map_get(const struct u64_map *map, uint64_t key, uint32_t *ret_value)
{
	const struct u64_map_slot *slot;

	if (!map->slots)
		return false;
	slot = map_slot(map, key);
	if (slot->value == HASH_NONE)
		return false;
	*ret_value = slot->value;
	return true;
}

static int map_grow(struct u64_map *map)
{
	struct u64_map grown = {.mask = map->mask, .used = map->used};
	int r = slots_double(map->slots, sizeof(*map->slots), &grown.mask, (void **)&grown.slots);

	if (r < 0)
		return r;
	for (uint32_t i = 0; map->slots && i <= map->mask; i++)
		if (map->slots[i].value != HASH_NONE)
			*map_slot(&grown, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = grown;
	return 0;
}

int u64_map_put(struct u64_map *map, uint64_t key, uint32_t value)
{
	struct u64_map_slot *slot;
	int r = is_full(map->slots, map->mask, map->used) ? map_grow(map) : 0;

	if (r < 0)
		return r;
	slot = map_slot(map, key);
	map->used += slot->value == HASH_NONE;
	*slot = (struct u64_map_slot){.key = key, .value = value};
	return 0;
}

void u64_map_fini(struct u64_map *map)
{
	free(map->slots);
	*map = (struct u64_map){0};
}
