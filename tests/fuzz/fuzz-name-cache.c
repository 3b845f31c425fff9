/*
 * The file of names by build id; version, size and checksum are made right, so that what is behind
 * them is reached. What is accepted is also a cache's file, which takes a further answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/util.h"
#include "scratch.h"
#include "symbols/name-cache-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SOURCE "/proc/self/exe"

static char folder[SCRATCH_BYTES], path[SCRATCH_BYTES + 2 * BUILD_ID_MAX + 2];

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static void make_folder(const struct build_id *id)
{
	char hex[2 * BUILD_ID_MAX + 1];

	scratch_make(folder);
	build_id_hex(id, hex);
	snprintf(path, sizeof(path), "%s/%s", folder, hex);
	atexit(remove_folder);
}

static void make_size_right(struct name_cache_header *header, size_t size)
{
	size_t rest = size - sizeof(*header), fixed;

	header->addresses %= rest / (sizeof(uint64_t) + sizeof(uint32_t)) + 1;
	fixed = header->addresses * (sizeof(uint64_t) + sizeof(uint32_t)) + sizeof(uint32_t);
	if (fixed >= rest)
		return;
	header->frames %= (rest - fixed) / sizeof(struct name_cache_frame) + 1;
	fixed += header->frames * sizeof(struct name_cache_frame);
	header->texts = (uint32_t)(rest - fixed);
	if (fixed < rest) {
		header->source %= header->texts;
		((char *)header)[size - 1] = '\0';
	}
}

static void read_all(const struct name_table *table)
{
	struct inline_frame frames[4];
	size_t length = 0;

	for (uint32_t i = 0; i < table->header->addresses && i < 256; i++) {
		int count = name_table_find(table, table->addresses[i], frames, 4);

		for (int f = 0; f < count; f++)
			length += frames[f].function ? strlen(frames[f].function) : 0;
	}
	if (length == SIZE_MAX)
		abort();
}

/* Without an answer of its own a cache does not write. */
static void add_answer(const void *data, size_t size, const struct build_id *id)
{
	const struct inline_frame frame = {.function = "f", .file = "f.c", .line = 1};
	struct inline_frame frames[4];
	struct name_cache *cache;

	if (file_replace(path, data, size, 0600) < 0)
		abort();
	cache = name_cache_open(folder, id, 0);
	if (!cache)
		return;
	name_cache_source(cache, SOURCE);
	name_cache_add(cache, 7, &frame, 1);
	name_cache_save(cache);
	name_cache_free(cache);
	cache = name_cache_open(folder, id, 0);
	if (!cache || name_cache_find(cache, 7, frames, 4) != 1 ||
	    strcmp(frames[0].function, "f") != 0)
		abort();
	name_cache_free(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct build_id id = {.bytes = {1, 2, 3, 4, 5, 6, 7, 8}, .size = 8};
	const size_t from = offsetof(struct name_cache_header, version);
	struct name_cache_header *copy;
	struct name_table table;
	struct stat source;

	if (size < sizeof(*copy) || stat(SOURCE, &source) < 0)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	if (!path[0])
		make_folder(&id);
	memcpy(copy, data, size);
	copy->magic = NAME_CACHE_MAGIC;
	copy->version = NAME_CACHE_VERSION;
	make_size_right(copy, size);
	memcpy(copy->build_id, id.bytes, sizeof(copy->build_id));
	copy->build_id_size = id.size;
	copy->base = 0;
	copy->source_size = (uint64_t)source.st_size;
	copy->source_mtime_ns = (uint64_t)source.st_mtim.tv_sec * UINT64_C(1000000000) +
				(uint64_t)source.st_mtim.tv_nsec;
	copy->checksum = hash_bytes((char *)copy + from, size - from);
	if (name_table_parse(copy, size, &table)) {
		read_all(&table);
		add_answer(copy, size, &id);
	}
	free(copy);
	return 0;
}
