/* Shared by the files of culprit list: one row per name that can be counted. */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "events/env.h"

enum list_kind { /* in the order they are printed */
	LIST_HARDWARE,
	LIST_CACHE,
	LIST_SOFTWARE,
	LIST_TOOL,
	LIST_RAW,
	LIST_PMU,
	LIST_FORMAT,
	LIST_TRACEPOINT,
	LIST_VENDOR,
	LIST_METRIC,
	LIST_GROUP, /* of metrics */
	LIST_KINDS,
};

extern const char *const list_kind_names[LIST_KINDS];

struct list_row { /* texts live in the arena; NULL: not known */
	enum list_kind kind;
	const char *name, *encoding /* of metrics the formula */, *description, *counters, *table;
	bool deprecated;
	const char *unit, *groups, *needs, *threshold; /* metrics; needs: events and other metrics,
							  of a group its members */
	const char *probe, *reason;                    /* --probe: "works", "user only", "fails" */
};

struct list {
	VEC(struct list_row) rows;
	struct arena arena;
	struct event_env *env;
	unsigned kinds; /* bit mask of list_kind to collect */
	const char *const *patterns;
	unsigned pattern_count;
	bool other_cpu;   /* --cpu: tables of a CPU that this machine is not */
	char notes[1024]; /* what could not be listed and why; lines */
};

/* -ENOMEM, or what reading gave. Sources that are not there are told in notes. */
int list_collect(struct list *list, struct err *err);
/* list-metrics.c */
int list_collect_metrics(struct list *list, enum list_kind kind);
/* Adds a copy of a row whatever its name is; -ENOMEM. */
int list_add(struct list *list, const struct list_row *row);
bool list_wanted(const struct list *list, const char *name); /* by the patterns */
void list_note(struct list *list, const char *what, const char *why);
/* The events that a text becomes (-e), one row each. */
int list_explain(struct list *list, const char *text, struct err *err);
void list_fini(struct list *list);
/* Opens every row's events; fills probe and reason. */
int list_probe(struct list *list);
