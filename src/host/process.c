/* Processes and threads, as /proc tells of them. They may end at any moment: then nothing is told.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"

#define STAT_BYTES 4096

int host_tids_read(const struct host *host, pid_t pid, struct host_tids *ret)
{
	struct host_tids tids = {0};
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *tasks;
	int r = host_path(host, path, sizeof(path), "/proc/%d/task", (int)pid);

	if (r < 0)
		return r;
	tasks = opendir(path);
	if (!tasks)
		return -ESRCH;
	while (r == 0 && (entry = readdir(tasks)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			r = vec_push(&tids, atoi(entry->d_name));
	closedir(tasks);
	if (r < 0)
		vec_fini(&tids);
	else
		*ret = tids;
	return r;
}

void host_thread_label(const struct host *host, pid_t tid, char *buf, size_t size)
{
	struct host_text comm;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	comm = host_line(host, path);
	snprintf(buf, size, "%s-%d", comm.known ? comm.value : "?", (int)tid);
}

/* proc(5): "pid (comm) state ..."; the comm may hold blanks and parentheses. */
bool host_task_read(const struct host *host, pid_t tid, struct host_task *ret)
{
	struct host_task task = {.tid = tid, .cpu = -1};
	CLEANUP_FREE char *text = NULL;
	char path[64], *open, *close, *save = NULL;
	int field = 3;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	if (host_read(host, path, STAT_BYTES, &text, &size, NULL) < 0)
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open)
		return false;
	snprintf(task.comm, sizeof(task.comm), "%.*s", (int)(close - open - 1), open + 1);
	for (char *word = strtok_r(close + 1, " ", &save); word;
	     word = strtok_r(NULL, " ", &save), field++) {
		if (field == 3)
			task.state = word[0];
		else if (field == 9)
			task.is_kernel = strtoul(word, NULL, 10) & 0x00200000; /* PF_KTHREAD */
		else if (field == 39)
			task.cpu = atoi(word);
		else if (field == 40)
			task.priority = (unsigned)strtoul(word, NULL, 10);
		else if (field == 41)
			task.policy = atoi(word);
	}
	*ret = task;
	return true;
}
