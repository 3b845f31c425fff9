#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/compress.h"
#include "base/util.h"

struct zstd_stream {
	ZSTD_DStream *z;
	void *buffer;
	size_t buffer_bytes;
};

struct zstd_writer {
	ZSTD_CStream *z;
	void *buffer;
	size_t buffer_bytes;
};

int zstd_stream_new(struct zstd_stream **ret)
{
	struct zstd_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return -ENOMEM;
	stream->buffer_bytes = ZSTD_DStreamOutSize();
	stream->buffer = malloc(stream->buffer_bytes);
	stream->z = ZSTD_createDStream();
	if (!stream->buffer || !stream->z) {
		zstd_stream_free(stream);
		return -ENOMEM;
	}
	*ret = stream;
	return 0;
}

void zstd_stream_free(struct zstd_stream *stream)
{
	if (!stream)
		return;
	ZSTD_freeDStream(stream->z);
	free(stream->buffer);
	free(stream);
}

int zstd_stream_decompress(struct zstd_stream *stream, const void *data, size_t size, size_t max,
			   struct str *out)
{
	ZSTD_inBuffer in = {.src = data, .size = size};
	size_t start = out->len;
	bool more = true;

	while (more) {
		ZSTD_outBuffer piece = {.dst = stream->buffer, .size = stream->buffer_bytes};
		size_t status = ZSTD_decompressStream(stream->z, &piece, &in);

		if (ZSTD_isError(status))
			return -EBADMSG;
		str_append(out, piece.dst, piece.pos);
		if (str_status(out) < 0)
			return -ENOMEM;
		if (out->len - start > max)
			return -EFBIG;
		more = in.pos < in.size || piece.pos == piece.size;
	}
	return 0;
}

int zstd_decompress(const void *data, size_t size, size_t max, struct str *out, struct err *err)
{
	struct zstd_stream *stream;
	int r;

	r = zstd_stream_new(&stream);
	if (r < 0)
		return r;
	r = zstd_stream_decompress(stream, data, size, max, out);
	zstd_stream_free(stream);
	if (r == -EFBIG)
		return err_set(err, r, "zstd: larger than %zu bytes when decompressed", max);
	if (r < 0)
		return err_set(err, r, "zstd: damaged");
	return 0;
}

int zstd_compress(const void *data, size_t size, int level, struct str *out, struct err *err)
{
	size_t bound = ZSTD_compressBound(size), done;
	CLEANUP_FREE void *buffer = malloc(bound);

	if (!buffer)
		return -ENOMEM;
	done = ZSTD_compress(buffer, bound, data, size, level);
	if (ZSTD_isError(done))
		return err_set(err, -EIO, "zstd: %s", ZSTD_getErrorName(done));
	str_append(out, buffer, done);
	return str_status(out);
}

int zstd_writer_new(int level, struct zstd_writer **ret)
{
	struct zstd_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	writer->buffer_bytes = ZSTD_CStreamOutSize();
	writer->buffer = malloc(writer->buffer_bytes);
	writer->z = ZSTD_createCStream();
	if (!writer->buffer || !writer->z || ZSTD_isError(ZSTD_initCStream(writer->z, level))) {
		zstd_writer_free(writer);
		return -ENOMEM;
	}
	*ret = writer;
	return 0;
}

void zstd_writer_free(struct zstd_writer *writer)
{
	if (!writer)
		return;
	ZSTD_freeCStream(writer->z);
	free(writer->buffer);
	free(writer);
}

int zstd_writer_compress(struct zstd_writer *writer, const void *data, size_t size, struct str *out)
{
	ZSTD_inBuffer in = {.src = data, .size = size};
	size_t left;

	do {
		ZSTD_outBuffer piece = {.dst = writer->buffer, .size = writer->buffer_bytes};

		left = ZSTD_compressStream2(writer->z, &piece, &in, ZSTD_e_flush);
		if (ZSTD_isError(left))
			return -EIO;
		str_append(out, piece.dst, piece.pos);
	} while (left > 0 || in.pos < in.size);
	return str_status(out);
}
