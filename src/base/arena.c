#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define CHUNK_BYTES (64 * 1024)
#define ARENA_ALIGN 16

struct arena_chunk {
	struct arena_chunk *prev;
	char data[] __attribute__((aligned(ARENA_ALIGN)));
};

static void *arena_take(struct arena *arena, size_t bytes, size_t align)
{
	size_t pad = (size_t)(-(uintptr_t)arena->next & (align - 1));
	struct arena_chunk *chunk;
	size_t room;

	if (bytes > SIZE_MAX / 4)
		return NULL;
	if (!arena->next || (size_t)(arena->end - arena->next) < pad + bytes) {
		room = MAX(bytes, (size_t)CHUNK_BYTES - sizeof(*chunk));
		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->prev = arena->chunks;
		arena->chunks = chunk;
		arena->next = chunk->data;
		arena->end = chunk->data + room;
		pad = 0;
	}
	arena->next += pad + bytes;
	arena->used_bytes += bytes;
	return arena->next - bytes;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	return arena_take(arena, bytes, ARENA_ALIGN);
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_take(arena, len + 1, 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void arena_fini(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *prev = chunk->prev;

		free(chunk);
		chunk = prev;
	}
	*arena = (struct arena){0};
}
