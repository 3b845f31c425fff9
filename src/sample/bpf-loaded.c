#include "sample/bpf-loaded.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/util.h"
#include "base/vec.h"
#include "sample/bpf-info.h"

/* As far as the structure was in Linux 5.1: readers refuse one that is larger than theirs. */
#define INFO_BYTES     208
#define PROGRAMS_MAX   65536
#define DATA_MAX_BYTES (64u << 20) /* of all programs together; what comes later is left out */
#define ENTRY_HEAD     16

struct program {
	struct str entry; /* as in the feature */
	struct bpf_info info;
};

struct types {
	uint32_t id;
	struct str bytes;
	struct btf btf;
};

struct bpf_loaded {
	VEC(struct program) programs;
	VEC(struct types) types;
	struct u64_map types_index; /* by id */
	uint32_t last;              /* number of the last program that was read */
	size_t bytes;
};

/* The arrays of struct bpf_prog_info that are kept: where their pointer, their number of entries
 * and the bytes of one (0: as given) are. */
static const struct {
	unsigned bit, pointer, count, each_at, each;
} arrays[] = {
	{BPF_ARRAY_JITED_INSNS, BPF_INFO_JITED_INSNS, BPF_INFO_JITED_BYTES, 0, 1},
	{BPF_ARRAY_JITED_KSYMS, BPF_INFO_KSYMS, BPF_INFO_NR_KSYMS, 0, 8},
	{BPF_ARRAY_JITED_FUNC_LENS, BPF_INFO_FUNC_LENS, BPF_INFO_NR_FUNC_LENS, 0, 4},
	{BPF_ARRAY_FUNC_INFO, BPF_INFO_FUNC_INFO, BPF_INFO_NR_FUNC_INFO, BPF_INFO_FUNC_INFO_BYTES,
	 0},
	{BPF_ARRAY_LINE_INFO, BPF_INFO_LINE_INFO, BPF_INFO_NR_LINE_INFO, BPF_INFO_LINE_BYTES, 0},
	{BPF_ARRAY_JITED_LINE_INFO, BPF_INFO_JITED_LINES, BPF_INFO_NR_JITED_LINES,
	 BPF_INFO_JITED_LINE_BYTES, 0},
	{BPF_ARRAY_PROG_TAGS, BPF_INFO_TAGS, BPF_INFO_NR_TAGS, 0, BPF_TAG_BYTES},
};

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int open_by_id(int command, uint32_t id)
{
	union bpf_attr attr = {.prog_id = id}; /* btf_id is the same field */

	return (int)bpf(command, &attr);
}

static int get_info(int fd, void *info, uint32_t size)
{
	union bpf_attr attr = {
		.info = {.bpf_fd = (uint32_t)fd, .info_len = size, .info = (uintptr_t)info}};

	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0 ? -errno : 0;
}

static uint32_t field32(const char *info, size_t at)
{
	uint32_t value;

	memcpy(&value, info + at, sizeof(value));
	return value;
}

static uint64_t array_bytes(const char *info, size_t i)
{
	uint64_t each = arrays[i].each_at ? field32(info, arrays[i].each_at) : arrays[i].each;

	return field32(info, arrays[i].count) * each;
}

/*
 * Asks for a second time, with room for what the first answer said there is. The counts of arrays
 * that are not asked for are cleared: the kernel would take them as room.
 */
static int read_arrays(struct bpf_loaded *loaded, int fd, const char *counts, struct str *entry)
{
	uint32_t head[2] = {INFO_BYTES};
	char info[INFO_BYTES] = {0};
	uint64_t bits = 0, offset = 0;
	CLEANUP_FREE char *data = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
		offset += ALIGN_UP(array_bytes(counts, i), UINT64_C(8));
	if (offset == 0 || offset > DATA_MAX_BYTES - loaded->bytes)
		return 0;
	data = calloc(1, offset);
	if (!data)
		return -ENOMEM;
	head[1] = (uint32_t)offset;
	offset = 0;
	for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
		uint64_t at = (uintptr_t)(data + offset);

		if (array_bytes(counts, i) == 0)
			continue;
		memcpy(info + arrays[i].pointer, &at, sizeof(at));
		memcpy(info + arrays[i].count, counts + arrays[i].count, sizeof(uint32_t));
		if (arrays[i].each_at)
			memcpy(info + arrays[i].each_at, counts + arrays[i].each_at,
			       sizeof(uint32_t));
		offset += ALIGN_UP(array_bytes(counts, i), UINT64_C(8));
		bits |= UINT64_C(1) << arrays[i].bit;
	}
	r = get_info(fd, info, sizeof(info));
	if (r < 0)
		return 0;
	offset = 0;
	for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
		uint64_t room = ALIGN_UP(array_bytes(counts, i), UINT64_C(8));
		bool there = array_bytes(counts, i) > 0 && array_bytes(info, i) > 0 &&
			     array_bytes(info, i) <= room;

		if (!there)
			bits &= ~(UINT64_C(1) << arrays[i].bit);
		memcpy(info + arrays[i].pointer, there ? &offset : &(uint64_t){0}, sizeof(offset));
		offset += room;
	}
	str_append(entry, head, sizeof(head));
	str_append(entry, &bits, sizeof(bits));
	str_append(entry, info, sizeof(info));
	str_append(entry, data, head[1]);
	return str_status(entry);
}

static int read_types_of(int fd, size_t room, struct str *out)
{
	struct bpf_btf_info info = {0};
	CLEANUP_FREE char *data = NULL;
	int r = get_info(fd, &info, sizeof(info));

	if (r < 0 || info.btf_size == 0 || info.btf_size > room)
		return 0;
	data = malloc(info.btf_size);
	if (!data)
		return -ENOMEM;
	info = (struct bpf_btf_info){.btf = (uintptr_t)data, .btf_size = info.btf_size};
	if (get_info(fd, &info, sizeof(info)) < 0)
		return 0;
	str_append(out, data, info.btf_size);
	return str_status(out);
}

static const struct types *find_types(const struct bpf_loaded *loaded, uint32_t id)
{
	uint32_t index;

	return u64_map_get(&loaded->types_index, id, &index) ? &loaded->types.data[index] : NULL;
}

/* Programs of one object file share their types. */
static int read_types(struct bpf_loaded *loaded, uint32_t id)
{
	struct types types = {.id = id};
	int fd, r = 0;

	if (id == 0 || find_types(loaded, id))
		return 0;
	fd = open_by_id(BPF_BTF_GET_FD_BY_ID, id);
	if (fd >= 0) {
		r = read_types_of(fd, DATA_MAX_BYTES - loaded->bytes, &types.bytes);
		close(fd);
	}
	if (r == 0 && types.bytes.len > 0)
		r = btf_read(types.bytes.data, types.bytes.len, &types.btf);
	if (r != -ENOMEM)
		r = u64_map_put(&loaded->types_index, id, (uint32_t)loaded->types.len);
	if (r == 0)
		r = vec_push(&loaded->types, types);
	if (r == 0) {
		loaded->bytes += types.bytes.len;
		return 0;
	}
	btf_fini(&types.btf);
	str_fini(&types.bytes);
	return r;
}

static int read_program(struct bpf_loaded *loaded, uint32_t id)
{
	struct program program = {0};
	char counts[INFO_BYTES] = {0};
	struct reader r;
	int fd = open_by_id(BPF_PROG_GET_FD_BY_ID, id), status = 0;

	if (fd < 0)
		return 0; /* gone already */
	if (get_info(fd, counts, sizeof(counts)) == 0)
		status = read_arrays(loaded, fd, counts, &program.entry);
	close(fd);
	r = reader_make(program.entry.data, program.entry.len, false);
	if (status == 0 && bpf_info_next(&r, &program.info) && program.info.functions > 0) {
		status = read_types(loaded, program.info.btf_id);
		if (status == 0)
			status = vec_push(&loaded->programs, program);
		if (status == 0) {
			loaded->bytes += program.entry.len;
			return 0;
		}
	}
	str_fini(&program.entry);
	return status;
}

int bpf_loaded_new(struct bpf_loaded **ret)
{
	struct bpf_loaded *loaded = calloc(1, sizeof(*loaded));

	if (!loaded)
		return -ENOMEM;
	*ret = loaded;
	return 0;
}

void bpf_loaded_free(struct bpf_loaded *loaded)
{
	if (!loaded)
		return;
	vec_for_each(&loaded->programs, program)
		str_fini(&program->entry);
	vec_for_each(&loaded->types, types) {
		btf_fini(&types->btf);
		str_fini(&types->bytes);
	}
	vec_fini(&loaded->programs);
	vec_fini(&loaded->types);
	u64_map_fini(&loaded->types_index);
	free(loaded);
}

int bpf_loaded_read(struct bpf_loaded *loaded)
{
	int r = 0;

	/* Numbers ascend and are not used again. */
	for (unsigned i = 0; i < PROGRAMS_MAX && r == 0; i++) {
		union bpf_attr attr = {.start_id = loaded->last};

		if (bpf(BPF_PROG_GET_NEXT_ID, &attr) < 0)
			break;
		loaded->last = attr.next_id;
		r = read_program(loaded, attr.next_id);
	}
	return r;
}

static const struct btf *btf_of(const struct bpf_loaded *loaded, const struct bpf_info *info)
{
	const struct types *types = find_types(loaded, info->btf_id);

	return types ? &types->btf : NULL;
}

int bpf_loaded_functions(const struct bpf_loaded *loaded, bpf_loaded_fn fn, void *arg)
{
	struct str name = {0};
	int r = 0;

	vec_for_each(&loaded->programs, program) {
		const struct bpf_info *info = &program->info;

		for (uint32_t i = 0; i < info->functions && r == 0; i++) {
			struct bpf_function function = bpf_info_function(info, i);

			if (function.start == 0 || function.size == 0)
				continue;
			str_clear(&name);
			bpf_function_name(info, &function, btf_of(loaded, info), &name);
			r = str_status(&name);
			if (r == 0)
				r = fn(arg, info, i, str_text(&name));
		}
	}
	str_fini(&name);
	return r;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool has_one(const struct bpf_info *info, const uint64_t *addresses, size_t count)
{
	for (uint32_t i = 0; i < info->functions; i++) {
		struct bpf_function function = bpf_info_function(info, i);
		size_t first = partition_point(count, at, addresses[at] < function.start);

		/* The end belongs to it too: a call may be its last instruction. */
		if (first < count && addresses[first] - function.start <= function.size)
			return true;
	}
	return false;
}

static void put_u32(struct str *out, uint32_t value)
{
	str_append(out, &value, sizeof(value));
}

int bpf_loaded_sections(const struct bpf_loaded *loaded, uint64_t *addresses, size_t count,
			struct str *infos, struct str *types)
{
	CLEANUP_FREE bool *wanted = calloc(MAX(loaded->types.len, 1u), sizeof(*wanted));
	uint32_t programs = 0, descriptions = 0, index;
	struct str entries = {0}, bytes = {0};
	int r;

	if (!wanted)
		return -ENOMEM;
	if (count > 1)
		qsort(addresses, count, sizeof(*addresses), compare_u64);
	vec_for_each(&loaded->programs, program) {
		if (!has_one(&program->info, addresses, count))
			continue;
		str_append(&entries, program->entry.data, program->entry.len);
		programs++;
		if (u64_map_get(&loaded->types_index, program->info.btf_id, &index))
			wanted[index] = true;
	}
	for (size_t i = 0; i < loaded->types.len; i++) {
		const struct types *known = &loaded->types.data[i];

		if (!wanted[i] || known->bytes.len == 0)
			continue;
		put_u32(&bytes, known->id);
		put_u32(&bytes, (uint32_t)known->bytes.len);
		str_append(&bytes, known->bytes.data, known->bytes.len);
		descriptions++;
	}
	if (programs > 0) {
		put_u32(infos, programs);
		str_append(infos, entries.data, entries.len);
	}
	if (descriptions > 0) {
		put_u32(types, descriptions);
		str_append(types, bytes.data, bytes.len);
	}
	r = str_status(&entries);
	r = r < 0 ? r : str_status(&bytes);
	str_fini(&entries);
	str_fini(&bytes);
	r = r < 0 ? r : str_status(infos);
	return r < 0 ? r : str_status(types);
}
