/* culprit latency diff: what changed between two runs, quantile by quantile and source by source.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/latency.h"
#include "latency/run-diff.h"
#include "view/table.h"
#include "view/text.h"

/* Sources that take less than this share of the time before and after are not for people's eyes. */
#define SHOWN_SHARE 1e-7

static const char *context_text(int context)
{
	return context < 0 ? "gap" : latency_context_name((enum latency_context)context);
}

static const char *quantile_text(double share, char *buffer, size_t bytes)
{
	if (share >= 1)
		return "max";
	snprintf(buffer, bytes, "p%.10g", share * 100);
	return buffer;
}

static void put_ns(struct table *table, int64_t ns)
{
	if (ns == LATENCY_UNKNOWN_NS)
		table_unknown(table);
	else
		table_count(table, (uint64_t)ns);
}

static int make_quantiles(const struct latency_diff *diff, struct table **ret)
{
	static const struct table_column columns[] = {
		{.key = "latency", .title = "LATENCY", .kind = CELL_TEXT},
		{.key = "quantile", .title = "QUANTILE", .kind = CELL_TEXT},
		{.key = "base_ns", .title = "BASE", .kind = CELL_TIME_NS},
		{.key = "new_ns", .title = "NEW", .kind = CELL_TIME_NS},
		{.key = "ratio", .title = "NEW/BASE", .kind = CELL_DOUBLE, .digits = 3},
		{.key = "significant", .title = "SIGNIFICANT", .kind = CELL_TEXT},
		{.key = "p", .kind = CELL_DOUBLE, .digits = 6},
	};
	struct table *table;
	int r = table_new(columns, ARRAY_LEN(columns), &table);
	if (r < 0)
		return r;
	vec_for_each(&diff->rows, row) {
		char quantile[32];
		table_text(table, context_text(row->context));
		table_text(table, quantile_text(row->share, quantile, sizeof(quantile)));
		put_ns(table, row->base_ns);
		put_ns(table, row->new_ns);
		table_double(table, row->ratio);
		table_text(table, isnan(row->p) ? NULL : row->significant ? "yes" : "no");
		table_double(table, row->p);
	}
	*ret = table;
	return table_status(table);
}

static const char *change_text(const struct latency_diff_source *source)
{
	if (source->is_new)
		return "new";
	if (source->is_gone)
		return "gone";
	if (!source->significant)
		return "same rate";
	return source->new_rate > source->base_rate ? "more" : "less";
}

static void put_name(const struct latency_diff_source *source, struct str *out)
{
	str_puts(out, source->name);
	if (source->number >= 0 && source->class != NOISE_THREAD)
		str_printf(out, ":%d", source->number);
	if (*source->function)
		str_printf(out, " %s", source->function);
}

static int make_sources(const struct latency_diff *diff, bool all, struct table **ret)
{
	static const struct table_column columns[] = {
		{.key = "kind", .title = "KIND", .kind = CELL_TEXT},
		{.key = "name", .title = "SOURCE OF NOISE", .kind = CELL_TEXT, .max_width = 48},
		{.key = "change", .title = "CHANGE", .kind = CELL_TEXT},
		{.key = "base_rate", .title = "BASE/s", .kind = CELL_DOUBLE, .digits = 1},
		{.key = "new_rate", .title = "NEW/s", .kind = CELL_DOUBLE, .digits = 1},
		{.key = "base_share", .title = "BASE OF TIME", .kind = CELL_SHARE, .digits = 4},
		{.key = "new_share", .title = "NEW OF TIME", .kind = CELL_SHARE, .digits = 4},
		{.key = "base_max_ns", .title = "BASE MAX", .kind = CELL_TIME_NS},
		{.key = "new_max_ns", .title = "NEW MAX", .kind = CELL_TIME_NS},
	};
	struct table *table;
	int r = table_new(columns, ARRAY_LEN(columns), &table);
	if (r < 0)
		return r;
	vec_for_each(&diff->sources, source) {
		struct str name = {0};
		if (!all && source->base_share < SHOWN_SHARE && source->new_share < SHOWN_SHARE)
			continue;
		put_name(source, &name);
		table_text(table, noise_class_name(source->class));
		table_text(table, str_text(&name));
		str_fini(&name);
		table_text(table, change_text(source));
		table_double(table, source->base_rate);
		table_double(table, source->new_rate);
		table_double(table, source->base_share);
		table_double(table, source->new_share);
		put_ns(table,
		       source->base_max_ns ? (int64_t)source->base_max_ns : LATENCY_UNKNOWN_NS);
		put_ns(table,
		       source->new_max_ns ? (int64_t)source->new_max_ns : LATENCY_UNKNOWN_NS);
	}
	*ret = table;
	return table_status(table);
}

static void put_side(const char *what, const struct latency_input *input, struct str *out)
{
	str_printf(out, "# %-5s", what);
	text_clean(out, input->path, strlen(input->path));
	str_printf(out, ": %s, engine %c (%s)", latency_tool_name(input->run.tool),
		   latency_engine_letter(input->run.engine),
		   latency_engine_name(input->run.engine));
	if (input->run.duration_ns)
		str_printf(out, ", %.1f s", (double)input->run.duration_ns / 1e9);
	str_puts(out, latency_run_incomplete(&input->run) ? ", incomplete\n" : "\n");
}

static void put_text(const struct latency_input *inputs, const struct latency_diff *diff,
		     struct table *quantiles, struct table *sources, struct str *out)
{
	put_side("base", &inputs[0], out);
	put_side("new", &inputs[1], out);
	if (inputs[0].run.engine != inputs[1].run.engine)
		str_puts(out, "# measured by different engines: part of a change may be theirs\n");
	str_putc(out, '\n');
	latency_print_table(quantiles, out);
	if (table_row_count(sources)) {
		str_putc(out, '\n');
		latency_print_table(sources, out);
	}
	if (!diff->rates_known && diff->sources.len)
		str_puts(out, "# a run does not tell how long it took: rates are unknown\n");
}

static int put_all(const struct latency_args *args, const struct latency_input *inputs,
		   const struct latency_diff *diff, struct str *out)
{
	struct table *quantiles = NULL, *sources = NULL;
	int r = make_quantiles(diff, &quantiles);
	if (r == 0)
		r = make_sources(diff, args->json, &sources);
	if (r == 0 && args->json) {
		struct json json = {0};
		json_document(&json, "latency_diff");
		json_text(&json, "base", inputs[0].path);
		json_text(&json, "new", inputs[1].path);
		table_print_json(quantiles, "quantiles", &json);
		table_print_json(sources, "sources", &json);
		json_end_object(&json);
		str_append(out, str_text(&json.out), json.out.len);
		r = str_status(&json.out);
		str_fini(&json.out);
	} else if (r == 0 && args->csv) {
		table_print_csv(quantiles, ',', out);
	} else if (r == 0) {
		put_text(inputs, diff, quantiles, sources, out);
	}
	table_free(quantiles);
	table_free(sources);
	return r < 0 ? r : str_status(out);
}

static bool is_regression(const struct latency_diff *diff, double percent)
{
	vec_for_each(&diff->rows, row) {
		if (row->significant && row->ratio >= 1 + percent / 100)
			return true;
	}
	return false;
}

int latency_diff_verb(const struct command *self, const struct latency_args *args,
		      struct latency_input *inputs, unsigned count)
{
	struct latency_diff diff;
	struct str out = {0};
	if (count != 2)
		return cmd_failf(self, "two runs are compared: culprit latency diff BASE NEW");
	if (inputs[0].run.tool != inputs[1].run.tool)
		return cmd_failf(self, "%s is of %s, %s of %s: they cannot be compared",
				 inputs[0].path, latency_tool_name(inputs[0].run.tool),
				 inputs[1].path, latency_tool_name(inputs[1].run.tool));
	int r = latency_diff_make(&inputs[0].run, &inputs[1].run, &diff);
	if (r < 0)
		return cmd_fail(self, r, NULL);
	r = put_all(args, inputs, &diff, &out);
	int status =
		r < 0 ? cmd_fail(self, r, NULL) : cmd_write_stdout(self, str_text(&out), out.len);
	if (status == EXIT_DONE && args->gate >= 0 && is_regression(&diff, args->gate))
		status = EXIT_THRESHOLD;
	if (status == EXIT_DONE &&
	    (latency_run_incomplete(&inputs[0].run) || latency_run_incomplete(&inputs[1].run)))
		status = EXIT_INCOMPLETE;
	str_fini(&out);
	latency_diff_fini(&diff);
	return status;
}
