/* libculprit's result files: any bytes, twice into the same result. */
#include <stddef.h>
#include <stdint.h>

#include "count/regions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct regions regions;

	if (regions_init(&regions, size & 1) < 0)
		return 0;
	regions_add(&regions, (const char *)data, size, NULL);
	regions_add(&regions, (const char *)data, size, NULL);
	regions_fini(&regions);
	return 0;
}
