/* Run files: any bytes; what was read is written and read the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latency/run-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct latency_run *run, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (!out || latency_run_write(run, out, true, NULL) < 0)
		abort();
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct latency_run run, again;
	struct err err = {0};
	char *first, *second;
	size_t first_size = 0, second_size = 0;

	if (latency_run_read_bytes(data, size, &run, &err) < 0) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	first = written(&run, &first_size);
	latency_run_fini(&run);
	if (latency_run_read_bytes(first, first_size, &again, &err) < 0)
		abort();
	second = written(&again, &second_size);
	latency_run_fini(&again);
	if (first_size != second_size || memcmp(first, second, first_size) != 0)
		abort();
	free(first);
	free(second);
	return 0;
}
