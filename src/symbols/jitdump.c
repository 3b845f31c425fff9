#include "symbols/jitdump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/util.h"
#include "symbols/jitdump-internal.h"

#define MAGIC        UINT32_C(0x4a695444)
#define MAGIC_SWAP   UINT32_C(0x4454694a)
#define RECORD_BYTES 16
#define LINE_BYTES   16 /* of an entry, without its text */
#define ARCH_TIME    1  /* flag of the header */
#define FIRST_BASE   0x1000
#define FILE_MAX     (1u << 30)
/* No code is that large, and sums of sizes stay within 64 bits. */
#define CODE_MAX (UINT64_C(1) << 32)
/* Of one piece of code; what is larger is no description of it. */
#define FRAME_MAX (256u << 10)
/* What V8 adds to the addresses of lines, for the ELF header that perf inject puts before code. */
#define V8_LINE_SHIFT 0x40

enum {
	JIT_CODE_LOAD,
	JIT_CODE_MOVE,
	JIT_CODE_DEBUG_INFO,
	JIT_CODE_CLOSE,
	JIT_CODE_UNWINDING_INFO,
};

struct parser {
	struct jitdump *dump;
	uint64_t time; /* of the record */
};

static void add_place(struct parser *p, uint64_t address, uint64_t size, uint32_t code, int *r)
{
	if (size == 0 || size > CODE_MAX || address > UINT64_MAX - size)
		p->dump->bad_records++;
	else
		*r = vec_push(&p->dump->places,
			      ((struct jitdump_place){p->time, address, size, code}));
}

static int compare_lines(const void *a, const void *b)
{
	const struct jitdump_line *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * Makes addresses offsets into the code. Lines that begin no earlier than the shift, or lie beyond
 * the end, are shifted: the first line of code stands at its beginning.
 */
static void take_lines(struct parser *p, uint64_t address, struct jitdump_code *code)
{
	struct jitdump *dump = p->dump;
	uint64_t shift = 0, lowest = UINT64_MAX, highest = 0;
	size_t kept = dump->first_line;

	if (dump->lines_address != address) {
		dump->lines.len = dump->first_line;
		return;
	}
	for (size_t i = dump->first_line; i < dump->lines.len; i++) {
		lowest = MIN(lowest, dump->lines.data[i].offset - address);
		highest = MAX(highest, dump->lines.data[i].offset - address);
	}
	if (lowest >= V8_LINE_SHIFT &&
	    (highest < code->size + V8_LINE_SHIFT || highest - lowest < code->size))
		shift = V8_LINE_SHIFT;
	for (size_t i = dump->first_line; i < dump->lines.len; i++) {
		struct jitdump_line line = dump->lines.data[i];

		line.offset -= address + shift;
		if (line.offset < code->size)
			dump->lines.data[kept++] = line;
	}
	dump->lines.len = kept;
	code->first_line = dump->first_line;
	code->line_count = kept - dump->first_line;
	if (code->line_count > 1)
		qsort(dump->lines.data + code->first_line, code->line_count,
		      sizeof(*dump->lines.data), compare_lines);
}

static int code_load(struct parser *p, struct reader *r)
{
	struct jitdump *dump = p->dump;
	struct jitdump_code code = {
		.base = FIRST_BASE, .frame = dump->frame, .frame_bytes = dump->frame_bytes};
	uint64_t address, index;
	int result = 0;

	dump->frame = NULL;
	reader_skip(r, 16); /* pid, tid, vma */
	address = reader_u64(r);
	code.size = reader_u64(r);
	index = reader_u64(r);
	code.name = reader_cstr(r);
	if (r->failed || !code.name || strlen(code.name) > UINT16_MAX || code.name[0] == '\0' ||
	    code.size == 0 || code.size > CODE_MAX) {
		dump->bad_records++;
		return 0;
	}
	if (dump->codes.len > 0) {
		const struct jitdump_code *last = &dump->codes.data[dump->codes.len - 1];

		code.base = last->base + last->size;
	}
	if (dump->codes.len >= UINT32_MAX - 1)
		return -ENOMEM;
	take_lines(p, address, &code);
	dump->first_line = dump->lines.len;
	dump->lines_address = 0;
	result = vec_push(&dump->codes, code);
	if (result == 0)
		result = u64_map_put(&dump->by_index, index, (uint32_t)dump->codes.len - 1);
	if (result == 0)
		add_place(p, address, code.size, (uint32_t)dump->codes.len - 1, &result);
	return result;
}

static int code_move(struct parser *p, struct reader *r)
{
	uint64_t address, size, index;
	uint32_t code;
	int result = 0;

	reader_skip(r, 24); /* pid, tid, vma, old address */
	address = reader_u64(r);
	size = reader_u64(r);
	index = reader_u64(r);
	if (r->failed || !u64_map_get(&p->dump->by_index, index, &code)) {
		p->dump->bad_records++;
		return 0;
	}
	add_place(p, address, MIN(size, p->dump->codes.data[code].size), code, &result);
	return result;
}

/* Lines of code that comes next; a text of two bytes FF 00 repeats the one before. */
static int debug_info(struct parser *p, struct reader *r)
{
	struct jitdump *dump = p->dump;
	uint64_t address = reader_u64(r), count = reader_u64(r);
	const char *file = NULL;
	int result = 0;

	dump->lines.len = dump->first_line;
	dump->lines_address = address;
	for (uint64_t i = 0; i < count && result == 0 && reader_left(r) > LINE_BYTES; i++) {
		struct jitdump_line line = {.offset = reader_u64(r), .line = reader_u32(r)};
		const char *text;

		reader_skip(r, 4); /* discriminator */
		text = reader_cstr(r);
		if (r->failed || !text)
			break;
		if (strcmp(text, "\xff") != 0)
			file = text;
		line.file = file;
		if (file && line.offset >= address)
			result = vec_push(&dump->lines, line);
	}
	if (r->failed)
		dump->bad_records++;
	return result;
}

/*
 * How to unwind code that comes next: .eh_frame and its index, as they would stand behind the code
 * in an ELF file. The index is not needed.
 */
static void unwinding_info(struct parser *p, struct reader *r)
{
	uint64_t size = reader_u64(r), index_size = reader_u64(r);

	reader_skip(r, 8); /* how much of it was mapped */
	p->dump->frame = NULL;
	if (r->failed || size > reader_left(r) || index_size > size) {
		p->dump->bad_records++;
		return;
	}
	if (size == index_size || size - index_size > FRAME_MAX)
		return;
	p->dump->frame = r->data + r->pos;
	p->dump->frame_bytes = (uint32_t)(size - index_size);
}

int jitdump_records(struct jitdump *dump, const void *data, size_t size, size_t *ret_used)
{
	struct parser p = {.dump = dump};
	struct reader r = reader_make(data, size, dump->swap);
	size_t used = 0;
	int result = 0;

	while (result == 0 && reader_left(&r) >= RECORD_BYTES && !dump->closed) {
		uint32_t id = reader_u32(&r), bytes = reader_u32(&r);
		const uint8_t *body;
		struct reader in;

		p.time = reader_u64(&r);
		if (dump->first_time == 0)
			dump->first_time = p.time;
		if (bytes < RECORD_BYTES)
			result = -EBADMSG;
		if (bytes < RECORD_BYTES || bytes - RECORD_BYTES > reader_left(&r))
			break;
		body = reader_take(&r, bytes - RECORD_BYTES);
		in = reader_make(body, bytes - RECORD_BYTES, r.swap);
		if (id == JIT_CODE_LOAD)
			result = code_load(&p, &in);
		else if (id == JIT_CODE_MOVE)
			result = code_move(&p, &in);
		else if (id == JIT_CODE_DEBUG_INFO)
			result = debug_info(&p, &in);
		else if (id == JIT_CODE_UNWINDING_INFO)
			unwinding_info(&p, &in);
		else if (id == JIT_CODE_CLOSE)
			dump->closed = true;
		used = r.pos;
	}
	*ret_used = used;
	return result;
}

void jitdump_drop_lines(struct jitdump *dump)
{
	dump->lines.len = dump->first_line = 0;
	dump->lines_address = 0;
}

bool jitdump_detect(const void *data, size_t size)
{
	uint32_t magic = 0;

	if (size >= JITDUMP_HEADER_BYTES)
		memcpy(&magic, data, sizeof(magic));
	return magic == MAGIC || magic == MAGIC_SWAP;
}

int jitdump_begin(const void *data, size_t size, struct jitdump *ret, uint64_t *ret_records)
{
	struct reader r = reader_make(data, size, false);
	uint32_t header;

	*ret = (struct jitdump){0};
	if (!jitdump_detect(data, size))
		return -EBADMSG;
	ret->swap = r.swap = reader_u32(&r) == MAGIC_SWAP;
	reader_skip(&r, 4); /* version */
	header = reader_u32(&r);
	ret->machine = (uint16_t)reader_u32(&r);
	reader_skip(&r, 8); /* padding, pid */
	ret->start_time = reader_u64(&r);
	ret->arch_time = reader_u64(&r) & ARCH_TIME;
	*ret_records = header;
	return header < JITDUMP_HEADER_BYTES ? -EBADMSG : 0;
}

int jitdump_parse(const void *data, size_t size, struct jitdump *ret)
{
	uint64_t records;
	size_t used;
	int r = jitdump_begin(data, size, ret, &records);

	if (r == 0 && records > size)
		r = -EBADMSG;
	if (r < 0)
		return r;
	r = jitdump_records(ret, (const uint8_t *)data + records, size - records, &used);
	if (r == -EBADMSG || (r == 0 && !ret->closed && size - records - used >= RECORD_BYTES))
		ret->bad_records++; /* the rest of the file */
	ret->lines.len = ret->first_line;
	return r == -EBADMSG ? 0 : r;
}

void jitdump_fini(struct jitdump *dump)
{
	vec_fini(&dump->codes);
	vec_fini(&dump->places);
	vec_fini(&dump->lines);
	u64_map_fini(&dump->by_index);
}

const struct jitdump_line *jitdump_find_line(const struct jitdump *dump, uint64_t address,
					     const struct jitdump_code **ret_code)
{
	const struct jitdump_code *code;
	const struct jitdump_line *lines;
	size_t behind = partition_point(dump->codes.len, at, dump->codes.data[at].base <= address);
	uint64_t offset;

	if (behind == 0)
		return NULL;
	code = &dump->codes.data[behind - 1];
	offset = address - code->base;
	if (offset >= code->size || code->line_count == 0)
		return NULL;
	*ret_code = code;
	lines = dump->lines.data + code->first_line;
	behind = partition_point(code->line_count, at, lines[at].offset <= offset);
	return behind ? &lines[behind - 1] : NULL;
}

int jitdump_read(const char *root, int pid, const char *path, char **ret_data, size_t *ret_size,
		 char **ret_path)
{
	char paths[2][4096];
	int r = -ENOENT;

	snprintf(paths[0], sizeof(paths[0]), "%s/proc/%d/root%s", root, pid, path);
	snprintf(paths[1], sizeof(paths[1]), "%s%s", root, path);
	for (size_t i = 0; r < 0 && r != -ENOMEM && i < ARRAY_LEN(paths); i++) {
		struct stat st;

		if (stat(paths[i], &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		r = file_read(paths[i], FILE_MAX, ret_data, ret_size, NULL);
		if (r == 0 && ret_path)
			*ret_path = strdup(paths[i]);
	}
	return r;
}

static int add_symbol(struct symtab_builder *builder, const struct jitdump_code *code,
		      uint64_t start, uint64_t size)
{
	return symtab_builder_add(builder,
				  &(struct symtab_raw){.start = start,
						       .end = start + size,
						       .name = code->name,
						       .name_len = (uint32_t)strlen(code->name)});
}

int jitdump_add_codes(const struct jitdump *dump, struct symtab_builder *builder)
{
	int r = 0;

	vec_for_each(&dump->codes, code)
		if (r == 0)
			r = add_symbol(builder, code, code->base, code->size);
	return r;
}

int jitdump_load(const void *data, size_t size, struct symtab_builder *builder,
		 size_t *ret_bad_records)
{
	struct jitdump dump;
	int r = jitdump_parse(data, size, &dump);

	for (size_t i = 0; r == 0 && i < dump.places.len; i++)
		r = add_symbol(builder, &dump.codes.data[dump.places.data[i].code],
			       dump.places.data[i].address, dump.places.data[i].size);
	if (r == 0)
		*ret_bad_records = dump.bad_records;
	jitdump_fini(&dump);
	return r;
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
