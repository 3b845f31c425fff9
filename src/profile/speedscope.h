/*
 * The speedscope file format (https://www.speedscope.app/file-format-schema.json). Written: one
 * "sampled" profile per value type, each stack with its weight; inlined functions are frames of
 * their own. Read: sampled and evented profiles; what has a unit of time becomes nanoseconds.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* Appends the document. name is its title. */
int speedscope_write(const struct profile *profile, const char *name, struct str *out,
		     struct err *err);

/* True for a JSON object with the keys that every speedscope document has. */
bool speedscope_detect(const void *data, size_t size);

/*
 * Initializes and fills *ret; untouched on failure: -EBADMSG with the byte, profile or event that
 * is wrong, -EOVERFLOW, -ENOMEM.
 */
int speedscope_read(const void *data, size_t size, struct profile *ret, struct err *err);
