/* Parts in other files: split units (.dwo, .dwp) and the supplement that dwz makes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"
#include "symbols/elf-symbols-internal.h"

#define OTHERS_MAX 4096

static struct dwarf_file *open_other(struct dwarf *dwarf, const char *path, bool dwo,
				     const struct build_id *id)
{
	struct dwarf_file *file;
	struct elf_file elf;
	struct build_id have;

	if (dwarf->others.len >= OTHERS_MAX || elf_open(path, &elf, NULL) < 0)
		return NULL;
	if (!dwarf_elf_section(&elf, dwo ? "info.dwo" : "info") ||
	    (id && (elf_build_id(&elf, &have) < 0 || !build_id_equal(id, &have)))) {
		elf_close(&elf);
		return NULL;
	}
	file = calloc(1, sizeof(*file));
	if (!file) {
		elf_close(&elf);
		return NULL;
	}
	if (dwarf_file_init(file, dwarf, &elf, path, dwo) < 0 || dwarf_units_scan(file) < 0 ||
	    vec_push(&dwarf->others, file) < 0) {
		dwarf_file_fini(file);
		free(file);
		return NULL;
	}
	return file;
}

static const char *root_of(const struct dwarf *dwarf)
{
	return dwarf->options.root ? dwarf->options.root : "";
}

/* Beside the object, with the directories of path or without. */
static struct dwarf_file *open_beside(struct dwarf *dwarf, const char *path, bool dwo,
				      const struct build_id *id)
{
	const char *own = dwarf->options.path, *slash = own ? strrchr(own, '/') : NULL;
	const char *base = strrchr(path, '/');
	struct dwarf_file *file = NULL;
	struct str full = {0};

	if (!own)
		return NULL;
	for (int pass = 0; pass < 2 && !file; pass++) {
		const char *name = pass && base ? base + 1 : path;

		if (name[0] == '/')
			continue;
		str_clear(&full);
		if (slash)
			str_append(&full, own, (size_t)(slash - own) + 1);
		str_puts(&full, name);
		if (str_status(&full) == 0)
			file = open_other(dwarf, str_text(&full), dwo, id);
	}
	str_fini(&full);
	return file;
}

static struct dwarf_file *open_named(struct dwarf *dwarf, const char *dir, const char *path,
				     bool dwo, const struct build_id *id)
{
	struct dwarf_file *file = NULL;
	struct str full = {0};

	if (!dwarf->options.path)
		return NULL;
	str_puts(&full, root_of(dwarf));
	if (path[0] != '/' && dir)
		str_printf(&full, "%s/", dir);
	str_puts(&full, path);
	if (str_status(&full) == 0 && (path[0] == '/' || dir))
		file = open_other(dwarf, str_text(&full), dwo, id);
	str_fini(&full);
	return file ? file : open_beside(dwarf, path, dwo, id);
}

static bool unit_has_id(struct dwarf_file *file, struct dwarf_unit *unit, uint64_t id)
{
	if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
		return false;
	if (unit->version < 5 && !file->sections[DWARF_CU_INDEX].size)
		(void)dwarf_unit_read_root(file, unit, NULL);
	return unit->dwo_id == id;
}

static bool adopt(struct dwarf_file *main, struct dwarf_unit *skeleton, struct dwarf_file *split)
{
	for (size_t i = 0; split && i < split->units.len; i++) {
		struct dwarf_unit *unit = &split->units.data[i];

		if (!unit_has_id(split, unit, skeleton->dwo_id))
			continue;
		/* Two skeletons with one part: the first has it. */
		if (unit->skeleton && unit->skeleton != skeleton)
			return false;
		unit->skeleton = skeleton;
		unit->main_file = main;
		skeleton->split_file = split;
		skeleton->split_unit = (uint32_t)i;
		return true;
	}
	return false;
}

struct dwarf_unit *dwarf_unit_whole(struct dwarf_file *file, struct dwarf_unit *unit,
				    struct dwarf_file **ret_file)
{
	struct dwarf *dwarf = file->dwarf;
	char path[4096];

	*ret_file = file;
	if (!unit->split_tried && unit->dwo_name && dwarf->options.path) {
		unit->split_tried = true;
		if (!dwarf->package_tried) {
			dwarf->package_tried = true;
			snprintf(path, sizeof(path), "%s.dwp", dwarf->options.path);
			dwarf->package = open_other(dwarf, path, true, NULL);
		}
		if (!adopt(file, unit, dwarf->package))
			dwarf->incomplete |= !adopt(
				file, unit,
				open_named(dwarf, unit->comp_dir, unit->dwo_name, true, NULL));
	}
	if (!unit->split_file)
		return unit;
	*ret_file = unit->split_file;
	return &unit->split_file->units.data[unit->split_unit];
}

static struct dwarf_file *supplement_by_id(struct dwarf *dwarf, const struct build_id *id)
{
	const char *const *dirs = dwarf->options.debug_dirs;
	struct dwarf_file *file = NULL;
	char hex[2 * BUILD_ID_MAX + 1], path[4096];

	build_id_hex(id, hex);
	for (size_t i = 0; dirs && dirs[i] && !file && id->size > 1; i++) {
		snprintf(path, sizeof(path), "%s%s/.build-id/%.2s/%s.debug", root_of(dwarf),
			 dirs[i], hex, hex + 2);
		file = open_other(dwarf, path, false, id);
	}
	return file;
}

struct dwarf_file *dwarf_supplement(struct dwarf_file *file)
{
	struct dwarf *dwarf = file->dwarf;
	const struct elf_section *section;
	struct elf_bytes bytes = {0};
	struct build_id id = {0};
	const char *path, *slash;
	struct reader r;

	if (file->supplement_tried || !file->path)
		return file->supplement;
	file->supplement_tried = true;
	section = elf_section_named(&file->elf, ".gnu_debugaltlink");
	if (!section || elf_section_bytes(&file->elf, section, &bytes) < 0)
		return NULL;
	r = elf_reader(&file->elf, &bytes);
	path = reader_cstr(&r);
	if (path && reader_left(&r) <= BUILD_ID_MAX) {
		char dir[4096];

		id.size = (uint8_t)reader_left(&r);
		memcpy(id.bytes, r.data + r.pos, id.size);
		slash = strrchr(file->path, '/');
		snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - file->path) : 1,
			 slash ? file->path : ".");
		if (path[0] == '/' || !root_of(dwarf)[0])
			file->supplement = open_named(dwarf, dir, path, false, &id);
		if (!file->supplement)
			file->supplement = supplement_by_id(dwarf, &id);
	}
	dwarf->incomplete |= !file->supplement;
	elf_bytes_fini(&bytes);
	return file->supplement;
}
