/*
 * From the samples of a legacy profile to a profile: addresses find their mappings and names, and
 * become locations in the order in which samples name them, leaf first.
 */
#include "profile/legacy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "profile/legacy-internal.h"

/* How many overlapping mappings are looked at for one address. */
#define OVERLAPS_MAX 64
#define NO_MAPPING   UINT32_MAX

struct place {
	uint64_t address;
	uint32_t mapping; /* in legacy.mappings */
	uint32_t location;
};

struct builder {
	struct legacy *l;
	struct u64_map index; /* address to place */
	VEC(struct place) places;
	VEC(uint32_t) by_start; /* mappings */
	VEC(uint32_t) mapping_ids;
	VEC(struct profile_line) lines;
	bool need_fake;
};

int legacy_add_sample(struct legacy *l)
{
	return vec_push(&l->samples, (struct legacy_sample){.first = l->addresses.len});
}

int legacy_add_address(struct legacy *l, uint64_t address)
{
	struct legacy_sample *sample = &l->samples.data[l->samples.len - 1];

	if (sample->count == UINT32_MAX)
		return -E2BIG;
	sample->count++;
	return vec_push(&l->addresses, address);
}

int legacy_add_addresses(struct legacy *l, struct scan text, unsigned first_caller)
{
	uint64_t address;
	int r = 0;

	while (r == 0 && text.at < text.end) {
		if (!scan_address(&text, &address)) {
			text.at++;
			continue;
		}
		if (!l->symbolized && l->samples.data[l->samples.len - 1].count >= first_caller)
			address--;
		r = legacy_add_address(l, address);
	}
	return r;
}

int legacy_add_symbol(struct legacy *l, uint64_t address, struct scan name, struct scan file,
		      int64_t line)
{
	struct legacy_symbol symbol = {
		.address = address, .order = (uint32_t)l->symbols.len, .line = line};
	struct profile_function function = {0};
	struct strtab *strings = &l->profile->strings;
	int r = strtab_intern(strings, name.at, (size_t)(name.end - name.at), &function.name);

	function.system_name = function.name;
	if (r == 0)
		r = strtab_intern(strings, file.at, (size_t)(file.end - file.at),
				  &function.filename);
	if (r == 0)
		r = profile_function(l->profile, &function, &symbol.function);
	if (r == 0 && l->symbols.len >= UINT32_MAX)
		r = -E2BIG;
	return r < 0 ? r : vec_push(&l->symbols, symbol);
}

int legacy_bad_line(struct legacy *l, const struct scan_lines *reader, const char *what)
{
	return err_set(l->err, -EBADMSG, "line %zu: %s", reader->number, what);
}

int legacy_types(struct legacy *l, const char *const *names, const char *period_type,
		 const char *period_unit, int64_t period)
{
	struct profile *p = l->profile;
	int r = strtab_intern_text(&p->strings, period_type, &p->period_type.type);

	if (r == 0)
		r = strtab_intern_text(&p->strings, period_unit, &p->period_type.unit);
	for (; r == 0 && names[0]; names += 2)
		r = profile_add_value_type(p, names[0], names[1]);
	p->period = period;
	return r;
}

static int order_symbols(const void *a, const void *b)
{
	const struct legacy_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The first symbol of that address, or NULL. */
static const struct legacy_symbol *find_symbols(const struct legacy *l, uint64_t address)
{
	size_t first = partition_point(l->symbols.len, at, l->symbols.data[at].address < address);

	return first < l->symbols.len && l->symbols.data[first].address == address
		       ? &l->symbols.data[first]
		       : NULL;
}

static bool is_library(const char *name)
{
	const char *at = name;
	size_t len = strlen(name);

	if (len >= 3 && strcmp(name + len - 3, ".so") == 0)
		return true;
	while ((at = strstr(at, ".so")) != NULL) {
		at += 3;
		if ((at[0] == '.' || at[0] == '_') && at[1] >= '0' && at[1] <= '9')
			return true;
	}
	return false;
}

/* Whether b goes on where a ends: parts of one mapping that differ in rights or huge pages. */
static bool adjacent(const struct profile_mapping *a, const struct profile_mapping *b)
{
	if (a->filename != 0 && b->filename != 0 && a->filename != b->filename)
		return false;
	if (a->limit != b->start)
		return false;
	return a->offset == 0 || b->offset == 0 || a->offset + (a->limit - a->start) == b->offset;
}

static void join_mappings(struct legacy *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->mappings.len; i++) {
		struct profile_mapping *last = &l->mappings.data[kept ? kept - 1 : 0],
				       *next = &l->mappings.data[i];

		if (kept == 0 || !adjacent(last, next)) {
			l->mappings.data[kept++] = *next;
			continue;
		}
		last->limit = next->limit;
		if (next->filename != 0) {
			last->filename = next->filename;
			last->kind = next->kind;
		}
	}
	l->mappings.len = kept;
}

/* The program belongs first, where readers look for it. */
static void main_mapping_first(struct legacy *l)
{
	for (size_t i = 0; i < l->mappings.len; i++) {
		struct profile_mapping *m = &l->mappings.data[i], first;
		const char *name = strtab_text(&l->profile->strings, m->filename);

		if (name[0] == '\0' || name[0] == '[' || is_library(name) ||
		    str_prefix(name, "/dev/dri/", NULL))
			continue;
		first = l->mappings.data[0];
		l->mappings.data[0] = *m;
		*m = first;
		break;
	}
}

static void mend_mappings(struct legacy *l)
{
	struct profile_mapping *first = l->mappings.data;

	join_mappings(l);
	main_mapping_first(l);
	if (l->mappings.len > 1 && first->limit == first[1].start &&
	    str_prefix(strtab_text(&l->profile->strings, first->filename), "/anon_hugepage", NULL))
		memmove(first, first + 1, --l->mappings.len * sizeof(*first));
	/* A program whose first part was mapped anew begins at the usual address all the same. */
	if (l->mappings.len > 0 && first->start - first->offset == 0x400000) {
		first->start = 0x400000;
		first->offset = 0;
	}
}

static int order_by_start(const void *a, const void *b, void *arg)
{
	const struct legacy *l = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t s = l->mappings.data[x].start, t = l->mappings.data[y].start;

	if (s != t)
		return s < t ? -1 : 1;
	return x > y ? -1 : x < y; /* the first listed is found first, going down */
}

static int sort_mappings(struct builder *b)
{
	int r = vec_reserve(&b->by_start, b->l->mappings.len + 1);

	if (r < 0)
		return r;
	for (size_t i = 0; i < b->l->mappings.len; i++)
		b->by_start.data[b->by_start.len++] = (uint32_t)i;
	if (b->by_start.len > 1)
		qsort_r(b->by_start.data, b->by_start.len, sizeof(*b->by_start.data),
			order_by_start, b->l);
	return 0;
}

static uint32_t find_mapping(struct builder *b, uint64_t address)
{
	size_t behind, above;
	struct profile_mapping *next;

	behind = partition_point(b->by_start.len, at,
				 b->l->mappings.data[b->by_start.data[at]].start <= address);
	above = behind;
	for (size_t i = 0; i < OVERLAPS_MAX && behind > 0; i++)
		if (address < b->l->mappings.data[b->by_start.data[--behind]].limit)
			return b->by_start.data[behind];
	if (above == b->by_start.len)
		return NO_MAPPING;
	/* Some writers left out the first part of a mapping in two parts: the offset tells. */
	next = &b->l->mappings.data[b->by_start.data[above]];
	if (next->offset == 0 || next->start < next->offset || next->start - next->offset > address)
		return NO_MAPPING;
	next->start -= next->offset;
	next->offset = 0;
	return b->by_start.data[above];
}

static int add_place(struct builder *b, uint64_t address)
{
	struct place place = {.address = address, .mapping = NO_MAPPING};
	bool named = find_symbols(b->l, address) != NULL;
	uint32_t known;
	int r;

	if (u64_map_get(&b->index, address, &known))
		return 0;
	if (b->places.len >= UINT32_MAX - 1)
		return -E2BIG;
	if (address != 0 && !(named && b->l->no_addresses))
		place.mapping = find_mapping(b, address);
	if (address != 0 && !named && place.mapping == NO_MAPPING)
		b->need_fake = true;
	r = u64_map_put(&b->index, address, (uint32_t)b->places.len);
	return r < 0 ? r : vec_push(&b->places, place);
}

/* Mappings get their ids in the order of the file, used or not. */
static int add_mappings(struct builder *b)
{
	static const struct profile_mapping everything = {.limit = UINT64_MAX};
	uint32_t id;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->l->mappings.len; i++) {
		r = profile_mapping(b->l->profile, &b->l->mappings.data[i], &id);
		if (r == 0)
			r = vec_push(&b->mapping_ids, id);
	}
	if (r == 0 && b->need_fake)
		r = profile_mapping(b->l->profile, &everything, &id);
	if (r == 0 && b->need_fake)
		r = vec_push(&b->mapping_ids, id);
	return r;
}

static int add_location(struct builder *b, struct place *place)
{
	const struct legacy_symbol *symbol = find_symbols(b->l, place->address),
				   *end = symbol ? b->l->symbols.data + b->l->symbols.len : NULL;
	struct profile_location location = {.address = place->address};
	int r = 0;

	b->lines.len = 0;
	for (; r == 0 && symbol && symbol < end && symbol->address == place->address; symbol++) {
		struct profile_line line = {.function = symbol->function, .line = symbol->line};

		r = vec_push(&b->lines, line);
	}
	if (r < 0)
		return r;
	location.line_count = (uint32_t)b->lines.len;
	if (place->mapping != NO_MAPPING)
		location.mapping = b->mapping_ids.data[place->mapping];
	else if (location.line_count == 0 && place->address != 0)
		location.mapping = b->mapping_ids.data[b->mapping_ids.len - 1];
	if (b->l->no_addresses && location.line_count > 0)
		location.address = 0;
	return profile_location(b->l->profile, &location, b->lines.data, &place->location);
}

static int add_sample(struct builder *b, const struct legacy_sample *sample, uint32_t bytes_key)
{
	struct profile *p = b->l->profile;
	uint32_t stack = 0, labels = 0, place = 0;
	int r = 0;

	for (size_t i = sample->count; r == 0 && i-- > 0;) {
		(void)u64_map_get(&b->index, b->l->addresses.data[sample->first + i], &place);
		r = profile_stack(p, stack, b->places.data[place].location, &stack);
	}
	if (r == 0 && sample->has_block)
		r = profile_label_set(
			p, &(struct profile_label){.key = bytes_key, .number = sample->block_bytes},
			1, &labels);
	return r < 0 ? r : profile_add(p, stack, labels, sample->values);
}

static int build(struct builder *b)
{
	struct legacy *l = b->l;
	uint32_t bytes_key;
	int r = strtab_intern_text(&l->profile->strings, "bytes", &bytes_key);

	if (l->symbols.len > 1)
		qsort(l->symbols.data, l->symbols.len, sizeof(*l->symbols.data), order_symbols);
	mend_mappings(l);
	if (r == 0)
		r = sort_mappings(b);
	vec_for_each(&l->samples, sample)
		for (uint32_t i = 0; r == 0 && i < sample->count; i++)
			r = add_place(b, l->addresses.data[sample->first + i]);
	if (r == 0)
		r = add_mappings(b);
	vec_for_each(&b->places, place)
		if (r == 0)
			r = add_location(b, place);
	vec_for_each(&l->samples, sample)
		if (r == 0)
			r = add_sample(b, sample, bytes_key);
	return r;
}

static int finish(struct legacy *l)
{
	struct builder b = {.l = l};
	int r = build(&b);

	u64_map_fini(&b.index);
	vec_fini(&b.places);
	vec_fini(&b.by_start);
	vec_fini(&b.mapping_ids);
	vec_fini(&b.lines);
	if (r == -EOVERFLOW)
		return err_set(l->err, r, "the values of one stack add up to more than 64 bits");
	return r;
}

bool legacy_detect(const void *data, size_t size)
{
	return legacy_detect_cpu(data, size) || legacy_detect_text(data, size);
}

static int read_sections(struct legacy *l, struct scan text)
{
	struct scan_lines reader = {.rest = text}, ahead;
	struct scan line;
	int r = 0;

	if (legacy_detect_cpu(text.at, scan_len(text)))
		return legacy_read_cpu(l, &reader);
	ahead = reader;
	if (scan_trimmed_line(&ahead, &line) && scan_starts(line, "--- symbol")) {
		reader = ahead;
		l->symbolized = true;
		r = legacy_read_symbols(l, &reader);
		ahead = reader;
		if (r == 0 && scan_trimmed_line(&ahead, &line) && scan_starts(line, "--- profile"))
			return legacy_read_cpu(l, &ahead);
	}
	return r < 0 ? r : legacy_read_text(l, &reader);
}

static int fill(void *text, struct profile *profile, struct err *err)
{
	struct legacy l = {.profile = profile, .err = err};
	int r = read_sections(&l, *(const struct scan *)text);

	if (r == 0)
		r = finish(&l);
	u64_map_fini(&l.named);
	vec_fini(&l.addresses);
	vec_fini(&l.samples);
	vec_fini(&l.mappings);
	vec_fini(&l.symbols);
	return r;
}

int legacy_read(const void *data, size_t size, struct profile *ret, struct err *err)
{
	struct scan text = scan_of(size ? data : "", size);

	return profile_make(fill, &text, ret, err);
}
