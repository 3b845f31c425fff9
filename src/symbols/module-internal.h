/* A module and the cache it lives in, for the files that load modules. */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/util.h"
#include "base/vec.h"
#include "symbols/elf-file-internal.h"
#include "symbols/gopclntab.h"
#include "symbols/jitdump.h"
#include "symbols/locate-internal.h"
#include "symbols/name-cache-internal.h"
#include "symbols/symtab-internal.h"

struct module {
	enum module_kind kind;
	struct symtab tab;
	struct elf_file segments; /* ELF and VDSO: program headers only, closed */
	char *file, *status;
	char *identity;       /* what makes two modules one */
	uint64_t text_offset; /* of a relocatable object: where .text lies in the file */
	bool stripped;
	size_t bad_lines;
	struct jitdump jit; /* JITDUMP */
	char *jit_text;     /* what it was parsed from; NULL: an image */

	const struct symbols *owner;
	pthread_mutex_t inline_lock; /* of the rest */
	struct dwarf *dwarf;         /* NULL: none, or not opened */
	uint64_t dwarf_bias;         /* from its addresses to the object's */
	struct arena inline_texts;
	bool dwarf_tried;
	struct go_lines *go; /* NULL: none, or not opened */
	bool go_tried;
	struct build_id build_id; /* of the file */
	struct name_cache *names; /* NULL: none, or not opened */
	bool names_tried;
};

struct key {
	char *text;
	struct module *module;
};

struct symbols {
	pthread_mutex_t lock;
	struct places places;
	char *root, *home;
	char **dirs;
	bool no_demangle;
	char *cache_dir;
	VEC(struct module *) modules;
	VEC(struct key) keys;
	struct hash_index index; /* of keys */
};

/* Replaces the status line. */
void module_set_status(struct module *module, const char *fmt, ...) PRINTF(2, 3);
/* Makes the module's table of what the builder collected. */
int module_finish(const struct symbols *symbols, struct module *module,
		  struct symtab_builder *builder, enum symtab_policy policy);

/* Prelink moves an object after its debug file was made: by how much. */
uint64_t module_debug_bias(const struct elf_file *object, const struct elf_file *debug);

/* Loaders: 0 with symbols or a status, or -ENOMEM. */
int module_load_kernel(const struct symbols *symbols, const struct module_ref *ref,
		       struct module *module);
int module_load_perf_map(const struct symbols *symbols, const struct module_ref *ref,
			 struct module *module);
int module_load_jitdump(const struct symbols *symbols, const struct module_ref *ref,
			struct module *module);
