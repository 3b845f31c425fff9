/*
 * The objects behind the mappings. An object is looked for through the process that mapped it (it
 * may live in another mount namespace, be deleted or replaced) when the first stack needs it, and
 * is kept open afterwards as a table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "sample/live-internal.h"

struct object_key {
	const char *path;
	const uint8_t *identity;
};

static bool object_equal(const void *owner, uint32_t id, const void *key)
{
	const struct live_objects *objects = owner;
	const struct live_object *object = &objects->all.data[id];
	const struct object_key *want = key;

	return memcmp(object->identity, want->identity, sizeof(object->identity)) == 0 &&
	       strcmp(object->path, want->path) == 0;
}

int live_objects_init(struct live_objects *objects, const struct symbols_options *options)
{
	return symbols_new(options, &objects->symbols);
}

void live_objects_fini(struct live_objects *objects)
{
	vec_for_each(&objects->all, object) {
		unwind_table_free(object->table);
		free(object->path);
		free(object->why);
	}
	vec_fini(&objects->all);
	hash_index_fini(&objects->index);
	symbols_free(objects->symbols);
}

static enum module_kind kind_of(const char *path)
{
	if (str_prefix(path, "[vdso", NULL))
		return MODULE_VDSO;
	return map_is_memory(path) || path[0] == '[' ? MODULE_PERF_MAP : MODULE_ELF;
}

static int add_object(struct live_objects *objects, const struct perfdata_mmap *map,
		      const uint8_t identity[24], uint64_t hash, uint32_t *ret)
{
	struct live_object object = {
		.kind = kind_of(map->path), .build_id = map->build_id, .pid = map->pid};

	memcpy(object.identity, identity, sizeof(object.identity));
	object.path = strdup(map->path);
	if (!object.path || vec_push(&objects->all, object) < 0) {
		free(object.path);
		return -ENOMEM;
	}
	*ret = (uint32_t)objects->all.len - 1;
	return hash_index_add(&objects->index, hash, *ret);
}

int live_object_of(struct live_objects *objects, const struct perfdata_mmap *map,
		   const uint8_t identity[24], uint32_t *ret)
{
	struct object_key key = {map->path, identity};
	uint64_t hash =
		hash_pair(hash_bytes(map->path, strlen(map->path)), hash_bytes(identity, 24));
	struct live_object *object;

	*ret = hash_index_find(&objects->index, hash, object_equal, objects, &key);
	if (*ret == HASH_NONE)
		return add_object(objects, map, identity, hash, ret);
	object = &objects->all.data[*ret];
	if (!object->table) { /* this process may show what another one did not */
		object->pid = map->pid;
		object->tried &= !object->missing;
	}
	return 0;
}

const struct unwind_table *live_object_table(struct live_objects *objects, uint32_t id)
{
	struct live_object *object = &objects->all.data[id];
	struct module_ref ref = {.kind = object->kind,
				 .path = object->path,
				 .build_id = object->build_id,
				 .pid = object->pid};
	struct err err = {0};
	int r;

	if (object->tried || object->kind == MODULE_PERF_MAP)
		return object->table;
	object->tried = true;
	r = unwind_table_open(objects->symbols, &ref, &object->table, &err);
	object->missing = r < 0 && r != -ENODATA && r != -ENOTSUP;
	free(object->why);
	object->why = r < 0 ? strdup(err_text(&err, r)) : NULL;
	return object->table;
}
