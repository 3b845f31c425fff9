/*
 * A unit's functions and inlined calls.
 *
 * One pass over the unit's entries collects functions, each with its caller, and their ranges. A
 * sweep then cuts the address space into pieces that belong to the innermost function, so that a
 * look-up is one binary search whatever the nesting.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/dwarf-internal.h"

#define DEPTH_MAX 4096

struct walk {
	struct dwarf_file *file;
	struct dwarf_unit *unit;
	const struct dwarf_abbrevs *table;
	struct dwarf_range_list ranges;
	uint64_t budget;
	VEC(uint32_t) parents; /* per open entry: the function it lies in */
};

/* Where the name is looked up: at the origin when that is in the same file, which many share. */
static uint64_t name_entry(const struct walk *w, const struct dwarf_entry *entry, uint64_t offset)
{
	struct dwarf_file *file;
	uint64_t at;

	if (!entry->linkage.form && entry->origin.form &&
	    dwarf_value_reference(w->file, w->unit, &entry->origin, &file, &at) && file == w->file)
		return at;
	return offset;
}

static int add_function(struct walk *w, const struct dwarf_entry *entry, uint64_t offset,
			uint32_t *inner)
{
	bool inlined = entry->abbrev->kind == DWARF_KIND_INLINED;
	uint32_t id = (uint32_t)w->unit->functions.len;
	size_t before = w->ranges.all.len;
	int r = dwarf_entry_ranges(w->file, w->unit, entry, id, (uint32_t)w->parents.len,
				   &w->budget, &w->ranges);

	/* Declarations and abstract instances have no code. */
	if (r < 0 || w->ranges.all.len == before) {
		if (!inlined)
			*inner = DWARF_NONE;
		return r;
	}
	r = vec_push(&w->unit->functions,
		     ((struct dwarf_function){
			     .entry = name_entry(w, entry, offset),
			     .parent = inlined ? *inner : DWARF_NONE,
			     .call_file = (uint32_t)MIN(entry->call_file.number, UINT32_MAX),
			     .call_line = (uint32_t)MIN(entry->call_line.number, UINT32_MAX),
			     .call_column = (uint16_t)MIN(entry->call_column.number, UINT16_MAX),
			     .inlined = inlined,
		     }));
	*inner = id;
	return r;
}

/* Behind an entry's children, when it says where that is. */
static void jump(struct walk *w, const struct dwarf_entry *entry, struct reader *r, bool *children)
{
	struct dwarf_file *file;
	uint64_t at;

	if (*children && entry->sibling.form &&
	    dwarf_value_reference(w->file, w->unit, &entry->sibling, &file, &at) &&
	    file == w->file && at > r->pos && at <= r->size) {
		r->pos = (size_t)at;
		*children = false;
	}
}

static int visit(struct walk *w, const struct dwarf_abbrev *abbrev, uint64_t offset,
		 struct reader *r)
{
	uint32_t inner = w->parents.len ? w->parents.data[w->parents.len - 1] : DWARF_NONE;
	bool children = abbrev->children;
	struct dwarf_entry entry;
	int status = 0;

	switch (abbrev->kind) {
	case DWARF_KIND_SUBPROGRAM:
	case DWARF_KIND_INLINED:
		dwarf_entry_read(w->table, w->unit, abbrev, r, &entry);
		if (r->failed)
			return 0;
		status = add_function(w, &entry, offset, &inner);
		if (!entry.low.form && !entry.ranges.form)
			jump(w, &entry, r, &children);
		break;
	case DWARF_KIND_NO_CODE:
		if (children) {
			dwarf_entry_read(w->table, w->unit, abbrev, r, &entry);
			jump(w, &entry, r, &children);
			break;
		}
		__attribute__((fallthrough));
	default:
		dwarf_entry_skip(w->table, w->unit, abbrev, r);
		break;
	}
	if (status == 0 && children)
		status = vec_push(&w->parents, inner);
	return status;
}

static int walk_entries(struct walk *w)
{
	struct reader r = dwarf_reader(w->file, DWARF_INFO, w->unit->first_entry,
				       w->unit->end - w->unit->first_entry);
	int status = 0;

	while (status == 0 && !r.failed && r.pos < r.size) {
		uint64_t offset = r.pos, code = reader_uleb(&r);
		const struct dwarf_abbrev *abbrev;

		if (code == 0) {
			if (w->parents.len <= 1)
				break;
			w->parents.len--;
			continue;
		}
		abbrev = dwarf_abbrev_find(w->table, code);
		if (!abbrev || w->parents.len >= DEPTH_MAX)
			break;
		status = visit(w, abbrev, offset, &r);
		if (w->parents.len == 0)
			break;
	}
	return status;
}

static int compare_nested(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static int put_piece(struct dwarf_unit *unit, uint64_t start, uint32_t function)
{
	struct dwarf_piece *last =
		unit->pieces.len ? &unit->pieces.data[unit->pieces.len - 1] : NULL;

	if (last && last->start == start) {
		last->function = function;
		return 0;
	}
	if (last && last->function == function)
		return 0;
	return vec_push(&unit->pieces, ((struct dwarf_piece){start, function}));
}

/*
 * Open ranges lie on a stack; the top one owns the addresses. One that would end behind the range
 * it lies in is cut there: calls are inside their callers.
 */
static int make_pieces(struct dwarf_unit *unit, struct dwarf_range_list *list)
{
	VEC(const struct dwarf_range *) open = {0};
	size_t i = 0;
	int r = 0;

	if (list->all.len > 1)
		qsort(list->all.data, list->all.len, sizeof(*list->all.data), compare_nested);
	while (r == 0 && (i < list->all.len || open.len > 0)) {
		const struct dwarf_range *next = i < list->all.len ? &list->all.data[i] : NULL;
		const struct dwarf_range *top = open.len ? open.data[open.len - 1] : NULL;

		if (top && (!next || top->high <= next->low)) {
			uint64_t at = top->high;

			while (open.len > 0 && open.data[open.len - 1]->high <= at)
				open.len--;
			r = put_piece(unit, at,
				      open.len ? open.data[open.len - 1]->owner : DWARF_NONE);
			continue;
		}
		r = vec_push(&open, next);
		if (r == 0)
			r = put_piece(unit, next->low, next->owner);
		i++;
	}
	vec_fini(&open);
	return r;
}

int dwarf_unit_decode(struct dwarf_file *file, struct dwarf_unit *unit)
{
	struct walk w = {
		.file = file, .unit = unit, .budget = (1u << 16) + (unit->end - unit->offset)};
	int r;

	if (unit->decoded)
		return 0;
	unit->decoded = true;
	r = dwarf_abbrevs_load(file, unit);
	if (r == 0) {
		w.table = &file->abbrevs.data[unit->abbrevs - 1];
		r = walk_entries(&w);
		dwarf_forget(file, unit->first_entry, unit->end);
	}
	if (r == 0)
		r = make_pieces(unit, &w.ranges);
	vec_fini(&w.ranges.all);
	vec_fini(&w.parents);
	return r;
}
