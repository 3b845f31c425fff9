/* Under what conditions the engines with threads of our own measured. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "host/host.h"
#include "latency/engine-own.h"

#define MSR_SMI_COUNT 0x34
#define STAT_MAX      ((size_t)16 << 20)

/* Files whose first line is a condition; those that are absent or empty are left out. */
static const struct {
	const char *name, *path;
} lines[] = {
	{"kernel", "/proc/sys/kernel/osrelease"},
	{"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
	{"idle driver", "/sys/devices/system/cpu/cpuidle/current_driver"},
	{"idle governor", "/sys/devices/system/cpu/cpuidle/current_governor"},
	{"frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
	{"isolated CPUs", "/sys/devices/system/cpu/isolated"},
	{"nohz_full CPUs", "/sys/devices/system/cpu/nohz_full"},
	{"real-time throttling us", "/proc/sys/kernel/sched_rt_runtime_us"},
	{"SMT", "/sys/devices/system/cpu/smt/control"},
	{"real-time kernel", "/sys/kernel/realtime"},
};

int64_t cpu_steal_ns(unsigned cpu)
{
	const struct host host = {.root = ""};
	char *text, *line, name[24];
	unsigned long long value[8];
	long hz = sysconf(_SC_CLK_TCK);
	size_t size;
	int64_t steal = LATENCY_UNKNOWN_NS;

	if (host_read(&host, "/proc/stat", STAT_MAX, &text, &size, NULL) < 0)
		return steal;
	snprintf(name, sizeof(name), "\ncpu%u ", cpu);
	line = strstr(text, name);
	if (line && hz > 0 &&
	    sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &value[0],
		   &value[1], &value[2], &value[3], &value[4], &value[5], &value[6],
		   &value[7]) == 8)
		steal = (int64_t)(value[7] * (NSEC_PER_SEC / (uint64_t)hz));
	free(text);
	return steal;
}

int64_t cpu_smi_count(unsigned cpu)
{
	int64_t count = LATENCY_UNKNOWN_NS;
	struct host host = {.root = ""};
	struct host_cpu_model model;
	uint64_t value;
	char path[32];
	int fd;

	host_cpu_model_read(&host, &model);
	if (!model.known || model.vendor != CPU_VENDOR_INTEL)
		return count; /* the register is Intel's */
	snprintf(path, sizeof(path), "/dev/cpu/%u/msr", cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return count;
	if (fd_pread_all(fd, &value, sizeof(value), MSR_SMI_COUNT) == 0)
		count = (int64_t)(value & UINT32_MAX);
	close(fd);
	return count;
}

/* A clock that is read by system calls, or that counts in milliseconds, finds noise of its own. */
static int check_clock(struct latency_run *run)
{
	const struct host host = {.root = ""};
	struct host_text source = host_line(
		&host, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	struct timespec resolution;

	if (clock_getres(CLOCK_MONOTONIC, &resolution) == 0 &&
	    (resolution.tv_sec || resolution.tv_nsec > 1000))
		return latency_run_warn(
			run, "the clock ticks every %ld ns: times below that mean nothing",
			resolution.tv_nsec);
	if (source.known &&
	    (!strcmp(source.value, "hpet") || !strcmp(source.value, "acpi_pm") ||
	     !strcmp(source.value, "jiffies") || !strcmp(source.value, "refined-jiffies")))
		return latency_run_warn(
			run,
			"clocksource %s: every reading of the clock is slow; the cause "
			"is in the kernel's log (an unstable TSC)",
			source.value);
	return 0;
}

static int tell_policy(const struct latency_engine *engine, struct latency_run *run)
{
	const struct latency_options *options = &engine->options;
	bool real_time = options->policy == SCHED_FIFO || options->policy == SCHED_RR;
	char text[96];

	if (options->policy == SCHED_DEADLINE)
		snprintf(text, sizeof(text), "deadline %llu/%llu us",
			 (unsigned long long)(options->dl_runtime_ns / NSEC_PER_USEC),
			 (unsigned long long)(options->dl_period_ns / NSEC_PER_USEC));
	else
		snprintf(text, sizeof(text), "%s:%d", policy_name(options->policy),
			 options->priority);
	if (!real_time && options->policy != SCHED_DEADLINE &&
	    (options->tool == LATENCY_TIMERLAT || options->tool == LATENCY_CYCLIC))
		latency_run_warn(run,
				 "the measuring threads have no real-time policy: latencies are "
				 "those of an ordinary thread");
	return latency_run_condition(run, "policy", text);
}

int own_conditions(const struct latency_engine *engine, struct latency_run *run)
{
	const struct host host = {.root = ""};
	struct host_text text;
	int r = tell_policy(engine, run);

	for (unsigned i = 0; i < ARRAY_LEN(lines) && r == 0; i++) {
		text = host_line(&host, lines[i].path);
		/* some kernels print an empty list of CPUs so */
		if (text.known && *text.value && strcmp(text.value, "(null)"))
			r = latency_run_condition(run, lines[i].name, text.value);
	}
	text = host_hypervisor(&host);
	if (r == 0 && text.known && strcmp(text.value, "none"))
		r = latency_run_condition(run, "virtual machine", text.value);
	if (r == 0)
		r = latency_run_condition(run, "phase between CPUs",
					  engine->options.align_ns ? "spread" : "together");
	if (r == 0)
		r = strtab_intern_text(&run->names,
				       engine->options.clock == CLOCK_REALTIME ? "CLOCK_REALTIME"
									       : "CLOCK_MONOTONIC",
				       &run->clock);
	return r < 0 ? r : check_clock(run);
}
