/*
 * The kernel symbols that a recording needs, so that another user or machine can name its frames.
 *
 * Reading /proc/kallsyms costs tens of milliseconds. It is therefore kept, sorted, in a cache file
 * of this user (0600, in $XDG_CACHE_HOME/culprit or ~/.cache/culprit) that holds as long as the
 * boot id and the lists of modules and BPF programs stay the same. Without a writable cache
 * everything works, only slower.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/*
 * Appends kallsyms text with every symbol that covers one of the addresses, and the symbol that
 * follows it (so that sizes stay right). addresses is sorted in place. -EACCES and words when the
 * kernel hides its addresses (kptr_restrict).
 */
int kernel_symbols_excerpt(uint64_t *addresses, size_t count, struct str *out, struct err *err);

/* The body of the recording's feature section: kind 1, packed with zstd. */
int kernel_symbols_section(const struct str *text, struct str *out);
