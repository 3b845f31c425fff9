/*
 * What libculprit wrote about the regions of a program: one text file for each process, merged.
 *
 * The format (docs/regions.md) is read as untrusted bytes: the program that wrote it is not ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "base/vec.h"

#define REGIONS_VALUES_MAX 9         /* wall time and 8 events */
#define REGIONS_ROWS_MAX   (1 << 20) /* of one result */

enum regions_state {
	REGIONS_COUNTED,
	REGIONS_NOT_SUPPORTED,
	REGIONS_NOT_COUNTED
};

struct regions_event {
	uint32_t name, reason; /* in names */
	enum regions_state state;
	bool direct; /* read in user space */
};

struct regions_row {
	uint32_t name;
	int tid; /* 0 unless rows are kept by thread */
	uint64_t calls, unbalanced, threads;
	/* By event; [0] is wall time in ns. total: inner regions included; self: without them. */
	uint64_t total[REGIONS_VALUES_MAX], self[REGIONS_VALUES_MAX];
};

struct regions {
	struct strtab names;
	struct hash_index index;
	bool by_thread;
	struct regions_event events[REGIONS_VALUES_MAX]; /* [0]: wall */
	unsigned event_count;
	VEC(struct regions_row) rows;
	uint64_t processes, lost, stray_ends, lost_threads;
	uint64_t pair_ns,
		pair_cycles; /* cost of an empty region in the first process; 0: unknown */
};

int regions_init(struct regions *regions, bool by_thread);
void regions_fini(struct regions *regions);

/* Adds one process's file. -EBADMSG with the line's number when it is not such a file or damaged
 * (rows before the damage stay), -E2BIG beyond REGIONS_ROWS_MAX, -ENOMEM. */
int regions_add(struct regions *regions, const char *data, size_t size, struct err *err);
/* Adds every file of a directory; *ret_files says how many. */
int regions_add_directory(struct regions *regions, const char *path, unsigned *ret_files,
			  struct err *err);
