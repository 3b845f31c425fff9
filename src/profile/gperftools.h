/*
 * The CPU profile of gperftools in its symbolized form, which google-pprof reads without the
 * program: names of addresses as text, the binary profile (words of 64 bits), a memory map.
 * legacy_read() takes it back.
 *
 * The format knows addresses and one count. Every function on a stack, inlined ones too, thus gets
 * an address: its own where that is known, in user space and of no other function, else one from a
 * range that is invented for its object, so that names and objects survive. Addresses without names
 * stay alone where they can. Labels, source lines, build ids and the other values are lost; "--"
 * in a name, which means inlining there, becomes "- -".
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* google-pprof refuses deeper stacks: of longer ones the frames next to the leaf are written. */
#define GPERFTOOLS_DEPTH_MAX 65536

/*
 * Appends the file. value is the index of the value type, negative for "samples", or the first in
 * counts when there is none of that name. -EINVAL without values, -ERANGE for negative ones.
 */
int gperftools_write(const struct profile *profile, int value, struct str *out, struct err *err);
