#include "sample/walk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/input.h"

/* One packed record holds at most 64 KiB; what it may unpack to. perf packs at most a ring at a
 * time. */
#define UNPACKED_STEP_MAX (32u << 20)

/* The processor is told of what will be read this far from now: its own guesses end with a page. */
#define AHEAD_BYTES 2048

int walk_init(struct walk *walk, int fd, uint64_t offset, uint64_t end, bool swap)
{
	*walk = (struct walk){.fd = fd, .swap = swap, .offset = offset, .end = end};
	walk->buffer = malloc(WALK_WINDOW_BYTES);
	walk->window = walk->buffer;
	return walk->buffer ? 0 : -ENOMEM;
}

void walk_fini(struct walk *walk)
{
	free(walk->buffer);
	zstd_stream_free(walk->zstd);
	str_fini(&walk->unpacked);
	walk->buffer = NULL;
	walk->window = NULL;
	walk->zstd = NULL;
}

void walk_range(struct walk *walk, const struct input_file *file, uint64_t offset, uint64_t end,
		uint64_t sequence)
{
	if (file->map.data) {
		walk->window = file->map.data;
		walk->window_offset = 0;
		walk->window_size = file->map.size;
	} else if (walk->fd != file->fd) {
		walk->window = walk->buffer;
		walk->window_size = 0;
	}
	walk->map = &file->map;
	walk->fd = file->fd;
	walk->offset = offset;
	walk->end = end;
	walk->sequence = sequence;
	str_clear(&walk->unpacked);
	walk->unpacked_pos = 0;
	zstd_stream_free(walk->zstd);
	walk->zstd = NULL;
	walk->packed = false;
	walk->missing_bytes = 0;
	walk->problem[0] = '\0';
}

/* The walk ends here, and why. Returns 0, for "return stop(...)". */
static int PRINTF(2, 3) stop(struct walk *walk, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(walk->problem, sizeof(walk->problem), fmt, args);
	va_end(args);
	return 0;
}

/* Makes need bytes at walk->offset available in the window; the bytes there, fewer at the file's
 * end. */
static ssize_t fill(struct walk *walk, size_t need)
{
	ssize_t n;

	if (walk->offset >= walk->window_offset &&
	    walk->offset - walk->window_offset + need <= walk->window_size)
		return (ssize_t)need;
	if (walk->map && walk->map->data)
		return walk->offset < walk->window_size
			       ? (ssize_t)MIN(walk->window_size - walk->offset, need)
			       : 0;
	/* A record always starts the window, so that its u64s are as aligned as they were written.
	 */
	n = input_read_at(walk->fd, walk->buffer, WALK_WINDOW_BYTES, walk->offset);
	if (n < 0)
		return n;
	walk->window_offset = walk->offset;
	walk->window_size = (size_t)n;
	return MIN(n, (ssize_t)need);
}

static int next_unpacked(struct walk *walk, struct record *ret)
{
	size_t left = walk->unpacked.len - walk->unpacked_pos;
	const uint8_t *at;
	struct record_header header;

	if (left < 8)
		return 0;
	at = (const uint8_t *)walk->unpacked.data + walk->unpacked_pos;
	header = perfdata_record_header(at, walk->swap);
	if (header.size == 0) {
		walk->unpacked_pos = walk->unpacked.len;
		stop(walk, "a record of size 0 inside the compressed record at byte %llu",
		     (unsigned long long)walk->packed_offset);
		return -EBADMSG;
	}
	if (header.size > left)
		return 0;
	*ret = (struct record){.header = header,
			       .body = at + 8,
			       .body_size = (size_t)header.size - 8,
			       .offset = walk->packed_offset,
			       .sequence = walk->sequence++};
	walk->unpacked_pos += (size_t)header.size;
	return 1;
}

/* Keeps the record that is not complete yet, appends what the packed record holds. */
static int unpack(struct walk *walk, const struct record *record)
{
	const uint8_t *data = record->body;
	size_t size = record->body_size;
	int r;

	if (walk->unpacked_pos > 0) {
		size_t left = walk->unpacked.len - walk->unpacked_pos;

		memmove(walk->unpacked.data, walk->unpacked.data + walk->unpacked_pos, left);
		walk->unpacked.len = left;
		walk->unpacked_pos = 0;
	}
	if (record->header.type == REC_COMPRESSED2) {
		struct reader r2 = reader_make(data, size, walk->swap);
		uint64_t exact = reader_u64(&r2);

		data += MIN(size, 8u);
		size = (size_t)MIN(exact, size - MIN(size, 8u));
	}
	walk->packed = true;
	walk->packed_offset = record->offset;
	if (!walk->zstd) {
		r = zstd_stream_new(&walk->zstd);
		if (r < 0)
			return r;
	}
	r = zstd_stream_decompress(walk->zstd, data, size, UNPACKED_STEP_MAX, &walk->unpacked);
	if (r == -EBADMSG || r == -EFBIG) {
		stop(walk, "the compressed record at byte %llu %s",
		     (unsigned long long)record->offset,
		     r == -EFBIG ? "unpacks to more than 32 MiB" : "is damaged");
		return -EBADMSG;
	}
	return r;
}

/* Bytes behind the record that belong to it but are not in its size. */
static uint64_t payload_bytes(const struct record *record, bool swap)
{
	struct reader r = reader_make(record->body, record->body_size, swap);

	if (record->header.type == REC_AUXTRACE)
		return reader_u64(&r);
	/* simpleperf counts the payload into the record, perf does not. */
	if (record->header.type == REC_TRACING_DATA && record->header.size <= 16)
		return ALIGN_UP((uint64_t)reader_u32(&r), 8);
	return 0;
}

static int next_plain(struct walk *walk, struct record *ret)
{
	uint64_t left = walk->end > walk->offset ? walk->end - walk->offset : 0, payload;
	struct record_header header;
	ssize_t n;

	if (left == 0)
		return 0;
	n = left < 8 ? (ssize_t)left : fill(walk, 8);
	if (n < 0)
		return (int)n;
	if (n < 8) {
		walk->missing_bytes = 8 - (uint64_t)n;
		return stop(walk, "cut at byte %llu, inside a record's header",
			    (unsigned long long)(walk->offset + (uint64_t)n));
	}
	header = perfdata_record_header(walk->window + (walk->offset - walk->window_offset),
					walk->swap);
	if (header.size == 0)
		return stop(walk, "a record of size 0 at byte %llu",
			    (unsigned long long)walk->offset);
	if (walk->open_end && !record_header_plausible(&header))
		return stop(walk, "no record at byte %llu", (unsigned long long)walk->offset);
	n = header.size > left ? 0 : fill(walk, MIN((size_t)header.size, WALK_WINDOW_BYTES));
	if (n < 0)
		return (int)n;
	if (n == 0 || (size_t)n < MIN(header.size, WALK_WINDOW_BYTES)) {
		walk->missing_bytes = header.size > left ? header.size - left : header.size;
		return stop(walk, "cut inside the record at byte %llu",
			    (unsigned long long)walk->offset);
	}
	*ret = (struct record){.header = header,
			       .body = walk->window + (walk->offset - walk->window_offset) + 8,
			       .body_size = (size_t)n - 8,
			       .offset = walk->offset,
			       .sequence = walk->sequence++};
	walk->offset += header.size;
	payload = payload_bytes(ret, walk->swap);
	if (payload > walk->end - walk->offset) {
		walk->missing_bytes = payload - (walk->end - walk->offset);
		stop(walk, "cut inside the data of the record at byte %llu",
		     (unsigned long long)ret->offset);
		payload = walk->end - walk->offset;
	}
	walk->offset += payload;
	return 1;
}

uint64_t walk_skip_samples(struct walk *walk, uint64_t limit, unsigned time_at, uint64_t *latest)
{
	uint64_t end, at = walk->offset, count = 0, time, last = *latest;

	if (!walk->map || !walk->map->data || walk->swap || walk->packed)
		return 0;
	end = MIN(walk->end, (uint64_t)walk->window_size);
	limit = MIN(limit, end);
	while (at < limit && end - at >= 8) {
		const uint8_t *data = walk->window + at;
		struct record_header header = perfdata_record_header(data, false);

		__builtin_prefetch(data + 2 * AHEAD_BYTES);

		if (header.type != REC_SAMPLE || header.size == 0 || header.size > end - at)
			break;
		if (time_at && time_at + sizeof(time) <= header.size) {
			memcpy(&time, data + time_at, sizeof(time));
			last = MAX(last, time);
		}
		at += header.size;
		count++;
	}
	walk->offset = at;
	walk->sequence += count;
	*latest = last; /* once: others read what is near it */
	return count;
}

/* What almost every step is: a sample that lies whole in the mapping. */
static bool next_sample(struct walk *walk, struct record *ret)
{
	uint64_t end = MIN(walk->end, (uint64_t)walk->window_size);
	const uint8_t *data = walk->window + walk->offset;
	struct record_header header;

	if (!walk_stays(walk) || walk->offset + 8 > end)
		return false;
	__builtin_prefetch(data + AHEAD_BYTES);
	__builtin_prefetch(data + AHEAD_BYTES + 64);
	header = perfdata_record_header(data, walk->swap);
	if (header.type != REC_SAMPLE || header.size == 0 || header.size > end - walk->offset)
		return false;
	*ret = (struct record){.header = header,
			       .body = data + 8,
			       .body_size = (size_t)header.size - 8,
			       .offset = walk->offset,
			       .sequence = walk->sequence++};
	walk->offset += header.size;
	return true;
}

int walk_next(struct walk *walk, struct record *ret)
{
	if (next_sample(walk, ret))
		return 1;
	for (;;) {
		int r = next_unpacked(walk, ret);

		if (r == 1)
			return 1;
		if (r == 0)
			r = next_plain(walk, ret);
		if (r == 1 &&
		    (ret->header.type == REC_COMPRESSED || ret->header.type == REC_COMPRESSED2))
			r = unpack(walk, ret);
		else if (r >= 0)
			return r;
		if (r < 0) /* damage ends the walk, other errors are the caller's */
			return r == -EBADMSG ? 0 : r;
	}
}
