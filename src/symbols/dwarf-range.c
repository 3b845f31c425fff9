/* The addresses of an entry: low and high, .debug_ranges, .debug_rnglists. */
#include <errno.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

struct ranges {
	struct dwarf_file *file;
	const struct dwarf_unit *unit;
	struct dwarf_range_list *list;
	uint64_t *budget, base;
	uint32_t owner, depth;
	int status;
};

/*
 * Code that the linker left out keeps its entries, with addresses of 0 or the highest ones: these
 * are nobody's. False: no more room.
 */
static bool add(struct ranges *s, uint64_t low, uint64_t high)
{
	uint64_t top = s->unit->address_size == 8 ? UINT64_MAX - 1 : UINT32_MAX - 1;

	if (*s->budget == 0)
		return false;
	--*s->budget;
	if (low == 0 || low >= high || low >= top)
		return true;
	s->status = vec_push(&s->list->all, ((struct dwarf_range){low, high, s->owner, s->depth}));
	return s->status == 0;
}

static uint64_t read_address(const struct ranges *s, struct reader *r)
{
	return s->unit->address_size == 8 ? reader_u64(r) : reader_u32(r);
}

static void old_list(struct ranges *s, uint64_t offset)
{
	struct dwarf_file *file = s->unit->main_file ? s->unit->main_file : s->file;
	uint64_t top = s->unit->address_size == 8 ? UINT64_MAX : UINT32_MAX;

	if (s->unit->skeleton)
		offset += s->unit->skeleton->ranges_base;
	for (;; offset += 2 * (uint64_t)s->unit->address_size) {
		struct reader r = dwarf_reader(file, DWARF_RANGES, offset, 16);
		uint64_t low = read_address(s, &r), high = read_address(s, &r);

		if (r.failed || (low == 0 && high == 0))
			return;
		if (low == top)
			s->base = high;
		else if (low < high && !add(s, s->base + low, s->base + high))
			return;
	}
}

static bool index_address(struct ranges *s, uint64_t index, uint64_t *ret)
{
	struct dwarf_value value = {.form = DW_FORM_addrx, .number = index};

	return dwarf_value_address(s->file, s->unit, &value, ret);
}

/* False: the end of the list. */
static bool new_entry(struct ranges *s, struct reader *r)
{
	uint64_t low = 0, high = 0, first, second;
	uint8_t kind = reader_u8(r);

	switch (kind) {
	case DW_RLE_base_addressx:
		return index_address(s, reader_uleb(r), &s->base) && !r->failed;
	case DW_RLE_base_address:
		s->base = read_address(s, r);
		return !r->failed;
	case DW_RLE_startx_endx:
		first = reader_uleb(r);
		second = reader_uleb(r);
		if (!index_address(s, first, &low) || !index_address(s, second, &high))
			return false;
		break;
	case DW_RLE_startx_length:
		first = reader_uleb(r);
		second = reader_uleb(r);
		if (!index_address(s, first, &low))
			return false;
		high = low + second;
		break;
	case DW_RLE_offset_pair:
		low = s->base + reader_uleb(r);
		high = s->base + reader_uleb(r);
		if (s->base == 0 || s->base >= UINT64_MAX - 1)
			low = high;
		break;
	case DW_RLE_start_end:
		low = read_address(s, r);
		high = read_address(s, r);
		break;
	case DW_RLE_start_length:
		low = read_address(s, r);
		high = low + reader_uleb(r);
		break;
	default:
		return false;
	}
	return !r->failed && add(s, low, high);
}

#define ENTRY_BYTES 24 /* the longest */

static void new_list(struct ranges *s, uint64_t offset)
{
	struct reader r;
	bool more = true;

	while (more) {
		r = dwarf_reader(s->file, DWARF_RNGLISTS, offset, ENTRY_BYTES);
		more = !r.failed && new_entry(s, &r);
		offset = r.pos;
	}
}

static void list_of(struct ranges *s, const struct dwarf_value *value)
{
	uint64_t base = s->unit->rnglists_base, offset = value->number;
	unsigned bytes = s->unit->offset_size;

	if (value->form == DW_FORM_rnglistx) {
		struct reader r;

		if (base > s->file->sections[DWARF_RNGLISTS].size ||
		    offset > s->file->sections[DWARF_RNGLISTS].size / bytes)
			return;
		r = dwarf_reader(s->file, DWARF_RNGLISTS, base + offset * bytes, bytes);
		offset = bytes == 8 ? reader_u64(&r) : reader_u32(&r);
		if (!r.failed)
			new_list(s, base + offset);
	} else if (s->unit->version >= 5) {
		new_list(s, offset);
	} else {
		old_list(s, offset);
	}
}

int dwarf_entry_ranges(struct dwarf_file *file, const struct dwarf_unit *unit,
		       const struct dwarf_entry *entry, uint32_t owner, uint32_t depth,
		       uint64_t *budget, struct dwarf_range_list *ranges)
{
	struct ranges s = {.file = file,
			   .unit = unit,
			   .list = ranges,
			   .budget = budget,
			   .base = unit->skeleton ? unit->skeleton->low_pc : unit->low_pc,
			   .owner = owner,
			   .depth = depth};
	uint64_t low, high;

	if (entry->ranges.form) {
		list_of(&s, &entry->ranges);
	} else if (entry->high.form && dwarf_value_address(file, unit, &entry->low, &low)) {
		if (!dwarf_value_address(file, unit, &entry->high, &high))
			high = low + entry->high.number;
		(void)add(&s, low, high);
	}
	return s.status;
}
