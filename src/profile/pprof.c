/* The outside of a pprof file: what it is packed in, and whether it is one. */
#include "profile/pprof.h"

#include <errno.h>
#include <string.h>

#include "base/compress.h"
#include "base/protobuf.h"
#include "base/util.h"
#include "profile/pprof-internal.h"

enum packing {
	PACKING_NONE,
	PACKING_GZIP,
	PACKING_ZSTD,
};

static enum packing packing_of(const uint8_t *data, size_t size)
{
	if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b)
		return PACKING_GZIP;
	if (size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0)
		return PACKING_ZSTD;
	return PACKING_NONE;
}

int pprof_read(const void *data, size_t size, size_t max_bytes, struct profile *ret,
	       struct err *err)
{
	enum packing packing = packing_of(data, size);
	struct str plain = {0};
	struct err words = {0};
	int r = 0;

	if (size == 0)
		return err_set(err, -ENODATA, "no data: the file is empty");
	if (packing == PACKING_NONE && size > max_bytes)
		return err_set(err, -EFBIG, "larger than %zu bytes", max_bytes);
	if (packing == PACKING_GZIP)
		r = gzip_inflate(data, size, max_bytes, &plain, &words);
	else if (packing == PACKING_ZSTD)
		r = zstd_decompress(data, size, max_bytes, &plain, &words);
	if (r == 0 && packing != PACKING_NONE) {
		data = plain.data;
		size = plain.len;
		if (size == 0)
			r = err_set(&words, -ENODATA, "no data: it decompresses to nothing");
	}
	if (r == 0)
		r = pprof_decode(data, size, max_bytes, ret, &words);
	str_fini(&plain);
	return r < 0 ? err_set(err, r, "%s", err_text(&words, r)) : 0;
}

bool pprof_detect(const void *data, size_t size)
{
	struct reader r = reader_make(data, size, false);
	bool message_seen = false;
	struct proto_field field;

	if (packing_of(data, size) != PACKING_NONE)
		return true;
	/* Damage after a good beginning is for pprof_decode() to describe. */
	for (int fields = 0; fields < 16; fields++) {
		int code = proto_next(&r, &field, NULL);

		if (code <= 0)
			return message_seen;
		if (field.number > FIELD_DOC_URL)
			return false;
		if (field.number <= FIELD_STRING || field.number == FIELD_PERIOD_TYPE) {
			if (field.type != PROTO_BYTES)
				return false;
			message_seen = true;
		} else if (field.type != PROTO_VARINT && field.number != FIELD_COMMENT) {
			return false;
		}
	}
	return message_seen;
}
