/*
 * Records one after another: of a mapped file where they lie, else through one buffer. Unpacks
 * COMPRESSED records in between and steps over the payloads of AUXTRACE and TRACING_DATA. Memory
 * does not grow with the file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compress.h"
#include "sample/input.h"
#include "sample/perfdata.h"

/* A simpleperf record may be larger; it is delivered with its first bytes. */
#define WALK_WINDOW_BYTES (256u << 10)

struct record {
	struct record_header header;
	const uint8_t *body; /* behind the header; valid until the next step */
	size_t body_size;    /* less than header.size - 8 only for records larger than the window */
	uint64_t offset;     /* in the file; of the packed record for those that were inside one */
	uint64_t sequence;   /* counts all records of the file */
};

struct walk {
	int fd;
	bool swap;
	bool open_end; /* the end is where the file happens to end: nothing promised the bytes */
	uint64_t offset, end, sequence;

	const struct steady_map *map; /* NULL or without data: the file is read */
	uint8_t *buffer;
	const uint8_t *window; /* the buffer, or the whole mapping */
	uint64_t window_offset;
	size_t window_size;

	struct zstd_stream *zstd;
	struct str unpacked;
	size_t unpacked_pos;
	uint64_t packed_offset;
	bool packed; /* a packed record was seen */

	uint64_t missing_bytes; /* of a record that the end cuts */
	char problem[160];      /* why the walk ended early, or "" */
};

int walk_init(struct walk *walk, int fd, uint64_t offset, uint64_t end, bool swap);
void walk_fini(struct walk *walk);
/* Another range, with the buffers kept. */
void walk_range(struct walk *walk, const struct input_file *file, uint64_t offset, uint64_t end,
		uint64_t sequence);
/* 1: a record, 0: the end or damage (problem), negative errno: reading failed or no memory. */
int walk_next(struct walk *walk, struct record *ret);
/* True when the last record's bytes stay where they are as long as the file is open. */
static inline bool walk_stays(const struct walk *walk)
{
	return walk->map && walk->map->data && !walk->packed;
}
/*
 * Steps over samples as long as nothing but samples follows, up to the first record that begins at
 * limit or behind it; how many. Does so only where that is fast: 0 means nothing. *latest grows to
 * the times that are time_at bytes behind their beginnings; 0: nowhere.
 */
uint64_t walk_skip_samples(struct walk *walk, uint64_t limit, unsigned time_at, uint64_t *latest);
