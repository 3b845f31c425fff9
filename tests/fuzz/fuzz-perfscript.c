/* The text of perf script. */
#include "profile/perfscript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct perfscript_options options = {0};
	struct profile profile;

	(void)perfscript_detect(data, size);
	if (perfscript_read(data, size, &options, &profile, NULL, NULL) == 0)
		profile_fini(&profile);
	return 0;
}
