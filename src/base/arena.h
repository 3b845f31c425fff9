/*
 * Bump allocator: many small objects with one lifetime. Memory comes in chunks of at least 64 KiB
 * and is given back all at once. Zero-initialized is empty. NULL means out of memory.
 */
#pragma once

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	char *next, *end;
	size_t used_bytes; /* handed out so far, for accounting */
};

void *arena_alloc(struct arena *arena, size_t bytes); /* aligned to 16, not zeroed */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
void arena_fini(struct arena *arena);
