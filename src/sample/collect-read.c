/*
 * One thread's share of a recording. Most samples repeat a chain of callers that was seen before:
 * the chain's raw addresses are hashed and compared as they lie in the record, and only new chains
 * are resolved frame by frame. The leaf differs more often and has a cache of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/collect-internal.h"

int collector_init(struct collector *collector, struct session *session,
		   const struct collect_options *options)
{
	int r;

	*collector = (struct collector){.options = options};
	r = sample_reader_init(&collector->reader, session);
	collector->leaves = calloc(LEAF_SLOTS, sizeof(*collector->leaves));
	if (r == 0)
		r = vec_push(&collector->locations, ((struct collect_location){0}));
	if (r == 0)
		r = vec_push(&collector->stacks, ((struct collect_stack){0}));
	return r < 0 || !collector->leaves ? -ENOMEM : 0;
}

void collector_fini(struct collector *collector)
{
	sample_reader_fini(&collector->reader);
	free(collector->frames.frames);
	free(collector->leaves);
	vec_fini(&collector->locations);
	vec_fini(&collector->stacks);
	vec_fini(&collector->labels);
	vec_fini(&collector->cells);
	vec_fini(&collector->chains);
	hash_index_fini(&collector->location_index);
	hash_index_fini(&collector->stack_index);
	hash_index_fini(&collector->label_index);
	hash_index_fini(&collector->cell_index);
	hash_index_fini(&collector->chain_index);
	arena_fini(&collector->arena);
}

static bool location_equal(const void *owner, uint32_t id, const void *key)
{
	const struct collector *collector = owner;
	const struct collect_location *a = &collector->locations.data[id], *b = key;

	return a->address == b->address && a->dso == b->dso && a->context == b->context;
}

static int intern_location(struct collector *collector, const struct sample_frame *frame,
			   uint32_t *ret)
{
	struct collect_location key = {frame->address, frame->dso ? frame->dso->id + 1 : 0,
				       frame->context};
	uint64_t hash = hash_pair(key.address, (uint64_t)key.dso << 8 | key.context);
	int r;

	*ret = hash_index_find(&collector->location_index, hash, location_equal, collector, &key);
	if (*ret != HASH_NONE)
		return 0;
	*ret = (uint32_t)collector->locations.len;
	r = vec_push(&collector->locations, key);
	return r < 0 ? r : hash_index_add(&collector->location_index, hash, *ret);
}

static bool stack_equal(const void *owner, uint32_t id, const void *key)
{
	const struct collector *collector = owner;
	const struct collect_stack *a = &collector->stacks.data[id], *b = key;

	return a->parent == b->parent && a->location == b->location;
}

static int intern_stack(struct collector *collector, uint32_t parent, uint32_t location,
			uint32_t *ret)
{
	struct collect_stack key = {parent, location};
	uint64_t hash = hash_u64((uint64_t)parent << 32 | location);
	int r;

	*ret = hash_index_find(&collector->stack_index, hash, stack_equal, collector, &key);
	if (*ret != HASH_NONE)
		return 0;
	*ret = (uint32_t)collector->stacks.len;
	r = vec_push(&collector->stacks, key);
	return r < 0 ? r : hash_index_add(&collector->stack_index, hash, *ret);
}

static bool label_equal(const void *owner, uint32_t id, const void *key)
{
	const struct collector *collector = owner;
	const struct collect_label *a = &collector->labels.data[id], *b = key;

	/* Names are interned: one text, one pointer. */
	return a->comm == b->comm && a->pid == b->pid && a->tid == b->tid && a->cpu == b->cpu;
}

static int intern_label(struct collector *collector, const struct raw_sample *raw, uint32_t *ret)
{
	const struct collect_options *options = collector->options;
	struct collect_label key = {.comm = raw->comm, .pid = raw->sample.pid};
	uint64_t hash;
	int r;

	if (options->tid)
		key.tid = raw->sample.tid;
	if (options->cpu)
		key.cpu = raw->sample.cpu;
	hash = hash_pair((uintptr_t)key.comm, (uint64_t)key.cpu << 40 ^
						      (uint64_t)(uint32_t)key.tid << 32 ^
						      (uint32_t)key.pid);
	*ret = hash_index_find(&collector->label_index, hash, label_equal, collector, &key);
	if (*ret != HASH_NONE)
		return 0;
	key.keep = !options->comm || str_glob(options->comm, raw->comm);
	*ret = (uint32_t)collector->labels.len;
	r = vec_push(&collector->labels, key);
	return r < 0 ? r : hash_index_add(&collector->label_index, hash, *ret);
}

struct chain_key {
	const uint64_t *ips;
	size_t len;
	const struct task *task;
	uint32_t state;
};

static bool chain_equal(const void *owner, uint32_t id, const void *key)
{
	const struct collector *collector = owner;
	const struct collect_chain *a = &collector->chains.data[id];
	const struct chain_key *b = key;

	return a->len == b->len && a->root == b->task->root &&
	       a->kernel_root == b->task->kernel_root && a->guest_root == b->task->guest_root &&
	       a->state == b->state && memcmp(a->ips, b->ips, b->len * sizeof(*b->ips)) == 0;
}

/* The stack of the callers, frame by frame. */
static int resolve_callers(struct collector *collector, const struct raw_sample *raw,
			   const struct leaf *leaf, uint32_t *ret, bool *ret_truncated)
{
	struct frame_walk *walk = &collector->frames;
	uint32_t need = (uint32_t)raw->sample.chain_len + 1, stack = 0, location;

	if (walk->cap < need) {
		struct sample_frame *frames = realloc(walk->frames, need * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		walk->frames = frames;
		walk->cap = need;
	}
	walk->count = 0;
	session_callers(collector->reader.session, raw, leaf, walk);
	for (uint32_t i = walk->count; i-- > 0;) {
		int r = intern_location(collector, &walk->frames[i], &location);

		if (r == 0)
			r = intern_stack(collector, stack, location, &stack);
		if (r < 0)
			return r;
	}
	*ret = stack;
	*ret_truncated = walk->truncated;
	return 0;
}

static int callers(struct collector *collector, const struct raw_sample *raw,
		   const struct leaf *leaf, uint32_t *ret, bool *ret_truncated)
{
	const struct perfdata_sample *sample = &raw->sample;
	struct chain_key key = {.task = raw->task};
	struct collect_chain chain;
	uint64_t hash, *copy;
	uint32_t id;
	int r;

	if (sample->stack) /* the frames depend on registers, too */
		return resolve_callers(collector, raw, leaf, ret, ret_truncated);
	key.len = sample->chain_len - leaf->skip;
	key.state = (uint32_t)leaf->caller_context << 1 | leaf->exact |
		    (uint32_t)(leaf->skip > 0) << 8 | (uint32_t)raw->cut << 9 |
		    (uint32_t)raw->unwound << 10;
	if (key.len == 0 && !raw->cut) {
		*ret = 0;
		*ret_truncated = false;
		return 0;
	}
	key.ips = sample->chain + leaf->skip;
	hash = hash_bytes(key.ips, key.len * sizeof(*key.ips)) ^
	       hash_pair((uint64_t)raw->task->root << 32 | raw->task->kernel_root, key.state);
	id = hash_index_find(&collector->chain_index, hash, chain_equal, collector, &key);
	if (id != HASH_NONE) {
		*ret = collector->chains.data[id].stack;
		*ret_truncated = collector->chains.data[id].truncated;
		return 0;
	}
	r = resolve_callers(collector, raw, leaf, ret, ret_truncated);
	copy = r < 0 ? NULL : arena_alloc(&collector->arena, (key.len + 1) * sizeof(*copy));
	if (!copy)
		return r < 0 ? r : -ENOMEM;
	memcpy(copy, key.ips, key.len * sizeof(*copy));
	chain = (struct collect_chain){copy,
				       (uint32_t)key.len,
				       raw->task->root,
				       raw->task->kernel_root,
				       raw->task->guest_root,
				       key.state,
				       *ret,
				       *ret_truncated};
	id = (uint32_t)collector->chains.len;
	r = vec_push(&collector->chains, chain);
	return r < 0 ? r : hash_index_add(&collector->chain_index, hash, id);
}

static int leaf_location(struct collector *collector, const struct raw_sample *raw,
			 const struct leaf *leaf, uint32_t *ret)
{
	uint64_t ip = raw->sample.ip;
	struct leaf_slot *slot = &collector->leaves[hash_pair(ip, raw->task->root) % LEAF_SLOTS];
	struct sample_frame frame;
	int r;

	if (slot->location && slot->ip == ip && slot->root == raw->task->root &&
	    slot->kernel_root == raw->task->kernel_root && slot->context == leaf->context) {
		*ret = slot->location;
		return 0;
	}
	frame = session_resolve(collector->reader.session, raw->task, ip, leaf->context);
	r = intern_location(collector, &frame, ret);
	if (r < 0)
		return r;
	if (leaf->context != FRAME_GUEST_KERNEL)
		*slot = (struct leaf_slot){ip, raw->task->root, raw->task->kernel_root,
					   leaf->context, *ret};
	return 0;
}

static bool cell_equal(const void *owner, uint32_t id, const void *key)
{
	const struct collector *collector = owner;
	const struct collect_cell *a = &collector->cells.data[id], *b = key;

	return a->stack == b->stack && a->label == b->label && a->event == b->event;
}

static int add_cell(struct collector *collector, const struct collect_cell *key)
{
	uint64_t hash = hash_pair((uint64_t)key->stack << 32 | key->label, key->event);
	uint32_t id = hash_index_find(&collector->cell_index, hash, cell_equal, collector, key);
	struct collect_cell *cell;
	int r;

	if (id != HASH_NONE) {
		cell = &collector->cells.data[id];
		cell->count += key->count;
		if (__builtin_add_overflow(cell->period, key->period, &cell->period))
			cell->period = INT64_MAX;
		return 0;
	}
	id = (uint32_t)collector->cells.len;
	r = vec_push(&collector->cells, *key);
	return r < 0 ? r : hash_index_add(&collector->cell_index, hash, id);
}

static int collect_unwound(struct collector *collector, const struct raw_sample *raw)
{
	struct collect_cell cell = {.event = raw->event, .count = 1};
	uint32_t location = 0;
	struct leaf leaf;
	bool truncated = false;
	int r;

	if (collector->keep_event && !collector->keep_event[raw->event])
		return 0;
	r = intern_label(collector, raw, &cell.label);
	if (r < 0 || !collector->labels.data[cell.label].keep)
		return r;
	session_leaf(raw, &leaf);
	if (raw->sample.has_ip)
		r = leaf_location(collector, raw, &leaf, &location);
	if (r < 0)
		return r;
	if (collector->keep_dso && !collector->keep_dso[collector->locations.data[location].dso])
		return 0;
	if (!collector->options->no_callchains)
		r = callers(collector, raw, &leaf, &cell.stack, &truncated);
	if (r == 0 && location)
		r = intern_stack(collector, cell.stack, location, &cell.stack);
	if (r < 0)
		return r;
	collector->reader.truncated += truncated;
	/* Periods above this are damage; a sum must not wrap. */
	cell.period = (int64_t)MIN(raw->sample.period, (uint64_t)INT64_MAX >> 1);
	return add_cell(collector, &cell);
}

static int collect_sample(void *arg, const struct raw_sample *raw)
{
	struct collector *collector = arg;
	struct raw_sample unwound;
	int r;

	if (!raw->sample.stack || collector->options->no_callchains)
		return collect_unwound(collector, raw);
	r = unwinder_run(&collector->reader.unwinder, collector->reader.session, raw, &unwound);
	return r < 0 ? r : collect_unwound(collector, &unwound);
}

int collector_run(struct collector *collector, const struct chunk *chunk)
{
	return sample_reader_run(&collector->reader, chunk, collect_sample, collector);
}
