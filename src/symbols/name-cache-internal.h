/*
 * Names found in debug information, kept on disk by build id: a file for each object, which holds
 * the addresses that were asked for so far. Answers of another debug file (by size and time) than
 * the one at hand are dropped.
 *
 * A file is written whole beside its place and renamed, so that readers and other writers never see
 * a part of it; a writer keeps what others have added meanwhile. What is damaged, or of another
 * version, is ignored and written anew. The folder is kept below a size: the files not used for
 * longest go first. Without a place to write to there is no cache and nothing else changes.
 *
 * The file: struct name_cache_header, then addresses (uint64_t, ascending), then for each address
 * the index of its first frame and one index more (uint32_t), then frames, then texts that end in
 * NUL; in the byte order of the machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/symbols.h"

#define NAME_CACHE_MAGIC     UINT64_C(0x31656d614e6c7543) /* "CulName1" */
#define NAME_CACHE_VERSION   1
#define NAME_CACHE_FILE_MAX  (64u << 20)
#define NAME_CACHE_TOTAL_MAX (512u << 20)

struct name_cache_header {
	uint64_t magic;
	uint64_t checksum; /* of everything behind this field */
	uint32_t version, reserved;
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_size;
	uint64_t base; /* the first loaded segment: prelink moves objects */
	uint64_t source_size, source_mtime_ns;
	uint32_t source;                   /* text: path of the file with the debug information */
	uint32_t addresses, frames, texts; /* texts: bytes */
};

struct name_cache_frame {
	uint32_t function, raw_function, file; /* offsets into the texts; 0: unknown */
	uint32_t line;
	uint32_t column_inlined; /* column << 1 | inlined */
};

/* The parts of a file's bytes. */
struct name_table {
	const struct name_cache_header *header;
	const uint64_t *addresses;
	const uint32_t *first;
	const struct name_cache_frame *frames;
	const char *texts;
};

/* False for what is damaged. The bytes, aligned to 8, are borrowed. */
bool name_table_parse(const void *data, size_t size, struct name_table *ret);
/* As name_cache_find(). */
int name_table_find(const struct name_table *table, uint64_t address, struct inline_frame *frames,
		    size_t max);

struct name_cache;

/* Reads what is there. NULL when there is no memory, folder or build id. base: see the header. */
struct name_cache *name_cache_open(const char *dir, const struct build_id *id, uint64_t base);
void name_cache_free(struct name_cache *cache);

/* The frames of an address, 0 when it is known to have none; -ENOENT when it is not known. Texts
 * live as long as the cache. */
int name_cache_find(const struct name_cache *cache, uint64_t address, struct inline_frame *frames,
		    size_t max);
/* Forgets the answers of another file than this one; called before adding. */
void name_cache_source(struct name_cache *cache, const char *path);
/* Keeps an answer until it is saved. Failures only lose it. */
void name_cache_add(struct name_cache *cache, uint64_t address, const struct inline_frame *frames,
		    size_t count);
/* Writes the file when there are new answers. */
void name_cache_save(struct name_cache *cache);

/* Deletes the files of a folder that were not used for longest until it has at most limit bytes. */
void name_cache_prune(const char *dir, uint64_t limit);
