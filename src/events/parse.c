/*
 * The grammar: items, groups, modifiers. Names are resolved in resolve.c, terms in terms.c.
 *
 * An event's text ends at a ',' or '}' that stands outside of slashes and quotes. Nothing is added
 * to the list until the whole text is understood: on failure it is cut back to where it was.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "events/parse-internal.h"

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[] = {
		[EVENT_HARDWARE] = "hardware",
		[EVENT_CACHE] = "cache",
		[EVENT_SOFTWARE] = "software",
		[EVENT_TRACEPOINT] = "tracepoint",
		[EVENT_BREAKPOINT] = "breakpoint",
		[EVENT_RAW] = "raw",
		[EVENT_PMU] = "pmu",
		[EVENT_VENDOR] = "vendor",
		[EVENT_TOOL] = "tool",
	};

	return (unsigned)kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}

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

/* --- the list -------------------------------------------------------------------------------- */

void event_init(const struct parser *p, enum event_kind kind, struct event *ret)
{
	*ret = (struct event){
		.kind = kind,
		.core = kind == EVENT_HARDWARE || kind == EVENT_CACHE || kind == EVENT_RAW,
		.attr.size = sizeof(struct perf_event_attr),
		.group = p->group,
		.origin = p->origin,
		.scale = 1,
		.inherit = -1,
	};
}

void event_fini(struct event *event)
{
	free(event->name);
	free(event->pmu);
	free(event->cpus);
	free(event->unit);
	free(event->filter);
	free(event->callgraph);
}

static int copy(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

int event_add(const struct parser *p, const struct event *base, const char *name, const char *pmu,
	      const char *unit)
{
	struct event event = *base;
	int r;

	if (p->list->events.len >= EVENTS_MAX)
		return err_set(p->err, -E2BIG, "events: more than %d", EVENTS_MAX);
	event.leader = p->group < 0 || p->list->events.len == 0 ||
		       p->list->events.data[p->list->events.len - 1].group != p->group;
	event.filter = event.callgraph = event.name = event.pmu = event.unit = NULL;
	event.cpus = NULL;
	r = copy(name, &event.name);
	if (r == 0)
		r = copy(pmu, &event.pmu);
	if (r == 0)
		r = copy(unit ? unit : "", &event.unit);
	if (r == 0)
		r = copy(base->callgraph, &event.callgraph);
	if (r == 0 && base->cpus) {
		event.cpus = malloc(sizeof(*event.cpus));
		if (event.cpus)
			*event.cpus = *base->cpus;
		else
			r = -ENOMEM;
	}
	if (r == 0)
		r = vec_push(&p->list->events, event);
	if (r < 0) {
		event_fini(&event);
		return err_set(p->err, r, "events: out of memory");
	}
	return 0;
}

static void list_cut(struct event_list *list, size_t len)
{
	while (list->events.len > len)
		event_fini(&list->events.data[--list->events.len]);
}

void event_list_fini(struct event_list *list)
{
	list_cut(list, 0);
	vec_fini(&list->events);
}

/* --- modifiers ------------------------------------------------------------------------------- */

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
		list_cut(list, len);
		list->groups = groups;
		return r == -ENOMEM ? err_set(err, r, "events: out of memory") : r;
	}
	list->origins = p.origin;
	return 0;
}

/* --- filters and descriptions ---------------------------------------------------------------- */

int event_list_add_filter(struct event_list *list, const char *filter, struct err *err)
{
	unsigned origin = list->events.len ? list->events.data[list->events.len - 1].origin : 0;
	bool any = false;

	for (size_t i = list->events.len; i-- > 0 && list->events.data[i].origin == origin;) {
		struct event *event = &list->events.data[i];
		struct str joined = {0};
		char *text;

		if (event->kind != EVENT_TRACEPOINT)
			continue;
		any = true;
		if (event->filter)
			str_printf(&joined, "(%s) && (%s)", event->filter, filter);
		else
			str_puts(&joined, filter);
		if (str_take(&joined, &text) < 0)
			return err_set(err, -ENOMEM, "events: out of memory");
		free(event->filter);
		event->filter = text;
	}
	if (!any)
		return err_set(
			err, -EINVAL,
			"a filter needs a tracepoint before it: -e sched:sched_switch --filter "
			"'prev_pid == 1'");
	return 0;
}

void event_describe_attr(const struct perf_event_attr *attr, struct str *out)
{
	str_printf(out, "type=%u config=0x%" PRIx64, attr->type, (uint64_t)attr->config);
	if (attr->type == PERF_TYPE_BREAKPOINT) {
		str_printf(out, " bp_addr=0x%" PRIx64 " bp_len=%" PRIu64 " bp_type=%u",
			   (uint64_t)attr->bp_addr, (uint64_t)attr->bp_len, attr->bp_type);
	} else {
		if (attr->config1)
			str_printf(out, " config1=0x%" PRIx64, (uint64_t)attr->config1);
		if (attr->config2)
			str_printf(out, " config2=0x%" PRIx64, (uint64_t)attr->config2);
	}
	if (attr->freq)
		str_printf(out, " freq=%" PRIu64, (uint64_t)attr->sample_freq);
	else if (attr->sample_period)
		str_printf(out, " period=%" PRIu64, (uint64_t)attr->sample_period);
	str_puts(out, attr->exclude_user ? " exclude_user" : "");
	str_puts(out, attr->exclude_kernel ? " exclude_kernel" : "");
	str_puts(out, attr->exclude_hv ? " exclude_hv" : "");
	str_puts(out, attr->exclude_idle ? " exclude_idle" : "");
	str_puts(out, attr->exclude_host ? " exclude_host" : "");
	str_puts(out, attr->exclude_guest ? " exclude_guest" : "");
	str_puts(out, attr->pinned ? " pinned" : "");
	str_puts(out, attr->exclusive ? " exclusive" : "");
	if (attr->precise_ip)
		str_printf(out, " precise_ip=%u", attr->precise_ip);
}
