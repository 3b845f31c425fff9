/* Mangled names: no crash, no hang, and a bounded result. */
#include <stdlib.h>
#include <string.h>

#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *text;

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	text = demangle(name);
	if (text && (text[0] == '\0' || strlen(text) > (1u << 20)))
		abort();
	free(text);
	free(name);
	return 0;
}
