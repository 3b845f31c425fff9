/*
 * pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), both ways.
 *
 * Reading accepts a raw message, gzip of any number of members and zstd, told apart by their first
 * bytes. Ids may have any order and size. Refused, with the byte (of the message, decompressed)
 * where it is: damaged or truncated encoding, ids of 0 or used twice, ids and string indices that
 * point nowhere, another number of values than sample types, and two messages one after the other.
 * One known fault is mended: an old .NET sender gives every function the id 0 and one function per
 * location.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* Decompressed size that is accepted when a caller has no opinion. */
#define PPROF_MAX_BYTES (UINT64_C(256) << 20)

/*
 * Initializes and fills *ret; on failure it is untouched. Never takes much more than max_bytes for
 * the decompressed message plus four times that for the tables; -EFBIG beyond, -EBADMSG for bad
 * bytes.
 */
int pprof_read(const void *data, size_t size, size_t max_bytes, struct profile *ret,
	       struct err *err);

/* True when the bytes look like a pprof file: compressed, or a message whose first fields fit. */
bool pprof_detect(const void *data, size_t size);

/*
 * Appends the profile as one message, byte for byte the same for the same profile. The main binary
 * is put first among the mappings. Functions and locations that no sample uses are left out.
 */
int pprof_encode(const struct profile *profile, struct str *out, struct err *err);
/* The same, gzipped. */
int pprof_write(const struct profile *profile, struct str *out, struct err *err);
