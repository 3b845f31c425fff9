/* Unwinding while recording: live.c (samples), live-spaces.c (who has mapped what), live-code.c
 * (objects and their tables). */
#pragma once

#include "base/hash.h"
#include "base/vec.h"
#include "sample/jit-unwind.h"
#include "sample/live.h"
#include "sample/maps.h"
#include "sample/perfdata.h"
#include "sample/stack-walk.h"

struct live_object {
	char *path;
	uint8_t identity[24]; /* build id, or device and inode; as in the MMAP2 record */
	struct build_id build_id;
	enum module_kind kind; /* PERF_MAP: memory without a file */
	int pid;               /* that mapped it last */
	struct unwind_table *table;
	char *why; /* there is no table */
	bool tried, missing;
	uint64_t lost; /* stacks that end in it */
};

struct live_objects {
	struct symbols *symbols;
	VEC(struct live_object) all;
	struct hash_index index;
};

int live_objects_init(struct live_objects *objects, const struct symbols_options *options);
void live_objects_fini(struct live_objects *objects);
/* The object of a mapping. */
int live_object_of(struct live_objects *objects, const struct perfdata_mmap *map,
		   const uint8_t identity[24], uint32_t *ret);
/* Its table, opened now; NULL when there is none. */
const struct unwind_table *live_object_table(struct live_objects *objects, uint32_t id);

/* The mappings of a process, as they are now; in order, not overlapping. */
struct live_space {
	uint64_t key; /* changes with every mapping */
	int32_t pid;  /* -1: free */
	bool exec;    /* the next mapping begins a new program */
	bool exited;
	struct live_jit *jit; /* of its compiler, shared with forked processes; NULL: none */
	VEC(struct map) maps;
};

/* What a just-in-time compiler tells of its code. */
struct live_jit {
	struct jit_unwind *unwind;
	unsigned users;
};

struct live_spaces {
	VEC(struct live_space) all;
	struct u64_map index; /* by pid */
	uint64_t next_key;
	size_t sweep_at;
};

void live_spaces_fini(struct live_spaces *spaces);
int live_spaces_map(struct live_spaces *spaces, int32_t pid, const struct map *map);
int live_spaces_fork(struct live_spaces *spaces, int32_t pid, int32_t parent);
int live_spaces_exec(struct live_spaces *spaces, int32_t pid);
void live_spaces_exit(struct live_spaces *spaces, int32_t pid);
/* The process mapped its jitdump. */
int live_spaces_jitdump(struct live_spaces *spaces, int32_t pid, const char *path);
/* NULL when nothing is known of the process. */
const struct live_space *live_space_find(const struct live_spaces *spaces, int32_t pid);
const struct map *live_space_map(const struct live_space *space, uint64_t address);
