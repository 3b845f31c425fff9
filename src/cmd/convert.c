/* culprit convert: from one profile format to another. */
#include <errno.h>
#include <string.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/command.h"
#include "cmd/input.h"
#include "cmd/names.h"
#include "cmd/option.h"
#include "cmd/progress.h"
#include "profile/firefox.h"
#include "profile/gperftools.h"
#include "profile/pprof.h"
#include "profile/speedscope.h"
#include "view/flamegraph.h"
#include "view/tree.h"

struct convert_options {
	const char *output, *to, *from, *value, *root;
	const char *comm, *dso, *event, *time;
	bool annotate, tid, cpu, cgroup, no_symbols, no_inlines;
	struct names_options names;
	uint64_t max_bytes;
};

struct conversion {
	const struct convert_options *options;
	const struct profile *profile;
	const char *title;
	struct folded_options folded;
};

static int to_pprof(const struct conversion *c, struct str *out, struct err *err)
{
	return pprof_write(c->profile, out, err);
}

static int to_raw_pprof(const struct conversion *c, struct str *out, struct err *err)
{
	return pprof_encode(c->profile, out, err);
}

static int to_folded(const struct conversion *c, struct str *out, struct err *err)
{
	return folded_write(c->profile, &c->folded, out, err);
}

static int to_speedscope(const struct conversion *c, struct str *out, struct err *err)
{
	return speedscope_write(c->profile, c->title, out, err);
}

static int to_firefox(const struct conversion *c, struct str *out, struct err *err)
{
	return firefox_write(c->profile, c->folded.value, c->title, out, err);
}

/* gzip, which the front end takes off by itself. */
static int to_packed_firefox(const struct conversion *c, struct str *out, struct err *err)
{
	struct str plain = {0};
	int r = to_firefox(c, &plain, err);

	if (r == 0)
		r = gzip_deflate(plain.data, plain.len, 6, out, err);
	str_fini(&plain);
	return r;
}

static int to_gperftools(const struct conversion *c, struct str *out, struct err *err)
{
	return gperftools_write(c->profile, c->folded.value, out, err);
}

/* The level of processes below the root, when the profile knows them. */
static unsigned group_of(const struct conversion *c)
{
	static const unsigned groups[] = {
		[FOLDED_ROOT_NONE] = 0,
		[FOLDED_ROOT_COMM] = TREE_GROUP_COMM,
		[FOLDED_ROOT_PID] = TREE_GROUP_COMM | TREE_GROUP_PID,
		[FOLDED_ROOT_TID] = TREE_GROUP_COMM | TREE_GROUP_PID | TREE_GROUP_TID,
	};
	uint32_t comm = strtab_find(&c->profile->strings, "comm", strlen("comm"));

	vec_for_each(&c->profile->labels, label)
		if (label->key == comm)
			return groups[c->folded.root];
	return 0;
}

/* Both columns of a difference: the colours show it. */
static int build_tree(const struct conversion *c, struct tree *tree, bool *ret_diff)
{
	struct tree_options options = {.value = c->folded.value < 0
							? profile_default_value(c->profile)
							: (uint32_t)c->folded.value};
	int before = profile_find_value(c->profile, "before"),
	    after = profile_find_value(c->profile, "after");
	int r;

	*ret_diff = c->folded.value < 0 && before == 0 && after == 1;
	options.group = group_of(c);
	r = tree_add(tree, c->profile, &options, TREE_NEW);
	options.value = 0;
	if (r == 0 && *ret_diff)
		r = tree_add(tree, c->profile, &options, TREE_BASE);
	return r < 0 ? r : tree_finish(tree);
}

static int to_flamegraph(const struct conversion *c, bool html, struct str *out, struct err *err)
{
	struct flamegraph_options options = {.title = c->title, .min_share = -1};
	const struct profile *p = c->profile;
	struct tree tree;
	uint32_t value;
	int r = tree_init(&tree);

	if (r < 0)
		return r;
	value = c->folded.value < 0 ? profile_default_value(p) : (uint32_t)c->folded.value;
	options.unit = strtab_text(&p->strings, p->value_types.data[value].unit);
	if (strcmp(options.unit, "count") == 0)
		options.unit = strtab_text(&p->strings, p->value_types.data[value].type);
	r = build_tree(c, &tree, &options.diff);
	if (r == 0)
		r = html ? flamegraph_html(&tree, &options, out)
			 : flamegraph_svg(&tree, &options, out);
	tree_fini(&tree);
	if (r == -ENODATA)
		return err_set(err, r, "%s: no samples to draw", c->title);
	return r < 0 ? err_set(err, r, "flame graph: %s", strerrordesc_np(-r)) : 0;
}

static int to_svg(const struct conversion *c, struct str *out, struct err *err)
{
	return to_flamegraph(c, false, out, err);
}

static int to_html(const struct conversion *c, struct str *out, struct err *err)
{
	return to_flamegraph(c, true, out, err);
}

struct writer {
	const char *name; /* of --to */
	bool binary;
	int (*write)(const struct conversion *c, struct str *out, struct err *err);
};

static const struct writer writers[] = {
	{"pprof", true, to_pprof},
	{"pprof-raw", true, to_raw_pprof},
	{"folded", false, to_folded},
	{"speedscope", false, to_speedscope},
	{"firefox", false, to_firefox},
	{"firefox-gz", true, to_packed_firefox},
	{"svg", false, to_svg},
	{"html", false, to_html},
	{"gperftools", true, to_gperftools},
};

static const struct {
	const char *ending, *writer;
} endings[] = {
	{".pb.gz", "pprof"},
	{".pprof", "pprof"},
	{".pb", "pprof-raw"},
	{".folded", "folded"},
	{".collapsed", "folded"},
	{".txt", "folded"},
	{".speedscope.json", "speedscope"},
	{".firefox.json", "firefox"},
	{".firefox.json.gz", "firefox-gz"},
	{".svg", "svg"},
	{".html", "html"},
	{".prof", "gperftools"},
};

static const struct writer *find_writer(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(writers); i++)
		if (strcmp(writers[i].name, name) == 0)
			return &writers[i];
	return NULL;
}

static int choose_writer(const struct convert_options *o, const struct writer **ret,
			 struct err *err)
{
	size_t len = strlen(o->output);

	if (o->to) {
		*ret = find_writer(o->to);
		return *ret ? 0
			    : err_set(err, -EINVAL,
				      "--to %s: pprof, pprof-raw, folded, speedscope, firefox, "
				      "firefox-gz, svg, html or gperftools",
				      o->to);
	}
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		size_t ending = strlen(endings[i].ending);

		if (len >= ending && strcmp(o->output + len - ending, endings[i].ending) == 0) {
			*ret = find_writer(endings[i].writer);
			return 0;
		}
	}
	return err_set(err, -EINVAL,
		       "%s: the ending does not tell a format (.pb.gz .pb .folded .txt "
		       ".speedscope.json .firefox.json .svg .html .prof); say --to",
		       o->output);
}

static int choose_input(const struct command *self, const struct convert_options *o,
			struct names_places *places, struct input_options *ret, struct err *err)
{
	static const enum input_format formats[] = {INPUT_RECORDING, INPUT_PPROF,  INPUT_FOLDED,
						    INPUT_LEGACY,    INPUT_SCRIPT, INPUT_SPEEDSCOPE,
						    INPUT_FIREFOX};

	ret->max_bytes = o->max_bytes;
	ret->collect = (struct collect_options){
		.tid = o->tid || (o->root && strcmp(o->root, "tid") == 0),
		.cpu = o->cpu,
		.cgroup = o->cgroup,
		.no_symbols = o->no_symbols,
		.no_inlines = o->no_inlines,
		.comm = o->comm,
		.dso = o->dso,
		.event = o->event,
		.time = o->time,
	};
	names_apply(self, &o->names, places, &ret->collect.symbols);
	if (!o->from)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (strcmp(o->from, input_format_name(formats[i])) == 0) {
			ret->format = formats[i];
			return 0;
		}
	return err_set(err, -EINVAL,
		       "--from %s: recording, pprof, folded, legacy, perf-script, speedscope or "
		       "firefox",
		       o->from);
}

static int choose_root(const char *name, enum folded_root *ret, struct err *err)
{
	static const char *const names[] = {"none", "comm", "pid",
					    "tid"}; /* in the order of the enum */

	*ret = FOLDED_ROOT_COMM;
	for (size_t i = 0; name && i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum folded_root)i;
			return 0;
		}
	return name ? err_set(err, -EINVAL, "--root %s: none, comm, pid or tid", name) : 0;
}

static int choose_value(struct conversion *c, struct err *err)
{
	struct str have = {0};
	int r;

	c->folded.value = -1;
	if (!c->options->value)
		return 0;
	c->folded.value = profile_find_value(c->profile, c->options->value);
	if (c->folded.value >= 0)
		return 0;
	for (size_t i = 0; i < c->profile->value_types.len; i++)
		str_printf(&have, "%s%s", i > 0 ? " " : "",
			   strtab_text(&c->profile->strings, c->profile->value_types.data[i].type));
	r = err_set(err, -EINVAL, "--value %s: the profile has: %s", c->options->value,
		    str_text(&have));
	str_fini(&have);
	return r;
}

static int deliver(const struct command *self, const char *path, const struct writer *writer,
		   const struct str *text)
{
	struct err err = {0};
	int r;

	if (strcmp(path, "-") != 0) {
		r = file_write_atomic(path, text->data, text->len, 0644, &err);
		return r < 0 ? cmd_fail(self, r, &err) : EXIT_DONE;
	}
	if (writer->binary && isatty(STDOUT_FILENO))
		return cmd_failf(
			self, "standard output is a terminal; %s is not for reading: say -o FILE",
			writer->name);
	return cmd_write_stdout(self, str_text(text), text->len);
}

static int convert(const struct command *self, const struct convert_options *o, const char *in)
{
	struct names_places places;
	struct input_options input = {0};
	struct conversion c = {.options = o, .title = strcmp(in, "-") == 0 ? "standard input" : in};
	const struct writer *writer;
	struct input_info info;
	struct progress progress;
	struct profile profile;
	struct str text = {0};
	struct err err = {0};
	int r, status;

	progress_begin(&progress, c.title);
	c.folded.annotate = o->annotate;
	r = choose_writer(o, &writer, &err);
	if (r == 0)
		r = choose_root(o->root, &c.folded.root, &err);
	if (r == 0)
		r = choose_input(self, o, &places, &input, &err);
	input.collect.progress = progress_show;
	input.collect.progress_arg = &progress;
	if (r == 0)
		r = input_profile(in, &input, &profile, &info, &err);
	progress_clear(&progress);
	if (r < 0)
		return cmd_fail(self, r, &err);
	input_warn(self, in, &info);
	c.profile = &profile;
	r = choose_value(&c, &err);
	if (r == 0)
		r = writer->write(&c, &text, &err);
	status = r < 0 ? cmd_fail(self, r, &err) : deliver(self, o->output, writer, &text);
	if (status == EXIT_DONE && input_incomplete(&info))
		status = EXIT_INCOMPLETE;
	str_fini(&text);
	profile_fini(&profile);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct convert_options options = {.output = "-"};
	int first = options_parse(self, &options, argc, argv);

	if (argc - first != 1)
		return cmd_failf(self, "%s; usage: culprit convert IN -o OUT",
				 argc == first ? "which file?" : "one input at a time");
	if (strcmp(options.output, "-") == 0 && !options.to)
		return cmd_failf(self,
				 "say where to with -o OUT, or --to NAME for standard output");
	return convert(self, &options, argv[first]);
}

static const struct option_spec convert_specs[] = {
	{.kind = OPTION_TEXT,
	 .short_name = 'o',
	 .name = "output",
	 .arg = "OUT",
	 .help = "The file to write; - is standard output. Its ending chooses the format: .pb.gz "
		 "and .pprof "
		 "pprof, .pb pprof without gzip, .folded, .collapsed and .txt folded stacks, "
		 ".speedscope.json speedscope, .firefox.json and .firefox.json.gz the Firefox "
		 "profiler, .svg and .html flame graphs, "
		 ".prof gperftools.",
	 .offset = offsetof(struct convert_options, output),
	 .complete = "@file"},
	{.kind = OPTION_TEXT,
	 .name = "to",
	 .arg = "NAME",
	 .help = "The format to write, whatever OUT is called: pprof, pprof-raw, folded, "
		 "speedscope, firefox, firefox-gz, svg, html or gperftools.",
	 .offset = offsetof(struct convert_options, to),
	 .complete = "pprof pprof-raw folded speedscope firefox firefox-gz svg html gperftools"},
	{.kind = OPTION_TEXT,
	 .name = "from",
	 .arg = "NAME",
	 .help = "The format of the input, when its content should not be asked: recording, pprof, "
		 "folded, legacy, perf-script, speedscope or firefox.",
	 .offset = offsetof(struct convert_options, from),
	 .complete = "recording pprof folded legacy perf-script speedscope firefox"},
	OPT_SIZE(0, "max-size", "SIZE", struct convert_options, max_bytes,
		 "How much a compressed file, a pprof message or a pipe may hold (192M)."),
	OPT_HEADING("Recordings"),
	OPT_TEXT(0, "comm", "GLOB", struct convert_options, comm,
		 "Only samples of commands of that name."),
	OPT_TEXT(0, "dso", "GLOB", struct convert_options, dso, "Only samples in that object."),
	OPT_TEXT(0, "event", "GLOB", struct convert_options, event, "Only samples of that event."),
	OPT_TEXT(0, "time", "FROM,TO", struct convert_options, time,
		 "Only samples between these times: seconds as perf script shows them, +seconds "
		 "from the "
		 "first sample, or percent of the recording. An empty side is open."),
	OPT_FLAG(0, "tid", struct convert_options, tid, "Keep the thread id as a label."),
	OPT_FLAG(0, "cpu", struct convert_options, cpu, "Keep the CPU as a label."),
	OPT_FLAG(0, "cgroup", struct convert_options, cgroup,
		 "Keep the path of the cgroup as a label, where it was recorded."),
	OPT_FLAG(0, "no-symbols", struct convert_options, no_symbols,
		 "Keep addresses alone, for a reader that has the objects."),
	OPT_FLAG(0, "no-inline", struct convert_options, no_inlines,
		 "Do not look for inlined functions and source lines in debug information."),
	OPT_NAMES(struct convert_options, names),
	OPT_HEADING("Folded stacks, flame graphs and gperftools"),
	OPT_TEXT(0, "value", "TYPE", struct convert_options, value,
		 "The value to count (samples, cpu, alloc_space ...); the profile's default when "
		 "not said."),
	{.kind = OPTION_TEXT,
	 .name = "root",
	 .arg = "WHAT",
	 .help = "The first frame: comm (the default), pid (comm-PID), tid (comm-PID/TID) or none. "
		 "A profile "
		 "without these labels has no such frame.",
	 .offset = offsetof(struct convert_options, root),
	 .complete = "comm pid tid none"},
	OPT_FLAG(0, "annotate", struct convert_options, annotate,
		 "Mark kernel frames with _[k], JIT frames with _[j] and inlined ones with _[i]."),
	OPT_END,
};

const struct command command_convert = {
	.name = "convert",
	.args = "[OPTIONS] IN -o OUT",
	.summary = "turn a recording or profile into another format",
	.details =
		"Reads a recording (perf.data), a pprof profile, folded stacks, a speedscope or "
		"Firefox profile or the text of perf script, from a file "
		"or, with -, "
		"from standard input, and writes it in another format. What the input is "
		"follows from its "
		"content; gzip and zstd are taken off. Profiles from before pprof are read "
		"too: CPU profiles of gperftools, and the text of heap, contention, thread and "
		"goroutine profiles of tcmalloc, Go and Java.\n\n"
		"pprof keeps everything: labels, all values, addresses, mappings with build "
		"ids, inlined "
		"functions and source lines. Folded stacks keep names and one value, equal "
		"stacks added up. "
		"A folded input with two counts on every line (a difference of two profiles) "
		"becomes a "
		"profile with the values before and after.\n\n"
		"speedscope and the processed format of profiler.firefox.com (and Gecko's own) are "
		"read and written; the Firefox profiler takes one value, as weights, and "
		"samples without times of their own.\n\n"
		"gperftools is the symbolized CPU profile that google-pprof reads: names and "
		"one value, the samples when --value does not say another; functions without "
		"an address of their own get an invented one.\n\n"
		"Lines of folded text without a count are left out and counted in a warning. "
		"Nothing is "
		"written when the input is damaged.",
	.examples = "culprit convert perf.data -o profile.pb.gz\n"
		    "\tgo tool pprof, Parca and Pyroscope read the result\n"
		    "culprit convert cpu.pb.gz -o cpu.folded --annotate\n"
		    "\tone line per stack, kernel frames marked\n"
		    "stackcollapse-perf.pl out.perf | culprit convert - --to pprof > out.pb.gz\n"
		    "\tfrom a pipe to a pipe\n"
		    "culprit convert perf.data -o app.prof\n"
		    "\tthen google-pprof --text app.prof\n",
	.exits =
		"0 done, 1 failure, 3 written, but the recording is cut or damaged and ends early.",
	.options = convert_specs,
	.run = run,
};
