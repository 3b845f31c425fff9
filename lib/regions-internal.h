/* Shared by the files of the regions: the tables while measuring, and their way into the file. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters.h"

#define VALUES_MAX \
	(EVENTS_MAX + 1) /* [0] is wall time: ns, or ticks where counters.tick_mult says so */
#define DEPTH_MAX     128
#define CHUNK_REGIONS 32
#define CHUNKS_MAX    2048 /* 65536 regions of one thread */
#define CACHE_SLOTS   64
#define ENDED_MAX     256 /* ended threads that keep a line of their own */

struct region {
	char *name;
	uint32_t hash, depth;
	uint64_t calls, unbalanced;
	uint64_t total[VALUES_MAX], self[VALUES_MAX];
};

struct frame {
	struct region *region;
	uint64_t start[VALUES_MAX], inner[VALUES_MAX];
	bool uncounted; /* the counters could not be read */
	bool inherited; /* begun in the parent of a forked process: not this one's */
};

struct thread {
	struct thread *next, *previous;
	struct counters counters;
	unsigned value_count, depth, too_deep;
	int tid;
	bool open, ended;
	uint32_t tick_mult; /* of counters, kept when they are closed */
	uint16_t tick_shift;
	uint64_t lost, stray_ends;
	struct region *chunks[CHUNKS_MAX];
	unsigned count;
	uint32_t *index; /* open addressing: region number + 1 */
	uint32_t index_mask;
	struct {
		const char *name;
		struct region *region;
	} cache[CACHE_SLOTS];
	struct frame frames[DEPTH_MAX];
};

struct process {
	pthread_mutex_t lock;
	pthread_once_t once;
	pthread_key_t key;
	int active; /* -1: not asked yet */
	char *path;
	pid_t pid;
	struct event_list events;
	struct thread *threads;
	unsigned ended;
	uint64_t lost_threads;
	uint64_t pair_ns, pair_cycles; /* measured cost of an empty region; 0: not known */
};

static inline struct region *region_at(const struct thread *t, unsigned i)
{
	return &t->chunks[i / CHUNK_REGIONS][i % CHUNK_REGIONS];
}

/* regions-table.c: the region of a name; without add NULL when there is none. Also NULL when it
 * cannot be added. */
struct region *culprit_region_find_slow(struct thread *t, const char *name, bool add);

/* regions-write.c: the value [0] of a region in nanoseconds. */
uint64_t culprit_region_wall_ns(const struct thread *t, uint64_t value);
/* Takes the lock and writes the whole file. self: the calling thread's state or NULL. 0 or a
 * negative errno. */
int culprit_regions_write_file(struct process *process, const struct thread *self);
