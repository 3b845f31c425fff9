/*
 * Collecting, in three steps: each thread reads chunks into a collector of its own
 * (collect-read.c), the collectors are merged into the profile (collect.c), and the profile's new
 * locations get their names (collect-names.c).
 */
#pragma once

#include "sample/collect.h"
#include "sample/session-internal.h"

struct collect_location {
	uint64_t address;
	uint32_t dso; /* id + 1; 0: none */
	uint16_t context;
	bool keep; /* samples in it are wanted */
};

struct collect_stack {
	uint32_t parent, location;
};

struct collect_label {
	const char *comm;
	int32_t pid, tid; /* tid and cpu are 0 when not asked for */
	uint32_t cpu;
	uint64_t cgroup; /* id; 0 when not asked for, or not told; so are namespaces */
	uint64_t pid_ns, cgroup_ns;
	bool keep;
};

struct collect_cell {
	uint32_t stack, label, event;
	int64_t count, period;
};

/* A chain of callers that was seen: raw addresses and the stack they became. */
struct collect_chain {
	uint32_t len, root, kernel_root, guest_root, state, stack;
	bool truncated;
	uint64_t ips[];
};

struct chain_key {
	const uint64_t *ips;
	size_t len;
	uint64_t hash;
	const struct task *task;
	uint32_t state;
};

struct leaf_slot {
	uint64_t ip;
	uint32_t root, kernel_root, context, location; /* location 0: free */
};

#define LEAF_SLOTS 8192

/* The label of the last sample of a thread. */
struct label_slot {
	struct collect_label key; /* comm NULL: free */
	uint32_t label;
};

#define LABEL_SLOTS 256

/* A whole sample that was seen, and where it counts. */
struct known_sample {
	uint64_t ip;
	const struct collect_chain *chain; /* NULL: free */
	uint32_t tag;                      /* of the hash of all that follows from it */
	uint32_t label, cell;
	uint16_t event, context;
};

/* Two that share their place, in one cache line: the one that was added last is the first. */
struct known_pair {
	struct known_sample way[2];
};

#define KNOWN_PAIRS_MIN (UINT32_C(1) << 11)
#define KNOWN_PAIRS_MAX (UINT32_C(1) << 17)

/* A sample on its way: what it is is known, the memory that says where it counts is being fetched.
 */
struct pending {
	const struct raw_sample *raw;
	struct leaf leaf;
	struct chain_key key;
	uint64_t hash;
	uint32_t label;
	bool chain; /* key is one */
};

#define PENDING_MAX SAMPLES_AHEAD

/* One thread's; no cache line is another's. */
struct collector {
	_Alignas(CACHE_LINE_BYTES) const struct collect_options *options;
	const bool *keep_event; /* NULL: all */
	uint64_t from, to;      /* only samples of these times */
	struct sample_reader reader;
	struct frame_walk frames;

	/* Index 0 of locations and stacks means none. */
	VEC(struct collect_location) locations;
	VEC(struct collect_stack) stacks;
	VEC(struct collect_label) labels;
	VEC(struct collect_cell) cells;
	VEC(struct collect_chain *) chains;
	struct hash_index location_index, stack_index, label_index, cell_index, chain_index;
	struct arena arena;
	struct leaf_slot *leaves;
	struct label_slot *label_slots;
	struct known_pair *known; /* by the hash of chain, address and label */
	uint32_t known_mask, forgotten;
	struct pending pending[PENDING_MAX]; /* a ring */
	unsigned first_pending, pendings;    /* the oldest, how many */
};

int collector_init(struct collector *collector, struct session *session,
		   const struct collect_options *options);
void collector_fini(struct collector *collector);
int collector_run(struct collector *collector, const struct chunk *chunk);

/* A location of the profile that needs a name. */
struct unnamed {
	uint32_t location, dso; /* dso as in collect_location */
	uint32_t context;
	uint64_t address;
};

struct unnamed_list {
	VEC(struct unnamed) all;
};

int collect_names(struct session *session, const struct collect_options *options,
		  struct profile *profile, struct unnamed_list *list);
int collect_mapping(const struct session *session, struct profile *profile, uint32_t dso,
		    uint32_t context, const char *object, uint32_t *ret);
