#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

#define BLOCK_BYTES ((size_t)4096)

static const char *const section_names[DWARF_SECTIONS] = {
	[DWARF_INFO] = "info",         [DWARF_ABBREV] = "abbrev",
	[DWARF_STR] = "str",           [DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_LINE_STR] = "line_str", [DWARF_LINE] = "line",
	[DWARF_RANGES] = "ranges",     [DWARF_RNGLISTS] = "rnglists",
	[DWARF_ADDR] = "addr",         [DWARF_ARANGES] = "aranges",
	[DWARF_CU_INDEX] = "cu_index",
};

const struct elf_section *dwarf_elf_section(const struct elf_file *elf, const char *name)
{
	const struct elf_section *section;
	char full[64];

	snprintf(full, sizeof(full), ".debug_%s", name);
	section = elf_section_named(elf, full);
	if (!section) {
		snprintf(full, sizeof(full), ".zdebug_%s", name);
		section = elf_section_named(elf, full);
	}
	return section && section->type != SHT_NOBITS ? section : NULL;
}

static bool is_packed(const struct elf_file *elf, const struct elf_section *section)
{
	return (section->flags & SHF_COMPRESSED) ||
	       str_prefix(elf_section_name(elf, section), ".zdebug", NULL);
}

/* Does a section begin with a unit of one type, which holds no code? Of packed ones it is not
 * known. */
static bool has_type_unit(const struct elf_file *elf, const struct elf_section *section)
{
	struct elf_bytes bytes = {0};
	struct reader r;
	bool found;

	if (is_packed(elf, section) ||
	    elf_read(elf, section->offset, MIN(section->size, 16u), &bytes) < 0)
		return false;
	r = elf_reader(elf, &bytes);
	if (reader_u32(&r) == UINT32_MAX)
		reader_skip(&r, 8);
	found = reader_u16(&r) >= 5 && reader_u8(&r) == DW_UT_split_type && !r.failed;
	elf_bytes_fini(&bytes);
	return found;
}

/* A .dwo of -fdebug-types-section has many sections of that name: one for each type, and the one
 * that counts. */
static const struct elf_section *split_info(const struct elf_file *elf)
{
	const struct elf_section *best = dwarf_elf_section(elf, "info.dwo"), *it = best;
	const char *name = best ? elf_section_name(elf, best) : "";

	for (bool best_is_type = best && has_type_unit(elf, best);
	     it && ++it < elf->sections + elf->nsections;) {
		if (it->type == SHT_NOBITS || strcmp(elf_section_name(elf, it), name) != 0 ||
		    (!best_is_type && it->size <= best->size) || has_type_unit(elf, it))
			continue;
		best = it;
		best_is_type = false;
	}
	return best;
}

bool dwarf_is_in(const struct elf_file *elf)
{
	return dwarf_elf_section(elf, "info") != NULL;
}

/* A section that cannot be had is an empty one. */
static int section_open(const struct elf_file *elf, const struct elf_section *section,
			struct dwarf_section *ret)
{
	struct elf_bytes bytes = {0};
	size_t blocks;
	int r;

	if (elf->fd < 0 || is_packed(elf, section)) {
		r = elf_section_bytes(elf, section, &bytes);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
		*ret = (struct dwarf_section){
			.data = bytes.data, .size = bytes.size, .owned = bytes.owned};
		return 0;
	}
	if (section->size == 0 || section->offset > elf->size ||
	    section->size > elf->size - section->offset)
		return 0;
	blocks = (section->size - 1) / BLOCK_BYTES + 1;
	ret->loaded = calloc(blocks, 1);
	ret->map = mmap(NULL, blocks * BLOCK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!ret->loaded || ret->map == MAP_FAILED) {
		free(ret->loaded);
		if (ret->map != MAP_FAILED)
			munmap(ret->map, blocks * BLOCK_BYTES);
		*ret = (struct dwarf_section){0};
		return -ENOMEM;
	}
	ret->data = ret->map;
	ret->size = section->size;
	ret->offset = section->offset;
	return 0;
}

int dwarf_file_init(struct dwarf_file *file, struct dwarf *dwarf, struct elf_file *elf,
		    const char *path, bool dwo)
{
	char name[64];
	int r = 0;

	*file = (struct dwarf_file){.dwarf = dwarf, .elf = *elf, .split = dwo};
	*elf = (struct elf_file){.fd = -1};
	if (path) {
		file->path = strdup(path);
		if (!file->path)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < DWARF_SECTIONS && r == 0; i++) {
		bool in_split = dwo && i != DWARF_CU_INDEX;
		const struct elf_section *section;

		snprintf(name, sizeof(name), "%s%s", section_names[i], in_split ? ".dwo" : "");
		section = in_split && i == DWARF_INFO ? split_info(&file->elf)
						      : dwarf_elf_section(&file->elf, name);
		if (section)
			r = section_open(&file->elf, section, &file->sections[i]);
	}
	return r;
}

static void section_close(struct dwarf_section *section)
{
	if (section->map)
		munmap(section->map, ((section->size - 1) / BLOCK_BYTES + 1) * BLOCK_BYTES);
	free(section->loaded);
	free(section->owned);
}

void dwarf_file_fini(struct dwarf_file *file)
{
	for (unsigned i = 0; i < DWARF_SECTIONS; i++)
		section_close(&file->sections[i]);
	vec_for_each(&file->units, unit) {
		vec_fini(&unit->functions);
		vec_fini(&unit->pieces);
	}
	vec_for_each(&file->abbrevs, table) {
		vec_fini(&table->entries);
		vec_fini(&table->attrs);
	}
	vec_for_each(&file->lines, lines) {
		vec_fini(&lines->rows);
		vec_fini(&lines->sequences);
		vec_fini(&lines->dirs);
		vec_fini(&lines->files);
	}
	vec_fini(&file->units);
	vec_fini(&file->abbrevs);
	vec_fini(&file->lines);
	u64_map_fini(&file->abbrev_map);
	u64_map_fini(&file->line_map);
	u64_map_fini(&file->name_map);
	elf_close(&file->elf);
	free(file->path);
}

/* What cannot be read (the file shrank) stays zero. */
static void load(struct dwarf_file *file, struct dwarf_section *section, size_t offset, size_t end)
{
	size_t block = offset / BLOCK_BYTES, last = (end - 1) / BLOCK_BYTES;

	while (block <= last) {
		size_t first, bytes;

		if (section->loaded[block]) {
			block++;
			continue;
		}
		first = block;
		while (block <= last && !section->loaded[block])
			section->loaded[block++] = 1;
		bytes = MIN(block * BLOCK_BYTES, section->size) - first * BLOCK_BYTES;
		(void)fd_pread_all(file->elf.fd, section->map + first * BLOCK_BYTES, bytes,
				   section->offset + first * BLOCK_BYTES);
	}
}

struct reader dwarf_reader(struct dwarf_file *file, enum dwarf_section_id id, uint64_t offset,
			   uint64_t len)
{
	struct dwarf_section *section = &file->sections[id];
	struct reader r = {.swap = file->elf.swap, .failed = true};
	size_t end;

	if (offset >= section->size)
		return r;
	end = offset + MIN(len, section->size - offset);
	if (section->map && end > offset)
		load(file, section, offset, end);
	r = reader_make(section->data, end, file->elf.swap);
	r.pos = offset;
	return r;
}

const char *dwarf_string(struct dwarf_file *file, enum dwarf_section_id id, uint64_t offset)
{
	struct dwarf_section *section = &file->sections[id];

	if (offset >= section->size)
		return NULL;
	for (size_t at = offset; at < section->size;) {
		size_t end = MIN((at / BLOCK_BYTES + 1) * BLOCK_BYTES, section->size);

		if (section->map)
			load(file, section, at, end);
		if (memchr(section->data + at, 0, end - at))
			return (const char *)section->data + offset;
		at = end;
	}
	return NULL;
}

void dwarf_forget(struct dwarf_file *file, uint64_t offset, uint64_t end)
{
	struct dwarf_section *section = &file->sections[DWARF_INFO];
	size_t first = (offset + BLOCK_BYTES - 1) / BLOCK_BYTES, last = end / BLOCK_BYTES;

	if (!section->map || last <= first)
		return;
	memset(section->loaded + first, 0, last - first);
	madvise(section->map + first * BLOCK_BYTES, (last - first) * BLOCK_BYTES, MADV_DONTNEED);
}
