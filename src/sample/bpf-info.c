#include "sample/bpf-info.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* The structure as far as its name; older kernels had no more. */
#define INFO_MIN       80
#define LINE_MIN       16 /* of one line, as kernels know it today */
#define FUNC_INFO_MIN  8
#define COLUMN_BITS    10
#define NAME_MAX_BYTES 512 /* names of kernel symbols are no longer */
#define STRING_MAX     4096

#define BTF_MAGIC      0xeb9f
#define BTF_HEADER_MIN 24
#define BTF_TYPE_BYTES 12
#define BTF_KIND_SHIFT 24
#define BTF_KIND_MASK  0x1f
#define BTF_VLEN_MASK  0xffff

static uint32_t field32(const struct reader *info, size_t at)
{
	struct reader r = *info;

	reader_seek(&r, at);
	return reader_u32(&r);
}

static uint64_t field64(const struct reader *info, size_t at)
{
	struct reader r = *info;

	reader_seek(&r, at);
	return reader_u64(&r);
}

struct entry {
	struct reader info, data;
	uint64_t arrays;
};

/* An array that is told of, large enough and inside; else none. */
static struct bpf_array array_of(const struct entry *entry, enum bpf_array_bit bit, size_t pointer,
				 uint32_t count, uint32_t each, uint32_t each_min)
{
	uint64_t offset = field64(&entry->info, pointer), bytes = (uint64_t)count * each;

	if (!(entry->arrays >> bit & 1) || count == 0 || each < each_min ||
	    entry->info.size < pointer + 8 || offset > entry->data.size ||
	    bytes > entry->data.size - offset)
		return (struct bpf_array){0};
	return (struct bpf_array){entry->data.data + offset, count, each};
}

bool bpf_info_next(struct reader *r, struct bpf_info *ret)
{
	uint32_t info_bytes = reader_u32(r), data_bytes = reader_u32(r);
	struct entry entry = {.arrays = reader_u64(r)};
	const uint8_t *info = reader_take(r, info_bytes), *data = reader_take(r, data_bytes);
	const struct reader *fields = &entry.info;

	if (!info || !data || info_bytes < INFO_MIN)
		return false;
	entry.info = reader_make(info, info_bytes, r->swap);
	entry.data = reader_make(data, data_bytes, r->swap);
	*ret = (struct bpf_info){.id = field32(fields, BPF_INFO_ID),
				 .btf_id = field32(fields, BPF_INFO_BTF_ID),
				 .tag = info + BPF_INFO_TAG,
				 .swap = r->swap};
	memcpy(ret->name, info + BPF_INFO_NAME, BPF_INFO_NAME_BYTES);
	ret->starts = array_of(&entry, BPF_ARRAY_JITED_KSYMS, BPF_INFO_KSYMS,
			       field32(fields, BPF_INFO_NR_KSYMS), 8, 8);
	ret->lengths = array_of(&entry, BPF_ARRAY_JITED_FUNC_LENS, BPF_INFO_FUNC_LENS,
				field32(fields, BPF_INFO_NR_FUNC_LENS), 4, 4);
	ret->types = array_of(&entry, BPF_ARRAY_FUNC_INFO, BPF_INFO_FUNC_INFO,
			      field32(fields, BPF_INFO_NR_FUNC_INFO),
			      field32(fields, BPF_INFO_FUNC_INFO_BYTES), FUNC_INFO_MIN);
	ret->tags = array_of(&entry, BPF_ARRAY_PROG_TAGS, BPF_INFO_TAGS,
			     field32(fields, BPF_INFO_NR_TAGS), BPF_TAG_BYTES, BPF_TAG_BYTES);
	ret->line_info = array_of(&entry, BPF_ARRAY_LINE_INFO, BPF_INFO_LINE_INFO,
				  field32(fields, BPF_INFO_NR_LINE_INFO),
				  field32(fields, BPF_INFO_LINE_BYTES), LINE_MIN);
	ret->jited_lines = array_of(&entry, BPF_ARRAY_JITED_LINE_INFO, BPF_INFO_JITED_LINES,
				    field32(fields, BPF_INFO_NR_JITED_LINES),
				    field32(fields, BPF_INFO_JITED_LINE_BYTES), 8);
	ret->functions = MIN(ret->starts.count, ret->lengths.count);
	ret->lines = MIN(ret->line_info.count, ret->jited_lines.count);
	return true;
}

static struct reader at_index(const struct bpf_info *info, const struct bpf_array *array,
			      uint32_t index)
{
	return reader_make(array->data + (size_t)index * array->each, array->each, info->swap);
}

struct bpf_function bpf_info_function(const struct bpf_info *info, uint32_t index)
{
	struct reader start = at_index(info, &info->starts, index),
		      length = at_index(info, &info->lengths, index);
	struct bpf_function function = {
		.start = reader_u64(&start), .size = reader_u32(&length), .tag = info->tag};

	if (index < info->tags.count)
		function.tag = info->tags.data + (size_t)index * BPF_TAG_BYTES;
	if (index < info->types.count) {
		struct reader type = at_index(info, &info->types, index);

		reader_skip(&type, 4); /* which instruction it begins with */
		function.type = reader_u32(&type);
	}
	return function;
}

struct bpf_line bpf_info_line(const struct bpf_info *info, uint32_t index)
{
	struct reader address = at_index(info, &info->jited_lines, index),
		      line = at_index(info, &info->line_info, index);
	struct bpf_line place = {.address = reader_u64(&address)};
	uint32_t packed;

	reader_skip(&line, 4); /* the instruction's number */
	place.file = reader_u32(&line);
	reader_skip(&line, 4); /* the text of the line */
	packed = reader_u32(&line);
	place.line = packed >> COLUMN_BITS;
	place.column = packed & ((1u << COLUMN_BITS) - 1);
	return place;
}

/* Bytes behind the common part of a type; false: a kind that this does not know. */
static bool type_tail(uint32_t info, size_t *ret)
{
	/* INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC,
	 * FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 */
	static const uint8_t fixed[] = {0, 4, 0, 12, 0, 0, 0, 0, 0, 0,
					0, 0, 0, 0,  4, 0, 0, 4, 0, 0};
	static const uint8_t each[] = {0, 0, 0, 0, 12, 12, 8, 0, 0, 0,
				       0, 0, 0, 8, 0,  12, 0, 0, 0, 12};
	uint32_t kind = info >> BTF_KIND_SHIFT & BTF_KIND_MASK;

	if (kind == 0 || kind >= ARRAY_LEN(fixed))
		return false;
	*ret = fixed[kind] + (size_t)each[kind] * (info & BTF_VLEN_MASK);
	return true;
}

/* Types have no sizes: behind one that is not understood, none can be found. */
static int read_types(struct reader types, struct btf *ret)
{
	int r = 0;

	while (r == 0 && reader_left(&types) >= BTF_TYPE_BYTES) {
		uint32_t name = reader_u32(&types), info = reader_u32(&types);
		size_t tail;

		reader_skip(&types, 4);
		if (!type_tail(info, &tail))
			break;
		reader_skip(&types, tail);
		r = vec_push(&ret->names, name);
	}
	return r;
}

int btf_read(const void *data, size_t size, struct btf *ret)
{
	struct reader r = reader_make(data, size, false);
	uint32_t header_bytes, type_at, type_bytes, string_at, string_bytes;
	uint16_t magic = reader_u16(&r);

	*ret = (struct btf){0};
	r.swap = magic == __builtin_bswap16(BTF_MAGIC);
	if (magic != BTF_MAGIC && !r.swap)
		return -EBADMSG;
	reader_skip(&r, 2); /* version, flags */
	header_bytes = reader_u32(&r);
	type_at = reader_u32(&r);
	type_bytes = reader_u32(&r);
	string_at = reader_u32(&r);
	string_bytes = reader_u32(&r);
	if (r.failed || header_bytes < BTF_HEADER_MIN || header_bytes > size)
		return -EBADMSG;
	size -= header_bytes;
	if (type_at > size || type_bytes > size - type_at || string_at > size ||
	    string_bytes > size - string_at)
		return -EBADMSG;
	ret->strings = r.data + header_bytes + string_at;
	ret->string_bytes = string_bytes;
	return read_types(reader_make(r.data + header_bytes + type_at, type_bytes, r.swap), ret);
}

void btf_fini(struct btf *btf)
{
	vec_fini(&btf->names);
}

const char *btf_string(const struct btf *btf, uint32_t offset)
{
	if (offset >= btf->string_bytes ||
	    !memchr(btf->strings + offset, '\0', MIN(btf->string_bytes - offset, STRING_MAX)))
		return NULL;
	return (const char *)btf->strings + offset;
}

const char *btf_type_name(const struct btf *btf, uint32_t id)
{
	const char *name;

	if (id == 0 || id > btf->names.len)
		return NULL;
	name = btf_string(btf, btf->names.data[id - 1]);
	return name && *name ? name : NULL;
}

void bpf_function_name(const struct bpf_info *info, const struct bpf_function *function,
		       const struct btf *btf, struct str *out)
{
	const char *name = btf && function->type ? btf_type_name(btf, function->type) : NULL;

	str_puts(out, "bpf_prog_");
	for (size_t i = 0; i < BPF_TAG_BYTES; i++)
		str_printf(out, "%02x", function->tag[i]);
	if (!name && info->functions > 1)
		name = "F"; /* the kernel's word */
	else if (!name && info->name[0])
		name = info->name;
	if (name)
		str_printf(out, "_%.*s", (int)strnlen(name, NAME_MAX_BYTES), name);
}
