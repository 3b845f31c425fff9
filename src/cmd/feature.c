#include "cmd/feature.h"

#include <dlfcn.h>
#include <zlib.h>
#include <zstd.h>

#include "base/util.h"
#include "bpf/latency-programs.h"

#define JSON_SCHEMA 1

/* The demangler is linked statically and has no version of its own. */
static const char *demangler_version(void)
{
	return "built in";
}

/* Loaded when it is needed, so what counts is whether it is there now. */
static const char *library_state(const char *file)
{
	void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return "absent";
	dlclose(library);
	return "present";
}

static const char *lzma_version(void)
{
	return library_state("liblzma.so.5");
}

static const char *pfm_version(void)
{
	return library_state("libpfm.so.4");
}

const struct feature features[] = {
	{"zlib", "gzip-compressed profiles and debug sections", zlibVersion},
	{"zstd", "compressed recordings and debug sections", ZSTD_versionString},
	{"libiberty", "C++, Rust and D names", demangler_version},
	{"liblzma", "symbols in .gnu_debugdata, when needed", lzma_version},
	{"libbpf", "latency and noise with attribution on kernels without tracers", bpf_latency_version},
	{"libpfm4", "event names of the CPU's vendor, when needed", pfm_version},
};

const size_t features_len = ARRAY_LEN(features);

void json_document(struct json *json, const char *kind)
{
	json_object(json, NULL);
	json_text(json, "culprit", CULPRIT_VERSION);
	json_u64(json, "schema", JSON_SCHEMA);
	json_text(json, "kind", kind);
}
