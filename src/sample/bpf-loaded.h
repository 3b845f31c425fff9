/*
 * The BPF programs that are loaded on this machine, for a recording: their functions (as records)
 * and the features BPF_PROG_INFO and BPF_BTF with those that samples fell into.
 *
 * Programs are read when the recording begins, because they may be gone at its end, and those that
 * came meanwhile at its end. What came and went in between is known by the kernel's own records
 * alone. Without CAP_SYS_ADMIN, or where the kernel hides addresses, there are none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct bpf_loaded;
struct bpf_info;

int bpf_loaded_new(struct bpf_loaded **ret);
void bpf_loaded_free(struct bpf_loaded *loaded);

/* Reads the programs that were loaded since the last call. -ENOMEM; being refused is no error. */
int bpf_loaded_read(struct bpf_loaded *loaded);

/* name: of the function, "bpf_prog_TAG_name"; index 0 is the program's own. */
typedef int (*bpf_loaded_fn)(void *arg, const struct bpf_info *info, uint32_t index,
			     const char *name);
/* Every function of every program read so far; fn's negative return stops it. */
int bpf_loaded_functions(const struct bpf_loaded *loaded, bpf_loaded_fn fn, void *arg);

/* The bodies of the features with the programs that have at least one of the addresses (sorted in
 * place); both stay empty when there are none. */
int bpf_loaded_sections(const struct bpf_loaded *loaded, uint64_t *addresses, size_t count,
			struct str *infos, struct str *types);
