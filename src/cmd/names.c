#include "cmd/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"

void names_apply(const struct command *self, const struct names_options *options,
		 struct names_places *places, struct symbols_options *ret)
{
	static const char folder[] = "/names";
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!options->no_cache &&
	    cache_dir(places->cache, sizeof(places->cache) - sizeof(folder))) {
		strcat(places->cache, folder);
		ret->cache_dir = places->cache;
	}
	ret->debuginfod_seconds = (unsigned)MIN(options->debuginfod_seconds, 86400);
	if (options->debuginfod_seconds && (!urls || !urls[0]))
		cmd_warnf(self, "--debuginfod: nobody is asked: DEBUGINFOD_URLS is not set");
}
