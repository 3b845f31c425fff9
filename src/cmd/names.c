#include "cmd/names.h"

#include <string.h>

#include "base/file.h"

void names_apply(const struct names_options *options, struct names_places *places,
		 struct symbols_options *ret)
{
	static const char folder[] = "/names";

	if (!options->no_cache &&
	    cache_dir(places->cache, sizeof(places->cache) - sizeof(folder))) {
		strcat(places->cache, folder);
		ret->cache_dir = places->cache;
	}
}
