#include "cmd/feature.h"

#include <elfutils/version.h>
#include <zlib.h>
#include <zstd.h>

#include "base/util.h"

#define QUOTE_(x) #x
#define QUOTE(x)  QUOTE_(x)

#define JSON_SCHEMA 1

static const char *elfutils_version(void)
{
	return QUOTE(_ELFUTILS_VERSION);
}

const struct feature features[] = {
	{"elfutils", "ELF and DWARF", elfutils_version},
	{"zlib", "gzip-compressed profiles and debug sections", zlibVersion},
	{"zstd", "compressed recordings and debug sections", ZSTD_versionString},
};

const size_t features_len = ARRAY_LEN(features);

void json_document(struct json *json, const char *kind)
{
	json_object(json, NULL);
	json_text(json, "culprit", CULPRIT_VERSION);
	json_u64(json, "schema", JSON_SCHEMA);
	json_text(json, "kind", kind);
}
