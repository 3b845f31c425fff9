#include "sample/jit-unwind.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/util.h"
#include "base/vec.h"
#include "sample/maps.h"
#include "symbols/jitdump.h"

#define PIECE_BYTES     (1u << 20)
#define PIECE_MAX_BYTES (64u << 20) /* of one record */
#define FRAMES_MAX      (64u << 20) /* of all code of one process */

/* Code at a place; before: index + 1 of what began there until then, 0: nothing. */
struct place {
	uint64_t time, address;
	uint32_t code, before;
};

struct jit_unwind {
	int pid, fd;
	char *path;
	bool begun, dead; /* the header was read; there is nothing more to be had */
	bool monotonic;   /* its times are of that clock */
	uint64_t offset, seen;
	uint8_t *piece;
	size_t piece_bytes;
	struct jitdump dump; /* its codes' frames are ours, names and lines gone */
	size_t copied;       /* codes whose frames are ours */
	struct arena frames;
	size_t frame_bytes;
	struct map_store store; /* dso: index of the place */
	uint32_t root;
	VEC(struct place) places; /* times ascend */
};

int jit_unwind_new(int pid, const char *path, struct jit_unwind **ret)
{
	struct jit_unwind *jit = calloc(1, sizeof(*jit));

	if (!jit)
		return -ENOMEM;
	jit->pid = pid;
	jit->fd = -1;
	jit->store.version = 1;
	jit->path = strdup(path);
	if (!jit->path) {
		free(jit);
		return -ENOMEM;
	}
	*ret = jit;
	return 0;
}

void jit_unwind_close(struct jit_unwind *jit)
{
	if (jit->fd >= 0)
		close(jit->fd);
	jit->fd = -1;
	jit->dead = true;
	free(jit->piece);
	jit->piece = NULL;
}

void jit_unwind_free(struct jit_unwind *jit)
{
	if (!jit)
		return;
	jit_unwind_close(jit);
	jitdump_fini(&jit->dump);
	arena_fini(&jit->frames);
	map_store_fini(&jit->store);
	vec_fini(&jit->places);
	free(jit->path);
	free(jit);
}

/* Regular files only: anything else might be waited for. */
static bool open_dump(struct jit_unwind *jit)
{
	char paths[2][4096];

	snprintf(paths[0], sizeof(paths[0]), "/proc/%d/root%s", jit->pid, jit->path);
	snprintf(paths[1], sizeof(paths[1]), "%s", jit->path);
	for (size_t i = 0; i < ARRAY_LEN(paths) && jit->fd < 0; i++) {
		struct stat st;

		if (stat(paths[i], &st) == 0 && S_ISREG(st.st_mode))
			jit->fd = open(paths[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	return jit->fd >= 0;
}

static int keep_frames(struct jit_unwind *jit)
{
	for (; jit->copied < jit->dump.codes.len; jit->copied++) {
		struct jitdump_code *code = &jit->dump.codes.data[jit->copied];
		uint8_t *copy = NULL;

		code->name = NULL;
		code->line_count = 0;
		if (code->frame && code->frame_bytes <= FRAMES_MAX - jit->frame_bytes) {
			copy = arena_alloc(&jit->frames, code->frame_bytes);
			if (!copy)
				return -ENOMEM;
			memcpy(copy, code->frame, code->frame_bytes);
			jit->frame_bytes += code->frame_bytes;
		}
		code->frame = copy;
	}
	return 0;
}

static int add_places(struct jit_unwind *jit)
{
	int r = 0;

	vec_for_each(&jit->dump.places, placed) {
		struct map map = {.start = placed->address,
				  .end = placed->address + placed->size,
				  .dso = (uint32_t)jit->places.len};
		const struct map *before = map_store_find(&jit->store, jit->root, map.start);
		struct place place = {.time = placed->time,
				      .address = placed->address,
				      .code = placed->code,
				      .before = before ? before->dso + 1 : 0};

		/* Times that go back would tell nothing of the order: the file's counts. */
		if (jit->places.len > 0)
			place.time = MAX(place.time, jit->places.data[jit->places.len - 1].time);
		if (r == 0)
			r = vec_push(&jit->places, place);
		if (r == 0)
			r = map_store_add(&jit->store, &jit->root, &map);
	}
	jit->dump.places.len = 0;
	return r;
}

/* The unwinding record may be in one piece and its code in the next. */
static int keep_pending(struct jit_unwind *jit)
{
	struct jitdump *dump = &jit->dump;
	uint8_t *copy;

	if (!dump->frame)
		return 0;
	copy = arena_alloc(&jit->frames, dump->frame_bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, dump->frame, dump->frame_bytes);
	dump->frame = copy;
	return 0;
}

static int take_piece(struct jit_unwind *jit, size_t size, size_t *ret_used)
{
	int r = jitdump_records(&jit->dump, jit->piece, size, ret_used);

	jit->dead |= r == -EBADMSG || jit->dump.closed;
	r = r == -EBADMSG ? 0 : r;
	if (r == 0)
		r = keep_frames(jit);
	if (r == 0)
		r = add_places(jit);
	if (r == 0)
		r = keep_pending(jit);
	jitdump_drop_lines(&jit->dump);
	return r;
}

static int begin(struct jit_unwind *jit)
{
	uint8_t head[JITDUMP_HEADER_BYTES];
	ssize_t n = pread(jit->fd, head, sizeof(head), 0);

	if (n < (ssize_t)sizeof(head))
		return 0; /* it is being begun */
	jit->begun = true;
	jit->piece_bytes = PIECE_BYTES;
	jit->dead = jitdump_begin(head, sizeof(head), &jit->dump, &jit->offset) < 0;
	jit->monotonic = !jit->dump.arch_time && jit->dump.start_time <= clock_monotonic_ns();
	return 0;
}

static int grow_piece(struct jit_unwind *jit)
{
	if (jit->piece_bytes >= PIECE_MAX_BYTES) {
		jit->dead = true; /* no record is that large */
		return 0;
	}
	jit->piece_bytes *= 2;
	free(jit->piece);
	jit->piece = malloc(jit->piece_bytes);
	return jit->piece ? 0 : -ENOMEM;
}

static int read_on(struct jit_unwind *jit)
{
	int r = 0;

	if (!jit->piece)
		jit->piece = malloc(jit->piece_bytes);
	if (!jit->piece)
		return -ENOMEM;
	while (r == 0 && !jit->dead) {
		ssize_t n = pread(jit->fd, jit->piece, jit->piece_bytes, (off_t)jit->offset);
		size_t used = 0;

		if (n <= 0)
			break;
		r = take_piece(jit, (size_t)n, &used);
		jit->offset += used;
		if (r == 0 && used == 0 && (size_t)n == jit->piece_bytes)
			r = grow_piece(jit);
		else if ((size_t)n < jit->piece_bytes)
			break;
	}
	return r;
}

int jit_unwind_update(struct jit_unwind *jit)
{
	struct stat st;
	int r = 0;

	if (jit->dead || (jit->fd < 0 && !open_dump(jit)) || fstat(jit->fd, &st) < 0 ||
	    (uint64_t)st.st_size == jit->seen)
		return 0;
	jit->seen = (uint64_t)st.st_size;
	if (!jit->begun)
		r = begin(jit);
	if (r == 0 && jit->begun && !jit->dead)
		r = read_on(jit);
	if (r == 0 && jit->dead)
		jit_unwind_close(jit);
	return r;
}

uint32_t jit_unwind_epoch(const struct jit_unwind *jit, uint64_t time_ns)
{
	if (!jit->monotonic)
		return (uint32_t)jit->places.len;
	return (uint32_t)partition_point(jit->places.len, i, jit->places.data[i].time <= time_ns);
}

static bool same_machine(const struct jit_unwind *jit, enum unwind_arch arch)
{
	return jit->dump.machine == (arch == UNWIND_ARM64 ? EM_AARCH64 : EM_X86_64);
}

/* offset: of the address in the code. */
static bool rule_at(const struct jit_unwind *jit, enum unwind_arch arch,
		    const struct jitdump_code *code, uint64_t offset, struct unwind_rule *ret)
{
	struct unwind_frame frame = {.data = code->frame,
				     .size = code->frame_bytes,
				     .vaddr = code->base + ALIGN_UP(code->size, UINT64_C(8)),
				     .swap = jit->dump.swap};

	return code->frame && offset < code->size && same_machine(jit, arch) &&
	       unwind_frame_rule(arch, &frame, code->base + offset, ret);
}

bool jit_unwind_rule(const struct jit_unwind *jit, enum unwind_arch arch, uint32_t epoch,
		     uint64_t pc, struct unwind_rule *ret)
{
	const struct map *map = map_store_find(&jit->store, jit->root, pc);
	uint32_t index = map ? map->dso + 1 : 0;

	while (index > epoch)
		index = jit->places.data[index - 1].before;
	if (index == 0)
		return false;
	return rule_at(jit, arch, &jit->dump.codes.data[jit->places.data[index - 1].code],
		       pc - jit->places.data[index - 1].address, ret);
}

bool jit_unwind_rule_of_code(const struct jit_unwind *jit, enum unwind_arch arch, uint64_t address,
			     struct unwind_rule *ret)
{
	const struct jitdump_code *all = jit->dump.codes.data;
	size_t behind = partition_point(jit->dump.codes.len, i, all[i].base <= address);

	return behind > 0 &&
	       rule_at(jit, arch, &all[behind - 1], address - all[behind - 1].base, ret);
}
