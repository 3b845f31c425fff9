/*
 * What the kernel accounts for. Of a command from wait4(2), of processes and intervals from
 * /proc/PID/{stat,task/TID/schedstat,task/TID/status}, of the machine from /proc/stat and
 * /proc/vmstat.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/topdown-software.h"

static const struct host this_machine = {.root = ""};

#define PROCESSES_MAX 4096 /* of a command's tree */

struct accounts unknown_accounts(void)
{
	return (struct accounts){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

/* The number behind a key at the start of a line. */
static double number_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0)
			return strtod(line + len, NULL);
	}
	return NAN;
}

void accounts_of_machine(struct accounts *a)
{
	double nice, iowait, irq, softirq, ticks = (double)sysconf(_SC_CLK_TCK);
	CLEANUP_FREE char *text = NULL;
	CLEANUP_FREE char *vm = NULL;
	size_t size;

	if (file_read("/proc/stat", 16 << 20, &text, &size, NULL) < 0 ||
	    sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &a->user, &nice, &a->system,
		   &a->idle, &iowait, &irq, &softirq, &a->steal) != 8) {
		*a = unknown_accounts();
		return;
	}
	a->user = (a->user + nice) / ticks;
	a->system = (a->system + irq + softirq) / ticks;
	a->idle = (a->idle + iowait) / ticks;
	a->steal /= ticks;
	a->switches = number_of(text, "ctxt ");
	if (file_read("/proc/vmstat", 1 << 20, &vm, &size, NULL) == 0) {
		a->major = number_of(vm, "pgmajfault ");
		a->minor = number_of(vm, "pgfault ") - a->major;
	}
}

static void add_threads(int pid, struct accounts *a)
{
	struct host_tids tids = {0};

	(void)host_tids_read(&this_machine, pid, &tids);
	vec_for_each(&tids, tid) {
		CLEANUP_FREE char *status = NULL;
		CLEANUP_FREE char *sched = NULL;
		double on, waited;
		char path[80];
		size_t size;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, *tid);
		if (file_read(path, 1 << 16, &status, &size, NULL) == 0) {
			a->voluntary += number_of(status, "voluntary_ctxt_switches:");
			a->preempted += number_of(status, "nonvoluntary_ctxt_switches:");
		}
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, *tid);
		if (file_read(path, 256, &sched, &size, NULL) == 0 &&
		    sscanf(sched, "%lf %lf", &on, &waited) == 2)
			a->waiting += waited / 1e9;
	}
	vec_fini(&tids);
}

/* A process with its ended children that it waited for; its living ones are processes themselves.
 */
static void add_process(int pid, struct accounts *a)
{
	double minor, cminor, major, cmajor, user, sys, cuser, csys;
	double ticks = (double)sysconf(_SC_CLK_TCK);
	CLEANUP_FREE char *text = NULL;
	char path[64], *end;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(path, 4096, &text, &size, NULL) < 0 || !(end = strrchr(text, ')')) ||
	    sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %lf %lf %lf %lf %lf %lf %lf %lf", &minor,
		   &cminor, &major, &cmajor, &user, &sys, &cuser, &csys) != 8)
		return;
	a->user += (user + cuser) / ticks;
	a->system += (sys + csys) / ticks;
	a->minor += minor + cminor;
	a->major += major + cmajor;
	add_threads(pid, a);
}

/* pid and all that descend from it. */
static void add_tree(int pid, struct accounts *a, unsigned *left)
{
	struct host_tids tids = {0};

	if (*left == 0)
		return;
	--*left;
	add_process(pid, a);
	(void)host_tids_read(&this_machine, pid, &tids);
	vec_for_each(&tids, tid) {
		CLEANUP_FREE char *text = NULL;
		char path[80], *save = NULL;
		size_t size;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, *tid);
		if (file_read(path, 1 << 20, &text, &size, NULL) < 0)
			continue;
		for (char *word = strtok_r(text, " \n", &save); word;
		     word = strtok_r(NULL, " \n", &save))
			add_tree(atoi(word), a, left);
	}
	vec_fini(&tids);
}

struct accounts accounts_now(const struct topdown_job *job, int command)
{
	struct accounts a = {.idle = NAN, .switches = NAN}, machine = unknown_accounts();
	unsigned left = PROCESSES_MAX;

	accounts_of_machine(&machine);
	machine.wall = a.wall = (double)clock_monotonic_ns() / 1e9;
	if (job->options.all_cpus) {
		machine.waiting = machine.voluntary = machine.preempted = NAN;
		return machine;
	}
	if (command > 0 && !job->options.pids) {
		add_tree(command, &a, &left);
	} else {
		CLEANUP_FREE char *list = strdup(job->options.pids);
		char *save = NULL;

		for (char *word = list ? strtok_r(list, ",", &save) : NULL; word;
		     word = strtok_r(NULL, ",", &save))
			add_process(atoi(word), &a);
	}
	a.steal = machine.steal;
	return a;
}

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

struct accounts accounts_of_command(const struct workload *work, double waited, double steal)
{
	struct accounts a = unknown_accounts();

	a.wall = (double)(work->end_ns - work->start_ns) / 1e9;
	a.user = seconds(&work->usage.ru_utime);
	a.system = seconds(&work->usage.ru_stime);
	a.minor = (double)work->usage.ru_minflt;
	a.major = (double)work->usage.ru_majflt;
	a.voluntary = (double)work->usage.ru_nvcsw;
	a.preempted = (double)work->usage.ru_nivcsw;
	a.waiting = waited;
	a.steal = steal;
	return a;
}

struct accounts accounts_between(const struct accounts *before, const struct accounts *now)
{
	const double *from = (const double *)before, *to = (const double *)now;
	struct accounts a;
	double *d = (double *)&a;

	for (size_t i = 0; i < sizeof(a) / sizeof(double); i++)
		d[i] = isnan(to[i] - from[i]) ? NAN : MAX(to[i] - from[i], 0.0);
	return a;
}
