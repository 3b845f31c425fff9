/*
 * Pages of the kernel's ring buffer as trace.dat holds them, filled record by record, one page of
 * each CPU at a time. Full ones are kept in memory until the end: the rings they come from bound
 * them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define DAT_PAGE_BYTES   4096
#define DAT_RECORD_BYTES 2400
/* In the commit field of a page: records were lost before it, their number stands behind the data.
 */
#define DAT_MISSED       (UINT64_C(1) << 31)
#define DAT_MISSED_KNOWN (UINT64_C(1) << 30)

struct dat_pages {
	struct str done;
	uint8_t page[DAT_PAGE_BYTES];
	size_t used; /* behind the header; 0: not begun */
	uint64_t first_ns, last_ns;
	uint64_t commit_flags, lost; /* of the page that is filled */
	uint64_t work;               /* function of the work begun last, and whose */
	int work_pid;
};

/* One record that is being put together: the common part, then fields at fixed offsets. */
struct dat_record {
	uint8_t bytes[DAT_RECORD_BYTES];
	size_t size;
};

/* Time never goes back in a page: the clocks of records from several sources may, by a little. */
void dat_pages_put(struct dat_pages *cpu, uint64_t time_ns, const struct dat_record *record);
/* The page that is being filled goes to done, which keeps an error of memory. */
void dat_pages_finish(struct dat_pages *cpu);
