/* The options of every command that gives names to addresses, and what they mean to symbols. */
#pragma once

#include <limits.h>

#include "cmd/command.h"
#include "cmd/option.h"
#include "symbols/symbols.h"

struct names_options {
	bool no_cache;
	uint64_t debuginfod_seconds;
};

struct names_places {
	char cache[PATH_MAX];
};

#define OPT_NAMES(type, field)                                                                     \
	OPT_FLAG(0, "no-cache", type, field.no_cache,                                              \
		 "Neither read nor write the names kept from earlier runs (in "                    \
		 "~/.cache/culprit, or where the environment variable CULPRIT_CACHE says; "        \
		 "'off' there: none)."),                                                           \
		OPT_U64(0, "debuginfod", "SECONDS", type, field.debuginfod_seconds,                \
			"Ask the servers that the environment variable DEBUGINFOD_URLS names for " \
			"debug files and objects that are missing here, and wait for all of them " \
			"together at most SECONDS. Default: nobody is asked.")

/* Fills the places that symbols look at; places must outlive the options. */
void names_apply(const struct command *self, const struct names_options *options,
		 struct names_places *places, struct symbols_options *ret);
