/* culprit stat: counting with states, errors and ratios that can be trusted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/option.h"
#include "cmd/stat.h"
#include "cmd/workload.h"
#include "events/env.h"

static int set_event(void *options, const char *value, struct err *err)
{
	struct stat_options *o = options;

	return vec_push(&o->events, value) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int set_detail(void *options, const char *value, struct err *err)
{
	((struct stat_options *)options)->detail++;
	return 0;
}

static int set_delay(void *options, const char *value, struct err *err)
{
	struct stat_options *o = options;
	unsigned long long ns;

	if (strcmp(value, "-1") == 0) {
		o->delay_ms = -1;
		return 0;
	}
	if (parse_duration_ns(value, NSEC_PER_MSEC, &ns) < 0)
		return err_set(err, -EINVAL,
			       "'%s' is not a time such as 500 (ms), 2s, or -1 to start disabled",
			       value);
	o->delay_ms = (int64_t)(ns / NSEC_PER_MSEC);
	return 0;
}

#define AGGREGATE(name_, mode_)                                                   \
	static int set_##name_(void *options, const char *value, struct err *err) \
	{                                                                         \
		((struct stat_options *)options)->aggregate = mode_;              \
		return 0;                                                         \
	}

AGGREGATE(per_cpu, STAT_PER_CPU)
AGGREGATE(per_core, STAT_PER_CORE)
AGGREGATE(per_socket, STAT_PER_SOCKET)
AGGREGATE(per_node, STAT_PER_NODE)
AGGREGATE(per_thread, STAT_PER_THREAD)

static const struct option_spec stat_specs[] = {
	OPT_HEADING("What to count"),
	OPT_CALL('e', "event", "LIST", set_event,
		 "Events, as in perf: names, rNNN, tracepoints, {groups}, :u and :k. May be given "
		 "again."),
	{.kind = OPTION_CALL,
	 .short_name = 'd',
	 .name = "detailed",
	 .set = set_detail,
	 .help = "Add cache events; -d -d adds instruction caches and TLBs, -d -d -d prefetches."},
	OPT_TEXT('M', "metrics", "LIST", struct stat_options, metrics,
		 "Count what these metrics need: names, groups and globs of 'culprit list metric', "
		 "or formulas of one's "
		 "own such as 'page-faults / duration_time'."),
	OPT_TEXT(0, "explain", "METRIC", struct stat_options, explain,
		 "Count a metric and print its formula with the numbers in it."),
	OPT_TEXT(0, "events-dir", "DIR", struct stat_options, events_dir,
		 "The CPU vendor's files with names of events and metrics, see culprit-list(1). "
		 "Default: "
		 "$CULPRIT_EVENTS_DIR."),
	OPT_FLAG(0, "regions", struct stat_options, regions,
		 "Count in the regions that the command marks with libculprit, instead of the "
		 "whole command; with "
		 "--per-thread one row for each thread of each region. -e chooses at most 8 "
		 "events."),
	OPT_FLAG('n', "null", struct stat_options, null_run, "Count nothing: only the times."),
	OPT_HEADING("Where"),
	OPT_TEXT('p', "pid", "LIST", struct stat_options, pids,
		 "Running processes, with all their threads."),
	OPT_TEXT('t', "tid", "LIST", struct stat_options, tids, "Running threads."),
	OPT_FLAG('a', "all-cpus", struct stat_options, all_cpus,
		 "The whole machine, until the command or Ctrl-C ends it."),
	OPT_TEXT('C', "cpu", "LIST", struct stat_options, cpus, "These CPUs (0-3,8) only."),
	OPT_TEXT(0, "for-each-cgroup", "LIST", struct stat_options, cgroups,
		 "One row for each cgroup, named below /sys/fs/cgroup."),
	OPT_FLAG('i', "no-inherit", struct stat_options, no_inherit,
		 "Leave out the children of what is counted."),
	OPT_HEADING("Rows"),
	OPT_CALL('A', "no-aggr", NULL, set_per_cpu, "One row for each CPU."),
	OPT_CALL(0, "per-core", NULL, set_per_core, "One row for each core."),
	OPT_CALL(0, "per-socket", NULL, set_per_socket, "One row for each socket."),
	OPT_CALL(0, "per-node", NULL, set_per_node, "One row for each NUMA node."),
	OPT_CALL(0, "per-thread", NULL, set_per_thread, "With -p or -t: one row for each thread."),
	OPT_HEADING("When"),
	OPT_U64('r', "repeat", "N", struct stat_options, repeat,
		"Run the command N times; means and their standard errors."),
	OPT_FLAG(0, "exact", struct stat_options, exact,
		 "When the events do not fit the counters at once, run the command again for the "
		 "rest: nothing is "
		 "estimated."),
	OPT_FLAG(0, "pinned", struct stat_options, pinned,
		 "Never share counters with others: an event that loses its counter is not "
		 "counted, and said so."),
	OPT_DURATION('I', "interval-print", "MS", struct stat_options, interval_ns, NSEC_PER_MSEC,
		     "Print what was counted every so many milliseconds."),
	OPT_U64(0, "interval-count", "N", struct stat_options, interval_count,
		"Stop after N intervals."),
	OPT_CALL('D', "delay", "MS", set_delay,
		 "Start counting so much after the command; -1: disabled, see --control."),
	OPT_DURATION(0, "timeout", "MS", struct stat_options, timeout_ns, NSEC_PER_MSEC,
		     "Stop after this time."),
	OPT_TEXT(0, "control", "CHANNEL", struct stat_options, control,
		 "fd:IN[,ACK] or fifo:IN[,ACK]: lines enable, disable, ping and stop are obeyed "
		 "and answered with ack."),
	OPT_HEADING("Output"),
	OPT_TEXT('o', "output", "FILE", struct stat_options, output, "Write the result there."),
	OPT_FLAG(0, "append", struct stat_options, append, "Add to that file."),
	OPT_FLAG('j', "json", struct stat_options, json, "One JSON document, to standard output."),
	OPT_FLAG(0, "csv", struct stat_options, csv,
		 "CSV with a header, states and errors, to standard output."),
	OPT_TEXT('x', "field-separator", "SEP", struct stat_options, separator,
		 "The columns of perf stat -x, for scripts."),
	OPT_FLAG('B', "big-num", struct stat_options, big_numbers,
		 "Group the digits of large numbers (the default)."),
	OPT_FLAG(0, "no-big-num", struct stat_options, plain_numbers, "Do not group digits."),
	OPT_FLAG('v', "verbose", struct stat_options, verbose,
		 "Show groups, raw counts and times."),
	OPT_END,
};

static const char *quote_command(char **argv, struct str *out)
{
	str_putc(out, '\'');
	for (size_t i = 0; argv[i]; i++)
		str_printf(out, "%s%s", i ? " " : "", argv[i]);
	str_putc(out, '\'');
	return str_text(out);
}

static int make_title(struct stat_job *job)
{
	const struct stat_options *o = &job->options;
	struct str title = {0};

	if (o->pids || o->tids)
		str_printf(&title, "%s %s", o->pids ? "process" : "thread",
			   o->pids ? o->pids : o->tids);
	else if (o->cgroups)
		str_printf(&title, "cgroups %s", o->cgroups);
	else if (o->cpus)
		str_printf(&title, "CPUs %s", o->cpus);
	else if (job->target.system_wide)
		str_puts(&title, "the whole machine");
	else
		quote_command(job->argv, &title);
	return str_take(&title, &job->title);
}

static int check_options(struct stat_job *job, struct err *err)
{
	struct stat_options *o = &job->options;

	if (o->json + o->csv + (o->separator != NULL) > 1)
		return err_set(err, -EINVAL, "--json, --csv and -x exclude each other");
	o->format = o->json ? STAT_JSON : o->csv ? STAT_CSV : o->separator ? STAT_PERF : STAT_TEXT;
	if (o->separator && strcmp(o->separator, "\\t") == 0)
		o->separator = "\t";
	if (!job->argv && (o->repeat > 1 || o->exact))
		return err_set(err, -EINVAL, "%s needs a command to run again",
			       o->exact ? "--exact" : "--repeat");
	if (o->interval_ns && (o->repeat > 1 || o->exact))
		return err_set(err, -EINVAL, "-I does not go with --repeat or --exact");
	if (o->interval_ns && o->interval_ns < NSEC_PER_MSEC)
		return err_set(err, -EINVAL, "-I: an interval is at least 1 ms");
	if (o->interval_count && !o->interval_ns)
		return err_set(err, -EINVAL, "--interval-count needs -I");
	if (o->regions && o->aggregate == STAT_PER_THREAD) {
		o->regions_by_thread = true;
		o->aggregate = STAT_SUM;
	}
	if (o->append && !o->output)
		return err_set(err, -EINVAL, "--append needs -o FILE");
	return 0;
}

static int open_output(struct stat_job *job, struct err *err)
{
	const struct stat_options *o = &job->options;

	if (o->output)
		job->out = fopen(o->output, o->append ? "ae" : "we");
	else if (o->format == STAT_JSON || o->format == STAT_CSV)
		job->out = stdout;
	else
		job->out =
			fdopen(STDERR_FILENO, "w"); /* stderr itself writes every piece at once */
	return job->out ? 0
			: err_set(err, -errno, "%s: %s", o->output ? o->output : "standard error",
				  strerrordesc_np(errno));
}

/* What the plan has to say is said before the run. */
static void print_plan_notes(const struct stat_job *job)
{
	const char *line = str_text(&job->set.notes), *end;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
		cmd_warnf(job->self, "%.*s", (int)(end - line), line);
}

static int prepare(struct stat_job *job, struct err *err)
{
	struct count_plan_options how = {.exact = job->options.exact,
					 .pinned = job->options.pinned};
	int r = check_options(job, err);

	if (r == 0)
		r = stat_choose_target(job, err);
	if (r == 0 && make_title(job) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = stat_choose_events(job, err);
	if (r == 0 && count_plan(&job->set, &counter_kernel, NULL, &how) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = stat_choose_metrics(job, err);
	if (r == 0)
		r = open_output(job, err);
	return r;
}

static void fini(struct stat_job *job)
{
	stat_regions_end(job);
	vec_for_each(&job->run_values, values)
		free(*values);
	vec_fini(&job->run_values);
	vec_fini(&job->run_walls);
	vec_fini(&job->run_users);
	vec_fini(&job->run_systems);
	vec_for_each(&job->target.pidfds, fd)
		close(*fd);
	vec_for_each(&job->target.cgroup_fds, fd)
		close(*fd);
	vec_fini(&job->target.pidfds);
	vec_fini(&job->target.cgroup_fds);
	vec_fini(&job->target.places);
	vec_fini(&job->target.rows);
	vec_for_each(&job->metrics, metric)
		stat_metric_fini(metric);
	vec_fini(&job->metrics);
	event_env_free(job->env);
	arena_fini(&job->texts);
	vec_fini(&job->options.events);
	count_set_fini(&job->set);
	str_fini(&job->json.out);
	free(job->title);
	if (job->out && job->out != stdout)
		fclose(job->out);
}

static int stat_run(const struct command *self, int argc, char **argv)
{
	struct stat_job job = {.self = self};
	struct err err = {0};
	int operand = options_parse(self, &job.options, argc, argv), r;

	job.argv = operand < argc ? argv + operand : NULL;
	r = prepare(&job, &err);
	if (r == 0) {
		print_plan_notes(&job);
		if (job.options.format == STAT_JSON)
			stat_json_begin(&job);
		r = stat_run_all(&job, &err);
	}
	if (r < 0)
		cmd_fail(self, r, &err);
	fini(&job);
	return r == 0 ? EXIT_DONE : job.exit_status ? job.exit_status : EXIT_FAILED;
}

const struct command command_stat = {
	.name = "stat",
	.args = "[OPTIONS] [--] [COMMAND [ARG...]]",
	.summary = "count events of a command, of running processes or of the whole machine",
	.details = "Runs COMMAND and counts what it does, or attaches to what is running. Every "
		   "value has a state. Measured "
		   "values were counted the whole time. When more events are asked for than there "
		   "are counters, they take "
		   "turns: the value is then estimated by the cycles seen meanwhile, and shown "
		   "with its standard error and "
		   "the share of the time in which it was counted (weak under 40 %). What could "
		   "not be counted says why, and "
		   "is never shown as 0; what cannot be true (more instructions per cycle than any "
		   "core can do, more misses "
		   "than accesses) is refused.\n\n"
		   "How many counters are really free is found by trial at the start. Both halves "
		   "of a ratio share a group, so "
		   "that they see the same time; a ratio of numbers from different moments is "
		   "marked with *.\n\n"
		   "Text and -x go to standard error, JSON and CSV to standard output. The command "
		   "keeps its standard input "
		   "and output, and its exit status becomes that of culprit.",
	.examples = "culprit stat -- ./program\n\tthe usual counters of one run\n"
		    "culprit stat -r 10 -- ./program\n\tten runs, with the spread\n"
		    "culprit stat -e instructions:u,branches:u,branch-misses:u -- "
		    "./program\n\tchosen events\n"
		    "culprit stat -a -I 1000\n\tthe whole machine, every second\n"
		    "culprit stat --regions -- ./program\n\ttime and counts of its regions, see "
		    "culprit(3)\n"
		    "culprit stat --explain ipc -- ./program\n\ta formula with its numbers\n",
	.exits = "That of the command, or 128 + N when signal N ended it; 127 when it is not "
		 "found, 126 when it cannot\n"
		 "be run; without a command 0 done, 1 failure.\n",
	.options = stat_specs,
	.stops_at_operand = true,
	.run = stat_run,
};
