/*
 * The cache of modules. A module is loaded outside the lock, so that threads load different modules
 * at the same time; two that load the same one at once keep the first. Modules that turn out to be
 * one file (the same library seen by many processes) or to fail in the same words are one module.
 *
 * Invariants: a struct module never changes once it is in the cache (but for demangled names), and
 * lives as long as the cache.
 */
#include "symbols/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/util.h"
#include "symbols/elf-symbols-internal.h"
#include "symbols/gopclntab.h"
#include "symbols/locate-internal.h"
#include "symbols/module-internal.h"
#include "symbols/symtab-internal.h"

#define MAPS_MAX (64u << 20)

static void module_free(struct module *module)
{
	if (!module)
		return;
	module_release_inlines(module);
	name_cache_free(module->names);
	arena_fini(&module->inline_texts);
	pthread_mutex_destroy(&module->inline_lock);
	symtab_fini(&module->tab);
	jitdump_fini(&module->jit);
	free(module->jit_text);
	elf_close(&module->segments);
	free(module->file);
	free(module->status);
	free(module->identity);
	free(module);
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	vec_for_each(&symbols->modules, module)
		module_free(*module);
	vec_for_each(&symbols->keys, key)
		free(key->text);
	vec_fini(&symbols->modules);
	vec_fini(&symbols->keys);
	hash_index_fini(&symbols->index);
	for (size_t i = 0; symbols->dirs && symbols->dirs[i]; i++)
		free(symbols->dirs[i]);
	free(symbols->dirs);
	free(symbols->root);
	free(symbols->home);
	free(symbols->cache_dir);
	debuginfod_free(symbols->places.servers);
	pthread_mutex_destroy(&symbols->lock);
	free(symbols);
}

/* A leading "~" of a debug directory is the home directory. */
static char *expand_dir(const struct symbols *symbols, const char *dir)
{
	char *path = NULL;

	if (dir[0] != '~' || dir[1] != '/')
		return strdup(dir);
	if (asprintf(&path, "%s%s", symbols->home, dir + 1) < 0)
		return NULL;
	return path;
}

int symbols_new(const struct symbols_options *options, struct symbols **ret)
{
	static const char *const default_dirs[] = {"/usr/lib/debug", "~/.debug", NULL};
	const char *const *dirs =
		options && options->debug_dirs ? options->debug_dirs : default_dirs;
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	const char *home = getenv("HOME");
	size_t n = 0;

	if (!symbols)
		return -ENOMEM;
	pthread_mutex_init(&symbols->lock, NULL);
	while (dirs[n])
		n++;
	symbols->root = strdup(options && options->root ? options->root : "");
	symbols->home = strdup(home ? home : "");
	symbols->dirs = calloc(n + 1, sizeof(*symbols->dirs));
	if (options && options->cache_dir)
		symbols->cache_dir = strdup(options->cache_dir);
	if (!symbols->root || !symbols->home || !symbols->dirs) {
		symbols_free(symbols);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		symbols->dirs[i] = expand_dir(symbols, dirs[i]);
		if (!symbols->dirs[i]) {
			symbols_free(symbols);
			return -ENOMEM;
		}
	}
	symbols->no_demangle = options && options->no_demangle;
	symbols->places =
		(struct places){symbols->root, (const char *const *)symbols->dirs, symbols->home,
				debuginfod_new(options ? options->debuginfod_seconds : 0)};
	*ret = symbols;
	return 0;
}

void module_set_status(struct module *module, const char *fmt, ...)
{
	va_list args;

	free(module->status);
	va_start(args, fmt);
	if (vasprintf(&module->status, fmt, args) < 0)
		module->status = NULL;
	va_end(args);
}

int module_finish(const struct symbols *symbols, struct module *module,
		  struct symtab_builder *builder, enum symtab_policy policy)
{
	int r = symtab_finish(builder, policy, &module->tab);

	module->tab.no_demangle = symbols->no_demangle;
	return r;
}

/* Prelink moves an object after its debug file was made: the first loaded segments tell by how
 * much. */
uint64_t module_debug_bias(const struct elf_file *object, const struct elf_file *debug)
{
	uint64_t first[2] = {0};
	const struct elf_file *files[2] = {object, debug};

	for (int f = 0; f < 2; f++) {
		uint32_t i = 0;

		while (i < files[f]->nsegments && files[f]->segments[i].type != PT_LOAD)
			i++;
		if (i == files[f]->nsegments)
			return 0;
		first[f] = files[f]->segments[i].vaddr;
	}
	return first[0] - first[1];
}

/* All that names code in an object; debug may be NULL. */
static int load_elf_symbols(const struct elf_file *elf, const struct elf_file *debug,
			    struct symtab_builder *builder)
{
	struct elf_file mini = {.fd = -1};
	bool found = false;
	int r = elf_load_symtab(elf, 0, builder, &found);

	if (r == 0 && debug)
		r = elf_load_symtab(debug, module_debug_bias(elf, debug), builder, NULL);
	if (r == 0 && !found && !debug && elf_debugdata(elf, &mini) == 0) {
		r = elf_load_symtab(&mini, module_debug_bias(elf, &mini), builder, NULL);
		/* The names lie in the unpacked image. */
		if (r == 0)
			r = symtab_builder_own(builder, TAKE_PTR(mini.owned_image));
		elf_close(&mini);
	}
	/* Go's own table has the names that strip took. */
	if (r == 0 && !found && !debug)
		r = elf_load_go(elf, builder);
	if (r == 0)
		r = elf_load_dynsym(elf, 0, builder);
	return r == 0 ? elf_load_plt(elf, builder) : r;
}

/* Keeps the program headers, drops the rest. */
static void keep_segments(struct module *module, struct elf_file *elf)
{
	module->segments =
		(struct elf_file){.fd = -1, .segments = elf->segments, .nsegments = elf->nsegments};
	elf->segments = NULL;
	elf->nsegments = 0;
}

static bool has_symtab(const struct elf_file *elf)
{
	for (uint32_t i = 1; i < elf->nsections; i++)
		if (elf->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

static int load_opened_elf(const struct symbols *symbols, struct module *module,
			   struct elf_file *elf)
{
	struct symtab_builder builder = {0};
	struct elf_file debug = {.fd = -1};
	char *debug_path = NULL;
	bool separate;
	int r;

	separate = module->file && !has_symtab(elf) &&
		   locate_debug(&symbols->places, elf, module->file, &debug, &debug_path) == 0;
	r = load_elf_symbols(elf, separate ? &debug : NULL, &builder);
	if (r == 0)
		r = module_finish(symbols, module, &builder, SYMTAB_INNERMOST);
	if (r == 0 && module->tab.count == 0)
		module_set_status(
			module,
			"%s: no symbols, and no debug file by build id or debuglink: install "
			"its debug package",
			module->file ? module->file : "[vdso]");
	module->stripped = module->file && !separate && !has_symtab(elf) &&
			   !elf_section_named(elf, ".gnu_debugdata") && !elf_has_go(elf);
	if (elf->type == ET_REL && elf_section_named(elf, ".text"))
		module->text_offset = elf_section_named(elf, ".text")->offset;
	keep_segments(module, elf);
	symtab_builder_fini(&builder);
	elf_close(&debug);
	free(debug_path);
	return r;
}

static int load_elf(const struct symbols *symbols, const struct module_ref *ref,
		    struct module *module)
{
	struct elf_file elf = {.fd = -1};
	struct str why = {0};
	struct stat st;
	int r = locate_object(&symbols->places, ref, &elf, &module->file, &why);

	if (r == 0) {
		if (fstat(elf.fd, &st) == 0 &&
		    asprintf(&module->identity, "file %llx %llx %llx",
			     (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			     (unsigned long long)st.st_mtime) < 0)
			module->identity = NULL;
		(void)elf_build_id(&elf, &module->build_id);
		r = load_opened_elf(symbols, module, &elf);
		elf_close(&elf);
	} else if (r != -ENOMEM) {
		module_set_status(module, "%s", str_text(&why));
		r = 0;
	}
	str_fini(&why);
	return r;
}

/* The vdso of this process: the size of its mapping is told by maps alone. */
const void *symbols_own_vdso(size_t *ret_size)
{
	unsigned long start = getauxval(AT_SYSINFO_EHDR);
	CLEANUP_FREE char *text = NULL;
	size_t size;
	char *line;

	if (!start || file_read("/proc/self/maps", MAPS_MAX, &text, &size, NULL) < 0)
		return NULL;
	line = strstr(text, "[vdso]");
	while (line && line > text && line[-1] != '\n')
		line--;
	unsigned long long low, high;

	if (!line || sscanf(line, "%llx-%llx", &low, &high) != 2 || low != start ||
	    high - low > VDSO_MAX)
		return NULL;
	*ret_size = (size_t)(high - low);
	return (const void *)start; /* NOLINT(performance-no-int-to-ptr): the kernel put it there */
}

static int load_vdso(const struct symbols *symbols, const struct module_ref *ref,
		     struct module *module)
{
	struct elf_file elf = {.fd = -1};
	const void *image = ref->image;
	size_t size = ref->image_size;
	struct build_id have;
	int r;

	if (!image)
		image = symbols_own_vdso(&size);
	if (!image || elf_open_image(image, size, NULL, &elf, NULL) < 0) {
		module_set_status(module, image ? "[vdso]: the saved image is not an ELF file"
						: "[vdso]: this process has none");
		return 0;
	}
	if (!ref->image && ref->build_id.size &&
	    (elf_build_id(&elf, &have) < 0 || !build_id_equal(&have, &ref->build_id))) {
		module_set_status(module,
				  "[vdso]: this kernel's differs from the recorded one, and the "
				  "recording holds no image");
		elf_close(&elf);
		return 0;
	}
	r = load_opened_elf(symbols, module, &elf);
	elf_close(&elf);
	return r;
}

static int module_load(const struct symbols *symbols, const struct module_ref *ref,
		       struct module **ret)
{
	struct module *module = calloc(1, sizeof(*module));
	int r = 0;

	if (!module)
		return -ENOMEM;
	module->kind = ref->kind;
	module->owner = symbols;
	pthread_mutex_init(&module->inline_lock, NULL);
	module->segments.fd = -1;
	switch (ref->kind) {
	case MODULE_ELF:
		r = load_elf(symbols, ref, module);
		break;
	case MODULE_KERNEL:
		r = module_load_kernel(symbols, ref, module);
		break;
	case MODULE_VDSO:
		r = load_vdso(symbols, ref, module);
		break;
	case MODULE_PERF_MAP:
		r = module_load_perf_map(symbols, ref, module);
		break;
	case MODULE_JITDUMP:
		r = module_load_jitdump(symbols, ref, module);
		break;
	}
	if (r == -ENOMEM) {
		module_free(module);
		return r;
	}
	if (r < 0 && !module->status)
		module_set_status(module, "%s: %s", ref->path ? ref->path : "object",
				  strerrordesc_np(-r));
	if (!module->identity && module->status && ref->kind == MODULE_ELF &&
	    asprintf(&module->identity, "status %s", module->status) < 0)
		module->identity = NULL;
	*ret = module;
	return 0;
}

static bool key_equal(const void *owner, uint32_t id, const void *key)
{
	const struct symbols *symbols = owner;

	return strcmp(symbols->keys.data[id].text, key) == 0;
}

static struct module *find_key(const struct symbols *symbols, const char *text)
{
	uint32_t id = hash_index_find(&symbols->index, hash_bytes(text, strlen(text)), key_equal,
				      symbols, text);

	return id == HASH_NONE ? NULL : symbols->keys.data[id].module;
}

static int add_key(struct symbols *symbols, const char *text, struct module *module)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	if (vec_push(&symbols->keys, ((struct key){copy, module})) < 0) {
		free(copy);
		return -ENOMEM;
	}
	if (hash_index_add(&symbols->index, hash_bytes(copy, strlen(copy)),
			   (uint32_t)(symbols->keys.len - 1)) < 0) {
		free(copy);
		symbols->keys.len--;
		return -ENOMEM;
	}
	return 0;
}

/* Puts a loaded module into the cache, unless one like it is there; then that is used. Lock held.
 */
static int adopt(struct symbols *symbols, const char *key, struct module *module,
		 struct module **ret)
{
	struct module *have = find_key(symbols, key);
	int r;

	if (have) {
		module_free(module);
		*ret = have;
		return 0;
	}
	have = module->identity ? find_key(symbols, module->identity) : NULL;
	if (have) {
		module_free(module);
		module = have;
	} else {
		if (vec_push(&symbols->modules, module) < 0) {
			module_free(module);
			return -ENOMEM;
		}
		if (module->identity && (r = add_key(symbols, module->identity, module)) < 0)
			return r;
	}
	r = add_key(symbols, key, module);
	if (r == 0)
		*ret = module;
	return r;
}

int symbols_module(struct symbols *symbols, const struct module_ref *ref, struct module **ret)
{
	char hex[2 * BUILD_ID_MAX + 1];
	struct module *module;
	struct str key = {0};
	int r;

	build_id_hex(&ref->build_id, hex);
	str_printf(&key, "ref %d %d %s %p %zu %s %s", (int)ref->kind, ref->pid, hex, ref->image,
		   ref->image_size, ref->path ? ref->path : "", ref->jitdump ? ref->jitdump : "");
	r = str_status(&key);
	if (r < 0) {
		str_fini(&key);
		return r;
	}
	pthread_mutex_lock(&symbols->lock);
	module = find_key(symbols, str_text(&key));
	pthread_mutex_unlock(&symbols->lock);
	if (module) {
		*ret = module;
	} else {
		r = module_load(symbols, ref, &module);
		if (r == 0) {
			pthread_mutex_lock(&symbols->lock);
			r = adopt(symbols, str_text(&key), module, ret);
			pthread_mutex_unlock(&symbols->lock);
		}
	}
	str_fini(&key);
	return r;
}

bool module_lookup(const struct module *module, uint64_t address, struct symbol *ret)
{
	if (module->segments.nsegments > 0 &&
	    !elf_offset_to_vaddr(&module->segments, address, &address))
		return false;
	return symtab_lookup(&module->tab, address, ret);
}

const char *module_status(const struct module *module)
{
	return module->tab.count ? NULL : module->status ? module->status : "out of memory";
}

bool module_stripped(const struct module *module)
{
	return module->stripped;
}

size_t module_symbol_count(const struct module *module)
{
	return module->tab.symbols;
}

size_t module_bad_lines(const struct module *module)
{
	return module->bad_lines;
}

uint64_t module_text_offset(const struct module *module)
{
	return module->text_offset;
}
