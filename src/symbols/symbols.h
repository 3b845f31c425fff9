/*
 * Names for addresses. A struct symbols is a cache of modules (ELF files, the kernel, perf maps);
 * each module is loaded once, lazily, and answers lookups by address.
 *
 * A module that cannot be loaded is still a module: it names nothing and says why (module_status),
 * once. A frame is never dropped; the caller shows object+0xoffset.
 *
 * Files are looked for in this order, and used only when their build id is the one asked for (an
 * unknown build id accepts anything): the path inside the process's root (/proc/PID/root, then
 * map_files for deleted files), the path itself, the build-id caches and debug directories.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define BUILD_ID_MAX 20

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	uint8_t size; /* 0: unknown */
};

struct symbols_options {
	const char *root; /* prefix of every path that is opened; NULL or "": none */
	const char *const
		*debug_dirs; /* NULL-terminated; NULL: /usr/lib/debug and ~/.debug (perf's cache) */
	const char *cache_dir; /* where names found in debug information are kept; NULL: nowhere */
	unsigned debuginfod_seconds; /* how long servers may be waited for altogether; 0: not asked
				      */
	bool no_demangle;
};

enum module_kind {
	MODULE_ELF,    /* addresses are file offsets (ip - map start + map pgoff) */
	MODULE_KERNEL, /* addresses are as in kallsyms; covers modules and BPF programs listed there
			*/
	MODULE_VDSO, /* this machine's vdso image, or a saved one; addresses are offsets into it */
	MODULE_PERF_MAP, /* /tmp/perf-PID.map and the process's jitdump; addresses are those of the
			    process */
	MODULE_JITDUMP,  /* a jitdump file; addresses are those of its own space (jitdump.h) */
};

/* What a recording knows about an object. Strings are borrowed for the call. */
struct module_ref {
	enum module_kind kind;
	const char *path; /* as mapped; " (deleted)" is understood. KERNEL: a kallsyms file, NULL:
			     /proc/kallsyms */
	struct build_id build_id;
	int pid;             /* a process that mapped it, 0 unknown */
	const char *jitdump; /* PERF_MAP: path of the jitdump the process mapped, NULL: none */
	const void *image;   /* KERNEL: kallsyms text; VDSO: the ELF image; NULL: none. Must outlive
				the module. */
	size_t image_size;
};

/* A symbol that covers an address. Texts live as long as the struct symbols. */
struct symbol {
	const char *name;     /* demangled; "name@plt" for PLT stubs */
	const char *raw_name; /* as in the object */
	const char
		*object; /* KERNEL: "[module]" or "[bpf]" as in kallsyms; NULL: the object itself */
	uint64_t start, size; /* in the module's own addresses (ELF: virtual); a label without a
				 size, and every kernel symbol, reaches to its successor */
};

struct symbols;
struct module;

int symbols_new(const struct symbols_options *options, struct symbols **ret);
void symbols_free(struct symbols *symbols);

/* The module for a reference, loaded now; equal references give the same module. Fails only with
 * -ENOMEM. */
int symbols_module(struct symbols *symbols, const struct module_ref *ref, struct module **ret);

/* True and *ret when a symbol covers the address. Thread safe on a loaded module. */
bool module_lookup(const struct module *module, uint64_t address, struct symbol *ret);

/* One of the functions that an address belongs to, and the place in it. */
struct inline_frame {
	const char *function;     /* demangled; NULL unknown */
	const char *raw_function; /* as in the debug information */
	const char *file;         /* source file, NULL unknown */
	uint32_t line, column;    /* 0 unknown */
	bool inlined;             /* into the next frame */
};

/*
 * The functions that are inlined at an address, innermost first; the last one has the code. The
 * first frame's line is the address's own, the others' are those of the calls. At most max frames;
 * of more the outermost one and max - 1 innermost ones. 0 when there is no debug information for
 * the address. -ENOMEM. Debug information is opened by the first call. Thread safe: threads on one
 * module wait for each other. Texts live as long as the struct symbols.
 */
int module_inlines(struct module *module, uint64_t address, struct inline_frame *frames,
		   size_t max);
/* Closes the debug information and frees what was decoded; a later call opens it again. */
void module_release_inlines(struct module *module);

/* NULL when there are symbols, else one line: what is missing and what mends it. */
const char *module_status(const struct module *module);
/* Only what an ELF file exports has names: it has no symbol table, and no debug file was found. */
bool module_stripped(const struct module *module);
/* Number of symbols. */
size_t module_symbol_count(const struct module *module);
/* Lines of a perf map or kallsyms that could not be understood. */
size_t module_bad_lines(const struct module *module);

/* No vdso is larger. */
#define VDSO_MAX (64u << 10)
/* The vdso image of this process, NULL when there is none. */
const void *symbols_own_vdso(size_t *ret_size);

/* Where the code of a relocatable object (a kernel module's file) begins in the file; 0 for others.
 */
uint64_t module_text_offset(const struct module *module);

/* True for names that compilers give to jitdump files: ".../jit-PID.dump". */
bool jitdump_is_path(const char *path);

/* The build id of an ELF file or of a notes section's bytes; -ENOENT when it has none. */
int build_id_read(const char *path, struct build_id *ret, struct err *err);
int build_id_from_notes(const void *notes, size_t size, struct build_id *ret);
/* The same; swap: the notes are in the other byte order. */
int build_id_in_notes(const void *notes, size_t size, bool swap, struct build_id *ret);
/* Trailing zero bytes do not count (recordings pad with them). */
bool build_id_equal(const struct build_id *a, const struct build_id *b);
void build_id_hex(const struct build_id *id, char out[2 * BUILD_ID_MAX + 1]);
int build_id_parse(const char *hex, struct build_id *ret);

/* Demangles a C++, Rust (v0, legacy) or D name; NULL when it is none of these or damaged. free()
 * it. */
char *demangle(const char *raw_name);
