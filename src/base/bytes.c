#include "base/bytes.h"

static void reader_fail(struct reader *r, size_t at)
{
	if (!r->failed)
		r->fail_pos = at;
	r->failed = true;
}

uint64_t reader_uleb(struct reader *r)
{
	size_t start = r->pos;
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = reader_u8(r);

		if (shift == 63 && byte > 1) {
			reader_fail(r, start);
			return 0;
		}
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return r->failed ? 0 : value;
	}
	reader_fail(r, start);
	return 0;
}

int64_t reader_sleb(struct reader *r)
{
	size_t start = r->pos;
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = reader_u8(r);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift + 7 < 64)
				value |= ~UINT64_C(0) << (shift + 7);
			return r->failed ? 0 : (int64_t)value;
		}
	}
	reader_fail(r, start);
	return 0;
}

const char *reader_cstr(struct reader *r)
{
	bool any = !r->failed && r->pos < r->size;
	const uint8_t *start = any ? r->data + r->pos : NULL;
	const uint8_t *nul = any ? memchr(start, 0, r->size - r->pos) : NULL;

	if (!nul) {
		reader_fail(r, r->pos);
		return NULL;
	}
	r->pos += (size_t)(nul - start) + 1;
	return (const char *)start;
}
