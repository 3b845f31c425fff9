/* pprof: any bytes; what is accepted must survive being written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/folded.h"
#include "profile/pprof.h"
#include "profile/speedscope.h"

#define MAX_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct folded_options options = {
		.root = FOLDED_ROOT_TID, .annotate = true, .value = -1};
	struct str first = {0}, second = {0}, text = {0};
	struct profile profile, again;
	struct err err = {0};

	(void)pprof_detect(data, size);
	if (pprof_read(data, size, MAX_BYTES, &profile, &err) < 0) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	if (pprof_encode(&profile, &first, &err) < 0 ||
	    (first.len > 0 && !pprof_detect(first.data, first.len)))
		abort();
	/* Rewriting can pass the limits (ids grow), but nothing else may fail. */
	if (pprof_read(first.data, first.len, 64 * MAX_BYTES, &again, &err) < 0)
		abort();
	if (pprof_encode(&again, &second, &err) < 0 || first.len != second.len ||
	    memcmp(first.data, second.data, first.len) != 0)
		abort();
	(void)folded_write(&profile, &options, &text, &err);
	str_clear(&text);
	(void)speedscope_write(&profile, "fuzz", &text, &err);
	profile_fini(&again);
	profile_fini(&profile);
	str_fini(&first);
	str_fini(&second);
	str_fini(&text);
	return 0;
}
