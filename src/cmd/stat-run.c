/*
 * The life of a run: open the counters, let the command go, sleep until something is due (an
 * interval, a slice, the delay's or the timeout's end, a word on the control channel, a signal, the
 * end of what is counted), read, print. A run of software events alone has no timers: it sleeps
 * until the command ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/stat.h"
#include "cmd/workload.h"

#define NEVER UINT64_MAX
#define WATCH_NS \
	(100 * NSEC_PER_MSEC) /* how often cgroups and threads without pidfd are looked at */

struct control {
	int in, ack; /* -1: none */
	char line[128];
	size_t len;
};

struct run {
	struct stat_job *job;
	struct count_session *session;
	struct workload work;
	struct control control;
	int signals; /* signalfd, -1: plain wait */
	uint64_t start_ns, next_interval_ns, next_slice_ns, enable_at_ns, stop_at_ns, next_watch_ns;
	uint64_t intervals, interval_start_ns;
	bool enabled, stopping, interrupted;
};

static int open_channel(const char *path, int flags, struct err *err)
{
	int fd = open(path, flags | O_CLOEXEC);

	return fd < 0 ? err_set(err, -errno, "--control: %s: %s", path, strerrordesc_np(errno))
		      : fd;
}

/* "fd:CTL[,ACK]" or "fifo:CTL[,ACK]", as perf has it. */
static int control_open(const char *spec, struct control *ret, struct err *err)
{
	CLEANUP_FREE char *copy = strdup(spec);
	const char *first = NULL;
	unsigned long long fd;
	char *second;

	*ret = (struct control){.in = -1, .ack = -1};
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	second = strchr(copy, ',');
	if (second)
		*second++ = '\0';
	if (str_prefix(copy, "fd:", &first)) {
		if (parse_u64(first, 10, &fd) < 0 || fcntl((int)fd, F_GETFD) < 0)
			return err_set(err, -EBADF, "--control: '%s' is not an open descriptor",
				       first);
		ret->in = (int)fd;
		if (second && (parse_u64(second, 10, &fd) < 0 || fcntl((int)fd, F_GETFD) < 0))
			return err_set(err, -EBADF, "--control: '%s' is not an open descriptor",
				       second);
		ret->ack = second ? (int)fd : -1;
		return 0;
	}
	if (!str_prefix(copy, "fifo:", &first))
		return err_set(err, -EINVAL,
			       "--control: say fd:NUMBER[,NUMBER] or fifo:PATH[,PATH]");
	ret->in = open_channel(first, O_RDWR | O_NONBLOCK, err);
	if (ret->in >= 0 && second)
		ret->ack = open_channel(second, O_RDWR, err);
	return ret->in < 0 ? ret->in : second && ret->ack < 0 ? ret->ack : 0;
}

static int run_enable(struct run *run)
{
	if (run->enabled)
		return 0;
	run->enabled = true;
	return count_session_enable(run->session);
}

static void control_line(struct run *run, const char *line)
{
	bool known = true;

	if (strcmp(line, "enable") == 0) {
		run_enable(run);
	} else if (strcmp(line, "disable") == 0) {
		count_session_disable(run->session);
		run->enabled = false;
	} else if (strcmp(line, "stop") == 0) {
		run->stopping = true;
	} else {
		known = strcmp(line, "ping") == 0;
	}
	if (!known)
		cmd_warnf(run->job->self,
			  "--control: unknown command '%s' (enable, disable, ping, stop)", line);
	else if (run->control.ack >= 0 && fd_write_all(run->control.ack, "ack\n", 4) < 0)
		cmd_warnf(run->job->self, "--control: the acknowledgement could not be written");
}

/* False when the other end was closed. */
static bool control_read(struct run *run)
{
	struct control *c = &run->control;
	ssize_t n = read(c->in, c->line + c->len, sizeof(c->line) - 1 - c->len);
	char *end;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	c->len += (size_t)n;
	c->line[c->len] = '\0';
	while ((end = strpbrk(c->line, "\n\0")) != NULL) {
		*end = '\0';
		control_line(run, c->line);
		c->len -= (size_t)(end + 1 - c->line);
		memmove(c->line, end + 1, c->len + 1);
	}
	if (c->len == sizeof(c->line) - 1)
		c->len = 0; /* a line that long is no command */
	return true;
}

static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		/* Ctrl-C reaches the whole foreground group: the command has it already. */
		if (run->work.pid > 0 && info.ssi_signo != SIGINT)
			workload_kill(&run->work, (int)info.ssi_signo);
		if (run->work.pid > 0 && !run->job->target.system_wide &&
		    run->job->target.pidfds.len == 0)
			continue; /* its end is awaited */
		run->stopping = run->interrupted = true;
	}
}

static int signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Cgroups that were removed end with a reason instead of a silent 0. */
static void watch_cgroups(struct run *run)
{
	struct stat_target *target = &run->job->target;

	for (size_t i = 0; i < target->cgroup_fds.len; i++) {
		struct stat st;

		if (target->cgroup_fds.data[i] < 0 ||
		    (fstat(target->cgroup_fds.data[i], &st) == 0 && st.st_nlink > 0 &&
		     faccessat(target->cgroup_fds.data[i], "cgroup.procs", F_OK, 0) == 0))
			continue;
		for (unsigned p = 0; p < target->places.len; p++)
			if (target->places.data[p].cgroup == target->cgroup_fds.data[i])
				count_session_place_gone(run->session, p, "the cgroup was removed");
	}
}

static bool targets_ended(struct run *run)
{
	struct stat_target *target = &run->job->target;
	bool ended = target->places.len > 0 && !target->system_wide;

	for (size_t i = 0; i < target->pidfds.len && ended; i++) {
		struct pollfd poll_fd = {target->pidfds.data[i], POLLIN, 0};

		ended = poll(&poll_fd, 1, 0) == 1;
	}
	for (size_t i = 0; target->pidfds.len == 0 && i < target->places.len && ended; i++)
		ended = kill(target->places.data[i].pid, 0) < 0 && errno == ESRCH;
	return ended;
}

static uint64_t next_event_ns(const struct run *run)
{
	return MIN(MIN(MIN(run->next_interval_ns, run->next_slice_ns),
		       MIN(run->enable_at_ns, run->stop_at_ns)),
		   run->next_watch_ns);
}

/* Sleeps until the next thing is due or a descriptor speaks. */
static void sleep_until_due(struct run *run)
{
	struct stat_target *target = &run->job->target;
	struct pollfd fds[2 + 64];
	uint64_t due = next_event_ns(run), now = clock_monotonic_ns();
	struct timespec wait = {0}, *timeout = NULL;
	nfds_t n = 0;

	fds[n++] = (struct pollfd){run->signals, POLLIN, 0};
	fds[n++] = (struct pollfd){run->control.in, POLLIN, 0}; /* a negative one is ignored */
	for (size_t i = 0; i < target->pidfds.len && n < ARRAY_LEN(fds); i++)
		fds[n++] = (struct pollfd){target->pidfds.data[i], POLLIN, 0};
	if (due != NEVER) {
		uint64_t ns = due > now ? due - now : 0;

		wait = (struct timespec){(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};
		timeout = &wait;
	}
	if (ppoll(fds, n, timeout, NULL) <= 0)
		return;
	if (fds[0].revents)
		take_signals(run);
	if (fds[1].revents && !control_read(run))
		run->control.in = -1;
	for (nfds_t i = 2; i < n; i++)
		if (fds[i].revents && targets_ended(run))
			run->stopping = true;
}

static int show(struct run *run, struct stat_result *result)
{
	struct stat_job *job = run->job;

	switch (job->options.format) {
	case STAT_JSON:
		stat_json_result(job, result);
		break;
	case STAT_CSV:
		stat_print_csv(job, result);
		break;
	case STAT_PERF:
		stat_print_perf(job, result);
		break;
	default:
		stat_print_text(job, result);
	}
	return fflush(job->out) == 0 ? 0 : -errno;
}

static int show_interval(struct run *run, uint64_t now)
{
	struct stat_result result;
	int r = stat_result_new(run->job, &result);

	if (r < 0)
		return r;
	result.time_ns = now - run->start_ns;
	result.wall_ns = now - run->interval_start_ns;
	stat_fill_result(run->job, run->session, &result);
	r = show(run, &result);
	stat_result_free(&result);
	count_session_restart(run->session);
	run->interval_start_ns = now;
	run->intervals++;
	if (run->job->options.interval_count && run->intervals >= run->job->options.interval_count)
		run->stopping = true;
	return r;
}

static int do_what_is_due(struct run *run)
{
	uint64_t now = clock_monotonic_ns();
	int r = 0;

	if (now >= run->enable_at_ns) {
		run->enable_at_ns = NEVER;
		r = run_enable(run);
	}
	if (now >= run->next_watch_ns) {
		watch_cgroups(run);
		run->stopping |= run->job->target.cgroup_fds.len == 0 && targets_ended(run);
		run->next_watch_ns = now + WATCH_NS;
	}
	if (now >= run->next_slice_ns || now >= run->next_interval_ns) {
		count_session_read(run->session);
		if (run->next_slice_ns != NEVER)
			run->next_slice_ns = now + count_session_slice_ns(run->session);
	}
	if (r == 0 && now >= run->next_interval_ns) {
		r = show_interval(run, now);
		run->next_interval_ns += run->job->options.interval_ns;
		if (run->next_interval_ns <= now) /* it was asleep: no burst of late intervals */
			run->next_interval_ns = now + run->job->options.interval_ns;
	}
	if (now >= run->stop_at_ns) {
		run->stop_at_ns = NEVER;
		run->stopping = true;
	}
	return r;
}

static bool has_core_events(const struct stat_job *job)
{
	for (size_t i = 0; i < job->set.events.len; i++)
		if (job->set.events.data[i].kind == COUNT_CORE &&
		    job->set.events.data[i].status == 0)
			return true;
	return false;
}

static void set_timers(struct run *run)
{
	const struct stat_options *o = &run->job->options;
	bool polled = run->job->target.cgroup_fds.len > 0 ||
		      (run->job->target.pidfds.len == 0 && !run->job->target.system_wide &&
		       run->work.pid == 0);

	run->start_ns = run->interval_start_ns = clock_monotonic_ns();
	run->next_interval_ns = o->interval_ns ? run->start_ns + o->interval_ns : NEVER;
	run->next_slice_ns = has_core_events(run->job)
				     ? run->start_ns + count_session_slice_ns(run->session)
				     : NEVER;
	run->enable_at_ns =
		o->delay_ms > 0 ? run->start_ns + (uint64_t)o->delay_ms * NSEC_PER_MSEC : NEVER;
	run->stop_at_ns = o->timeout_ns ? run->start_ns + o->timeout_ns : NEVER;
	run->next_watch_ns = polled ? run->start_ns + WATCH_NS : NEVER;
}

static int wait_for_end(struct run *run)
{
	int r = 0;

	while (r == 0 && !run->stopping && !workload_reap(&run->work, false)) {
		sleep_until_due(run);
		r = do_what_is_due(run);
	}
	if (!run->work.ended && run->work.pid > 0) { /* --timeout, "stop", --interval-count */
		workload_kill(&run->work, SIGTERM);
		run->work.stopped = !run->interrupted;
		workload_reap(&run->work, true);
	}
	return r;
}

/* Counters and command: the order differs by how they can be attached. */
static int start_run(struct run *run, int pass, struct err *err)
{
	struct stat_job *job = run->job;
	const struct stat_options *o = &job->options;
	bool later = o->delay_ms != 0, attached = job->target.places.len > 0;
	struct count_place self = {.pid = 0, .cpu = -1, .cgroup = -1};
	struct count_session_options how = {.inherit = !o->no_inherit,
					    .keep_slices = has_core_events(job),
					    .pass = pass,
					    .enable_on_exec = job->argv && !attached && !later};
	const struct count_place *places = attached ? job->target.places.data : &self;
	unsigned place_count = attached ? (unsigned)job->target.places.len : 1;
	/* Opened on this process and inherited by the command: no fork, no pipe. Switching counters
	 * on and off later would count culprit too, and so would a run without inheritance. */
	bool direct = job->argv && !attached && !later && !o->control && !o->no_inherit;
	int r = 0;

	if (job->argv && !direct) {
		r = workload_hold(&run->work, job->argv, err);
		self.pid = run->work.pid;
	}
	if (r == 0)
		r = count_session_open(&job->set, &counter_kernel, NULL, places, place_count,
				       (unsigned)job->target.rows.len, &how, &run->session, err);
	if (r == 0 && attached && !later)
		r = run_enable(run);
	run->enabled |= how.enable_on_exec;
	if (r == 0 && direct)
		r = workload_start(&run->work, job->argv, err);
	else if (r == 0 && job->argv)
		r = workload_release(&run->work, job->argv, err);
	if (r < 0 && run->work.pid > 0)
		workload_kill(&run->work, SIGKILL);
	if (r < 0 && job->argv)
		job->exit_status = run->work.pid == 0 ? workload_exec_status(r) : EXIT_FAILED;
	return r;
}

static uint64_t timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * NSEC_PER_SEC + (uint64_t)tv->tv_usec * 1000;
}

static int end_run(struct run *run, struct stat_result *result)
{
	struct stat_job *job = run->job;

	if (job->target.system_wide || job->target.pidfds.len > 0)
		count_session_disable(run->session);
	count_session_read(run->session);
	result->wall_ns = (run->work.ended ? run->work.end_ns : clock_monotonic_ns()) -
			  (run->work.pid ? run->work.start_ns : run->start_ns);
	result->has_times = run->work.ended;
	result->user_ns = timeval_ns(&run->work.usage.ru_utime);
	result->sys_ns = timeval_ns(&run->work.usage.ru_stime);
	result->time_ns = clock_monotonic_ns() - run->start_ns;
	if (job->options.interval_ns) { /* what is left of the last interval */
		if (job->options.interval_count && run->intervals >= job->options.interval_count)
			return 0;
		return show_interval(run, run->start_ns + result->time_ns);
	}
	watch_cgroups(run);
	stat_fill_result(job, run->session, result);
	return 0;
}

static int one_run(struct stat_job *job, int pass, bool last, struct stat_result *result,
		   struct workload *ret_work, struct err *err)
{
	struct run run = {.job = job,
			  .signals = -1,
			  .control = {.in = -1, .ack = -1},
			  .work = {.release = -1}};
	const struct stat_options *o = &job->options;
	int r = 0;

	if (o->control)
		r = control_open(o->control, &run.control, err);
	if (r == 0)
		r = start_run(&run, pass, err);
	if (r == 0) {
		set_timers(&run);
		run.signals = signals_open();
		r = wait_for_end(&run);
	}
	if (r == 0)
		r = end_run(&run, result);
	if (run.signals >= 0)
		close(run.signals);
	/* The kernel waits some 30 ms for each tracepoint that is closed: after the last run the result
	 * is shown first, and the descriptors go with the process. */
	if (r == 0 && last)
		count_session_leave(run.session);
	else
		count_session_close(run.session);
	*ret_work = run.work;
	return r;
}

/* Keeps one run's numbers for -r and --exact. */
static int keep_run(struct stat_job *job, const struct stat_result *result)
{
	size_t count = job->target.rows.len * stat_events(job);
	struct count_value *copy = malloc((count + 1) * sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, result->values, count * sizeof(*copy));
	if (vec_push(&job->run_values, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return vec_push(&job->run_walls, result->wall_ns) < 0 ||
			       vec_push(&job->run_users, result->user_ns) < 0 ||
			       vec_push(&job->run_systems, result->sys_ns) < 0
		       ? -ENOMEM
		       : 0;
}

int stat_run_all(struct stat_job *job, struct err *err)
{
	unsigned runs = (unsigned)MAX(job->options.repeat, UINT64_C(1)) * (unsigned)job->set.passes;
	struct workload work = {0};
	struct stat_result result;
	struct run shown = {.job = job};
	int r = stat_result_new(job, &result);

	for (unsigned i = 0; i < runs && r == 0; i++) {
		r = one_run(job, (int)(i % (unsigned)job->set.passes), i + 1 == runs, &result,
			    &work, err);
		if (r == 0 && runs > 1 && !job->options.interval_ns)
			r = keep_run(job, &result);
		if (work.ended && WIFSIGNALED(work.status))
			break; /* Ctrl-C, or a command that crashes: not again */
	}
	if (r == 0 && job->run_values.len > 1)
		r = stat_merge_runs(job, &result);
	if (r == 0 && !job->options.interval_ns)
		r = show(&shown, &result);
	if (r == 0 && job->options.explain && job->options.format == STAT_TEXT)
		stat_explain(job, &result);
	stat_result_free(&result);
	if (r < 0)
		return err && err->text[0] == '\0' ? err_set(err, r, "%s", strerrordesc_np(-r)) : r;
	if (job->regions) {
		r = stat_regions_show(job, err);
		stat_regions_end(job);
		if (r < 0)
			return r;
	}
	if (job->options.format == STAT_JSON)
		stat_json_end(job);
	if (fflush(job->out) != 0)
		return err_set(err, -errno, "write the result: %s", strerrordesc_np(errno));
	if (work.ended && !work.stopped)
		workload_exit_like(&work);
	return 0;
}
