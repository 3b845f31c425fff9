/*
 * Reading untrusted bytes field by field.
 *
 * A reader walks [data, data + size). A read past the end returns 0, sets failed (sticky) and
 * remembers the offset in fail_pos, so that a decoder reads a whole record and checks once. Numbers
 * are in the byte order given by swap (false: that of this machine).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *data;
	size_t size, pos, fail_pos;
	bool swap, failed;
};

static inline struct reader reader_make(const void *data, size_t size, bool swap)
{
	/* Never NULL, so that an empty reader's arithmetic is defined. */
	return (struct reader){.data = data ? data : (const void *)"", .size = size, .swap = swap};
}

static inline size_t reader_left(const struct reader *r)
{
	return r->size - r->pos;
}

/* The next len bytes, or NULL (and failed) when there are fewer. */
static inline const uint8_t *reader_take(struct reader *r, size_t len)
{
	const uint8_t *at;

	if (r->failed || len > r->size - r->pos) {
		if (!r->failed)
			r->fail_pos = r->pos;
		r->failed = true;
		return NULL;
	}
	if (!r->data)
		return NULL; /* nothing of nothing */
	at = r->data + r->pos;
	r->pos += len;
	return at;
}

static inline void reader_skip(struct reader *r, size_t len)
{
	(void)reader_take(r, len);
}

/* Moves to an absolute offset; past the end is a failure. */
static inline void reader_seek(struct reader *r, size_t pos)
{
	if (pos > r->size) {
		if (!r->failed)
			r->fail_pos = r->pos;
		r->failed = true;
		return;
	}
	r->pos = pos;
}

static inline uint8_t reader_u8(struct reader *r)
{
	const uint8_t *p = reader_take(r, 1);

	return p ? *p : 0;
}

static inline uint16_t reader_u16(struct reader *r)
{
	const uint8_t *p = reader_take(r, 2);
	uint16_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return r->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t reader_u32(struct reader *r)
{
	const uint8_t *p = reader_take(r, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return r->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t reader_u64(struct reader *r)
{
	const uint8_t *p = reader_take(r, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return r->swap ? __builtin_bswap64(v) : v;
}

/* LEB128 as in DWARF and protobuf; more than 64 bits is a failure. */
uint64_t reader_uleb(struct reader *r);
int64_t reader_sleb(struct reader *r);
/* A NUL-terminated string inside the bytes, or NULL (and failed) when the NUL is missing. */
const char *reader_cstr(struct reader *r);
