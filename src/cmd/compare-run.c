/*
 * One run of one side. The child waits on a pipe until its counters are open; the clock runs from
 * letting it go to its exit, which contains exec itself, for both sides alike. Resource usage is
 * what wait4() says of the child and the children it waited for.
 *
 * On a busy machine this process learns late of the exit: it has to wait for a CPU. The kernel
 * tells for how long (sched_info's run_delay, Documentation/scheduler/sched-stats.rst), and that is
 * taken off. It is told of the ended child as well, as long as that was not waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/compare.h"

struct counter_read {
	uint64_t value, enabled_ns, running_ns;
};

static int counter_open(uint64_t config, pid_t pid, bool user_only)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
		.exclude_hv = 1,
		.exclude_kernel = user_only,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void compare_counters_probe(struct compare_counters *ret)
{
	int fd = counter_open(PERF_COUNT_HW_INSTRUCTIONS, 0, false);

	*ret = (struct compare_counters){0};
	if (fd == -EACCES || fd == -EPERM) {
		ret->user_only = true;
		fd = counter_open(PERF_COUNT_HW_INSTRUCTIONS, 0, true);
	}
	if (fd >= 0) {
		ret->usable = true;
		close(fd);
	} else if (fd == -EACCES || fd == -EPERM) {
		snprintf(ret->reason, sizeof(ret->reason),
			 "not permitted: sysctl kernel.perf_event_paranoid=1 allows counting");
	} else if (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -ENODEV) {
		snprintf(ret->reason, sizeof(ret->reason), "this machine has no hardware counters");
	} else {
		snprintf(ret->reason, sizeof(ret->reason), "%s", strerrordesc_np(-fd));
	}
}

/* NaN unless it counted the whole time: half a count would be an estimate. */
static double counter_value(int fd)
{
	struct counter_read got;

	if (fd < 0 || read(fd, &got, sizeof(got)) != (ssize_t)sizeof(got) || got.running_ns == 0 ||
	    got.running_ns < got.enabled_ns)
		return NAN;
	return (double)got.value;
}

static _Noreturn void child(const struct compare_side *side, enum compare_output output, int go,
			    int failed, int out)
{
	int code, zero = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte;

	signal(SIGPIPE, SIG_DFL);
	if (zero >= 0)
		dup2(zero, STDIN_FILENO);
	if (output == OUTPUT_NULL)
		out = zero;
	if (output != OUTPUT_INHERIT && out >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
	}
	if (write(failed, "", 1) == 1 && read(go, &byte, 1) == 1)
		execvp(side->argv[0], side->argv);
	code = errno;
	if (write(failed, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

/* Drains the pipe until the child has exited; what its own children still write is not waited for.
 */
static void drain(int out, pid_t pid)
{
	CLEANUP_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd fds[2] = {{out, POLLIN, 0}, {pidfd, POLLIN, 0}};
	char buf[65536];

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents && read(out, buf, sizeof(buf)) <= 0) {
			if (pidfd < 0)
				return;
			fds[0].fd = -1;
		}
		if (fds[1].revents)
			return;
	}
}

/* What the scheduler says of one thread: time on a CPU and time waiting for one, in ns. */
struct thread_times {
	double running, waiting;
};

/* NaN where the kernel does not tell. */
static struct thread_times thread_times(const char *path)
{
	struct thread_times times = {NAN, NAN};
	char text[80];
	ssize_t len;
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len > 0) {
		text[len] = '\0';
		if (sscanf(text, "%lf %lf", &times.running, &times.waiting) != 2)
			times = (struct thread_times){NAN, NAN};
	}
	return times;
}

static double own_wait_ns(void)
{
	return thread_times("/proc/thread-self/schedstat").waiting;
}

/* What the kernel says of the child's first thread, before its start and after its end, and for how
 * long this process then waited for a CPU. NaN: not known. */
struct schedule {
	struct thread_times before, after;
	double late_ns;
};

static struct thread_times child_times(pid_t pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	return thread_times(path);
}

/* Waits for the exit and leaves the child to be reaped; returns when it ended. Reading its own
 * times once more just before it sleeps keeps most of what this process waited for while the child
 * ran out of it. */
static uint64_t wait_exit(pid_t pid, struct schedule *schedule)
{
	double before = own_wait_ns();
	uint64_t end_ns;
	siginfo_t info;

	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	end_ns = clock_monotonic_ns();
	schedule->late_ns = own_wait_ns() - before;
	schedule->after = child_times(pid);
	return end_ns;
}

/* Times of a command all of whose work was done by its first thread; else unknown: the others'
 * waiting is not told, and threads of one command that wait for each other's CPU are its own doing.
 */
static void fill_undisturbed(double *v, const struct schedule *schedule)
{
	double others = v[METRIC_CPU] - schedule->after.running;
	double running = schedule->after.running - schedule->before.running;
	double waiting = schedule->after.waiting - schedule->before.waiting;

	v[METRIC_READY] = v[METRIC_UNDISTURBED] = NAN;
	if (isnan(running) || fabs(others) > 0.01 * v[METRIC_CPU] + 20e3)
		return;
	v[METRIC_READY] = waiting;
	v[METRIC_UNDISTURBED] = fmin(v[METRIC_WALL], fmax(v[METRIC_WALL] - waiting, running));
}

/* The time until the exit: less what this process was late by, but it was running or waiting for a
 * CPU for so long at least. */
static double wall_ns(double elapsed_ns, const struct schedule *schedule)
{
	const struct thread_times *before = &schedule->before, *after = &schedule->after;
	double least = after->running - before->running + after->waiting - before->waiting;

	if (isnan(schedule->late_ns) || isnan(least))
		return elapsed_ns;
	return fmin(elapsed_ns, fmax(elapsed_ns - schedule->late_ns, least));
}

static void fill(struct compare_sample *ret, const struct rusage *usage, uint64_t elapsed_ns,
		 const struct schedule *schedule, int status, const int *counters)
{
	double *v = ret->values;

	ret->status = status;
	ret->elapsed_ns = (double)elapsed_ns;
	v[METRIC_WALL] = wall_ns(ret->elapsed_ns, schedule);
	v[METRIC_USER] =
		(double)usage->ru_utime.tv_sec * 1e9 + (double)usage->ru_utime.tv_usec * 1e3;
	v[METRIC_SYS] =
		(double)usage->ru_stime.tv_sec * 1e9 + (double)usage->ru_stime.tv_usec * 1e3;
	v[METRIC_CPU] = v[METRIC_USER] + v[METRIC_SYS];
	fill_undisturbed(v, schedule);
	v[METRIC_MAX_RSS] = (double)usage->ru_maxrss * 1024;
	v[METRIC_MINOR_FAULTS] = (double)usage->ru_minflt;
	v[METRIC_MAJOR_FAULTS] = (double)usage->ru_majflt;
	v[METRIC_SWITCHES] = (double)usage->ru_nvcsw;
	v[METRIC_PREEMPTIONS] = (double)usage->ru_nivcsw;
	v[METRIC_INSTRUCTIONS] = counter_value(counters[0]);
	v[METRIC_CYCLES] = counter_value(counters[1]);
	v[METRIC_IPC] = v[METRIC_CYCLES] > 0 ? v[METRIC_INSTRUCTIONS] / v[METRIC_CYCLES] : NAN;
}

struct run_fds {
	int go[2], failed[2], out[2], counters[2];
};

static void run_fds_close(struct run_fds *fds)
{
	for (int *fd = (int *)fds; fd < (int *)(fds + 1); fd++)
		if (*fd >= 0)
			close(*fd);
}

int compare_run(const struct compare_side *side, enum compare_output output,
		const struct compare_counters *counters, struct compare_sample *ret, int *ret_exec,
		struct err *err)
{
	CLEANUP(run_fds_close) struct run_fds fds = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
	struct rusage usage;
	struct schedule schedule;
	uint64_t start_ns, end_ns;
	char byte;
	int status, code;
	pid_t pid;

	if (pipe2(fds.go, O_CLOEXEC) < 0 || pipe2(fds.failed, O_CLOEXEC) < 0 ||
	    (output == OUTPUT_PIPE && pipe2(fds.out, O_CLOEXEC) < 0))
		return err_set(err, -errno, "making a pipe: %s", strerrordesc_np(errno));
	pid = fork();
	if (pid < 0)
		return err_set(err, -errno, "fork: %s", strerrordesc_np(errno));
	if (pid == 0) {
		close(fds.go[1]);
		child(side, output, fds.go[0], fds.failed[1], fds.out[1]);
	}
	close(TAKE_FD(fds.failed[1]));
	if (output == OUTPUT_PIPE)
		close(TAKE_FD(fds.out[1]));
	if (counters->usable) {
		fds.counters[0] =
			counter_open(PERF_COUNT_HW_INSTRUCTIONS, pid, counters->user_only);
		fds.counters[1] = counter_open(PERF_COUNT_HW_CPU_CYCLES, pid, counters->user_only);
	}
	if (read(fds.failed[0], &byte, 1) != 1)
		return err_set(err, -EPIPE, "starting %s: the child is gone", side->name);
	schedule.before = child_times(pid);
	start_ns = clock_monotonic_ns();
	if (write(fds.go[1], "", 1) != 1)
		return err_set(err, -EPIPE, "starting %s: the child is gone", side->name);
	if (output == OUTPUT_PIPE)
		drain(fds.out[0], pid);
	end_ns = wait_exit(pid, &schedule);
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return err_set(err, -errno, "wait: %s", strerrordesc_np(errno));
	if (read(fds.failed[0], &code, sizeof(code)) == (ssize_t)sizeof(code)) {
		*ret_exec = code;
		return err_set(err, -ECANCELED, "%s: cannot run '%s': %s", side->name,
			       side->argv[0], strerrordesc_np(code));
	}
	/* While it reads their output this process waits for a CPU in between: not at the end. */
	if (output == OUTPUT_PIPE)
		schedule.late_ns = NAN;
	fill(ret, &usage, end_ns - start_ns, &schedule, status, fds.counters);
	return 0;
}
