/*
 * A sample costs a lookup of its process, a cached rule and a few loads a frame (stack-walk.h), and
 * only those words of the copied stack are touched that hold return addresses and saved registers.
 *
 * Memory grows with the processes that live and the objects that they map.
 */
#include "sample/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/live-internal.h"

#define RECORD_MAX    65528
#define ABI_64        2
#define IDENTITY_AT   32 /* of MMAP2's body: behind pid, tid, address, length and offset */
#define SCRATCH_WORDS 8192

struct live {
	struct perfdata_attr attr;
	bool keep_copies;
	struct live_spaces spaces;
	struct live_objects objects;
	struct stack_walker walker;
	const struct live_space *space; /* of the sample that is unwound */
	uint32_t jit_epoch;             /* of its compiler's code */
	struct live_stats stats;
	uint64_t lost_nowhere; /* of stats.lost: in no mapping */
	uint64_t *scratch;
};

static void find_code(void *arg, uint64_t ip, bool exact, struct stack_code *ret)
{
	struct live *live = arg;
	const struct map *map =
		live->space ? live_space_map(live->space, exact ? ip : ip - 1) : NULL;

	if (!map)
		return;
	stack_code_of_table(live_object_table(&live->objects, map->dso), live->walker.arch,
			    ip - map->start + map->pgoff, exact, ret);
	if (live->space->jit && live->objects.all.data[map->dso].kind == MODULE_PERF_MAP &&
	    jit_unwind_rule(live->space->jit->unwind, live->walker.arch, live->jit_epoch,
			    ip - !exact, &ret->rule))
		ret->kind = STACK_RULE;
}

/* Rules of code that its compiler replaces are not the same before and after. */
static int follow_jit(struct live *live, uint64_t time)
{
	struct live_jit *jit = live->space ? live->space->jit : NULL;
	int r;

	live->walker.space = live->space ? live->space->key : 0;
	if (!jit)
		return 0;
	r = jit_unwind_update(jit->unwind);
	live->jit_epoch = jit_unwind_epoch(jit->unwind, time);
	live->walker.space = hash_pair(live->space->key, live->jit_epoch);
	return r;
}

int live_new(const struct perf_event_attr *attr, const struct symbols_options *symbols,
	     bool keep_copies, struct live **ret)
{
	struct live *live = calloc(1, sizeof(*live));
	int r;

	if (!live)
		return -ENOMEM;
	(void)perfdata_attr_decode(attr, sizeof(*attr), false, &live->attr);
	live->keep_copies = keep_copies;
	live->walker = (struct stack_walker){.find = find_code, .arg = live};
#if defined(__aarch64__)
	live->walker.arch = UNWIND_ARM64;
#endif
	live->scratch = malloc(SCRATCH_WORDS * sizeof(*live->scratch));
	r = live->scratch ? stack_walker_init(&live->walker) : -ENOMEM;
	if (r == 0)
		r = live_objects_init(&live->objects, symbols);
	if (r < 0) {
		live_free(live);
		return r;
	}
	*ret = live;
	return 0;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	live_spaces_fini(&live->spaces);
	live_objects_fini(&live->objects);
	stack_walker_fini(&live->walker);
	free(live->scratch);
	free(live);
}

void live_file_attr(struct perf_event_attr *attr)
{
	attr->sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr->sample_regs_user = 0;
	attr->sample_stack_user = 0;
	attr->exclude_callchain_user = 0;
	attr->sample_max_stack = LIVE_MAX_STACK;
}

uint64_t live_record_time(const struct live *live, const struct perf_event_header *record)
{
	const uint8_t *body = (const uint8_t *)(record + 1);
	size_t size = record->size - sizeof(*record);
	struct perfdata_sample_id id;
	uint64_t time = 0;
	size_t at;

	if (record->type != PERF_RECORD_SAMPLE)
		return perfdata_sample_id_decode(&live->attr, body, size, false, &id) && id.has_time
			       ? id.time
			       : 0;
	at = 8 * (!!(live->attr.sample_type & SAMPLE_IDENTIFIER) +
		  !!(live->attr.sample_type & SAMPLE_IP) + !!(live->attr.sample_type & SAMPLE_TID));
	if (live->attr.sample_type & SAMPLE_TIME && at + 8 <= size)
		memcpy(&time, body + at, 8);
	return time;
}

static int follow_mmap(struct live *live, const struct perf_event_header *record)
{
	const uint8_t *body = (const uint8_t *)(record + 1);
	size_t size = record->size - sizeof(*record);
	struct perfdata_mmap mmap;
	uint8_t identity[24] = {0};
	struct map map;
	int r;

	if (!perfdata_mmap_decode(record->type, record->misc, body, size, false, &mmap) ||
	    mmap.data || mmap.pid < 0)
		return 0;
	if (record->type == PERF_RECORD_MMAP2 && size >= IDENTITY_AT + sizeof(identity))
		memcpy(identity, body + IDENTITY_AT, sizeof(identity));
	map = (struct map){mmap.start, mmap.start + mmap.len, mmap.pgoff, 0};
	r = live_object_of(&live->objects, &mmap, identity, &map.dso);
	if (r == 0)
		r = live_spaces_map(&live->spaces, mmap.pid, &map);
	if (r == 0 && jitdump_is_path(mmap.path))
		r = live_spaces_jitdump(&live->spaces, mmap.pid, mmap.path);
	return r;
}

/* What the record says about processes and their mappings. */
static int follow(struct live *live, const struct perf_event_header *record)
{
	const uint8_t *body = (const uint8_t *)(record + 1);
	size_t size = record->size - sizeof(*record);
	struct perfdata_task task;
	struct perfdata_comm comm;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return follow_mmap(live, record);
	case PERF_RECORD_FORK:
		/* The flag: our own record of a process that was there before. */
		if (!perfdata_task_decode(body, size, false, &task) ||
		    record->misc & PERF_RECORD_MISC_FORK_EXEC)
			return 0;
		return live_spaces_fork(&live->spaces, task.pid, task.ppid);
	case PERF_RECORD_EXIT:
		if (perfdata_task_decode(body, size, false, &task) && task.pid == task.tid)
			live_spaces_exit(&live->spaces, task.pid);
		return 0;
	case PERF_RECORD_COMM:
		if (!perfdata_comm_decode(record->misc, body, size, false, &comm) || !comm.exec)
			return 0;
		return live_spaces_exec(&live->spaces, comm.pid);
	default:
		return 0;
	}
}

/* Which object loses it. */
static void count_lost(struct live *live)
{
	const struct stack_walker *walker = &live->walker;
	uint64_t ip = walker->len ? walker->chain[walker->len - 1] : 0;
	const struct map *map = live->space ? live_space_map(live->space, ip - 1) : NULL;

	live->stats.lost++;
	if (map)
		live->objects.all.data[map->dso].lost++;
	else
		live->lost_nowhere++;
}

/* The user part of the chain behind the kernel's; number of markers that say why it ends. */
static unsigned unwind(struct live *live, const struct perfdata_sample *sample)
{
	struct stack_walker *walker = &live->walker;
	enum unwind_result result = UNWIND_LOST;
	struct unwind_memory memory = {.data = sample->stack,
				       .size = sample->stack ? (size_t)sample->stack_size : 0};
	struct unwind_regs regs;

	live->space = live_space_find(&live->spaces, sample->pid);
	(void)follow_jit(live, sample->time); /* without memory less is known */
	if (!stack_regs(walker->arch, live->attr.regs_user, sample->user_regs, false, &regs))
		return 0;
	memory.start = regs.r[walker->arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP];
	if (sample->user_abi == ABI_64) {
		result = stack_walk(walker, &regs, &memory);
	} else {
		walker->chain[walker->len++] = CONTEXT_USER;
		walker->chain[walker->len++] = regs.ip;
	}
	live->stats.stacks++;
	live->stats.by_frame_pointer += walker->by_frame_pointer;
	if (result == UNWIND_LOST)
		count_lost(live);
	live->stats.cut += result == UNWIND_CUT;
	return result == UNWIND_END ? 0 : result == UNWIND_CUT ? 1 : 2;
}

/* The record with the chain in place of the one it has, and without the copies. */
static int put_sample(struct live *live, const struct perf_event_header *record,
		      const struct perfdata_sample *sample, unsigned markers, struct str *out)
{
	static const uint64_t marker = CONTEXT_USER;
	const uint8_t *body = (const uint8_t *)(record + 1);
	size_t size = record->size - sizeof(*record);
	size_t rest = sizeof(*record) + size - (sample->chain_end - sample->chain_at) -
		      (sample->copies_end - sample->copies_at);
	uint64_t room = rest + 32 < RECORD_MAX ? (RECORD_MAX - rest - 32) / 8 : 0;
	uint64_t count = live->walker.len;
	struct perf_event_header header = *record;

	if (count > room) { /* a record has 64 KiB: the outermost frames go */
		count = room;
		live->stats.cut += markers == 0;
		markers = MAX(markers, 1u);
	}
	header.size = (uint16_t)(rest + 8 * (1 + count + markers));
	str_append(out, &header, sizeof(header));
	str_append(out, body, sample->chain_at);
	count += markers;
	str_append(out, &count, sizeof(count));
	count -= markers;
	str_append(out, live->walker.chain, count * sizeof(uint64_t));
	for (unsigned i = 0; i < markers; i++)
		str_append(out, &marker, sizeof(marker));
	str_append(out, body + sample->chain_end, sample->copies_at - sample->chain_end);
	str_append(out, body + sample->copies_end, size - sample->copies_end);
	return str_status(out);
}

int live_record(struct live *live, const struct perf_event_header *record, struct str *out)
{
	const uint8_t *body = (const uint8_t *)(record + 1);
	size_t size = record->size - sizeof(*record);
	struct perfdata_sample sample;
	unsigned markers = 0;
	bool user;
	int r;

	if (record->type != PERF_RECORD_SAMPLE) {
		r = follow(live, record);
		str_append(out, record, record->size);
		return r < 0 ? r : str_status(out);
	}
	if (!perfdata_sample_decode(&live->attr, body, size, record->misc, false, live->scratch,
				    SCRATCH_WORDS, &sample))
		return 0; /* never from a kernel */
	user = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
	stack_walk_begin(&live->walker, sample.chain, sample.chain_len, user);
	if (sample.user_regs)
		markers = unwind(live, &sample);
	if (!live->keep_copies)
		return put_sample(live, record, &sample, markers, out);
	str_append(out, record, record->size);
	return str_status(out);
}

const struct live_stats *live_stats(const struct live *live)
{
	return &live->stats;
}

void live_explain(const struct live *live, struct str *out)
{
	const struct live_object *worst = NULL;

	vec_for_each(&live->objects.all, object)
		if (object->lost > (worst ? worst->lost : live->lost_nowhere))
			worst = object;
	if (!worst && live->lost_nowhere > 0)
		str_puts(out, "addresses that no mapping holds");
	else if (worst && worst->kind == MODULE_PERF_MAP)
		str_puts(out, "generated code without frame pointers, of which no jitdump tells");
	else if (worst && worst->why)
		str_puts(out, worst->why);
	else if (worst)
		str_printf(out, "%s: functions without usable unwind information", worst->path);
}
