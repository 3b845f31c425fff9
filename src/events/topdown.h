/*
 * Top-down analysis: the tables of every CPU, and the evaluation of one table from counts.
 *
 * The tables are the text files in data/topdown, compiled and checked by tools/compile-topdown.py.
 * Formulas use lower-case names of events and nodes and upper-case names of lets; all values are
 * fractions of 1.
 *
 * Evaluation is pure: counts come through a callback, so recorded counts, live counters and tests
 * are the same. What cannot be true is refused: a part of the slots below -5% or above 105% makes
 * the whole level 1 invalid, with the cause in words. What disagrees (parts that do not add up,
 * PERF_METRICS that differ from the slots) is weak. Marks come from what is neither.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "events/expr.h"

enum topdown_unit {
	TOPDOWN_SLOTS,
	TOPDOWN_CLOCKS,
	TOPDOWN_UOPS,
	TOPDOWN_STALLS, /* share of the parent's stalled cycles */
	TOPDOWN_EVENTS,
	TOPDOWN_RATE, /* no share at all: a number with unit_text */
};

enum topdown_vendor {
	TOPDOWN_INTEL,
	TOPDOWN_AMD,
	TOPDOWN_ARM,
};

struct topdown_event {
	const char *name;  /* lower case, with :c1 and :e1 suffixes */
	const char *title; /* as the vendor spells it */
	uint64_t config, config1;
	bool no_code; /* how it is counted is not known: recorded counts only */
};

struct topdown_alias {
	const char *name, *event;
	unsigned factor; /* name counts factor times event */
};

struct topdown_let {
	const char *name, *formula;
};

struct topdown_node {
	const char *name, *title, *formula;
	int parent; /* index, -1: level 1 */
	unsigned level;
	enum topdown_unit unit;
	double over; /* threshold, fraction of 1; NaN: none, never marked */
	int or_node; /* or this node is over or_over; -1: none */
	double or_over;
	bool with_parent; /* the vendor wants the parent over its threshold too */
	const char *means, *helps;
	const char *unit_text; /* of TOPDOWN_RATE: "MPKI"; else NULL */
};

struct topdown_table {
	const char *set;  /* the formulas and their version */
	const char *cpus; /* names for --cpu, separated by blanks */
	const char *pmu;  /* usual name of the core PMU in sysfs */
	enum topdown_vendor vendor;
	unsigned width;
	bool own_thresholds; /* the vendor publishes none: ours */
	bool percore;        /* with SMT on, formulas want the sum over both threads of a core */
	bool closed;         /* level 1 adds up to 1 by construction */
	const struct topdown_event *events;
	size_t event_count;
	const struct topdown_alias *aliases;
	size_t alias_count;
	const struct topdown_let *lets;
	size_t let_count;
	const struct topdown_node *nodes; /* parents before children */
	size_t node_count;
};

extern const struct topdown_table topdown_tables[];
extern const size_t topdown_tables_len;

/* The table of a CPU name ("spr", "zen4", ...), or NULL. */
const struct topdown_table *topdown_table_find(const char *cpu);
/* Index of an event by its name in the table, -1 none. */
int topdown_event_find(const struct topdown_table *table, const char *name);
/* The same for names as people and other tools write them: any case, perf's :u and :k, cpu/.../,
 * aliases. *ret_factor: what the count has to be divided by. */
int topdown_event_match(const struct topdown_table *table, const char *text, unsigned *ret_factor);
/* perfmon's "NAME:c1:e1:u0x80:SUP" as the event parser has it:
 * "cpu/NAME,cmask=1,edge=1,umask=0x80/k"; names without suffixes as they are. -ENOTSUP: a suffix
 * that no event can have. */
int topdown_event_perf_text(const char *name, const char *pmu, char *text, size_t size);
/* By name, else by title, case ignored; -1 none. */
int topdown_node_find(const struct topdown_table *table, const char *name);

struct topdown_inputs {
	void *ctx;
	/* The count of an event as seen in a section (-1: whichever). */
	void (*count)(void *ctx, unsigned event, int section, struct expr_value *ret);
	/* A section (counter group) that holds all these events, -1 none. NULL: there are no
	 * sections.
	 */
	int (*section)(void *ctx, const unsigned *events, size_t len);
	/* #system_tsc_freq and the like; NULL: none. */
	void (*literal)(void *ctx, const char *name, struct expr_value *ret);
	bool smt_on;
};

struct topdown_value {
	struct expr_value value; /* as the formula gives it; not clamped */
	double stderr_;          /* NaN: not known */
	bool holds;      /* own and all ancestors' thresholds, from values that can be trusted */
	bool bottleneck; /* the one to look at */
};

struct topdown_result {
	struct topdown_value *nodes; /* one for each of the table */
	double sum;                  /* of level 1, NaN when not known or not a sum */
	struct expr_value cycles, instructions, cpi;
	int bottleneck; /* index, -1: none */
};

struct topdown;

int topdown_new(const struct topdown_table *table, struct topdown **ret, struct err *err);
void topdown_free(struct topdown *topdown);
/* Computes what the machine decides (expr_host_constant), so that the events of branches that are
 * never taken are not asked for. */
void topdown_fold(struct topdown *topdown, expr_resolver *constant, void *ctx);
/* The events of these nodes and of all they depend on, and cycles; wanted[event_count]. smt_on
 * folds #smt_on for good. cpi: instructions too. */
void topdown_events(struct topdown *topdown, const bool *nodes, bool smt_on, bool cpi,
		    bool *wanted);
/* The mark goes no deeper than max_level; a mark at one level does not depend on how deep it goes.
 */
int topdown_eval(struct topdown *topdown, const struct topdown_inputs *inputs, unsigned max_level,
		 struct topdown_result *ret);
/* The names that a node or a let still hangs on after folding; false when there is none of that name.
 */
bool topdown_names(const struct topdown *topdown, const char *name,
		   void (*visit)(void *ctx, const char *name), void *ctx);
/* Marks again, after errors were changed (repeated runs). */
void topdown_mark(struct topdown *topdown, struct topdown_result *result, unsigned max_level);
void topdown_result_fini(struct topdown_result *result);

/* 0 to 1, for display: what is slightly out of range by noise is put to the edge. */
double topdown_shown(double share);
