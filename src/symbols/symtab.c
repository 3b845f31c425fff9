/*
 * Building and searching one symbol table.
 *
 * symtab_finish(): sort by start; settle aliases (SYMTAB_INNERMOST); give symbols without a size
 * the room up to their successor; sweep over the starts and ends with a heap of the symbols that
 * cover the current address, emitting a piece whenever the owner changes. The sweep does one heap
 * operation per symbol, so n symbols cost O(n log n) and at most 2n pieces whatever a hostile file
 * says.
 */
#include "symbols/symtab-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define NAMES_MAX  (SYMTAB_PART - 1)
#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

void symtab_builder_fini(struct symtab_builder *builder)
{
	vec_for_each(&builder->owned, buffer)
		free(*buffer);
	vec_for_each(&builder->objects, object)
		free(*object);
	vec_fini(&builder->owned);
	vec_fini(&builder->objects);
	vec_fini(&builder->raw);
	arena_fini(&builder->arena);
}

int symtab_builder_add(struct symtab_builder *builder, const struct symtab_raw *raw)
{
	if (raw->name_len == 0 || raw->end <= raw->start)
		return 0;
	return vec_push(&builder->raw, *raw);
}

int symtab_builder_own(struct symtab_builder *builder, void *buffer)
{
	if (vec_push(&builder->owned, buffer) < 0) {
		free(buffer);
		return -ENOMEM;
	}
	return 0;
}

static bool pairs_sorted(const struct sort_pair *pairs, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (pairs[i].key < pairs[i - 1].key)
			return false;
	return true;
}

void sort_pairs(struct sort_pair *pairs, struct sort_pair *scratch, size_t count)
{
	struct sort_pair *from = pairs, *to = scratch;

	if (pairs_sorted(pairs, count))
		return;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		size_t at[DIGITS] = {0}, sum = 0;

		for (size_t i = 0; i < count; i++)
			at[(from[i].key >> shift) % DIGITS]++;
		if (at[(from[0].key >> shift) % DIGITS] == count)
			continue;
		for (size_t digit = 0; digit < DIGITS; digit++) {
			size_t n = at[digit];

			at[digit] = sum;
			sum += n;
		}
		for (size_t i = 0; i < count; i++)
			to[at[(from[i].key >> shift) % DIGITS]++] = from[i];
		struct sort_pair *swap = from;
		from = to;
		to = swap;
	}
	if (from != pairs)
		memcpy(pairs, from, count * sizeof(*pairs));
}

static unsigned leading_underscores(const struct symtab_raw *raw)
{
	unsigned n = 0;

	while (n < raw->name_len && raw->name[n] == '_')
		n++;
	return n;
}

/* The order of aliases at one address; a total order, so that the result never depends on file
 * order. */
static bool alias_better(const struct symtab_raw *a, const struct symtab_raw *b)
{
	unsigned ua, ub;
	int cmp;

	if (a->no_size != b->no_size)
		return !a->no_size;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	ua = leading_underscores(a);
	ub = leading_underscores(b);
	if (ua != ub)
		return ua < ub;
	if (a->end != b->end)
		return a->end > b->end;
	if (a->name_len != b->name_len)
		return a->name_len < b->name_len;
	cmp = memcmp(a->name, b->name, a->name_len);
	return cmp < 0;
}

/*
 * Leaves one symbol per start in order[], or two where an alias reaches beyond the chosen one: then
 * the longer comes first and owns the rest. Returns how many.
 */
static size_t settle_aliases(const struct symtab_raw *raw, struct sort_pair *order, size_t count)
{
	size_t kept = 0, group_end;

	for (size_t i = 0; i < count; i = group_end) {
		uint32_t best = order[i].value, longest = best;
		uint64_t key = order[i].key;

		for (group_end = i + 1; group_end < count && order[group_end].key == key;
		     group_end++) {
			const struct symtab_raw *it = &raw[order[group_end].value];

			if (alias_better(it, &raw[best]))
				best = order[group_end].value;
			if (!it->no_size &&
			    (raw[longest].no_size || it->end > raw[longest].end ||
			     (it->end == raw[longest].end && alias_better(it, &raw[longest]))))
				longest = order[group_end].value;
		}
		if (longest != best && !raw[longest].no_size && raw[longest].end > raw[best].end)
			order[kept++] = (struct sort_pair){key, longest};
		order[kept++] = (struct sort_pair){key, best};
	}
	return kept;
}

/* Labels without a size: dropped inside a symbol that has one, else they reach to the next symbol.
 */
static size_t settle_sizes(struct symtab_raw *raw, struct sort_pair *order, size_t count)
{
	uint64_t covered_to = 0;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct symtab_raw *it = &raw[order[i].value];

		if (!it->no_size) {
			covered_to = MAX(covered_to, it->end);
		} else {
			if (it->start < covered_to)
				continue;
			if (i + 1 < count && order[i + 1].key > it->start &&
			    order[i + 1].key < it->end)
				it->end = order[i + 1].key;
		}
		order[kept++] = order[i];
	}
	return kept;
}

struct heap_item {
	uint32_t priority, value;
};

struct piece {
	uint64_t start, end;
	uint32_t value;
};

struct sweep {
	const struct symtab_raw *raw;
	enum symtab_policy policy;
	struct heap_item *heap;
	size_t heap_len;
	VEC(struct piece) pieces;
};

static void heap_push(struct sweep *sweep, struct heap_item item)
{
	size_t at = sweep->heap_len++;

	while (at > 0 && sweep->heap[(at - 1) / 2].priority < item.priority) {
		sweep->heap[at] = sweep->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	sweep->heap[at] = item;
}

static void heap_pop(struct sweep *sweep)
{
	struct heap_item item = sweep->heap[--sweep->heap_len];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < sweep->heap_len) {
		if (child + 1 < sweep->heap_len &&
		    sweep->heap[child + 1].priority > sweep->heap[child].priority)
			child++;
		if (sweep->heap[child].priority <= item.priority)
			break;
		sweep->heap[at] = sweep->heap[child];
		at = child;
	}
	sweep->heap[at] = item;
}

static int sweep_run(struct sweep *sweep, const struct sort_pair *order, size_t count)
{
	uint64_t pos = 0, next;
	size_t i = 0;

	while (i < count || sweep->heap_len > 0) {
		while (sweep->heap_len > 0 && sweep->raw[sweep->heap[0].value].end <= pos)
			heap_pop(sweep);
		if (sweep->heap_len == 0) {
			if (i >= count)
				break;
			pos = MAX(pos, order[i].key);
		}
		for (; i < count && order[i].key <= pos; i++)
			heap_push(sweep,
				  (struct heap_item){sweep->policy == SYMTAB_LATEST ? order[i].value
										    : (uint32_t)i,
						     order[i].value});
		if (sweep->raw[sweep->heap[0].value].end <= pos)
			continue;
		uint32_t owner = sweep->heap[0].value;

		next = sweep->raw[owner].end;
		if (i < count)
			next = MIN(next, order[i].key);
		struct piece *last =
			sweep->pieces.len ? &sweep->pieces.data[sweep->pieces.len - 1] : NULL;

		if (last && last->value == owner && last->end == pos)
			last->end = next;
		else if (vec_push(&sweep->pieces, ((struct piece){pos, next, owner})) < 0)
			return -ENOMEM;
		pos = next;
	}
	return 0;
}

static uint32_t size32(uint64_t start, uint64_t end)
{
	return (uint32_t)MIN(end - start, UINT64_C(0xffffffff));
}

/* Copies the name of a symbol into tab->names once; name_at remembers where (NAMES_MAX + 1: not
 * yet). */
static uint32_t place_name(struct symtab *tab, const struct symtab_raw *raw, uint32_t *name_at)
{
	if (*name_at == SYMTAB_PART) {
		*name_at = (uint32_t)tab->names_len;
		memcpy(tab->names + tab->names_len, raw->name, raw->name_len);
		tab->names_len += raw->name_len;
		tab->names[tab->names_len++] = '\0';
		tab->symbols++;
	}
	return *name_at;
}

/* Counts pieces and bytes of names; pieces whose name would not fit in 31 bits of offset are cut
 * off. */
static size_t measure(const struct sweep *sweep, uint8_t *pieces_of, size_t *ret_pieces)
{
	size_t bytes = 0, n = 0;

	for (; n < sweep->pieces.len; n++) {
		const struct piece *piece = &sweep->pieces.data[n];

		if (pieces_of[piece->value] == 0) {
			if (bytes + sweep->raw[piece->value].name_len + 1 > NAMES_MAX)
				break;
			bytes += sweep->raw[piece->value].name_len + 1;
		}
		if (pieces_of[piece->value] < 2)
			pieces_of[piece->value]++;
	}
	*ret_pieces = n;
	return bytes;
}

static int emit(struct symtab_builder *builder, const struct sweep *sweep, struct symtab *tab)
{
	CLEANUP_FREE uint8_t *pieces_of = calloc(builder->raw.len + 1, 1);
	CLEANUP_FREE uint32_t *name_at = malloc((builder->raw.len + 1) * sizeof(*name_at));
	VEC(struct symtab_whole) wholes = {0};
	bool objects = builder->objects.len > 0;
	size_t bytes;

	if (!pieces_of || !name_at)
		return -ENOMEM;
	bytes = measure(sweep, pieces_of, &tab->count);
	tab->starts = malloc((tab->count + 1) * sizeof(*tab->starts));
	tab->infos = malloc((tab->count + 1) * sizeof(*tab->infos));
	tab->demangled = calloc(tab->count + 1, sizeof(*tab->demangled));
	tab->names = malloc(bytes + 1);
	tab->piece_objects =
		objects ? malloc((tab->count + 1) * sizeof(*tab->piece_objects)) : NULL;
	if (!tab->starts || !tab->infos || !tab->demangled || !tab->names ||
	    (objects && !tab->piece_objects))
		return -ENOMEM;
	for (size_t i = 0; i < builder->raw.len; i++)
		name_at[i] = SYMTAB_PART;
	for (size_t i = 0; i < tab->count; i++) {
		const struct piece *piece = &sweep->pieces.data[i];
		const struct symtab_raw *raw = &builder->raw.data[piece->value];
		uint32_t name = place_name(tab, raw, &name_at[piece->value]);

		if (pieces_of[piece->value] > 1 || piece->start != raw->start ||
		    piece->end != raw->end) {
			if (wholes.len >= SYMTAB_PART - 1 ||
			    vec_push(&wholes, ((struct symtab_whole){raw->start,
								     size32(raw->start, raw->end),
								     name})) < 0) {
				vec_fini(&wholes);
				return -ENOMEM;
			}
			name = SYMTAB_PART | (uint32_t)(wholes.len - 1);
		}
		tab->starts[i] = piece->start;
		tab->infos[i] = (struct symtab_info){size32(piece->start, piece->end), name};
		if (objects)
			tab->piece_objects[i] = raw->object;
	}
	tab->wholes = wholes.data;
	tab->wholes_len = wholes.len;
	tab->objects = builder->objects.data;
	tab->objects_len = builder->objects.len;
	builder->objects.data = NULL;
	builder->objects.len = builder->objects.cap = 0;
	return 0;
}

int symtab_finish(struct symtab_builder *builder, enum symtab_policy policy, struct symtab *ret)
{
	struct symtab tab = {0};
	struct sweep sweep = {.raw = builder->raw.data, .policy = policy};
	size_t count = builder->raw.len;
	struct sort_pair *order = NULL, *scratch = NULL;
	int r = -ENOMEM;

	if (count >= UINT32_MAX)
		return -EFBIG;
	order = malloc((count + 1) * sizeof(*order));
	scratch = malloc((count + 1) * sizeof(*scratch));
	if (!order || !scratch)
		goto out;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct sort_pair){builder->raw.data[i].start, (uint32_t)i};
	sort_pairs(order, scratch, count);
	if (policy == SYMTAB_INNERMOST) {
		count = settle_aliases(builder->raw.data, order, count);
		count = settle_sizes(builder->raw.data, order, count);
	}
	free(scratch);
	scratch = NULL;
	sweep.heap = malloc((count + 1) * sizeof(*sweep.heap));
	if (!sweep.heap)
		goto out;
	r = sweep_run(&sweep, order, count);
	if (r == 0)
		r = emit(builder, &sweep, &tab);
	if (r == 0)
		*ret = tab;
	else
		symtab_fini(&tab);
out:
	vec_fini(&sweep.pieces);
	free(sweep.heap);
	free(scratch);
	free(order);
	return r;
}

void symtab_fini(struct symtab *tab)
{
	for (size_t i = 0; tab->demangled && i < tab->count; i++)
		free(tab->demangled[i]);
	for (size_t i = 0; i < tab->objects_len; i++)
		free(tab->objects[i]);
	free(tab->objects);
	free(tab->piece_objects);
	free(tab->demangled);
	free(tab->starts);
	free(tab->infos);
	free(tab->wholes);
	free(tab->names);
	*tab = (struct symtab){0};
}

/* The text of piece i. Threads may race to demangle; the first stores its result, the others drop
 * theirs. */
static const char *display_name(const struct symtab *tab, size_t i, const char *raw)
{
	char *have = __atomic_load_n(&tab->demangled[i], __ATOMIC_ACQUIRE), *mine;

	if (have)
		return have;
	if (tab->no_demangle || raw[0] != '_' || raw[1] == '\0')
		return raw;
	mine = demangle(raw);
	if (!mine)
		return raw;
	if (__atomic_compare_exchange_n(&tab->demangled[i], &have, mine, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return mine;
	free(mine);
	return have;
}

bool symtab_lookup(const struct symtab *tab, uint64_t address, struct symbol *ret)
{
	size_t i = partition_point(tab->count, at, tab->starts[at] <= address);
	uint32_t name;

	if (i-- == 0)
		return false;
	if (address - tab->starts[i] >= tab->infos[i].size)
		return false;
	name = tab->infos[i].name;
	ret->start = tab->starts[i];
	ret->size = tab->infos[i].size;
	if (name & SYMTAB_PART) {
		const struct symtab_whole *whole = &tab->wholes[name & ~SYMTAB_PART];

		ret->start = whole->start;
		ret->size = whole->size;
		name = whole->name;
	}
	ret->raw_name = tab->names + name;
	ret->name = display_name(tab, i, ret->raw_name);
	ret->object = tab->piece_objects && tab->piece_objects[i]
			      ? tab->objects[tab->piece_objects[i] - 1]
			      : NULL;
	return true;
}
