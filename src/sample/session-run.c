/* The second pass: samples, whoever asks in whatever order, and their frames. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

#define SCRATCH_WORDS     8192
#define DEFAULT_MAX_STACK 127
/* Of a piece that is a whole file (packed, groups) what was read is let go of in between. */
#define RELEASE_BYTES (UINT64_C(8) << 20)

int sample_reader_init(struct sample_reader *reader, struct session *session)
{
	size_t counts = ALIGN_UP(MAX(session->events.len, 1u) * sizeof(*reader->event_samples),
				 CACHE_LINE_BYTES);
	int r;

	*reader = (struct sample_reader){.session = session, .first_time = UINT64_MAX};
	r = walk_init(&reader->walk, -1, 0, 0, session->header.swap);
	if (r == 0)
		r = strtab_init(&reader->names);
	reader->ring = calloc(SAMPLES_AHEAD, sizeof(*reader->ring));
	reader->scratch = malloc(SCRATCH_WORDS * sizeof(*reader->scratch));
	reader->branch_chain = malloc(SCRATCH_WORDS * sizeof(*reader->branch_chain));
	reader->slots = calloc(TASK_SLOTS, sizeof(*reader->slots));
	reader->event_samples = aligned_alloc(CACHE_LINE_BYTES, counts);
	if (reader->event_samples)
		memset(reader->event_samples, 0, counts);
	if (r < 0 || !reader->ring || !reader->scratch || !reader->branch_chain || !reader->slots ||
	    !reader->event_samples) {
		sample_reader_fini(reader);
		return -ENOMEM;
	}
	return 0;
}

void sample_reader_fini(struct sample_reader *reader)
{
	walk_fini(&reader->walk);
	unwinder_fini(&reader->unwinder);
	strtab_fini(&reader->names);
	free(reader->ring);
	free(reader->scratch);
	free(reader->branch_chain);
	free(reader->slots);
	free(reader->event_samples);
	vec_fini(&reader->lost.all);
	u64_map_fini(&reader->lost.index);
	group_counters_fini(&reader->groups);
	reader->ring = NULL;
	reader->scratch = reader->branch_chain = NULL;
	reader->slots = NULL;
	reader->event_samples = NULL;
}

/* The name of a thread that has none: what it is, or ":tid". */
static const char *fallback_name(struct sample_reader *reader, int32_t pid, int32_t tid)
{
	char text[16];
	uint32_t id;

	if (pid == 0 && tid == 0)
		return "swapper";
	snprintf(text, sizeof(text), ":%d", tid);
	return strtab_intern_text(&reader->names, text, &id) < 0 ? ""
								 : strtab_text(&reader->names, id);
}

static struct task_slot *find_task(struct sample_reader *reader, int32_t pid, int32_t tid,
				   uint64_t key)
{
	struct task_slot *slot = &reader->slots[hash_u64((uint32_t)tid) % TASK_SLOTS];
	const struct session *session = reader->session;

	if (slot->comm && slot->pid == pid && slot->tid == tid && key >= slot->task.from &&
	    key < slot->task.until)
		return slot;
	slot->pid = pid;
	slot->tid = tid;
	pthread_rwlock_rdlock(&session->frontier->told);
	tasks_at(&session->tasks, pid, tid, key, &slot->task);
	slot->task.until = MIN(slot->task.until, session->frontier->known);
	pthread_rwlock_unlock(&session->frontier->told);
	slot->comm =
		slot->task.comm && tid != 0 ? slot->task.comm : fallback_name(reader, pid, tid);
	return slot;
}

static int lost_counter_raise(struct lost_counters *lost, uint64_t id, uint64_t value)
{
	uint32_t index;
	int r;

	if (u64_map_get(&lost->index, id, &index)) {
		lost->all.data[index].lost = MAX(lost->all.data[index].lost, value);
		return 0;
	}
	r = vec_push(&lost->all, ((struct lost_counter){id, value}));
	return r < 0 ? r : u64_map_put(&lost->index, id, (uint32_t)lost->all.len - 1);
}

static void count_sample(struct sample_reader *reader, const struct raw_sample *raw)
{
	const struct perfdata_sample *sample = &raw->sample;

	reader->samples++;
	if (sample->has_time && sample->time) {
		reader->first_time = MIN(reader->first_time, sample->time);
		reader->last_time = MAX(reader->last_time, sample->time);
	}
	if (sample->has_lost && sample->lost)
		(void)lost_counter_raise(&reader->lost, sample->id, sample->lost);
}

/* Chains that say more than the kernel's: see chain.c. */
static void take_chain(struct sample_reader *reader, const struct perfdata_attr *attr,
		       struct raw_sample *raw)
{
	struct perfdata_sample *sample = &raw->sample;
	struct unwinder *counts = &reader->unwinder;
	unsigned markers;

	if (chain_of_branches(attr, reader->session->header.swap, sample, reader->branch_chain,
			      SCRATCH_WORDS)) {
		raw->unwound = true;
		raw->cut = chain_fills_branches(sample);
		return;
	}
	markers = chain_take_markers(sample);
	raw->unwound = raw->cut = markers > 0;
	if (attr->max_stack != LIVE_MAX_STACK || !chain_has_user_part(sample))
		return;
	counts->unwound++;
	counts->cut += markers == 1;
	counts->lost += markers > 1;
}

static void make_sample(struct sample_reader *reader, const struct record *record,
			struct raw_sample *raw)
{
	struct session *session = reader->session;
	const struct perfdata_attr *attr;
	const struct task_slot *slot;

	raw->event =
		session_sample_event(session, record->body, record->body_size, &reader->last_event);
	attr = &session->events.data[raw->event].attr;
	if (!perfdata_sample_decode(attr, record->body, record->body_size, record->header.misc,
				    session->header.swap, reader->scratch, SCRATCH_WORDS,
				    &raw->sample))
		reader->bad_samples++;
	raw->attr = attr;
	if (!raw->sample.has_period)
		raw->sample.period = attr->freq ? 1 : attr->period_or_freq;
	raw->key = session->timed ? raw->sample.time : record->sequence;
	raw->unwound = raw->cut = false;
	take_chain(reader, attr, raw);
	slot = find_task(reader, raw->sample.pid, raw->sample.tid, raw->key);
	raw->task_then = slot->task;
	raw->task = &raw->task_then;
	raw->stays = walk_stays(&reader->walk) && raw->sample.chain != reader->scratch &&
		     raw->sample.chain != reader->branch_chain && raw->sample.group_count == 0;
	raw->comm = slot->comm;
}

struct delivery {
	struct sample_reader *reader;
	raw_sample_fn fn;
	void *arg;
};

static int deliver(void *arg, const struct raw_sample *raw)
{
	struct delivery *delivery = arg;

	delivery->reader->event_samples[raw->event]++;
	return delivery->fn(delivery->arg, raw);
}

int sample_reader_run(struct sample_reader *reader, const struct chunk *chunk, raw_sample_fn fn,
		      void *arg)
{
	struct delivery delivery = {.reader = reader, .fn = fn, .arg = arg};
	const struct input_file *file;
	uint64_t released = chunk->offset;
	struct raw_sample *raw;
	struct record record;
	int r;

	if (reader->session->events.len == 0)
		return 0;
	file = &reader->session->input.files.data[chunk->file];
	walk_range(&reader->walk, file, chunk->offset, chunk->end, chunk->sequence);
	while ((r = walk_next(&reader->walk, &record)) == 1) {
		if (record.header.type != REC_SAMPLE)
			continue;
		raw = &reader->ring[reader->turn++ % SAMPLES_AHEAD];
		make_sample(reader, &record, raw);
		count_sample(reader, raw);
		if (record.offset - released >= RELEASE_BYTES) {
			steady_map_release(&file->map, released, record.offset);
			released = record.offset;
		}
		r = raw->sample.group_count > 0
			    ? group_counters_deliver(&reader->groups, reader->session, raw, deliver,
						     &delivery)
			    : deliver(&delivery, raw);
		if (r < 0)
			return r;
	}
	return r;
}

void session_release(const struct session *session, const struct chunk *chunk)
{
	steady_map_release(&session->input.files.data[chunk->file].map, chunk->offset, chunk->end);
}

void session_begin_pass(struct session *session)
{
	session->stats.truncated_stacks = 0;
	session->stats.unwound_stacks = session->stats.cut_stacks = 0;
	session->stats.lost_stacks = 0;
	vec_for_each(&session->public_events, event)
		event->samples = 0;
}

void session_check_input(struct session *session)
{
	struct session_stats *stats = &session->stats;
	uint64_t offset;

	vec_for_each(&session->input.files, file)
		if (steady_map_broken(&file->map, &offset)) /* worse than what was said before */
			snprintf(stats->problem, sizeof(stats->problem),
				 "cut or unreadable from byte %llu on since it was opened",
				 (unsigned long long)offset);
}

int sample_reader_finish(struct sample_reader *reader)
{
	struct session *session = reader->session;
	struct session_stats *stats = &session->stats;
	uint64_t lost = 0;

	session_check_input(session);
	stats->truncated_stacks += reader->truncated;
	stats->unwound_stacks += reader->unwinder.unwound;
	stats->cut_stacks += reader->unwinder.cut;
	stats->lost_stacks += reader->unwinder.lost;
	if (reader->bad_samples && stats->problem[0] == '\0')
		snprintf(stats->problem, sizeof(stats->problem),
			 "%llu samples have lengths that lead past their end",
			 (unsigned long long)reader->bad_samples);
	if (reader->samples && reader->first_time != UINT64_MAX) {
		stats->first_time_ns = stats->first_time_ns
					       ? MIN(stats->first_time_ns, reader->first_time)
					       : reader->first_time;
		stats->last_time_ns = MAX(stats->last_time_ns, reader->last_time);
	}
	if (session->clock_wall_ns && stats->first_time_ns)
		session->info.wall_time_ns =
			session->clock_wall_ns + (stats->first_time_ns - session->clock_event_ns);
	for (size_t i = 0; i < session->public_events.len; i++)
		session->public_events.data[i].samples += reader->event_samples[i];
	vec_for_each(&reader->lost.all, counter)
		if (lost_counter_raise(&session->lost, counter->id, counter->lost) < 0)
			return -ENOMEM;
	vec_for_each(&session->lost.all, counter)
		lost += counter->lost;
	/* LOST_SAMPLES records at the end of a recording repeat the counters. */
	stats->lost_samples = MAX(session->lost_sample_records, lost);
	return 0;
}

static enum frame_context context_of_mode(unsigned mode, uint64_t ip)
{
	switch (mode) {
	case REC_MISC_KERNEL:
		return FRAME_KERNEL;
	case REC_MISC_USER:
		return FRAME_USER;
	case REC_MISC_HV:
		return FRAME_HYPERVISOR;
	case REC_MISC_GUEST_KERNEL:
		return FRAME_GUEST_KERNEL;
	case REC_MISC_GUEST_USER:
		return FRAME_GUEST_USER;
	default:
		return ip >> 63 ? FRAME_KERNEL : FRAME_USER;
	}
}

static enum frame_context context_of_marker(uint64_t marker, enum frame_context now)
{
	switch (marker) {
	case CONTEXT_HV:
		return FRAME_HYPERVISOR;
	case CONTEXT_KERNEL:
		return FRAME_KERNEL;
	case CONTEXT_USER:
	case CONTEXT_USER_DEFERRED:
		return FRAME_USER;
	case CONTEXT_GUEST:
	case CONTEXT_GUEST_KERNEL:
		return FRAME_GUEST_KERNEL;
	case CONTEXT_GUEST_USER:
		return FRAME_GUEST_USER;
	default:
		return now;
	}
}

bool session_find_map(const struct session *session, uint32_t root, uint64_t address,
		      struct map *ret_map, struct session_object **ret_object)
{
	const struct map *map;

	pthread_rwlock_rdlock(&session->frontier->told);
	map = map_store_find(&session->tasks.maps, root, address);
	if (map) {
		*ret_map = *map;
		*ret_object = session->objects.data[map->dso];
	}
	pthread_rwlock_unlock(&session->frontier->told);
	return map;
}

struct sample_frame session_resolve(const struct session *session, const struct task *task,
				    uint64_t lookup, enum frame_context context)
{
	struct sample_frame frame = {.ip = lookup, .address = lookup, .context = context};
	uint32_t root = context == FRAME_USER           ? task->root
			: context == FRAME_KERNEL       ? task->kernel_root
			: context == FRAME_GUEST_KERNEL ? task->guest_root
							: 0;
	struct session_object *object;
	struct map map;

	if (root && session_find_map(session, root, lookup, &map, &object)) {
		frame.dso = &object->dso;
		if (frame.dso->kind == MODULE_ELF || frame.dso->kind == MODULE_VDSO ||
		    frame.dso->kind == MODULE_JITDUMP)
			frame.address = lookup - map.start + map.pgoff;
		if (context == FRAME_GUEST_KERNEL)
			frame.address = lookup;
	} else if (context == FRAME_KERNEL) {
		frame.dso = session->kernel;
	} else if (context == FRAME_GUEST_KERNEL) {
		frame.dso = session->guest_kernel;
	} else if (context == FRAME_GUEST_USER) {
		frame.dso = session->guest_user;
	} else if (context == FRAME_HYPERVISOR) {
		frame.dso = session->hypervisor;
	}
	return frame;
}

static void add_frame(const struct session *session, const struct raw_sample *raw,
		      struct frame_walk *walk, uint64_t ip, bool caller, enum frame_context context)
{
	if (walk->count == walk->cap)
		return;
	/* A return address may be the first byte behind the calling function. */
	walk->frames[walk->count++] =
		session_resolve(session, raw->task, caller ? ip - 1 : ip, context);
}

/* Where user code was when the kernel ran, from the registers copied for --call-graph dwarf. */
static bool user_ip(const struct session *session, const struct raw_sample *raw, uint64_t *ret)
{
	const struct perfdata_attr *attr = raw->attr;
	const char *arch = session->info.arch;
	unsigned bit = 8; /* x86 */
	uint64_t value;

	if (!raw->sample.user_regs)
		return false;
	if (arch && (strncmp(arch, "aarch64", 7) == 0 || strcmp(arch, "arm64") == 0))
		bit = 32;
	else if (arch && strncmp(arch, "arm", 3) == 0)
		bit = 15;
	if (!(attr->regs_user >> bit & 1))
		return false;
	memcpy(&value,
	       raw->sample.user_regs +
		       8 * __builtin_popcountll(attr->regs_user & ((UINT64_C(1) << bit) - 1)),
	       8);
	*ret = session->header.swap ? __builtin_bswap64(value) : value;
	return *ret != 0;
}

void session_leaf(const struct raw_sample *raw, struct leaf *ret)
{
	const struct perfdata_sample *sample = &raw->sample;
	struct leaf leaf = {.context =
				    context_of_mode(sample->misc & REC_MISC_CPUMODE, sample->ip)};
	enum frame_context context = leaf.context;
	size_t i = 0;

	while (i < sample->chain_len && sample->chain[i] >= CONTEXT_FIRST)
		context = context_of_marker(sample->chain[i++], context);
	leaf.caller_context = leaf.context;
	/* The chain begins with the sampled address itself, give or take the skid. */
	if (i < sample->chain_len && sample->has_ip && context == leaf.context) {
		leaf.skip = i + 1;
		leaf.caller_context = context;
	}
	leaf.exact = leaf.skip == 0;
	*ret = leaf;
}

void session_callers(const struct session *session, const struct raw_sample *raw,
		     const struct leaf *leaf, struct frame_walk *walk)
{
	const struct perfdata_sample *sample = &raw->sample;
	const struct perfdata_attr *attr = raw->attr;
	enum frame_context context = leaf->caller_context;
	bool exact = leaf->exact, user = leaf->context == FRAME_USER;
	uint32_t addresses = leaf->skip > 0;
	uint64_t ip;

	for (size_t i = leaf->skip; i < sample->chain_len; i++) {
		ip = sample->chain[i];
		if (ip >= CONTEXT_FIRST) {
			context = context_of_marker(ip, context);
			exact = true; /* registers at the entry, not a return address */
			continue;
		}
		addresses++;
		if (ip == 0)
			continue;
		add_frame(session, raw, walk, ip, !exact && !session->calls_in_chains, context);
		user |= context == FRAME_USER;
		exact = false;
	}
	/* simpleperf unwinds before it writes: its chains may be longer than the kernel's. */
	walk->truncated = addresses >= (attr->max_stack ? attr->max_stack : DEFAULT_MAX_STACK) &&
			  !(session->calls_in_chains && attr->sample_type & SAMPLE_STACK_USER);
	if (raw->unwound) {
		walk->truncated = raw->cut;
		if (raw->cut && walk->count < walk->cap)
			walk->frames[walk->count++] = (struct sample_frame){.dso = session->cut};
	}
	if (sample->stack) { /* no registers to unwind from: only what the chain gives */
		if (!user && user_ip(session, raw, &ip))
			add_frame(session, raw, walk, ip, false, FRAME_USER);
		walk->truncated = true;
	}
}

struct run {
	struct session *session;
	struct sample_reader *reader;
	struct frame_walk frames;
	struct leaf leaf;
	int (*fn)(void *arg, const struct sample *sample);
	void *arg;
};

static int run_unwound(struct run *run, const struct raw_sample *raw)
{
	const struct perfdata_sample *s = &raw->sample;
	struct sample sample = {
		.time_ns = s->time,
		.period = s->period,
		.weight = s->weight,
		.address = s->addr,
		.id = s->id,
		.branch_count = s->branch_count,
		.event = raw->event,
		.pid = s->pid,
		.tid = s->tid,
		.cpu = s->cpu,
		.comm = raw->comm,
	};
	int r;

	if (run->frames.cap < s->chain_len + 2) {
		uint32_t need = (uint32_t)s->chain_len + 2;
		struct sample_frame *frames = realloc(run->frames.frames, need * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		run->frames.frames = frames;
		run->frames.cap = need;
	}
	session_leaf(raw, &run->leaf);
	run->frames.count = 0;
	if (s->has_ip)
		add_frame(run->session, raw, &run->frames, s->ip, false, run->leaf.context);
	session_callers(run->session, raw, &run->leaf, &run->frames);
	run->reader->truncated += run->frames.truncated;
	sample.frames = run->frames.frames;
	sample.frame_count = run->frames.count;
	sample.truncated = run->frames.truncated;
	r = run->fn(run->arg, &sample);
	return MIN(r, 0);
}

static int run_sample(void *arg, const struct raw_sample *raw)
{
	struct run *run = arg;
	struct raw_sample unwound;
	int r;

	if (!raw->sample.user_regs)
		return run_unwound(run, raw);
	r = unwinder_run(&run->reader->unwinder, run->session, raw, &unwound);
	return r < 0 ? r : run_unwound(run, &unwound);
}

int session_run(struct session *session, int (*fn)(void *arg, const struct sample *sample),
		void *arg, struct err *err)
{
	struct sample_reader reader;
	struct run run = {.session = session, .reader = &reader, .fn = fn, .arg = arg};
	int r = session->scanned ? 0 : session_scan(session, err);

	if (r < 0)
		return r;
	r = sample_reader_init(&reader, session);
	session_begin_pass(session);
	for (size_t i = 0; i < session->chunks.len && r == 0; i++) {
		r = sample_reader_run(&reader, &session->chunks.data[i], run_sample, &run);
		session_release(session, &session->chunks.data[i]);
	}
	if (r == 0)
		r = sample_reader_finish(&reader);
	free(run.frames.frames);
	sample_reader_fini(&reader);
	return r < 0 ? err_wrap(err, r, "reading samples") : 0;
}
