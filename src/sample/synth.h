/*
 * Records for what existed before the recording: processes with their threads, names and mappings,
 * and the kernel with its modules. They look as if the kernel had written them, with time 0.
 *
 * proc and sys are roots ("/proc", "/sys"); records are handed to put as whole perf_event records
 * with the sample_id trailer that the recording's first event asks for.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct synth {
	const char *proc, *sys;
	uint64_t sample_type; /* of the event whose trailer the records carry; sample_id_all is
				 assumed */
	uint64_t event_id;    /* for PERF_SAMPLE_ID and IDENTIFIER */
	bool data_maps;       /* mappings without code too, as attr.mmap_data gives them */
	bool build_ids;       /* MMAP2 records carry build ids instead of device and inode */
	int (*put)(void *arg, const void *record, size_t size);
	void *arg;
	struct synth_files *files; /* build ids by device and inode; owned, see synth_fini() */
};

/* Every process of proc (kernel threads have names but no mappings). */
int synth_all(struct synth *synth);
/* One process with all its threads; -ESRCH when it does not exist (any more). */
int synth_process(struct synth *synth, pid_t pid);
/* [kernel.kallsyms]_text and the modules, as far as this user may know the addresses. */
int synth_kernel(struct synth *synth);
/* The functions of BPF programs that are loaded: KSYMBOL and BPF_EVENT records. */
struct bpf_loaded;
int synth_bpf(struct synth *synth, const struct bpf_loaded *loaded);
void synth_fini(struct synth *synth);
