/* Line tables: the files of a unit and its rows by address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

#define COLUMN_BITS 12
#define COLUMN_MAX  ((1u << COLUMN_BITS) - 1)
#define FILE_MAX    (UINT32_MAX >> COLUMN_BITS)
#define FORMATS_MAX 32

struct line_program {
	struct dwarf_file *file;
	struct dwarf_lines *lines;
	struct reader r;
	struct dwarf_unit shape; /* sizes of forms */
	uint8_t instruction_bytes, max_ops, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[256];
	/* the registers */
	uint64_t address, file_index, line, column;
	uint32_t op_index;
	size_t first_row; /* of the open sequence */
	uint64_t low;
	bool open, odd;
};

static uint64_t read_word(struct line_program *p)
{
	return p->shape.offset_size == 8 ? reader_u64(&p->r) : reader_u32(&p->r);
}

/* Version 5: tables whose rows say themselves what they hold. */
static int read_table(struct line_program *p, bool dirs)
{
	struct {
		uint64_t what, form;
	} formats[FORMATS_MAX];
	unsigned nformats = reader_u8(&p->r);
	uint64_t count;
	int r = 0;

	if (nformats > FORMATS_MAX)
		return -EBADMSG;
	for (unsigned i = 0; i < nformats; i++) {
		formats[i].what = reader_uleb(&p->r);
		formats[i].form = reader_uleb(&p->r);
	}
	count = reader_uleb(&p->r);
	if (count > reader_left(&p->r))
		return -EBADMSG;
	for (uint64_t i = 0; i < count && r == 0 && !p->r.failed; i++) {
		struct dwarf_line_file entry = {0};

		for (unsigned f = 0; f < nformats; f++) {
			struct dwarf_value value = dwarf_value_read(
				&p->shape, (uint16_t)MIN(formats[f].form, UINT16_MAX), 0, &p->r);

			if (formats[f].what == DW_LNCT_path)
				entry.name = dwarf_value_text(p->file, &p->shape, &value);
			else if (formats[f].what == DW_LNCT_directory_index)
				entry.dir = (uint32_t)MIN(value.number, UINT32_MAX);
		}
		if (dirs)
			r = vec_push(&p->lines->dirs, entry.name);
		else
			r = vec_push(&p->lines->files, entry);
	}
	return r;
}

static int read_old_file(struct line_program *p, const char *name)
{
	uint64_t dir = reader_uleb(&p->r);
	struct dwarf_line_file entry = {.name = name, .dir = (uint32_t)MIN(dir, UINT32_MAX)};

	reader_uleb(&p->r); /* time */
	reader_uleb(&p->r); /* size */
	return vec_push(&p->lines->files, entry);
}

/* Before version 5: directory 0 and file 0 are not written down. */
static int read_old_tables(struct line_program *p)
{
	const char *name;
	int r = vec_push(&p->lines->dirs, NULL);

	if (r == 0)
		r = vec_push(&p->lines->files, (struct dwarf_line_file){0});
	while (r == 0 && (name = reader_cstr(&p->r)) != NULL && name[0])
		r = vec_push(&p->lines->dirs, name);
	while (r == 0 && !p->r.failed && (name = reader_cstr(&p->r)) != NULL && name[0])
		r = read_old_file(p, name);
	return r;
}

static int read_header(struct line_program *p, const struct dwarf_unit *unit)
{
	uint64_t length, header, program;
	int r;

	p->shape = *unit;
	p->shape.offset_size = 4;
	p->r = dwarf_reader(p->file, DWARF_LINE, unit->stmt_list, 16);
	length = reader_u32(&p->r);
	if (length == UINT32_MAX) {
		p->shape.offset_size = 8;
		length = reader_u64(&p->r);
	}
	if (p->r.failed)
		return -EBADMSG;
	length = MIN(length, (uint64_t)SIZE_MAX / 2);
	header = p->r.pos;
	p->r = dwarf_reader(p->file, DWARF_LINE, header, length);
	p->lines->version = reader_u16(&p->r);
	if (p->r.failed || p->lines->version < 2 || p->lines->version > 5)
		return -EBADMSG;
	p->shape.version = p->lines->version;
	if (p->lines->version >= 5) {
		p->shape.address_size = reader_u8(&p->r);
		reader_u8(&p->r); /* segment selectors */
	}
	header = read_word(p);
	program = p->r.pos + MIN(header, reader_left(&p->r));
	p->instruction_bytes = reader_u8(&p->r);
	p->max_ops = p->lines->version >= 4 ? reader_u8(&p->r) : 1;
	reader_u8(&p->r); /* default of is_stmt */
	p->line_base = (int8_t)reader_u8(&p->r);
	p->line_range = reader_u8(&p->r);
	p->opcode_base = reader_u8(&p->r);
	for (unsigned i = 1; i < p->opcode_base; i++)
		p->lengths[i] = reader_u8(&p->r);
	if (p->r.failed || (p->shape.address_size != 4 && p->shape.address_size != 8))
		return -EBADMSG;
	if (p->lines->version >= 5) {
		r = read_table(p, true);
		if (r == 0)
			r = read_table(p, false);
	} else {
		r = read_old_tables(p);
	}
	p->r.failed = false;
	p->r.pos = program;
	return r;
}

static void reset(struct line_program *p)
{
	p->address = p->column = 0;
	p->op_index = 0;
	p->file_index = p->line = 1;
	p->open = p->odd = false;
	p->first_row = p->lines->rows.len;
}

static int emit(struct line_program *p)
{
	struct dwarf_row row = {.line = (uint32_t)MIN(p->line, UINT32_MAX)};
	struct dwarf_row *last;
	uint64_t file = p->file_index <= FILE_MAX ? p->file_index : 0;

	if (!p->open) {
		p->open = true;
		p->low = p->address;
	}
	/* A sequence that goes back or over 4 GiB is damaged; it is left out. */
	if (p->address < p->low || p->address - p->low > UINT32_MAX) {
		p->odd = true;
		return 0;
	}
	row.delta = (uint32_t)(p->address - p->low);
	row.file_column =
		(uint32_t)file << COLUMN_BITS | (p->column <= COLUMN_MAX ? (uint32_t)p->column : 0);
	last = p->lines->rows.len > p->first_row ? &p->lines->rows.data[p->lines->rows.len - 1]
						 : NULL;
	if (last && last->delta > row.delta) {
		p->odd = true;
		return 0;
	}
	/* Of rows at one address the last one counts. */
	if (last && last->delta == row.delta) {
		*last = row;
		return 0;
	}
	if (last && last->line == row.line && last->file_column == row.file_column)
		return 0;
	return vec_push(&p->lines->rows, row);
}

static int end_sequence(struct line_program *p)
{
	uint64_t top = p->shape.address_size == 8 ? UINT64_MAX - 1 : UINT32_MAX - 1;
	int r = 0;

	if (!p->open || p->odd || p->low == 0 || p->low >= top || p->address <= p->low)
		p->lines->rows.len = p->first_row;
	else
		r = vec_push(&p->lines->sequences,
			     ((struct dwarf_sequence){
				     .low = p->low,
				     .high = p->address,
				     .first = (uint32_t)p->first_row,
				     .count = (uint32_t)(p->lines->rows.len - p->first_row)}));
	reset(p);
	return r;
}

static void advance(struct line_program *p, uint64_t operations)
{
	if (p->max_ops <= 1) {
		p->address += operations * p->instruction_bytes;
		return;
	}
	p->address += (p->op_index + operations) / p->max_ops * p->instruction_bytes;
	p->op_index = (uint32_t)((p->op_index + operations) % p->max_ops);
}

static int extended(struct line_program *p)
{
	uint64_t len = reader_uleb(&p->r);
	size_t next = p->r.pos + (size_t)MIN(len, reader_left(&p->r));
	uint8_t opcode;
	int r = 0;

	if (p->r.failed || len == 0)
		return 0;
	opcode = reader_u8(&p->r);
	if (opcode == DW_LNE_end_sequence) {
		r = end_sequence(p);
	} else if (opcode == DW_LNE_set_address) {
		p->address = len == 9 ? reader_u64(&p->r) : reader_u32(&p->r);
		p->op_index = 0;
	} else if (opcode == DW_LNE_define_file) {
		const char *name = reader_cstr(&p->r);

		if (name)
			r = read_old_file(p, name);
	}
	p->r.failed = false;
	p->r.pos = next;
	return r;
}

static int standard(struct line_program *p, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return emit(p);
	case DW_LNS_advance_pc:
		advance(p, reader_uleb(&p->r));
		return 0;
	case DW_LNS_advance_line:
		p->line = (uint32_t)(p->line + (uint64_t)reader_sleb(&p->r));
		return 0;
	case DW_LNS_set_file:
		p->file_index = reader_uleb(&p->r);
		return 0;
	case DW_LNS_set_column:
		p->column = reader_uleb(&p->r);
		return 0;
	case DW_LNS_const_add_pc:
		if (p->line_range)
			advance(p, (255u - p->opcode_base) / p->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		p->address += reader_u16(&p->r);
		p->op_index = 0;
		return 0;
	default:
		for (unsigned i = 0; i < p->lengths[opcode]; i++)
			reader_uleb(&p->r);
		return 0;
	}
}

static int run(struct line_program *p)
{
	int r = 0;

	reset(p);
	while (r == 0 && !p->r.failed && p->r.pos < p->r.size) {
		uint8_t opcode = reader_u8(&p->r);

		if (opcode == 0) {
			r = extended(p);
		} else if (opcode < p->opcode_base) {
			r = standard(p, opcode);
		} else if (p->line_range) {
			unsigned adjusted = (unsigned)opcode - p->opcode_base;

			advance(p, adjusted / p->line_range);
			p->line = (uint32_t)((int64_t)p->line + p->line_base +
					     (int)(adjusted % p->line_range));
			r = emit(p);
		}
	}
	p->lines->rows.len = MIN(p->lines->rows.len, p->first_row);
	return r;
}

static int compare_sequences(const void *a, const void *b)
{
	const struct dwarf_sequence *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

struct dwarf_lines *dwarf_lines_of(struct dwarf_file *file, struct dwarf_unit *unit)
{
	struct line_program p = {.file = file};
	struct dwarf_lines lines = {0};
	uint32_t index;

	if (!unit->has_lines)
		return NULL;
	if (unit->lines)
		return &file->lines.data[unit->lines - 1];
	if (u64_map_get(&file->line_map, unit->stmt_list, &index)) {
		unit->lines = index + 1;
		return &file->lines.data[index];
	}
	p.lines = &lines;
	if (read_header(&p, unit) >= 0)
		(void)run(&p);
	if (lines.sequences.len > 1)
		qsort(lines.sequences.data, lines.sequences.len, sizeof(*lines.sequences.data),
		      compare_sequences);
	if (vec_push(&file->lines, lines) < 0 ||
	    u64_map_put(&file->line_map, unit->stmt_list, (uint32_t)file->lines.len - 1) < 0) {
		unit->has_lines = false;
		return NULL;
	}
	unit->lines = (uint32_t)file->lines.len;
	return &file->lines.data[unit->lines - 1];
}

const struct dwarf_row *dwarf_lines_find(const struct dwarf_lines *lines, uint64_t address)
{
	const struct dwarf_sequence *sequence = NULL;
	size_t behind =
		partition_point(lines->sequences.len, at, lines->sequences.data[at].low <= address);
	const struct dwarf_row *rows;

	/* Sequences hardly ever overlap; a few steps back are enough. */
	for (size_t back = 0; back < 8 && back < behind && !sequence; back++)
		if (address < lines->sequences.data[behind - 1 - back].high)
			sequence = &lines->sequences.data[behind - 1 - back];
	if (!sequence || sequence->count == 0)
		return NULL;
	rows = lines->rows.data + sequence->first;
	behind = partition_point(sequence->count, at, rows[at].delta <= address - sequence->low);
	return behind ? &rows[behind - 1] : NULL;
}

const char *dwarf_lines_path(struct dwarf *dwarf, struct dwarf_lines *lines, const char *comp_dir,
			     uint32_t file)
{
	struct dwarf_line_file *entry;
	struct str path = {0};
	const char *dir;

	if (file >= lines->files.len)
		return NULL;
	entry = &lines->files.data[file];
	if (entry->path || !entry->name)
		return entry->path;
	dir = entry->dir < lines->dirs.len ? lines->dirs.data[entry->dir] : NULL;
	if (entry->name[0] != '/') {
		if (comp_dir && (!dir || dir[0] != '/') && (!dir || strcmp(dir, comp_dir) != 0))
			str_printf(&path, "%s/", comp_dir);
		if (dir)
			str_printf(&path, "%s/", dir);
	}
	str_puts(&path, entry->name);
	if (str_status(&path) == 0)
		entry->path = arena_strndup(dwarf->arena, path.data, path.len);
	str_fini(&path);
	return entry->path;
}
