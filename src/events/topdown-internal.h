/* Names of events between the files of the top-down tables. */
#pragma once

#include <stddef.h>

/* "cpu_core/NAME,cmask=0x6/u" becomes "name:c6": the spelling that tables use. Longer than size - 1
 * is cut. */
void topdown_event_canonical(const char *text, char *name, size_t size);
