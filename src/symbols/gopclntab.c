/*
 * The header says the layout, the size of addresses and how many functions there are. A list of
 * (entry, offset of a record) follows, sorted by entry and ended by the end of the code; a record
 * begins with its entry again and the offset of its name.
 *
 *	1.2	addresses in the list; names relative to the table
 *	1.16	the same, but names, records, files and values in tables of their own, found by
 *		offsets in the header
 *	1.18	32-bit offsets from runtime.text instead of addresses
 *	1.20	as 1.18, with one number more in a record
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "symbols/gopclntab-internal.h"

#define NAME_MAX 65535

struct reader go_read_at(const struct go_table *table, uint64_t offset)
{
	struct reader r = reader_make(table->data, table->size, table->swap);

	reader_seek(&r, offset > table->size ? SIZE_MAX : (size_t)offset);
	return r;
}

uint64_t go_number(struct reader *r, unsigned size)
{
	return size == 8 ? reader_u64(r) : reader_u32(r);
}

static bool places_of(struct go_layout *l, const uint64_t words[8])
{
	struct reader r;

	l->count = words[0];
	l->entry_size = l->ptr_size;
	switch (l->magic) {
	case GO_MAGIC_1_2:
		l->list = GO_HEADER_BYTES + l->ptr_size;
		if (l->count < l->table->size) {
			r = go_read_at(l->table, l->list + (2 * l->count + 1) * l->entry_size);
			l->files = reader_u32(&r);
		}
		return true;
	case GO_MAGIC_1_16:
		l->names = words[2];
		l->units = words[3];
		l->files = words[4];
		l->values = words[5];
		l->records = l->list = words[6];
		return true;
	case GO_MAGIC_1_18:
	case GO_MAGIC_1_20:
		l->text = l->table->text ? l->table->text : words[2];
		l->names = words[3];
		l->units = words[4];
		l->files = words[5];
		l->values = words[6];
		l->records = l->list = words[7];
		l->entry_size = 4;
		return true;
	default:
		return false;
	}
}

bool go_layout_read(const struct go_table *table, struct go_layout *ret)
{
	struct reader r = go_read_at(table, 0);
	struct go_layout l = {.table = table};
	uint64_t words[8] = {0};
	uint8_t zero;

	l.magic = reader_u32(&r);
	zero = reader_u8(&r) | reader_u8(&r);
	l.quantum = reader_u8(&r);
	l.ptr_size = reader_u8(&r);
	if (r.failed || zero != 0 || (l.quantum != 1 && l.quantum != 2 && l.quantum != 4) ||
	    (l.ptr_size != 4 && l.ptr_size != 8))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words) && reader_left(&r) >= l.ptr_size; i++)
		words[i] = go_number(&r, l.ptr_size);
	if (!places_of(&l, words))
		return false;
	*ret = l;
	return l.list < table->size && l.names < table->size && l.units < table->size &&
	       l.files < table->size && l.values < table->size &&
	       l.count <= (table->size - l.list) / (2 * l.entry_size);
}

const char *go_name_at(const struct go_layout *layout, int32_t offset, size_t *ret_len)
{
	struct reader r;
	const char *name;

	if (offset < 0)
		return NULL;
	r = go_read_at(layout->table, layout->names + (uint64_t)offset);
	name = reader_cstr(&r);
	if (!name)
		return NULL;
	*ret_len = strlen(name);
	return *ret_len > 0 && *ret_len <= NAME_MAX ? name : NULL;
}

/* The name of a function by the offset of its record; NULL when that leads nowhere. */
static const char *name_of(const struct go_layout *l, uint64_t record, size_t *ret_len)
{
	struct reader r;
	int32_t offset;

	if (record > l->table->size)
		return NULL;
	r = go_read_at(l->table, l->records + record + l->entry_size);
	offset = (int32_t)reader_u32(&r);
	return r.failed ? NULL : go_name_at(l, offset, ret_len);
}

int go_table_load(const struct go_table *table, struct symtab_builder *builder)
{
	uint64_t entry, next, record;
	struct go_layout l;
	struct reader r;
	int status = 0;

	if (!go_layout_read(table, &l))
		return 0;
	r = go_read_at(table, l.list);
	entry = go_number(&r, l.entry_size);
	for (uint64_t i = 0; i < l.count && status == 0; i++, entry = next) {
		struct symtab_raw raw = {.start = l.text + entry};
		size_t len;

		record = go_number(&r, l.entry_size);
		next = go_number(&r, l.entry_size); /* the last function's is where code ends */
		raw.end = l.text + next;
		if (r.failed)
			break;
		raw.name = next > entry ? name_of(&l, record, &len) : NULL;
		if (!raw.name)
			continue;
		raw.name_len = (uint32_t)len;
		status = symtab_builder_add(builder, &raw);
	}
	return status;
}
