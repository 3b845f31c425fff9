/*
 * culprit record: samples a command, processes, CPUs or the whole machine into a perf.data file.
 *
 * The measured command's exit status is passed on; everything about the recording goes to stderr.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/command.h"
#include "cmd/option.h"
#include "cmd/record.h"
#include "cmd/workload.h"

#define DEFAULT_OUTPUT "perf.data"

static int set_event(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;

	(void)err;
	return vec_push(&options->event_texts, value);
}

static int set_filter(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;

	if (options->event_texts.len == 0)
		return err_set(err, -EINVAL,
			       "a filter belongs to the tracepoint before it: give -e first");
	while (options->filters.len < options->event_texts.len)
		if (vec_push(&options->filters, NULL) < 0)
			return -ENOMEM;
	options->filters.data[options->event_texts.len - 1] = value;
	return 0;
}

static int set_frequency(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;
	unsigned long long hz;

	if (strcmp(value, "max") == 0) {
		options->frequency_max = true;
		return 0;
	}
	if (parse_u64(value, 10, &hz) < 0 || hz == 0)
		return err_set(err, -EINVAL,
			       "'%s' is not a number of samples per second, nor 'max'", value);
	options->frequency_hz = hz;
	return 0;
}

static int set_count(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;
	unsigned long long events;

	if (parse_u64(value, 10, &events) < 0 || events == 0)
		return err_set(err, -EINVAL, "'%s' is not a number of events from 1 on", value);
	options->period = events;
	return 0;
}

static int set_graph(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;
	unsigned long long bytes;
	const char *size;

	if (strcmp(value, "fp") == 0)
		options->callgraph = CALLGRAPH_FP;
	else if (strcmp(value, "lbr") == 0)
		options->callgraph = CALLGRAPH_LBR;
	else if (strcmp(value, "no") == 0 || strcmp(value, "none") == 0)
		options->callgraph = CALLGRAPH_NONE;
	else if (str_prefix(value, "dwarf", &size) && (*size == '\0' || *size == ',')) {
		bool raw = str_prefix(size, ",raw", &size) && (*size == '\0' || *size == ',');

		options->callgraph = raw ? CALLGRAPH_DWARF_RAW : CALLGRAPH_DWARF;
		if (*size == ',' &&
		    (parse_size(size + 1, &bytes) < 0 || bytes < 8 || bytes > 65528 || bytes % 8))
			return err_set(err, -EINVAL,
				       "'%s': the stack size is a multiple of 8 up to 65528",
				       size + 1);
		if (*size == ',')
			options->stack_bytes = (uint32_t)bytes;
	} else
		return err_set(err, -EINVAL,
			       "'%s': expected fp, dwarf[,BYTES], dwarf,raw[,BYTES], lbr or no",
			       value);
	return 0;
}

static int set_graph_fp(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;

	(void)value;
	(void)err;
	if (options->callgraph == CALLGRAPH_NONE)
		options->callgraph = CALLGRAPH_FP;
	return 0;
}

/* "128" pages or "512K": rounded up to a power of two pages. */
static int set_ring(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;
	unsigned long long bytes, page = (unsigned long long)sysconf(_SC_PAGESIZE), whole = page;

	if (strspn(value, "0123456789") == strlen(value) && parse_u64(value, 10, &bytes) == 0 &&
	    bytes < UINT32_MAX)
		bytes *= page;
	else if (parse_size(value, &bytes) < 0)
		return err_set(err, -EINVAL,
			       "'%s' is not a number of pages, nor a size such as 512K", value);
	if (bytes == 0 || bytes > UINT64_C(1) << 31)
		return err_set(err, -ERANGE, "'%s': a ring has 1 page to 2 GiB", value);
	while (whole < bytes)
		whole *= 2;
	options->ring_bytes = whole;
	return 0;
}

static int set_zstd(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;
	unsigned long long level = 1;

	if (value && (parse_u64(value, 10, &level) < 0 || level < 1 || level > 22))
		return err_set(err, -EINVAL, "'%s' is not a zstd level (1 to 22)", value);
	options->zstd_level = (int)level;
	return 0;
}

static int set_cpus(void *data, const char *value, struct err *err)
{
	struct record_options *options = data;
	int r = cpuset_parse(value, &options->cpus, err);

	options->cpus_given = true;
	if (r == 0 && cpuset_count(&options->cpus) == 0)
		r = err_set(err, -EINVAL, "the list of CPUs is empty");
	return r;
}

static int add_ids(struct record_ids *ids, const char *value, struct err *err)
{
	for (const char *at = value; *at != '\0';) {
		char *end;
		long id = strtol(at, &end, 10);

		if (end == at || id <= 0 || id > INT32_MAX || (*end != ',' && *end != '\0'))
			return err_set(err, -EINVAL,
				       "'%s' is not a list of process ids such as 12,34", value);
		if (vec_push(ids, (pid_t)id) < 0)
			return -ENOMEM;
		at = end + (*end == ',');
	}
	return ids->len == 0 ? err_set(err, -EINVAL, "the list is empty") : 0;
}

static int set_pids(void *data, const char *value, struct err *err)
{
	return add_ids(&((struct record_options *)data)->pids, value, err);
}

static int set_tids(void *data, const char *value, struct err *err)
{
	return add_ids(&((struct record_options *)data)->tids, value, err);
}

static const struct option_spec record_specs[] = {
	OPT_HEADING("What to record"),
	OPT_FLAG('a', "all-cpus", struct record_options, system_wide,
		 "The whole machine (the default without a command or -p, -t, -u)."),
	OPT_CALL(
		'C', "cpu", "LIST", set_cpus,
		"Only these CPUs, such as 0-3,8; implies -a unless a command or process is given."),
	OPT_CALL(
		'p', "pid", "PID,...", set_pids,
		"These processes with all their threads, and the children they start from now on."),
	OPT_CALL('t', "tid", "TID,...", set_tids, "These threads."),
	OPT_TEXT('u', "uid", "USER", struct record_options, user,
		 "All processes of this user (name or number) that run now, and their children."),
	OPT_FLAG('i', "no-inherit", struct record_options, no_inherit,
		 "Children and new threads are not recorded."),
	OPT_HEADING("Events"),
	{.kind = OPTION_CALL,
	 .short_name = 'e',
	 .name = "event",
	 .arg = "EVENT",
	 .set = set_event,
	 .complete = "cycles instructions cpu-clock task-clock page-faults context-switches",
	 .help = "Sample this event, in perf's syntax: cycles:u, cpu/event=0xd1,umask=1/, "
		 "sched:sched_switch, {a,b}; may be given several times. Default: cycles with the "
		 "highest precision that works, else cpu-clock."},
	OPT_CALL(0, "filter", "FILTER", set_filter,
		 "Keep only tracepoint events for which this holds, such as 'prev_pid == 0'; for "
		 "the -e before it."),
	OPT_CALL('F', "freq", "HZ", set_frequency,
		 "Samples per second and CPU, or 'max' for what the kernel allows. Default: 4000."),
	OPT_CALL('c', "count", "N", set_count, "Sample every N events instead of at a frequency."),
	OPT_HEADING("Call stacks"),
	OPT_CALL('g', NULL, NULL, set_graph_fp,
		 "Record call stacks by frame pointers (as --call-graph fp)."),
	{.kind = OPTION_CALL,
	 .name = "call-graph",
	 .arg = "MODE",
	 .set = set_graph,
	 .complete = "fp dwarf dwarf,raw lbr no",
	 .help = "fp: frame pointers. dwarf[,BYTES]: copy registers and up to BYTES of each stack "
		 "(default: 65528, or what the rings allow) and unwind them at once, so that the "
		 "file has the stacks only; code of just-in-time compilers is unwound as their "
		 "jitdump says, or by frame pointers. dwarf,raw[,BYTES]: keep the copies in the "
		 "file "
		 "(default 8192), as perf does. lbr: the CPU's branch records. no: none."},
	OPT_HEADING("When"),
	OPT_DURATION('d', "duration", "TIME", struct record_options, duration_ns, 0,
		     "End after this time: 10s, 500ms, 2m. A command that still runs is ended with "
		     "SIGTERM."),
	OPT_DURATION('D', "delay", "MS", struct record_options, delay_ns, NSEC_PER_MSEC,
		     "Begin sampling this many milliseconds after the start."),
	OPT_HEADING("Output"),
	{.kind = OPTION_TEXT,
	 .short_name = 'o',
	 .name = "output",
	 .arg = "FILE",
	 .offset = offsetof(struct record_options, output),
	 .complete = "@file",
	 .help = "Write here instead of perf.data; a file that is there is kept as FILE.old."},
	OPT_CALL('z', "compression-level", "[LEVEL]", set_zstd,
		 "Compress with zstd (level 1 to 22, default 1)."),
	OPT_CALL('m', "mmap-pages", "PAGES", set_ring,
		 "Ring buffer per CPU, in pages or as a size (512K). Default: 1M, or what "
		 "kernel.perf_event_mlock_kb leaves."),
	OPT_FLAG('q', "quiet", struct record_options, quiet, "Say nothing but errors."),
	OPT_FLAG('v', "verbose", struct record_options, verbose, "Say what was opened."),
	OPT_END,
};

static bool workload_has_ended(void *arg)
{
	return workload_reap(arg, false);
}

static void print_status(void *arg, const struct recorder *recorder)
{
	char elapsed[32];

	(void)arg;
	fprintf(stderr, "\rrecording %s, %.1f MB \x1b[K",
		duration_text(recorder_elapsed_ns(recorder), elapsed, sizeof(elapsed)),
		(double)recorder_file_bytes(recorder) / 1e6);
}

/*
 * Signals are blocked before the command starts, so that none is lost between start and loop. A
 * blocked SIGXFSZ makes the file size limit an error of write(2), and unlike an ignored one does
 * not reach the command.
 */
static void block_signals(sigset_t *ends)
{
	sigset_t size_limit;

	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sigaddset(ends, SIGHUP);
	sigaddset(ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, ends, NULL);
	sigemptyset(&size_limit);
	sigaddset(&size_limit, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &size_limit, NULL);
}

/*
 * After the recording: a command that still runs is asked to end, and waited for. The file is
 * complete by then, so another Ctrl-C may end us before a command that does not listen.
 */
static void end_workload(struct workload *work, const struct record_job *job)
{
	if (work->pid == 0 || work->ended)
		return;
	if (!job->result.signal_from_terminal)
		workload_kill(work, SIGTERM);
	work->stopped = true;
	sigprocmask(SIG_UNBLOCK, &job->recorder_options.ends, NULL);
	workload_reap(work, true);
}

static int record_workload(const struct command *self, struct record_job *job, char **argv)
{
	struct workload *work = &job->work;
	struct err err = {0};
	int r = 0, status = EXIT_DONE, finished;

	if (*argv) {
		r = workload_hold(work, argv, &err);
		if (r < 0)
			return cmd_fail(self, r, &err);
	}
	job->recorder_options.workload = work->pid;
	r = recorder_open(&job->recorder_options, &job->recorder, &err);
	if (r < 0) {
		workload_kill(work, SIGKILL);
		return cmd_fail(self, r, &err);
	}
	if (*argv) {
		r = workload_release(work, argv, &err);
		if (r < 0) {
			recorder_discard(job->recorder);
			cmd_fail(self, r, &err);
			return workload_exec_status(r);
		}
	}
	r = recorder_run(job->recorder, workload_has_ended, work, &err);
	if (job->recorder_options.status)
		fprintf(stderr, "\r\x1b[K");
	if (r < 0)
		status = cmd_fail(self, r, &err);
	finished = recorder_finish(job->recorder, &job->result, &err);
	if (finished < 0 && r == 0)
		status = cmd_fail(self, finished, &err);
	end_workload(work, job);
	return status;
}

static int record_run(const struct command *self, int argc, char **argv)
{
	struct record_job job = {.options.output = DEFAULT_OUTPUT};
	int first = options_parse(self, &job.options, argc, argv), status;
	struct err err = {0};
	int r;

	job.has_command = first < argc;
	r = record_prepare(&job, &err);
	if (r < 0) {
		record_job_fini(&job);
		return cmd_fail(self, r, &err);
	}
	block_signals(&job.recorder_options.ends);
	job.recorder_options.argc = argc;
	job.recorder_options.argv = argv;
	if (!job.options.quiet && isatty(STDERR_FILENO))
		job.recorder_options.status = print_status;
	status = record_workload(self, &job, argv + first);
	if (status == EXIT_DONE && !job.options.quiet)
		record_print_summary(self, &job);
	record_job_fini(&job);
	if (status == EXIT_DONE && job.work.ended && !job.work.stopped)
		workload_exit_like(&job.work);
	return status;
}

const struct command command_record = {
	.name = "record",
	.args = "[OPTIONS] [--] [COMMAND [ARG...]]",
	.summary = "sample where the CPU time goes, into a perf.data file",
	.details =
		"Records a command until it ends, or processes, CPUs or the whole machine until "
		"Ctrl-C, SIGTERM or "
		"--duration. The file is perf.data as perf reads it. It also keeps the kernel "
		"symbols that its samples "
		"need, and the functions and lines of BPF programs, so that another user or "
		"machine can read it.\n\n"
		"Without a PMU (most virtual machines) the default event is cpu-clock: a timer, "
		"whose samples fall where "
		"interrupts are on again. With a PMU it is cycles with the highest precision "
		"that works. Which one it was, "
		"and what its skid means, is said at the end and stands in the report.\n\n"
		"The file is sound at every moment: after Ctrl-C and SIGTERM it is complete; "
		"after a kill -9 or a full disk "
		"it holds what was written until then; 'culprit report' reads it, says that it is "
		"not complete and exits with 3. What was lost or throttled is counted and shown.",
	.examples = "culprit record -g -- make -j8\n\tprofile a build with call stacks\n"
		    "culprit record -a -g -F 99 -d 10s\n\tthe whole machine for 10 seconds\n"
		    "culprit record -p $(pidof postgres | tr ' ' ,) -g\n\trunning processes, until "
		    "Ctrl-C\n"
		    "culprit record -e sched:sched_switch -c 1 -a -d 1s\n\tevery context switch of "
		    "a second\n",
	.exits = "The command's own status (128 + N when signal N ended it); 126 or 127 when it "
		 "cannot be started; "
		 "otherwise 0 done, 1 failure.\n",
	.options = record_specs,
	.stops_at_operand = true,
	.run = record_run,
};
