#include "latency/kernel-names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"

#define KALLSYMS_MAX_BYTES (256 << 20)

int kernel_names_take(char *text, size_t size, struct kernel_names *ret)
{
	struct kernel_names names = {.text = text};
	int r = kallsyms_parse(text, size, &names.symbols);

	if (r < 0) {
		free(text);
		return r;
	}
	if (names.symbols.hidden) {
		kernel_names_fini(&names);
		return -EPERM;
	}
	*ret = names;
	return 0;
}

int kernel_names_load(const char *root, struct kernel_names *ret)
{
	const struct host host = {.root = root};
	char *text;
	size_t size;
	int r = host_read(&host, "/proc/kallsyms", KALLSYMS_MAX_BYTES, &text, &size, NULL);

	return r < 0 ? r : kernel_names_take(text, size, ret);
}

void kernel_names_fini(struct kernel_names *names)
{
	kallsyms_fini(&names->symbols);
	free(names->text);
	memset(names, 0, sizeof(*names));
}

const char *kernel_names_find(struct kernel_names *names, uint64_t address)
{
	size_t behind = partition_point(names->symbols.count, at,
					names->symbols.entries[at].address <= address);

	if (behind == names->symbols.count)
		return NULL; /* nothing ends it */
	while (behind > 0) {
		const struct kallsyms_entry *entry = &names->symbols.entries[--behind];

		if (!kallsyms_is_code(entry->type))
			continue;
		snprintf(names->name, sizeof(names->name), "%.*s", (int)entry->name_len,
			 names->text + entry->name);
		return names->name;
	}
	return NULL;
}
