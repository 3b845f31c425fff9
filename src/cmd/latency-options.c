/* Options of timerlat, osnoise and hwnoise: what needs more than a number, and the checks. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/latency-run.h"
#include "host/host.h"

#define US NSEC_PER_USEC

void latency_cli_init(struct latency_cli *cli, enum latency_tool tool)
{
	*cli = (struct latency_cli){.tool = tool, .policy = -1, .dma_latency_us = UINT64_MAX};
	cli->threshold_ns = 5 * US;
	if (tool == LATENCY_TIMERLAT) {
		cli->period_ns = 1000 * US;
		cli->threshold_ns = 0;
	} else if (tool == LATENCY_OSNOISE) {
		cli->period_ns = 1000000 * US;
	} else {
		cli->period_ns = 1000000 * US;
		cli->runtime_ns = 750000 * US;
	}
}

void latency_cli_fini(struct latency_cli *cli)
{
	vec_for_each(&cli->texts, text)
		free(*text);
	vec_fini(&cli->texts);
	vec_fini(&cli->events);
	vec_fini(&cli->on_threshold.list);
	vec_fini(&cli->on_end.list);
}

int latency_set_cpus(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	cli->has_cpus = true;
	if (cpuset_parse(value, &cli->cpus, err) < 0)
		return err_set(err, -EINVAL, "'%s' is not a list of CPUs such as 0,2-3", value);
	return cpuset_count(&cli->cpus) ? 0 : err_set(err, -EINVAL, "no CPU in '%s'", value);
}

int latency_set_housekeeping(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	if (cpuset_parse(value, &cli->housekeeping, err) < 0)
		return err_set(err, -EINVAL, "'%s' is not a list of CPUs such as 0,2-3", value);
	return 0;
}

/* "d:RUNTIME:PERIOD" behind "d:". */
static int set_deadline(struct latency_cli *cli, const char *value, struct err *err)
{
	char runtime[32];
	unsigned long long first, second;
	const char *colon = strchr(value, ':');

	if (!colon || (size_t)(colon - value) >= sizeof(runtime))
		return err_set(err, -EINVAL, "d needs RUNTIME:PERIOD");
	snprintf(runtime, sizeof(runtime), "%.*s", (int)(colon - value), value);
	if (parse_duration_ns(runtime, US, &first) < 0 ||
	    parse_duration_ns(colon + 1, US, &second) < 0 || first == 0 || first > second)
		return err_set(err, -EINVAL,
			       "'%s' is not a runtime and a period that is no shorter", value);
	cli->policy = SCHED_DEADLINE;
	cli->dl_runtime_ns = first;
	cli->dl_period_ns = second;
	return 0;
}

int latency_set_priority(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;
	char policy = value[0];
	char *end;
	long priority;

	if (policy == '\0' || value[1] != ':')
		return err_set(err, -EINVAL,
			       "'%s' is none of o:NICE, r:PRIO, f:PRIO, d:RUNTIME:PERIOD", value);
	if (policy == 'd' || policy == 'D')
		return set_deadline(cli, value + 2, err);
	priority = strtol(value + 2, &end, 10);
	if (end == value + 2 || *end)
		return err_set(err, -EINVAL, "'%s' is not a number", value + 2);
	switch (policy) {
	case 'o':
	case 'O':
		if (priority < -20 || priority > 19)
			return err_set(err, -ERANGE, "a nice value is between -20 and 19");
		cli->policy = SCHED_OTHER;
		break;
	case 'r':
	case 'R':
	case 'f':
	case 'F':
		if (priority < 1 || priority > 99)
			return err_set(err, -ERANGE, "a real-time priority is between 1 and 99");
		cli->policy = policy == 'r' || policy == 'R' ? SCHED_RR : SCHED_FIFO;
		break;
	default:
		return err_set(err, -EINVAL, "the policy '%c' is none of o, r, f, d", policy);
	}
	cli->priority = (int)priority;
	return 0;
}

int latency_set_cgroup(void *options, const char *value, struct err *err)
{
	((struct latency_cli *)options)->cgroup = value ? value + (value[0] == '=') : "";
	return 0;
}

/* A copy that lives as long as the options; NULL: no memory. */
static char *keep(struct latency_cli *cli, const char *text)
{
	char *copy = strdup(text);

	if (!copy || vec_push(&cli->texts, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

int latency_set_event(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;
	char *system = keep(cli, value), *colon;
	struct latency_event event = {0};

	if (!system)
		return err_set(err, -ENOMEM, "out of memory");
	colon = strchr(system, ':');
	if (colon)
		*colon = '\0';
	event.system = system;
	event.event = colon ? colon + 1 : NULL;
	if (!*system || (colon && !colon[1]) || strchr(value, '/'))
		return err_set(err, -EINVAL, "'%s' is not SYSTEM or SYSTEM:EVENT", value);
	return vec_push(&cli->events, event);
}

int latency_set_filter(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	if (cli->events.len == 0)
		return err_set(err, -EINVAL, "needs an event before it (-e)");
	cli->events.data[cli->events.len - 1].filter = value;
	return 0;
}

int latency_set_trigger(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	if (cli->events.len == 0)
		return err_set(err, -EINVAL, "needs an event before it (-e)");
	cli->events.data[cli->events.len - 1].trigger = value;
	return 0;
}

/* rtla takes -t=FILE too. */
int latency_set_trace(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	cli->trace = true;
	if (value)
		cli->trace_file = value + (value[0] == '=');
	return 0;
}

static int parse_us(const char *value, uint64_t *ret_ns, struct err *err)
{
	unsigned long long ns;

	if (parse_duration_ns(value, US, &ns) < 0)
		return err_set(err, -EINVAL, "'%s' is not a time such as 50 (us), 2ms or 1s",
			       value);
	*ret_ns = ns;
	return 0;
}

int latency_set_auto(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;
	uint64_t ns = 0;
	int r = parse_us(value, &ns, err);

	if (r < 0)
		return r;
	if (ns == 0)
		return err_set(err, -EINVAL, "a threshold of 0 stops at once");
	cli->trace = true;
	if (cli->tool == LATENCY_TIMERLAT) {
		cli->irq_ns = cli->thread_ns = cli->stack_ns = ns;
	} else {
		cli->single_ns = ns;
		cli->threshold_ns = US;
		cli->has_threshold = true;
	}
	return 0;
}

int latency_set_threshold(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	cli->has_threshold = true;
	return parse_us(value, &cli->threshold_ns, err);
}

int latency_set_aligned(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	cli->aligned = true;
	return parse_us(value, &cli->align_ns, err);
}

int latency_set_deepest_idle(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;
	char *end;
	long state = strtol(value, &end, 10);

	if (end == value || *end || state < -1 || state > 64)
		return err_set(err, -EINVAL, "'%s' is not the number of an idle state, or -1",
			       value);
	cli->has_deepest_idle = true;
	cli->deepest_idle = (int)state;
	return 0;
}

int latency_set_duration(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;
	size_t len = strlen(value);
	unsigned long long ns;
	double days;
	char number[32];

	if (len > 1 && len < sizeof(number) && value[len - 1] == 'd') {
		snprintf(number, sizeof(number), "%.*s", (int)len - 1, value);
		if (parse_double(number, &days) == 0 && days > 0 && days < 36500) {
			cli->duration_ns = (uint64_t)(days * 86400 * 1e9);
			return 0;
		}
	}
	if (parse_duration_ns(value, NSEC_PER_SEC, &ns) < 0 || ns == 0)
		return err_set(err, -EINVAL, "'%s' is not a time such as 10s, 5m, 2h or 1d", value);
	cli->duration_ns = ns;
	return 0;
}

int latency_set_on_threshold(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	return latency_action_parse(value, cli, &cli->on_threshold, err);
}

int latency_set_on_end(void *options, const char *value, struct err *err)
{
	struct latency_cli *cli = options;

	return latency_action_parse(value, cli, &cli->on_end, err);
}

/* --- checks -------------------------------------------------------------------------------- */

static int out_of_range(const struct command *self, const char *what, uint64_t have_ns,
			uint64_t low_us, uint64_t high_us)
{
	return cmd_failf(self, "%s of %llu us: it is between %llu and %llu us", what,
			 (unsigned long long)(have_ns / US), (unsigned long long)low_us,
			 (unsigned long long)high_us);
}

static int check_times(const struct command *self, const struct latency_cli *cli)
{
	bool timerlat = cli->tool == LATENCY_TIMERLAT;
	uint64_t low = timerlat ? 100 : 1, high = timerlat ? 1000000 : 10000000;

	if (cli->period_ns < low * US || cli->period_ns > high * US)
		return out_of_range(self, "a period", cli->period_ns, low, high);
	if (timerlat)
		return EXIT_DONE;
	if (cli->runtime_ns && (cli->runtime_ns < 100 * US || cli->runtime_ns > cli->period_ns))
		return cmd_failf(
			self,
			"a runtime of %llu us in a period of %llu us: it is between 100 us "
			"and the period",
			(unsigned long long)(cli->runtime_ns / US),
			(unsigned long long)(cli->period_ns / US));
	if (!cli->threshold_ns)
		return cmd_failf(self, "--threshold 0: every reading of the clock would be noise");
	return EXIT_DONE;
}

static int check_output(const struct command *self, const struct latency_cli *cli)
{
	if (cli->json && cli->csv)
		return cmd_failf(self, "--json and --csv exclude each other");
	if (cli->no_index && !cli->with_zeros)
		return cmd_failf(self,
				 "--no-index needs --with-zeros: without it rows that are left "
				 "out could not be told");
	if (cli->bucket > 999999)
		return cmd_failf(self, "--bucket-size is between 1 and 999999");
	if (cli->entries && (cli->entries < 10 || cli->entries > 9999999))
		return cmd_failf(self, "--entries is between 10 and 9999999");
	if (cli->mode != MODE_HIST &&
	    (cli->bucket || cli->entries || cli->no_index || cli->with_zeros))
		return cmd_failf(self, "-b, -E, --no-index and --with-zeros belong to '%s hist'",
				 self->name);
	if (cli->no_irq && cli->no_thread && cli->kernel_threads)
		return cmd_failf(self, "--no-irq and --no-thread leave nothing");
	return EXIT_DONE;
}

static int check_rest(const struct command *self, const struct latency_cli *cli)
{
	if (cli->user_threads + cli->kernel_threads + cli->user_load > 1)
		return cmd_failf(self, "-u, -k and -U exclude each other");
	if (cli->dma_latency_us != UINT64_MAX && cli->dma_latency_us > 10000)
		return cmd_failf(self, "--dma-latency is between 0 and 10000 us");
	if (cli->aa_only_ns && cli->no_aa)
		return cmd_failf(self, "--aa-only and --no-aa exclude each other");
	if (cli->aa_only_ns && cli->mode != MODE_TOP)
		return cmd_failf(self, "--aa-only belongs to 'timerlat top'");
	if (cli->buffer_kib > (16 << 20))
		return cmd_failf(self, "--trace-buffer-size: at most 16777216 KiB for each CPU");
	return EXIT_DONE;
}

static void fill_defaults(struct latency_cli *cli)
{
	if (!cli->runtime_ns)
		cli->runtime_ns = cli->period_ns;
	if (cli->aa_only_ns)
		cli->irq_ns = cli->thread_ns = cli->stack_ns = cli->aa_only_ns;
	if (cli->mode == MODE_TRACE)
		cli->trace = true;
}

/* top, hist or trace; what else stands there is the file of "-t FILE". */
static int read_operands(const struct command *self, struct latency_cli *cli, char **words,
			 int count)
{
	static const char *const names[] = {"top", "hist", "trace"};
	int modes = cli->tool == LATENCY_HWNOISE ? 2 : 3;
	bool has_mode = false;

	for (int i = 0; i < count; i++) {
		int mode = 0;

		while (mode < modes && strcmp(words[i], names[mode]) != 0)
			mode++;
		if (mode < modes && !has_mode) {
			cli->mode = (enum latency_mode)mode;
			has_mode = true;
		} else if (cli->trace && !cli->trace_file) {
			cli->trace_file = words[i];
		} else {
			return cmd_failf(self, "'%s': %s%s expected", words[i],
					 modes == 3 ? "top, hist or trace" : "top or hist",
					 has_mode ? " once" : "");
		}
	}
	return EXIT_DONE;
}

int latency_command(const struct command *self, enum latency_tool tool, int argc, char **argv)
{
	struct latency_cli cli;
	int at, status;

	latency_cli_init(&cli, tool);
	at = options_parse(self, &cli, argc, argv);
	status = read_operands(self, &cli, argv + at, argc - at);
	if (status == EXIT_DONE)
		status = check_times(self, &cli);
	if (status == EXIT_DONE)
		status = check_output(self, &cli);
	if (status == EXIT_DONE)
		status = check_rest(self, &cli);
	fill_defaults(&cli);
	if (status == EXIT_DONE)
		status = latency_measure(self, &cli);
	latency_cli_fini(&cli);
	return status;
}
