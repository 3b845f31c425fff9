#include <errno.h>
#include <limits.h>
#include <zlib.h>

#include "base/compress.h"
#include "base/file.h"
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

static int inflate_file(z_stream *z, int from, int to, uint64_t max, uint8_t *in, uint8_t *out,
			size_t size, uint64_t *ret_end)
{
	uint64_t offset = 0, written = 0;
	int status = Z_OK, r;

	for (;;) {
		if (z->avail_in == 0) {
			ssize_t n = pread(from, in, size, (off_t)offset);

			if (n < 0)
				return -errno;
			if (n == 0)
				return status == Z_STREAM_END ? 0 : -ENODATA;
			offset += (uint64_t)n;
			z->next_in = in;
			z->avail_in = (uInt)n;
		}
		if (status == Z_STREAM_END) { /* another member, or padding */
			if (z->next_in[0] != 0x1f)
				return 0;
			inflateReset(z);
		}
		z->next_out = out;
		z->avail_out = (uInt)size;
		status = inflate(z, Z_NO_FLUSH);
		written += size - z->avail_out;
		*ret_end = offset - z->avail_in;
		if (written > max)
			return -EFBIG;
		r = fd_write_all(to, out, size - z->avail_out);
		if (r < 0)
			return r;
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return -EBADMSG;
	}
}

int gzip_inflate_fd(int from, int to, uint64_t max, struct err *err)
{
	const size_t size = 1 << 16;
	CLEANUP_FREE uint8_t *buffers = malloc(2 * size);
	z_stream z = {0};
	uint64_t end = 0;
	int r;

	if (!buffers || inflateInit2(&z, WINDOW_DETECT) != Z_OK)
		return -ENOMEM;
	r = inflate_file(&z, from, to, max, buffers, buffers + size, size, &end);
	inflateEnd(&z);
	if (r == -ENODATA)
		return err_set(err, -EBADMSG, "gzip: cut at byte %llu", (unsigned long long)end);
	if (r == -EBADMSG)
		return err_set(err, r, "gzip: damaged at byte %llu", (unsigned long long)end);
	if (r == -EFBIG)
		return err_set(err, r, "gzip: larger than %llu bytes when unpacked",
			       (unsigned long long)max);
	return r < 0 ? err_wrap(err, r, "gzip") : 0;
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
