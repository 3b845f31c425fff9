/*
 * Regions: what runs between culprit_begin() and culprit_end().
 *
 * Each thread has its own counters, table of regions and stack of frames; nothing is shared while
 * measuring, so begin and end take no lock. A region's name is found through a small cache of the
 * addresses that callers pass (confirmed by comparing the text: the buffer may have changed), then
 * by hash.
 *
 * Region tables grow by chunks that never move, and a region is published by raising "count" last:
 * the thread that writes the results at exit may read the tables of threads that still run.
 *
 * In a forked child the counters belong to the parent: they are opened again, the numbers start at
 * 0 and frames that were open in the parent end without counting or being reported.
 *
 * Failures (no memory, no descriptor) never disturb the program: the region is then not measured,
 * and the file says how many were lost.
 */
#include "../include/culprit.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "regions-internal.h"

static struct process process = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .active = -1};

static __thread struct thread *self __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Names are short: a loop costs less than a call. */
static inline bool same_name(const char *a, const char *b)
{
	for (; *a == *b; a++, b++)
		if (!*a)
			return true;
	return false;
}

static inline struct region *region_find(struct thread *t, const char *name, bool add)
{
	unsigned slot = (unsigned)(((uintptr_t)name >> 2) ^ ((uintptr_t)name >> 9)) % CACHE_SLOTS;
	struct region *region;

	if (__builtin_expect(
		    t->cache[slot].name == name && same_name(t->cache[slot].region->name, name), 1))
		return t->cache[slot].region;
	region = culprit_region_find_slow(t, name, add);
	if (region) {
		t->cache[slot].name = name;
		t->cache[slot].region = region;
	}
	return region;
}

static void thread_link(struct thread *t)
{
	pthread_mutex_lock(&process.lock);
	t->next = process.threads;
	if (t->next)
		t->next->previous = t;
	process.threads = t;
	pthread_mutex_unlock(&process.lock);
}

static void region_merge(struct region *into, const struct region *from)
{
	into->calls += from->calls;
	into->unbalanced += from->unbalanced;
	for (unsigned v = 0; v < VALUES_MAX; v++) {
		into->total[v] += from->total[v];
		into->self[v] += from->self[v];
	}
}

static void thread_free(struct thread *t)
{
	for (unsigned i = 0; i < t->count; i++)
		free(region_at(t, i)->name);
	for (unsigned i = 0; i < CHUNKS_MAX && t->chunks[i]; i++)
		free(t->chunks[i]);
	free(t->index);
	free(t);
}

/* Beyond ENDED_MAX, what an ended thread measured goes to the thread numbered 0 (locked). */
static void fold_ended(struct thread *t)
{
	struct thread *rest = process.threads;

	while (rest && rest->tid != 0)
		rest = rest->next;
	if (!rest) {
		t->tid = 0;
		return;
	}
	for (unsigned i = 0; i < t->count; i++) {
		struct region *into = culprit_region_find_slow(rest, region_at(t, i)->name, true);

		if (into)
			region_merge(into, region_at(t, i));
		else
			rest->lost++;
	}
	rest->lost += t->lost;
	rest->stray_ends += t->stray_ends;
	if (t->previous)
		t->previous->next = t->next;
	else
		process.threads = t->next;
	if (t->next)
		t->next->previous = t->previous;
	thread_free(t);
}

static void abandon_frames(struct thread *t)
{
	while (t->depth > 0) {
		struct frame *frame = &t->frames[--t->depth];

		if (frame->inherited)
			continue;
		frame->region->depth--;
		frame->region->unbalanced++;
	}
}

static void thread_ended(void *arg)
{
	struct thread *t = arg;

	self = NULL;
	culprit_counters_close(&t->counters);
	abandon_frames(t);
	pthread_mutex_lock(&process.lock);
	t->ended = true;
	if (++process.ended > ENDED_MAX)
		fold_ended(t);
	pthread_mutex_unlock(&process.lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&process.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&process.lock);
}

static void region_clear(struct region *region)
{
	region->calls = region->unbalanced = 0;
	memset(region->total, 0, sizeof(region->total));
	memset(region->self, 0, sizeof(region->self));
}

/* Only the forking thread lives on; the others' tables are left behind, as their memory may be half
 * written. */
static void after_fork_child(void)
{
	pthread_mutex_init(&process.lock, NULL);
	process.threads = self;
	process.ended = 0;
	process.lost_threads = 0;
	if (!self)
		return;
	self->next = self->previous = NULL;
	culprit_counters_close(&self->counters);
	self->open = false;
	self->tid = (int)syscall(SYS_gettid);
	self->lost = self->stray_ends = 0;
	for (unsigned i = 0; i < self->count; i++) {
		region_clear(region_at(self, i));
		region_at(self, i)->depth = 0;
	}
	for (unsigned i = 0; i < self->depth; i++)
		self->frames[i].inherited = true;
}

static void measure_cost(struct thread *t);

static void process_start(void)
{
	const char *path = secure_getenv("CULPRIT_REGIONS");

	if (!path || !*path || pthread_key_create(&process.key, thread_ended) != 0) {
		process.active = 0;
		return;
	}
	process.path = strdup(path);
	process.pid = getpid();
	culprit_events_parse(&process.events, secure_getenv("CULPRIT_EVENTS"));
	culprit_events_probe(&process.events);
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	process.active = process.path != NULL;
}

static int thread_open(struct thread *t)
{
	int r = culprit_counters_open(&t->counters, &process.events);

	if (r < 0)
		return r;
	t->value_count = t->counters.count + 1;
	t->tick_mult = t->counters.tick_mult;
	t->tick_shift = t->counters.tick_shift;
	t->open = true;
	return 0;
}

/* The calling thread's state, made at its first region; NULL: not measured. */
static struct thread *thread_start(void)
{
	struct thread *t = NULL;

	pthread_once(&process.once, process_start);
	if (!process.active)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t || thread_open(t) < 0 || pthread_setspecific(process.key, t) != 0) {
		if (t)
			culprit_counters_close(&t->counters);
		free(t);
		__atomic_fetch_add(&process.lost_threads, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t->tid = (int)syscall(SYS_gettid);
	thread_link(t);
	self = t;
	if (process.pair_ns == 0)
		measure_cost(t);
	return t;
}

static inline struct thread *current(void)
{
	if (__builtin_expect(process.active == 0, 0))
		return NULL;
	if (__builtin_expect(!self, 0))
		return thread_start();
	if (__builtin_expect(!self->open, 0) && thread_open(self) < 0) {
		self->lost++;
		return NULL;
	}
	return self;
}

static inline bool read_values(struct thread *t, uint64_t *values)
{
	values[0] = t->counters.tick_mult ? culprit_counters_ticks(&t->counters) : now_ns();
	return t->counters.count == 0 || culprit_counters_read(&t->counters, values + 1);
}

static inline void push(struct thread *t, struct region *region)
{
	struct frame *frame = &t->frames[t->depth++];

	frame->region = region;
	frame->inherited = false;
	region->depth++;
	for (unsigned v = 0; v < t->value_count; v++) {
		frame->inner[v] = 0;
		__asm__ volatile("" ::: "memory"); /* a call of memset() costs more */
	}
}

/* Takes the innermost frame off the stack and counts it up to now. */
static inline void pop(struct thread *t, const uint64_t *now, bool counted)
{
	struct frame *frame = &t->frames[--t->depth], *outer = t->depth ? frame - 1 : NULL;
	struct region *region = frame->region;

	if (__builtin_expect(frame->inherited, 0))
		return;
	region->depth--;
	if (__builtin_expect(!counted || frame->uncounted, 0)) {
		t->lost++;
		return;
	}
	region->calls++;
	for (unsigned v = 0; v < t->value_count; v++) {
		uint64_t delta = now[v] - frame->start[v];

		region->self[v] += delta - frame->inner[v];
		if (region->depth == 0)
			region->total[v] += delta;
		if (outer)
			outer->inner[v] += delta;
	}
}

void culprit_begin(const char *name)
{
	struct thread *t = current();
	struct region *region;

	if (!t)
		return;
	if (t->depth == DEPTH_MAX) {
		t->too_deep++;
		t->lost++;
		return;
	}
	region = region_find(t, name, true);
	if (!region) {
		t->lost++;
		return;
	}
	push(t, region);
	t->frames[t->depth - 1].uncounted = !read_values(t, t->frames[t->depth - 1].start);
}

void culprit_end(const char *name)
{
	uint64_t now[VALUES_MAX];
	struct thread *t = current();
	struct region *region;
	unsigned at;
	bool counted;

	if (!t)
		return;
	if (t->too_deep > 0) {
		t->too_deep--;
		return;
	}
	counted = read_values(t, now);
	region = region_find(t, name, false);
	for (at = t->depth; region && at > 0 && t->frames[at - 1].region != region; at--)
		;
	if (!region || at == 0) {
		t->stray_ends++;
		return;
	}
	while (t->depth > at) {
		if (!t->frames[t->depth - 1].inherited)
			t->frames[t->depth - 1].region->unbalanced++;
		pop(t, now, counted);
	}
	pop(t, now, counted);
}

void culprit_switch(const char *name)
{
	uint64_t now[VALUES_MAX];
	struct thread *t = current();
	struct region *region;
	bool counted;

	if (!t || t->too_deep > 0)
		return;
	if (t->depth == 0) {
		culprit_begin(name);
		return;
	}
	counted = read_values(t, now);
	region = region_find(t, name, true);
	pop(t, now, counted);
	if (!region) {
		t->lost++;
		return;
	}
	push(t, region);
	memcpy(t->frames[t->depth - 1].start, now, t->value_count * sizeof(*now));
	t->frames[t->depth - 1].uncounted = !counted;
}

int culprit_active(void)
{
	return current() != NULL;
}

/* An empty pair, the least of a few batches; leaves no trace in the results. */
static void measure_cost(struct thread *t)
{
	static const char name[] = "";
	uint64_t best_ns = UINT64_MAX, best_cycles = UINT64_MAX;
	unsigned cycles = 0;

	for (unsigned i = 0; i < t->counters.count; i++) {
		const struct event *event = &process.events.events[t->counters.event_of[i]];

		if (event->type == PERF_TYPE_HARDWARE && event->config == PERF_COUNT_HW_CPU_CYCLES)
			cycles = i + 1;
	}
	process.pair_ns = 1;
	for (int batch = 0; batch < 8; batch++) {
		uint64_t before[VALUES_MAX], after[VALUES_MAX];
		bool counted = read_values(t, before);

		for (int i = 0; i < 64; i++) {
			culprit_begin(name);
			culprit_end(name);
		}
		if (!read_values(t, after) || !counted)
			break;
		after[0] = culprit_region_wall_ns(t, after[0] - before[0]);
		best_ns = after[0] < best_ns ? after[0] : best_ns;
		if (cycles && after[cycles] - before[cycles] < best_cycles)
			best_cycles = after[cycles] - before[cycles];
	}
	if (best_ns != UINT64_MAX)
		process.pair_ns = (best_ns + 63) / 64;
	if (best_cycles != UINT64_MAX)
		process.pair_cycles = best_cycles / 64;
	t->lost = 0;
	if (t->count > 0)
		region_clear(region_at(t, 0));
}

int culprit_write(void)
{
	return process.active == 1 ? culprit_regions_write_file(&process, self) : 0;
}

__attribute__((destructor)) static void at_exit(void)
{
	culprit_write();
}
