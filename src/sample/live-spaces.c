#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/live-internal.h"

/* Ended processes are looked for when there are this many more than after the last time. */
#define SWEEP_STEP 1024

/* The first mapping that ends behind the address. */
static size_t first_behind(const struct live_space *space, uint64_t address)
{
	return partition_point(space->maps.len, at, space->maps.data[at].end <= address);
}

static bool same_map(const struct map *a, const struct map *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff && a->dso == b->dso;
}

/* What the new mapping covers goes; of a mapping that it covers in part the rest stays. */
static int add_map(struct live_space *space, const struct map *map)
{
	size_t from = first_behind(space, map->start), to = from, put = 0;
	struct map pieces[3];

	while (to < space->maps.len && space->maps.data[to].start < map->end)
		to++;
	if (to == from + 1 && same_map(&space->maps.data[from], map))
		return 0;
	if (from < to && space->maps.data[from].start < map->start) {
		pieces[put] = space->maps.data[from];
		pieces[put++].end = map->start;
	}
	pieces[put++] = *map;
	if (from < to && space->maps.data[to - 1].end > map->end) {
		pieces[put] = space->maps.data[to - 1];
		pieces[put].pgoff += map->end - pieces[put].start;
		pieces[put++].start = map->end;
	}
	if (vec_reserve(&space->maps, space->maps.len + put) < 0)
		return -ENOMEM;
	memmove(space->maps.data + from + put, space->maps.data + to,
		(space->maps.len - to) * sizeof(*map));
	memcpy(space->maps.data + from, pieces, put * sizeof(*map));
	space->maps.len += put - (to - from);
	return 1;
}

static void drop_jit(struct live_space *space)
{
	struct live_jit *jit = space->jit;

	space->jit = NULL;
	if (!jit || --jit->users > 0)
		return;
	jit_unwind_free(jit->unwind);
	free(jit);
}

static void release(struct live_space *space)
{
	drop_jit(space);
	vec_fini(&space->maps);
	*space = (struct live_space){.pid = -1};
}

/* Takes out the processes that have ended; their places are used again. */
static void sweep(struct live_spaces *spaces)
{
	size_t used = 0;

	u64_map_fini(&spaces->index);
	spaces->index = (struct u64_map){0};
	for (size_t i = 0; i < spaces->all.len; i++) {
		struct live_space *space = &spaces->all.data[i];

		if (space->exited && kill(space->pid, 0) < 0 && errno == ESRCH) {
			release(space);
			continue;
		}
		/* Without memory it is forgotten: its stacks are lost, not wrong. */
		if (u64_map_put(&spaces->index, (uint32_t)space->pid, (uint32_t)used) < 0) {
			release(space);
			continue;
		}
		if (used != i) {
			spaces->all.data[used] = *space;
			*space = (struct live_space){.pid = -1};
		}
		used++;
	}
	spaces->all.len = used;
	spaces->sweep_at = used + SWEEP_STEP;
}

static struct live_space *find(const struct live_spaces *spaces, int32_t pid)
{
	uint32_t index;

	return u64_map_get(&spaces->index, (uint32_t)pid, &index) ? &spaces->all.data[index] : NULL;
}

static int find_or_add(struct live_spaces *spaces, int32_t pid, struct live_space **ret)
{
	struct live_space *space = find(spaces, pid);

	if (!space) {
		if (spaces->all.len >= MAX(spaces->sweep_at, (size_t)SWEEP_STEP))
			sweep(spaces);
		if (vec_push(&spaces->all, ((struct live_space){.pid = pid})) < 0)
			return -ENOMEM;
		space = &spaces->all.data[spaces->all.len - 1];
		space->key = ++spaces->next_key;
		if (u64_map_put(&spaces->index, (uint32_t)pid, (uint32_t)spaces->all.len - 1) < 0) {
			spaces->all.len--;
			return -ENOMEM;
		}
	}
	*ret = space;
	return 0;
}

int live_spaces_map(struct live_spaces *spaces, int32_t pid, const struct map *map)
{
	struct live_space *space;
	int r = find_or_add(spaces, pid, &space);

	if (r < 0 || map->end <= map->start)
		return r;
	if (space->exec) {
		space->maps.len = 0;
		space->exec = false;
		drop_jit(space);
	}
	space->exited = false;
	r = add_map(space, map);
	if (r > 0)
		space->key = ++spaces->next_key;
	return MIN(r, 0);
}

int live_spaces_fork(struct live_spaces *spaces, int32_t pid, int32_t parent)
{
	struct live_space *space;
	const struct live_space *from;
	int r;

	if (pid == parent) /* a thread */
		return 0;
	r = find_or_add(spaces, pid, &space);
	if (r < 0)
		return r;
	space->key = ++spaces->next_key;
	space->exec = space->exited = false;
	space->maps.len = 0;
	drop_jit(space);
	from = find(spaces, parent);
	if (!from || from->maps.len == 0)
		return 0;
	space->jit = from->jit;
	if (space->jit)
		space->jit->users++;
	if (vec_reserve(&space->maps, from->maps.len) < 0)
		return -ENOMEM;
	memcpy(space->maps.data, from->maps.data, from->maps.len * sizeof(*from->maps.data));
	space->maps.len = from->maps.len;
	return 0;
}

/* Until the first mapping behind it the old program's frames are still on the stack. */
int live_spaces_exec(struct live_spaces *spaces, int32_t pid)
{
	struct live_space *space;
	int r = find_or_add(spaces, pid, &space);

	if (r == 0)
		space->exec = true;
	return r;
}

void live_spaces_exit(struct live_spaces *spaces, int32_t pid)
{
	struct live_space *space = find(spaces, pid);

	if (!space)
		return;
	space->exited = true;
	/* What it still wrote is in the file by now. */
	if (space->jit && space->jit->users == 1) {
		(void)jit_unwind_update(space->jit->unwind);
		jit_unwind_close(space->jit->unwind);
	}
}

int live_spaces_jitdump(struct live_spaces *spaces, int32_t pid, const char *path)
{
	struct live_space *space;
	struct live_jit *jit;
	int r = find_or_add(spaces, pid, &space);

	if (r < 0)
		return r;
	jit = calloc(1, sizeof(*jit));
	r = jit ? jit_unwind_new(pid, path, &jit->unwind) : -ENOMEM;
	if (r < 0) {
		free(jit);
		return r;
	}
	drop_jit(space);
	jit->users = 1;
	space->jit = jit;
	return 0;
}

const struct live_space *live_space_find(const struct live_spaces *spaces, int32_t pid)
{
	return find(spaces, pid);
}

const struct map *live_space_map(const struct live_space *space, uint64_t address)
{
	size_t i = first_behind(space, address);

	return i < space->maps.len && space->maps.data[i].start <= address ? &space->maps.data[i]
									   : NULL;
}

void live_spaces_fini(struct live_spaces *spaces)
{
	vec_for_each(&spaces->all, space)
		release(space);
	vec_fini(&spaces->all);
	u64_map_fini(&spaces->index);
}
