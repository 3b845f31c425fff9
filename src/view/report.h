/*
 * Who used the time: rows by command, process, object, symbol, with self (samples that fell there)
 * and total (samples that passed through). A sample counts once in a row's total however often a
 * recursion passes through it.
 *
 * Rows come from a finished tree that was built with group = TREE_GROUP_COMM | TREE_GROUP_PID (and
 * TID, CPU when they are keys); its preorder makes the totals one pass: a row counts a node only
 * when none of the node's callers is of the same row.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "view/tree.h"

enum report_key {
	REPORT_COMM = 1,
	REPORT_PID = 2,
	REPORT_TID = 4,
	REPORT_CPU = 8,
	REPORT_DSO = 16,
	REPORT_SYMBOL = 32,
	REPORT_FILE = 64,
	REPORT_CGROUP = 128,
	REPORT_PIDNS = 256,
	REPORT_CGROUPNS = 512,
};

struct report_options {
	unsigned keys; /* mask of enum report_key: what makes a row; never 0 */
	/* Only rows that match: globs, separated by commas; a dso by its path or its last part.
	 * NULL: all. */
	const char *dso, *symbol;
	double least_share; /* rows below are left out: of total when children, else of self */
	bool children;      /* least_share and the order look at total, else at self */
	bool by_self;       /* order by self all the same */
	uint32_t max_rows;  /* 0: all */
};

struct report_row {
	/* Strings of the tree; 0: no key, or several. */
	uint32_t comm, dso, symbol, file, cgroup, pidns, cgroupns;
	int64_t pid, tid, cpu; /* -1: no key, unknown, or several */
	uint8_t kind;          /* of the first frame */
	int64_t self, total;
	uint32_t first_node, node_count; /* in report.nodes */
};

struct report {
	VEC(struct report_row) rows; /* largest first */
	VEC(uint32_t) nodes; /* of the tree, row by row: those that count in the row's total */
	int64_t all;         /* what shares are of */
	uint64_t left_out;   /* rows not shown: filters, least_share, max_rows */
};

/* Words separated by commas ("comm,dso,symbol"; sym, command, object are understood) to a mask. */
int report_parse_keys(const char *text, unsigned *ret_keys, struct err *err);

/* 0 or -ENOMEM. */
int report_build(const struct tree *tree, const struct report_options *options, struct report *ret);
void report_fini(struct report *report);

enum report_graph_mode {
	REPORT_GRAPH_NONE,
	REPORT_GRAPH_CALLER, /* below a row what it calls */
	REPORT_GRAPH_CALLEE, /* below a row who calls it */
};

struct report_graph {
	enum report_graph_mode mode;
	bool fractal;       /* percentages of the parent in the graph instead of all */
	double least_share; /* branches below are left out */
	bool ascii;         /* lines of | and - instead of box characters */
	bool self;          /* callers of the row's self time, not of its total */
};

/* Appends the text tree of one row, each line behind indent blanks. 0 or -ENOMEM. */
int report_graph_print(const struct tree *tree, const struct report *report,
		       const struct report_row *row, const struct report_graph *graph,
		       unsigned indent, struct str *out);
