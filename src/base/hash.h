/*
 * Hashing (XXH3, 64 bits) and an index from keys to ids.
 *
 * A hash_index holds no keys: it maps a hash to the u32 ids of entries that its owner keeps in an
 * array, and asks the owner whether an entry equals the key that is looked for. One implementation
 * thus serves string tables, stacks, label sets and address maps. Open addressing, linear probing,
 * 8 bytes a slot, at most 3/4 full. Zero-initialized is empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t len);

/* Mixes one or two words; much cheaper than hash_bytes for fixed small keys. */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	return x;
}

static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return hash_u64(a ^ hash_u64(b + UINT64_C(0x9e3779b97f4a7c15)));
}

#define HASH_NONE UINT32_MAX

struct hash_slot {
	uint32_t tag; /* upper half of the hash */
	uint32_t id;  /* HASH_NONE: free */
};

struct hash_index {
	struct hash_slot *slots;
	uint32_t mask; /* slots - 1; 0: nothing allocated */
	uint32_t used;
};

typedef bool (*hash_equal_fn)(const void *owner, uint32_t id, const void *key);

/* The id of the entry that equals key, or HASH_NONE. */
uint32_t hash_index_find(const struct hash_index *index, uint64_t hash, hash_equal_fn equal,
			 const void *owner, const void *key);
/* Adds an id that is not in the index yet. 0 or -ENOMEM. */
int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t id);
void hash_index_fini(struct hash_index *index);

/* A map from u64 to u32, for keys that are their own identity. */
struct u64_map {
	struct u64_map_slot *slots;
	uint32_t mask, used;
};

/* True and *ret_value when the key is there. */
bool u64_map_get(const struct u64_map *map, uint64_t key, uint32_t *ret_value);
/* Adds or replaces. The value HASH_NONE is reserved. 0 or -ENOMEM. */
int u64_map_put(struct u64_map *map, uint64_t key, uint32_t value);
void u64_map_fini(struct u64_map *map);
