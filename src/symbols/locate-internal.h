/* Where the bytes of an object and of its debug file are. */
#pragma once

#include "base/str.h"
#include "symbols/debuginfod-internal.h"
#include "symbols/elf-file-internal.h"
#include "symbols/symbols.h"

struct places {
	const char *root; /* never NULL */
	const char *const *debug_dirs;
	const char *home;           /* "" when unknown */
	struct debuginfod *servers; /* asked last; NULL: none */
};

/*
 * Opens the file that a reference means. On success *ret_path (owned by the caller) is the path
 * really opened. On failure one line in *why says what was tried and what is wrong.
 */
int locate_object(const struct places *places, const struct module_ref *ref, struct elf_file *ret,
		  char **ret_path, struct str *why);

/*
 * Opens the separate debug file of an object that was found at path: by build id, then by
 * .gnu_debuglink (CRC verified unless build ids agree). -ENOENT when there is none that fits.
 */
int locate_debug(const struct places *places, const struct elf_file *object, const char *path,
		 struct elf_file *ret, char **ret_path);

/* The process's own id in its innermost PID namespace (NSpid), or pid when unknown. */
int locate_inner_pid(const struct places *places, int pid);
