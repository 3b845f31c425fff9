/* speedscope and Firefox profiles; what is accepted must survive being written and read again. */
#include <errno.h>
#include <stdlib.h>

#include "profile/firefox.h"
#include "profile/speedscope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct profile *profile, bool firefox)
{
	struct str text = {0};
	struct profile second;
	struct err err = {0};
	int r = firefox ? firefox_write(profile, -1, "fuzz", &text, &err)
			: speedscope_write(profile, "fuzz", &text, &err);

	if (r == 0) {
		r = firefox ? firefox_read(text.data, text.len, true, &second, &err)
			    : speedscope_read(text.data, text.len, &second, &err);
		/* Sums may leave 64 bits. */
		if (r == -EBADMSG)
			abort();
		if (r == 0)
			profile_fini(&second);
	}
	str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile profile;
	struct err err = {0};

	(void)speedscope_detect(data, size);
	(void)firefox_detect(data, size);
	if (speedscope_read(data, size, &profile, &err) == 0) {
		again(&profile, false);
		again(&profile, true);
		profile_fini(&profile);
	} else if (err.text[0] == '\0') {
		abort();
	}
	if (firefox_read(data, size, true, &profile, &err) == 0) {
		again(&profile, true);
		again(&profile, false);
		profile_fini(&profile);
	}
	return 0;
}
