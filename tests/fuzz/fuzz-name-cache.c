/* The file of names by build id; the checksum is made right, so that what is behind it is reached.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbols/name-cache-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t from = offsetof(struct name_cache_header, version);
	struct name_cache_header *copy = malloc(size + sizeof(*copy));
	struct inline_frame frames[4];
	struct name_table table;
	size_t length = 0;

	if (!copy || size < sizeof(*copy)) {
		free(copy);
		return 0;
	}
	memcpy(copy, data, size);
	copy->magic = NAME_CACHE_MAGIC;
	copy->checksum = hash_bytes((char *)copy + from, size - from);
	if (name_table_parse(copy, size, &table))
		for (uint32_t i = 0; i < table.header->addresses && i < 256; i++) {
			int count = name_table_find(&table, table.addresses[i], frames, 4);

			for (int f = 0; f < count; f++)
				length += frames[f].function ? strlen(frames[f].function) : 0;
		}
	free(copy);
	return length == SIZE_MAX;
}
