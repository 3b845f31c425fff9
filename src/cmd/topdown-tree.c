/*
 * Sides, trees and rows. With -r the value of a node comes from the counts of all repeats summed up
 * (one estimator, however long each repeat was), and its error from how the repeats differ:
 * whatever makes runs differ is in that, sampling included.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/topdown.h"

unsigned topdown_max_level(const struct topdown_job *job, const struct topdown_table *table)
{
	unsigned deepest = 0;

	for (size_t i = 0; i < table->node_count; i++)
		deepest = MAX(deepest, table->nodes[i].level);
	return job->options.level ? (unsigned)MIN(job->options.level, (uint64_t)deepest) : deepest;
}

/* The nodes that --nodes and --explain name, in this tree. */
int topdown_tree_choose(struct topdown_job *job, struct topdown_tree *tree, struct err *err)
{
	CLEANUP_FREE char *list = NULL;
	char *save = NULL;

	if (job->options.explain && topdown_node_find(tree->table, job->options.explain) < 0)
		return err_set(err, -ENOENT, "--explain: %s has no node '%s'", tree->table->set,
			       job->options.explain);
	if (!job->options.nodes)
		return 0;
	list = strdup(job->options.nodes);
	tree->chosen = calloc(tree->table->node_count + 1, sizeof(*tree->chosen));
	if (!list || !tree->chosen)
		return err_set(err, -ENOMEM, "out of memory");
	for (char *word = strtok_r(list, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		bool found = false;

		for (size_t i = 0; i < tree->table->node_count; i++)
			if (str_glob(word, tree->table->nodes[i].name))
				tree->chosen[i] = found = true;
		if (!found)
			return err_set(err, -ENOENT, "--nodes: %s has no node '%s'",
				       tree->table->set, word);
	}
	return 0;
}

static void init_counts(const struct topdown_job *job, const struct topdown_tree *tree,
			struct topdown_counts *counts)
{
	counts->table = tree->table;
	counts->by_run = true;
	/* One thread of a core whose slots two threads share: its own formulas, without trust. */
	counts->literals[0] = expr_number(job->smt && !job->half_core);
	counts->literals[1] = topdown_tsc_frequency(&job->tsc);
	counts->literals[2] = expr_missing(EXPR_NOT_COUNTED, "has_pmem is not known");
}

int topdown_tree_row(const struct topdown_job *job, struct topdown_tree *tree, const char *label)
{
	struct topdown_row row = {.result = {.sum = NAN, .bottleneck = -1}};

	for (size_t i = 0; i < tree->rows.len; i++)
		if (strcmp(tree->rows.data[i].label, label) == 0)
			return (int)i;
	snprintf(row.label, sizeof(row.label), "%s", label);
	init_counts(job, tree, &row.counts);
	if (job->options.repeat > 1) {
		row.repeats = calloc(job->options.repeat, sizeof(*row.repeats));
		if (!row.repeats)
			return -ENOMEM;
		for (uint64_t i = 0; i < job->options.repeat; i++)
			init_counts(job, tree, &row.repeats[i]);
	}
	if (vec_push(&tree->rows, row) < 0) {
		free(row.repeats);
		return -ENOMEM;
	}
	return (int)tree->rows.len - 1;
}

/* Standard error of the mean over the repeats that have a number; NaN below two. */
static double spread_of(const double *values, size_t count)
{
	double mean = 0, squares = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i])) {
			double d = values[i] - mean;

			mean += d / (double)++n;
			squares += d * (values[i] - mean);
		}
	return n < 2 ? NAN : sqrt(squares / (double)(n - 1) / (double)n);
}

static int add_spread(const struct topdown_job *job, const struct topdown_tree *tree,
		      struct topdown_row *row)
{
	size_t repeats = job->options.repeat, nodes = tree->table->node_count;
	unsigned level = topdown_max_level(job, tree->table);
	CLEANUP_FREE double *shares = malloc(nodes * repeats * sizeof(*shares) + 1);
	int r = shares ? 0 : -ENOMEM;

	for (size_t k = 0; k < repeats && r == 0; k++) {
		struct topdown_result result = {0};
		struct topdown_inputs inputs;

		topdown_counts_inputs(&row->repeats[k], &inputs);
		r = topdown_eval(tree->topdown, &inputs, level, &result);
		for (size_t i = 0; i < nodes && r == 0; i++)
			shares[i * repeats + k] = expr_has_number(&result.nodes[i].value)
							  ? result.nodes[i].value.value
							  : NAN;
		topdown_result_fini(&result);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < nodes; i++) {
		struct topdown_value *v = &row->result.nodes[i];

		if (expr_has_number(&v->value))
			v->stderr_ = spread_of(shares + i * repeats, repeats);
	}
	topdown_mark(tree->topdown, &row->result, level);
	return 0;
}

static int count_in(const struct topdown_tree *tree, const char *let, bool *events)
{
	memset(events, 0, tree->table->event_count * sizeof(*events));
	topdown_add_events(tree, let, NULL, events);
	for (size_t i = 0; i < tree->table->event_count; i++)
		if (events[i])
			return (int)i;
	return -1;
}

/* Cycles and instructions of one run, when there are several. */
static int settle_cpi(const struct topdown_tree *tree, struct topdown_row *row)
{
	CLEANUP_FREE bool *events = calloc(tree->table->event_count + 1, sizeof(*events));
	struct expr_value cycles, instructions;
	struct topdown_inputs inputs;
	int c, i, section;

	if (!events)
		return -ENOMEM;
	topdown_counts_inputs(&row->counts, &inputs);
	c = count_in(tree, "CYCLES", events);
	i = count_in(tree, "INSTRUCTIONS", events);
	if (c < 0 || i < 0 || !row->counts.by_run)
		return 0;
	section = inputs.section(inputs.ctx, (unsigned[]){(unsigned)c, (unsigned)i}, 2);
	if (section < 0)
		return 0;
	cycles = instructions = expr_missing(EXPR_NOT_COUNTED, "not in this run");
	inputs.count(inputs.ctx, (unsigned)c, section, &cycles);
	inputs.count(inputs.ctx, (unsigned)i, section, &instructions);
	if (expr_has_number(&cycles) && expr_has_number(&instructions) && instructions.value > 0)
		row->result.cpi = expr_number(cycles.value / instructions.value);
	return 0;
}

int topdown_side_evaluate(const struct topdown_job *job, struct topdown_side *side)
{
	int r = 0;

	for (unsigned t = 0; t < side->tree_count; t++) {
		struct topdown_tree *tree = &side->trees[t];

		for (size_t i = 0; i < tree->rows.len && r == 0; i++) {
			struct topdown_row *row = &tree->rows.data[i];
			struct topdown_inputs inputs;

			topdown_result_fini(&row->result);
			if (row->counts.by_run) /* known better after the run */
				row->counts.literals[1] = topdown_tsc_frequency(&job->tsc);
			for (uint64_t k = 0; row->repeats && k < job->options.repeat; k++)
				row->repeats[k].literals[1] = row->counts.literals[1];
			topdown_counts_inputs(&row->counts, &inputs);
			r = topdown_eval(tree->topdown, &inputs,
					 topdown_max_level(job, tree->table), &row->result);
			if (r == 0)
				r = settle_cpi(tree, row);
			if (r == 0 && row->repeats)
				r = add_spread(job, tree, row);
		}
	}
	return r;
}

static void tree_fini(const struct topdown_job *job, struct topdown_tree *tree)
{
	vec_for_each(&tree->rows, row) {
		for (uint64_t i = 0; row->repeats && i < job->options.repeat; i++)
			topdown_counts_fini(&row->repeats[i]);
		free(row->repeats);
		topdown_counts_fini(&row->counts);
		topdown_result_fini(&row->result);
	}
	vec_fini(&tree->rows);
	if (!tree->borrowed) {
		topdown_free(tree->topdown);
		free(tree->chosen);
		free(tree->lacking);
	}
}

void topdown_side_fini(const struct topdown_job *job, struct topdown_side *side)
{
	for (unsigned t = 0; t < side->tree_count; t++)
		tree_fini(job, &side->trees[t]);
	str_fini(&side->title);
}

void topdown_side_copy(const struct topdown_side *from, struct topdown_side *to)
{
	to->tree_count = from->tree_count;
	for (unsigned t = 0; t < from->tree_count; t++) {
		to->trees[t] = from->trees[t];
		to->trees[t].borrowed = true;
		memset(&to->trees[t].rows, 0, sizeof(to->trees[t].rows));
	}
}
