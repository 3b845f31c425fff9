/*
 * Names that a recording brings with it. simpleperf writes, for each object that a sample fell
 * into, the symbols it found on the device (features FILE and FILE2): the objects themselves are
 * never at hand where such a recording is read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"
#include "base/util.h"
#include "sample/session-internal.h"

/* 64 MiB of symbols; a recording of a whole phone has some 100 000. */
#define RECORDED_SYMBOLS_MAX (4u << 20)
#define RECORDED_OBJECTS_MAX (1u << 20)

#define JIT_SYMBOL_FILE 0x4000 /* simpleperf's flag in a mapping's protection bits */

bool map_is_jit_symbol_file(const struct perfdata_mmap *map)
{
	return map->prot & JIT_SYMBOL_FILE;
}

static int add_symbol(struct session *session, uint64_t start, uint64_t size, const char *name,
		      size_t len)
{
	struct recorded_symbol symbol = {.start = start, .size = size};
	int r;

	if (len == 0 || session->recorded_symbols.len >= RECORDED_SYMBOLS_MAX)
		return 0;
	r = strtab_intern(&session->strings, name, len, &symbol.name);
	return r < 0 ? r : vec_push(&session->recorded_symbols, symbol);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct recorded_symbol *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Closes the object whose symbols are the last ones. */
static int add_object(struct session *session, struct recorded_object *object, const char *path,
		      size_t len)
{
	char name[256];
	uint32_t string;
	int r;

	object->count = session->recorded_symbols.len - object->first;
	if (object->count == 0 || len == 0 || session->recorded_objects.len >= RECORDED_OBJECTS_MAX)
		return 0;
	qsort(session->recorded_symbols.data + object->first, object->count,
	      sizeof(*session->recorded_symbols.data), compare_symbols);
	if (object->type == RECORDED_KERNEL_MODULE && len < sizeof(name)) {
		char whole[256];

		snprintf(whole, sizeof(whole), "%.*s", (int)len, path);
		kernel_module_name(whole, name, sizeof(name));
		r = strtab_intern_text(&session->strings, name, &string);
	} else {
		r = strtab_intern(&session->strings, path, len, &string);
	}
	if (r == 0)
		r = vec_push(&session->recorded_objects, *object);
	return r < 0 ? r
		     : u64_map_put(&session->recorded_index, string,
				   (uint32_t)session->recorded_objects.len - 1);
}

/* path NUL, type, lowest address, symbols of "start, length, name NUL", then what the type has. */
static int read_object(struct session *session, struct reader *r)
{
	struct recorded_object object = {.first = session->recorded_symbols.len,
					 .file_offset = UINT64_MAX};
	const char *path = reader_cstr(r);
	uint32_t symbols;
	int status = 0;

	object.type = reader_u32(r);
	object.min_vaddr = reader_u64(r);
	symbols = reader_u32(r);
	for (uint32_t i = 0; i < symbols && status == 0; i++) {
		uint64_t start = reader_u64(r);
		uint32_t size = reader_u32(r);
		const char *name = reader_cstr(r);

		if (r->failed)
			break;
		status = add_symbol(session, start, size, name, strlen(name));
	}
	if ((object.type == RECORDED_ELF || object.type == RECORDED_KERNEL_MODULE) &&
	    reader_left(r) >= 8)
		object.file_offset = reader_u64(r);
	return status < 0 || !path ? status : add_object(session, &object, path, strlen(path));
}

int session_recorded_files(struct session *session, struct reader *r)
{
	int status = 0;

	while (status == 0 && reader_left(r) > 4 && !r->failed) {
		uint32_t size = reader_u32(r);
		const uint8_t *bytes = reader_take(r, size);
		struct reader inner = reader_make(bytes, bytes ? size : 0, r->swap);

		if (bytes)
			status = read_object(session, &inner);
	}
	return status;
}

/* The messages of FILE2 (record_file.proto of simpleperf): the numbers are those of its fields. */
static int read_proto_symbol(struct session *session, struct reader *r)
{
	struct proto_field field;
	uint64_t start = 0, size = 0;
	const char *name = "";
	size_t len = 0;

	while (proto_next(r, &field, NULL) == 1) {
		if (field.number == 1)
			start = field.value;
		else if (field.number == 2)
			size = field.value;
		else if (field.number == 3 && field.type == PROTO_BYTES) {
			name = (const char *)r->data + field.pos;
			len = field.end - field.pos;
		}
	}
	return add_symbol(session, start, size, name, len);
}

static uint64_t first_number(struct reader *r)
{
	struct proto_field field;

	return proto_next(r, &field, NULL) == 1 && field.number == 1 ? field.value : 0;
}

static int read_proto_object(struct session *session, struct reader *r)
{
	struct recorded_object object = {.first = session->recorded_symbols.len,
					 .file_offset = UINT64_MAX};
	struct proto_field field;
	const char *path = "";
	size_t len = 0;
	int status = 0;

	while (status == 0 && proto_next(r, &field, NULL) == 1) {
		struct reader inner = {0};

		if (field.type == PROTO_BYTES)
			inner = proto_message(r, &field);
		if (field.number == 1 && field.type == PROTO_BYTES) {
			path = (const char *)r->data + field.pos;
			len = field.end - field.pos;
		} else if (field.number == 2) {
			object.type = (uint32_t)field.value;
		} else if (field.number == 3) {
			object.min_vaddr = field.value;
		} else if (field.number == 4 && field.type == PROTO_BYTES) {
			status = read_proto_symbol(session, &inner);
		} else if ((field.number == 6 || field.number == 7) && field.type == PROTO_BYTES) {
			object.file_offset = first_number(&inner);
		}
	}
	return status < 0 ? status : add_object(session, &object, path, len);
}

int session_recorded_files2(struct session *session, struct reader *r)
{
	int status = 0;

	while (status == 0 && reader_left(r) > 4 && !r->failed) {
		uint32_t size = reader_u32(r);
		const uint8_t *bytes = reader_take(r, size);
		struct reader inner = reader_make(bytes, bytes ? size : 0, false);

		if (bytes)
			status = read_proto_object(session, &inner);
	}
	return status;
}

static const struct recorded_object *object_of(const struct session *session, const char *path)
{
	uint32_t string = strtab_find(&session->strings, path, strlen(path)), index;

	return string != HASH_NONE && u64_map_get(&session->recorded_index, string, &index)
		       ? &session->recorded_objects.data[index]
		       : NULL;
}

bool session_has_recorded_names(const struct session *session, const struct dso *dso)
{
	return session->recorded_objects.len > 0 && object_of(session, dso->path);
}

/* From where we say an address is in an object to the address that the object's symbols have. */
static uint64_t symbol_address(const struct recorded_object *object, const struct dso *dso,
			       uint64_t address)
{
	if (object->type == RECORDED_ELF && dso->kind != MODULE_PERF_MAP)
		return address + object->min_vaddr -
		       (object->file_offset != UINT64_MAX ? object->file_offset
							  : dso->first_offset);
	if (object->type == RECORDED_KERNEL_MODULE && object->file_offset != UINT64_MAX)
		return address - dso->first_start - object->file_offset + object->min_vaddr;
	return address;
}

static const char *find_symbol(const struct session *session, const struct recorded_object *object,
			       uint64_t address)
{
	const struct recorded_symbol *all = session->recorded_symbols.data + object->first;
	size_t behind = partition_point(object->count, at, all[at].start <= address);

	return behind > 0 && address - all[behind - 1].start < MAX(all[behind - 1].size, 1u)
		       ? strtab_text(&session->strings, all[behind - 1].name)
		       : NULL;
}

const char *session_recorded_name(const struct session *session, const struct dso *dso,
				  uint64_t address)
{
	const struct recorded_object *object;
	const char *name = NULL;

	if (session->recorded_objects.len == 0)
		return NULL;
	object = object_of(session, dso->path);
	if (object)
		name = find_symbol(session, object, symbol_address(object, dso, address));
	/* The symbols of modules stand among the kernel's, too. */
	if (!name && dso->kind == MODULE_KERNEL && dso != session->kernel) {
		object = object_of(session, session->kernel->path);
		if (object)
			name = find_symbol(session, object, address);
	}
	return name;
}
