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

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

static struct {
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
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .active = -1};

static __thread struct thread *self __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

static struct region *region_at(const struct thread *t, unsigned i)
{
	return &t->chunks[i / CHUNK_REGIONS][i % CHUNK_REGIONS];
}

static int index_grow(struct thread *t)
{
	uint32_t mask = t->index_mask ? t->index_mask * 2 + 1 : 63;
	uint32_t *index = calloc((size_t)mask + 1, sizeof(*index));

	if (!index)
		return -ENOMEM;
	for (unsigned i = 0; i < t->count; i++) {
		uint32_t slot = region_at(t, i)->hash & mask;

		while (index[slot])
			slot = (slot + 1) & mask;
		index[slot] = i + 1;
	}
	free(t->index);
	t->index = index;
	t->index_mask = mask;
	return 0;
}

static struct region *region_add(struct thread *t, const char *name, uint32_t hash, uint32_t slot)
{
	struct region **chunk = &t->chunks[t->count / CHUNK_REGIONS], *region;

	if (t->count >= CHUNKS_MAX * CHUNK_REGIONS)
		return NULL;
	if (!*chunk)
		*chunk = calloc(CHUNK_REGIONS, sizeof(**chunk));
	if (!*chunk)
		return NULL;
	region = region_at(t, t->count);
	region->name = strdup(name);
	if (!region->name)
		return NULL;
	region->hash = hash;
	t->index[slot] = t->count + 1;
	__atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELEASE);
	return region;
}

static struct region *region_find_slow(struct thread *t, const char *name, bool add)
{
	uint32_t hash = hash_name(name), slot;

	if ((t->count + 1) * 4 > t->index_mask * 3 && index_grow(t) < 0)
		return NULL;
	for (slot = hash & t->index_mask; t->index[slot]; slot = (slot + 1) & t->index_mask) {
		struct region *region = region_at(t, t->index[slot] - 1);

		if (region->hash == hash && strcmp(region->name, name) == 0)
			return region;
	}
	return add ? region_add(t, name, hash, slot) : NULL;
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
	region = region_find_slow(t, name, add);
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
		struct region *into = region_find_slow(rest, region_at(t, i)->name, true);

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
	counters_close(&t->counters);
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
	counters_close(&self->counters);
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
	events_parse(&process.events, secure_getenv("CULPRIT_EVENTS"));
	events_probe(&process.events);
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	process.active = process.path != NULL;
}

static int thread_open(struct thread *t)
{
	int r = counters_open(&t->counters, &process.events);

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
			counters_close(&t->counters);
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
	values[0] = t->counters.tick_mult ? counters_ticks(&t->counters) : now_ns();
	return t->counters.count == 0 || counters_read(&t->counters, values + 1);
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

static uint64_t wall_ns(const struct thread *t, uint64_t value)
{
	if (t->tick_mult == 0)
		return value;
	return (uint64_t)(((unsigned __int128)value * t->tick_mult) >> t->tick_shift);
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
		after[0] = wall_ns(t, after[0] - before[0]);
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

static void write_name(FILE *file, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c < ' ' || c == '\\' || c == 127)
			fprintf(file, "\\x%02x", c);
		else
			fputc(c, file);
	}
}

static void write_events(FILE *file)
{
	static const char *const states[] = {"counted", "not_supported", "not_counted"};
	const struct thread *t = self ? self : process.threads;

	fprintf(file, "event\twall\tcounted\tclock\t\n");
	for (unsigned i = 0; i < process.events.count; i++) {
		const struct event *event = &process.events.events[i];

		fputs("event\t", file);
		write_name(file, event->name);
		fprintf(file, "\t%s\t%s\t", states[event->state],
			event->state != EVENT_COUNTED ? "-"
			: t && t->counters.direct     ? "direct"
						      : "read");
		write_name(file, event->reason);
		fputc('\n', file);
	}
	fprintf(file, "cost\t%llu\t", (unsigned long long)process.pair_ns);
	if (process.pair_cycles)
		fprintf(file, "%llu\n", (unsigned long long)process.pair_cycles);
	else
		fputs("-\n", file);
}

static void write_thread(FILE *file, const struct thread *t)
{
	unsigned count = __atomic_load_n(&t->count, __ATOMIC_ACQUIRE);

	fprintf(file, "thread\t%d\t%llu\t%llu\n", t->tid, (unsigned long long)t->lost,
		(unsigned long long)t->stray_ends);
	for (unsigned i = 0; i < count; i++) {
		const struct region *region = region_at(t, i);
		uint64_t open = region->unbalanced + region->depth;

		if (region->calls == 0 && open == 0)
			continue;
		fputs("region\t", file);
		write_name(file, region->name);
		fprintf(file, "\t%llu\t%llu", (unsigned long long)region->calls,
			(unsigned long long)open);
		for (unsigned v = 0; v < t->value_count; v++)
			fprintf(file, "\t%llu\t%llu",
				(unsigned long long)(v ? region->total[v]
						       : wall_ns(t, region->total[0])),
				(unsigned long long)(v ? region->self[v]
						       : wall_ns(t, region->self[0])));
		fputc('\n', file);
	}
}

/* The path with %p as the process's number; a forked child without %p appends it, so as not to
 * overwrite its parent's file. */
static void result_path(char *out, size_t size)
{
	size_t len = 0;
	bool numbered = false;

	for (const char *from = process.path; *from && len + 24 < size; from++) {
		if (from[0] == '%' && from[1] == 'p') {
			len += (size_t)snprintf(out + len, size - len, "%d", (int)getpid());
			numbered = true;
			from++;
		} else {
			out[len++] = *from;
		}
	}
	out[len] = '\0';
	if (!numbered && getpid() != process.pid)
		snprintf(out + len, size - len, ".%d", (int)getpid());
}

int culprit_write(void)
{
	char path[4096];
	FILE *file;
	int r = 0;

	if (process.active != 1)
		return 0;
	result_path(path, sizeof(path));
	file = fopen(path, "we");
	if (!file)
		return -errno;
	pthread_mutex_lock(&process.lock);
	fprintf(file, "culprit-regions\t1\nprocess\t%d\t", (int)getpid());
	write_name(file, program_invocation_short_name);
	fprintf(file, "\t%llu\n", (unsigned long long)process.lost_threads);
	write_events(file);
	for (const struct thread *t = process.threads; t; t = t->next)
		write_thread(file, t);
	fputs("end\n", file);
	pthread_mutex_unlock(&process.lock);
	if (fflush(file) != 0)
		r = -errno;
	fclose(file);
	return r;
}

__attribute__((destructor)) static void at_exit(void)
{
	culprit_write();
}
