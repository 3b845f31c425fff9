/* Results as JSON and CSV. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/topdown.h"
#include "view/table.h"

static bool in_document(const struct topdown_job *job, const struct topdown_tree *tree, size_t i)
{
	return tree->chosen ? tree->chosen[i]
			    : tree->table->nodes[i].level <= topdown_max_level(job, tree->table);
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* Where the number comes from: the formula and the events in it. */
static void json_origin(const struct topdown_tree *tree, size_t node, struct json *json)
{
	const struct topdown_table *table = tree->table;
	bool *events = calloc(table->event_count + 1, sizeof(*events));
	struct str formula = {0};

	for (const char *c = table->nodes[node].formula; *c; c++)
		if (*c != '\\') /* the language's escapes */
			str_putc(&formula, *c);
	json_text(json, "formula", str_text(&formula));
	str_fini(&formula);
	json_array(json, "inputs");
	if (events)
		topdown_node_inputs(tree, node, events);
	for (size_t e = 0; events && e < table->event_count; e++)
		if (events[e])
			json_text(json, NULL, table->events[e].title);
	json_end_array(json);
	free(events);
}

static void json_nodes(const struct topdown_job *job, const struct topdown_tree *tree,
		       const struct topdown_result *result, struct json *json)
{
	const struct topdown_table *table = tree->table;

	json_array(json, "nodes");
	for (size_t i = 0; result->nodes && i < table->node_count; i++) {
		const struct topdown_node *node = &table->nodes[i];
		const struct topdown_value *v = &result->nodes[i];
		bool number = expr_has_number(&v->value);

		if (!in_document(job, tree, i))
			continue;
		json_object(json, NULL);
		json_text(json, "name", node->name);
		json_text(json, "title", node->title);
		json_text(json, "parent",
			  node->parent < 0 ? NULL : table->nodes[node->parent].name);
		json_u64(json, "level", node->level);
		json_text(json, "unit", topdown_unit_text(node));
		if (node->unit == TOPDOWN_RATE) {
			json_double(json, "value", number ? v->value.value : NAN);
			number = false; /* it is no share */
		}
		json_double(json, "value_share", number ? topdown_shown(v->value.value) : NAN);
		json_double(json, "raw_share", number ? v->value.value : NAN);
		json_double(json, "stderr_share", v->stderr_);
		json_double(json, "threshold_share", node->over);
		json_bool(json, "over_threshold", v->holds);
		json_bool(json, "bottleneck", v->bottleneck);
		json_text(json, "state", expr_state_name(v->value.state));
		json_text(json, "reason", v->value.reason[0] ? v->value.reason : NULL);
		json_text(json, "means", node->means);
		json_text(json, "helps", node->helps);
		json_origin(tree, i, json);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_events(const struct topdown_tree *tree, const struct topdown_row *row,
			struct json *json)
{
	json_array(json, "events");
	vec_for_each(&row->counts.counts, count) {
		bool number = expr_has_number(&count->value);

		json_object(json, NULL);
		json_text(json, "name", tree->table->events[count->event].title);
		json_double(json, "value", number ? count->value.value : NAN);
		json_double(json, "stderr", number ? sqrt(count->value.variance) : NAN);
		if (count->enabled_ns > 0) {
			json_u64(json, "raw", count->raw);
			json_u64(json, "enabled_ns", count->enabled_ns);
			json_u64(json, "running_ns", count->running_ns);
		}
		if (row->counts.by_run)
			json_u64(json, "run", count->line);
		json_text(json, "state", expr_state_name(count->value.state));
		json_text(json, "reason", count->value.reason[0] ? count->value.reason : NULL);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_result(const struct topdown_job *job, const struct topdown_tree *tree,
			const struct topdown_row *row, struct json *json)
{
	const struct topdown_result *result = &row->result;
	struct topdown_cpi_part parts[TOPDOWN_CPI_MAX];
	unsigned len = result->nodes ? topdown_cpi_stack(tree->table, result, parts) : 0;

	json_nodes(job, tree, result, json);
	json_double(json, "level1_sum_share", result->sum);
	json_text(json, "bottleneck",
		  result->bottleneck < 0 ? NULL : tree->table->nodes[result->bottleneck].name);
	json_double(json, "cpi",
		    result->nodes && expr_has_number(&result->cpi) ? result->cpi.value : NAN);
	json_array(json, "cpi_stack");
	for (unsigned i = 0; i < len; i++) {
		json_object(json, NULL);
		json_text(json, "name", parts[i].name);
		json_u64(json, "depth", parts[i].depth);
		json_double(json, "cpi", parts[i].cpi);
		json_end_object(json);
	}
	json_end_array(json);
	json_events(tree, row, json);
}

static bool is_one(const struct topdown_job *job)
{
	return job->side_count == 1 && job->sides[0].tree_count == 1 &&
	       job->sides[0].trees[0].rows.len == 1 &&
	       !job->sides[0].trees[0].rows.data[0].label[0];
}

/* One tree of one row stands in the document itself; several stand in "trees". */
static void json_sides(const struct topdown_job *job, struct json *json)
{
	if (is_one(job)) {
		json_result(job, &job->sides[0].trees[0], &job->sides[0].trees[0].rows.data[0],
			    json);
		return;
	}
	json_array(json, "trees");
	for (unsigned s = 0; s < job->side_count; s++)
		for (unsigned t = 0; t < job->sides[s].tree_count; t++) {
			const struct topdown_tree *tree = &job->sides[s].trees[t];

			vec_for_each(&tree->rows, row) {
				json_object(json, NULL);
				json_text(json, "side",
					  job->side_count == 1 ? NULL
					  : s                  ? "b"
							       : "a");
				json_text(json, "title", str_text(&job->sides[s].title));
				json_text(json, "core_type", tree->label[0] ? tree->label : NULL);
				json_text(json, "formula_set", tree->table->set);
				json_text(json, "row", row->label[0] ? row->label : NULL);
				json_result(job, tree, row, json);
				json_end_object(json);
			}
		}
	json_end_array(json);
}

static void json_head(struct topdown_job *job, struct json *json)
{
	struct topdown_record record = {0};
	struct str line = {0};

	json_document(json, "topdown");
	json_text(json, "cpu_model", job->cpu_model);
	json_text(json, "formula_set", job->sides[0].trees[0].table->set);
	json_bool(json, "own_thresholds", job->sides[0].trees[0].table->own_thresholds);
	json_u64(json, "runs", job->sides[0].runs);
	json_u64(json, "repeats", MAX(job->options.repeat, 1u));
	json_text(json, "notes", job->notes.len ? str_text(&job->notes) : NULL);
	if (job->options.interval_ns) {
		json_array(json, "intervals");
		return;
	}
	if (topdown_record_line(job, &job->sides[0], &record) == 0)
		topdown_record_text(&record, &line);
	json_text(json, "record", line.len ? str_text(&line) : NULL);
	topdown_record_fini(&record);
	str_fini(&line);
}

void topdown_json(struct topdown_job *job)
{
	struct json *json = &job->json;

	if (!job->header_done)
		json_head(job, json);
	job->header_done = true;
	if (job->options.interval_ns) {
		json_object(json, NULL);
		json_u64(json, "time_ns", job->time_ns);
	}
	json_sides(job, json);
	if (job->options.interval_ns)
		json_end_object(json);
}

/* --- CSV ------------------------------------------------------------------------------------- */

static void csv_row(const struct topdown_job *job, unsigned side, const struct topdown_tree *tree,
		    const struct topdown_row *row, struct table *table)
{
	for (size_t i = 0; row->result.nodes && i < tree->table->node_count; i++) {
		const struct topdown_node *node = &tree->table->nodes[i];
		const struct topdown_value *v = &row->result.nodes[i];

		if (!in_document(job, tree, i))
			continue;
		table_count(table, job->time_ns);
		table_text(table, node->name);
		table_text(table, node->parent < 0 ? NULL : tree->table->nodes[node->parent].name);
		table_count(table, node->level);
		table_text(table, topdown_unit_text(node));
		table_double(table, !expr_has_number(&v->value)  ? NAN
				    : node->unit == TOPDOWN_RATE ? v->value.value
								 : topdown_shown(v->value.value));
		table_double(table, v->stderr_);
		table_double(table, node->over);
		table_count(table, v->holds);
		table_count(table, v->bottleneck);
		table_text(table, expr_state_name(v->value.state));
		table_text(table, v->value.reason[0] ? v->value.reason : NULL);
		table_text(table, job->side_count == 1 ? NULL : side ? "b" : "a");
		table_text(table, tree->label[0] ? tree->label : NULL);
		table_text(table, row->label[0] ? row->label : NULL);
	}
}

int topdown_csv(struct topdown_job *job, struct str *out)
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
		{.key = "side", .kind = CELL_TEXT},
		{.key = "core_type", .kind = CELL_TEXT},
		{.key = "row", .kind = CELL_TEXT},
	};
	struct table *table;
	size_t start = out->len;
	int r = table_new(columns, ARRAY_LEN(columns), &table);

	if (r < 0)
		return r;
	for (unsigned s = 0; s < job->side_count; s++)
		for (unsigned t = 0; t < job->sides[s].tree_count; t++)
			vec_for_each(&job->sides[s].trees[t].rows, row)
				csv_row(job, s, &job->sides[s].trees[t], row, table);
	r = table_status(table);
	table_print_csv(table, ',', out);
	table_free(table);
	if (job->header_done) { /* the header once */
		char *line = out->data ? strchr(out->data + start, '\n') : NULL;

		if (line) {
			size_t head = (size_t)(line + 1 - (out->data + start));

			memmove(out->data + start, line + 1, out->len - start - head + 1);
			out->len -= head;
		}
	}
	job->header_done = true;
	return r;
}
