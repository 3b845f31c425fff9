/* culprit timerlat: from a timer's expiry to its interrupt, its thread and user space. */
#include "cmd/latency-run.h"

#define CLI struct latency_cli

static const struct option_spec timerlat_options[] = {
	OPT_HEADING("What is measured"),
	LATENCY_ROWS_CPUS,
	OPT_DURATION('p', "period", "US", CLI, period_ns, NSEC_PER_USEC,
		     "Time between two wake-ups, 100 us to 1 s. A bare number is in microseconds. "
		     "Default: "
		     "1000."),
	OPT_CALL(
		'A', "aligned", "US", latency_set_aligned,
		"Let the wake-ups of each CPU come that much after those of the one before. 0: all "
		"together."),
	OPT_FLAG('u', "user-threads", CLI, user_threads,
		 "Measure threads of our own, with the return to user space. The default where it "
		 "can be "
		 "done."),
	OPT_FLAG('k', "kernel-threads", CLI, kernel_threads,
		 "Measure threads of the kernel (engine K)."),
	OPT_FLAG('U', "user-load", CLI, user_load,
		 "Wait for threads of somebody else on timerlat_fd (engine K)."),
	LATENCY_ROWS_RUN(CLI),
	OPT_U64(0, "dma-latency", "US", CLI, dma_latency_us,
		"Hold /dev/cpu_dma_latency at this value, 0 to 10000 us, until the end: no deep "
		"idle "
		"states. Not touched by default."),
	OPT_CALL(0, "deepest-idle-state", "N", latency_set_deepest_idle,
		 "Disable idle states deeper than N on the measured CPUs until the end, -1: all."),
	OPT_HEADING("Thresholds and analysis"),
	OPT_CALL('a', "auto", "US", latency_set_auto, "The same as -i US -T US -s US -t."),
	OPT_DURATION('i', "irq", "US", CLI, irq_ns, NSEC_PER_USEC,
		     "Stop when the timer's interrupt comes that late."),
	OPT_DURATION('T', "thread", "US", CLI, thread_ns, NSEC_PER_USEC,
		     "Stop when the thread, or user space, is reached that late."),
	OPT_DURATION('s', "stack", "US", CLI, stack_ns, NSEC_PER_USEC,
		     "Keep the stack that was interrupted when a latency reaches this."),
	OPT_DURATION(0, "aa-only", "US", CLI, aa_only_ns, NSEC_PER_USEC,
		     "Stop at this latency and print the automatic analysis alone (top)."),
	OPT_FLAG(0, "no-aa", CLI, no_aa, "No automatic analysis."),
	OPT_FLAG(0, "dump-tasks", CLI, dump_tasks,
		 "At a threshold print what runs on the measured CPUs."),
	OPT_HEADING("Trace and actions"),
	LATENCY_ROWS_TRACE(CLI),
	OPT_HEADING("Output"),
	OPT_FLAG('n', "nano", CLI, nano, "Print nanoseconds."),
	LATENCY_ROWS_OUTPUT(CLI),
	OPT_FLAG(0, "no-irq", CLI, no_irq, "Leave the interrupts' columns out."),
	OPT_FLAG(0, "no-thread", CLI, no_thread, "Leave the threads' columns out."),
	OPT_HEADING("Histogram"),
	LATENCY_ROWS_HIST(CLI),
	OPT_END,
};

static int timerlat_run(const struct command *self, int argc, char **argv)
{
	return latency_command(self, LATENCY_TIMERLAT, argc, argv);
}

const struct command command_timerlat = {
	.name = "timerlat",
	.args = "[top|hist|trace] [OPTIONS]",
	.summary = "measure wake-up latencies and name what made them late",
	.details = "A timer wakes a thread on every measured CPU, again and again. Three latencies "
		   "are taken, all "
		   "from the moment the timer should have expired: when its interrupt ran (IRQ), "
		   "when the thread "
		   "ran in the kernel (Thread), when it was back in user space (Ret user). top "
		   "shows them as a "
		   "table, redrawn each second on a terminal; hist as a histogram; trace keeps a "
		   "flight recorder "
		   "and writes the events around the first wake-up over a threshold as "
		   "timerlat_trace.txt and "
		   "timerlat_trace.dat (for trace-cmd and KernelShark).\n\n"
		   "Four engines can measure: the kernel's timerlat tracer (K) where it is built "
		   "in, else BPF "
		   "(B), which tells the same on kernels without it; BPF for the latencies alone "
		   "(L); user space "
		   "alone (U), which needs no rights and sees only the last of the three. The "
		   "heading names the "
		   "engine, why not a better one, what it cannot see and the conditions.\n\n"
		   "With a threshold (-a, -i, -T) the measurement stops at the first wake-up that "
		   "reaches it and "
		   "the automatic analysis takes it apart: the delay of the interrupt and what "
		   "kept it waiting, the "
		   "interrupt itself, the thread that did not give the CPU away, interrupts, "
		   "softirqs and threads "
		   "in between. When these add up, the largest is named as the culprit with its "
		   "share and what to "
		   "change; when more than a tenth is missing there is no verdict.\n\n"
		   "Nothing in the system is changed without an option that says so, and what was "
		   "changed is put "
		   "back at every end; after a kill -9 by the next start.",
	.examples = "culprit timerlat top -d 10s\n\tten seconds on all CPUs allowed\n"
		    "culprit timerlat top -c 2-3 -P f:80 -a 50\n\tstop at 50 us on CPUs 2 and 3, "
		    "explain, write the trace\n"
		    "culprit timerlat hist -d 1m -b 5 -o before.json\n\ta histogram in steps of 5 "
		    "us, kept for 'culprit latency diff'\n"
		    "culprit timerlat trace -T 200 -e sched:sched_switch\n\tthe events around the "
		    "first 200 us\n"
		    "culprit timerlat hist -d 1h -T 100 --on-threshold shell,command=date "
		    "--on-threshold continue\n"
		    "\tnote the time of each and go on\n",
	.exits = "0 done, 1 failure, 2 a threshold was reached, 3 data is missing (lost or dropped "
		 "records).\n",
	.options = timerlat_options,
	.run = timerlat_run,
};
