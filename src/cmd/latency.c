/* culprit latency: measurements of latency and noise after the fact, ours and other tools'. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd/latency-tables.h"
#include "cmd/latency.h"
#include "cmd/option.h"
#include "latency/run-file.h"
#include "view/table.h"

#define INPUTS_MAX 64
/* How much of a file is looked at to see whether it is a run file. */
#define HEAD_BYTES 256

static int set_sla(void *options, const char *value, struct err *err)
{
	return sla_parse(value, &((struct latency_args *)options)->sla, err);
}

#define ARGS struct latency_args
static const struct option_spec latency_options[] = {
	OPT_TEXT('o', "output", "FILE", ARGS, output,
		 "import: write a run file. plot: write the picture, an SVG when the name ends in "
		 ".svg, else an HTML page."),
	OPT_CALL(0, "sla", "RULES", set_sla,
		 "check: limits, separated by commas; may be given again. Each CPU has to keep "
		 "them."),
	OPT_TEXT(0, "junit", "FILE", ARGS, junit, "check: also write the results as JUnit XML."),
	OPT_DOUBLE(0, "gate", "PERCENT", ARGS, gate,
		   "diff: exit with status 2 when a quantile grew significantly by that much or "
		   "more."),
	OPT_HEADING("Analysis of imported traces"),
	OPT_U64(0, "keep", "N", ARGS, keep,
		"Analyse the N worst wake-ups of each CPU when no limit is given. Default: 1."),
	OPT_DURATION('i', "irq", "US", ARGS, irq_ns, NSEC_PER_USEC,
		     "Analyse wake-ups whose interrupt was that late. A bare number is in "
		     "microseconds."),
	OPT_DURATION(
		'T', "thread", "US", ARGS, thread_ns, NSEC_PER_USEC,
		"Analyse wake-ups whose thread was that late. A bare number is in microseconds."),
	OPT_HEADING("Output"),
	OPT_FLAG(0, "json", ARGS, json, "JSON."),
	OPT_FLAG(0, "csv", ARGS, csv, "CSV."),
	OPT_END,
};

static bool is_run_file(const char *path)
{
	char head[HEAD_BYTES + 1] = "";
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t len = fread(head, 1, HEAD_BYTES, file);
	fclose(file);
	head[len] = 0;
	return head[strspn(head, " \t\r\n")] == '{' && strstr(head, "\"culprit\"");
}

static int open_input(const struct latency_args *args, struct latency_input *input, struct err *err)
{
	const struct latency_import_options options = {
		.keep = (unsigned)args->keep,
		.limits = {.irq_ns = args->irq_ns, .thread_ns = args->thread_ns}};
	if (is_run_file(input->path))
		return latency_run_read(input->path, &input->run, err);
	return latency_import(input->path, &options, &input->run, err);
}

void latency_print_table(const struct table *table, struct str *out)
{
	struct winsize size;
	bool terminal = isatty(STDOUT_FILENO) == 1;
	const struct table_style style = {
		.color = terminal && !getenv("NO_COLOR"),
		.width =
			terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0};
	table_print_text(table, &style, out);
}

static int show(const struct command *self, const struct latency_args *args,
		struct latency_input *inputs, unsigned count)
{
	int status = EXIT_DONE;
	for (unsigned i = 0; i < count && (status == EXIT_DONE || status == EXIT_INCOMPLETE); i++) {
		int one = latency_print_run(self, &inputs[i].run, args->json, args->csv);
		if (one != EXIT_DONE)
			status = one;
		else if (latency_run_incomplete(&inputs[i].run))
			status = EXIT_INCOMPLETE;
	}
	return status;
}

static int import(const struct command *self, const struct latency_args *args,
		  struct latency_input *inputs, unsigned count)
{
	struct err err = {0};
	if (count != 1)
		return cmd_failf(
			self, "one file is imported at a time: culprit latency import FILE -o RUN");
	if (args->output) {
		int r = latency_write_run_file(&inputs[0].run, args->output, &err);
		if (r < 0)
			return cmd_fail(self, r, &err);
	}
	return show(self, args, inputs, count);
}

typedef int verb_run(const struct command *self, const struct latency_args *args,
		     struct latency_input *inputs, unsigned count);

static const struct {
	const char *name;
	verb_run *run;
} verbs[] = {
	{"import", import},          {"show", show},
	{"diff", latency_diff_verb}, {"check", latency_check_verb},
	{"plot", latency_plot_verb},
};

static verb_run *find_verb(const char *name)
{
	for (unsigned i = 0; name && i < ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return verbs[i].run;
	}
	return NULL;
}

/* Options that only one verb has are no mistake to pass over in silence. */
static const char *misplaced(const struct latency_args *args, const char *verb)
{
	if (args->sla.rules.len && strcmp(verb, "check") != 0)
		return "--sla belongs to check";
	if (args->junit && strcmp(verb, "check") != 0)
		return "--junit belongs to check";
	if (args->gate >= 0 && strcmp(verb, "diff") != 0)
		return "--gate belongs to diff";
	if (args->output && strcmp(verb, "import") != 0 && strcmp(verb, "plot") != 0)
		return "-o belongs to import and plot";
	if (args->json && args->csv)
		return "--json and --csv exclude each other";
	return NULL;
}

static int latency_run(const struct command *self, int argc, char **argv)
{
	struct latency_args args = {.gate = -1, .keep = 1};
	struct latency_input inputs[INPUTS_MAX];
	struct err err = {0};
	int status = EXIT_DONE, at = options_parse(self, &args, argc, argv);
	unsigned opened = 0, count = at < argc ? (unsigned)(argc - at - 1) : 0;
	const char *verb_name = at < argc ? argv[at] : NULL;
	verb_run *verb = find_verb(verb_name);

	if (!verb)
		status = cmd_failf(self, "%s%s%sone of import, show, diff, check, plot is needed",
				   verb_name ? "'" : "", verb_name ? verb_name : "",
				   verb_name ? "': " : "");
	else if (misplaced(&args, verb_name))
		status = cmd_failf(self, "%s", misplaced(&args, verb_name));
	else if (!count || count > INPUTS_MAX)
		status = cmd_failf(self, "%s needs 1 to %d files", verb_name, INPUTS_MAX);
	while (status == EXIT_DONE && opened < count) {
		inputs[opened].path = argv[at + 1 + (int)opened];
		int r = open_input(&args, &inputs[opened], &err);
		if (r < 0)
			status = cmd_fail(self, r, &err);
		else
			opened++;
	}
	if (status == EXIT_DONE)
		status = verb(self, &args, inputs, count);
	while (opened)
		latency_run_fini(&inputs[--opened].run);
	sla_fini(&args.sla);
	return status;
}

const struct command command_latency = {
	.name = "latency",
	.args = "import|show|diff|check|plot [OPTIONS] FILE...",
	.summary = "read, compare, check and draw measurements of latency and noise",
	.details = "A FILE is a run file, as timerlat, osnoise, hwnoise and cyclic keep with -o, "
		   "or what another tool left: output "
		   "of rtla (top, hist, automatic analysis), a trace of the kernel's timerlat, "
		   "osnoise and hwlat tracers as text, "
		   "from trace-cmd report or as trace.dat, cyclictest and oslat as text or JSON, a "
		   "report of hwlatdetect.\n\n"
		   "import reads one file, shows it and keeps it as a run file with -o. What the "
		   "source does not tell is unknown: "
		   "of a table of rtla only count, minimum, average and maximum are known, and no "
		   "percentile.\n\n"
		   "show prints the tables, the sources of noise and the automatic analysis.\n\n"
		   "diff compares the quantiles of two runs, says which changes are significant, "
		   "and which sources of noise are "
		   "new, gone, more or less frequent.\n\n"
		   "check holds runs to limits: thread.p99<=10us, thread.max<=50us, irq.max<=20us, "
		   "user.p99.9<100us, "
		   "gap.max<=30us, noise.single<=20us, noise.available>=99.9%, nmi.count<=0. A "
		   "limit is kept when each CPU "
		   "keeps it; of an incomplete run nothing is proven.\n\n"
		   "plot draws the distributions, each kind of latency in a panel of its own, the "
		   "runs over each other.",
	.examples =
		"culprit latency import rtla-hist.txt -o before.json\n\tkeeps what rtla measured\n"
		"culprit latency diff before.json after.json\n\tsays what changed\n"
		"culprit latency check --sla 'thread.p99<=10us,thread.max<=50us' run.json --junit "
		"sla.xml\n"
		"\tgates a build\n"
		"culprit latency plot before.json after.json -o latency.svg\n\tdraws both\n",
	.exits = "2 a limit of --sla or --gate was exceeded, 3 data is missing",
	.options = latency_options,
	.run = latency_run,
};
