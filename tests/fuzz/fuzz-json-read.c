/* The JSON reader: any bytes end in JSON_END or JSON_BAD, in as many steps as there are bytes. */
#include <stdlib.h>

#include "base/json-read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_reader reader = json_reader_make(data, size);
	enum json_token token;
	size_t steps = 0;

	while ((token = json_next(&reader)) > JSON_END) {
		if (++steps > 2 * size + 2 || reader.depth > JSON_DEPTH_MAX)
			abort();
		if (token == JSON_KEY && reader.text.len == 1)
			(void)json_skip(&reader, json_next(&reader));
	}
	if (token == JSON_BAD && json_next(&reader) != JSON_BAD)
		abort();
	json_reader_fini(&reader);
	return 0;
}
