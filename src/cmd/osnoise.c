/* culprit osnoise: what takes time from a loop that wants the whole CPU. */
#include "cmd/latency-run.h"

#define CLI struct latency_cli

static const struct option_spec osnoise_options[] = {
	LATENCY_ROWS_NOISE(
		CLI, "How much of each period the loop runs, from 100 us on; the rest it sleeps. "
		     "Default: all of it."),
};

static int osnoise_run(const struct command *self, int argc, char **argv)
{
	return latency_command(self, LATENCY_OSNOISE, argc, argv);
}

const struct command command_osnoise = {
	.name = "osnoise",
	.args = "[top|hist|trace] [OPTIONS]",
	.summary = "measure what takes time from a busy loop, and rank it by name",
	.details = "A loop on every measured CPU reads the clock without pause. Where two readings "
		   "lie further "
		   "apart than the threshold, something else had the CPU: that gap is noise. Each "
		   "interruption is "
		   "counted by kind and by name, so that the table of sources at the end ranks "
		   "interrupts, softirqs, "
		   "timers, work functions and threads by the time they took.\n\n"
		   "A gap during which the kernel knows of nothing that ran is called unexplained: "
		   "hardware, "
		   "firmware, or in a virtual machine the hypervisor, whose stolen time stands "
		   "beside it. The rest "
		   "of a gap that has a known source (entry and exit, faults, VM exits) is the "
		   "column Inside.\n\n"
		   "The loop runs with the ordinary policy unless -P says otherwise: a real-time "
		   "loop that never "
		   "sleeps starves the kernel's threads and meets real-time throttling. Give it a "
		   "runtime shorter "
		   "than the period then.\n\n"
		   "Engines and their choice: see culprit timerlat --help. Engine L does not "
		   "measure noise; engine U "
		   "sees the gaps and not who made them.",
	.examples =
		"culprit osnoise top -d 10s\n\tten seconds on all CPUs allowed\n"
		"culprit osnoise top -c 3 -p 1000000 -r 900000 -P f:1\n\ta low real-time priority, "
		"10 % pause\n"
		"culprit osnoise hist -d 1m -b 10 -T 1\n\ta histogram of the gaps from 1 us on\n"
		"culprit osnoise trace -s 500\n\tthe events around the first gap of 500 us\n",
	.exits = "0 done, 1 failure, 2 a threshold was reached, 3 data is missing (lost or dropped "
		 "records).\n",
	.options = osnoise_options,
	.run = osnoise_run,
};
