/* Results as trees for people. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/topdown.h"
#include "view/text.h"

#define BAR_COLUMNS   24
#define NAME_COLUMNS  34
#define WRAP_COLUMNS  110
#define DEFAULT_LEVEL 2 /* of recorded counts, unless something was marked deeper */

static const char *const unit_words[] = {
	[TOPDOWN_SLOTS] = "slots",   [TOPDOWN_CLOCKS] = "cycles",   [TOPDOWN_UOPS] = "operations",
	[TOPDOWN_STALLS] = "stalls", [TOPDOWN_EVENTS] = "branches", [TOPDOWN_RATE] = "rate",
};

const char *topdown_unit_text(const struct topdown_node *node)
{
	return node->unit == TOPDOWN_RATE && node->unit_text ? node->unit_text
							     : unit_words[node->unit];
}

/* Level 1 always; below it what was asked for, or what has a number and belongs to a marked parent
 * or to level 2. */
bool topdown_is_shown(const struct topdown_job *job, const struct topdown_tree *tree,
		      const struct topdown_result *result, size_t i)
{
	const struct topdown_node *node = &tree->table->nodes[i];

	if (tree->chosen)
		return tree->chosen[i];
	if (node->level > topdown_max_level(job, tree->table))
		return false;
	if (node->level == 1 || job->options.all || (job->options.level && !job->options.drill))
		return true;
	return result->nodes && expr_has_number(&result->nodes[i].value) &&
	       (node->level <= DEFAULT_LEVEL || result->nodes[node->parent].holds);
}

/* What is shown together: one result, or those of both sides. */
struct shown {
	const struct topdown_job *job;
	const struct topdown_tree *tree;
	const struct topdown_result *a, *b; /* b NULL: one side */
	struct str *out;
};

static bool node_shown(const struct shown *s, size_t i)
{
	return topdown_is_shown(s->job, s->tree, s->a, i) ||
	       (s->b && topdown_is_shown(s->job, s->tree, s->b, i));
}

/* A rate as it is: "12.3 MPKI". */
static void print_rate(const struct topdown_value *v, struct str *out)
{
	if (expr_has_number(&v->value))
		str_printf(out, "%8.4g          ", v->value.value);
	else
		str_printf(out, "%8s          ", "-");
}

static void print_share(const struct topdown_value *v, enum topdown_unit unit, struct str *out)
{
	char error[32] = "";

	if (unit == TOPDOWN_RATE) {
		print_rate(v, out);
		return;
	}
	if (!expr_has_number(&v->value)) {
		str_printf(out, "%8s          ", "-");
		return;
	}
	if (!isnan(v->stderr_) && v->stderr_ > 0)
		snprintf(error, sizeof(error), "+-%4.1f", 100 * v->stderr_);
	str_printf(out, "%7.1f%% %-8s ", 100 * MAX(v->value.value, 0.0), error);
}

static void print_mark(const struct shown *s, size_t i)
{
	const struct topdown_value *a = &s->a->nodes[i], *b = s->b ? &s->b->nodes[i] : NULL;

	if (b && (a->bottleneck || b->bottleneck))
		str_printf(s->out, " <==%s%s", a->bottleneck ? " A" : "",
			   b->bottleneck ? " B" : "");
	else if (a->bottleneck)
		str_puts(s->out, " <==");
	else if (a->value.state == EXPR_WEAK || (b && b->value.state == EXPR_WEAK))
		str_puts(s->out, " (weak)");
}

static const char *missing_word(const struct topdown_value *v)
{
	return v->value.state == EXPR_INVALID         ? "refused"
	       : v->value.state == EXPR_NOT_SUPPORTED ? "not supported"
						      : "not counted";
}

static void print_bar(const struct topdown_value *v, const struct topdown_node *node,
		      struct str *out)
{
	int filled = (int)lround(BAR_COLUMNS * topdown_shown(v->value.value));

	for (int c = 0; c < BAR_COLUMNS; c++)
		str_putc(out, node->unit == TOPDOWN_RATE ? ' ' : c < filled ? '#' : '.');
	str_printf(out, " %-10s", topdown_unit_text(node));
}

static void print_two(const struct shown *s, size_t i)
{
	const struct topdown_value *a = &s->a->nodes[i], *b = &s->b->nodes[i];
	const struct topdown_node *node = &s->tree->table->nodes[i];

	print_share(a, node->unit, s->out);
	print_share(b, node->unit, s->out);
	if (node->unit == TOPDOWN_RATE)
		str_printf(s->out, "%6s ", "");
	else if (expr_has_number(&a->value) && expr_has_number(&b->value))
		str_printf(s->out, "%+6.1f ",
			   100 * (MAX(b->value.value, 0.0) - MAX(a->value.value, 0.0)));
	else
		str_printf(s->out, "%6s ", "-");
	str_printf(s->out, "%-10s", topdown_unit_text(node));
}

static void print_node(const struct shown *s, size_t i)
{
	const struct topdown_node *node = &s->tree->table->nodes[i];
	const struct topdown_value *v = &s->a->nodes[i];
	int indent = 2 * (int)node->level;
	size_t start;

	str_printf(s->out, "%*s%-*s", indent, "", MAX(NAME_COLUMNS - indent, 1), node->title);
	start = s->out->len;
	if (s->b) {
		print_two(s, i);
	} else {
		print_share(v, node->unit, s->out);
		start = s->out->len;
		if (expr_has_number(&v->value))
			print_bar(v, node, s->out);
		else
			str_puts(s->out, missing_word(v));
	}
	print_mark(s, i);
	while (s->out->len > start && s->out->data[s->out->len - 1] == ' ')
		s->out->data[--s->out->len] = '\0';
	str_putc(s->out, '\n');
}

/* Children right below their parent, as the table has them. */
static void print_below(const struct shown *s, int parent)
{
	for (size_t i = 0; i < s->tree->table->node_count; i++) {
		if (s->tree->table->nodes[i].parent != parent)
			continue;
		if (node_shown(s, i))
			print_node(s, i);
		print_below(s, (int)i);
	}
}

/* Every reason once, with the nodes it holds for. */
static void print_reasons(const struct shown *s, const struct topdown_result *result,
			  const char *side)
{
	static const char *const words[] = {"measured", "estimated", "weak",
					    "missing",  "missing",   "refused"};
	size_t count = s->tree->table->node_count;

	for (size_t i = 0; i < count; i++) {
		const struct expr_value *v = &result->nodes[i].value;
		bool seen = v->reason[0] == '\0' || !node_shown(s, i);

		for (size_t k = 0; k < i && !seen; k++)
			seen = node_shown(s, k) &&
			       strcmp(result->nodes[k].value.reason, v->reason) == 0;
		if (seen)
			continue;
		str_printf(s->out, "  %s%s: ", side, words[v->state]);
		for (size_t k = i, shown = 0; k < count; k++)
			if (node_shown(s, k) &&
			    strcmp(result->nodes[k].value.reason, v->reason) == 0)
				str_printf(s->out, "%s%s", shown++ ? ", " : "",
					   s->tree->table->nodes[k].title);
		str_printf(s->out, ": %s\n", v->reason);
	}
}

static void print_verdict(const struct shown *s, const struct topdown_result *result,
			  const char *side)
{
	const struct topdown_table *table = s->tree->table;
	const struct topdown_node *node;

	if (result->bottleneck < 0) {
		bool weak = false;

		for (size_t i = 0; i < table->node_count; i++)
			weak |= result->nodes[i].value.state >= EXPR_WEAK &&
				table->nodes[i].level == 1;
		str_printf(s->out, "  %s%s bottleneck is marked: %s.\n", side,
			   side[0] ? "no" : "No",
			   weak ? "not all of level 1 can be trusted"
				: "nothing is over its threshold");
		return;
	}
	node = &table->nodes[result->bottleneck];
	str_printf(s->out, "  %s%s: %s\n  What helps: %s\n", side, node->title, node->means,
		   node->helps);
	while (node->parent >= 0)
		node = &table->nodes[node->parent];
	if (strcmp(node->name, "retiring") == 0)
		str_puts(s->out,
			 "  Retiring dominates: the core is kept busy. That does not say that "
			 "the work is needed, or that\n"
			 "  fewer, wider instructions could not do it.\n");
}

static void print_sums(const struct shown *s, const struct topdown_result *result, const char *side)
{
	bool sum = !isnan(result->sum), cpi = expr_has_number(&result->cpi);

	if (sum)
		str_printf(s->out, "  %slevel 1 adds up to %.1f%%", side, 100 * result->sum);
	if (cpi)
		str_printf(s->out, "%s%.3f cycles per instruction",
			   sum       ? "; "
			   : side[0] ? side
				     : "  ",
			   result->cpi.value);
	if (sum || cpi)
		str_putc(s->out, '\n');
}

/* On a machine with two kinds of cores: how much of the time was spent on these. */
static void print_residency(const struct topdown_tree *tree, const struct topdown_row *row,
			    struct str *out)
{
	uint64_t enabled = 0, running = 0;

	vec_for_each(&row->counts.counts, count)
		if (count->enabled_ns > 0 && count->running_ns >= running) {
			enabled = count->enabled_ns;
			running = count->running_ns;
		}
	str_printf(out, " on %s", tree->label);
	if (tree->pmu.partial && enabled > 0)
		str_printf(out, ", %.1f%% of the time there",
			   100 * (double)running / (double)enabled);
}

static void print_heading(const struct topdown_job *job, const struct topdown_tree *tree,
			  const struct topdown_row *row, struct str *out)
{
	if (job->options.interval_ns)
		str_printf(out, "\n  at %.3f s", (double)job->time_ns / 1e9);
	else if (job->side_count == 2)
		str_printf(out, "\n  A: %s\n  B: %s\n ", str_text(&job->sides[0].title),
			   str_text(&job->sides[1].title));
	else
		str_printf(out, "\n  %s", str_text(&job->sides[0].title));
	if (row->label[0]) {
		str_puts(out, ": ");
		text_clean(out, row->label, strlen(row->label));
	}
	if (tree->label[0])
		print_residency(tree, row, out);
	str_printf(out, "   [%s]\n\n", tree->table->set);
}

static void print_row(const struct topdown_job *job, unsigned t, size_t r, struct str *out)
{
	const struct topdown_tree *tree = &job->sides[0].trees[t];
	const struct topdown_row *row = &tree->rows.data[r];
	bool two = job->side_count == 2 && job->sides[1].trees[t].rows.len > r;
	struct shown s = {job, tree, &row->result,
			  two ? &job->sides[1].trees[t].rows.data[r].result : NULL, out};

	print_heading(job, tree, row, out);
	if (!s.a->nodes || (s.b && !s.b->nodes)) {
		str_puts(out, "  Nothing was counted.\n");
		return;
	}
	if (job->options.cpi_stack) {
		topdown_cpi_text(tree->table, s.a, s.b, out);
		return;
	}
	if (two)
		str_printf(out, "%*s%8s %-8s %8s %-8s  change\n", NAME_COLUMNS, "", "A", "", "B",
			   "");
	print_below(&s, -1);
	str_putc(out, '\n');
	print_sums(&s, s.a, two ? "A: " : "");
	if (two)
		print_sums(&s, s.b, "B: ");
	print_reasons(&s, s.a, two ? "A: " : "");
	if (two)
		print_reasons(&s, s.b, "B: ");
	print_verdict(&s, s.a, two ? "A: " : "");
	if (two)
		print_verdict(&s, s.b, "B: ");
	if (tree->table->own_thresholds && (s.a->bottleneck >= 0 || (two && s.b->bottleneck >= 0)))
		str_puts(out, "  (The vendor publishes no thresholds for this core: they are "
			      "ours.)\n");
}

/* A line of any length, broken at blanks. */
static void print_wrapped(const char *text, size_t len, struct str *out)
{
	size_t column = 0;

	for (const char *at = text, *end = text + len; at < end;) {
		size_t word = strcspn(at, " \n");

		word = MIN(word, (size_t)(end - at));
		if (column > 0 && column + 1 + word > WRAP_COLUMNS) {
			str_puts(out, "\n    ");
			column = 2;
		} else {
			str_puts(out, column ? " " : "  ");
		}
		str_append(out, at, word);
		column += word + 1;
		at += word;
		at += at < end && *at == ' ';
	}
	str_putc(out, '\n');
}

static void print_notes(const struct topdown_job *job, struct str *out)
{
	const char *line = str_text(&job->notes), *end;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
		print_wrapped(line, (size_t)(end - line), out);
}

/* The line that finds the code, for a mark or where nothing was counted but time. */
static int print_record(const struct topdown_job *job, struct str *out)
{
	struct topdown_record record = {0};
	struct str text = {0};
	bool marked = false;
	int r = 0;

	for (unsigned t = 0; t < job->sides[0].tree_count; t++)
		vec_for_each(&job->sides[0].trees[t].rows, row)
			marked |= row->result.bottleneck >= 0;
	if (marked)
		r = topdown_record_line(job, &job->sides[0], &record);
	if (marked && r == 0) {
		str_puts(out, "  Find the code: ");
		topdown_record_text(&record, &text);
		text_clean(out, str_text(&text), text.len);
		str_putc(out, '\n');
	}
	str_fini(&text);
	topdown_record_fini(&record);
	return r;
}

static int print_text(struct topdown_job *job, struct str *out)
{
	for (unsigned t = 0; t < job->sides[0].tree_count; t++)
		for (size_t r = 0; r < job->sides[0].trees[t].rows.len; r++)
			print_row(job, t, r, out);
	if (job->options.interval_ns)
		return 0;
	print_notes(job, out);
	return job->options.cpi_stack || job->side_count == 2 ? 0 : print_record(job, out);
}

int topdown_show(struct topdown_job *job, struct err *err)
{
	struct str out = {0};
	int r = 0;

	if (job->options.json) {
		topdown_json(job);
		return 0;
	}
	r = job->options.csv ? topdown_csv(job, &out) : print_text(job, &out);
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
