/* The layout of one table. Offsets are into the table; every one that comes from it is checked
 * where it is used. */
#pragma once

#include "symbols/gopclntab.h"

#define GO_MAGIC_1_2  UINT32_C(0xfffffffb)
#define GO_MAGIC_1_16 UINT32_C(0xfffffffa)
#define GO_MAGIC_1_18 UINT32_C(0xfffffff0)
#define GO_MAGIC_1_20 UINT32_C(0xfffffff1)

#define GO_HEADER_BYTES 8

struct go_layout {
	const struct go_table *table;
	uint32_t magic;
	unsigned ptr_size, entry_size; /* of addresses; of numbers in the list */
	unsigned quantum;              /* the smallest instruction */
	uint64_t count, text;
	uint64_t names, records, list; /* records: what theirs are added to */
	uint64_t units, files, values; /* of 1.2: files alone, the others are 0 */
};

/* False: this is no such table. */
bool go_layout_read(const struct go_table *table, struct go_layout *ret);
/* At an offset; failed when that is outside. */
struct reader go_read_at(const struct go_table *table, uint64_t offset);
/* A number of the list. */
uint64_t go_number(struct reader *r, unsigned size);
/* A text of the names; NULL when the offset leads nowhere. */
const char *go_name_at(const struct go_layout *layout, int32_t offset, size_t *ret_len);
