/*
 * Source lines and inlined calls by Go's table.
 *
 * A function's record leads to streams of (value, instructions) pairs, each a difference to the one
 * before: one stream has the files, one the lines, one the indices into the tree of inlined calls.
 * A node of the tree has the name of the function that was inlined, and where in the code an
 * instruction stands that has the place of the call. The way from a node to its caller is therefore
 * another look into the streams, at that instruction.
 *
 *	record		entry, name, args, deferreturn, pcsp, files, lines, npcdata, then from
 *			1.16 on unit, from 1.20 on first line, then three bytes and nfuncdata;
 *			npcdata offsets of streams; nfuncdata offsets from go:func.*
 *	node 1.18	parent and kind, file, line, name, instruction
 *	node 1.20	kind, name, instruction, first line
 *
 * All but entry, three bytes and nfuncdata are 32-bit numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "base/vec.h"
#include "symbols/gopclntab-internal.h"

#define STREAM_TREE 2 /* indices of pcdata and funcdata */
#define DATA_TREE   3
#define NO_DATA     UINT32_MAX
#define NODE_MAX    20 /* bytes */
#define NESTING_MAX 512
#define STEPS_MAX   (1u << 22) /* of one answer: a function of many megabytes has fewer */

struct go_lines {
	struct elf_file elf;
	struct elf_bytes bytes;
	struct go_table table;
	struct go_layout layout;
	struct arena *arena;
	struct u64_map text_map; /* from the offset of a text to its copy */
	VEC(const char *) texts;
};

struct function {
	uint64_t entry, size; /* of its code */
	int32_t name;
	uint32_t files, lines, unit; /* unit: where its files begin */
	uint32_t indices;            /* stream of the tree; 0: nothing is inlined */
	uint64_t tree;               /* address */
};

static int lines_init(struct go_lines *lines, struct arena *arena)
{
	lines->arena = arena;
	return go_layout_read(&lines->table, &lines->layout) ? 0 : -ENOENT;
}

int go_lines_of(const struct go_table *table, struct arena *arena, struct go_lines **ret)
{
	struct go_lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	lines->elf.fd = -1;
	lines->table = *table;
	if (lines_init(lines, arena) < 0) {
		go_lines_free(lines);
		lines = NULL;
	}
	*ret = lines;
	return 0;
}

int go_lines_open(struct elf_file *elf, struct arena *arena, struct go_lines **ret)
{
	struct go_lines *lines = calloc(1, sizeof(*lines));
	int r = -ENOMEM;

	if (!lines) {
		elf_close(elf);
		return r;
	}
	lines->elf = *elf;
	*elf = (struct elf_file){.fd = -1};
	r = elf_go_table(&lines->elf, &lines->bytes, &lines->table);
	if (r == 0)
		r = lines_init(lines, arena);
	if (r < 0) {
		go_lines_free(lines);
		lines = NULL;
		if (r == -ENOMEM)
			return r;
	}
	*ret = lines;
	return 0;
}

void go_lines_free(struct go_lines *lines)
{
	if (!lines)
		return;
	elf_bytes_fini(&lines->bytes);
	elf_close(&lines->elf);
	u64_map_fini(&lines->text_map);
	vec_fini(&lines->texts);
	free(lines);
}

/* A text of the table, which does not live as long as its copy. */
static const char *keep(struct go_lines *lines, const char *text)
{
	uint64_t offset = (uint64_t)((const uint8_t *)text - lines->table.data);
	const char *copy;
	uint32_t index;

	if (u64_map_get(&lines->text_map, offset, &index))
		return lines->texts.data[index];
	copy = arena_strndup(lines->arena, text, strlen(text));
	if (copy && vec_push(&lines->texts, copy) == 0)
		(void)u64_map_put(&lines->text_map, offset, (uint32_t)lines->texts.len - 1);
	return copy;
}

static uint64_t list_number(const struct go_layout *l, uint64_t index)
{
	struct reader r = go_read_at(l->table, l->list + index * l->entry_size);

	return go_number(&r, l->entry_size);
}

/* Reads the streams' offsets that stand behind a record's numbers. */
static void read_tree(const struct go_layout *l, struct reader *r, uint32_t streams,
		      struct function *function)
{
	uint64_t at = r->pos;
	uint8_t data;
	uint32_t offset;

	reader_skip(r, 3);
	data = reader_u8(r);
	if (l->table->gofunc == 0 || streams <= STREAM_TREE || data <= DATA_TREE)
		return;
	at += 4;
	*r = go_read_at(l->table, at + UINT64_C(4) * STREAM_TREE);
	function->indices = reader_u32(r);
	*r = go_read_at(l->table, at + UINT64_C(4) * streams + UINT64_C(4) * DATA_TREE);
	offset = reader_u32(r);
	if (r->failed || offset == NO_DATA)
		function->indices = 0;
	function->tree = l->table->gofunc + offset;
}

static bool read_record(const struct go_layout *l, uint64_t record, struct function *function)
{
	struct reader r;
	uint32_t streams;

	if (record > l->table->size)
		return false;
	r = go_read_at(l->table, l->records + record + l->entry_size);
	function->name = (int32_t)reader_u32(&r);
	reader_skip(&r, 12);
	function->files = reader_u32(&r);
	function->lines = reader_u32(&r);
	streams = reader_u32(&r);
	if (l->magic != GO_MAGIC_1_2)
		function->unit = reader_u32(&r);
	if (r.failed)
		return false;
	if (l->magic == GO_MAGIC_1_20)
		reader_skip(&r, 4);
	if (l->magic == GO_MAGIC_1_18 || l->magic == GO_MAGIC_1_20)
		read_tree(l, &r, streams, function);
	return true;
}

static bool find_function(const struct go_layout *l, uint64_t address, struct function *ret)
{
	uint64_t behind, offset = address - l->text;

	if (address < l->text)
		return false;
	behind = partition_point(l->count, at, list_number(l, 2 * at) <= offset);
	if (behind == 0)
		return false;
	behind--;
	*ret = (struct function){.entry = list_number(l, 2 * behind)};
	ret->size = list_number(l, 2 * behind + 2) - ret->entry;
	return offset - ret->entry < ret->size &&
	       read_record(l, list_number(l, 2 * behind + 1), ret);
}

/* What a stream says of the instruction at an offset into the function's code; -1: nothing. */
static int32_t value_at(const struct go_layout *l, uint32_t stream, uint64_t at, unsigned *steps)
{
	struct reader r;
	uint64_t end = 0;
	uint32_t value = UINT32_MAX;

	if (stream == 0)
		return -1;
	r = go_read_at(l->table, l->values + stream);
	while (*steps > 0) {
		uint32_t change = (uint32_t)reader_uleb(&r);

		if (r.failed || (change == 0 && end > 0))
			return -1;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		end += (uint32_t)reader_uleb(&r) * (uint64_t)l->quantum;
		if (r.failed)
			return -1;
		if (at < end)
			return (int32_t)value;
		--*steps;
	}
	return -1;
}

static const char *file_of(struct go_lines *lines, const struct function *function, int32_t index)
{
	const struct go_layout *l = &lines->layout;
	struct reader r;
	uint32_t offset;
	const char *path;

	if (index < 0 || (l->magic == GO_MAGIC_1_2 && index == 0))
		return NULL;
	if (l->magic == GO_MAGIC_1_2)
		r = go_read_at(l->table, l->files + UINT64_C(4) * (uint32_t)index);
	else
		r = go_read_at(l->table, l->units + UINT64_C(4) * function->unit +
						 UINT64_C(4) * (uint32_t)index);
	offset = reader_u32(&r);
	if (r.failed || offset == NO_DATA)
		return NULL;
	r = go_read_at(l->table, l->magic == GO_MAGIC_1_2 ? offset : l->files + offset);
	path = reader_cstr(&r);
	return path && path[0] ? keep(lines, path) : NULL;
}

/* Bytes at an address: of the table, or of what else the file has. */
static bool read_memory(const struct go_table *table, uint64_t address, size_t size, uint8_t *ret)
{
	struct elf_bytes bytes = {0};
	uint64_t offset;

	if (address >= table->address && address - table->address < table->size) {
		struct reader r = go_read_at(table, address - table->address);
		const uint8_t *data = reader_take(&r, size);

		if (data)
			memcpy(ret, data, size);
		return data != NULL;
	}
	if (!table->elf || !elf_vaddr_to_offset(table->elf, address, &offset) ||
	    elf_read(table->elf, offset, size, &bytes) < 0)
		return false;
	memcpy(ret, bytes.data, size);
	elf_bytes_fini(&bytes);
	return true;
}

struct node {
	const char *name;
	uint32_t call; /* offset into the function's code */
};

static bool read_node(const struct go_layout *l, const struct function *function, int32_t index,
		      struct node *ret)
{
	size_t size = l->magic == GO_MAGIC_1_18 ? 20 : 16, len;
	uint8_t bytes[NODE_MAX];
	struct reader r;
	int32_t name;

	if (!read_memory(l->table, function->tree + (uint64_t)(uint32_t)index * size, size, bytes))
		return false;
	r = reader_make(bytes, size, l->table->swap);
	reader_seek(&r, l->magic == GO_MAGIC_1_18 ? 12 : 4);
	name = (int32_t)reader_u32(&r);
	ret->call = reader_u32(&r);
	ret->name = go_name_at(l, name, &len);
	/* A name begins behind another: a tree that is none gives none. */
	return ret->name && ret->call < function->size && name > 0 && ret->name[-1] == '\0';
}

int go_lines_find(struct go_lines *lines, uint64_t address, struct inline_frame *frames, size_t max)
{
	const struct go_layout *l = &lines->layout;
	unsigned steps = STEPS_MAX;
	struct inline_frame frame;
	struct function function;
	size_t count = 0, len;
	uint64_t at;

	if (max == 0 || !find_function(l, address, &function))
		return 0;
	at = address - l->text - function.entry;
	do {
		int32_t line = value_at(l, function.lines, at, &steps),
			file = value_at(l, function.files, at, &steps),
			index = value_at(l, function.indices, at, &steps);
		struct node node;
		const char *name;

		if (line < 0 && count == 0)
			return 0; /* padding behind the code */
		frame = (struct inline_frame){.file = file_of(lines, &function, file),
					      .line = line > 0 ? (uint32_t)line : 0};
		frame.inlined =
			index >= 0 && count < NESTING_MAX && read_node(l, &function, index, &node);
		name = frame.inlined ? node.name : go_name_at(l, function.name, &len);
		if (name)
			frame.function = frame.raw_function = keep(lines, name);
		/* When there are more than fit, the outermost keeps its place. */
		frames[MIN(count, max - 1)] = frame;
		count++;
		at = frame.inlined ? node.call : 0;
	} while (frame.inlined);
	return (int)MIN(count, max);
}
