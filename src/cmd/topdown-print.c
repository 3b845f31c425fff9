/* One result as a tree for people, as JSON, as CSV; and the formula of a node with its numbers. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/topdown.h"
#include "view/table.h"
#include "view/text.h"

#define BAR_COLUMNS   24
#define DEFAULT_LEVEL 2 /* of recorded counts, unless something was marked deeper */

static const char *const unit_words[] = {
	[TOPDOWN_SLOTS] = "slots",   [TOPDOWN_CLOCKS] = "cycles",   [TOPDOWN_UOPS] = "operations",
	[TOPDOWN_STALLS] = "stalls", [TOPDOWN_EVENTS] = "branches",
};

unsigned topdown_max_level(const struct topdown_job *job)
{
	unsigned deepest = 0;

	for (size_t i = 0; i < job->table->node_count; i++)
		deepest = MAX(deepest, job->table->nodes[i].level);
	return job->options.level ? (unsigned)MIN(job->options.level, (uint64_t)deepest) : deepest;
}

/* Level 1 always; below it what was asked for, or what has a number and belongs to a marked parent
 * or to level 2. */
static bool is_shown(const struct topdown_job *job, const struct topdown_result *result, size_t i)
{
	const struct topdown_node *node = &job->table->nodes[i];
	bool number = expr_has_number(&result->nodes[i].value);

	if (job->chosen)
		return job->chosen[i];
	if (node->level > topdown_max_level(job))
		return false;
	if (node->level == 1 || job->options.all || job->options.level)
		return true;
	return number && (node->level <= DEFAULT_LEVEL || result->nodes[node->parent].holds);
}

/* --- text ----------------------------------------------------------------------------------- */

static void print_share(const struct topdown_value *v, struct str *out)
{
	char error[32] = "";

	if (!expr_has_number(&v->value)) {
		str_printf(out, "%8s          ", "-");
		return;
	}
	if (!isnan(v->stderr_) && v->stderr_ > 0)
		snprintf(error, sizeof(error), "+-%4.1f", 100 * v->stderr_);
	str_printf(out, "%7.1f%% %-8s ", 100 * MAX(v->value.value, 0.0), error);
}

static void print_node(const struct topdown_job *job, const struct topdown_result *result, size_t i,
		       struct str *out)
{
	const struct topdown_node *node = &job->table->nodes[i];
	const struct topdown_value *v = &result->nodes[i];
	int indent = 2 * (int)node->level;
	size_t start;

	str_printf(out, "%*s%-*s", indent, "", MAX(34 - indent, 1), node->title);
	print_share(v, out);
	start = out->len;
	if (expr_has_number(&v->value)) {
		int filled = (int)lround(BAR_COLUMNS * topdown_shown(v->value.value));

		for (int c = 0; c < BAR_COLUMNS; c++)
			str_putc(out, c < filled ? '#' : '.');
		str_printf(out, " %-10s", unit_words[node->unit]);
	} else {
		str_printf(out, "%s",
			   v->value.state == EXPR_INVALID         ? "refused"
			   : v->value.state == EXPR_NOT_SUPPORTED ? "not supported"
								  : "not counted");
	}
	if (v->bottleneck)
		str_puts(out, " <==");
	else if (v->value.state == EXPR_WEAK)
		str_puts(out, " (weak)");
	while (out->len > start && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	str_putc(out, '\n');
}

/* Children right below their parent, as the table has them. */
static void print_below(const struct topdown_job *job, const struct topdown_result *result,
			int parent, struct str *out)
{
	for (size_t i = 0; i < job->table->node_count; i++) {
		if (job->table->nodes[i].parent != parent)
			continue;
		if (is_shown(job, result, i))
			print_node(job, result, i, out);
		print_below(job, result, (int)i, out);
	}
}

/* Every reason once, with the nodes it holds for. */
static void print_reasons(const struct topdown_job *job, const struct topdown_result *result,
			  struct str *out)
{
	static const char *const words[] = {"measured", "estimated", "weak",
					    "missing",  "missing",   "refused"};
	size_t count = job->table->node_count;

	for (size_t i = 0; i < count; i++) {
		const struct expr_value *v = &result->nodes[i].value;
		bool seen = v->reason[0] == '\0' || !is_shown(job, result, i);

		for (size_t k = 0; k < i && !seen; k++)
			seen = is_shown(job, result, k) &&
			       strcmp(result->nodes[k].value.reason, v->reason) == 0;
		if (seen)
			continue;
		str_printf(out, "  %s: ", words[v->state]);
		for (size_t k = i, shown = 0; k < count; k++)
			if (is_shown(job, result, k) &&
			    strcmp(result->nodes[k].value.reason, v->reason) == 0)
				str_printf(out, "%s%s", shown++ ? ", " : "",
					   job->table->nodes[k].title);
		str_printf(out, ": %s\n", v->reason);
	}
}

static void print_verdict(const struct topdown_job *job, const struct topdown_result *result,
			  struct str *out)
{
	const struct topdown_node *node;

	if (result->bottleneck < 0) {
		bool weak = false;

		for (size_t i = 0; i < job->table->node_count; i++)
			weak |= result->nodes[i].value.state >= EXPR_WEAK &&
				job->table->nodes[i].level == 1;
		str_printf(out, "  No bottleneck is marked: %s.\n",
			   weak ? "not all of level 1 can be trusted"
				: "nothing is over its threshold");
		return;
	}
	node = &job->table->nodes[result->bottleneck];
	str_printf(out, "  %s: %s\n  What helps: %s\n", node->title, node->means, node->helps);
	while (node->parent >= 0)
		node = &job->table->nodes[node->parent];
	if (strcmp(node->name, "retiring") == 0)
		str_puts(out, "  Retiring dominates: the core is kept busy. That does not say that "
			      "the work is needed, or that\n"
			      "  fewer, wider instructions could not do it.\n");
}

static void print_notes(const struct topdown_job *job, struct str *out)
{
	const char *line = str_text(&job->notes), *end;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
		str_printf(out, "  %.*s\n", (int)(end - line), line);
}

static void print_text(struct topdown_job *job, const struct topdown_result *result,
		       struct str *out)
{
	if (job->options.interval_ns)
		str_printf(out, "\n  at %.3f s", (double)job->time_ns / 1e9);
	else
		str_printf(out, "\n  %s", str_text(&job->title));
	str_printf(out, "   [%s]\n\n", job->table->set);
	if (job->options.cpi_stack) {
		topdown_cpi_text(job, result, NULL, out);
	} else {
		print_below(job, result, -1, out);
		str_putc(out, '\n');
		if (!isnan(result->sum))
			str_printf(out, "  level 1 adds up to %.1f%%", 100 * result->sum);
		if (expr_has_number(&result->cpi))
			str_printf(out, "%s%.3f cycles per instruction",
				   isnan(result->sum) ? "  " : "; ", result->cpi.value);
		if (!isnan(result->sum) || expr_has_number(&result->cpi))
			str_putc(out, '\n');
		print_reasons(job, result, out);
		print_verdict(job, result, out);
		if (job->table->own_thresholds && result->bottleneck >= 0)
			str_puts(out, "  (The vendor publishes no thresholds for this core: they "
				      "are ours.)\n");
	}
	print_notes(job, out);
}

/* --- documents ------------------------------------------------------------------------------ */

static void json_nodes(const struct topdown_job *job, const struct topdown_result *result,
		       struct json *json)
{
	const struct topdown_table *table = job->table;

	json_array(json, "nodes");
	for (size_t i = 0; i < table->node_count; i++) {
		const struct topdown_node *node = &table->nodes[i];
		const struct topdown_value *v = &result->nodes[i];
		bool number = expr_has_number(&v->value);

		if (job->chosen ? !job->chosen[i] : node->level > topdown_max_level(job))
			continue;
		json_object(json, NULL);
		json_text(json, "name", node->name);
		json_text(json, "title", node->title);
		json_text(json, "parent",
			  node->parent < 0 ? NULL : table->nodes[node->parent].name);
		json_u64(json, "level", node->level);
		json_text(json, "unit", unit_words[node->unit]);
		json_double(json, "value_share", number ? topdown_shown(v->value.value) : NAN);
		json_double(json, "raw_share", number ? v->value.value : NAN);
		json_double(json, "stderr_share", v->stderr_);
		json_double(json, "threshold_share", node->over);
		json_bool(json, "over_threshold", v->holds);
		json_bool(json, "bottleneck", v->bottleneck);
		json_text(json, "state", expr_state_name(v->value.state));
		json_text(json, "reason", v->value.reason[0] ? v->value.reason : NULL);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_result(const struct topdown_job *job, const struct topdown_result *result,
			struct json *json)
{
	struct topdown_cpi_part parts[TOPDOWN_CPI_MAX];
	unsigned len = topdown_cpi_stack(job->table, result, parts);
	const struct topdown_table *table = job->table;

	json_nodes(job, result, json);
	json_double(json, "level1_sum_share", result->sum);
	json_text(json, "bottleneck",
		  result->bottleneck < 0 ? NULL : table->nodes[result->bottleneck].name);
	json_double(json, "cpi", expr_has_number(&result->cpi) ? result->cpi.value : NAN);
	json_array(json, "cpi_stack");
	for (unsigned i = 0; i < len; i++) {
		json_object(json, NULL);
		json_text(json, "name", parts[i].name);
		json_u64(json, "depth", parts[i].depth);
		json_double(json, "cpi", parts[i].cpi);
		json_end_object(json);
	}
	json_end_array(json);
	json_array(json, "events");
	vec_for_each(&job->counts.counts, count) {
		json_object(json, NULL);
		json_text(json, "name", table->events[count->event].title);
		json_double(json, "value",
			    expr_has_number(&count->value) ? count->value.value : NAN);
		json_double(json, "stderr",
			    expr_has_number(&count->value) ? sqrt(count->value.variance) : NAN);
		json_text(json, "state", expr_state_name(count->value.state));
		json_text(json, "reason", count->value.reason[0] ? count->value.reason : NULL);
		json_end_object(json);
	}
	json_end_array(json);
}

static void print_json(struct topdown_job *job, const struct topdown_result *result)
{
	struct json *json = &job->json;

	if (!job->header_done) {
		json_document(json, "topdown");
		json_text(json, "cpu_model", job->cpu_model);
		json_text(json, "formula_set", job->table->set);
		json_bool(json, "own_thresholds", job->table->own_thresholds);
		json_u64(json, "runs", job->runs);
		json_text(json, "notes", job->notes.len ? str_text(&job->notes) : NULL);
		if (job->options.interval_ns)
			json_array(json, "intervals");
		job->header_done = true;
	}
	if (job->options.interval_ns) {
		json_object(json, NULL);
		json_u64(json, "time_ns", job->time_ns);
	}
	json_result(job, result, json);
	if (job->options.interval_ns)
		json_end_object(json);
}

static int print_csv(struct topdown_job *job, const struct topdown_result *result, struct str *out)
{
	static const struct table_column columns[] = {
		{.key = "time_ns", .kind = CELL_COUNT},
		{.key = "name", .kind = CELL_TEXT},
		{.key = "parent", .kind = CELL_TEXT},
		{.key = "level", .kind = CELL_COUNT},
		{.key = "unit", .kind = CELL_TEXT},
		{.key = "value_share", .kind = CELL_SHARE},
		{.key = "stderr_share", .kind = CELL_SHARE},
		{.key = "threshold_share", .kind = CELL_SHARE},
		{.key = "over_threshold", .kind = CELL_COUNT},
		{.key = "bottleneck", .kind = CELL_COUNT},
		{.key = "state", .kind = CELL_TEXT},
		{.key = "reason", .kind = CELL_TEXT},
	};
	struct table *table;
	size_t start = out->len;
	int r = table_new(columns, ARRAY_LEN(columns), &table);

	if (r < 0)
		return r;
	for (size_t i = 0; i < job->table->node_count; i++) {
		const struct topdown_node *node = &job->table->nodes[i];
		const struct topdown_value *v = &result->nodes[i];

		if (job->chosen ? !job->chosen[i] : node->level > topdown_max_level(job))
			continue;
		table_count(table, job->time_ns);
		table_text(table, node->name);
		table_text(table, node->parent < 0 ? NULL : job->table->nodes[node->parent].name);
		table_count(table, node->level);
		table_text(table, unit_words[node->unit]);
		table_double(table,
			     expr_has_number(&v->value) ? topdown_shown(v->value.value) : NAN);
		table_double(table, v->stderr_);
		table_double(table, node->over);
		table_count(table, v->holds);
		table_count(table, v->bottleneck);
		table_text(table, expr_state_name(v->value.state));
		table_text(table, v->value.reason[0] ? v->value.reason : NULL);
	}
	r = table_status(table);
	table_print_csv(table, ',', out);
	table_free(table);
	if (job->header_done) { /* the header once */
		char *line = strchr(out->data + start, '\n');

		if (line) {
			size_t head = (size_t)(line + 1 - (out->data + start));

			memmove(out->data + start, line + 1, out->len - start - head + 1);
			out->len -= head;
		}
	}
	job->header_done = true;
	return r;
}

int topdown_show(struct topdown_job *job, const struct topdown_result *result, struct err *err)
{
	struct str out = {0};
	int r = 0;

	if (job->options.json) {
		print_json(job, result);
		return 0;
	}
	if (job->options.csv)
		r = print_csv(job, result, &out);
	else
		print_text(job, result, &out);
	if (r == 0)
		r = str_status(&out);
	if (r < 0)
		err_set(err, r, "out of memory");
	else if (cmd_write_stdout(job->self, out.data, out.len) != EXIT_DONE)
		r = -EPIPE;
	str_fini(&out);
	return r;
}

/* The end of a JSON document. */
int topdown_show_end(struct topdown_job *job)
{
	if (!job->options.json || !job->header_done)
		return EXIT_DONE;
	if (job->options.interval_ns)
		json_end_array(&job->json);
	json_end_object(&job->json);
	return cmd_write_stdout(job->self, str_text(&job->json.out), job->json.out.len);
}

/* --- one node explained --------------------------------------------------------------------- */

struct explain {
	struct topdown_job *job;
	const struct topdown_inputs *inputs;
	const struct topdown_result *result;
	struct str *out;
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
	const struct topdown_table *table = e->job->table;
	int event = topdown_event_find(table, name), node = topdown_node_find(table, name);

	vec_for_each(&e->seen, seen)
		if (strcmp(*seen, name) == 0)
			return;
	if (vec_push(&e->seen, name) < 0)
		return;
	if (event >= 0) {
		struct expr_value v = expr_missing(EXPR_NOT_COUNTED, "%s was not counted", name);

		e->inputs->count(e->inputs->ctx, (unsigned)event, -1, &v);
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
		int event = topdown_event_find(e->job->table, e->seen.data[i]);
		int node = topdown_node_find(e->job->table, e->seen.data[i]);

		if (event >= 0)
			e->seen.data[i] = e->job->table->events[event].name;
		else if (node >= 0)
			e->seen.data[i] = e->job->table->nodes[node].name;
		else
			for (size_t l = 0; l < e->job->table->let_count; l++)
				if (strcmp(e->seen.data[i], e->job->table->lets[l].name) == 0)
					e->seen.data[i] = e->job->table->lets[l].name;
	}
	expr_free(expr);
}

int topdown_explain(struct topdown_job *job, const struct topdown_result *result, struct err *err)
{
	int index = topdown_node_find(job->table, job->options.explain), r;
	const struct topdown_node *node = &job->table->nodes[index];
	const struct topdown_value *v = &result->nodes[index];
	struct topdown_inputs inputs;
	struct str out = {0};
	struct explain e = {job, &inputs, result, &out, {0}};

	topdown_counts_inputs(&job->counts, &inputs);
	str_printf(&out, "\n  %s: %s\n  What helps: %s\n\n", node->title, node->means, node->helps);
	str_printf(&out, "  formula (%s, share of %s):\n    ", job->table->set,
		   unit_words[node->unit]);
	put_formula(&out, node->formula);
	str_puts(&out, "\n  from:\n");
	explain_formula(&e, node->formula);
	str_puts(&out, "\n  value: ");
	if (expr_has_number(&v->value))
		str_printf(&out, "%.2f%%", 100 * v->value.value);
	else
		str_puts(&out, "none");
	if (!isnan(v->stderr_))
		str_printf(&out, " +- %.2f", 100 * v->stderr_);
	str_printf(&out, ", %s%s%s\n", expr_state_name(v->value.state),
		   v->value.reason[0] ? ": " : "", v->value.reason);
	str_printf(&out, "  threshold: over %g%%%s", 100 * node->over,
		   node->parent < 0 ? "" : ", below parents over theirs");
	if (node->or_node >= 0)
		str_printf(&out, ", or %s over %g%%", job->table->nodes[node->or_node].title,
			   100 * node->or_over);
	str_printf(&out, ": %s\n", v->holds ? "holds" : "does not hold");
	vec_fini(&e.seen);
	r = str_status(&out);
	if (r == 0 && cmd_write_stdout(job->self, out.data, out.len) != EXIT_DONE)
		r = -EPIPE;
	str_fini(&out);
	return r;
}
