/* Any text as a measurement: tables, histograms, analyses, traces, JSON. */
#include <stdlib.h>

#include "latency/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct latency_import_options options = {.keep = 2};
	struct latency_run run;
	if (latency_import_bytes(data, size, "fuzz", &options, &run, NULL) == 0)
		latency_run_fini(&run);
	return 0;
}
