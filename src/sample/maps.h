/*
 * What was mapped where, at any time. One map_store holds the mappings of all address spaces as
 * persistent search trees: an address space is a root, a change makes a new root and shares what
 * did not change, so that a fork costs nothing and a lookup in the past is a lookup in an old root.
 *
 * Root 0 is the empty address space. Mappings of one root never overlap: a later one cuts what it
 * covers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct map {
	uint64_t start, end, pgoff; /* end is exclusive */
	uint32_t dso;
};

struct map_node {
	struct map map;
	uint32_t left, right, priority;
	uint32_t version; /* nodes of the version that is being changed are changed in place */
};

struct map_store {
	VEC(struct map_node) nodes; /* index 0: none */
	uint32_t version;
	bool frozen; /* too many nodes: history is no longer kept, newest mappings win */
};

/*
 * *root with the mapping added, as the version that began with the last map_store_step(). Mappings
 * of size 0 are ignored. 0 or -ENOMEM.
 */
int map_store_add(struct map_store *store, uint32_t *root, const struct map *map);
/* From here on roots that exist stay as they are. */
void map_store_step(struct map_store *store);
/* The mapping that covers the address, or NULL. */
const struct map *map_store_find(const struct map_store *store, uint32_t root, uint64_t address);
void map_store_fini(struct map_store *store);
/* By its mapping's name: memory without a file behind it, such as a JIT writes its code to. */
bool map_is_memory(const char *path);
