/* Units: where they are, their root entries, and the index from addresses to units. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

#define HEADER_BYTES 64
#define ROOT_BYTES   1024 /* read first; most root entries fit */
#define UNITS_MAX    (16u << 20)

static bool read_header(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *ret)
{
	struct reader r = dwarf_reader(file, DWARF_INFO, offset, HEADER_BYTES);
	struct dwarf_unit unit = {.offset = offset, .offset_size = 4, .type = DW_UT_compile};
	uint64_t size = file->sections[DWARF_INFO].size, length = reader_u32(&r);

	if (length == UINT32_MAX) {
		unit.offset_size = 8;
		length = reader_u64(&r);
	} else if (length >= 0xfffffff0) {
		return false;
	}
	if (r.failed || length > size - r.pos)
		return false;
	unit.end = r.pos + length;
	unit.version = reader_u16(&r);
	if (unit.version >= 5) {
		unit.type = reader_u8(&r);
		unit.address_size = reader_u8(&r);
	}
	unit.abbrev_offset = unit.offset_size == 8 ? reader_u64(&r) : reader_u32(&r);
	if (unit.version < 5)
		unit.address_size = reader_u8(&r);
	if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile)
		unit.dwo_id = reader_u64(&r);
	if (unit.type == DW_UT_type || unit.type == DW_UT_split_type)
		reader_skip(&r, 8 + (size_t)unit.offset_size);
	unit.first_entry = r.pos;
	/* What is not understood is stepped over. */
	if (r.failed || r.pos > unit.end || unit.version < 2 || unit.version > 5 ||
	    (unit.address_size != 4 && unit.address_size != 8))
		unit.version = 0;
	*ret = unit;
	return true;
}

/* A package's index tells where in its other sections the parts of each unit begin. */
static void read_package_index(struct dwarf_file *file)
{
	struct reader r = dwarf_reader(file, DWARF_CU_INDEX, 0, UINT64_MAX);
	uint32_t version = reader_u16(&r), columns, units, slots, ids[16];
	size_t signatures, rows, offsets;

	if (version != 5)
		r.pos = 0, version = reader_u32(&r);
	else
		reader_u16(&r);
	columns = reader_u32(&r);
	units = reader_u32(&r);
	slots = reader_u32(&r);
	if (r.failed || (version != 2 && version != 5) || columns == 0 || columns > ARRAY_LEN(ids))
		return;
	signatures = r.pos;
	rows = signatures + (size_t)slots * 8;
	reader_seek(&r, rows + (size_t)slots * 4);
	for (uint32_t i = 0; i < columns; i++)
		ids[i] = reader_u32(&r);
	offsets = r.pos;
	for (uint32_t i = 0; i < slots && !r.failed; i++) {
		uint64_t starts[DW_SECT_RNGLISTS + 1] = {0}, id;
		struct dwarf_unit *unit;
		uint32_t row;

		reader_seek(&r, rows + (size_t)i * 4);
		row = reader_u32(&r);
		if (row == 0 || row > units)
			continue;
		reader_seek(&r, signatures + (size_t)i * 8);
		id = reader_u64(&r);
		reader_seek(&r, offsets + (size_t)(row - 1) * columns * 4);
		for (uint32_t c = 0; c < columns; c++) {
			uint32_t start = reader_u32(&r);

			if (ids[c] < ARRAY_LEN(starts))
				starts[ids[c]] = start;
		}
		unit = r.failed ? NULL : dwarf_unit_at(file, starts[DW_SECT_INFO]);
		if (!unit)
			continue;
		unit->dwo_id = id;
		unit->abbrev_offset += starts[DW_SECT_ABBREV];
		unit->str_offsets_base += starts[DW_SECT_STR_OFFSETS];
		if (version == 5)
			unit->rnglists_base += starts[DW_SECT_RNGLISTS];
	}
}

int dwarf_units_scan(struct dwarf_file *file)
{
	struct dwarf_unit unit;
	uint64_t offset = 0;

	if (file->scanned)
		return 0;
	file->scanned = true;
	while (file->units.len < UNITS_MAX && read_header(file, offset, &unit)) {
		if (file->split && unit.version >= 5) {
			/* Behind the headers of these sections. */
			unit.str_offsets_base = unit.offset_size == 8 ? 16 : 8;
			unit.rnglists_base = unit.offset_size == 8 ? 20 : 12;
		}
		if (unit.version && vec_push(&file->units, unit) < 0)
			return -ENOMEM;
		offset = unit.end;
	}
	if (file->sections[DWARF_CU_INDEX].size)
		read_package_index(file);
	return 0;
}

struct dwarf_unit *dwarf_unit_at(struct dwarf_file *file, uint64_t offset)
{
	size_t first = partition_point(file->units.len, at, file->units.data[at].end <= offset);

	if (first == file->units.len || file->units.data[first].offset > offset)
		return NULL;
	return &file->units.data[first];
}

/* The code and attributes of the root; false when they do not lie within limit. */
static bool read_root(struct dwarf_file *file, const struct dwarf_unit *unit, uint64_t limit,
		      struct dwarf_entry *ret)
{
	struct reader r = dwarf_reader(file, DWARF_INFO, unit->first_entry, limit);
	const struct dwarf_abbrevs *table = &file->abbrevs.data[unit->abbrevs - 1];
	const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(table, reader_uleb(&r));

	if (r.failed || !abbrev)
		return false;
	dwarf_entry_read(table, unit, abbrev, &r, ret);
	return !r.failed;
}

static const char *keep(struct dwarf *dwarf, const char *text)
{
	return text ? arena_strndup(dwarf->arena, text, strlen(text)) : NULL;
}

int dwarf_unit_read_root(struct dwarf_file *file, struct dwarf_unit *unit,
			 struct dwarf_entry *ret_root)
{
	uint64_t size = unit->end - unit->first_entry;
	struct dwarf_entry root;
	int r = dwarf_abbrevs_load(file, unit);

	if (r < 0)
		return r;
	if (!read_root(file, unit, MIN(size, ROOT_BYTES), &root) &&
	    !read_root(file, unit, size, &root))
		return -EBADMSG;
	if (ret_root)
		*ret_root = root;
	if (unit->root_read)
		return 0;
	unit->root_read = true;
	/* Bases first: other attributes may need them. */
	if (root.str_offsets_base.form)
		unit->str_offsets_base = root.str_offsets_base.number;
	unit->addr_base = root.addr_base.number;
	unit->ranges_base = root.ranges_base.number;
	if (root.rnglists_base.form)
		unit->rnglists_base = root.rnglists_base.number;
	if (root.low.form)
		(void)dwarf_value_address(file, unit, &root.low, &unit->low_pc);
	unit->has_lines = root.stmt_list.form != 0;
	unit->stmt_list = root.stmt_list.number;
	if (root.dwo_id.form)
		unit->dwo_id = root.dwo_id.number;
	unit->comp_dir = keep(file->dwarf, dwarf_value_text(file, unit, &root.comp_dir));
	unit->dwo_name = keep(file->dwarf, dwarf_value_text(file, unit, &root.dwo_name));
	return 0;
}

/* Ranges of units whose root has none: by .debug_aranges. */
static int add_aranges(struct dwarf *dwarf, uint64_t *budget)
{
	struct dwarf_file *file = &dwarf->main;
	uint64_t size = file->sections[DWARF_ARANGES].size, offset = 0;

	while (offset < size) {
		struct reader r = dwarf_reader(file, DWARF_ARANGES, offset, UINT64_MAX);
		uint64_t length = reader_u32(&r), start = offset, end, info;
		unsigned bytes, word = 4;
		struct dwarf_unit *unit;

		if (length == UINT32_MAX) {
			word = 8;
			length = reader_u64(&r);
		}
		if (r.failed || length > size - r.pos)
			break;
		end = r.pos + length;
		reader_u16(&r);
		info = word == 8 ? reader_u64(&r) : reader_u32(&r);
		bytes = reader_u8(&r);
		reader_u8(&r);
		offset = end;
		unit = dwarf_unit_at(file, info);
		if (!unit || unit->low_pc != UINT64_MAX || (bytes != 4 && bytes != 8))
			continue;
		r.pos = start + ALIGN_UP(r.pos - start, (size_t)2 * bytes);
		while (r.pos + 2 * (size_t)bytes <= end && *budget) {
			uint64_t low = bytes == 8 ? reader_u64(&r) : reader_u32(&r);
			uint64_t len = bytes == 8 ? reader_u64(&r) : reader_u32(&r);
			uint32_t owner = (uint32_t)(unit - file->units.data);

			--*budget;
			if (low == 0 || len == 0 || low + len < low)
				continue;
			if (vec_push(&dwarf->ranges.all,
				     ((struct dwarf_range){low, low + len, owner, 0})) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high > y->high ? -1 : x->high < y->high;
}

/*
 * A unit without ranges is marked by a low_pc of the highest address until aranges were read; the
 * ones those do not know either are decoded, and their functions tell.
 */
static int add_silent(struct dwarf *dwarf, uint64_t *budget)
{
	struct dwarf_file *file = &dwarf->main;
	int r = add_aranges(dwarf, budget);
	CLEANUP_FREE uint8_t *known = calloc(file->units.len + 1, 1);

	if (!known)
		return -ENOMEM;
	vec_for_each(&dwarf->ranges.all, range)
		known[range->owner] = 1;
	for (size_t i = 0; i < file->units.len && r == 0; i++) {
		struct dwarf_unit *unit = &file->units.data[i];

		if (unit->low_pc != UINT64_MAX)
			continue;
		unit->low_pc = 0;
		if (known[i])
			continue;
		r = dwarf_unit_decode(file, unit);
		for (size_t k = 0; k + 1 < unit->pieces.len && r == 0 && *budget; k++) {
			const struct dwarf_piece *piece = &unit->pieces.data[k];

			if (piece->function == DWARF_NONE)
				continue;
			--*budget;
			r = vec_push(&dwarf->ranges.all,
				     ((struct dwarf_range){piece->start, piece[1].start,
							   (uint32_t)i, 0}));
		}
	}
	return r;
}

int dwarf_index_build(struct dwarf *dwarf)
{
	struct dwarf_file *file = &dwarf->main;
	uint64_t budget = 1u << 20, reach = 0, section;
	int r = dwarf_units_scan(file);

	/* Lists cost bytes in their sections; units may share them, but not without end. */
	section = file->sections[DWARF_RANGES].size + file->sections[DWARF_RNGLISTS].size +
		  file->sections[DWARF_ARANGES].size;
	budget += section / 2;
	for (size_t i = 0; i < file->units.len && r == 0; i++) {
		struct dwarf_unit *unit = &file->units.data[i];
		struct dwarf_entry root;

		if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
			continue;
		r = dwarf_unit_read_root(file, unit, &root);
		if (r == -EBADMSG) {
			r = 0;
			continue;
		}
		if (r < 0 || root.abbrev->tag == DW_TAG_partial_unit)
			continue;
		if (root.ranges.form || root.high.form)
			r = dwarf_entry_ranges(file, unit, &root, (uint32_t)i, 0, &budget,
					       &dwarf->ranges);
		else if (root.abbrev->children && !unit->dwo_name)
			unit->low_pc = UINT64_MAX;
	}
	if (r == 0)
		r = add_silent(dwarf, &budget);
	if (r < 0)
		return r;
	if (dwarf->ranges.all.len > 1)
		qsort(dwarf->ranges.all.data, dwarf->ranges.all.len,
		      sizeof(*dwarf->ranges.all.data), compare_ranges);
	vec_for_each(&dwarf->ranges.all, range) {
		reach = MAX(reach, range->high);
		if (vec_push(&dwarf->reach, reach) < 0)
			return -ENOMEM;
	}
	return 0;
}
