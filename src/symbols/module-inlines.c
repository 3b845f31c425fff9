/* A module's debug information: in the object, or in its separate debug file; else Go's table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarf.h"
#include "symbols/module-internal.h"

/* False: there is none. */
static bool open_debug(const struct module *module, struct elf_file *ret, char **ret_path,
		       uint64_t *ret_bias)
{
	struct elf_file object, debug;
	char *path;

	if (elf_open(module->file, &object, NULL) < 0)
		return false;
	if (dwarf_is_in(&object)) {
		path = strdup(module->file);
		if (!path) {
			elf_close(&object);
			return false;
		}
		*ret = object;
		*ret_path = path;
		*ret_bias = 0;
		return true;
	}
	if (locate_debug(&module->owner->places, &object, module->file, &debug, &path) < 0) {
		elf_close(&object);
		return false;
	}
	*ret_bias = module_debug_bias(&object, &debug);
	elf_close(&object);
	if (!dwarf_is_in(&debug)) {
		elf_close(&debug);
		free(path);
		return false;
	}
	*ret = debug;
	*ret_path = path;
	return true;
}

static int open_dwarf(struct module *module)
{
	struct dwarf_options options = {.debug_dirs = module->owner->places.debug_dirs,
					.root = module->owner->places.root,
					.no_demangle = module->owner->no_demangle};
	struct elf_file elf;
	char *path;

	module->dwarf_tried = true;
	if (!module->file || module->kind != MODULE_ELF ||
	    !open_debug(module, &elf, &path, &module->dwarf_bias))
		return 0;
	options.path = arena_strndup(&module->inline_texts, path, strlen(path));
	if (module->names && options.path)
		name_cache_source(module->names, options.path);
	free(path);
	return dwarf_new(&options, &elf, &module->inline_texts, &module->dwarf);
}

static uint64_t first_loaded(const struct module *module)
{
	for (uint32_t i = 0; i < module->segments.nsegments; i++)
		if (module->segments.segments[i].type == PT_LOAD)
			return module->segments.segments[i].vaddr;
	return 0;
}

static void open_names(struct module *module)
{
	const struct symbols *owner = module->owner;

	module->names_tried = true;
	if (module->kind == MODULE_ELF && module->file && !owner->no_demangle)
		module->names =
			name_cache_open(owner->cache_dir, &module->build_id, first_loaded(module));
}

/* What Go's own table knows, of code without debug information. */
static int find_go(struct module *module, uint64_t address, struct inline_frame *frames, size_t max)
{
	struct elf_file elf;
	int r = 0;

	if (!module->go_tried && module->file && module->kind == MODULE_ELF &&
	    elf_open(module->file, &elf, NULL) == 0)
		r = go_lines_open(&elf, &module->inline_texts, &module->go);
	module->go_tried = true;
	return r == 0 && module->go ? go_lines_find(module->go, address, frames, max) : r;
}

static int find_inlines(struct module *module, uint64_t address, struct inline_frame *frames,
			size_t max)
{
	int r = 0;

	if (!module->dwarf_tried)
		r = open_dwarf(module);
	if (r == 0 && module->dwarf)
		r = dwarf_inlines(module->dwarf, address - module->dwarf_bias, frames, max);
	if (r == 0)
		r = find_go(module, address, frames, max);
	/* An answer that fills its place may have been longer; one without all files may get
	 * better. */
	if (r >= 0 && (size_t)r < max && module->names && module->dwarf &&
	    !dwarf_incomplete(module->dwarf))
		name_cache_add(module->names, address, frames, (size_t)r);
	return r;
}

/* A compiler tells lines, and has one function for all of a piece of code. */
static int jit_line(const struct module *module, uint64_t address, struct inline_frame *ret)
{
	const struct jitdump_code *code;
	const struct jitdump_line *line = jitdump_find_line(&module->jit, address, &code);

	if (!line)
		return 0;
	*ret = (struct inline_frame){.function = code->name,
				     .raw_function = code->name,
				     .file = line->file,
				     .line = line->line};
	return 1;
}

int module_inlines(struct module *module, uint64_t address, struct inline_frame *frames, size_t max)
{
	int r = -ENOENT;

	if (module->kind == MODULE_JITDUMP)
		return max > 0 ? jit_line(module, address, frames) : 0;
	if (module->segments.nsegments > 0 &&
	    !elf_offset_to_vaddr(&module->segments, address, &address))
		return 0;
	pthread_mutex_lock(&module->inline_lock);
	if (!module->names_tried)
		open_names(module);
	if (module->names)
		r = name_cache_find(module->names, address, frames, max);
	if (r == -ENOENT)
		r = find_inlines(module, address, frames, max);
	pthread_mutex_unlock(&module->inline_lock);
	return r;
}

void module_release_inlines(struct module *module)
{
	pthread_mutex_lock(&module->inline_lock);
	if (module->names)
		name_cache_save(module->names);
	dwarf_free(module->dwarf);
	module->dwarf = NULL;
	module->dwarf_tried = false;
	go_lines_free(module->go);
	module->go = NULL;
	module->go_tried = false;
	pthread_mutex_unlock(&module->inline_lock);
}
