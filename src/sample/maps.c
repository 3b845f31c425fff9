/*
 * A treap whose changes copy the path they touch. Priorities come from a counter, so that runs are
 * repeatable. Split and merge recurse to the depth of the tree, which is logarithmic unless
 * priorities are fought on purpose; MAX_DEPTH then ends the recursion and the mapping is not added.
 */
#include "sample/maps.h"

#include <errno.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/util.h"

#define MAX_DEPTH 512
/* 96 MiB of nodes; a system with 10 000 processes needs a tenth of it. */
#define MAX_NODES (UINT32_C(96) << 20) / sizeof(struct map_node)

static int node_new(struct map_store *store, const struct map *map, uint32_t *ret)
{
	struct map_node node = {.map = *map, .version = store->version};
	int r;

	if (store->nodes.len == 0) {
		r = vec_push(&store->nodes, ((struct map_node){0}));
		if (r < 0)
			return r;
	}
	if (store->nodes.len >= MAX_NODES)
		store->frozen = true;
	if (store->nodes.len >= 4 * MAX_NODES / 3)
		return -ENOSPC;
	node.priority = (uint32_t)(hash_u64(store->nodes.len) >> 32);
	*ret = (uint32_t)store->nodes.len;
	return vec_push(&store->nodes, node);
}

/* The node itself when it may be changed, else a copy. */
static int node_own(struct map_store *store, uint32_t *id)
{
	struct map_node *node = &store->nodes.data[*id];
	uint32_t copy, left = node->left, right = node->right, priority = node->priority;
	struct map map = node->map;
	int r;

	if (node->version == store->version)
		return 0;
	r = node_new(store, &map, &copy);
	if (r < 0)
		return r;
	node = &store->nodes.data[copy];
	node->left = left;
	node->right = right;
	node->priority = priority;
	*id = copy;
	return 0;
}

/* Mappings that start below key go left, the others right. */
static int split(struct map_store *store, uint32_t root, uint64_t key, uint32_t *ret_left,
		 uint32_t *ret_right, unsigned depth)
{
	uint32_t inner;
	int r;

	if (root == 0) {
		*ret_left = *ret_right = 0;
		return 0;
	}
	if (depth > MAX_DEPTH)
		return -ELOOP;
	r = node_own(store, &root);
	if (r < 0)
		return r;
	if (store->nodes.data[root].map.start < key) {
		r = split(store, store->nodes.data[root].right, key, &inner, ret_right, depth + 1);
		if (r < 0)
			return r;
		store->nodes.data[root].right = inner;
		*ret_left = root;
	} else {
		r = split(store, store->nodes.data[root].left, key, ret_left, &inner, depth + 1);
		if (r < 0)
			return r;
		store->nodes.data[root].left = inner;
		*ret_right = root;
	}
	return 0;
}

static int merge(struct map_store *store, uint32_t left, uint32_t right, uint32_t *ret,
		 unsigned depth)
{
	uint32_t inner;
	int r;

	if (left == 0 || right == 0) {
		*ret = left ? left : right;
		return 0;
	}
	if (depth > 2 * MAX_DEPTH)
		return -ELOOP;
	if (store->nodes.data[left].priority > store->nodes.data[right].priority) {
		r = node_own(store, &left);
		if (r == 0)
			r = merge(store, store->nodes.data[left].right, right, &inner, depth + 1);
		if (r < 0)
			return r;
		store->nodes.data[left].right = inner;
		*ret = left;
	} else {
		r = node_own(store, &right);
		if (r == 0)
			r = merge(store, left, store->nodes.data[right].left, &inner, depth + 1);
		if (r < 0)
			return r;
		store->nodes.data[right].left = inner;
		*ret = right;
	}
	return 0;
}

/* The last mapping below root as it ends after limit: cut there, *ret_cut is what was cut off. */
static int trim_last(struct map_store *store, uint32_t *root, uint64_t limit, struct map *ret_cut)
{
	uint32_t *slot = root, id = *root;
	int r;

	*ret_cut = (struct map){0};
	while (id && store->nodes.data[id].right)
		id = store->nodes.data[id].right;
	if (!id || store->nodes.data[id].map.end <= limit)
		return 0;
	/* Own the path: slots must be looked up again after each step, nodes may have moved. */
	r = node_own(store, slot);
	if (r < 0)
		return r;
	id = *root;
	while (store->nodes.data[id].right) {
		uint32_t next = store->nodes.data[id].right;

		r = node_own(store, &next);
		if (r < 0)
			return r;
		store->nodes.data[id].right = next;
		id = next;
	}
	*ret_cut = store->nodes.data[id].map;
	ret_cut->pgoff += limit - ret_cut->start;
	ret_cut->start = limit;
	store->nodes.data[id].map.end = limit;
	return 0;
}

static const struct map *last_of(const struct map_store *store, uint32_t root)
{
	while (root && store->nodes.data[root].right)
		root = store->nodes.data[root].right;
	return root ? &store->nodes.data[root].map : NULL;
}

int map_store_add(struct map_store *store, uint32_t *root, const struct map *map)
{
	uint32_t below, rest, covered, above, id, joined = 0;
	struct map tail;
	const struct map *last;
	int r;

	if (map->end <= map->start)
		return 0;
	r = split(store, *root, map->start, &below, &rest, 0);
	if (r == 0)
		r = trim_last(store, &below, map->start, &tail);
	if (r == 0)
		r = split(store, rest, map->end, &covered, &above, 0);
	if (r < 0)
		return r;
	last = last_of(store, covered);
	if (last && last->end > map->end)
		tail = *last;
	r = node_new(store, map, &id);
	if (r == 0)
		r = merge(store, below, id, &joined, 0);
	if (r == 0 && tail.end > map->end) {
		tail.pgoff += map->end - tail.start;
		tail.start = map->end;
		r = node_new(store, &tail, &id);
		if (r == 0)
			r = merge(store, joined, id, &joined, 0);
	}
	if (r == 0)
		r = merge(store, joined, above, &joined, 0);
	if (r == 0)
		*root = joined;
	return r;
}

void map_store_step(struct map_store *store)
{
	if (!store->frozen)
		store->version++;
}

const struct map *map_store_find(const struct map_store *store, uint32_t root, uint64_t address)
{
	const struct map *best = NULL;

	while (root) {
		const struct map_node *node = &store->nodes.data[root];

		if (address < node->map.start) {
			root = node->left;
		} else {
			best = &node->map;
			root = node->right;
		}
	}
	return best && address < best->end ? best : NULL;
}

void map_store_fini(struct map_store *store)
{
	vec_fini(&store->nodes);
}

static bool is_prefix(const char *text, const char *prefix)
{
	return str_prefix(text, prefix, NULL);
}

/* Memory files are programs (fexecve) as well as the code memory of JITs; the name is all there is.
 */
static bool is_jit_file(const char *path)
{
	return is_prefix(path, "/memfd:") && (str_glob("*jit*", path) || str_glob("*code*", path) ||
					      str_glob("*doublemapper*", path));
}

bool map_is_memory(const char *path)
{
	return *path == '\0' || is_prefix(path, "//anon") || is_prefix(path, "/dev/zero") ||
	       is_prefix(path, "/anon_hugepage") || is_jit_file(path) || is_prefix(path, "[anon") ||
	       is_prefix(path, "anon_inode:") || is_prefix(path, "/dev/ashmem");
}
