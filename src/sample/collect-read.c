/*
 * One thread's share of a recording. Most samples repeat one that was seen before, or at least a
 * chain of callers: the chain's raw addresses are hashed and compared as they lie in the record. A
 * known sample is then one look into a table that forgets; only new chains are resolved frame by
 * frame. The leaf differs more often and has a cache of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "sample/collect-internal.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* What it held is forgotten. */
static int known_grow(struct collector *collector, uint32_t pairs)
{
	size_t bytes = pairs * sizeof(struct known_pair);
	struct known_pair *known = aligned_alloc(MIN(bytes, HUGE_PAGE_BYTES), bytes);

	if (!known)
		return -ENOMEM;
	/* It is hit all over: one entry for the translation of addresses instead of 512. */
	if (bytes >= HUGE_PAGE_BYTES)
		(void)madvise(known, bytes, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < pairs; i++)
		known[i].way[0].chain = known[i].way[1].chain = NULL;
	free(collector->known);
	collector->known = known;
	collector->known_mask = pairs - 1;
	collector->forgotten = 0;
	return 0;
}

/* What the glob chooses among objects; dso may be NULL. */
static bool keeps_object(const struct collector *collector, const struct dso *dso)
{
	const char *glob = collector->options->dso, *path = dso ? dso->path : "[unknown]";
	const char *base = strrchr(path, '/');

	return !glob || str_glob(glob, path) || (base && str_glob(glob, base + 1));
}

int collector_init(struct collector *collector, struct session *session,
		   const struct collect_options *options)
{
	int r;

	*collector = (struct collector){.options = options};
	r = sample_reader_init(&collector->reader, session);
	collector->leaves = calloc(LEAF_SLOTS, sizeof(*collector->leaves));
	collector->label_slots = calloc(LABEL_SLOTS, sizeof(*collector->label_slots));
	if (r == 0)
		r = known_grow(collector, KNOWN_PAIRS_MIN);
	if (r == 0)
		r = vec_push(&collector->locations,
			     ((struct collect_location){.keep = keeps_object(collector, NULL)}));
	if (r == 0)
		r = vec_push(&collector->stacks, ((struct collect_stack){0}));
	return r < 0 || !collector->leaves || !collector->label_slots ? -ENOMEM : 0;
}

void collector_fini(struct collector *collector)
{
	sample_reader_fini(&collector->reader);
	free(collector->frames.frames);
	free(collector->leaves);
	free(collector->label_slots);
	free(collector->known);
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
	struct collect_location key = {.address = frame->address,
				       .dso = frame->dso ? frame->dso->id + 1 : 0,
				       .context = (uint16_t)frame->context};
	uint64_t hash = hash_pair(key.address, (uint64_t)key.dso << 8 | key.context);
	int r;

	*ret = hash_index_find(&collector->location_index, hash, location_equal, collector, &key);
	if (*ret != HASH_NONE)
		return 0;
	key.keep = keeps_object(collector, frame->dso);
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

static bool same_label(const struct collect_label *a, const struct collect_label *b)
{
	/* Names are interned: one text, one pointer. */
	return a->comm == b->comm && a->pid == b->pid && a->tid == b->tid && a->cpu == b->cpu &&
	       a->cgroup == b->cgroup && a->pid_ns == b->pid_ns && a->cgroup_ns == b->cgroup_ns;
}

static bool label_equal(const void *owner, uint32_t id, const void *key)
{
	return same_label(&((const struct collector *)owner)->labels.data[id], key);
}

static int find_label(struct collector *collector, const struct collect_label *key, uint32_t *ret)
{
	const struct collect_options *options = collector->options;
	struct collect_label label = *key;
	uint64_t hash = hash_pair((uintptr_t)key->comm, (uint64_t)key->cpu << 40 ^
								(uint64_t)(uint32_t)key->tid << 32 ^
								(uint32_t)key->pid);
	int r;

	hash = key->cgroup ? hash_pair(hash, key->cgroup) : hash;
	hash = key->pid_ns ? hash_pair(hash, key->pid_ns ^ key->cgroup_ns << 32) : hash;
	*ret = hash_index_find(&collector->label_index, hash, label_equal, collector, key);
	if (*ret != HASH_NONE)
		return 0;
	label.keep = !options->comm || str_glob(options->comm, key->comm);
	*ret = (uint32_t)collector->labels.len;
	r = vec_push(&collector->labels, label);
	return r < 0 ? r : hash_index_add(&collector->label_index, hash, *ret);
}

static void add_namespaces(const struct session *session, const struct raw_sample *raw,
			   struct collect_label *label)
{
	const struct namespaces_version *told =
		session_namespaces_at(session, raw->sample.pid, raw->sample.tid, raw->key);

	if (!told)
		return;
	label->pid_ns = told->pid_ns;
	label->cgroup_ns = told->cgroup_ns;
}

static int intern_label(struct collector *collector, const struct raw_sample *raw, uint32_t *ret)
{
	const struct collect_options *options = collector->options;
	struct collect_label key = {.comm = raw->comm, .pid = raw->sample.pid};
	struct label_slot *slot =
		&collector->label_slots[hash_u64((uint32_t)raw->sample.tid) % LABEL_SLOTS];
	int r;

	if (options->tid)
		key.tid = raw->sample.tid;
	if (options->cpu)
		key.cpu = raw->sample.cpu;
	if (options->cgroup)
		key.cgroup = raw->sample.cgroup;
	if (options->namespaces)
		add_namespaces(collector->reader.session, raw, &key);
	if (slot->key.comm && same_label(&slot->key, &key)) {
		*ret = slot->label;
		return 0;
	}
	r = find_label(collector, &key, ret);
	if (r == 0)
		*slot = (struct label_slot){key, *ret};
	return r;
}

/* False when the callers are nothing that could be found again. */
static bool make_chain_key(const struct collector *collector, const struct raw_sample *raw,
			   const struct leaf *leaf, struct chain_key *ret)
{
	static const uint64_t none;
	const struct perfdata_sample *sample = &raw->sample;

	/* Of a stack that was not unwound the frames depend on registers, too. */
	if (collector->options->no_callchains || sample->stack)
		return false;
	ret->len = sample->chain_len - leaf->skip;
	ret->ips = sample->chain ? sample->chain + leaf->skip : &none;
	ret->task = raw->task;
	ret->state = (uint32_t)leaf->caller_context << 1 | leaf->exact |
		     (uint32_t)(leaf->skip > 0) << 8 | (uint32_t)raw->cut << 9 |
		     (uint32_t)raw->unwound << 10;
	ret->hash = hash_bytes(ret->ips, ret->len * sizeof(*ret->ips)) ^
		    hash_pair((uint64_t)raw->task->root << 32 | raw->task->kernel_root, ret->state);
	return true;
}

static bool same_chain(const struct collect_chain *a, const struct chain_key *b)
{
	return a->len == b->len && a->root == b->task->root &&
	       a->kernel_root == b->task->kernel_root && a->guest_root == b->task->guest_root &&
	       a->state == b->state && memcmp(a->ips, b->ips, b->len * sizeof(*b->ips)) == 0;
}

static bool chain_equal(const void *owner, uint32_t id, const void *key)
{
	return same_chain(((const struct collector *)owner)->chains.data[id], key);
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

/* The chain as it is kept, new or known. */
static int find_chain(struct collector *collector, const struct raw_sample *raw,
		      const struct leaf *leaf, const struct chain_key *key,
		      const struct collect_chain **ret)
{
	uint32_t id =
		hash_index_find(&collector->chain_index, key->hash, chain_equal, collector, key);
	struct collect_chain *chain;
	int r = 0;

	if (id != HASH_NONE) {
		*ret = collector->chains.data[id];
		return 0;
	}
	chain = arena_alloc(&collector->arena, sizeof(*chain) + key->len * sizeof(*chain->ips));
	if (!chain)
		return -ENOMEM;
	*chain = (struct collect_chain){.len = (uint32_t)key->len,
					.root = raw->task->root,
					.kernel_root = raw->task->kernel_root,
					.guest_root = raw->task->guest_root,
					.state = key->state};
	memcpy(chain->ips, key->ips, key->len * sizeof(*chain->ips));
	if (key->len > 0 || raw->cut)
		r = resolve_callers(collector, raw, leaf, &chain->stack, &chain->truncated);
	*ret = chain;
	id = (uint32_t)collector->chains.len;
	if (r == 0)
		r = vec_push(&collector->chains, chain);
	return r < 0 ? r : hash_index_add(&collector->chain_index, key->hash, id);
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

static void grow_cell(struct collect_cell *cell, int64_t period)
{
	cell->count++;
	if (__builtin_add_overflow(cell->period, period, &cell->period))
		cell->period = INT64_MAX;
}

static int add_cell(struct collector *collector, const struct collect_cell *key, uint32_t *ret)
{
	uint64_t hash = hash_pair((uint64_t)key->stack << 32 | key->label, key->event);
	int r;

	*ret = hash_index_find(&collector->cell_index, hash, cell_equal, collector, key);
	if (*ret != HASH_NONE) {
		grow_cell(&collector->cells.data[*ret], key->period);
		return 0;
	}
	*ret = (uint32_t)collector->cells.len;
	r = vec_push(&collector->cells, *key);
	return r < 0 ? r : hash_index_add(&collector->cell_index, hash, *ret);
}

static const struct known_sample *find_known(const struct collector *collector,
					     const struct pending *at)
{
	const struct known_pair *pair = &collector->known[at->hash & collector->known_mask];

	for (unsigned i = 0; i < ARRAY_LEN(pair->way); i++) {
		const struct known_sample *known = &pair->way[i];

		if (known->tag == (uint32_t)(at->hash >> 32) && known->chain &&
		    known->ip == at->raw->sample.ip && known->label == at->label &&
		    known->event == at->raw->event && known->context == at->leaf.context &&
		    same_chain(known->chain, &at->key))
			return known;
	}
	return NULL;
}

/* Asks for the memory that find_known and counting will need, when it is there to say so. */
static void fetch_known(const struct collector *collector, const struct pending *at)
{
	const struct known_pair *pair = &collector->known[at->hash & collector->known_mask];
	size_t bytes = sizeof(*pair->way[0].chain) + at->key.len * sizeof(*at->key.ips);

	for (unsigned i = 0; i < ARRAY_LEN(pair->way); i++) {
		const struct known_sample *known = &pair->way[i];

		if (known->tag != (uint32_t)(at->hash >> 32) || !known->chain)
			continue;
		__builtin_prefetch(&collector->cells.data[known->cell], 1);
		for (size_t done = 0; done < bytes; done += 64)
			__builtin_prefetch((const char *)known->chain + done);
	}
}

/* The table grows when it forgets more than now and then. */
static int remember(struct collector *collector, uint64_t hash, struct known_sample *known)
{
	struct known_pair *pair;
	int r = 0;

	if (collector->forgotten > collector->known_mask / 8 &&
	    collector->known_mask < KNOWN_PAIRS_MAX - 1)
		r = known_grow(collector, 2 * (collector->known_mask + 1));
	pair = &collector->known[hash & collector->known_mask];
	known->tag = (uint32_t)(hash >> 32);
	collector->forgotten += pair->way[1].chain != NULL;
	pair->way[1] = pair->way[0];
	pair->way[0] = *known;
	return r;
}

/* What is not known as a whole. */
static int collect_new(struct collector *collector, const struct pending *at,
		       struct collect_cell *cell)
{
	const struct raw_sample *raw = at->raw;
	struct known_sample known = {.ip = raw->sample.ip,
				     .label = at->label,
				     .event = (uint16_t)raw->event,
				     .context = (uint16_t)at->leaf.context};
	uint32_t location = 0;
	bool truncated = false;
	int r = 0;

	if (raw->sample.has_ip)
		r = leaf_location(collector, raw, &at->leaf, &location);
	if (r < 0)
		return r;
	if (!collector->locations.data[location].keep)
		return 0;
	if (at->chain) {
		r = find_chain(collector, raw, &at->leaf, &at->key, &known.chain);
		if (r < 0)
			return r;
		cell->stack = known.chain->stack;
		truncated = known.chain->truncated;
	} else if (raw->sample.stack && !collector->options->no_callchains) {
		r = resolve_callers(collector, raw, &at->leaf, &cell->stack, &truncated);
	}
	if (r == 0 && location)
		r = intern_stack(collector, cell->stack, location, &cell->stack);
	if (r == 0)
		r = add_cell(collector, cell, &known.cell);
	if (r < 0)
		return r;
	collector->reader.truncated += truncated;
	return at->chain ? remember(collector, at->hash, &known) : 0;
}

static int collect_pending(struct collector *collector, const struct pending *at)
{
	struct collect_cell cell = {.event = at->raw->event, .label = at->label, .count = 1};
	const struct known_sample *known = at->chain ? find_known(collector, at) : NULL;

	/* Periods above this are damage; a sum must not wrap. */
	cell.period = (int64_t)MIN(at->raw->sample.period, (uint64_t)INT64_MAX >> 1);
	if (!known)
		return collect_new(collector, at, &cell);
	grow_cell(&collector->cells.data[known->cell], cell.period);
	collector->reader.truncated += known->chain->truncated;
	return 0;
}

/* Takes the oldest until at most leave are left. */
static int drain(struct collector *collector, unsigned leave)
{
	int r = 0;

	while (collector->pendings > leave && r == 0) {
		r = collect_pending(collector, &collector->pending[collector->first_pending]);
		collector->first_pending = (collector->first_pending + 1) % PENDING_MAX;
		collector->pendings--;
	}
	return r;
}

/*
 * Samples are counted in their order, some time after they were read: until then first the place
 * where a sample would be known, then what that place tells of, is fetched from memory. Of one
 * sample alone the processor would wait for each.
 */
static int collect_unwound(struct collector *collector, const struct raw_sample *raw)
{
	struct pending *at;
	uint32_t label;
	int r;

	if (collector->keep_event && !collector->keep_event[raw->event])
		return 0;
	r = intern_label(collector, raw, &label);
	if (r < 0 || !collector->labels.data[label].keep)
		return r;
	r = raw->stays ? 0 : drain(collector, 0);
	if (r < 0)
		return r;
	at = &collector->pending[(collector->first_pending + collector->pendings) % PENDING_MAX];
	at->raw = raw;
	at->label = label;
	session_leaf(raw, &at->leaf);
	at->chain = make_chain_key(collector, raw, &at->leaf, &at->key);
	if (at->chain) {
		at->hash = hash_u64(at->key.hash ^ (raw->sample.ip + ((uint64_t)label << 48)));
		__builtin_prefetch(&collector->known[at->hash & collector->known_mask]);
	}
	collector->pendings++;
	if (!raw->stays)
		return drain(collector, 0);
	if (collector->pendings > PENDING_MAX / 2) {
		at = &collector->pending[(collector->first_pending + collector->pendings - 1 -
					  PENDING_MAX / 2) %
					 PENDING_MAX];
		if (at->chain)
			fetch_known(collector, at);
	}
	return 0;
}

/* The reader uses its places in turn: the oldest sample must be gone before its place is used. */
static int leave_ring(struct collector *collector)
{
	const struct sample_reader *reader = &collector->reader;
	const struct raw_sample *next = &reader->ring[reader->turn % SAMPLES_AHEAD];

	if (collector->pendings > 0 && collector->pending[collector->first_pending].raw == next)
		return drain(collector, collector->pendings - 1);
	return 0;
}

static int collect_sample(void *arg, const struct raw_sample *raw)
{
	struct collector *collector = arg;
	struct raw_sample unwound;
	int r;

	if (raw->sample.time < collector->from || raw->sample.time > collector->to) {
		r = 0;
	} else if (!raw->sample.user_regs || collector->options->no_callchains) {
		r = collect_unwound(collector, raw);
	} else {
		r = unwinder_run(&collector->reader.unwinder, collector->reader.session, raw,
				 &unwound);
		unwound.stays = false;
		if (r >= 0)
			r = collect_unwound(collector, &unwound);
	}
	return r < 0 ? r : leave_ring(collector);
}

int collector_run(struct collector *collector, const struct chunk *chunk)
{
	int r;

	collector->first_pending = collector->pendings = 0;
	r = sample_reader_run(&collector->reader, chunk, collect_sample, collector);
	if (r == 0)
		r = drain(collector, 0);
	session_release(collector->reader.session, chunk);
	return r;
}
