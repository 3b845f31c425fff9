/* kallsyms text, and the promise that an excerpt answers like the whole. */
#include <stdlib.h>
#include <string.h>

#include "symbols/kallsyms.h"
#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESSES 8

static struct module *load(struct symbols *symbols, const void *text, size_t size)
{
	struct module_ref ref = {.kind = MODULE_KERNEL, .image = text, .image_size = size};
	struct module *module;

	return symbols_module(symbols, &ref, &module) == 0 ? module : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t addresses[ADDRESSES];
	struct symbols *symbols;
	struct module *whole, *part;
	struct kallsyms kallsyms;
	struct str out = {0};
	size_t n = 0;

	if (size == 0 || kallsyms_parse((const char *)data, size, &kallsyms) < 0)
		return 0;
	for (size_t i = 0; i < kallsyms.count && n < ADDRESSES; i += 1 + kallsyms.count / ADDRESSES)
		addresses[n++] = kallsyms.entries[i].address + i % 5;
	kallsyms_fini(&kallsyms);
	if (symbols_new(NULL, &symbols) < 0)
		return 0;
	whole = load(symbols, data, size);
	if (kallsyms_excerpt((const char *)data, size, addresses, n, &out) == 0 && out.len > 0 &&
	    whole) {
		part = load(symbols, out.data, out.len);
		for (size_t i = 0; part && i < n; i++) {
			struct symbol a, b;
			bool have = module_lookup(whole, addresses[i], &a),
			     again = module_lookup(part, addresses[i], &b);

			if (have != again || (have && (strcmp(a.raw_name, b.raw_name) != 0 ||
						       a.start != b.start || a.size != b.size)))
				abort();
		}
	}
	symbols_free(symbols);
	str_fini(&out);
	return 0;
}
