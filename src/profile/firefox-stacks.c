/*
 * Frames and stacks. The processed format has functions with resources and addresses inside a
 * library; Gecko's has one text for each frame: an address, "name (in object)" when names were
 * found beforehand, "name (file:line:column)" for scripts, or a name.
 *
 * Functions that are inlined into their caller are nodes of their own there, of the same address
 * and a depth above 0: they become the lines of one location.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/scan.h"
#include "base/util.h"
#include "profile/firefox-internal.h"

#define INLINES_MAX 64

struct place {
	struct profile_location location;
	struct profile_line line; /* function 0: an address alone */
};

static uint32_t id_of(const firefox_ids *ids, int64_t index)
{
	return index >= 0 && (uint64_t)index < ids->len ? ids->data[index] : 0;
}

static struct scan text_of(const struct firefox_document *d, uint32_t id)
{
	const struct strtab_entry *entry = &d->profile->strings.entries.data[id];

	return scan_of(entry->text, entry->len);
}

/* "0x1234" and nothing else. */
static bool is_address(struct scan text, uint64_t *ret)
{
	return scan_address(&text, ret) && scan_len(text) == 0;
}

static int intern(struct firefox_document *d, struct scan text, uint32_t *ret)
{
	return strtab_intern(&d->profile->strings, text.at, scan_len(text), ret);
}

/* An object, or none but a kind: category names stand for the objects that nobody named. */
static int add_mapping(struct firefox_document *d, uint32_t path, const struct firefox_lib *lib,
		       int64_t category, struct place *place)
{
	struct profile_mapping mapping = {.filename = path, .has_functions = true};
	const char *kind = strtab_text(&d->profile->strings, id_of(&d->categories, category));
	int r = 0;

	if (lib) {
		mapping.start = lib->start;
		mapping.limit = lib->end;
		mapping.offset = lib->start != 0 ? lib->offset : 0;
		mapping.build_id = lib->build_id;
	}
	if (path == 0 && (strcmp(kind, "Kernel") == 0 || strcmp(kind, "JIT") == 0))
		r = strtab_intern_text(&d->profile->strings, kind[0] == 'K' ? "[kernel]" : "[JIT]",
				       &mapping.filename);
	if (r < 0 || mapping.filename == 0)
		return r;
	mapping.kind = profile_kind_of_object(strtab_text(&d->profile->strings, mapping.filename));
	return profile_mapping(d->profile, &mapping, &place->location.mapping);
}

static int add_function(struct firefox_document *d, struct profile_function *function,
			struct place *place)
{
	function->system_name = function->name;
	return profile_function(d->profile, function, &place->line.function);
}

static const struct firefox_lib *lib_at(const struct firefox_tables *tables, uint64_t address)
{
	vec_for_each(tables->libs, lib)
		if (address >= lib->start && address < lib->end)
			return lib;
	return NULL;
}

/* "name (in object)", "name (file:line:column)": cuts text to the name, gives what is inside. */
static bool split_parentheses(struct scan *text, const char *opening, struct scan *ret_inside)
{
	const char *found = NULL, *at;
	struct scan rest = *text;

	if (scan_len(*text) == 0 || text->end[-1] != ')')
		return false;
	while ((at = scan_find(rest, opening)) != NULL) {
		found = at;
		rest.at = at + 1;
	}
	if (!found || found == text->at)
		return false;
	*ret_inside = (struct scan){found + strlen(opening), text->end - 1};
	text->end = found;
	return ret_inside->at < ret_inside->end;
}

/* Takes ":123" off the end. */
static bool take_number(struct scan *text, int64_t *ret)
{
	const char *at = text->end;
	struct scan digits;
	uint64_t value;

	while (at > text->at && isdigit((unsigned char)at[-1]))
		at--;
	digits = (struct scan){at, text->end};
	if (at - 1 <= text->at || at[-1] != ':' || !scan_u64(&digits, &value) || value > INT_MAX)
		return false;
	*ret = (int64_t)value;
	text->end = at - 1;
	return true;
}

static int named_location(struct firefox_document *d, struct scan name, int64_t category,
			  struct place *place)
{
	struct profile_function function = {0};
	uint32_t object = 0;
	struct scan inside;
	int64_t last = 0, before = 0;
	int r = 0;

	if (split_parentheses(&name, " (in ", &inside)) {
		r = intern(d, inside, &object);
	} else if (split_parentheses(&name, " (", &inside)) {
		if (take_number(&inside, &last) && take_number(&inside, &before))
			place->line.column = last;
		function.start_line = before > 0 ? before : last;
		r = intern(d, inside, &function.filename);
	}
	if (r == 0)
		r = intern(d, name, &function.name);
	if (r == 0)
		r = add_function(d, &function, place);
	return r < 0 ? r : add_mapping(d, object, NULL, category, place);
}

/* Gecko's: everything is in the text. */
static int locate_text(struct firefox_document *d, const struct firefox_tables *tables,
		       uint64_t frame, struct place *place)
{
	struct scan text = text_of(
		d, id_of(tables->strings, firefox_index(&tables->frame, FRAME_LOCATION, frame)));
	int64_t category = firefox_index(&tables->frame, FRAME_CATEGORY, frame);
	const struct firefox_lib *lib;

	if (!is_address(text, &place->location.address))
		return named_location(d, text, category, place);
	lib = lib_at(tables, place->location.address);
	return add_mapping(d, lib ? lib->path : 0, lib, category, place);
}

static int locate_func(struct firefox_document *d, const struct firefox_tables *tables,
		       uint64_t frame, struct place *place)
{
	int64_t func = firefox_index(&tables->frame, FRAME_FUNC, frame),
		category = firefox_index(&tables->frame, FRAME_CATEGORY, frame),
		address = firefox_index(&tables->frame, FRAME_ADDRESS, frame), resource, lib, line;
	uint64_t row = func >= 0 ? (uint64_t)func : UINT64_MAX;
	struct profile_function function = {
		.name = id_of(tables->strings, firefox_index(&tables->func, FUNC_NAME, row)),
		.filename = id_of(tables->strings, firefox_index(&tables->func, FUNC_FILE, row)),
	};
	int64_t source = firefox_index(&tables->func, FUNC_SOURCE, row);
	const struct firefox_lib *object = NULL;
	uint64_t named;
	int r = 0;

	resource = firefox_index(&tables->func, FUNC_RESOURCE, row);
	lib = resource >= 0 ? firefox_index(&tables->resource, 0, (uint64_t)resource) : -1;
	if (lib >= 0 && (uint64_t)lib < tables->libs->len)
		object = &tables->libs->data[lib];
	if (source >= 0)
		function.filename =
			id_of(tables->strings, firefox_index(tables->sources, 0, (uint64_t)source));
	line = firefox_index(&tables->func, FUNC_LINE, row);
	function.start_line = MAX(line, 0);
	if (address > 0)
		place->location.address = (uint64_t)address;
	if (is_address(text_of(d, function.name), &named)) {
		if (address < 0)
			place->location.address = named;
	} else if (function.name != 0) {
		r = add_function(d, &function, place);
	}
	if (r == 0 && object) {
		struct firefox_lib relative = *object;

		relative.start = relative.end = 0;
		return add_mapping(d, object->path, &relative, category, place);
	}
	return r < 0 ? r : add_mapping(d, 0, NULL, category, place);
}

static int locate(struct firefox_document *d, const struct firefox_tables *tables, uint64_t frame,
		  struct place *ret)
{
	int64_t line = firefox_index(&tables->frame, FRAME_LINE, frame),
		column = firefox_index(&tables->frame, FRAME_COLUMN, frame);
	int r;

	*ret = (struct place){0};
	r = tables->frame.columns[FRAME_FUNC].len > 0 ? locate_func(d, tables, frame, ret)
						      : locate_text(d, tables, frame, ret);
	if (line > 0)
		ret->line.line = line;
	if (column > 0)
		ret->line.column = column;
	return r;
}

/* The node of the function that this one is inlined into; false when it is not inlined. */
static bool inlined_into(const struct firefox_tables *t, uint64_t node, uint64_t *ret)
{
	int64_t frame = firefox_index(&t->stack, STACK_FRAME, node),
		prefix = firefox_index(&t->stack, STACK_PREFIX, node), caller;

	if (frame < 0 || prefix < 0 || (uint64_t)prefix >= node ||
	    firefox_index(&t->frame, FRAME_DEPTH, (uint64_t)frame) <= 0)
		return false;
	caller = firefox_index(&t->stack, STACK_FRAME, (uint64_t)prefix);
	if (caller < 0 || firefox_index(&t->frame, FRAME_ADDRESS, (uint64_t)frame) !=
				  firefox_index(&t->frame, FRAME_ADDRESS, (uint64_t)caller))
		return false;
	*ret = (uint64_t)prefix;
	return true;
}

/* A frame that names nothing, but has one inlined: only an address can stand without lines. */
static int name_unknown(struct firefox_document *d, struct place *place)
{
	struct profile_function function = {0};
	int r = strtab_intern_text(&d->profile->strings, "[unknown]", &function.name);

	return r < 0 ? r : add_function(d, &function, place);
}

static int resolve_node(struct firefox_document *d, struct firefox_tables *t, uint64_t node)
{
	struct profile_line lines[INLINES_MAX];
	uint32_t count = 0, location, stack;
	int64_t frame, prefix;
	struct place place;
	uint64_t at = node;
	bool inlined;
	int r;

	do {
		uint64_t outer = at;

		frame = firefox_index(&t->stack, STACK_FRAME, at);
		r = locate(d, t, frame >= 0 ? (uint64_t)frame : UINT64_MAX, &place);
		inlined = inlined_into(t, at, &outer) && count + 1 < INLINES_MAX;
		if (r == 0 && place.line.function == 0 &&
		    (inlined || count > 0 || place.location.address == 0))
			r = name_unknown(d, &place);
		if (place.line.function != 0)
			lines[count++] = place.line;
		prefix = firefox_index(&t->stack, STACK_PREFIX, at);
		at = outer;
	} while (r == 0 && inlined);
	if (r == 0 && prefix >= 0 && (uint64_t)prefix >= node)
		r = err_set(d->err, -EBADMSG, "stack %ju: its caller %jd does not come before it",
			    (uintmax_t)node, (intmax_t)prefix);
	place.location.line_count = count;
	if (r == 0)
		r = profile_location(d->profile, &place.location, lines, &location);
	if (r == 0)
		r = profile_stack(d->profile, prefix >= 0 ? t->stacks.data[prefix] : 0, location,
				  &stack);
	return r < 0 ? r : vec_push(&t->stacks, stack);
}

int firefox_resolve(struct firefox_document *d, struct firefox_tables *tables)
{
	size_t nodes = tables->stack.columns[STACK_FRAME].len;
	int r = 0;

	for (size_t i = 0; r == 0 && i < nodes; i++)
		r = resolve_node(d, tables, i);
	return r;
}
