/*
 * Evaluating a table. Every node is evaluated once, from the counts of one group where one holds
 * them all. Errors: each uncertain count is shifted by one standard error, alone, and all nodes are
 * evaluated again; the squares of what changes add up. That is exact to first order however often
 * a count appears in a formula, which errors carried through operators are not.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "events/topdown.h"

#define IMPOSSIBLE 0.05 /* a share may be so far outside 0..1 by noise */
#define UNEASY     0.01 /* from here on it is said */
#define GAP        0.05 /* PERF_METRICS against slots, and sums against 1 */
#define INPUTS_MAX 256

struct let_memo {
	struct expr_value value;
	unsigned round;
	int section;
};

struct topdown {
	const struct topdown_table *table;
	struct expr **lets, **nodes;
	/* while evaluating */
	const struct topdown_inputs *inputs;
	struct expr_value *memo;
	bool *done;
	struct let_memo *let_memo;
	bool *let_seen;
	int *sections;  /* of each node: the same for all rounds */
	unsigned round; /* memos of earlier ones are old */
	int section;    /* of the node being evaluated */
	int shifted;    /* event */
	double shift;
};

static int parse_all(struct topdown *t, struct err *err)
{
	const struct topdown_table *table = t->table;
	int r = 0;

	for (size_t i = 0; i < table->let_count && r == 0; i++) {
		r = expr_parse(table->lets[i].formula, &t->lets[i], err);
		if (r < 0)
			err_wrap(err, r, "%s: %s", table->set, table->lets[i].name);
	}
	for (size_t i = 0; i < table->node_count && r == 0; i++) {
		r = expr_parse(table->nodes[i].formula, &t->nodes[i], err);
		if (r < 0)
			err_wrap(err, r, "%s: %s", table->set, table->nodes[i].name);
	}
	return r;
}

int topdown_new(const struct topdown_table *table, struct topdown **ret, struct err *err)
{
	struct topdown *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return err_set(err, r, "out of memory");
	t->table = table;
	t->lets = calloc(table->let_count + 1, sizeof(struct expr *));
	t->nodes = calloc(table->node_count + 1, sizeof(struct expr *));
	t->memo = calloc(table->node_count + 1, sizeof(*t->memo));
	t->done = calloc(table->node_count + 1, sizeof(*t->done));
	t->let_memo = calloc(table->let_count + 1, sizeof(*t->let_memo));
	t->let_seen = calloc(table->let_count + 1, sizeof(*t->let_seen));
	t->sections = calloc(table->node_count + 1, sizeof(*t->sections));
	if (t->lets && t->nodes && t->memo && t->done && t->let_memo && t->let_seen && t->sections)
		r = parse_all(t, err);
	if (r < 0) {
		topdown_free(t);
		return r == -ENOMEM ? err_set(err, r, "out of memory") : r;
	}
	*ret = t;
	return 0;
}

void topdown_free(struct topdown *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->lets && i < t->table->let_count; i++)
		expr_free(t->lets[i]);
	for (size_t i = 0; t->nodes && i < t->table->node_count; i++)
		expr_free(t->nodes[i]);
	free(t->lets);
	free(t->nodes);
	free(t->memo);
	free(t->done);
	free(t->let_memo);
	free(t->let_seen);
	free(t->sections);
	free(t);
}

static int find_let(const struct topdown_table *table, const char *name)
{
	for (size_t i = 0; i < table->let_count; i++)
		if (strcmp(table->lets[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* --- which events --------------------------------------------------------------------------- */

struct gather {
	struct topdown *t;
	bool *wanted, *seen; /* seen: nodes, NULL: nodes are not followed */
};

static void gather_name(void *ctx, const char *name)
{
	struct gather *g = ctx;
	int event = topdown_event_find(g->t->table, name), let = find_let(g->t->table, name);
	int node = event < 0 && let < 0 ? topdown_node_find(g->t->table, name) : -1;

	if (event >= 0)
		g->wanted[event] = true;
	if (let >= 0 && !g->t->let_seen[let]) {
		g->t->let_seen[let] = true;
		expr_names(g->t->lets[let], gather_name, g);
	}
	if (node >= 0 && g->seen && !g->seen[node]) {
		g->seen[node] = true;
		expr_names(g->t->nodes[node], gather_name, g);
	}
}

void topdown_fold(struct topdown *t, expr_resolver *constant, void *ctx)
{
	for (size_t i = 0; i < t->table->let_count; i++)
		expr_fold(t->lets[i], constant, ctx);
	for (size_t i = 0; i < t->table->node_count; i++)
		expr_fold(t->nodes[i], constant, ctx);
}

static void smt_constant(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	if (ask == EXPR_LITERAL && strcasecmp(name, "smt_on") == 0)
		*ret = expr_number(*(const bool *)ctx);
}

void topdown_events(struct topdown *t, const bool *nodes, bool smt_on, bool cpi, bool *wanted)
{
	struct gather g = {t, wanted, t->done};

	topdown_fold(t, smt_constant, &smt_on);
	memset(wanted, 0, t->table->event_count * sizeof(*wanted));
	memset(t->done, 0, t->table->node_count * sizeof(*t->done));
	memset(t->let_seen, 0, t->table->let_count * sizeof(*t->let_seen));
	for (size_t i = 0; i < t->table->node_count; i++)
		if (nodes[i])
			gather_name(&g, t->table->nodes[i].name);
	gather_name(&g, "CYCLES");
	gather_name(&g, "SLOTS");
	if (cpi)
		gather_name(&g, "INSTRUCTIONS");
}

bool topdown_names(const struct topdown *t, const char *name,
		   void (*visit)(void *ctx, const char *name), void *ctx)
{
	int let = find_let(t->table, name), node = let < 0 ? topdown_node_find(t->table, name) : -1;

	if (let < 0 && node < 0)
		return false;
	expr_names(let >= 0 ? t->lets[let] : t->nodes[node], visit, ctx);
	return true;
}

/* --- values --------------------------------------------------------------------------------- */

static void eval_node(struct topdown *t, size_t index);

static void event_value(struct topdown *t, int event, struct expr_value *ret)
{
	const char *title = t->table->events[event].title;

	*ret = expr_missing(EXPR_NOT_COUNTED, "%s was not counted", title);
	t->inputs->count(t->inputs->ctx, (unsigned)event, t->section, ret);
	if (event == t->shifted)
		ret->value += t->shift;
}

static void resolve(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret);

/* Once for each section: lets of lets would else double with every step. */
static void eval_let(struct topdown *t, int let, struct expr_value *ret)
{
	struct let_memo *memo = &t->let_memo[let];

	if (memo->round != t->round || memo->section != t->section) {
		struct expr_value value = expr_missing(EXPR_NOT_COUNTED, "not known");

		expr_eval(t->lets[let], resolve, t, &value);
		*memo = (struct let_memo){value, t->round, t->section};
	}
	*ret = memo->value;
}

static void resolve(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	struct topdown *t = ctx;
	int event = topdown_event_find(t->table, name), index;

	if (ask == EXPR_HAS_EVENT) {
		if (event >= 0)
			event_value(t, event, ret);
		*ret = expr_number(event >= 0 && expr_has_number(ret));
	} else if (ask == EXPR_LITERAL && strcasecmp(name, "smt_on") == 0) {
		*ret = expr_number(t->inputs->smt_on);
	} else if (ask == EXPR_SOURCE_COUNT) {
		*ret = expr_number(event >= 0); /* a core's events have one source */
	} else if (ask == EXPR_LITERAL) {
		*ret = expr_missing(EXPR_NOT_COUNTED, "%s is not known", name);
		if (t->inputs->literal)
			t->inputs->literal(t->inputs->ctx, name, ret);
	} else if (ask == EXPR_NAME && event >= 0) {
		event_value(t, event, ret);
	} else if (ask == EXPR_NAME && (index = find_let(t->table, name)) >= 0) {
		eval_let(t, index, ret);
	} else if (ask == EXPR_NAME && (index = topdown_node_find(t->table, name)) >= 0) {
		eval_node(t, (size_t)index);
		*ret = t->memo[index];
	}
}

static int choose_section(struct topdown *t, size_t index)
{
	bool wanted[INPUTS_MAX] = {false};
	unsigned events[INPUTS_MAX];
	size_t len = 0;
	struct gather g = {t, wanted, NULL};

	if (!t->inputs->section || t->table->event_count > INPUTS_MAX)
		return -1;
	memset(t->let_seen, 0, t->table->let_count * sizeof(*t->let_seen));
	expr_names(t->nodes[index], gather_name, &g);
	for (size_t i = 0; i < t->table->event_count; i++)
		if (wanted[i])
			events[len++] = (unsigned)i;
	return t->inputs->section(t->inputs->ctx, events, len);
}

static void eval_node(struct topdown *t, size_t index)
{
	int section = t->section;

	if (t->done[index])
		return;
	t->section = t->sections[index];
	expr_eval(t->nodes[index], resolve, t, &t->memo[index]);
	t->section = section;
	t->done[index] = true;
}

static void eval_all(struct topdown *t)
{
	memset(t->done, 0, t->table->node_count * sizeof(*t->done));
	t->round++;
	t->section = -1;
	for (size_t i = 0; i < t->table->node_count; i++)
		eval_node(t, i);
}

static struct expr_value let_value(struct topdown *t, const char *name)
{
	struct expr_value value = expr_missing(EXPR_NOT_COUNTED, "%s are not counted", name);
	int let = find_let(t->table, name);

	t->section = -1;
	if (let >= 0)
		eval_let(t, let, &value);
	return value;
}

static void add_errors(struct topdown *t, struct topdown_result *result)
{
	size_t count = t->table->node_count;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		result->nodes[i].stderr_ = 0;
	for (size_t e = 0; e < t->table->event_count; e++) {
		struct expr_value v = expr_missing(EXPR_NOT_COUNTED, "none");

		t->inputs->count(t->inputs->ctx, (unsigned)e, -1, &v);
		if (!expr_has_number(&v))
			continue;
		any = true;
		if (v.variance == 0)
			continue;
		t->shifted = (int)e;
		t->shift = isnan(v.variance) ? 0.01 * (v.value + 1) : sqrt(v.variance);
		eval_all(t);
		for (size_t i = 0; i < count; i++)
			if (t->done[i]) {
				double change = t->memo[i].value - result->nodes[i].value.value;

				if (isnan(v.variance) && change != 0)
					result->nodes[i].stderr_ = NAN; /* it hangs on this one */
				else if (!isnan(v.variance))
					result->nodes[i].stderr_ =
						hypot(result->nodes[i].stderr_, change);
			}
	}
	t->shifted = -1;
	t->shift = 0;
	t->round++; /* lets of shifted counts are not those of the counts */
	for (size_t i = 0; i < count; i++)
		if (!any || !expr_has_number(&result->nodes[i].value))
			result->nodes[i].stderr_ = NAN;
}

/* --- judging -------------------------------------------------------------------------------- */

static void weaken(struct topdown_value *node, const struct expr_value *why)
{
	if (node->value.state < EXPR_WEAK) {
		node->value.state = EXPR_WEAK;
		memcpy(node->value.reason, why->reason, sizeof(why->reason));
	}
}

static void weaken_slots(struct topdown *t, struct topdown_result *result,
			 const struct expr_value *why)
{
	for (size_t i = 0; i < t->table->node_count; i++)
		weaken(&result->nodes[i], why);
}

/* One impossible part of the slots: the counts belong to different times, or a counter lies. */
static void refuse_impossible(struct topdown *t, struct topdown_result *result)
{
	const struct topdown_table *table = t->table;
	struct expr_value why = {.state = EXPR_MEASURED};

	for (size_t i = 0; i < table->node_count; i++) {
		struct expr_value *v = &result->nodes[i].value;
		const struct topdown_node *node = &table->nodes[i];

		if (!expr_has_number(v) || node->unit == TOPDOWN_RATE)
			continue;
		if (v->value < -IMPOSSIBLE || v->value > 1 + IMPOSSIBLE) {
			struct expr_value bad =
				expr_missing(EXPR_INVALID,
					     "%s would be %.0f%%: impossible; its counts are not "
					     "of the same time, or a counter lies",
					     node->title, 100 * v->value);

			if (node->level == 1 && node->unit == TOPDOWN_SLOTS &&
			    why.state == EXPR_MEASURED)
				why = bad;
			*v = bad;
		} else if (v->value < -UNEASY && v->state < EXPR_WEAK) {
			v->state = EXPR_WEAK;
			snprintf(v->reason, sizeof(v->reason), "%.1f%% by the formula: shown as 0",
				 100 * v->value);
		}
	}
	for (size_t i = 0; i < table->node_count && why.state == EXPR_INVALID; i++)
		if (expr_has_number(&result->nodes[i].value))
			result->nodes[i].value = why;
}

static void check_sum(struct topdown *t, struct topdown_result *result)
{
	const struct topdown_table *table = t->table;
	struct expr_value why;
	bool slots = false;

	result->sum = 0;
	for (size_t i = 0; i < table->node_count; i++)
		if (table->nodes[i].level == 1 && table->nodes[i].unit == TOPDOWN_SLOTS) {
			slots = true;
			result->sum += expr_has_number(&result->nodes[i].value)
					       ? result->nodes[i].value.value
					       : NAN;
		}
	if (!slots)
		result->sum = NAN;
	if (isnan(result->sum) || fabs(result->sum - 1) <= GAP)
		return;
	why = expr_missing(EXPR_WEAK, "level 1 adds up to %.1f%%", 100 * result->sum);
	weaken_slots(t, result, &why);
}

/* The four PERF_METRICS against the slots they are parts of. */
static void check_metrics(struct topdown *t, struct topdown_result *result)
{
	struct expr_value sum = let_value(t, "S4"), slots = let_value(t, "SLOTS"), why;
	double gap;

	if (!expr_has_number(&sum) || !expr_has_number(&slots) || slots.value <= 0)
		return;
	gap = sum.value / slots.value - 1;
	if (fabs(gap) <= GAP)
		return;
	why = expr_missing(
		EXPR_WEAK,
		"the four categories are %.1f%% %s the slots: counted too long without a read, or "
		"not together",
		100 * fabs(gap), gap > 0 ? "above" : "below");
	weaken_slots(t, result, &why);
}

static bool over(const struct topdown_value *node, double threshold)
{
	double margin = isnan(node->stderr_) ? 0 : node->stderr_;

	return node->value.state <= EXPR_ESTIMATED && node->value.value - margin > threshold;
}

void topdown_mark(struct topdown *t, struct topdown_result *result, unsigned max_level)
{
	const struct topdown_table *table = t->table;
	int at = -1;

	for (size_t i = 0; i < table->node_count; i++) {
		const struct topdown_node *node = &table->nodes[i];
		struct topdown_value *v = &result->nodes[i];

		v->bottleneck = false;
		v->holds = (node->parent < 0 || result->nodes[node->parent].holds) &&
			   v->value.state <= EXPR_ESTIMATED &&
			   (over(v, node->over) ||
			    (node->or_node >= 0 &&
			     over(&result->nodes[node->or_node], node->or_over)));
	}
	for (;;) {
		int best = -1;

		for (size_t i = 0; i < table->node_count; i++) {
			const struct topdown_value *v = &result->nodes[i];
			bool useful = strcmp(table->nodes[i].name, "retiring") == 0 &&
				      !over(v, table->nodes[i].over);

			if (table->nodes[i].parent != at || !v->holds ||
			    table->nodes[i].level > max_level)
				continue;
			/* Retiring over its threshold only by heavy operations gives way to real
			 * stalls. */
			if (best < 0 ||
			    (!useful && v->value.value > result->nodes[best].value.value) ||
			    (strcmp(table->nodes[best].name, "retiring") == 0 &&
			     !over(&result->nodes[best], table->nodes[best].over) && !useful))
				best = (int)i;
		}
		if (best < 0)
			break;
		at = best;
	}
	result->bottleneck = at;
	if (at >= 0)
		result->nodes[at].bottleneck = true;
}

int topdown_eval(struct topdown *t, const struct topdown_inputs *inputs, unsigned max_level,
		 struct topdown_result *ret)
{
	const struct topdown_table *table = t->table;
	struct topdown_result result = {.sum = NAN, .bottleneck = -1};

	result.nodes = calloc(table->node_count + 1, sizeof(*result.nodes));
	if (!result.nodes)
		return -ENOMEM;
	t->inputs = inputs;
	t->shifted = -1;
	for (size_t i = 0; i < table->node_count; i++)
		t->sections[i] = choose_section(t, i);
	eval_all(t);
	for (size_t i = 0; i < table->node_count; i++) {
		result.nodes[i].value = t->memo[i];
		if (!t->done[i])
			result.nodes[i].value =
				expr_missing(EXPR_NOT_COUNTED, "deeper than asked for");
	}
	result.cycles = let_value(t, "CYCLES");
	result.instructions = let_value(t, "INSTRUCTIONS");
	result.cpi = expr_missing(EXPR_NOT_COUNTED, "cycles and instructions are not both counted");
	if (expr_has_number(&result.cycles) && expr_has_number(&result.instructions) &&
	    result.instructions.value > 0)
		result.cpi = expr_number(result.cycles.value / result.instructions.value);
	add_errors(t, &result);
	refuse_impossible(t, &result);
	check_sum(t, &result);
	check_metrics(t, &result);
	topdown_mark(t, &result, max_level);
	t->inputs = NULL;
	*ret = result;
	return 0;
}

void topdown_result_fini(struct topdown_result *result)
{
	free(result->nodes);
	result->nodes = NULL;
}
