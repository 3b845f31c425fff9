/* Folded stacks: any bytes; what was written is read without a bad line and written the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/folded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct folded_options options = {.annotate = true, .value = -1};
	struct str first = {0}, second = {0};
	struct profile profile, again;
	struct folded_info info;
	struct err err = {0};
	int64_t before, after;

	(void)folded_detect(data, size);
	if (folded_read(data, size, &profile, &info, &err) < 0) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	if (folded_write(&profile, &options, &first, &err) == 0 &&
	    folded_read(first.data, first.len, &again, &info, &err) == 0) {
		if (info.bad_lines > 0)
			abort();
		if (profile.value_types.len == again.value_types.len &&
		    profile_total(&profile, 0, &before) == 0 &&
		    profile_total(&again, 0, &after) == 0 && before != after)
			abort();
		(void)folded_write(&again, &options, &second, &err);
		profile_fini(&again);
	}
	profile_fini(&profile);
	str_fini(&first);
	str_fini(&second);
	return 0;
}
