/*
 * Who is measured by engine K: the tracer's kernel threads, whose policy and cgroup may be changed
 * (they end with the tracer, so nothing has to be put back), or threads of our own that read
 * timerlat_fd.
 *
 * Our threads live in a process of their own: it can be moved to a cgroup as a whole, locks only
 * its own few pages in memory, and dies with us.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "host/host.h"
#include "latency/engine-tracer-internal.h"
#include "latency/sampler.h"

#define USER_PRIORITY 95 /* SCHED_FIFO, as the kernel's own timerlat threads have */
#define THREAD_STACK  (64 * 1024)
#define START_MS      10000
#define END_STEP_NS   NSEC_PER_MSEC
#define END_STEPS     5000

static int set_scheduling(pid_t tid, const struct latency_options *options)
{
	return policy_set(tid, options->policy, options->priority, options->dl_runtime_ns,
			  options->dl_period_ns);
}

/* --- cgroups --------------------------------------------------------------------------------- */

/* The file that takes processes of the cgroup: of options->cgroup, "" ours. */
static int cgroup_file(const struct latency_engine *engine, char *buf, size_t size, struct err *err)
{
	const struct host host = {.root = engine->tracefs.root};
	const char *name = engine->options.cgroup;
	struct host_cgroups cgroups;
	char own[PATH_MAX];
	int r = host_cgroups_read(&host, &cgroups, err);

	if (r < 0)
		return r;
	if (cgroups.v2[0] == '\0')
		return err_set(err, -ENOTSUP,
			       "no cgroup v2 is mounted: threads cannot be moved to a cgroup");
	if (*name == '\0') {
		struct host_text line = host_line(&host, "/proc/self/cgroup");
		const char *rest = NULL;

		if (!line.known || !str_prefix(line.value, "0::", &rest))
			return err_set(err, -ENOTSUP, "this process has no cgroup of version 2");
		snprintf(own, sizeof(own), "%s", rest);
		name = own;
	}
	while (*name == '/')
		name++;
	return host_path(&host, buf, size, "%s/%s%scgroup.procs", cgroups.v2, name,
			 *name ? "/" : "");
}

static int move_to_cgroup(const char *file, pid_t pid)
{
	CLEANUP_CLOSE int fd = open(file, O_WRONLY | O_CLOEXEC);
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* --- kernel threads -------------------------------------------------------------------------- */

static int adjust_kernel_thread(const struct latency_engine *engine, const char *cgroup, pid_t pid,
				const char *name, struct err *err)
{
	int r = engine->options.policy >= 0 ? set_scheduling(pid, &engine->options) : 0;

	if (r < 0) {
		policy_refused(r, engine->options.policy, engine->options.priority, err);
		return err_wrap(err, r, "the kernel thread %s", name);
	}
	r = cgroup ? move_to_cgroup(cgroup, pid) : 0;
	if (r == -EINVAL) /* it is bound to its CPU */
		return err_set(err, r,
			       "this kernel lets its thread %s into no cgroup but the root; user "
			       "threads (-u) can be moved",
			       name);
	return r < 0 ? err_set(err, r, "the kernel thread %s cannot be moved: %s: %s", name, cgroup,
			       strerrordesc_np(-r))
		     : 0;
}

/* The threads are called timerlat/0, osnoise/1 ... and are children of kthreadd. */
static int adjust_kernel_threads(const struct latency_engine *engine, struct err *err)
{
	const struct tracefs proc = {.root = engine->tracefs.root, .path = "/proc"};
	char path[PATH_MAX], cgroup[PATH_MAX] = "", prefix[32];
	unsigned adjusted = 0;
	int r = 0;
	DIR *folder;

	if (engine->options.policy < 0 && !engine->options.cgroup)
		return 0;
	if (engine->options.cgroup)
		r = cgroup_file(engine, cgroup, sizeof(cgroup), err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/proc", proc.root);
	snprintf(prefix, sizeof(prefix), "%s/", tracer_name(engine->kind));
	folder = opendir(path);
	if (!folder)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	for (struct dirent *entry; r == 0 && (entry = readdir(folder)) != NULL;) {
		char comm[64];

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    tracefs_value(&proc, comm, sizeof(comm), "%s/comm", entry->d_name) < 0 ||
		    !str_prefix(comm, prefix, NULL))
			continue;
		r = adjust_kernel_thread(engine, cgroup[0] ? cgroup : NULL,
					 (pid_t)strtol(entry->d_name, NULL, 10), comm, err);
		adjusted++;
	}
	closedir(folder);
	if (r == 0 && adjusted == 0)
		return err_set(err, -ESRCH, "no kernel threads %sN: priority and cgroup not set",
			       prefix);
	return r;
}

/* --- threads of our own ---------------------------------------------------------------------- */

struct user_thread {
	const struct latency_engine *engine;
	unsigned cpu;
	int report; /* pipe: one int per thread, 0 or a negative errno */
};

static int open_timer(const struct user_thread *thread)
{
	struct latency_options options = thread->engine->options;
	int r = affinity_set_one(0, thread->cpu);

	if (r == 0 && options.policy < 0) {
		options.policy = SCHED_FIFO;
		options.priority = USER_PRIORITY;
	}
	if (r == 0)
		r = set_scheduling(0, &options);
	if (r == 0)
		r = tracefs_open(&thread->engine->tracefs, O_RDONLY,
				 "osnoise/per_cpu/cpu%u/timerlat_fd", thread->cpu);
	return r;
}

/* Each read() waits for the timer; the return to user space and the next read are what is
 * measured. */
static void *run_user_thread(void *arg)
{
	const struct user_thread *thread = arg;
	int fd = open_timer(thread), told = fd < 0 ? fd : 0;
	char byte;

	if (fd_write_all(thread->report, &told, sizeof(told)) < 0 || fd < 0)
		return NULL;
	while (read(fd, &byte, 1) >= 0)
		;
	close(fd);
	return NULL;
}

/* The child's life: it never returns. */
static void run_workload(const struct latency_engine *engine, int report)
{
	unsigned count = cpuset_count(&engine->options.cpus), started = 0;
	struct user_thread *threads = calloc(count, sizeof(*threads));
	pthread_attr_t attr;
	pthread_t last;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "culprit-timer");
	signal(SIGINT, SIG_IGN); /* the parent ends us */
	if (!threads || mlockall(MCL_CURRENT | MCL_FUTURE) < 0 || pthread_attr_init(&attr) != 0)
		_exit(1);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	cpuset_for_each(&engine->options.cpus, cpu) {
		threads[started] = (struct user_thread){engine, (unsigned)cpu, report};
		if (pthread_create(&last, &attr, run_user_thread, &threads[started]) != 0)
			_exit(1);
		started++;
	}
	for (;;)
		pause();
}

static int wait_for_threads(int from, unsigned count, struct err *err)
{
	for (unsigned i = 0; i < count; i++) {
		struct pollfd told_something = {.fd = from, .events = POLLIN};
		int told;
		ssize_t n;

		if (poll(&told_something, 1, START_MS) == 0)
			return err_set(err, -ETIMEDOUT,
				       "a measured thread got no CPU for %d s: something of a "
				       "higher priority does not let go of it",
				       START_MS / 1000);
		do
			n = read(from, &told, sizeof(told));
		while (n < 0 && errno == EINTR);
		if (n != (ssize_t)sizeof(told))
			return err_set(err, -ECHILD, "the measured threads could not be started");
		if (told < 0)
			return err_set(err, told, "a measured thread could not be started: %s%s",
				       strerrordesc_np(-told),
				       told == -EPERM
					       ? " (a real-time priority needs CAP_SYS_NICE "
						 "and room in the cgroup's cpu.rt_runtime_us)"
					       : "");
	}
	return 0;
}

static int start_user_threads(struct latency_engine *engine, struct err *err)
{
	char cgroup[PATH_MAX];
	int ends[2], r = 0;

	if (engine->options.cgroup)
		r = cgroup_file(engine, cgroup, sizeof(cgroup), err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, -errno, "pipe: %s", strerrordesc_np(errno));
	engine->workload = fork();
	if (engine->workload == 0) {
		close(ends[0]);
		run_workload(engine, ends[1]);
	}
	close(ends[1]);
	if (engine->workload < 0) {
		r = err_set(err, -errno, "fork: %s", strerrordesc_np(errno));
		engine->workload = 0;
	}
	if (r == 0 && engine->options.cgroup) {
		r = move_to_cgroup(cgroup, engine->workload);
		if (r < 0)
			err_set(err, r, "%s: %s", cgroup, strerrordesc_np(-r));
	}
	if (r == 0)
		r = wait_for_threads(ends[0], cpuset_count(&engine->options.cpus), err);
	close(ends[0]);
	return r;
}

int tracer_start_threads(struct latency_engine *engine, enum latency_workload workload,
			 struct err *err)
{
	switch (workload) {
	case WORKLOAD_KERNEL:
		return engine->kind == TRACER_HWLAT ? 0 : adjust_kernel_threads(engine, err);
	case WORKLOAD_USER:
		return start_user_threads(engine, err);
	case WORKLOAD_EXTERNAL:
		return 0;
	}
	return -EINVAL;
}

void tracer_kill_threads(struct latency_engine *engine)
{
	if (engine->workload <= 0)
		return;
	kill(engine->workload, SIGKILL);
	/* killed threads need their CPU once more, which may never be */
	for (unsigned i = 0; i < END_STEPS; i++) {
		pid_t ended = waitpid(engine->workload, NULL, WNOHANG);

		if (ended != 0 && !(ended < 0 && errno == EINTR))
			break;
		nanosleep(&(struct timespec){.tv_nsec = END_STEP_NS}, NULL);
	}
	engine->workload = 0;
}
