/* What to do when a threshold is reached, or at the end: trace, signal, shell, continue. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/latency-run.h"
#include "host/host.h"
#include "view/text.h"

extern char **environ;

/* --- parsing ------------------------------------------------------------------------------- */

/* "key=value" of the comma-separated rest; shell commands may hold commas, so theirs is the rest.
 */
static const char *value_of(const char *item, const char *key)
{
	size_t len = strlen(key);

	return strncmp(item, key, len) == 0 && item[len] == '=' ? item + len + 1 : NULL;
}

static int parse_signal(char *rest, struct latency_action *action, struct err *err)
{
	char *save = NULL;
	bool has_number = false, has_pid = false;

	for (char *item = strtok_r(rest, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		const char *number = value_of(item, "num"), *pid = value_of(item, "pid");
		unsigned long long value = 0;

		if (number && parse_u64(number, 10, &value) == 0 && value > 0 && value < NSIG) {
			action->signal = (int)value;
			has_number = true;
		} else if (pid && strcmp(pid, "parent") == 0) {
			action->pid = getppid();
			has_pid = true;
		} else if (pid && parse_u64(pid, 10, &value) == 0 && value > 0 &&
			   value <= INT32_MAX) {
			action->pid = (pid_t)value;
			has_pid = true;
		} else {
			return err_set(err, -EINVAL,
				       "signal: '%s' is neither num=N nor pid=PID|parent", item);
		}
	}
	if (!has_number || !has_pid)
		return err_set(err, -EINVAL, "signal needs num=N and pid=PID or pid=parent");
	return 0;
}

int latency_action_parse(const char *text, struct latency_cli *cli, struct latency_actions *into,
			 struct err *err)
{
	struct latency_action action = {0};
	char *copy = strdup(text), *rest;
	int r = 0;

	if (!copy || vec_push(&cli->texts, copy) < 0) {
		free(copy);
		return err_set(err, -ENOMEM, "out of memory");
	}
	rest = copy + strcspn(copy, ",");
	if (*rest)
		*rest++ = '\0';
	if (strcmp(copy, "trace") == 0) {
		action.kind = ACTION_TRACE;
		action.text = *rest ? value_of(rest, "file") : NULL;
		if (*rest && (!action.text || !*action.text))
			r = err_set(err, -EINVAL, "trace: '%s' is not file=FILE", rest);
	} else if (strcmp(copy, "signal") == 0) {
		action.kind = ACTION_SIGNAL;
		r = parse_signal(rest, &action, err);
	} else if (strcmp(copy, "shell") == 0) {
		action.kind = ACTION_SHELL;
		action.text = value_of(rest, "command");
		if (!action.text || !*action.text)
			r = err_set(err, -EINVAL, "shell needs command=COMMAND");
	} else if (strcmp(copy, "continue") == 0 && !*rest) {
		action.kind = ACTION_CONTINUE;
	} else {
		r = err_set(err, -EINVAL,
			    "'%s' is none of trace[,file=FILE], signal,num=N,pid=PID|parent, "
			    "shell,command=COMMAND, continue",
			    text);
	}
	if (r == 0 && action.kind == ACTION_TRACE)
		cli->trace = true;
	return r < 0 ? r : vec_push(&into->list, action);
}

/* --- doing --------------------------------------------------------------------------------- */

/* The command starts without the signals that we hold back. */
static int run_shell(const char *command, struct err *err)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(command), NULL};
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid = 0;
	int status = 0, r;

	if (!argv[2])
		return -ENOMEM;
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	r = -posix_spawn(&pid, "/bin/sh", NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	free(argv[2]);
	if (r < 0)
		return err_set(err, r, "/bin/sh: %s", strerrordesc_np(-r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return err_set(err, -ECHILD, "the command '%s' was ended by signal %d", command,
			       WTERMSIG(status));
	return err_set(err, -ECHILD, "the command '%s' returned %d", command, WEXITSTATUS(status));
}

int latency_actions_do(const struct latency_actions *actions,
		       int (*trace)(void *arg, const char *file, struct err *err), void *arg,
		       bool *ret_continue, struct err *err)
{
	int r = 0;

	*ret_continue = false;
	for (size_t i = 0; i < actions->list.len && r >= 0; i++) {
		const struct latency_action *action = &actions->list.data[i];

		switch (action->kind) {
		case ACTION_TRACE:
			r = trace(arg, action->text, err);
			break;
		case ACTION_SIGNAL:
			if (kill(action->pid, action->signal) < 0)
				r = err_set(err, -errno, "signal %d to process %d: %s",
					    action->signal, (int)action->pid,
					    strerrordesc_np(errno));
			break;
		case ACTION_SHELL:
			r = run_shell(action->text, err);
			break;
		case ACTION_CONTINUE:
			*ret_continue = true;
			break;
		}
	}
	return r;
}

/* --- tasks --------------------------------------------------------------------------------- */

static void put_task(const struct host_task *task, struct str *out)
{
	static const char *const policies[] = {"other", "fifo", "rr",      "batch",
					       "?",     "idle", "deadline"};

	str_printf(out, "  CPU %d: ", task->cpu);
	text_clean(out, task->comm, strlen(task->comm));
	str_printf(out, ":%d, %s %u\n", task->tid,
		   (unsigned)task->policy < ARRAY_LEN(policies) ? policies[task->policy] : "?",
		   task->priority);
}

static void dump_process(int pid, const struct cpuset *cpus, struct str *out)
{
	const struct host host = {.root = ""};
	struct host_tids tids = {0};
	struct host_task task;

	(void)host_tids_read(&host, pid, &tids);
	vec_for_each(&tids, tid)
		if (host_task_read(&host, *tid, &task) && task.state == 'R' && task.cpu >= 0 &&
		    cpuset_has(cpus, (unsigned)task.cpu))
			put_task(&task, out);
	vec_fini(&tids);
}

void latency_dump_tasks(const struct cpuset *cpus, struct str *out)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	str_puts(out, "\nRunnable on the measured CPUs just after the stop:\n");
	while (proc && (entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			dump_process(atoi(entry->d_name), cpus, out);
	if (proc)
		closedir(proc);
}
