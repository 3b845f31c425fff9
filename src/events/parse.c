/*
 * The grammar: items and groups. Names are resolved in resolve.c, terms in terms.c, letters of
 * modifiers in modifiers.c.
 *
 * An event's text ends at a ',' or '}' that stands outside of slashes and quotes. Nothing is added
 * to the list until the whole text is understood: on failure it is cut back to where it was.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "events/parse-internal.h"

int parse_error(const struct parser *p, size_t pos, const char *fmt, ...)
{
	char words[ERR_TEXT_BYTES / 2];
	va_list args;

	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return err_set(p->err, -EINVAL, "events '%.200s', character %zu: %s", p->text, pos + 1,
		       words);
}

/* --- one event ------------------------------------------------------------------------------- */

/* "mem:ADDR[/LEN][:rwx][:modifiers]" */
static int parse_breakpoint(struct parser *p, const char *text, size_t pos)
{
	struct event event;
	const char *at = text + strlen("mem:");
	char *end;
	int r;

	event_init(p, EVENT_BREAKPOINT, &event);
	event.attr.type = PERF_TYPE_BREAKPOINT;
	if (!isxdigit((unsigned char)*at))
		return parse_error(p, pos + (size_t)(at - text), "expected an address, as 0x1000");
	errno = 0;
	event.attr.bp_addr = strtoull(at, &end, 0);
	if (errno != 0 || end == at)
		return parse_error(p, pos + (size_t)(at - text),
				   "the address does not fit 64 bits");
	at = end;
	if (*at == '/') {
		event.attr.bp_len = strtoull(at + 1, &end, 0);
		if (!isdigit((unsigned char)at[1]) || event.attr.bp_len < 1 ||
		    event.attr.bp_len > 8)
			return parse_error(p, pos + (size_t)(at + 1 - text),
					   "expected a length of 1 to 8 bytes");
		at = end;
	}
	if (*at == ':' && strchr("rwx", at[1]) && at[1]) {
		for (at++; *at && *at != ':'; at++) {
			uint32_t bit = *at == 'r'   ? HW_BREAKPOINT_R
				       : *at == 'w' ? HW_BREAKPOINT_W
				       : *at == 'x' ? HW_BREAKPOINT_X
						    : 0;

			if (bit == 0 || event.attr.bp_type & bit)
				return parse_error(p, pos + (size_t)(at - text),
						   "expected r, w or x, each once");
			event.attr.bp_type |= bit;
		}
	}
	if (event.attr.bp_type == 0)
		event.attr.bp_type = HW_BREAKPOINT_R | HW_BREAKPOINT_W;
	if (event.attr.bp_len == 0)
		event.attr.bp_len =
			event.attr.bp_type & HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	if (*at == ':')
		at++;
	else if (*at)
		return parse_error(p, pos + (size_t)(at - text), "expected '/', ':' or the end");
	event.leader = true;
	r = event_add(p, &event, text, NULL, NULL);
	return r < 0 ? r
		     : modifiers_apply(p, pos + (size_t)(at - text), at, false,
				       &p->list->events.data[p->list->events.len - 1]);
}

/* "pmu/terms/modifiers" */
static int parse_slashes(struct parser *p, char *text, size_t pos)
{
	char *slash = strchr(text, '/'), *close = NULL, *letters;
	CLEANUP_FREE char *whole = strdup(text);
	bool quoted = false;

	if (!whole)
		return -ENOMEM;
	for (char *at = slash + 1; *at && !close; at++) {
		if (*at == '\'')
			quoted = !quoted;
		else if (*at == '/' && !quoted)
			close = at;
	}
	if (!close)
		return parse_error(p, pos + strlen(text),
				   quoted ? "the ' is never closed"
					  : "expected '/' to end the terms");
	if (slash == text)
		return parse_error(p, pos, "expected the name of a PMU before '/'");
	*slash = *close = '\0';
	letters = close + 1;
	letters += *letters == ':';
	if (*letters && !modifiers_are(letters, strlen(letters)))
		return parse_error(
			p, pos + (size_t)(letters - text),
			"expected modifiers (letters of u k h G H I p P S D e b), ',' or "
			"the end");
	return parse_pmu_event(p, text, pos, slash + 1, pos + (size_t)(slash + 1 - text), letters,
			       pos + (size_t)(letters - text), whole);
}

static int parse_unknown(const struct parser *p, const char *name, size_t pos,
			 const struct err *why)
{
	struct str hint = {0};
	int r;

	suggest_names(p, name, &hint);
	if (why->text[0])
		r = err_set(p->err, -ENOENT,
			    "events '%.200s', character %zu: unknown event '%.200s': %s%s", p->text,
			    pos + 1, name, why->text, str_text(&hint));
	else
		r = err_set(p->err, -ENOENT,
			    "events '%.200s', character %zu: unknown event '%.200s'%s", p->text,
			    pos + 1, name,
			    hint.len ? str_text(&hint) : "; 'culprit list' shows what there is");
	str_fini(&hint);
	return r;
}

/* Asks one source for the whole text as a name, then for the part before modifiers. */
static int ask(const struct parser *p, const struct name_text *whole, const struct name_text *cut,
	       int (*resolve)(const struct parser *, const struct name_text *))
{
	int r = resolve(p, whole);

	return r == -ENOENT && cut->name ? resolve(p, cut) : r;
}

/* A name, with modifiers behind the last ':' unless the whole is a name by itself. */
static int parse_named(struct parser *p, char *text, size_t pos)
{
	static int (*const sources[])(const struct parser *, const struct name_text *) = {
		resolve_generic,
		resolve_tracepoint,
		resolve_sysfs,
		resolve_vendor,
	};
	struct err why = {0};
	struct parser quiet = *p;
	CLEANUP_FREE char *name = strdup(text);
	char *colon = name ? strrchr(name, ':') : NULL;
	struct name_text whole = {text, "", text, pos, pos}, cut = {0};
	int r = -ENOENT;

	if (!name)
		return -ENOMEM;
	quiet.err = &why;
	if (colon && colon != name) {
		*colon = '\0';
		cut = (struct name_text){name, colon + 1, text, pos,
					 pos + (size_t)(colon + 1 - name)};
		if (!modifiers_are(cut.letters, strlen(cut.letters))) {
			uint64_t config;

			if (generic_event_find(name) || cache_event_parse(name, &config) == 0)
				return parse_error(
					p, cut.letters_pos,
					"expected modifiers: letters of u k h G H I p P S D e b");
			cut.name = NULL;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(sources) && r == -ENOENT; i++)
		r = ask(&quiet, &whole, &cut, sources[i]);
	if (r == -ENOENT)
		return parse_unknown(p, cut.name ? cut.name : text, pos, &why);
	return r < 0 ? err_set(p->err, r, "%s", err_text(&why, r)) : r;
}

/* Bytes of the event that starts at pos: up to ',' or '}' outside of slashes and quotes. */
static size_t event_length(const char *text)
{
	bool breakpoint = strncmp(text, "mem:", 4) == 0, slashes = false, quoted = false;
	size_t len = 0;

	for (; text[len]; len++) {
		char c = text[len];

		if (slashes && c == '\'')
			quoted = !quoted;
		else if (c == '/' && !quoted && !breakpoint)
			slashes = !slashes;
		else if (!slashes && (c == ',' || c == '}' || c == '{'))
			break;
	}
	return len;
}

static void skip_blanks(struct parser *p)
{
	while (isspace((unsigned char)p->text[p->pos]))
		p->pos++;
}

static int parse_event(struct parser *p)
{
	const char *start = p->text + p->pos;
	size_t pos = p->pos, len = event_length(start);
	CLEANUP_FREE char *text = NULL;
	int r;

	while (len > 0 && isspace((unsigned char)start[len - 1]))
		len--;
	if (len == 0)
		return parse_error(p, pos,
				   *start == '{' ? "a group may not stand inside a group"
						 : "expected an event");
	if (len > EVENT_TEXT_MAX)
		return parse_error(p, pos, "longer than %d characters", EVENT_TEXT_MAX);
	text = strndup(start, len);
	if (!text)
		return -ENOMEM;
	if (strncmp(text, "mem:", 4) == 0)
		r = parse_breakpoint(p, text, pos);
	else if (strchr(text, '/'))
		r = parse_slashes(p, text, pos);
	else
		r = parse_named(p, text, pos);
	p->pos = pos + len;
	p->origin++;
	skip_blanks(p);
	return r;
}

/* --- groups ---------------------------------------------------------------------------------- */

static int parse_group_modifiers(struct parser *p, size_t first)
{
	char letters[32];
	size_t len;

	if (p->text[p->pos] != ':')
		return 0;
	p->pos++;
	len = strcspn(p->text + p->pos, ", \t\n{}");
	if (len == 0)
		return parse_error(p, p->pos, "expected modifiers behind ':'");
	if (len >= sizeof(letters))
		return parse_error(p, p->pos, "too many modifiers");
	memcpy(letters, p->text + p->pos, len);
	letters[len] = '\0';
	for (size_t i = first; i < p->list->events.len; i++) {
		int r = modifiers_apply(p, p->pos, letters, true, &p->list->events.data[i]);

		if (r < 0)
			return r;
	}
	p->pos += len;
	skip_blanks(p);
	return 0;
}

static int parse_group(struct parser *p)
{
	size_t open = p->pos, first = p->list->events.len;
	int r;

	p->pos++;
	p->group = p->list->groups;
	for (;;) {
		skip_blanks(p);
		r = parse_event(p);
		if (r < 0)
			return r;
		if (p->text[p->pos] != ',')
			break;
		p->pos++;
	}
	if (p->text[p->pos] != '}')
		return parse_error(p, p->pos,
				   "expected ',' or the '}' of the group opened at character %zu",
				   open + 1);
	p->pos++;
	p->group = -1;
	p->list->groups++;
	return parse_group_modifiers(p, first);
}

/* "name:{": perf lets a group have a name. */
static void skip_group_name(struct parser *p)
{
	size_t len = strspn(p->text + p->pos,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (len > 0 && p->text[p->pos + len] == ':' && p->text[p->pos + len + 1] == '{')
		p->pos += len + 1;
}

static int parse_items(struct parser *p)
{
	for (;;) {
		int r;

		skip_blanks(p);
		skip_group_name(p);
		r = p->text[p->pos] == '{' ? parse_group(p) : parse_event(p);
		if (r < 0)
			return r;
		skip_blanks(p);
		if (p->text[p->pos] == '\0')
			return 0;
		if (p->text[p->pos] != ',')
			return parse_error(p, p->pos, "expected ',' or the end");
		p->pos++;
	}
}

int events_parse(const char *text, struct event_env *env, struct event_list *list, struct err *err)
{
	struct parser p = {
		.text = text,
		.env = env,
		.list = list,
		.err = err,
		.group = -1,
		.origin = list->origins,
	};
	size_t len = list->events.len;
	int groups = list->groups, r = parse_items(&p);

	if (r < 0) {
		event_list_cut(list, len);
		list->groups = groups;
		return r == -ENOMEM ? err_set(err, r, "events: out of memory") : r;
	}
	list->origins = p.origin;
	return 0;
}
