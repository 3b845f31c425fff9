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
	OPT_FLAG(0, "list-cpus", struct topdown_options, list_cpus,
		 "List the cores that have a table."),
	OPT_HEADING("Or what to count here"),
	OPT_TEXT('p', "pid", "LIST", struct topdown_options, pids,
		 "Running processes, with all their threads."),
	OPT_FLAG('a', "all-cpus", struct topdown_options, all_cpus,
		 "The whole machine, until the command, --duration or Ctrl-C ends it."),
	OPT_DURATION('d', "duration", "TIME", struct topdown_options, duration_ns, NSEC_PER_SEC,
		     "Stop after this time (5, 500ms)."),
	OPT_DURATION('I', "interval-print", "MS", struct topdown_options, interval_ns,
		     NSEC_PER_MSEC, "A tree every so many milliseconds."),
	OPT_U64(0, "interval-count", "N", struct topdown_options, interval_count,
		"Stop after N intervals."),
	OPT_FLAG(0, "no-multiplex", struct topdown_options, no_multiplex,
		 "Run the command again for events that do not fit the counters at once: nothing "
		 "is estimated."),
	OPT_HEADING("How deep"),
	OPT_U64('l', "level", "N", struct topdown_options, level, "Down to level N, everything."),
	OPT_FLAG(0, "all", struct topdown_options, all, "Every node that the table has."),
	OPT_TEXT(0, "nodes", "LIST", struct topdown_options, nodes,
		 "Only these nodes, separated by commas; * and ? match."),
	OPT_HEADING("Output"),
	OPT_TEXT(0, "explain", "NODE", struct topdown_options, explain,
		 "The formula of a node with the counts in it."),
	OPT_FLAG(0, "cpi-stack", struct topdown_options, cpi_stack,
		 "Cycles for each instruction, divided among base, front end, bad speculation, "
		 "memory and core."),
	OPT_TEXT(0, "vs", "FILE", struct topdown_options, vs,
		 "With --import: the CPI stack beside that of a second file of the same core."),
	OPT_FLAG('j', "json", struct topdown_options, json, "One JSON document."),
	OPT_FLAG(0, "csv", struct topdown_options, csv, "CSV with a header."),
	OPT_END,
};

static int check_options(const struct topdown_job *job, struct err *err)
{
	const struct topdown_options *o = &job->options;

	if (o->json && o->csv)
		return err_set(err, -EINVAL, "--json and --csv exclude each other");
	if (!o->import && o->cpu)
		return err_set(err, -EINVAL,
			       "--cpu is for recorded counts: it needs --import FILE");
	if (o->vs && !o->import)
		return err_set(err, -EINVAL, "--vs goes with --import");
	if (!o->import && !job->argv && !o->all_cpus && !o->pids)
		return err_set(err, -EINVAL,
			       "say what to count: a command, -p, -a, or --cpu NAME --import FILE");
	if (o->all_cpus && o->pids)
		return err_set(err, -EINVAL, "-a and -p exclude each other");
	if (o->interval_count && !o->interval_ns)
		return err_set(err, -EINVAL, "--interval-count needs -I");
	if (o->no_multiplex && (!job->argv || o->interval_ns || o->all_cpus || o->pids))
		return err_set(err, -EINVAL, "--no-multiplex needs a command to run again");
	if (!o->import)
		return 0;
	if (!o->cpu)
		return err_set(err, -EINVAL,
			       "--import needs --cpu NAME, the core that the counts come from");
	if (o->vs && (!o->cpi_stack || o->json || o->csv))
		return err_set(err, -EINVAL, "--vs goes with --cpi-stack, as text");
	if (job->argv)
		return err_set(err, -EINVAL, "--import evaluates a file and runs no command");
	return 0;
}

static int choose_table(struct topdown_job *job, struct err *err)
{
	const char *cpu = job->options.cpu;

	job->table = topdown_table_find(cpu);
	if (!job->table)
		return err_set(err, -ENOENT,
			       "--cpu: no table for '%s'; see culprit topdown --list-cpus", cpu);
	snprintf(job->cpu_model, sizeof(job->cpu_model), "%s", cpu);
	return topdown_new(job->table, &job->topdown, err);
}

static int choose_nodes(struct topdown_job *job, struct err *err)
{
	CLEANUP_FREE char *list = NULL;
	char *save = NULL;

	if (job->options.explain && topdown_node_find(job->table, job->options.explain) < 0)
		return err_set(err, -ENOENT, "--explain: %s has no node '%s'", job->table->set,
			       job->options.explain);
	if (!job->options.nodes)
		return 0;
	list = strdup(job->options.nodes);
	job->chosen = calloc(job->table->node_count + 1, sizeof(*job->chosen));
	if (!list || !job->chosen)
		return err_set(err, -ENOMEM, "out of memory");
	for (char *word = strtok_r(list, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		bool found = false;

		for (size_t i = 0; i < job->table->node_count; i++)
			if (str_glob(word, job->table->nodes[i].name)) {
				job->chosen[i] = found = true;
			}
		if (!found)
			return err_set(err, -ENOENT, "--nodes: %s has no node '%s'",
				       job->table->set, word);
	}
	return 0;
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

static int evaluate_file(struct topdown_job *job, const char *path, struct topdown_counts *counts,
			 struct topdown_result *ret, struct err *err)
{
	struct topdown_inputs inputs;
	int r;

	counts->table = job->table;
	r = topdown_import(counts, path, err);
	if (r < 0)
		return r;
	topdown_counts_inputs(counts, &inputs);
	r = topdown_eval(job->topdown, &inputs, topdown_max_level(job), ret);
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

static int compare_stacks(struct topdown_job *job, const struct topdown_result *a, struct err *err)
{
	struct topdown_counts counts = {0};
	struct topdown_result b = {0};
	struct str out = {0};
	int r = evaluate_file(job, job->options.vs, &counts, &b, err);

	if (r == 0) {
		topdown_cpi_text(job, a, &b, &out);
		if (cmd_write_stdout(job->self, str_text(&out), out.len) != EXIT_DONE)
			r = -EPIPE;
	}
	str_fini(&out);
	topdown_result_fini(&b);
	topdown_counts_fini(&counts);
	return r;
}

static int run_import(struct topdown_job *job, struct err *err)
{
	struct topdown_result result = {0};
	int r = evaluate_file(job, job->options.import, &job->counts, &result, err);

	if (r < 0)
		return r;
	job->runs = 1;
	str_printf(&job->title, "counts of %s", job->options.import);
	if (job->counts.unknown)
		str_printf(&job->notes, "%u line%s of other events not used: %s%s\n",
			   job->counts.unknown, job->counts.unknown == 1 ? "" : "s",
			   job->counts.first_unknown, job->counts.unknown == 1 ? "" : " ...");
	if (job->options.vs)
		r = compare_stacks(job, &result, err);
	else if (job->options.explain)
		r = topdown_explain(job, &result, err);
	else
		r = topdown_show(job, &result, err);
	if (r == 0 && topdown_show_end(job) != EXIT_DONE)
		r = -EPIPE;
	topdown_result_fini(&result);
	return r;
}

static void fini(struct topdown_job *job)
{
	topdown_counts_fini(&job->counts);
	topdown_free(job->topdown);
	str_fini(&job->title);
	str_fini(&job->notes);
	str_fini(&job->json.out);
	free(job->chosen);
}

int topdown_main(const struct command *self, const struct topdown_machine *machine, int argc,
		 char **argv)
{
	struct topdown_job job = {.self = self, .machine = machine};
	struct err err = {0};
	int operand = options_parse(self, &job.options, argc, argv), r;

	if (job.options.list_cpus)
		return list_cpus(self);
	job.argv = operand < argc ? argv + operand : NULL;
	r = check_options(&job, &err);
	if (r == 0 && job.options.import)
		r = choose_table(&job, &err);
	else if (r == 0 &&
		 topdown_detect(&job, &err) == 0) /* without a table err says what is missing */
		r = topdown_new(job.table, &job.topdown, &err);
	if (r == 0 && job.table)
		r = choose_nodes(&job, &err);
	if (r == 0)
		r = job.options.import ? run_import(&job, &err) : topdown_live(&job, &err);
	if (r < 0 && r != -EPIPE)
		cmd_fail(self, r, &err);
	fini(&job);
	return r < 0 && job.exit_status == 0 ? EXIT_FAILED : job.exit_status;
}

static int topdown_run(const struct command *self, int argc, char **argv)
{
	static const struct host host = {.root = ""};
	static const struct topdown_machine here = {.host = &host, .ops = &counter_kernel};

	return topdown_main(self, &here, argc, argv);
}

const struct command command_topdown = {
	.name = "topdown",
	.args = "[OPTIONS] [--] [COMMAND [ARG...]]",
	.summary = "why is it slow: where the slots of the core go, as a tree",
	.details = "A core can start a fixed number of operations each cycle: its slots. Top-down "
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
		   "A file of counts has one event a line, named as the vendor or perf names it, "
		   "modifiers and "
		   "cpu/.../ included. An event that was counted in several groups may stand there "
		   "several times: "
		   "each formula takes the ones nearest together. Lines smt_on 1 and "
		   "system_tsc_freq HZ describe "
		   "the machine.",
	.examples = "culprit topdown -- ./program\n\twhere its slots go\n"
		    "culprit topdown -a -d 5\n\tthe whole machine, for five seconds\n"
		    "culprit topdown --cpu spr --import counts.txt\n\tthe tree of recorded counts\n"
		    "culprit topdown --cpu zen4 --import counts.txt --explain Backend_Bound\n\tone "
		    "formula with its "
		    "numbers\n"
		    "culprit topdown --cpu icx --import old.txt --cpi-stack --vs new.txt\n\tcycles "
		    "per instruction, "
		    "before and after\n",
	.exits = "That of the command, or 128 + N when signal N ended it; without a command 0 "
		 "done, 1 failure.\n",
	.options = topdown_specs,
	.stops_at_operand = true,
	.run = topdown_run,
};
