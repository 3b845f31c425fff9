/* Abbreviations, and the entries (DIEs) that are written with them. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

#define ATTRS_MAX 4096

static uint8_t kind_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return DWARF_KIND_SUBPROGRAM;
	case DW_TAG_inlined_subroutine:
		return DWARF_KIND_INLINED;
	case DW_TAG_array_type:
	case DW_TAG_class_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_structure_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_union_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_template_parameter_pack:
	case DW_TAG_GNU_formal_parameter_pack:
		return DWARF_KIND_NO_CODE;
	default:
		return DWARF_KIND_OTHER;
	}
}

/* Bytes of a form, -1 when they vary. */
static int form_bytes(const struct dwarf_unit *unit, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_size;
	case DW_FORM_ref_addr:
		return unit->version <= 2 ? unit->address_size : unit->offset_size;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_size;
	default:
		return -1;
	}
}

static int read_attrs(struct dwarf_abbrevs *table, const struct dwarf_unit *unit,
		      struct dwarf_abbrev *abbrev, struct reader *r)
{
	abbrev->first_attr = (uint32_t)table->attrs.len;
	for (;;) {
		uint64_t name = reader_uleb(r), form = reader_uleb(r);
		struct dwarf_attr attr = {.name = (uint16_t)MIN(name, UINT16_MAX),
					  .form = (uint16_t)MIN(form, UINT16_MAX)};
		int bytes;

		if (form == DW_FORM_implicit_const)
			attr.implicit = (int32_t)reader_sleb(r);
		if (r->failed || (name == 0 && form == 0))
			return 0;
		if (abbrev->attr_count == ATTRS_MAX)
			return -EBADMSG;
		bytes = form_bytes(unit, attr.form);
		abbrev->fixed =
			bytes < 0 || abbrev->fixed < 0 ? -1 : abbrev->fixed + (int32_t)bytes;
		abbrev->attr_count++;
		if (vec_push(&table->attrs, attr) < 0)
			return -ENOMEM;
	}
}

/* A damaged table ends where the damage is. */
static int read_table(struct dwarf_file *file, const struct dwarf_unit *unit,
		      struct dwarf_abbrevs *table)
{
	struct reader r = dwarf_reader(file, DWARF_ABBREV, unit->abbrev_offset, UINT64_MAX);

	while (!r.failed) {
		struct dwarf_abbrev abbrev = {.code = reader_uleb(&r)};
		uint64_t tag;
		int status;

		if (abbrev.code == 0)
			break;
		tag = reader_uleb(&r);
		abbrev.tag = (uint16_t)MIN(tag, UINT16_MAX);
		abbrev.kind = kind_of(abbrev.tag);
		abbrev.children = reader_u8(&r) != 0;
		status = read_attrs(table, unit, &abbrev, &r);
		if (status == -EBADMSG || r.failed)
			break;
		if (status == 0)
			status = vec_push(&table->entries, abbrev);
		if (status < 0)
			return status;
	}
	return 0;
}

int dwarf_abbrevs_load(struct dwarf_file *file, struct dwarf_unit *unit)
{
	/* Sizes of forms depend on these too. */
	uint64_t key = unit->abbrev_offset << 4 | (unit->address_size == 8) |
		       (unit->offset_size == 8) << 1 | (unit->version <= 2) << 2;
	struct dwarf_abbrevs table = {.key = key};
	uint32_t index;
	int r;

	if (unit->abbrevs)
		return 0;
	if (u64_map_get(&file->abbrev_map, key, &index)) {
		unit->abbrevs = index + 1;
		return 0;
	}
	r = read_table(file, unit, &table);
	if (r == 0)
		r = vec_push(&file->abbrevs, table);
	if (r < 0) {
		vec_fini(&table.entries);
		vec_fini(&table.attrs);
		return r;
	}
	unit->abbrevs = (uint32_t)file->abbrevs.len;
	return u64_map_put(&file->abbrev_map, key, unit->abbrevs - 1);
}

const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *table, uint64_t code)
{
	/* Compilers number them from 1 without holes. */
	if (code - 1 < table->entries.len && table->entries.data[code - 1].code == code)
		return &table->entries.data[code - 1];
	vec_for_each(&table->entries, entry)
		if (entry->code == code)
			return entry;
	return NULL;
}

static uint64_t read_sized(struct reader *r, int bytes)
{
	const uint8_t *at;

	switch (bytes) {
	case 1:
		return reader_u8(r);
	case 2:
		return reader_u16(r);
	case 4:
		return reader_u32(r);
	case 8:
		return reader_u64(r);
	case 3:
		at = reader_take(r, 3);
		if (!at)
			return 0;
		return r->swap ? (uint64_t)at[0] << 16 | (uint64_t)at[1] << 8 | at[2]
			       : (uint64_t)at[2] << 16 | (uint64_t)at[1] << 8 | at[0];
	default:
		reader_skip(r, (size_t)bytes);
		return 0;
	}
}

struct dwarf_value dwarf_value_read(const struct dwarf_unit *unit, uint16_t form, int32_t implicit,
				    struct reader *r)
{
	struct dwarf_value value = {.form = form};
	int bytes = form_bytes(unit, form);

	switch (form) {
	case DW_FORM_flag_present:
		value.number = 1;
		return value;
	case DW_FORM_implicit_const:
		value.number = (uint64_t)(int64_t)implicit;
		return value;
	case DW_FORM_string:
		value.text = reader_cstr(r);
		return value;
	case DW_FORM_sdata:
		value.number = (uint64_t)reader_sleb(r);
		return value;
	case DW_FORM_block1:
		reader_skip(r, reader_u8(r));
		return value;
	case DW_FORM_block2:
		reader_skip(r, reader_u16(r));
		return value;
	case DW_FORM_block4:
		reader_skip(r, reader_u32(r));
		return value;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		reader_skip(r, reader_uleb(r));
		return value;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		value.number = reader_uleb(r);
		return value;
	case DW_FORM_indirect: {
		uint64_t inner = reader_uleb(r);

		if (inner == DW_FORM_indirect || inner == DW_FORM_implicit_const ||
		    inner > UINT16_MAX)
			r->failed = true;
		else if (!r->failed)
			return dwarf_value_read(unit, (uint16_t)inner, 0, r);
		return value;
	}
	default:
		if (bytes < 0)
			r->failed = true; /* an unknown form: what follows cannot be found */
		else
			value.number = read_sized(r, bytes);
		return value;
	}
}

static struct dwarf_value *slot_of(struct dwarf_entry *entry, uint16_t name)
{
	switch (name) {
	case DW_AT_name:
		return &entry->name;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return &entry->linkage;
	case DW_AT_low_pc:
		return &entry->low;
	case DW_AT_high_pc:
		return &entry->high;
	case DW_AT_ranges:
		return &entry->ranges;
	case DW_AT_abstract_origin:
		return &entry->origin;
	case DW_AT_specification:
		return &entry->specification;
	case DW_AT_sibling:
		return &entry->sibling;
	case DW_AT_call_file:
		return &entry->call_file;
	case DW_AT_call_line:
		return &entry->call_line;
	case DW_AT_call_column:
		return &entry->call_column;
	case DW_AT_comp_dir:
		return &entry->comp_dir;
	case DW_AT_stmt_list:
		return &entry->stmt_list;
	case DW_AT_str_offsets_base:
		return &entry->str_offsets_base;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return &entry->addr_base;
	case DW_AT_GNU_ranges_base:
		return &entry->ranges_base;
	case DW_AT_rnglists_base:
		return &entry->rnglists_base;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return &entry->dwo_name;
	case DW_AT_GNU_dwo_id:
		return &entry->dwo_id;
	default:
		return NULL;
	}
}

/* NULL when it has none: a table may be without a single one. */
static const struct dwarf_attr *attrs_of(const struct dwarf_abbrevs *table,
					 const struct dwarf_abbrev *abbrev)
{
	return abbrev->attr_count ? table->attrs.data + abbrev->first_attr : NULL;
}

void dwarf_entry_read(const struct dwarf_abbrevs *table, const struct dwarf_unit *unit,
		      const struct dwarf_abbrev *abbrev, struct reader *r, struct dwarf_entry *ret)
{
	const struct dwarf_attr *attr = attrs_of(table, abbrev);

	*ret = (struct dwarf_entry){.abbrev = abbrev};
	for (unsigned i = 0; i < abbrev->attr_count && !r->failed; i++, attr++) {
		struct dwarf_value value = dwarf_value_read(unit, attr->form, attr->implicit, r);
		struct dwarf_value *slot = slot_of(ret, attr->name);

		if (slot)
			*slot = value;
		else if (attr->name == DW_AT_declaration)
			ret->declaration = value.number != 0;
	}
}

void dwarf_entry_skip(const struct dwarf_abbrevs *table, const struct dwarf_unit *unit,
		      const struct dwarf_abbrev *abbrev, struct reader *r)
{
	const struct dwarf_attr *attr = attrs_of(table, abbrev);

	if (abbrev->fixed >= 0) {
		reader_skip(r, (size_t)abbrev->fixed);
		return;
	}
	for (unsigned i = 0; i < abbrev->attr_count && !r->failed; i++, attr++)
		(void)dwarf_value_read(unit, attr->form, attr->implicit, r);
}

/* Entry index of a table of fixed-size entries at base; false when it is not there. */
static bool indexed(struct dwarf_file *file, enum dwarf_section_id id, uint64_t base,
		    uint64_t index, unsigned bytes, uint64_t *ret)
{
	struct reader r;

	if (base > file->sections[id].size || index > file->sections[id].size / bytes)
		return false;
	r = dwarf_reader(file, id, base + index * bytes, bytes);
	*ret = bytes == 8 ? reader_u64(&r) : reader_u32(&r);
	return !r.failed;
}

const char *dwarf_value_text(struct dwarf_file *file, const struct dwarf_unit *unit,
			     const struct dwarf_value *value)
{
	struct dwarf_file *supplement;
	uint64_t offset;

	switch (value->form) {
	case DW_FORM_string:
		return value->text;
	case DW_FORM_strp:
		return dwarf_string(file, DWARF_STR, value->number);
	case DW_FORM_line_strp:
		return dwarf_string(file, DWARF_LINE_STR, value->number);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		supplement = dwarf_supplement(file);
		return supplement ? dwarf_string(supplement, DWARF_STR, value->number) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		if (!indexed(file, DWARF_STR_OFFSETS, unit->str_offsets_base, value->number,
			     unit->offset_size, &offset))
			return NULL;
		return dwarf_string(file, DWARF_STR, offset);
	default:
		return NULL;
	}
}

bool dwarf_value_address(struct dwarf_file *file, const struct dwarf_unit *unit,
			 const struct dwarf_value *value, uint64_t *ret)
{
	struct dwarf_file *holder = unit->main_file ? unit->main_file : file;
	unsigned bytes = unit->address_size;

	switch (value->form) {
	case DW_FORM_addr:
		*ret = value->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return indexed(holder, DWARF_ADDR,
			       unit->skeleton ? unit->skeleton->addr_base : unit->addr_base,
			       value->number, bytes == 8 ? 8 : 4, ret);
	default:
		return false;
	}
}

bool dwarf_value_reference(struct dwarf_file *file, const struct dwarf_unit *unit,
			   const struct dwarf_value *value, struct dwarf_file **ret_file,
			   uint64_t *ret_offset)
{
	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (value->number >= unit->end - unit->offset)
			return false;
		*ret_file = file;
		*ret_offset = unit->offset + value->number;
		return true;
	case DW_FORM_ref_addr:
		*ret_file = file;
		*ret_offset = value->number;
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*ret_file = dwarf_supplement(file);
		*ret_offset = value->number;
		return *ret_file != NULL;
	default:
		return false;
	}
}
