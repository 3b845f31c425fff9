#include "symbols/dwarf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

#define ENTRY_BYTES 512
#define CHAIN_MAX   16  /* origins and specifications followed */
#define NESTING_MAX 512 /* inlined calls inside each other */

int dwarf_new(const struct dwarf_options *options, struct elf_file *elf, struct arena *arena,
	      struct dwarf **ret)
{
	struct dwarf *dwarf = calloc(1, sizeof(*dwarf));
	int r;

	if (!dwarf) {
		elf_close(elf);
		return -ENOMEM;
	}
	dwarf->options = *options;
	dwarf->arena = arena;
	r = dwarf_file_init(&dwarf->main, dwarf, elf, options->path, false);
	if (r == 0)
		r = dwarf_index_build(dwarf);
	if (r < 0) {
		dwarf_free(dwarf);
		return r;
	}
	*ret = dwarf;
	return 0;
}

void dwarf_free(struct dwarf *dwarf)
{
	if (!dwarf)
		return;
	vec_for_each(&dwarf->others, file) {
		dwarf_file_fini(*file);
		free(*file);
	}
	dwarf_file_fini(&dwarf->main);
	vec_fini(&dwarf->others);
	vec_fini(&dwarf->ranges.all);
	vec_fini(&dwarf->reach);
	vec_fini(&dwarf->names);
	free(dwarf);
}

/* The unit whose innermost range holds the address. */
static struct dwarf_unit *unit_of(struct dwarf *dwarf, uint64_t address)
{
	const struct dwarf_range *ranges = dwarf->ranges.all.data;
	size_t behind = partition_point(dwarf->ranges.all.len, at, ranges[at].low <= address);

	while (behind > 0 && dwarf->reach.data[behind - 1] > address) {
		behind--;
		if (address < ranges[behind].high)
			return &dwarf->main.units.data[ranges[behind].owner];
	}
	return NULL;
}

static uint32_t function_at(const struct dwarf_unit *unit, uint64_t address)
{
	size_t behind =
		partition_point(unit->pieces.len, at, unit->pieces.data[at].start <= address);

	return behind ? unit->pieces.data[behind - 1].function : DWARF_NONE;
}

static bool entry_at(struct dwarf_file *file, struct dwarf_unit *unit, uint64_t offset,
		     uint64_t limit, struct dwarf_entry *ret)
{
	struct reader r = dwarf_reader(file, DWARF_INFO, offset, MIN(limit, unit->end - offset));
	const struct dwarf_abbrevs *table = &file->abbrevs.data[unit->abbrevs - 1];
	const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(table, reader_uleb(&r));

	if (r.failed || !abbrev)
		return false;
	dwarf_entry_read(table, unit, abbrev, &r, ret);
	return !r.failed;
}

/* The linkage name of an entry or of what it stands for, else the plain name. */
static char *find_name(struct dwarf *dwarf, struct dwarf_file *file, uint64_t offset)
{
	const char *name = NULL;

	for (unsigned i = 0; i < CHAIN_MAX; i++) {
		struct dwarf_unit *unit = dwarf_unit_at(file, offset);
		struct dwarf_entry entry;
		const char *text;

		if (!unit || offset < unit->first_entry ||
		    (!unit->root_read && dwarf_unit_read_root(file, unit, NULL) < 0))
			break;
		if (!entry_at(file, unit, offset, ENTRY_BYTES, &entry) &&
		    !entry_at(file, unit, offset, UINT64_MAX, &entry))
			break;
		text = dwarf_value_text(file, unit, &entry.linkage);
		if (text && text[0]) {
			name = text;
			break;
		}
		text = dwarf_value_text(file, unit, &entry.name);
		if (!name && text && text[0])
			name = arena_strndup(dwarf->arena, text, strlen(text));
		if (!dwarf_value_reference(file, unit,
					   entry.origin.form ? &entry.origin : &entry.specification,
					   &file, &offset))
			break;
	}
	return name ? arena_strndup(dwarf->arena, name, strlen(name)) : NULL;
}

static struct dwarf_name name_of(struct dwarf *dwarf, struct dwarf_file *file, uint64_t offset)
{
	struct dwarf_name name = {0};
	uint32_t index;
	char *text;

	if (u64_map_get(&file->name_map, offset, &index))
		return dwarf->names.data[index];
	name.raw = name.name = find_name(dwarf, file, offset);
	if (name.raw && !dwarf->options.no_demangle) {
		text = demangle(name.raw);
		if (text)
			name.name = arena_strndup(dwarf->arena, text, strlen(text));
		free(text);
		if (!name.name)
			name.name = name.raw;
	}
	if (vec_push(&dwarf->names, name) == 0)
		(void)u64_map_put(&file->name_map, offset, (uint32_t)dwarf->names.len - 1);
	return name;
}

static void set_row(struct dwarf *dwarf, struct dwarf_lines *lines, const char *comp_dir,
		    uint64_t address, struct inline_frame *frame)
{
	const struct dwarf_row *row = lines ? dwarf_lines_find(lines, address) : NULL;

	if (!row)
		return;
	frame->file = dwarf_lines_path(dwarf, lines, comp_dir, row->file_column >> 12);
	frame->line = row->line;
	frame->column = row->file_column & 0xfff;
}

bool dwarf_incomplete(const struct dwarf *dwarf)
{
	return dwarf->incomplete;
}

int dwarf_inlines(struct dwarf *dwarf, uint64_t address, struct inline_frame *frames, size_t max)
{
	struct dwarf_unit *unit = unit_of(dwarf, address), *whole;
	struct inline_frame place = {0};
	struct dwarf_lines *lines;
	struct dwarf_file *file;
	uint32_t at;
	size_t count = 0;

	if (!unit || max == 0)
		return 0;
	whole = dwarf_unit_whole(&dwarf->main, unit, &file);
	if (dwarf_unit_decode(file, whole) < 0)
		return -ENOMEM;
	lines = dwarf_lines_of(&dwarf->main, unit);
	set_row(dwarf, lines, unit->comp_dir, address, &place);
	for (at = function_at(whole, address); at != DWARF_NONE && count < NESTING_MAX;) {
		const struct dwarf_function *function = &whole->functions.data[at];
		struct dwarf_name name = name_of(dwarf, file, function->entry);

		place.function = name.name;
		place.raw_function = name.raw;
		place.inlined = function->inlined;
		/* When there are more than fit, the outermost keeps its place. */
		frames[MIN(count, max - 1)] = place;
		count++;
		place = (struct inline_frame){.line = function->call_line,
					      .column = function->call_column};
		if (lines)
			place.file =
				dwarf_lines_path(dwarf, lines, unit->comp_dir, function->call_file);
		at = function->parent;
	}
	if (count == 0 && place.file)
		frames[count++] = place;
	return (int)MIN(count, max);
}
