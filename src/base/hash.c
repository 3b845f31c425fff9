#include "base/hash.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
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

/* What the two kinds of tables differ in, when they grow. */
struct layout {
	size_t slot_bytes, number_at;       /* the number is a u32 */
	uint32_t (*home)(const void *slot); /* where it belongs; the mask makes it a position */
};

/* Three quarters are used, or there is none yet. */
static bool is_full(const void *slots, uint32_t mask, uint32_t used)
{
	return !slots || used + 1 > (mask + 1) / 4 * 3;
}

static bool is_free(const struct layout *layout, const char *slot)
{
	uint32_t number;

	memcpy(&number, slot + layout->number_at, sizeof(number));
	return number == HASH_NONE;
}

/* Twice the slots. 0 or -ENOMEM. Inlined, so that a layout costs nothing. */
static inline __attribute__((always_inline)) int grow(const struct layout *layout, void **slots,
						      uint32_t *mask)
{
	const char *old = *slots;
	size_t bytes = layout->slot_bytes;
	uint32_t want = old ? (*mask + 1) * 2 : SLOTS_MIN;
	char *grown;

	if (want > SLOTS_MAX || want == 0)
		return -ENOMEM;
	grown = malloc(want * bytes);
	if (!grown)
		return -ENOMEM;
	memset(grown, 0xff, want * bytes);
	for (size_t i = 0; old && i <= *mask; i++) {
		const char *slot = old + i * bytes;
		uint32_t at;

		if (is_free(layout, slot))
			continue;
		at = layout->home(slot) & (want - 1);
		while (!is_free(layout, grown + at * bytes))
			at = (at + 1) & (want - 1);
		memcpy(grown + at * bytes, slot, bytes);
	}
	free(*slots);
	*slots = grown;
	*mask = want - 1;
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

static uint32_t index_home(const void *slot)
{
	return slot_of(((const struct hash_slot *)slot)->tag);
}

static const struct layout index_layout = {sizeof(struct hash_slot), offsetof(struct hash_slot, id),
					   index_home};

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

int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t id)
{
	uint32_t tag = (uint32_t)(hash >> 32), i;

	if (is_full(index->slots, index->mask, index->used)) {
		int r = grow(&index_layout, (void **)&index->slots, &index->mask);

		if (r < 0)
			return r;
	}
	for (i = slot_of(tag) & index->mask; index->slots[i].id != HASH_NONE;)
		i = (i + 1) & index->mask;
	index->slots[i] = (struct hash_slot){.tag = tag, .id = id};
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

static uint32_t map_home(const void *slot)
{
	return (uint32_t)hash_u64(((const struct u64_map_slot *)slot)->key);
}

static const struct layout map_layout = {sizeof(struct u64_map_slot),
					 offsetof(struct u64_map_slot, value), map_home};

int u64_map_put(struct u64_map *map, uint64_t key, uint32_t value)
{
	struct u64_map_slot *slot;

	if (is_full(map->slots, map->mask, map->used)) {
		int r = grow(&map_layout, (void **)&map->slots, &map->mask);

		if (r < 0)
			return r;
	}
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
