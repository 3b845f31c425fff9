#include "cmd/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/command.h"

/* What culprit changed for itself must not reach the command. */
static void restore_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int exec_error(int error, char **argv, struct err *err)
{
	/* A whole command line in quotes is one name to the kernel. */
	if (error == ENOENT && argv[1] == NULL && strpbrk(argv[0], " \t"))
		return err_set(err, -error,
			       "cannot run '%s': %s; without the quotes it is a command with "
			       "arguments, and sh -c '%s' takes it as it is",
			       argv[0], strerrordesc_np(error), argv[0]);
	return err_set(err, -error, "cannot run '%s': %s", argv[0], strerrordesc_np(error));
}

/*
 * vfork: the child borrows this address space until it execs, so nothing is copied, and it leaves
 * the errno of a failing exec in a variable that is ours as well.
 */
int workload_start(struct workload *w, char **argv, struct err *err)
{
	volatile int error = 0;
	pid_t pid;

	*w = (struct workload){.release = -1, .start_ns = clock_monotonic_ns()};
	pid = vfork();
	if (pid < 0)
		return err_set(err, -errno, "start '%s': %s", argv[0], strerrordesc_np(errno));
	if (pid == 0) {
		restore_signals();
		execvp(argv[0], argv);
		error = errno;
		_exit(EXIT_NOT_FOUND);
	}
	if (error != 0) {
		waitpid(pid, NULL, 0);
		return exec_error(error, argv, err);
	}
	w->pid = pid;
	return 0;
}

static void held_child(char **argv, const int go[2], const int failed[2])
{
	char byte;
	int error;

	close(go[1]);
	close(failed[0]);
	restore_signals();
	if (read(go[0], &byte, 1) != 1)
		_exit(EXIT_FAILED); /* culprit ended before it let go */
	execvp(argv[0], argv);
	error = errno;
	if (write(failed[1], &error, sizeof(error)) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_NOT_FOUND);
}

int workload_hold(struct workload *w, char **argv, struct err *err)
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1};
	pid_t pid;

	*w = (struct workload){.release = -1};
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0) {
		cleanup_close(&go[0]);
		cleanup_close(&go[1]);
		return err_set(err, -errno, "pipe: %s", strerrordesc_np(errno));
	}
	pid = fork();
	if (pid == 0)
		held_child(argv, go, failed);
	close(go[0]);
	close(failed[1]);
	if (pid < 0) {
		close(go[1]);
		close(failed[0]);
		return err_set(err, -errno, "fork: %s", strerrordesc_np(errno));
	}
	w->pid = pid;
	w->release = go[1];
	w->status =
		failed[0]; /* until it is released, the descriptor that tells of a failing exec */
	return 0;
}

int workload_release(struct workload *w, char **argv, struct err *err)
{
	int failed = w->status, error = 0;
	ssize_t n;

	w->status = 0;
	w->start_ns = clock_monotonic_ns();
	n = write(w->release, "", 1);
	close(w->release);
	w->release = -1;
	if (n == 1)
		n = read(failed, &error, sizeof(error)); /* end of file: exec closed it */
	close(failed);
	if (n == sizeof(error)) {
		waitpid(w->pid, NULL, 0);
		w->pid = 0;
		return exec_error(error, argv, err);
	}
	return 0;
}

bool workload_reap(struct workload *w, bool block)
{
	pid_t r;

	if (w->pid == 0 || w->ended)
		return w->ended;
	do
		r = wait4(w->pid, &w->status, block ? 0 : WNOHANG, &w->usage);
	while (r < 0 && errno == EINTR);
	if (r == w->pid) {
		w->end_ns = clock_monotonic_ns();
		w->ended = true;
	}
	return w->ended;
}

void workload_kill(struct workload *w, int signal)
{
	if (w->pid > 0 && !w->ended)
		kill(w->pid, signal);
}

int workload_exec_status(int error)
{
	return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

void workload_exit_like(const struct workload *w)
{
	fflush(NULL);
	if (WIFSIGNALED(w->status)) {
		struct rlimit no_core = {0, 0};
		sigset_t none;

		setrlimit(RLIMIT_CORE, &no_core);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(WTERMSIG(w->status), SIG_DFL);
		raise(WTERMSIG(w->status));
		_exit(128 + WTERMSIG(w->status));
	}
	_exit(WEXITSTATUS(w->status));
}
