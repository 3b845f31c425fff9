/*
 * Replays fork, exec, comm and mmap events in time order into timelines that can be asked for any
 * time.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "sample/session-internal.h"

static int compare_events(const void *a, const void *b)
{
	const struct side_event *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int process_index(struct tasks *tasks, int32_t pid, uint32_t *ret)
{
	int r;

	if (u64_map_get(&tasks->process_index, (uint32_t)pid, ret))
		return 0;
	r = vec_push(&tasks->processes, ((struct process){0}));
	if (r < 0)
		return r;
	*ret = (uint32_t)tasks->processes.len - 1;
	return u64_map_put(&tasks->process_index, (uint32_t)pid, *ret);
}

static int thread_index(struct tasks *tasks, int32_t tid, uint32_t *ret)
{
	int r;

	if (u64_map_get(&tasks->thread_index, (uint32_t)tid, ret))
		return 0;
	r = vec_push(&tasks->threads, ((struct thread){0}));
	if (r < 0)
		return r;
	*ret = (uint32_t)tasks->threads.len - 1;
	return u64_map_put(&tasks->thread_index, (uint32_t)tid, *ret);
}

static int set_space(struct tasks *tasks, int32_t pid, uint64_t key, uint32_t root)
{
	struct process *process;
	uint32_t index;
	int r = process_index(tasks, pid, &index);

	if (r < 0)
		return r;
	process = &tasks->processes.data[index];
	process->exec = false;
	if (process->versions.len > 0 &&
	    process->versions.data[process->versions.len - 1].key == key) {
		process->versions.data[process->versions.len - 1].root = root;
		return 0;
	}
	return vec_push(&process->versions, ((struct space_version){key, root}));
}

static uint32_t last_space(const struct tasks *tasks, int32_t pid)
{
	const struct process *process;
	uint32_t index;

	if (!u64_map_get(&tasks->process_index, (uint32_t)pid, &index))
		return 0;
	process = &tasks->processes.data[index];
	return process->versions.len ? process->versions.data[process->versions.len - 1].root : 0;
}

/*
 * An exec takes effect with the first mapping behind it: until then the kernel runs on behalf of
 * the old program, whose frames are still on the stack.
 */
static int exec_begins(struct tasks *tasks, int32_t pid)
{
	uint32_t index;
	int r = process_index(tasks, pid, &index);

	if (r == 0)
		tasks->processes.data[index].exec = true;
	return r;
}

static bool exec_pending(const struct tasks *tasks, int32_t pid)
{
	uint32_t index;

	return u64_map_get(&tasks->process_index, (uint32_t)pid, &index) &&
	       tasks->processes.data[index].exec;
}

static int set_comm(struct tasks *tasks, int32_t tid, uint64_t key, const char *comm)
{
	struct thread *thread;
	uint32_t index;
	int r = thread_index(tasks, tid, &index);

	if (r < 0)
		return r;
	thread = &tasks->threads.data[index];
	if (thread->versions.len > 0 &&
	    thread->versions.data[thread->versions.len - 1].key == key) {
		thread->versions.data[thread->versions.len - 1].comm = comm;
		return 0;
	}
	return vec_push(&thread->versions, ((struct comm_version){key, comm}));
}

static const char *last_comm(const struct tasks *tasks, int32_t tid)
{
	const struct thread *thread;
	uint32_t index;

	if (!u64_map_get(&tasks->thread_index, (uint32_t)tid, &index))
		return NULL;
	thread = &tasks->threads.data[index];
	return thread->versions.len ? thread->versions.data[thread->versions.len - 1].comm : NULL;
}

/* Takes the range out of what is known to be memory. */
static int memory_cut(struct process *process, uint64_t start, uint64_t end)
{
	size_t kept = 0, count = process->memory.len;
	struct memory_range behind = {0, 0};

	for (size_t i = 0; i < count; i++) {
		struct memory_range range = process->memory.data[i];

		if (range.start < start && range.end > end)
			behind = (struct memory_range){end, range.end};
		else if (range.start >= start && range.end > end)
			range.start = MAX(range.start, end);
		if (range.start < start)
			range.end = MIN(range.end, start);
		if (range.start < range.end && (range.end <= start || range.start >= end))
			process->memory.data[kept++] = range;
	}
	process->memory.len = kept;
	if (behind.start == behind.end)
		return 0;
	/* One range became two: they stay sorted. */
	for (size_t i = 0; i < kept; i++)
		if (process->memory.data[i].start > behind.start) {
			struct memory_range next = process->memory.data[i];

			process->memory.data[i] = behind;
			behind = next;
		}
	return vec_push(&process->memory, behind);
}

/* Adds what was not known to be memory yet to the space, and then the whole to the memory. */
static int memory_add(struct tasks *tasks, struct process *process, const struct side_event *event,
		      uint32_t *root)
{
	uint64_t at = event->start, start = event->start, end = event->end;
	int r = 0;

	for (size_t i = 0; r == 0 && i < process->memory.len; i++) {
		struct memory_range range = process->memory.data[i];

		if (range.end < event->start || range.start > event->end)
			continue;
		if (range.start > at)
			r = map_store_add(&tasks->maps, root,
					  &(struct map){at, range.start, 0, event->dso});
		at = MAX(at, range.end);
		start = MIN(start, range.start);
		end = MAX(end, range.end);
	}
	if (r == 0 && at < event->end)
		r = map_store_add(&tasks->maps, root, &(struct map){at, event->end, 0, event->dso});
	if (r == 0)
		r = memory_cut(process, start, end);
	if (r < 0 || start >= end)
		return r;
	for (size_t i = 0; i < process->memory.len; i++)
		if (process->memory.data[i].start > start) {
			struct memory_range next = process->memory.data[i];

			process->memory.data[i] = (struct memory_range){start, end};
			start = next.start;
			end = next.end;
		}
	return vec_push(&process->memory, ((struct memory_range){start, end}));
}

static int replay_mmap(struct tasks *tasks, const struct side_event *event)
{
	uint32_t root = exec_pending(tasks, event->pid) ? 0 : last_space(tasks, event->pid), index;
	struct map map = {event->start, event->end, event->pgoff, event->dso};
	struct process *process;
	int r = process_index(tasks, event->pid, &index);

	if (r < 0)
		return r;
	process = &tasks->processes.data[index];
	if (process->exec)
		process->memory.len = 0;
	if (event->kind == SIDE_MMAP && event->flag) {
		r = memory_add(tasks, process, event, &root);
	} else {
		r = map_store_add(&tasks->maps, &root, &map);
		if (r == 0 && event->kind == SIDE_MMAP)
			r = memory_cut(process, event->start, event->end);
	}
	if (r == -ENOSPC || r == -ELOOP)
		return 0; /* more mappings than any system has: the frame becomes [unknown] */
	return r < 0 ? r : set_space(tasks, event->pid, event->key, root);
}

static int inherit_memory(struct tasks *tasks, const struct side_event *event)
{
	uint32_t parent, child;
	int r = process_index(tasks, event->ppid, &parent);

	if (r == 0)
		r = process_index(tasks, event->pid, &child);
	if (r < 0 || parent == child)
		return r;
	tasks->processes.data[child].memory.len = 0;
	for (size_t i = 0; r == 0 && !event->flag && i < tasks->processes.data[parent].memory.len;
	     i++)
		r = vec_push(&tasks->processes.data[child].memory,
			     tasks->processes.data[parent].memory.data[i]);
	return r;
}

static int replay_fork(struct tasks *tasks, const struct side_event *event)
{
	const char *comm = last_comm(tasks, event->ptid);
	int r = 0;

	if (!comm)
		comm = last_comm(tasks, event->ppid);
	if (comm)
		r = set_comm(tasks, event->tid, event->key, comm);
	if (r < 0 || event->pid == event->ppid)
		return r;
	r = inherit_memory(tasks, event);
	if (r < 0)
		return r;
	/* Parent and child share the tree: neither may be changed in place any more. */
	map_store_step(&tasks->maps);
	return set_space(tasks, event->pid, event->key,
			 event->flag ? 0 : last_space(tasks, event->ppid));
}

static int replay_comm(struct tasks *tasks, const struct side_event *event)
{
	int r = set_comm(tasks, event->tid, event->key, event->comm);

	if (r < 0 || !event->flag)
		return r;
	if (event->tid != event->pid) /* exec in a thread: it becomes the process */
		r = set_comm(tasks, event->pid, event->key, event->comm);
	return r < 0 ? r : exec_begins(tasks, event->pid);
}

void tasks_sort(struct side_event *events, size_t count)
{
	if (count > 1)
		qsort(events, count, sizeof(*events), compare_events);
}

int tasks_replay(struct tasks *tasks, const struct side_event *events, size_t count)
{
	int r = 0;

	/* Who was told of a space before keeps it as it was. */
	map_store_step(&tasks->maps);
	for (size_t i = 0; i < count && r == 0; i++) {
		if (i > 0 && events[i].key != events[i - 1].key)
			map_store_step(&tasks->maps);
		if (events[i].kind == SIDE_MMAP || events[i].kind == SIDE_CODE)
			r = replay_mmap(tasks, &events[i]);
		else if (events[i].kind == SIDE_COMM)
			r = replay_comm(tasks, &events[i]);
		else
			r = replay_fork(tasks, &events[i]);
	}
	return r;
}

void tasks_fini(struct tasks *tasks)
{
	vec_for_each(&tasks->processes, process) {
		vec_fini(&process->versions);
		vec_fini(&process->memory);
	}
	vec_for_each(&tasks->threads, thread)
		vec_fini(&thread->versions);
	vec_fini(&tasks->processes);
	vec_fini(&tasks->threads);
	u64_map_fini(&tasks->process_index);
	u64_map_fini(&tasks->thread_index);
	map_store_fini(&tasks->maps);
}

/* The root at key; narrows the range in which the answer holds. */
static uint32_t space_at(const struct tasks *tasks, int32_t pid, uint64_t key, struct task *range)
{
	const struct process *process;
	size_t behind;
	uint32_t index;

	if (!u64_map_get(&tasks->process_index, (uint32_t)pid, &index))
		return 0;
	process = &tasks->processes.data[index];
	behind = partition_point(process->versions.len, i, process->versions.data[i].key <= key);
	if (behind < process->versions.len)
		range->until = MIN(range->until, process->versions.data[behind].key);
	if (behind == 0)
		return 0;
	range->from = MAX(range->from, process->versions.data[behind - 1].key);
	return process->versions.data[behind - 1].root;
}

static const char *comm_at(const struct tasks *tasks, int32_t tid, uint64_t key, struct task *range)
{
	const struct thread *thread;
	size_t behind;
	uint32_t index;

	if (!u64_map_get(&tasks->thread_index, (uint32_t)tid, &index))
		return NULL;
	thread = &tasks->threads.data[index];
	behind = partition_point(thread->versions.len, i, thread->versions.data[i].key <= key);
	if (behind < thread->versions.len)
		range->until = MIN(range->until, thread->versions.data[behind].key);
	if (behind == 0)
		return NULL;
	range->from = MAX(range->from, thread->versions.data[behind - 1].key);
	return thread->versions.data[behind - 1].comm;
}

void tasks_at(const struct tasks *tasks, int32_t pid, int32_t tid, uint64_t key, struct task *ret)
{
	struct task task = {.from = 0, .until = UINT64_MAX};

	task.comm = comm_at(tasks, tid, key, &task);
	if (!task.comm && tid != pid)
		task.comm = comm_at(tasks, pid, key, &task);
	task.root = pid >= 0 ? space_at(tasks, pid, key, &task) : 0;
	task.kernel_root = space_at(tasks, PID_KERNEL, key, &task);
	task.guest_root = space_at(tasks, PID_GUEST_KERNEL, key, &task);
	*ret = task;
}
