/* The letters behind an event or a group: what each does to the attributes. */
#include <string.h>

#include "events/parse-internal.h"

#define MODIFIER_LETTERS "ukhIGHpPSDWeb"

bool modifiers_are(const char *text, size_t len)
{
	return len > 0 && strspn(text, MODIFIER_LETTERS) >= len;
}

/* Levels: the first letter of u k h excludes all, then each lets its own in again. */
static void apply_level(struct perf_event_attr *attr, char letter)
{
	if (!attr->exclude_user && !attr->exclude_kernel && !attr->exclude_hv)
		attr->exclude_user = attr->exclude_kernel = attr->exclude_hv = 1;
	if (letter == 'u')
		attr->exclude_user = 0;
	else if (letter == 'k')
		attr->exclude_kernel = 0;
	else
		attr->exclude_hv = 0;
}

static int apply_letter(const struct parser *p, size_t pos, char letter, bool group, bool *guests,
			struct event *event)
{
	struct perf_event_attr *attr = &event->attr;

	switch (letter) {
	case 'u':
	case 'k':
	case 'h':
		apply_level(attr, letter);
		event->levels_given = true;
		return 0;
	case 'G':
	case 'H':
		if (!*guests)
			attr->exclude_guest = attr->exclude_host = 1;
		*guests = true;
		if (letter == 'G')
			attr->exclude_guest = 0;
		else
			attr->exclude_host = 0;
		return 0;
	case 'I':
		attr->exclude_idle = 1;
		return 0;
	case 'p':
		if (attr->precise_ip == 3)
			return parse_error(p, pos, "more than three p: precision ends at ppp");
		attr->precise_ip++;
		return 0;
	case 'P':
		attr->precise_ip = 3;
		event->max_precise = true;
		return 0;
	case 'S':
		event->sample_read = true;
		return 0;
	case 'D':
		attr->pinned = event->leader;
		return 0;
	case 'e':
		attr->exclusive = event->leader;
		return 0;
	case 'W':
		if (!group)
			return parse_error(p, pos, "W belongs behind a group: {a,b}:W");
		event->weak = event->leader;
		return 0;
	case 'b':
		event->bpf = true;
		return 0;
	default:
		return parse_error(
			p, pos,
			"'%c' is no modifier; expected letters of u k h G H I p P S D W e b",
			letter);
	}
}

int modifiers_apply(const struct parser *p, size_t pos, const char *letters, bool group,
		    struct event *event)
{
	/* A bit that only a letter G or H can have set tells that one was there before. */
	bool guests = event->attr.exclude_host;

	if (!group && event->core)
		event->attr.exclude_guest = 1;
	for (const char *at = letters; *at; at++) {
		int r = apply_letter(p, pos == SIZE_MAX ? 0 : pos + (size_t)(at - letters), *at,
				     group, &guests, event);

		if (r < 0)
			return r;
	}
	return 0;
}
