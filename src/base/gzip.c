#include <errno.h>
#include <limits.h>
#include <zlib.h>

#include "base/compress.h"
#include "base/util.h"

/* windowBits: 15 plus 32 (detect gzip or zlib) or 16 (gzip). */
#define WINDOW_DETECT (15 + 32)
#define WINDOW_GZIP   (15 + 16)

static int inflate_step(z_stream *z, size_t max, struct str *out)
{
	char buffer[16384];
	int status;

	z->next_out = (Bytef *)buffer;
	z->avail_out = sizeof(buffer);
	status = inflate(z, Z_NO_FLUSH);
	str_append(out, buffer, sizeof(buffer) - z->avail_out);
	if (str_status(out) < 0)
		return -ENOMEM;
	if (out->len > max)
		return -EFBIG;
	if (status == Z_STREAM_END)
		return 1;
	if (status == Z_BUF_ERROR || (status == Z_OK && z->avail_in == 0 && z->avail_out > 0))
		return -ENODATA;
	return status == Z_OK ? 0 : -EBADMSG;
}

int gzip_inflate(const void *data, size_t size, size_t max, struct str *out, struct err *err)
{
	z_stream z = {0};
	size_t left = size;
	int r = 0;

	if (inflateInit2(&z, WINDOW_DETECT) != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)(uintptr_t)data;
	while (r >= 0) {
		if (z.avail_in == 0 && left > 0) {
			z.avail_in = (uInt)MIN(left, (size_t)INT_MAX);
			left -= z.avail_in;
		}
		r = inflate_step(&z, max, out);
		if (r == -ENODATA && left > 0)
			r = 0;
		if (r != 1)
			continue;
		if (z.avail_in == 0 && left == 0)
			break;
		/* Another member must begin here; padding after the last member is allowed. */
		if (z.avail_in < 2 || z.next_in[0] != 0x1f || z.next_in[1] != 0x8b)
			break;
		inflateReset(&z);
	}
	left += z.avail_in;
	inflateEnd(&z);
	if (r == -EFBIG)
		return err_set(err, r, "gzip: larger than %zu bytes when decompressed", max);
	if (r == -ENODATA)
		return err_set(err, r, "gzip: truncated at byte %zu", size);
	if (r == -EBADMSG)
		return err_set(err, r, "gzip: damaged at byte %zu", size - left);
	return MIN(r, 0);
}

int gzip_deflate(const void *data, size_t size, int level, struct str *out, struct err *err)
{
	z_stream z = {0};
	size_t left = size;
	int status = Z_OK;

	if (deflateInit2(&z, level, Z_DEFLATED, WINDOW_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, -ENOMEM, "gzip: cannot start");
	z.next_in = (Bytef *)(uintptr_t)data;
	while (status == Z_OK) {
		char buffer[16384];

		if (z.avail_in == 0) {
			z.avail_in = (uInt)MIN(left, (size_t)INT_MAX);
			left -= z.avail_in;
		}
		z.next_out = (Bytef *)buffer;
		z.avail_out = sizeof(buffer);
		status = deflate(&z, left == 0 ? Z_FINISH : Z_NO_FLUSH);
		str_append(out, buffer, sizeof(buffer) - z.avail_out);
	}
	deflateEnd(&z);
	if (status != Z_STREAM_END)
		return err_set(err, -EIO, "gzip: compression failed");
	return str_status(out);
}

int zlib_inflate_raw_size(const void *data, size_t size, void *out, size_t out_size)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .next_out = out};
	int status;

	if (size > UINT_MAX || out_size > UINT_MAX)
		return -EFBIG;
	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	z.avail_in = (uInt)size;
	z.avail_out = (uInt)out_size;
	status = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return status == Z_STREAM_END && z.avail_out == 0 ? 0 : -EBADMSG;
}
