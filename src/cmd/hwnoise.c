/* culprit hwnoise: what takes the CPU while nothing of the kernel does. */
#include "cmd/latency-run.h"

#define CLI struct latency_cli

static const struct option_spec hwnoise_options[] = {
	LATENCY_ROWS_NOISE(
		CLI, "How much of each period the loop runs, from 100 us on. Default: 750000."),
};

static int hwnoise_run(const struct command *self, int argc, char **argv)
{
	return latency_command(self, LATENCY_HWNOISE, argc, argv);
}

const struct command command_hwnoise = {
	.name = "hwnoise",
	.args = "[top|hist] [OPTIONS]",
	.summary = "measure gaps that no interrupt or thread of the kernel explains",
	.details = "As culprit osnoise, for gaps that hardware, firmware (SMI) or a hypervisor "
		   "makes. The kernel's "
		   "tracer (engine K) runs the loop with interrupts switched off, so that only "
		   "NMIs and what lies "
		   "below the kernel can interrupt it.\n\n"
		   "On other engines interrupts stay on, and only gaps count in which nothing "
		   "known ran. In a "
		   "virtual machine that is first of all the hypervisor: the stolen time stands "
		   "beside it, and "
		   "nothing here is called hardware without saying that it is unexplained.",
	.examples = "culprit hwnoise top -d 1m\n\tone minute on all CPUs allowed\n"
		    "culprit hwnoise hist -c 1 -T 1 -n -b 500\n\tgaps from 1 us on in steps of 500 "
		    "ns\n",
	.exits = "0 done, 1 failure, 2 a threshold was reached, 3 data is missing (lost or dropped "
		 "records).\n",
	.options = hwnoise_options,
	.run = hwnoise_run,
};
