/* Shared by the files of the event parser. */
#pragma once

#include "events/env.h"
#include "events/names.h"
#include "events/parse.h"
#include "events/tracepoint.h"

#define EVENTS_MAX     16384 /* of one list: *:* of every tracepoint fits */
#define EVENT_TEXT_MAX 4096  /* bytes of one event's text */

struct parser {
	const char *text;
	size_t pos;
	struct event_env *env;
	struct event_list *list;
	struct err *err;
	int group; /* current {}, -1 outside */
	unsigned origin;
};

/* "event 'TEXT', character N: ...": the whole error of a wrong syntax. pos counts from 0. */
int parse_error(const struct parser *p, size_t pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True when text is nothing but modifier letters, at least one. */
bool modifiers_are(const char *text, size_t len);
/* Applies letters to an event; group: they stand behind a '}'. -EINVAL with words. */
int modifiers_apply(const struct parser *p, size_t pos, const char *letters, bool group,
		    struct event *event);

/* Appends a copy of base with its own strings; name and unit may be NULL in base. */
int event_add(const struct parser *p, const struct event *base, const char *name, const char *pmu,
	      const char *unit);
void event_fini(struct event *event);
/* Frees the events from the index len on. */
void event_list_cut(struct event_list *list, size_t len);
/* attr.size, scale, group and the rest of an empty event. */
void event_init(const struct parser *p, enum event_kind kind, struct event *ret);

/* The event between slashes: pmu "/" terms "/". */
int parse_pmu_event(const struct parser *p, const char *pmu, size_t pmu_pos, const char *terms,
		    size_t terms_pos, const char *letters, size_t letters_pos, const char *whole);
/* Lays terms out into an event of this PMU. pos: where the terms start in the text, or
 * SIZE_MAX when they come from a table (origin names it then). */
int pmu_terms_apply(const struct parser *p, struct pmu *pmu, const char *terms, size_t pos,
		    const char *table, struct event *event, char **name);
/* An event of this PMU with terms that stand at pos. cpus is what ret->cpus may point to; a name
 * among the terms is *ret_given. The caller frees unit, callgraph and the name. */
int pmu_event(const struct parser *p, const struct pmu_set *set, struct pmu *pmu, const char *terms,
	      size_t pos, struct event *ret, struct cpuset *cpus, char **ret_given);

/*
 * A name without slashes, with the modifiers that stood behind it; whole is both, for people.
 * -ENOENT when this source does not know it; p->err then says more, or stays empty.
 */
struct name_text {
	const char *name, *letters, *whole;
	size_t pos, letters_pos; /* in the text */
};
int resolve_generic(const struct parser *p, const struct name_text *name);
int resolve_tracepoint(const struct parser *p, const struct name_text *name);
int resolve_sysfs(const struct parser *p, const struct name_text *name);
int resolve_vendor(const struct parser *p, const struct name_text *name);
/* event_add() and the modifiers. */
int event_add_modified(const struct parser *p, const struct event *base, const char *name,
		       const char *pmu, const char *unit, const char *letters, size_t letters_pos);
/* Which CPUs an event of this PMU may be opened on. */
void event_set_pmu(struct event *event, const struct pmu_set *set, const struct pmu *pmu,
		   struct cpuset *cpus);
/* Writes " (did you mean a, b or c?)" for an unknown name, or nothing. */
void suggest_names(const struct parser *p, const char *name, struct str *out);
