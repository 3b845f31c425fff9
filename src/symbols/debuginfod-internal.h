/*
 * Files from debuginfod servers, through the client library of elfutils, which is loaded when the
 * first file is asked for. The servers are those of DEBUGINFOD_URLS. What was fetched, and what no
 * server had, is remembered by the library in its own cache ($DEBUGINFOD_CACHE_PATH or
 * ~/.cache/debuginfod_client; failures for ten minutes by default).
 *
 * All waiting together has one deadline: behind it every file is missing at once.
 */
#pragma once

#include <stdbool.h>

#include "symbols/symbols.h"

struct debuginfod;

/* NULL when no servers are named, or without memory. */
struct debuginfod *debuginfod_new(unsigned seconds);
void debuginfod_free(struct debuginfod *servers);

/* The path of the file, to be free()d; NULL when there is none. Thread safe: one waits for the
 * other. */
char *debuginfod_fetch(struct debuginfod *servers, const struct build_id *id, bool executable);
