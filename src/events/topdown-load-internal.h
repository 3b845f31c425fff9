/* A table while it is built. */
#pragma once

#include "events/topdown-load.h"

struct topdown_loaded {
	struct topdown_table table;
	struct arena arena;
	const struct metrics *metrics; /* while loading */
	const struct topdown_table *base;
	const char *pmu;
	struct err *err;

	VEC(struct topdown_event) events;
	VEC(struct topdown_alias) aliases;
	VEC(struct topdown_let) lets;
	VEC(struct topdown_node) nodes;
	VEC(const struct metric *) sources; /* of the nodes */
	unsigned level;                     /* of the node whose formula is made */
	bool share;                         /* it is one, and no rate */
	bool smt;                           /* a formula of level 1 asks for #smt_on */

	/* metrics whose formulas are being rewritten, outermost first */
	const struct metric *path[32];
	unsigned depth, height;
};

/* One for each of the following: text that lives as long as the table. NULL: out of memory. */
const char *loaded_keep(struct topdown_loaded *l, const char *text, size_t len);

/* topdown-load-names.c */
/* "frontend_bound" of "tma_frontend_bound"; title: "Frontend_Bound". */
const char *loaded_node_name(struct topdown_loaded *l, const struct metric *metric);
const char *loaded_node_title(struct topdown_loaded *l, const struct metric *metric);
/* The table's name of an event (text: as in a formula, len bytes), which is added when it is new;
 * NULL with -E2BIG or -ENOMEM in *ret_error. */
const char *loaded_event(struct topdown_loaded *l, const char *text, size_t len, int *ret_error);
/* What the condition of a metric says for its node. */
void loaded_threshold(struct topdown_loaded *l, const struct metric *metric, double factor,
		      struct topdown_node *node);
/* The metric that a metric is a part of. A few of perfmon's name one of a wrong level: then it is
 * the one of the level above whose threshold they need. */
const struct metric *loaded_parent(const struct topdown_loaded *l, const struct metric *metric);
/* "CYCLES", "SLOTS" and the others that the evaluation knows by name; other names of events. */
int loaded_common(struct topdown_loaded *l);
