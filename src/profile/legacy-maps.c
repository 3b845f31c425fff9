/*
 * Memory maps at the end of legacy profiles: lines of /proc/self/maps, the brief
 * "400000-fcb000: /path", and definitions "source=/home" that later lines use as $source.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "profile/legacy-internal.h"

#define VARIABLES_MAX 16

struct variable {
	struct scan name, value;
};

struct variables {
	struct variable list[VARIABLES_MAX];
	size_t count;
};

bool legacy_is_maps_heading(const struct scan *line)
{
	return scan_find(*line, "--- Memory map: ---") || scan_find(*line, "MAPPED_LIBRARIES:");
}

/* The path with $name replaced; each text is inserted once and not looked at again. */
static void expand(const struct variables *variables, struct scan path, struct str *out)
{
	while (path.at < path.end) {
		const struct variable *found = NULL;

		for (size_t i = 0; *path.at == '$' && !found && i < variables->count; i++) {
			const struct variable *v = &variables->list[i];
			size_t len = (size_t)(v->name.end - v->name.at);

			if ((size_t)(path.end - path.at - 1) >= len &&
			    memcmp(path.at + 1, v->name.at, len) == 0)
				found = v;
		}
		if (found) {
			str_append(out, found->value.at,
				   (size_t)(found->value.end - found->value.at));
			path.at += 1 + (found->name.end - found->name.at);
		} else {
			str_putc(out, *path.at++);
		}
	}
}

static void define(struct variables *variables, struct scan line)
{
	const char *sign = memchr(line.at, '=', (size_t)(line.end - line.at));
	struct variable v;

	if (!sign || variables->count == VARIABLES_MAX)
		return;
	v = (struct variable){{line.at, sign}, {sign + 1, line.end}};
	v.name = scan_trim(v.name);
	v.value = scan_trim(v.value);
	/* Values have no part of their own in what is printed, so their length bounds the text. */
	if (scan_len(v.name) > 0 && v.value.end - v.value.at < 4096)
		variables->list[variables->count++] = v;
}

static struct scan next_word(struct scan *s)
{
	struct scan word;

	scan_blanks(s);
	word = (struct scan){s->at, s->at};
	while (word.end < s->end && *word.end != ' ' && *word.end != '\t')
		word.end++;
	s->at = word.end;
	return word;
}

/* "r-xp 00000000 00:00 21306940    /path" behind the range; *ret_skip: not executable. */
static bool parse_full(struct scan s, uint64_t *ret_offset, struct scan *ret_path, bool *ret_skip)
{
	struct scan flags = next_word(&s), device, inode;
	uint64_t number;

	if (flags.end - flags.at < 3)
		return false;
	for (const char *c = flags.at; c < flags.end; c++)
		if (!memchr("-rwxps", *c, 6))
			return false;
	scan_blanks(&s);
	if (!scan_hex(&s, ret_offset))
		return false;
	device = next_word(&s);
	inode = next_word(&s);
	if (!scan_hex(&device, &number) || !scan_take(&device, ":") || !scan_hex(&inode, &number))
		return false;
	*ret_skip = memchr(flags.at, 'x', (size_t)(flags.end - flags.at)) == NULL;
	s = scan_trim(s);
	*ret_path = s;
	return true;
}

/* ": /path" or ": /path (@offset)" behind the range */
static bool parse_brief(struct scan s, uint64_t *ret_offset, struct scan *ret_path)
{
	const char *sign;

	if (!scan_take(&s, ":"))
		return false;
	*ret_path = next_word(&s);
	*ret_offset = 0;
	sign = memchr(s.at, '@', (size_t)(s.end - s.at));
	if (sign) {
		s.at = sign + 1;
		(void)scan_hex(&s, ret_offset);
	}
	return scan_len(*ret_path) > 0;
}

static int add_mapping(struct legacy *l, const struct variables *variables,
		       struct profile_mapping *mapping, struct scan path)
{
	struct str name = {0};
	int r;

	expand(variables, path, &name);
	r = str_status(&name);
	if (r == 0)
		r = strtab_intern(&l->profile->strings, str_text(&name), name.len,
				  &mapping->filename);
	mapping->kind = profile_kind_of_object(str_text(&name));
	str_fini(&name);
	return r < 0 ? r : vec_push(&l->mappings, *mapping);
}

int legacy_read_maps(struct legacy *l, struct scan_lines *reader)
{
	struct variables variables = {.count = 0};
	struct scan line, path;
	int r = 0;

	while (r == 0 && scan_trimmed_line(reader, &line)) {
		struct profile_mapping mapping = {0};
		struct scan s = line;
		bool skip = false;

		if (!scan_hex(&s, &mapping.start) || !scan_take(&s, "-") ||
		    !scan_hex(&s, &mapping.limit)) {
			define(&variables, line);
			continue;
		}
		if (!parse_full(s, &mapping.offset, &path, &skip) &&
		    !parse_brief(s, &mapping.offset, &path))
			continue;
		if (!skip && mapping.start < mapping.limit)
			r = add_mapping(l, &variables, &mapping, path);
	}
	return r;
}
