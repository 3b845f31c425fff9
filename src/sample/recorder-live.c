/*
 * The rings of all CPUs as one stream in the order of time, as unwinding needs it: a process that
 * maps an object on one CPU may be sampled in it on another.
 *
 * What is older than the beginning of a pass (by a margin for records that are being written at
 * that moment) is complete in the rings; younger records stay there for the next pass.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "sample/recorder-internal.h"

#define MARGIN_NS  NSEC_PER_MSEC
#define FLUSH_SIZE (256u << 10)

struct cursor {
	struct ring *ring;
	struct iovec pieces[2];
	size_t at, size; /* in the unread bytes */
	const struct perf_event_header *record;
	uint64_t time;
	void *whole; /* a record that goes over the ring's end, put together */
};

struct live_merge {
	struct cursor *cursors;
	uint32_t *heap; /* cursors that have a record, the oldest first */
	uint32_t count, heap_len;
};

static const void *bytes_at(struct cursor *cursor, size_t at, size_t size)
{
	const struct iovec *pieces = cursor->pieces;
	size_t first;

	if (at >= pieces[0].iov_len)
		return (const char *)pieces[1].iov_base + (at - pieces[0].iov_len);
	first = pieces[0].iov_len - at;
	if (first >= size)
		return (const char *)pieces[0].iov_base + at;
	memcpy(cursor->whole, (const char *)pieces[0].iov_base + at, first);
	memcpy((char *)cursor->whole + first, pieces[1].iov_base, size - first);
	return cursor->whole;
}

/* False at the end of what can be read. */
static bool next_record(const struct live *live, struct cursor *cursor)
{
	const struct perf_event_header *header;

	if (cursor->size - cursor->at < sizeof(*header))
		return false;
	/* Records and rings are multiples of 8 bytes: a header is never divided. */
	header = bytes_at(cursor, cursor->at, sizeof(*header));
	if (header->size < sizeof(*header) || header->size > cursor->size - cursor->at)
		return false;
	cursor->record = bytes_at(cursor, cursor->at, header->size);
	cursor->time = live_record_time(live, cursor->record);
	return true;
}

static bool older(const struct live_merge *merge, uint32_t a, uint32_t b)
{
	return merge->cursors[merge->heap[a]].time < merge->cursors[merge->heap[b]].time;
}

static void sift_down(struct live_merge *merge, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1, kept;

		if (child + 1 < merge->heap_len && older(merge, child + 1, child))
			child++;
		if (child >= merge->heap_len || !older(merge, child, i))
			return;
		kept = merge->heap[i];
		merge->heap[i] = merge->heap[child];
		merge->heap[child] = kept;
		i = child;
	}
}

int recorder_live_open(struct recorder *recorder)
{
	struct live_merge *merge;
	bool keep = recorder->options.callgraph == CALLGRAPH_DWARF_RAW;
	int r = live_new(&recorder->attrs.data[0], NULL, keep, &recorder->live);

	if (r < 0)
		return r;
	merge = calloc(1, sizeof(*merge));
	if (!merge)
		return -ENOMEM;
	recorder->merge = merge;
	merge->cursors = calloc(recorder->rings.len, sizeof(*merge->cursors));
	merge->heap = calloc(recorder->rings.len, sizeof(*merge->heap));
	if (!merge->cursors || !merge->heap)
		return -ENOMEM;
	merge->count = (uint32_t)recorder->rings.len;
	for (uint32_t i = 0; i < merge->count; i++) {
		merge->cursors[i].ring = &recorder->rings.data[i];
		merge->cursors[i].whole = malloc(UINT16_MAX + 1);
		if (!merge->cursors[i].whole)
			return -ENOMEM;
	}
	return 0;
}

void recorder_live_close(struct recorder *recorder)
{
	struct live_merge *merge = recorder->merge;

	live_free(recorder->live);
	str_fini(&recorder->unwound);
	if (!merge)
		return;
	for (uint32_t i = 0; i < merge->count; i++)
		free(merge->cursors[i].whole);
	free(merge->cursors);
	free(merge->heap);
	free(merge);
}

static int flush(struct recorder *recorder)
{
	struct iovec piece = {recorder->unwound.data, recorder->unwound.len};
	int r;

	if (piece.iov_len == 0)
		return 0;
	r = writer_records(recorder->writer, &piece, 1);
	if (r == 0)
		r = tally_bytes(&recorder->tally, piece.iov_base, piece.iov_len);
	str_clear(&recorder->unwound);
	return r;
}

int recorder_live_put(struct recorder *recorder, const void *record)
{
	int r = live_record(recorder->live, record, &recorder->unwound);

	return r == 0 && recorder->unwound.len >= FLUSH_SIZE ? flush(recorder) : r;
}

int recorder_live_drain(struct recorder *recorder, bool all)
{
	struct live_merge *merge = recorder->merge;
	bool ordered = recorder->attrs.data[0].use_clockid;
	uint64_t until = all || !ordered ? UINT64_MAX : clock_monotonic_ns() - MARGIN_NS;
	int r = 0;

	merge->heap_len = 0;
	for (uint32_t i = 0; i < merge->count; i++) {
		struct cursor *cursor = &merge->cursors[i];

		cursor->at = 0;
		cursor->size = ring_peek(cursor->ring, cursor->pieces);
		if (next_record(recorder->live, cursor))
			merge->heap[merge->heap_len++] = i;
	}
	for (uint32_t i = merge->heap_len; i-- > 0;)
		sift_down(merge, i);
	while (r == 0 && merge->heap_len > 0) {
		struct cursor *cursor = &merge->cursors[merge->heap[0]];
		size_t size = cursor->record->size;

		if (cursor->time >= until)
			break;
		r = recorder_live_put(recorder, cursor->record);
		cursor->at += size;
		ring_consume(cursor->ring, size);
		if (!next_record(recorder->live, cursor))
			merge->heap[0] = merge->heap[--merge->heap_len];
		sift_down(merge, 0);
	}
	return r == 0 ? flush(recorder) : r;
}
