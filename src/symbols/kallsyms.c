#include "symbols/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "symbols/symtab-internal.h"

#define PAGE_BYTES     UINT64_C(4096)
#define BPF_PACK_BYTES (UINT64_C(2) << 20)

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One line without its newline; false when it is not a symbol. */
static bool parse_line(const char *text, const char *line, const char *end,
		       struct kallsyms_entry *ret)
{
	struct kallsyms_entry entry = {0};
	const char *p = line, *name;
	int digit;

	while (p < end && (digit = hex_value(*p)) >= 0) {
		if (p - line >= 16)
			return false;
		entry.address = entry.address << 4 | (unsigned)digit;
		p++;
	}
	if (p == line || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	entry.type = p[1];
	name = p + 3;
	if (end[-1] == ']') {
		const char *tab = memchr(name, '\t', (size_t)(end - name));

		if (tab && tab[1] == '[' && end - (tab + 1) <= UINT8_MAX) {
			entry.module = (uint32_t)(tab + 1 - text);
			entry.module_len = (uint8_t)(end - (tab + 1));
			end = tab;
		}
	}
	if (name == end || end - name > UINT16_MAX || memchr(name, ' ', (size_t)(end - name)) ||
	    memchr(name, '\t', (size_t)(end - name)))
		return false;
	entry.name = (uint32_t)(name - text);
	entry.name_len = (uint16_t)(end - name);
	*ret = entry;
	return true;
}

static int sort_entries(struct kallsyms_entry **entries, size_t count)
{
	CLEANUP_FREE struct sort_pair *order = NULL, *scratch = NULL;
	struct kallsyms_entry *sorted;
	size_t i;

	for (i = 1; i < count && (*entries)[i - 1].address <= (*entries)[i].address; i++)
		;
	if (i >= count)
		return 0;
	order = malloc(count * sizeof(*order));
	scratch = malloc(count * sizeof(*scratch));
	sorted = malloc(count * sizeof(*sorted));
	if (!order || !scratch || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++)
		order[i] = (struct sort_pair){(*entries)[i].address, (uint32_t)i};
	sort_pairs(order, scratch, count);
	for (i = 0; i < count; i++)
		sorted[i] = (*entries)[order[i].value];
	free(*entries);
	*entries = sorted;
	return 0;
}

int kallsyms_parse(const char *text, size_t size, struct kallsyms *ret)
{
	VEC(struct kallsyms_entry) entries = {0};
	const char *p = text, *end = text + size;
	struct kallsyms result = {.text = text};
	bool nul = size > 0 && memchr(text, '\0', size) != NULL;
	uint64_t any = 0;
	int r;

	if (size >= UINT32_MAX)
		return -EFBIG;
	if (vec_reserve(&entries, size / 40 + 16) < 0)
		return -ENOMEM;
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p)),
			   *stop = newline ? newline : end;
		struct kallsyms_entry entry;

		if (stop == p) {
			p++;
			continue;
		}
		if ((nul && memchr(p, '\0', (size_t)(stop - p))) ||
		    !parse_line(text, p, stop, &entry)) {
			result.bad_lines++;
		} else {
			any |= entry.address;
			if (vec_push(&entries, entry) < 0) {
				vec_fini(&entries);
				return -ENOMEM;
			}
		}
		p = stop + 1;
	}
	result.hidden = entries.len > 0 && any == 0;
	r = sort_entries(&entries.data, entries.len);
	if (r < 0) {
		vec_fini(&entries);
		return r;
	}
	result.entries = entries.data;
	result.count = entries.len;
	*ret = result;
	return 0;
}

void kallsyms_fini(struct kallsyms *kallsyms)
{
	free(kallsyms->entries);
	*kallsyms = (struct kallsyms){0};
}

static bool same_module(const struct kallsyms *kallsyms, const struct kallsyms_entry *a,
			const struct kallsyms_entry *b)
{
	return a->module_len == b->module_len &&
	       memcmp(kallsyms->text + a->module, kallsyms->text + b->module, a->module_len) == 0;
}

/* The end of the entries that share first's address. */
static size_t group_end(const struct kallsyms *kallsyms, size_t first)
{
	size_t next = first + 1;

	while (next < kallsyms->count &&
	       kallsyms->entries[next].address == kallsyms->entries[first].address)
		next++;
	return next;
}

/* The entry that speaks for all of its address: the first that is code, as only code is kept in an
 * excerpt. */
static size_t group_lead(const struct kallsyms *kallsyms, size_t first)
{
	size_t next = group_end(kallsyms, first);

	for (size_t i = first; i < next; i++)
		if (kallsyms_is_code(kallsyms->entries[i].type))
			return i;
	return first;
}

/* How far the last symbol of an object may reach: functions of modules are small, BPF programs are
 * large, and packed into areas of that size with nothing else. */
static uint64_t room_of(const struct kallsyms *kallsyms, const struct kallsyms_entry *entry)
{
	static const char bpf[] = "[bpf]";
	bool is_bpf = entry->module_len == strlen(bpf) &&
		      memcmp(kallsyms->text + entry->module, bpf, strlen(bpf)) == 0;

	return is_bpf ? BPF_PACK_BYTES : PAGE_BYTES;
}

/* The first address behind the symbols [first, next), which share an address. */
static uint64_t address_end(const struct kallsyms *kallsyms, size_t first, size_t next)
{
	const struct kallsyms_entry *lead = &kallsyms->entries[group_lead(kallsyms, first)];
	uint64_t start = lead->address, room = room_of(kallsyms, lead), cap;

	/* The second page at least, the pack's own end. */
	cap = start > UINT64_MAX - 2 * room
		      ? UINT64_MAX
		      : ALIGN_UP(start + (room == PAGE_BYTES ? PAGE_BYTES : 1), room);
	if (next >= kallsyms->count)
		return cap;
	if (same_module(kallsyms, lead, &kallsyms->entries[group_lead(kallsyms, next)]))
		return kallsyms->entries[next].address;
	return MIN(cap, kallsyms->entries[next].address);
}

static bool object_equal(const void *owner, uint32_t id, const void *key)
{
	const struct symtab_builder *builder = owner;

	return strcmp(builder->objects.data[id], key) == 0;
}

/* The index of the module's name in the builder, plus 1. Modules come in runs: the last one is
 * tried first. */
static int object_index(const struct kallsyms *kallsyms, const struct kallsyms_entry *entry,
			struct symtab_builder *builder, struct hash_index *index, uint16_t *ret)
{
	const char *name = kallsyms->text + entry->module;
	char *copy;

	if (*ret && strncmp(builder->objects.data[*ret - 1], name, entry->module_len) == 0 &&
	    builder->objects.data[*ret - 1][entry->module_len] == '\0')
		return 0;
	copy = strndup(name, entry->module_len);
	if (!copy)
		return -ENOMEM;
	uint64_t hash = hash_bytes(copy, entry->module_len);
	uint32_t id = hash_index_find(index, hash, object_equal, builder, copy);

	if (id != HASH_NONE) {
		free(copy);
		*ret = (uint16_t)(id + 1);
		return 0;
	}
	if (builder->objects.len >=
	    UINT16_MAX - 1) { /* more modules than any kernel has: shown as the kernel's */
		free(copy);
		*ret = 0;
		return 0;
	}
	if (vec_push(&builder->objects, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*ret = (uint16_t)builder->objects.len;
	return hash_index_add(index, hash, *ret - 1u);
}

int kallsyms_load(const struct kallsyms *kallsyms, struct symtab_builder *builder)
{
	struct hash_index index = {0};
	uint16_t object = 0;
	size_t next;
	int r = vec_reserve(&builder->raw, kallsyms->count);

	for (size_t first = 0; r == 0 && first < kallsyms->count; first = next) {
		next = group_end(kallsyms, first);
		uint64_t end = address_end(kallsyms, first, next);

		for (size_t i = first; r == 0 && i < next; i++) {
			const struct kallsyms_entry *it = &kallsyms->entries[i];

			if (!kallsyms_is_code(it->type))
				continue;
			if (it->module_len)
				r = object_index(kallsyms, it, builder, &index, &object);
			if (r == 0)
				r = symtab_builder_add(
					builder, &(struct symtab_raw){
							 .start = it->address,
							 .end = end,
							 .name = kallsyms->text + it->name,
							 .name_len = it->name_len,
							 .object = it->module_len ? object : 0,
							 .rank = it->type == 'T'   ? 0
								 : it->type == 'W' ? 1
								 : it->type == 't' ? 2
										   : 3,
						 });
		}
	}
	hash_index_fini(&index);
	return r;
}

static void put_line(const struct kallsyms *kallsyms, size_t i, char type, struct str *out)
{
	const struct kallsyms_entry *it = &kallsyms->entries[i];

	str_printf(out, "%016llx %c ", (unsigned long long)it->address, type);
	str_append(out, kallsyms->text + it->name, it->name_len);
	if (it->module_len) {
		str_putc(out, '\t');
		str_append(out, kallsyms->text + it->module, it->module_len);
	}
	str_putc(out, '\n');
}

/* Marks the last entry of every group that covers an address. */
static void mark_needed(const struct kallsyms *kallsyms, const uint64_t *addresses, size_t count,
			uint8_t *needed)
{
	for (size_t i = 0; i < count; i++) {
		size_t behind = partition_point(kallsyms->count, at,
						kallsyms->entries[at].address <= addresses[i]),
		       first = behind;

		while (first && kallsyms->entries[first - 1].address ==
					kallsyms->entries[behind - 1].address)
			first--;
		if (behind && addresses[i] < address_end(kallsyms, first, behind))
			needed[behind - 1] = 1;
	}
}

int kallsyms_excerpt(const char *text, size_t size, const uint64_t *addresses, size_t count,
		     struct str *out)
{
	struct kallsyms kallsyms;
	CLEANUP_FREE uint8_t *needed = NULL;
	bool bounds_previous = false;
	size_t next;
	int r = kallsyms_parse(text, size, &kallsyms);

	if (r < 0)
		return r;
	needed = calloc(kallsyms.count + 1, 1);
	if (!needed) {
		kallsyms_fini(&kallsyms);
		return -ENOMEM;
	}
	if (!kallsyms.hidden)
		mark_needed(&kallsyms, addresses, count, needed);
	for (size_t first = 0; first < kallsyms.count; first = next) {
		bool any = false;

		next = group_end(&kallsyms, first);
		for (size_t i = first; needed[next - 1] && i < next; i++)
			if (kallsyms_is_code(kallsyms.entries[i].type)) {
				put_line(&kallsyms, i, kallsyms.entries[i].type, out);
				any = true;
			}
		if (!any && bounds_previous)
			put_line(&kallsyms, group_lead(&kallsyms, first), 'N', out);
		bounds_previous = any;
	}
	kallsyms_fini(&kallsyms);
	return str_status(out);
}
