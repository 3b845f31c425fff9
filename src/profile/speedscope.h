/*
 * The speedscope file format (https://www.speedscope.app/file-format-schema.json): one "sampled"
 * profile per value type, each stack with its weight. Inlined functions are frames of their own.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* Appends the document. name is its title. */
int speedscope_write(const struct profile *profile, const char *name, struct str *out,
		     struct err *err);
