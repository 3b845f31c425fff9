/* One node explained: its formula with the numbers in it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/topdown.h"
#include "view/text.h"

struct explain {
	const struct topdown_table *table;
	const struct topdown_inputs *inputs;
	const struct topdown_result *result;
	struct str *out;
	int section; /* whose counts the node was evaluated from */
	VEC(const char *) seen;
};

static void explain_formula(struct explain *e, const char *formula);

/* Formulas for reading have no backslashes. */
static void put_formula(struct str *out, const char *formula)
{
	for (; *formula; formula++)
		if (*formula != '\\')
			str_putc(out, *formula);
	str_putc(out, '\n');
}

static void explain_name(void *ctx, const char *name)
{
	struct explain *e = ctx;
	const struct topdown_table *table = e->table;
	int event = topdown_event_find(table, name), node = topdown_node_find(table, name);

	vec_for_each(&e->seen, seen)
		if (strcmp(*seen, name) == 0)
			return;
	if (vec_push(&e->seen, name) < 0)
		return;
	if (event >= 0) {
		struct expr_value v = expr_missing(EXPR_NOT_COUNTED, "%s was not counted", name);

		e->inputs->count(e->inputs->ctx, (unsigned)event, e->section, &v);
		str_printf(e->out, "    %-46s ", table->events[event].title);
		if (expr_has_number(&v))
			str_printf(e->out, "%18.0f", v.value);
		else
			str_printf(e->out, "%18s", "-");
		str_printf(e->out, "  %s%s%s\n", expr_state_name(v.state), v.reason[0] ? ": " : "",
			   v.reason);
		return;
	}
	for (size_t i = 0; i < table->let_count; i++)
		if (strcmp(table->lets[i].name, name) == 0) {
			str_printf(e->out, "    %-46s = ", name);
			put_formula(e->out, table->lets[i].formula);
			explain_formula(e, table->lets[i].formula);
			return;
		}
	if (node >= 0) {
		const struct topdown_value *v = &e->result->nodes[node];

		str_printf(e->out, "    %-46s ", table->nodes[node].title);
		if (expr_has_number(&v->value))
			str_printf(e->out, "%17.2f%%", 100 * v->value.value);
		else
			str_printf(e->out, "%18s", "-");
		str_printf(e->out, "  %s, a node: --explain %s\n", expr_state_name(v->value.state),
			   table->nodes[node].title);
	}
}

static void explain_formula(struct explain *e, const char *formula)
{
	struct expr *expr;

	if (expr_parse(formula, &expr, NULL) < 0)
		return;
	/* names live as long as the expression: keep copies of none, compare while it lives */
	size_t before = e->seen.len;

	expr_names(expr, explain_name, e);
	for (size_t i = before; i < e->seen.len; i++) {
		int event = topdown_event_find(e->table, e->seen.data[i]);
		int node = topdown_node_find(e->table, e->seen.data[i]);

		if (event >= 0)
			e->seen.data[i] = e->table->events[event].name;
		else if (node >= 0)
			e->seen.data[i] = e->table->nodes[node].name;
		else
			for (size_t l = 0; l < e->table->let_count; l++)
				if (strcmp(e->seen.data[i], e->table->lets[l].name) == 0)
					e->seen.data[i] = e->table->lets[l].name;
	}
	expr_free(expr);
}

static int section_of(const struct topdown_tree *tree, size_t node,
		      const struct topdown_inputs *inputs)
{
	const struct topdown_table *table = tree->table;
	bool *wanted = calloc(table->event_count + 1, sizeof(*wanted));
	unsigned *events = calloc(table->event_count + 1, sizeof(*events));
	int section = -1;
	size_t len = 0;

	if (wanted && events) {
		topdown_node_inputs(tree, node, wanted);
		for (size_t i = 0; i < table->event_count; i++)
			if (wanted[i])
				events[len++] = (unsigned)i;
		section = inputs->section(inputs->ctx, events, len);
	}
	free(wanted);
	free(events);
	return section;
}

static void explain_value(const struct topdown_node *node, const struct topdown_value *v,
			  struct str *out)
{
	bool rate = node->unit == TOPDOWN_RATE;

	str_puts(out, "\n  value: ");
	if (!expr_has_number(&v->value))
		str_puts(out, "none");
	else if (rate)
		str_printf(out, "%.6g %s", v->value.value, topdown_unit_text(node));
	else
		str_printf(out, "%.2f%%", 100 * v->value.value);
	if (!isnan(v->stderr_))
		str_printf(out, " +- %.*f", rate ? 4 : 2, (rate ? 1 : 100) * v->stderr_);
	str_printf(out, ", %s%s%s\n", expr_state_name(v->value.state),
		   v->value.reason[0] ? ": " : "", v->value.reason);
}

static void explain_threshold(const struct topdown_table *table,
			      const struct topdown_result *result, int index, struct str *out)
{
	const struct topdown_node *node = &table->nodes[index];
	const struct topdown_value *v = &result->nodes[index];

	if (isnan(node->over)) {
		str_puts(out, "  threshold: none is published, so it is never marked\n");
		return;
	}
	str_printf(out, "  threshold: over %g%%%s", 100 * node->over,
		   node->parent < 0 ? "" : ", below parents over theirs");
	if (node->or_node >= 0)
		str_printf(out, ", or %s over %g%%", table->nodes[node->or_node].title,
			   100 * node->or_over);
	for (int at = node->parent; at >= 0; at = table->nodes[at].parent)
		if (!expr_has_number(&result->nodes[at].value)) {
			str_printf(out, ": not known, %s was not counted\n",
				   table->nodes[at].title);
			return;
		}
	str_printf(out, ": %s\n", v->holds ? "holds" : "does not hold");
}

static void explain_row(const struct topdown_job *job, const struct topdown_tree *tree,
			struct topdown_row *row, struct str *out)
{
	int index = topdown_node_find(tree->table, job->options.explain);
	const struct topdown_node *node = &tree->table->nodes[index];
	const struct topdown_value *v = &row->result.nodes[index];
	struct topdown_inputs inputs;
	struct explain e = {tree->table, &inputs, &row->result, out, -1, {0}};

	topdown_counts_inputs(&row->counts, &inputs);
	e.section = section_of(tree, (size_t)index, &inputs);
	str_printf(out, "\n  %s: %s\n  What helps: %s\n\n", node->title, node->means, node->helps);
	if (tree->label[0] || row->label[0]) {
		str_puts(out, "  ");
		text_clean(out, row->label, strlen(row->label));
		str_printf(out, "%s%s\n", row->label[0] && tree->label[0] ? ", " : "", tree->label);
	}
	str_printf(out, "  formula (%s, %s%s):\n    ", tree->table->set,
		   node->unit == TOPDOWN_RATE ? "" : "share of ", topdown_unit_text(node));
	put_formula(out, node->formula);
	str_puts(out, "\n  from:\n");
	explain_formula(&e, node->formula);
	explain_value(node, v, out);
	explain_threshold(tree->table, &row->result, index, out);
	vec_fini(&e.seen);
}

int topdown_explain(struct topdown_job *job, struct err *err)
{
	struct str out = {0};
	int r;

	if (job->options.json || job->options.csv) /* every node has its formula and inputs there */
		return topdown_show(job, err);
	for (unsigned t = 0; t < job->sides[0].tree_count; t++)
		vec_for_each(&job->sides[0].trees[t].rows, row)
			if (row->result.nodes)
				explain_row(job, &job->sides[0].trees[t], row, &out);
	r = str_status(&out);
	if (r == 0 && cmd_write_stdout(job->self, str_text(&out), out.len) != EXIT_DONE)
		r = -EPIPE;
	str_fini(&out);
	return r < 0 && r != -EPIPE ? err_set(err, r, "out of memory") : r;
}

/* --- inputs of a node ------------------------------------------------------------------------ */

struct gather {
	const struct topdown_tree *tree;
	bool *known; /* nodes that are not followed; NULL: none is */
	bool *events;
	bool *lets; /* that were followed: lets of lets would else double with every step */
};

static void gather_name(void *ctx, const char *name)
{
	struct gather *g = ctx;
	const struct topdown_table *table = g->tree->table;
	int event = topdown_event_find(table, name), node;

	if (event >= 0) {
		g->events[event] = true;
		return;
	}
	for (size_t i = 0; i < table->let_count; i++)
		if (strcmp(table->lets[i].name, name) == 0) {
			if (!g->lets[i]) {
				g->lets[i] = true;
				topdown_names(g->tree->topdown, name, gather_name, g);
			}
			return;
		}
	node = topdown_node_find(table, name);
	if (node >= 0 && g->known && !g->known[node]) {
		g->known[node] = true;
		topdown_names(g->tree->topdown, name, gather_name, g);
	}
}

int topdown_node_inputs(const struct topdown_tree *tree, size_t node, bool *events)
{
	CLEANUP_FREE bool *lets = calloc(tree->table->let_count + 1, sizeof(*lets));
	struct gather g = {.tree = tree, .events = events, .lets = lets};

	memset(events, 0, tree->table->event_count * sizeof(*events));
	if (lets)
		topdown_names(tree->topdown, tree->table->nodes[node].name, gather_name, &g);
	return lets ? 0 : -ENOMEM;
}

int topdown_add_events(const struct topdown_tree *tree, const char *name, bool *known, bool *events)
{
	CLEANUP_FREE bool *lets = calloc(tree->table->let_count + 1, sizeof(*lets));
	struct gather g = {tree, known, events, lets};

	if (lets)
		gather_name(&g, name);
	return lets ? 0 : -ENOMEM;
}
