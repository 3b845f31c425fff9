/* culprit flame: a flame graph as one SVG or HTML file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/option.h"
#include "cmd/view-input.h"
#include "view/flamegraph.h"
#include "view/tree.h"

enum flame_format {
	FLAME_BY_NAME,
	FLAME_HTML,
	FLAME_SVG,
};

struct flame_args {
	struct view_input_options input;
	const char *output, *title, *base, *comm;
	double min_share;
	uint64_t width;
	bool inverted, bottom_up, by_comm;
	enum flame_color color;
	enum flame_format format;
};

static int set_color(void *options, const char *value, struct err *err)
{
	static const char *const names[] = {"kind", "object", "name"};
	struct flame_args *args = options;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(value, names[i]) == 0) {
			args->color = (enum flame_color)i;
			return 0;
		}
	return err_set(err, -EINVAL, "'%s' is not kind, object or name", value);
}

static int set_format(void *options, const char *value, struct err *err)
{
	struct flame_args *args = options;

	if (strcmp(value, "svg") == 0)
		args->format = FLAME_SVG;
	else if (strcmp(value, "html") == 0)
		args->format = FLAME_HTML;
	else
		return err_set(err, -EINVAL, "'%s' is not svg or html", value);
	return 0;
}

#define ARGS struct flame_args
static const struct option_spec flame_options[] = {
	OPT_TEXT('i', "input", "FILE", ARGS, input.path,
		 "What to draw: a recording (perf.data), pprof, folded stacks, a speedscope or "
		 "Firefox profile or the text of perf "
		 "script, plain or "
		 "compressed; - is "
		 "standard input. Default: perf.data."),
	OPT_TEXT('o', "output", "FILE", ARGS, output,
		 "Where to: an .html page, or an .svg picture; - is standard output. Default: "
		 "flame.html."),
	OPT_CALL(0, "format", "FORMAT", set_format,
		 "svg or html, when the output's name does not tell."),
	OPT_TEXT(0, "event", "NAME", ARGS, input.event,
		 "Only this event of a recording, or this value type of a pprof file."),
	OPT_TEXT(0, "base", "FILE", ARGS, base,
		 "Compare: what was before. Widths are those of the input, colours show how each "
		 "function's "
		 "share changed: orange grew, blue shrank. "
		 "Folded stacks with two counts a line (before, after) are compared without it."),
	OPT_TEXT(0, "comm", "NAME", ARGS, comm,
		 "Only samples of the commands that match this glob."),
	OPT_FLAG(0, "by-comm", ARGS, by_comm, "Commands as the first level above the root."),
	OPT_DOUBLE(0, "min-share", "PERCENT", ARGS, min_share,
		   "Merge frames below this share of everything. Default: what is too narrow to "
		   "see in an SVG, "
		   "nothing in HTML."),
	OPT_VIEW_INPUT(ARGS),
	OPT_FLAG(0, "no-inline", ARGS, input.no_inlines,
		 "Do not look for inlined functions and source lines in debug information."),
	OPT_HEADING("Looks"),
	OPT_TEXT(0, "title", "TEXT", ARGS, title, "Title. Default: the name of the input."),
	OPT_U64(0, "width", "PIXELS", ARGS, width, "Width of an SVG, 300 to 20000. Default: 1200."),
	OPT_FLAG(0, "inverted", ARGS, inverted,
		 "Root at the top, leaves hang down: an icicle graph."),
	OPT_FLAG(0, "bottom-up", ARGS, bottom_up,
		 "SVG: functions where samples fell first, their callers behind them. The HTML "
		 "page has a button "
		 "for this."),
	OPT_CALL(0, "color", "BY", set_color,
		 "Colours by kind (user, kernel, JIT, vdso; the default), object or name."),
	OPT_END,
};

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static int check_args(const struct command *self, struct flame_args *args)
{
	if (!args->input.path)
		args->input.path = "perf.data";
	if (!args->output)
		args->output = args->format == FLAME_SVG ? "flame.svg" : "flame.html";
	if (args->format == FLAME_BY_NAME)
		args->format = ends_with(args->output, ".svg") ? FLAME_SVG : FLAME_HTML;
	if (args->width && (args->width < 300 || args->width > 20000))
		return cmd_failf(self, "--width %llu: must be 300 to 20000",
				 (unsigned long long)args->width);
	if (args->min_share > 100)
		return cmd_failf(self, "--min-share %g: is a percentage", args->min_share);
	if (args->bottom_up && args->format == FLAME_HTML)
		return cmd_failf(self, "--bottom-up: for SVG; the HTML page has a button for it");
	return EXIT_DONE;
}

static int add_base(const struct command *self, const struct flame_args *args,
		    const struct view_input *input, const struct tree_options *options,
		    struct tree *tree, struct err *err)
{
	struct view_input_options base_options = args->input;
	struct tree_options tree_options = *options;
	struct view_input base;
	int r;

	base_options.path = args->base;
	r = view_input_open(self, &base_options, &base, err);
	if (r < 0)
		return r;
	tree_options.value = base.value;
	if (strcmp(view_input_unit(input), view_input_unit(&base)) != 0)
		r = err_set(err, -EINVAL, "%s counts %s, %s counts %s: they cannot be compared",
			    input->path, view_input_unit(input), base.path, view_input_unit(&base));
	if (r == 0)
		r = tree_add(tree, &base.profile, &tree_options, TREE_BASE);
	view_input_close(&base);
	return r;
}

/* Folded text with two counts a line is a comparison by itself: --base without a second file. */
static bool is_comparison(const struct flame_args *args, const struct view_input *input)
{
	return !args->base && !args->input.event && input->info.folded.two_columns &&
	       profile_find_value(&input->profile, "before") >= 0;
}

static int draw(const struct command *self, const struct flame_args *args,
		const struct view_input *input, struct str *out, struct err *err)
{
	const struct tree_options tree_options = {
		.value = input->value,
		.group = args->by_comm ? TREE_GROUP_COMM : 0,
		.reversed = args->bottom_up,
		.comm = args->comm,
	};
	struct str info = {0};
	struct flamegraph_options options = {
		.title = args->title ? args->title : input->path,
		.unit = view_input_unit(input),
		.width = (unsigned)args->width,
		.min_share = args->min_share < 0 ? -1 : args->min_share / 100,
		.icicle = args->inverted,
		.reversed = args->bottom_up,
		.diff = args->base != NULL || is_comparison(args, input),
		.color = args->color,
	};
	struct tree tree;
	int r = tree_init(&tree);

	if (r < 0)
		return r;
	view_input_summary(input, &info);
	options.info = str_text(&info);
	r = tree_add(&tree, &input->profile, &tree_options, TREE_NEW);
	if (r == 0 && args->base)
		r = add_base(self, args, input, &tree_options, &tree, err);
	if (r == 0 && is_comparison(args, input)) {
		struct tree_options before = tree_options;

		before.value = (uint32_t)profile_find_value(&input->profile, "before");
		r = tree_add(&tree, &input->profile, &before, TREE_BASE);
	}
	if (r == 0)
		r = tree_finish(&tree);
	if (r == 0)
		r = args->format == FLAME_SVG ? flamegraph_svg(&tree, &options, out)
					      : flamegraph_html(&tree, &options, out);
	if (r == -ENODATA)
		err_set(err, r, "%s: no sample to draw%s%s", input->path,
			args->comm ? " of a command that matches " : "",
			args->comm ? args->comm : "");
	tree_fini(&tree);
	str_fini(&info);
	return r;
}

static int write_out(const struct command *self, const struct flame_args *args,
		     const struct str *out)
{
	struct err err = {0};
	int r;

	if (strcmp(args->output, "-") == 0)
		return cmd_write_stdout(self, out->data, out->len);
	r = file_write_atomic(args->output, out->data, out->len, 0644, &err);
	if (r < 0)
		return cmd_fail(self, r, &err);
	printf("%s: %.1f KB, open it in a browser\n", args->output, (double)out->len / 1000);
	return cmd_write_stdout(self, "", 0);
}

static int flame_run(const struct command *self, int argc, char **argv)
{
	struct flame_args args = {.min_share = -1};
	struct view_input input = {0};
	struct str out = {0};
	struct err err = {0};
	int status, r, at = options_parse(self, &args, argc, argv);

	if (at < argc && !args.input.path)
		args.input.path = argv[at++];
	if (at < argc)
		return cmd_failf(self, "unexpected argument '%s'", argv[at]);
	if (check_args(self, &args) != EXIT_DONE)
		return EXIT_FAILED;
	r = view_input_open(self, &args.input, &input, &err);
	if (r < 0)
		return cmd_fail(self, r, &err);
	r = draw(self, &args, &input, &out, &err);
	status = r < 0 ? cmd_fail(self, r, &err) : write_out(self, &args, &out);
	if (status == EXIT_DONE && view_input_incomplete(&input))
		status = EXIT_INCOMPLETE;
	str_fini(&out);
	view_input_close(&input);
	return status;
}

const struct command command_flame = {
	.name = "flame",
	.args = "[OPTIONS] [FILE]",
	.summary = "draw a flame graph: one SVG or HTML file",
	.details = "Draws where time was spent as a flame graph: a frame's width is its share of "
		   "all samples, what it "
		   "called stands on it. The HTML page zooms, searches (with the share that "
		   "matches), turns the graph "
		   "over (icicle) and inside out (bottom-up), from the mouse and from the keyboard "
		   "('?' shows the keys); "
		   "it handles 100,000 frames and never touches the network. The SVG is a whole "
		   "picture by itself and "
		   "zooms and searches where scripts may run.\n\n"
		   "Colours are those of the Okabe-Ito palette, which colour-blind people can tell "
		   "apart: user code is "
		   "blue, kernel orange, JIT green, vdso purple; a name has the same shade in "
		   "every graph. What was lost "
		   "or cut in the recording stands below the title.",
	.examples = "culprit flame\n\tperf.data to flame.html\n"
		    "culprit flame -i cpu.pb.gz -o cpu.svg --inverted\n\ta pprof file as an icicle "
		    "graph\n"
		    "culprit flame -i new.data --base old.data -o diff.html\n\twhat changed: "
		    "orange grew, blue shrank\n"
		    "culprit flame -i stacks.folded -o - --format svg > out.svg\n\tto standard "
		    "output\n",
	.exits = "3 the graph stands, but the recording is cut, damaged or was never finished: "
		 "data is missing",
	.options = flame_options,
	.run = flame_run,
};
