/* culprit diff: which functions' shares changed between two profiles. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/option.h"
#include "cmd/view-input.h"
#include "profile/diff.h"
#include "view/flamegraph.h"
#include "view/table.h"
#include "view/text.h"
#include "view/tree.h"

struct diff_args {
	struct view_input_options input;
	const char *flame;
	double percent_limit, threshold;
	uint64_t max_rows;
	bool json, csv, total, significant;
};

struct comparison {
	const struct diff_args *args;
	struct view_input base, new;
	struct profile_diff diff;
};

#define ARGS struct diff_args
static const struct option_spec diff_options[] = {
	OPT_FLAG(0, "total", ARGS, total,
		 "Compare the time in each function and what it called; without it, self time."),
	OPT_FLAG(0, "significant", ARGS, significant, "Only rows whose change is significant."),
	OPT_DOUBLE(0, "percent-limit", "PERCENT", ARGS, percent_limit,
		   "Only rows whose share changed by that many percentage points. Default: 0.1 in "
		   "text, 0 "
		   "in CSV and JSON."),
	OPT_U64(0, "max-rows", "N", ARGS, max_rows, "At most that many rows. Default: all."),
	OPT_DOUBLE(0, "threshold", "PERCENT", ARGS, threshold,
		   "Exit with status 2 when a share grew significantly by that many percentage "
		   "points."),
	OPT_TEXT(0, "event", "NAME", ARGS, input.event,
		 "Only this event of a recording, or this value type of a pprof file."),
	OPT_VIEW_INPUT(ARGS),
	OPT_HEADING("Output"),
	OPT_TEXT(0, "flame", "FILE", ARGS, flame,
		 "Also draw NEW as a flame graph (.svg or .html) in the colours of the change."),
	OPT_FLAG(0, "json", ARGS, json, "JSON."),
	OPT_FLAG(0, "csv", ARGS, csv, "CSV: a header and a line per row, shares as fractions."),
	OPT_END,
};

static const struct table_column columns[] = {
	{.key = "base_share", .title = "BASE", .kind = CELL_SHARE},
	{.key = "new_share", .title = "NEW", .kind = CELL_SHARE},
	{.key = "delta_share", .title = "CHANGE", .kind = CELL_SHARE},
	{.key = "significant", .title = "SIGNIFICANT", .kind = CELL_TEXT},
	{.key = "p", .kind = CELL_DOUBLE, .digits = 6},
	{.key = "dso", .title = "OBJECT", .kind = CELL_TEXT, .max_width = 40},
	{.key = "symbol", .title = "FUNCTION", .kind = CELL_TEXT},
	{.key = "base", .kind = CELL_COUNT},
	{.key = "new", .kind = CELL_COUNT},
};

static bool is_shown(const struct comparison *c, const struct diff_row *row)
{
	const struct diff_args *args = c->args;
	double limit = args->percent_limit >= 0  ? args->percent_limit
		       : args->json || args->csv ? 0
						 : 0.1;

	return (!args->significant || row->significant) && !(fabs(row->delta_share) * 100 < limit);
}

static const char *word_of(const struct comparison *c, const struct diff_row *row)
{
	return !c->diff.tested ? NULL : row->significant ? "yes" : "no";
}

static int make_table(const struct comparison *c, bool people, struct table **ret)
{
	const struct strtab *strings = &c->diff.strings;
	struct table *table;
	uint64_t left = c->args->max_rows ? c->args->max_rows : UINT64_MAX;
	int r = table_new(columns, ARRAY_LEN(columns), &table);

	if (r < 0)
		return r;
	vec_for_each(&c->diff.rows, row) {
		const char *object = row->object ? strtab_text(strings, row->object) : NULL;

		if (!is_shown(c, row) || left == 0)
			continue;
		left--;
		table_double(table, row->base_share);
		table_double(table, row->new_share);
		table_double(table, row->delta_share);
		table_text(table, word_of(c, row));
		table_double(table, row->p);
		table_text(table, people && object ? tree_object_base(object) : object);
		table_text(table, strtab_text(strings, row->symbol));
		table_count(table, (uint64_t)(c->args->total ? row->base.total : row->base.self));
		table_count(table, (uint64_t)(c->args->total ? row->new.total : row->new.self));
	}
	r = table_status(table);
	if (r < 0)
		table_free(table);
	else
		*ret = table;
	return r;
}

/* Booleans are no cells of the table model, so the rows of the document are written here. */
static void put_json_rows(const struct comparison *c, struct json *json)
{
	const struct strtab *strings = &c->diff.strings;
	uint64_t left = c->args->max_rows ? c->args->max_rows : UINT64_MAX;

	json_array(json, "rows");
	vec_for_each(&c->diff.rows, row) {
		if (!is_shown(c, row) || left == 0)
			continue;
		left--;
		json_object(json, NULL);
		json_text(json, "symbol", strtab_text(strings, row->symbol));
		json_text(json, "dso", row->object ? strtab_text(strings, row->object) : NULL);
		json_double(json, "base_share", row->base_share);
		json_double(json, "new_share", row->new_share);
		json_double(json, "delta_share", row->delta_share);
		if (c->diff.tested)
			json_bool(json, "significant", row->significant);
		else
			json_null(json, "significant");
		json_double(json, "p", row->p);
		json_i64(json, "base", c->args->total ? row->base.total : row->base.self);
		json_i64(json, "new", c->args->total ? row->new.total : row->new.self);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_side(struct json *json, const char *key, const struct view_input *input,
		     int64_t all)
{
	json_object(json, key);
	json_text(json, "path", input->path);
	view_input_json(input, json);
	json_i64(json, "all", all);
	json_end_object(json);
}

static int print_json(const struct comparison *c, struct str *out)
{
	struct json json = {0};
	int r;

	json_document(&json, "diff");
	put_side(&json, "base", &c->base, c->diff.base_all);
	put_side(&json, "new", &c->new, c->diff.new_all);
	json_text(&json, "by", c->args->total ? "total" : "self");
	json_double(&json, "false_discovery_share", DIFF_FALSE_DISCOVERIES);
	put_json_rows(c, &json);
	json_end_object(&json);
	str_append(out, str_text(&json.out), json.out.len);
	r = str_status(&json.out);
	str_fini(&json.out);
	return r;
}

static void put_input(const char *what, const struct view_input *input, struct str *out)
{
	struct str summary = {0};

	view_input_summary(input, &summary);
	str_printf(out, "# %-9s", what);
	text_clean(out, input->path, strlen(input->path));
	str_puts(out, ": ");
	str_puts(out, str_text(&summary));
	str_putc(out, '\n');
	str_fini(&summary);
}

static int print_text(const struct comparison *c, struct str *out)
{
	struct winsize size;
	bool terminal = isatty(STDOUT_FILENO);
	const struct table_style style = {
		.color = terminal && !getenv("NO_COLOR"),
		.width = terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0,
	};
	struct table *table;
	int r = make_table(c, true, &table);

	if (r < 0)
		return r;
	put_input("base", &c->base, out);
	put_input("new", &c->new, out);
	str_printf(out, "# shares of all by %s time, largest change first\n#\n",
		   c->args->total ? "total" : "self");
	table_print_text(table, &style, out);
	if (table_row_count(table) < c->diff.rows.len) {
		str_puts(out, "#\n# ");
		text_group(out, c->diff.rows.len - table_row_count(table));
		str_puts(out, " rows not shown (--percent-limit, --significant, --max-rows)\n");
	}
	if (!c->diff.tested)
		str_puts(out, "#\n# no numbers of samples: what is significant is not known\n");
	table_free(table);
	return 0;
}

static int print_csv(const struct comparison *c, struct str *out)
{
	struct table *table;
	int r = make_table(c, false, &table);

	if (r < 0)
		return r;
	table_print_csv(table, ',', out);
	table_free(table);
	return 0;
}

static int draw(const struct comparison *c, struct err *err)
{
	const char *path = c->args->flame, *ending = strrchr(path, '.');
	const struct tree_options new_options = {.value = c->new.value},
				  base_options = {.value = c->base.value};
	const struct flamegraph_options options = {.title = c->new.path,
						   .unit = view_input_unit(&c->new),
						   .min_share = -1,
						   .diff = true};
	struct str out = {0};
	struct tree tree;
	int r = tree_init(&tree);

	if (r < 0)
		return r;
	r = tree_add(&tree, &c->new.profile, &new_options, TREE_NEW);
	if (r == 0)
		r = tree_add(&tree, &c->base.profile, &base_options, TREE_BASE);
	if (r == 0)
		r = tree_finish(&tree);
	if (r == 0)
		r = ending && strcmp(ending, ".svg") == 0 ? flamegraph_svg(&tree, &options, &out)
							  : flamegraph_html(&tree, &options, &out);
	tree_fini(&tree);
	if (r < 0)
		err_set(err, r, "%s: %s", path,
			r == -ENODATA ? "no sample to draw" : strerrordesc_np(-r));
	else
		r = file_write_atomic(path, out.data, out.len, 0644, err);
	str_fini(&out);
	return r;
}

static bool has_regression(const struct comparison *c)
{
	vec_for_each(&c->diff.rows, row)
		if (row->significant && row->delta_share * 100 >= c->args->threshold)
			return true;
	return false;
}

static int present(const struct command *self, struct comparison *c)
{
	struct err err = {0};
	struct str out = {0};
	int status, r = 0;

	if (strcmp(view_input_unit(&c->base), view_input_unit(&c->new)) != 0)
		return cmd_failf(self, "%s counts %s, %s counts %s: they cannot be compared",
				 c->base.path, view_input_unit(&c->base), c->new.path,
				 view_input_unit(&c->new));
	r = profile_diff(&c->base.profile, c->base.value, &c->new.profile, c->new.value,
			 c->args->total, &c->diff);
	if (r == 0 && (c->diff.base_all == 0 || c->diff.new_all == 0))
		r = err_set(&err, -ENODATA, "%s: no samples to compare",
			    c->diff.base_all == 0 ? c->base.path : c->new.path);
	if (r == 0)
		r = c->args->json  ? print_json(c, &out)
		    : c->args->csv ? print_csv(c, &out)
				   : print_text(c, &out);
	if (r == 0)
		r = str_status(&out);
	if (r == 0 && c->args->flame)
		r = draw(c, &err);
	status = r < 0 ? cmd_fail(self, r, &err) : cmd_write_stdout(self, out.data, out.len);
	if (status == EXIT_DONE &&
	    (view_input_incomplete(&c->base) || view_input_incomplete(&c->new)))
		status = EXIT_INCOMPLETE;
	if (status == EXIT_DONE && c->args->threshold >= 0 && has_regression(c))
		status = EXIT_THRESHOLD;
	profile_diff_fini(&c->diff);
	str_fini(&out);
	return status;
}

static int diff_run(const struct command *self, int argc, char **argv)
{
	struct diff_args args = {.percent_limit = -1, .threshold = -1};
	struct comparison c = {.args = &args};
	struct err err = {0};
	int status, r, at = options_parse(self, &args, argc, argv);

	if (argc - at != 2)
		return cmd_failf(self, "two profiles are compared: culprit diff BASE NEW");
	if (args.json && args.csv)
		return cmd_failf(self, "--json and --csv exclude each other");
	args.input.path = argv[at];
	r = view_input_open(self, &args.input, &c.base, &err);
	if (r < 0)
		return cmd_fail(self, r, &err);
	args.input.path = argv[at + 1];
	r = view_input_open(self, &args.input, &c.new, &err);
	if (r < 0) {
		view_input_close(&c.base);
		return cmd_fail(self, r, &err);
	}
	status = present(self, &c);
	view_input_close(&c.base);
	view_input_close(&c.new);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.args = "[OPTIONS] BASE NEW",
	.summary = "what changed between two profiles, function by function",
	.details =
		"Compares two profiles (recordings, pprof, folded stacks or what else convert "
		"reads) "
		"by each function's share of all, so that recordings of different length are "
		"comparable, and lists the largest changes first.\n\n"
		"A change is called significant when a two-proportion test of the numbers of "
		"samples "
		"says so; of all rows that are called so, one in 20 is expected to be wrong "
		"(Benjamini and Hochberg). The test takes samples as independent. Two runs of the "
		"same "
		"program differ by more than that when their work comes in bursts: compare several "
		"pairs, or ask 'culprit compare' whether the program became slower at all. A "
		"profile "
		"without numbers of samples has no such answer, which is shown as unknown.\n\n"
		"Shares depend on each other: when one function grows, all others shrink.",
	.examples =
		"culprit diff old.data new.data\n\twhat grew and what shrank, by self time\n"
		"culprit diff old.pb.gz new.pb.gz --total --flame diff.html\n\tby total time, and "
		"as a picture\n"
		"culprit diff old.data new.data --threshold 2\n\tfails with status 2 when a "
		"function's share grew by 2 points\n",
	.exits = "2 a share grew significantly by --threshold, 3 the comparison stands, but a "
		 "recording is cut, damaged or was never finished",
	.options = diff_options,
	.run = diff_run,
};
