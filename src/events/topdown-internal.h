/* Names of events between the files of the top-down tables. */
#pragma once

#include <stddef.h>

/* "cpu_core/NAME,cmask=0x6/u" becomes "name:c6": the spelling that tables use. Longer than size - 1
 * is cut. */
void topdown_event_canonical(const char *text, char *name, size_t size);
/* perfmon's "NAME:c1:e1:u0x80:SUP" as the event parser has it:
 * "cpu/NAME,cmask=1,edge=1,umask=0x80/k"; names without suffixes as they are. -ENOTSUP: a suffix
 * that no event can have. */
int topdown_event_perf_text(const char *name, const char *pmu, char *text, size_t size);
