/*
 * gzip (zlib), zstd and xz (liblzma) on whole buffers, bounded. Each library is used in one file
 * only; liblzma is loaded when first needed. -EFBIG when the result would be larger than max,
 * -EBADMSG for damaged input, -ENOTSUP when the library cannot be had.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Multi-member gzip and zlib streams; appends to out. Damaged input keeps what was decoded before
 * it. */
int gzip_inflate(const void *data, size_t size, size_t max, struct str *out, struct err *err);
/* The same from one descriptor (from its offset 0 on) to another, in constant memory. */
int gzip_inflate_fd(int from, int to, uint64_t max, struct err *err);
int gzip_deflate(const void *data, size_t size, int level, struct str *out, struct err *err);
int zlib_inflate_raw_size(const void *data, size_t size, void *out,
			  size_t out_size); /* exact size known (ELF) */

int zstd_decompress(const void *data, size_t size, size_t max, struct str *out, struct err *err);
int zstd_compress(const void *data, size_t size, int level, struct str *out, struct err *err);

int xz_decompress(const void *data, size_t size, size_t max, struct str *out, struct err *err);

/*
 * A zstd stream that is fed piece by piece (perf.data COMPRESSED records: one frame may span
 * records).
 */
struct zstd_stream;

int zstd_stream_new(struct zstd_stream **ret);
void zstd_stream_free(struct zstd_stream *stream);
/* Appends what can be decoded of data to out (at most max bytes this call). */
int zstd_stream_decompress(struct zstd_stream *stream, const void *data, size_t size, size_t max,
			   struct str *out);

/* The other way: appends compressed bytes, flushed so that a reader can decode all of data from
 * them. */
struct zstd_writer;

int zstd_writer_new(int level, struct zstd_writer **ret);
void zstd_writer_free(struct zstd_writer *writer);
int zstd_writer_compress(struct zstd_writer *writer, const void *data, size_t size,
			 struct str *out);
