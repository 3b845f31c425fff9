/*
 * jitdump files, which just-in-time compilers write for perf (node --perf-prof, Julia, LLVM, the
 * JVM with an agent): code as it was placed, moved and named. The format is described in the
 * kernel's tools/perf/Documentation/jitdump-specification.txt.
 *
 * Loads and moves are kept in their order; where one took the place of another the later one has
 * the addresses, as with perf maps. The machine code, unwinding information and lines are passed
 * over. The compiler may still have been writing: a record that is cut ends the file.
 */
#include "symbols/jitdump-internal.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/vec.h"

#define MAGIC        UINT32_C(0x4a695444)
#define MAGIC_SWAP   UINT32_C(0x4454694a)
#define HEADER_BYTES 40
#define RECORD_BYTES 16

enum {
	JIT_CODE_LOAD,
	JIT_CODE_MOVE,
	JIT_CODE_DEBUG_INFO,
	JIT_CODE_CLOSE,
	JIT_CODE_UNWINDING_INFO,
};

struct loaded {
	const char *name;
	uint64_t size;
	uint32_t name_len;
};

struct jitdump {
	struct symtab_builder *builder;
	VEC(struct loaded) loaded;
	struct u64_map by_index; /* code index to loaded */
	size_t bad;
};

static int add(struct jitdump *dump, const struct loaded *code, uint64_t address)
{
	if (code->size == 0 || code->size > UINT64_MAX - address) {
		dump->bad++;
		return 0;
	}
	return symtab_builder_add(dump->builder, &(struct symtab_raw){.start = address,
								      .end = address + code->size,
								      .name = code->name,
								      .name_len = code->name_len});
}

static int code_load(struct jitdump *dump, struct reader *r)
{
	struct loaded code = {0};
	uint64_t address, index;
	int result;

	reader_skip(r, 16); /* pid, tid, vma */
	address = reader_u64(r);
	code.size = reader_u64(r);
	index = reader_u64(r);
	code.name = reader_cstr(r);
	if (r->failed || !code.name || strlen(code.name) > UINT16_MAX || code.name[0] == '\0') {
		dump->bad++;
		return 0;
	}
	code.name_len = (uint32_t)strlen(code.name);
	result = vec_push(&dump->loaded, code);
	if (result == 0)
		result = u64_map_put(&dump->by_index, index, (uint32_t)dump->loaded.len - 1);
	return result < 0 ? result : add(dump, &code, address);
}

static int code_move(struct jitdump *dump, struct reader *r)
{
	struct loaded code;
	uint64_t address, size, index;
	uint32_t at;

	reader_skip(r, 24); /* pid, tid, vma, old address */
	address = reader_u64(r);
	size = reader_u64(r);
	index = reader_u64(r);
	if (r->failed || !u64_map_get(&dump->by_index, index, &at)) {
		dump->bad++;
		return 0;
	}
	code = dump->loaded.data[at];
	code.size = size;
	return add(dump, &code, address);
}

static int read_records(struct jitdump *dump, struct reader r)
{
	int result = 0;

	while (result == 0 && reader_left(&r) >= RECORD_BYTES) {
		uint32_t id = reader_u32(&r), size = reader_u32(&r);
		const uint8_t *body;
		struct reader in;

		reader_skip(&r, 8); /* time */
		if (size < RECORD_BYTES || size - RECORD_BYTES > reader_left(&r)) {
			dump->bad++;
			break;
		}
		body = reader_take(&r, size - RECORD_BYTES);
		in = reader_make(body, size - RECORD_BYTES, r.swap);
		if (id == JIT_CODE_LOAD)
			result = code_load(dump, &in);
		else if (id == JIT_CODE_MOVE)
			result = code_move(dump, &in);
		else if (id == JIT_CODE_CLOSE)
			break;
	}
	return result;
}

bool jitdump_detect(const void *data, size_t size)
{
	uint32_t magic = 0;

	if (size >= HEADER_BYTES)
		memcpy(&magic, data, sizeof(magic));
	return magic == MAGIC || magic == MAGIC_SWAP;
}

int jitdump_load(const void *data, size_t size, struct symtab_builder *builder,
		 size_t *ret_bad_records)
{
	struct jitdump dump = {.builder = builder};
	struct reader r = reader_make(data, size, false);
	uint32_t header;
	int result;

	if (!jitdump_detect(data, size))
		return -EBADMSG;
	r.swap = reader_u32(&r) == MAGIC_SWAP;
	reader_skip(&r, 4); /* version */
	header = reader_u32(&r);
	reader_seek(&r, header);
	if (header < HEADER_BYTES || r.failed)
		return -EBADMSG;
	result = read_records(&dump, r);
	*ret_bad_records = dump.bad;
	vec_fini(&dump.loaded);
	u64_map_fini(&dump.by_index);
	return result;
}

bool jitdump_is_path(const char *path)
{
	const char *base = strrchr(path, '/');
	size_t digits;

	base = base ? base + 1 : path;
	if (strncmp(base, "jit-", 4) != 0)
		return false;
	digits = strspn(base + 4, "0123456789");
	return digits > 0 && strcmp(base + 4 + digits, ".dump") == 0;
}
