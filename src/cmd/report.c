/* culprit report: who used the time, from a recording, a pprof file or folded stacks. */
#include <errno.h>
#include <langinfo.h>
#include <linux/perf_event.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/option.h"
#include "cmd/view-header.h"
#include "cmd/view-input.h"
#include "view/report.h"
#include "view/table.h"
#include "view/text.h"
#include "view/tree.h"

struct report_args {
	struct view_input_options input;
	const char *sort, *comm, *cgroup, *dso, *symbol;
	double percent_limit, graph_limit;
	uint64_t max_rows;
	bool inlines, children, no_children, stdio, json, csv, header, graph_asked, ascii, inverted;
	struct report_graph graph;
};

static int set_graph(void *options, const char *value, struct err *err)
{
	struct report_args *args = options;
	const char *at = value;

	args->graph_asked = true;
	if (!value)
		return 0;
	for (;;) {
		char word[32] = "";
		size_t len = strcspn(at, ",");
		double number;

		if (len < sizeof(word))
			memcpy(word, at, len);
		if (strcmp(word, "caller") == 0)
			args->graph.mode = REPORT_GRAPH_CALLER;
		else if (strcmp(word, "callee") == 0)
			args->graph.mode = REPORT_GRAPH_CALLEE;
		else if (strcmp(word, "none") == 0)
			args->graph_asked = false;
		else if (strcmp(word, "fractal") == 0)
			args->graph.fractal = true;
		else if (strcmp(word, "graph") == 0)
			args->graph.fractal = false;
		else if (parse_double(word, &number) == 0 && number >= 0 && number <= 100)
			args->graph_limit = number;
		else
			return err_set(err, -EINVAL,
				       "'%.*s' is not caller, callee, none, graph, fractal or a "
				       "percentage",
				       (int)len, at);
		if (at[len] == '\0')
			return 0;
		at += len + 1;
	}
}

#define ARGS struct report_args
static const struct option_spec report_options[] = {
	OPT_TEXT('i', "input", "FILE", ARGS, input.path,
		 "What to read: a recording (perf.data), pprof, folded stacks, a speedscope or "
		 "Firefox profile or the text of perf "
		 "script, plain or "
		 "compressed; - is "
		 "standard input. Default: perf.data."),
	OPT_TEXT(0, "event", "NAME", ARGS, input.event,
		 "Only this event of a recording, or this value type of a pprof file."),
	OPT_VIEW_INPUT(ARGS),
	OPT_FLAG(0, "inline", ARGS, inlines,
		 "Charge inlined functions by themselves, from debug information. By default a row "
		 "is the "
		 "function whose code it is, as in perf."),
	OPT_HEADING("Rows"),
	OPT_TEXT('s', "sort", "KEYS", ARGS, sort,
		 "What makes a row, separated by commas: comm, pid, tid, cpu, cgroup, pidns, "
		 "cgroupns (namespaces as /proc/PID/ns shows them, where perf record had "
		 "--namespaces), dso, symbol, file. Default: comm,dso,symbol."),
	OPT_FLAG(0, "children", ARGS, children,
		 "Order by total time, callees included. This is the default."),
	OPT_FLAG(0, "no-children", ARGS, no_children,
		 "Order by self time and leave out the totals."),
	OPT_DOUBLE(0, "percent-limit", "PERCENT", ARGS, percent_limit,
		   "Leave out rows below this share. Default: 0.1 in text, 0 in JSON and CSV."),
	OPT_U64(0, "max-rows", "N", ARGS, max_rows, "At most this many rows. Default: all."),
	OPT_TEXT(0, "comm", "NAMES", ARGS, comm,
		 "Only samples of these commands: globs, separated by commas. Shares stay those of "
		 "everything."),
	OPT_TEXT(0, "cgroup", "NAMES", ARGS, cgroup,
		 "Only samples of these cgroups: globs of whole paths, separated by commas. They "
		 "are known when "
		 "perf record had --all-cgroups."),
	OPT_TEXT(0, "dso", "NAMES", ARGS, dso, "Only rows of these objects, by path or file name."),
	OPT_TEXT('S', "symbol", "NAMES", ARGS, symbol, "Only rows of these functions."),
	OPT_HEADING("Call graphs"),
	OPT_CALL('g', "call-graph", "[MODE]", set_graph,
		 "Below each row its call graph: caller (what it calls), callee (who calls it), "
		 "none; with graph "
		 "(shares of everything) or fractal (of the line above), and the least percentage "
		 "shown: "
		 "'caller,fractal,1'. Default when no mode is given: caller, and callee with "
		 "--no-children."),
	OPT_FLAG('G', "inverted", ARGS, inverted, "The same as --call-graph=callee."),
	OPT_FLAG(0, "ascii", ARGS, ascii, "Draw call graphs with ASCII characters."),
	OPT_HEADING("Output"),
	OPT_FLAG(0, "header", ARGS, header,
		 "Say more about the recording: all that its header holds."),
	OPT_FLAG(0, "stdio", ARGS, stdio,
		 "Print text (the default; accepted for scripts written for perf)."),
	OPT_FLAG(0, "json", ARGS, json, "Print one JSON document, rows by self time."),
	OPT_FLAG(0, "csv", ARGS, csv,
		 "Print comma-separated values with a header row, by self time."),
	OPT_END,
};

static const struct table_column columns[] = {
	{"total_share", "Total", CELL_SHARE, 2, false, 0},
	{"self_share", "Self", CELL_SHARE, 2, false, 0},
	{"comm", "Command", CELL_TEXT, 0, true, 20},
	{"pid", "Pid", CELL_COUNT, 0, false, 0},
	{"tid", "Tid", CELL_COUNT, 0, false, 0},
	{"cpu", "CPU", CELL_COUNT, 0, false, 0},
	{"cgroup", "Cgroup", CELL_TEXT, 0, true, 40},
	{"pidns", "PID namespace", CELL_TEXT, 0, true, 0},
	{"cgroupns", "Cgroup namespace", CELL_TEXT, 0, true, 0},
	{"dso", "Object", CELL_TEXT, 0, true, 32},
	{"symbol", "Symbol", CELL_TEXT, 0, true, 0},
	{"file", "File", CELL_TEXT, 0, true, 48},
	{"self", NULL, CELL_COUNT, 0, false, 0},
	{"total", NULL, CELL_COUNT, 0, false, 0},
};

static const unsigned column_keys[ARRAY_LEN(columns)] = {
	[2] = REPORT_COMM,    [3] = REPORT_PID,   [4] = REPORT_TID,      [5] = REPORT_CPU,
	[6] = REPORT_CGROUP,  [7] = REPORT_PIDNS, [8] = REPORT_CGROUPNS, [9] = REPORT_DSO,
	[10] = REPORT_SYMBOL, [11] = REPORT_FILE,
};

static void number_cell(struct table *table, int64_t value)
{
	if (value < 0)
		table_unknown(table);
	else
		table_count(table, (uint64_t)value);
}

static void text_cell(struct table *table, const struct tree *tree, uint32_t string, bool base)
{
	const char *text = strtab_text(&tree->strings, string);

	table_text(table, string == 0 ? NULL : base ? tree_object_base(text) : text);
}

/* Keys that no row has a value for ("folded" text has no commands) are no columns for people. */
static unsigned keys_with_values(const struct report *report, unsigned keys)
{
	unsigned seen = 0;

	for (size_t i = 0; i < report->rows.len; i++) {
		const struct report_row *row = &report->rows.data[i];

		seen |= row->comm ? REPORT_COMM : 0;
		seen |= row->dso ? REPORT_DSO : 0;
		seen |= row->file ? REPORT_FILE : 0;
		seen |= row->pid >= 0 ? REPORT_PID : 0;
		seen |= row->tid >= 0 ? REPORT_TID : 0;
		seen |= row->cpu >= 0 ? REPORT_CPU : 0;
		seen |= row->cgroup ? REPORT_CGROUP : 0;
		seen |= row->pidns ? REPORT_PIDNS : 0;
		seen |= row->cgroupns ? REPORT_CGROUPNS : 0;
		seen |= REPORT_SYMBOL;
	}
	return report->rows.len ? keys & seen : keys;
}

/* people: the text form, where only keys are columns, objects are short and kernel frames are
 * marked. */
static int make_table(const struct tree *tree, const struct report *report, unsigned keys,
		      const struct report_args *args, bool people, struct table **ret)
{
	struct table_column shown[ARRAY_LEN(columns)];
	struct table *table;
	int r;

	memcpy(shown, columns, sizeof(columns));
	keys = keys_with_values(report, keys);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (column_keys[i] && !(keys & column_keys[i]))
			shown[i].title = NULL;
	if (args->no_children)
		shown[0].title = NULL;
	r = table_new(shown, ARRAY_LEN(shown), &table);
	if (r < 0)
		return r;
	for (size_t i = 0; i < report->rows.len; i++) {
		const struct report_row *row = &report->rows.data[i];
		double all = report->all > 0 ? (double)report->all : 1;

		table_double(table, (double)row->total / all);
		table_double(table, (double)row->self / all);
		text_cell(table, tree, row->comm, false);
		number_cell(table, row->pid);
		number_cell(table, row->tid);
		number_cell(table, row->cpu);
		text_cell(table, tree, row->cgroup, false);
		text_cell(table, tree, row->pidns, false);
		text_cell(table, tree, row->cgroupns, false);
		text_cell(table, tree, row->dso, people);
		text_cell(table, tree, row->symbol, false);
		text_cell(table, tree, row->file, false);
		table_count(table, (uint64_t)row->self);
		table_count(table, (uint64_t)row->total);
	}
	r = table_status(table);
	if (r < 0) {
		table_free(table);
		return r;
	}
	*ret = table;
	return 0;
}

static void put_events(const struct view_input *input, struct str *out)
{
	uint32_t count = 0;
	const struct session_event *events =
		input->session ? session_events(input->session, &count) : NULL;

	for (uint32_t i = 0; i < count; i++) {
		str_puts(out, "# event    ");
		text_clean(out, events[i].name, strlen(events[i].name));
		str_puts(out, ": ");
		text_group(out, events[i].samples);
		str_puts(out, " samples");
		if (events[i].frequency_hz)
			str_printf(out, ", %llu Hz", (unsigned long long)events[i].frequency_hz);
		if (events[i].period) {
			str_puts(out, ", one per ");
			text_group(out, events[i].period);
		}
		/* Software clocks have no skid to be precise about. */
		if (events[i].type != PERF_TYPE_SOFTWARE)
			str_puts(out, events[i].precise
					      ? ", precise"
					      : ", not precise: may name a later instruction");
		str_putc(out, '\n');
	}
}

static void put_stacks(const struct session_stats *stats, struct str *out)
{
	if (stats->unwound_stacks == 0)
		return;
	str_puts(out, "# stacks   ");
	text_group(out, stats->unwound_stacks - stats->cut_stacks - stats->lost_stacks);
	str_puts(out, " of ");
	text_group(out, stats->unwound_stacks);
	str_printf(out, " complete, unwound %s; ",
		   stats->unwound_live ? "while recording" : "from copies");
	text_group(out, stats->cut_stacks);
	str_puts(out, " leave the copied bytes, ");
	text_group(out, stats->lost_stacks);
	str_puts(out, " end early");
	if (stats->lost_in[0]) {
		str_puts(out, ", most in ");
		text_clean(out, stats->lost_in, strlen(stats->lost_in));
	}
	str_putc(out, '\n');
}

static void put_header(const struct view_input *input, const struct report_args *args,
		       struct str *out)
{
	const struct session_stats *stats = &input->info.session;
	struct str summary = {0};

	view_input_summary(input, &summary);
	view_header_line(out, "input", input->path);
	view_header_line(out, "holds", str_text(&summary));
	str_fini(&summary);
	put_events(input, out);
	if (args->header && input->session) {
		view_header_text(input->session, out);
		put_stacks(stats, out);
		if (stats->last_time_ns > stats->first_time_ns)
			str_printf(out, "# time     %.3f s from the first to the last record\n",
				   (double)(stats->last_time_ns - stats->first_time_ns) / 1e9);
	}
	if (stats->problem[0])
		view_header_line(out, "damage", stats->problem);
	str_puts(out, "#\n");
}

/* The same command for the next step: the callers of the top row, or a picture of everything. */
static void put_hint(const struct view_input *input, const struct tree *tree,
		     const struct report *report, const struct report_args *args, struct str *out)
{
	if (report->left_out > 0) {
		str_puts(out, "# ");
		text_group(out, report->left_out);
		str_puts(out,
			 " smaller or unwanted rows not shown (--percent-limit, --max-rows)\n");
	}
	if (report->rows.len == 0)
		return;
	str_puts(out, "# next: ");
	if (!args->graph_asked && report->rows.data[0].symbol) {
		const char *name = strtab_text(&tree->strings, report->rows.data[0].symbol);

		str_puts(out, "culprit report -i ");
		text_clean(out, input->path, strlen(input->path));
		str_puts(out, " -G -S '");
		text_clean(out, name, strlen(name));
		str_puts(out, "'  (who calls it), ");
	}
	str_puts(out, "culprit flame -i ");
	text_clean(out, input->path, strlen(input->path));
	str_puts(out, "  (the whole picture)\n");
}

static bool plain_lines(const struct report_args *args)
{
	setlocale(LC_CTYPE, "");
	return args->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* The table's lines, each followed by its row's call graph. */
static int put_rows(const struct tree *tree, const struct report *report,
		    const struct report_args *args, const char *table, struct str *out)
{
	struct report_graph graph = args->graph;
	const char *line = table, *end;
	int r = 0;

	if (!args->graph_asked) {
		str_puts(out, table);
		return 0;
	}
	graph.ascii = plain_lines(args);
	graph.least_share = args->graph_limit / 100;
	graph.self = args->no_children;
	for (size_t i = 0; (end = strchr(line, '\n')) != NULL && r == 0; i++, line = end + 1) {
		str_append(out, line, (size_t)(end - line) + 1);
		if (i > 0 && i <= report->rows.len) {
			r = report_graph_print(tree, report, &report->rows.data[i - 1], &graph, 4,
					       out);
			str_putc(out, '\n');
		}
	}
	return r;
}

static unsigned terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col
										     : 0;
}

static int print_text(const struct view_input *input, const struct tree *tree,
		      const struct report *report, unsigned keys, const struct report_args *args,
		      struct str *out)
{
	const struct table_style style = {.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
					  .width = terminal_width()};
	struct str text = {0};
	struct table *table;
	int r = make_table(tree, report, keys, args, true, &table);

	if (r < 0)
		return r;
	put_header(input, args, out);
	table_print_text(table, &style, &text);
	r = put_rows(tree, report, args, str_text(&text), out);
	str_puts(out, "#\n");
	put_hint(input, tree, report, args, out);
	str_fini(&text);
	table_free(table);
	return r;
}

static int print_machine(const struct view_input *input, const struct tree *tree,
			 const struct report *report, unsigned keys, const struct report_args *args,
			 struct str *out)
{
	struct json json = {0};
	struct table *table;
	int r = make_table(tree, report, keys, args, false, &table);

	if (r < 0)
		return r;
	if (args->csv) {
		table_print_csv(table, ',', out);
	} else {
		json_document(&json, "report");
		view_input_json(input, &json);
		json_u64(&json, "all", (uint64_t)report->all);
		table_print_json(table, "rows", &json);
		json_end_object(&json);
		str_append(out, str_text(&json.out), json.out.len);
		r = str_status(&json.out);
		str_fini(&json.out);
	}
	table_free(table);
	return r;
}

static unsigned groups_of(unsigned keys)
{
	unsigned groups = TREE_GROUP_COMM | TREE_GROUP_PID;

	if (keys & REPORT_TID)
		groups |= TREE_GROUP_TID;
	if (keys & REPORT_CPU)
		groups |= TREE_GROUP_CPU;
	if (keys & REPORT_CGROUP)
		groups |= TREE_GROUP_CGROUP;
	if (keys & REPORT_PIDNS)
		groups |= TREE_GROUP_PIDNS;
	if (keys & REPORT_CGROUPNS)
		groups |= TREE_GROUP_CGROUPNS;
	return groups;
}

static int make_report(const struct view_input *input, unsigned keys,
		       const struct report_args *args, struct str *out)
{
	bool machine = args->json || args->csv;
	const struct tree_options tree_options = {.value = input->value,
						  .group = groups_of(keys),
						  .comm = args->comm,
						  .cgroup = args->cgroup};
	const struct report_options options = {
		.keys = keys,
		.dso = args->dso,
		.symbol = args->symbol,
		.least_share = (args->percent_limit >= 0 ? args->percent_limit
				: machine                ? 0
							 : 0.1) /
			       100,
		.children = !args->no_children,
		.by_self = machine || args->no_children,
		.max_rows = (uint32_t)MIN(args->max_rows, UINT32_MAX),
	};
	struct report report = {0};
	struct tree tree;
	int r = tree_init(&tree);

	if (r < 0)
		return r;
	r = tree_add(&tree, &input->profile, &tree_options, TREE_NEW);
	if (r == 0)
		r = tree_finish(&tree);
	if (r == 0)
		r = report_build(&tree, &options, &report);
	if (r == 0)
		r = machine ? print_machine(input, &tree, &report, keys, args, out)
			    : print_text(input, &tree, &report, keys, args, out);
	report_fini(&report);
	tree_fini(&tree);
	return r < 0 ? r : str_status(out);
}

/* "-g caller" and "FILE" behind the options: what perf's users type. */
static int take_operands(const struct command *self, struct report_args *args, int argc,
			 char **argv, int at)
{
	struct err err = {0};
	bool named = args->input.path != NULL;

	for (; at < argc; at++) {
		if (args->graph_asked && args->graph.mode == REPORT_GRAPH_NONE &&
		    set_graph(args, argv[at], &err) == 0)
			continue;
		if (named)
			return cmd_failf(self, "unexpected argument '%s'", argv[at]);
		args->input.path = argv[at];
		named = true;
	}
	return EXIT_DONE;
}

static int report_run(const struct command *self, int argc, char **argv)
{
	struct report_args args = {
		.percent_limit = -1, .graph_limit = 0.5, .sort = "comm,dso,symbol"};
	struct view_input input = {0};
	struct str out = {0};
	struct err err = {0};
	unsigned keys = 0;
	int status, r, at = options_parse(self, &args, argc, argv);

	if (take_operands(self, &args, argc, argv, at) != EXIT_DONE)
		return EXIT_FAILED;
	if (args.children && args.no_children)
		return cmd_failf(self, "--children and --no-children exclude each other");
	if (args.json && args.csv)
		return cmd_failf(self, "--json and --csv exclude each other");
	if (report_parse_keys(args.sort, &keys, &err) < 0)
		return cmd_failf(self, "--sort: %s", err_text(&err, -EINVAL));
	if (args.inverted) {
		args.graph_asked = true;
		args.graph.mode = REPORT_GRAPH_CALLEE;
	}
	if (args.graph.mode == REPORT_GRAPH_NONE)
		args.graph.mode = args.no_children ? REPORT_GRAPH_CALLEE : REPORT_GRAPH_CALLER;
	if (!args.input.path)
		args.input.path = "perf.data";
	args.input.tid = (keys & REPORT_TID) != 0;
	args.input.cpu = (keys & REPORT_CPU) != 0;
	args.input.cgroup = (keys & REPORT_CGROUP) != 0 || args.cgroup;
	args.input.namespaces = (keys & (REPORT_PIDNS | REPORT_CGROUPNS)) != 0;
	/* Files come with the lines, and lines with the inlined functions. */
	args.input.no_inlines = !args.inlines && !(keys & REPORT_FILE);
	r = view_input_open(self, &args.input, &input, &err);
	if (r < 0)
		return cmd_fail(self, r, &err);
	r = make_report(&input, keys, &args, &out);
	status = r < 0 ? cmd_fail(self, r, NULL) : cmd_write_stdout(self, out.data, out.len);
	if (status == EXIT_DONE && view_input_incomplete(&input))
		status = EXIT_INCOMPLETE;
	str_fini(&out);
	view_input_close(&input);
	return status;
}

const struct command command_report = {
	.name = "report",
	.args = "[OPTIONS] [FILE]",
	.summary = "who used the time: functions, objects, commands",
	.details =
		"Prints self time (samples in the function itself) and total time (its callees "
		"included) of each "
		"command, object and function, from a recording made by 'culprit record' or perf, "
		"a pprof file or "
		"folded stacks. A sample counts once in a total, however deep a recursion is.\n\n"
		"What was lost is always said: lost and throttled samples, stacks that were cut, "
		"bytes of the file "
		"that are missing. A recording that is cut or damaged shows what it holds.\n\n"
		"A function without a symbol is shown as object+0xoffset; nothing is dropped.",
	.examples = "culprit report\n\twhat perf.data holds, by total time\n"
		    "culprit report --no-children -g\n\tby self time, each with its callers\n"
		    "culprit report -i cpu.pb.gz --sort dso,symbol --percent-limit 1\n\ta pprof "
		    "file, rows of 1 % and more\n"
		    "culprit report --json | jq '.rows[0]'\n\tthe culprit, for scripts\n",
	.exits = "3 the report stands, but the recording is cut, damaged or was never finished: "
		 "data is missing",
	.options = report_options,
	.run = report_run,
};
