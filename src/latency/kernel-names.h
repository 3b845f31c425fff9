/* Names of kernel functions by address, from the text of /proc/kallsyms. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/kallsyms.h"

struct kernel_names {
	char *text; /* owned */
	struct kallsyms symbols;
	char name[128]; /* of the latest answer */
};

/* Of the running kernel; takes tens of milliseconds, so before a measurement. -EPERM: addresses are
 * hidden (kernel.kptr_restrict). */
int kernel_names_load(const char *root, struct kernel_names *ret);
/* Of a text that is taken over, also on failure. */
int kernel_names_take(char *text, size_t size, struct kernel_names *ret);
void kernel_names_fini(struct kernel_names *names);
/* The function's name, valid until the next call, or NULL. */
const char *kernel_names_find(struct kernel_names *names, uint64_t address);
