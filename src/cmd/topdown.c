/* culprit topdown: where the slots of the core go. Recorded counts here, live ones in
 * topdown-live.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/option.h"
#include "cmd/topdown.h"

static const struct option_spec topdown_specs[] = {
	OPT_HEADING("Whose counts"),
	OPT_TEXT(0, "import", "FILE", struct topdown_options, import,
		 "Evaluate recorded counts: lines of EVENT COUNT [SHARE%] [+- ERROR]; # starts a "
		 "comment, - is "
		 "standard input."),
	OPT_TEXT(0, "cpu", "NAME", struct topdown_options, cpu,
		 "The core they come from: skl icl icx spr adl-p adl-e zen4 zen5 n1 n2 v1 v2 ..., "
		 "see --list-cpus."),
	OPT_TEXT(0, "metrics", "PATH", struct topdown_options, metrics,
		 "Trees from a file or folder of vendor metrics instead of those built in: "
		 "intel/perfmon, perf's pmu-events or Arm telemetry JSON."),
	OPT_FLAG(0, "list-cpus", struct topdown_options, list_cpus,
		 "List the cores that have a table."),
	OPT_HEADING("Or what to count here"),
	OPT_TEXT('p', "pid", "LIST", struct topdown_options, pids,
		 "Running processes, with all their threads."),
	OPT_FLAG('a', "all-cpus", struct topdown_options, all_cpus,
		 "The whole machine, until the command, --duration or Ctrl-C ends it."),
	OPT_FLAG(0, "per-core", struct topdown_options, per_core,
		 "With -a: a tree for each core, its hardware threads together."),
	OPT_FLAG(0, "per-thread", struct topdown_options, per_thread,
		 "With -p: a tree for each thread; with -a: for each hardware thread (CPU)."),
	OPT_DURATION('d', "duration", "TIME", struct topdown_options, duration_ns, NSEC_PER_SEC,
		     "Stop after this time (5, 500ms)."),
	OPT_U64('r', "repeat", "N", struct topdown_options, repeat,
		"Run the command N times: values from the sum of the counts, errors from how the "
		"runs differ."),
	OPT_DURATION('I', "interval-print", "MS", struct topdown_options, interval_ns,
		     NSEC_PER_MSEC, "A tree every so many milliseconds."),
	OPT_U64(0, "interval-count", "N", struct topdown_options, interval_count,
		"Stop after N intervals."),
	OPT_FLAG(0, "no-multiplex", struct topdown_options, no_multiplex,
		 "Run the command again for events that do not fit the counters at once: nothing "
		 "is estimated."),
	OPT_HEADING("How deep"),
	OPT_FLAG(0, "drill", struct topdown_options, drill,
		 "Level 1, then only what lies below the mark, running the command again when the "
		 "events of the next level do not fit together: the default for a command. With -a "
		 "or "
		 "-p it counts again for the same --duration."),
	OPT_U64('l', "level", "N", struct topdown_options, level,
		"Down to level N, everything; with --drill, no deeper than that."),
	OPT_FLAG(0, "all", struct topdown_options, all, "Every node that the table has."),
	OPT_TEXT(0, "nodes", "LIST", struct topdown_options, nodes,
		 "Only these nodes, separated by commas; * and ? match."),
	OPT_HEADING("Output"),
	OPT_TEXT(0, "explain", "NODE", struct topdown_options, explain,
		 "The formula of a node with the counts in it."),
	OPT_FLAG(0, "cpi-stack", struct topdown_options, cpi_stack,
		 "Cycles for each instruction, divided among base, front end, bad speculation, "
		 "memory and core."),
	OPT_TEXT(
		0, "vs", "FILE", struct topdown_options, vs,
		"With --import: beside the counts of a second file of the same core. Two commands: "
		"-- A [ARG...] --vs B [ARG...]."),
	OPT_FLAG(0, "run", struct topdown_options, run,
		 "Then run the culprit record line that finds the code behind the mark, and show "
		 "its report."),
	OPT_FLAG('j', "json", struct topdown_options, json, "One JSON document."),
	OPT_FLAG(0, "csv", struct topdown_options, csv, "CSV with a header."),
	OPT_END,
};

static int check_import(const struct topdown_job *job, struct err *err)
{
	const struct topdown_options *o = &job->options;

	if (!o->cpu && !o->metrics)
		return err_set(err, -EINVAL,
			       "--import needs --cpu NAME, the core that the counts come from");
	if (job->argv)
		return err_set(err, -EINVAL, "--import evaluates a file and runs no command");
	if (o->drill || o->repeat || o->no_multiplex || o->run || o->interval_ns)
		return err_set(err, -EINVAL,
			       "%s counts here; the counts of a file are what they are",
			       o->drill          ? "--drill"
			       : o->repeat       ? "--repeat"
			       : o->no_multiplex ? "--no-multiplex"
			       : o->run          ? "--run"
						 : "-I");
	return 0;
}

static int check_rows(const struct topdown_options *o, struct err *err)
{
	if (o->per_core && o->per_thread)
		return err_set(err, -EINVAL, "--per-core and --per-thread exclude each other");
	if (o->per_core && !o->all_cpus)
		return err_set(err, -EINVAL, "--per-core needs -a");
	if (o->per_thread && !o->all_cpus && !o->pids)
		return err_set(err, -EINVAL, "--per-thread needs -p or -a");
	return 0;
}

/* What asks for more than one run. */
static int check_runs(const struct topdown_job *job, struct err *err)
{
	const struct topdown_options *o = &job->options;
	bool command = job->argv && !o->all_cpus && !o->pids;

	if (o->no_multiplex && (!command || o->interval_ns))
		return err_set(err, -EINVAL, "--no-multiplex needs a command to run again");
	if (o->repeat && (!command || o->interval_ns))
		return err_set(err, -EINVAL, "--repeat needs a command to run again");
	if (o->repeat > 1000)
		return err_set(err, -EINVAL, "--repeat: at most 1000 runs");
	if (o->drill &&
	    (o->all || o->nodes || o->explain || o->interval_ns || o->per_core || o->per_thread))
		return err_set(err, -EINVAL,
			       "--drill chooses the nodes of one tree itself: it does not go with "
			       "--all, --nodes, --explain, -I, --per-core or --per-thread");
	if (o->drill && !job->argv && !o->duration_ns)
		return err_set(err, -EINVAL,
			       "--drill counts several times: it needs a command or --duration");
	if (job->side_count == 2 && (!command || o->interval_ns || o->explain || o->run))
		return err_set(err, -EINVAL,
			       "--vs compares two commands: it does not go with -a, -p, -I, "
			       "--explain or --run");
	if (o->run && (o->json || o->csv || o->interval_ns))
		return err_set(err, -EINVAL, "--run does not go with --json, --csv or -I");
	return 0;
}

static int check_options(const struct topdown_job *job, struct err *err)
{
	const struct topdown_options *o = &job->options;
	int r;

	if (o->json && o->csv)
		return err_set(err, -EINVAL, "--json and --csv exclude each other");
	if (!o->import && o->cpu)
		return err_set(err, -EINVAL,
			       "--cpu is for recorded counts: it needs --import FILE");
	if (o->vs && !o->import)
		return err_set(err, -EINVAL,
			       "--vs FILE goes with --import; two commands: -- A [ARG...] --vs B "
			       "[ARG...]");
	if (o->vs && o->explain)
		return err_set(err, -EINVAL, "--explain has no second side: leave --vs out");
	if (!o->import && !job->argv && !o->all_cpus && !o->pids)
		return err_set(err, -EINVAL,
			       "say what to count: a command, -p, -a, or --cpu NAME --import FILE");
	if (o->all_cpus && o->pids)
		return err_set(err, -EINVAL, "-a and -p exclude each other");
	if (o->interval_count && !o->interval_ns)
		return err_set(err, -EINVAL, "--interval-count needs -I");
	r = check_rows(o, err);
	if (r < 0)
		return r;
	return o->import ? check_import(job, err) : check_runs(job, err);
}

/* "A a b --vs B c d": two commands. */
static int split_commands(struct topdown_job *job, struct err *err)
{
	char **argv = job->argv;

	job->sides[0].argv = argv;
	job->side_count = job->options.vs ? 2 : 1;
	for (size_t i = 0; argv && argv[i]; i++) {
		if (strcmp(argv[i], "--vs") != 0)
			continue;
		argv[i] = NULL;
		job->sides[1].argv = argv + i + 1;
		job->side_count = 2;
		if (i == 0 || !argv[i + 1])
			return err_set(err, -EINVAL,
				       "--vs stands between two commands: -- A [ARG...] --vs B "
				       "[ARG...]");
		break;
	}
	return 0;
}

/* The table that --cpu names: the one tree of recorded counts. */
static int choose_table(struct topdown_job *job, struct err *err)
{
	struct topdown_tree *tree = &job->sides[0].trees[0];
	const char *cpu = job->options.cpu ? job->options.cpu : "";
	int r = 0;

	if (job->options.metrics)
		r = topdown_user_table(job, NULL, job->options.cpu, &tree->table, err);
	else
		tree->table = topdown_table_find(cpu);
	if (r < 0)
		return r;
	if (!tree->table)
		return err_set(err, -ENOENT,
			       "--cpu: no table for '%s'; see culprit topdown --list-cpus", cpu);
	snprintf(job->cpu_model, sizeof(job->cpu_model), "%s", cpu);
	snprintf(tree->pmu_name, sizeof(tree->pmu_name), "%s", tree->table->pmu);
	r = topdown_new(tree->table, &tree->topdown, err);
	if (r < 0)
		return r;
	job->sides[0].tree_count = 1;
	r = topdown_tree_choose(job, tree, err);
	topdown_side_copy(&job->sides[0], &job->sides[1]);
	return r;
}

static int list_cpus(const struct command *self)
{
	struct str out = {0};
	int status;

	for (size_t i = 0; i < topdown_tables_len; i++)
		str_printf(&out, "%-36s %s\n", topdown_tables[i].cpus, topdown_tables[i].set);
	status = cmd_write_stdout(self, str_text(&out), out.len);
	str_fini(&out);
	return status;
}

static int import_side(struct topdown_job *job, struct topdown_side *side, const char *path,
		       struct err *err)
{
	struct topdown_tree *tree = &side->trees[0];
	struct topdown_counts *counts;
	int r;

	if (topdown_tree_row(job, tree, "") < 0)
		return err_set(err, -ENOMEM, "out of memory");
	counts = &tree->rows.data[0].counts;
	counts->by_run = false;
	r = topdown_import(counts, path, err);
	if (r < 0)
		return r;
	side->runs = 1;
	str_printf(&side->title, "counts of %s", path);
	if (counts->unknown)
		str_printf(&job->notes, "%u line%s of other events not used: %s%s\n",
			   counts->unknown, counts->unknown == 1 ? "" : "s", counts->first_unknown,
			   counts->unknown == 1 ? "" : " ...");
	r = topdown_side_evaluate(job, side);
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

static int run_import(struct topdown_job *job, struct err *err)
{
	int r = choose_table(job, err);

	if (r == 0)
		r = import_side(job, &job->sides[0], job->options.import, err);
	if (r == 0 && job->options.vs)
		r = import_side(job, &job->sides[1], job->options.vs, err);
	if (r < 0)
		return r;
	r = job->options.explain ? topdown_explain(job, err) : topdown_show(job, err);
	return r == 0 && topdown_show_end(job) != EXIT_DONE ? -EPIPE : r;
}

static void fini(struct topdown_job *job)
{
	topdown_side_fini(job, &job->sides[1]);
	topdown_side_fini(job, &job->sides[0]);
	topdown_user_tables_free(job->user_tables);
	str_fini(&job->notes);
	str_fini(&job->json.out);
}

int topdown_main(const struct command *self, const struct topdown_machine *machine, int argc,
		 char **argv)
{
	struct topdown_job job = {.self = self, .machine = machine};
	struct err err = {0};
	int operand = options_parse(self, &job.options, argc, argv), r, status;

	if (job.options.list_cpus)
		return list_cpus(self);
	job.argv = operand < argc ? argv + operand : NULL;
	r = split_commands(&job, &err);
	if (r == 0)
		r = check_options(&job, &err);
	if (r == 0)
		r = job.options.import ? run_import(&job, &err) : topdown_live(&job, &err);
	if (r < 0 && r != -EPIPE)
		cmd_fail(self, r, &err);
	if (r == 0 && job.options.run)
		r = topdown_record_run(&job);
	status = r < 0 && job.exit_status == 0 ? EXIT_FAILED : job.exit_status;
	fini(&job);
	return status;
}

static int topdown_run(const struct command *self, int argc, char **argv)
{
	static const struct host host = {.root = ""};
	static const struct topdown_machine here = {.host = &host, .ops = &counter_kernel};

	return topdown_main(self, &here, argc, argv);
}

const struct command command_topdown = {
	.name = "topdown",
	.args = "[OPTIONS] [--] [COMMAND [ARG...] [--vs COMMAND [ARG...]]]",
	.summary = "why is it slow: where the slots of the core go, as a tree",
	.details =
		"A core can start a fixed number of operations each cycle: its slots. Top-down "
		"analysis says what "
		"became of them: useful work (Retiring), work thrown away (Bad_Speculation), "
		"nothing delivered by "
		"fetch (Frontend_Bound), or no room to take it (Backend_Bound); and then what "
		"lies below the "
		"largest loss. Intel, AMD and Arm cores have the same tree here, each with its "
		"vendor's "
		"formulas, named with their version in every output.\n\n"
		"A node is marked with <== when it and all above it are over their thresholds, "
		"the largest at "
		"each level, and only from values that can be trusted. Counts that cannot be "
		"true (a part of the "
		"slots below 0 or above all of them) are refused with the cause; counts that "
		"disagree are weak: "
		"shown, never marked. Retiring is marked when it alone is large: the core is "
		"busy with useful "
		"work, which says nothing about how much of that work is needed.\n\n"
		"A command is run again as often as that makes sure numbers: level 1 first, then "
		"only what lies below "
		"the mark, each run with events that fit the free counters at once. What lies "
		"below the mark in the "
		"code finds the culprit record line at the end; --run runs it. Two commands, -- A "
		"[ARG...] --vs B "
		"[ARG...], stand side by side.\n\n"
		"Machines with two kinds of cores have one tree for each. With SMT on, formulas "
		"of whole cores "
		"(Skylake) are not trusted for one thread: -a sees both. Without counters it is "
		"said what is missing, "
		"and times on, off and waiting for the CPU, faults, switches and stolen time are "
		"shown instead.\n\n"
		"A file of counts has one event a line, named as the vendor or perf names it, "
		"modifiers and "
		"cpu/.../ included. An event that was counted in several groups may stand there "
		"several times: "
		"each formula takes the ones nearest together. Lines smt_on 1, "
		"system_tsc_freq HZ and has_pmem 1 "
		"describe the machine.",
	.examples = "culprit topdown -- ./program\n\twhere its slots go\n"
		    "culprit topdown -a -d 5\n\tthe whole machine, for five seconds\n"
		    "culprit topdown -r 5 --run -- ./program\n\tfive runs, then the code behind "
		    "the mark\n"
		    "culprit topdown --cpi-stack -- ./old --vs ./new\n\ttwo programs side by side\n"
		    "culprit topdown --cpu spr --import counts.txt\n\tthe tree of recorded counts\n"
		    "culprit topdown --cpu zen4 --import counts.txt --explain Backend_Bound\n\tone "
		    "formula with its "
		    "numbers\n"
		    "culprit topdown --metrics perfmon -- ./program\n\tthe tree of a checkout of "
		    "intel/perfmon, "
		    "as deep as it goes\n"
		    "culprit topdown --cpu icx --import old.txt --cpi-stack --vs new.txt\n\tcycles "
		    "per instruction, "
		    "before and after\n",
	.exits = "That of the command, or 128 + N when signal N ended it; without a command 0 "
		 "done, 1 failure.\n",
	.options = topdown_specs,
	.stops_at_operand = true,
	.run = topdown_run,
};
