/* trace.dat files of both versions, and what the decoder makes of their pages. */
#include <stddef.h>
#include <stdint.h>

#include "latency/trace-dat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	return record->cpu >= 4096 && record->kind != LATENCY_STOPPED ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct latency_sink sink = {take};
	struct err err;

	trace_dat_parse(data, size, &sink, &err);
	return 0;
}
