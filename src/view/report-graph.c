/*
 * The call graph below a row, as a text tree. Callees are merged from the subtrees of all places
 * where the row stands in the tree, callers from the ways up from there. A branch with one child
 * that takes (nearly) everything is not a branch: such chains are printed line under line without
 * numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "view/report.h"
#include "view/text.h"

#define CHAIN_SHARE 0.999 /* of its parent: a child that takes this much continues the line */
#define DEPTH_LIMIT 512   /* printed; deeper ones are cut and said */
#define NODE_LIMIT  2000000U

struct graph_node {
	uint32_t parent, frame, first_child, next_sibling;
	int64_t total;
};

struct graph_tree {
	const struct tree *tree;
	const struct report_graph *options;
	int64_t all;
	VEC(struct graph_node) nodes; /* 0: the row */
	struct u64_map children;
	struct str prefix;
	struct str *out;
};

static int graph_child(struct graph_tree *g, uint32_t parent, uint32_t frame, int64_t value,
		       uint32_t *ret)
{
	uint64_t key = ((uint64_t)parent << 32) | frame;
	struct graph_node node = {.parent = parent, .frame = frame};
	uint32_t id;
	int r;

	if (!u64_map_get(&g->children, key, &id)) {
		if (g->nodes.len >= NODE_LIMIT)
			return -E2BIG;
		id = (uint32_t)g->nodes.len;
		node.next_sibling = g->nodes.data[parent].first_child;
		r = vec_push(&g->nodes, node);
		if (r == 0)
			r = u64_map_put(&g->children, key, id);
		if (r < 0)
			return r;
		g->nodes.data[parent].first_child = id;
	}
	g->nodes.data[id].total = tree_sum(g->nodes.data[id].total, value);
	*ret = id;
	return 0;
}

static int64_t least_of(const struct graph_tree *g)
{
	double least = g->options->least_share * (double)g->all;

	return least < 1 ? 1 : (int64_t)least;
}

/* Subtrees too small to matter are skipped unless several of them add up: then they could only be
 * told apart by adding everything, so only places that are far too small (1/16) are. */
static int add_callees(struct graph_tree *g, uint32_t place)
{
	const struct tree_node *nodes = g->tree->nodes.data;
	VEC(uint32_t) open = {0}; /* graph nodes on the way from place */
	int64_t least = least_of(g) / 16;
	int r = vec_push(&open, 0);

	for (uint32_t i = place + 1; i < nodes[place].end && r == 0;) {
		uint32_t id;

		if (nodes[i].total < least) {
			i = nodes[i].end;
			continue;
		}
		open.len = nodes[i].depth - nodes[place].depth;
		r = graph_child(g, open.data[open.len - 1], nodes[i].frame, nodes[i].total, &id);
		if (r == 0)
			r = vec_push(&open, id);
		i++;
	}
	vec_fini(&open);
	return r;
}

static int add_callers(struct graph_tree *g, uint32_t place, int64_t value)
{
	uint32_t id = 0;
	int r = 0;

	for (uint32_t i = g->tree->nodes.data[place].parent; i != 0 && r == 0;
	     i = g->tree->nodes.data[i].parent) {
		if (tree_frame_of(g->tree, i)->kind == TREE_KIND_GROUP)
			break;
		r = graph_child(g, id, g->tree->nodes.data[i].frame, value, &id);
	}
	return r;
}

/* Self time of the places of a row below place too (recursion), each with its own way up. */
static int add_self_callers(struct graph_tree *g, uint32_t place, const struct tree_node *row_node)
{
	const struct tree_node *nodes = g->tree->nodes.data;
	int r = 0;

	for (uint32_t i = place; i < nodes[place].end && r == 0; i++)
		if (nodes[i].frame == row_node->frame && nodes[i].self > 0) {
			g->nodes.data[0].total = tree_sum(g->nodes.data[0].total, nodes[i].self);
			r = add_callers(g, i, nodes[i].self);
		}
	return r;
}

static int fill(struct graph_tree *g, const struct report *report, const struct report_row *row)
{
	int r = 0;

	for (uint32_t i = 0; i < row->node_count && r == 0; i++) {
		uint32_t place = report->nodes.data[row->first_node + i];
		const struct tree_node *node = &g->tree->nodes.data[place];

		if (g->options->mode == REPORT_GRAPH_CALLEE && g->options->self) {
			r = add_self_callers(g, place, node);
			continue;
		}
		g->nodes.data[0].total = tree_sum(g->nodes.data[0].total, node->total);
		r = g->options->mode == REPORT_GRAPH_CALLER ? add_callees(g, place)
							    : add_callers(g, place, node->total);
	}
	/* The limit cuts a picture that nobody could read to the end anyway. */
	return r == -E2BIG ? 0 : r;
}

static int compare_children(const void *left, const void *right, void *argument)
{
	const struct graph_tree *g = argument;
	const struct graph_node *a = &g->nodes.data[*(const uint32_t *)left];
	const struct graph_node *b = &g->nodes.data[*(const uint32_t *)right];

	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return strcmp(strtab_text(&g->tree->strings, g->tree->frames.data[a->frame].name),
		      strtab_text(&g->tree->strings, g->tree->frames.data[b->frame].name));
}

/* The children worth printing, largest first; the caller frees. */
static int children_of(struct graph_tree *g, uint32_t node, uint32_t **ret, uint32_t *ret_count)
{
	VEC(uint32_t) list = {0};
	int64_t least = least_of(g);

	for (uint32_t c = g->nodes.data[node].first_child; c; c = g->nodes.data[c].next_sibling)
		if (g->nodes.data[c].total >= least && vec_push(&list, c) < 0) {
			vec_fini(&list);
			return -ENOMEM;
		}
	if (list.len > 1)
		qsort_r(list.data, list.len, sizeof(*list.data), compare_children, g);
	*ret = list.data;
	*ret_count = (uint32_t)list.len;
	return 0;
}

static void put_name(struct graph_tree *g, uint32_t node)
{
	const char *name = strtab_text(&g->tree->strings,
				       g->tree->frames.data[g->nodes.data[node].frame].name);

	text_clean(g->out, name, strlen(name));
	str_putc(g->out, '\n');
}

static void put_prefix(struct graph_tree *g)
{
	str_append(g->out, str_text(&g->prefix), g->prefix.len);
}

static double share_in(const struct graph_tree *g, uint32_t node)
{
	const struct graph_node *n = &g->nodes.data[node];
	int64_t whole = g->options->fractal ? g->nodes.data[n->parent].total : g->all;

	return whole > 0 ? 100 * (double)n->total / (double)whole : 0;
}

static int print_children(struct graph_tree *g, uint32_t node, unsigned depth);

/* One branch: its line with the share, its chain of only children, then its own branches. */
static int print_branch(struct graph_tree *g, uint32_t node, bool last, unsigned depth)
{
	bool ascii = g->options->ascii;
	size_t keep = g->prefix.len;
	uint32_t *children = NULL, count = 0;
	int r;

	put_prefix(g);
	str_puts(g->out, ascii  ? (last ? "`-" : "|-")
			 : last ? "\xe2\x94\x94\xe2\x94\x80"
				: "\xe2\x94\x9c\xe2\x94\x80");
	str_printf(g->out, "%5.1f%% ", share_in(g, node));
	put_name(g, node);
	str_puts(&g->prefix, last ? "  " : ascii ? "| " : "\xe2\x94\x82 ");
	for (;;) {
		r = children_of(g, node, &children, &count);
		if (r < 0 || count != 1 ||
		    (double)g->nodes.data[children[0]].total <
			    CHAIN_SHARE * (double)g->nodes.data[node].total)
			break;
		node = children[0];
		free(children);
		put_prefix(g);
		str_puts(g->out, "       ");
		put_name(g, node);
	}
	free(children);
	if (r == 0 && count > 0) {
		str_puts(&g->prefix, "     ");
		r = print_children(g, node, depth + 1);
	}
	g->prefix.len = keep;
	if (g->prefix.data)
		g->prefix.data[keep] = '\0';
	return r;
}

static int print_children(struct graph_tree *g, uint32_t node, unsigned depth)
{
	uint32_t *children = NULL, count = 0;
	int r = children_of(g, node, &children, &count);

	if (depth >= DEPTH_LIMIT && r == 0 && count > 0) {
		put_prefix(g);
		str_puts(g->out, "(deeper levels not shown)\n");
		count = 0;
	}
	for (uint32_t i = 0; i < count && r == 0; i++)
		r = print_branch(g, children[i], i + 1 == count, depth);
	free(children);
	return r;
}

int report_graph_print(const struct tree *tree, const struct report *report,
		       const struct report_row *row, const struct report_graph *graph,
		       unsigned indent, struct str *out)
{
	struct graph_tree g = {.tree = tree, .options = graph, .all = report->all, .out = out};
	int r = vec_push(&g.nodes, ((struct graph_node){0}));

	for (unsigned i = 0; i < indent; i++)
		str_putc(&g.prefix, ' ');
	if (r == 0)
		r = fill(&g, report, row);
	if (r == 0)
		r = print_children(&g, 0, 0);
	if (r == 0)
		r = str_status(&g.prefix);
	vec_fini(&g.nodes);
	u64_map_fini(&g.children);
	str_fini(&g.prefix);
	return r < 0 ? r : str_status(out);
}
