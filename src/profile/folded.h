/*
 * Folded stacks: one line per stack, "root;caller;leaf COUNT", what stackcollapse-*.pl, inferno,
 * austin and async-profiler write. Names may hold any byte but ';' and line ends, so the count is
 * what follows the last space. Two counts on every line ("stack BEFORE AFTER") make two value
 * types, "before" and "after". A name's suffix tells its kind: _[k] kernel, _[j] JIT, _[i] inlined
 * into its caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

struct folded_info {
	uint64_t lines, bad_lines;    /* empty lines and comments ("# ...") are neither */
	uint64_t first_bad_line;      /* from 1; 0: none */
	const char *first_bad_reason; /* static text */
	bool two_columns;
	/* Some counts had a fraction. They are rounded, the remainder carried to the next line, so
	 * that the total is right to within one. */
	bool fractions;
};

/*
 * Initializes and fills *ret; untouched on failure. Bad lines are left out and told in *ret_info
 * (may be NULL); -EBADMSG when no line is good, -ENODATA when there is none, -EOVERFLOW.
 */
int folded_read(const void *data, size_t size, struct profile *ret, struct folded_info *ret_info,
		struct err *err);

/* True when most of the first lines end in a count. */
bool folded_detect(const void *data, size_t size);

enum folded_root {
	FOLDED_ROOT_NONE, /* stacks alone */
	FOLDED_ROOT_COMM, /* the label "comm" as the first frame; samples without it have none */
	FOLDED_ROOT_PID,  /* comm-PID */
	FOLDED_ROOT_TID,  /* comm-PID/TID */
};

struct folded_options {
	enum folded_root root;
	bool annotate; /* suffixes _[k] _[j] _[i] */
	int value;     /* index of the value type; negative: the default one. Both of a two-column
			* profile ("before", "after") when negative. */
};

/*
 * Appends the lines, sorted by bytes, equal ones added. Values of 0 are left out; ';' in names
 * becomes
 * ':', control bytes and a leading '#' become '?'. Locations without names become [object] or
 * [unknown].
 */
int folded_write(const struct profile *profile, const struct folded_options *options,
		 struct str *out, struct err *err);
