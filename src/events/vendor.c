#include "events/vendor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

struct vendor {
	struct vendor_options options;
};

int vendor_new(const struct vendor_options *options, struct vendor **ret)
{
	struct vendor *vendor = calloc(1, sizeof(*vendor));

	if (!vendor)
		return -ENOMEM;
	vendor->options = *options;
	*ret = vendor;
	return 0;
}

void vendor_free(struct vendor *vendor)
{
	free(vendor);
}

int vendor_find(struct vendor *vendor, const char *name, struct vendor_event *ret, struct err *err)
{
	return -ENOENT;
}

int vendor_each(struct vendor *vendor, int (*fn)(void *arg, const struct vendor_event *event),
		void *arg, struct err *err)
{
	return 0;
}
