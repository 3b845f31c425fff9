/* Legacy profiles: any bytes; what was read is written for gperftools and read back with its total.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/gperftools.h"
#include "profile/legacy.h"
#include "profile/pprof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(const struct profile *profile)
{
	struct str text = {0};
	struct profile again;
	struct err err = {0};
	int64_t before, after;

	if (gperftools_write(profile, 0, &text, &err) == 0) {
		if (!legacy_detect(text.data, text.len))
			abort();
		if (legacy_read(text.data, text.len, &again, &err) == 0) {
			if (profile_total(profile, 0, &before) == 0 &&
			    profile_total(&again, 0, &after) == 0 && before != after)
				abort();
			profile_fini(&again);
		} else if (!strstr(err.text, "64 bits")) {
			abort();
		}
	}
	str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {0};
	struct profile profile;
	struct err err = {0};

	(void)legacy_detect(data, size);
	if (legacy_read(data, size, &profile, &err) < 0) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	write_and_read(&profile);
	(void)pprof_encode(&profile, &text, &err);
	profile_fini(&profile);
	str_fini(&text);
	return 0;
}
