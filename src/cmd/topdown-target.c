/* Whose counts: a command, processes, or the CPUs of the machine; and the rows they make. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/topdown.h"

static int add_place(const struct topdown_job *job, struct topdown_tree *tree,
		     struct topdown_places *places, struct count_place place, const char *label)
{
	int row = topdown_tree_row(job, tree, label);

	if (row < 0)
		return row;
	place.row = (unsigned)row;
	return vec_push(&places->places, place);
}

static int add_cpus(const struct topdown_job *job, struct topdown_tree *tree,
		    struct topdown_places *places, struct err *err)
{
	struct host_topology topology;
	int r = host_topology_read(job->machine->host, &topology, err);

	if (r < 0)
		return r;
	cpuset_for_each(&topology.online, number) {
		const struct host_cpu *cpu = host_topology_cpu(&topology, (unsigned)number);
		struct count_place place = {.pid = -1, .cpu = number, .cgroup = -1};
		char label[64] = "";

		if (tree->pmu.partial && !cpuset_has(&tree->pmu.cpus, (unsigned)number))
			continue;
		if (job->options.per_thread)
			snprintf(label, sizeof(label), "CPU%d", number);
		else if (job->options.per_core && cpu)
			snprintf(label, sizeof(label), "S%d-D%d-C%d", MAX(cpu->socket, 0),
				 MAX(cpu->die, 0), MAX(cpu->core, 0));
		r = add_place(job, tree, places, place, label);
		if (r < 0)
			break;
	}
	host_topology_fini(&topology);
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

static int add_process(const struct topdown_job *job, struct topdown_tree *tree,
		       struct topdown_places *places, int pid, struct err *err)
{
	const struct host host = {.root = ""};
	struct host_tids tids = {0};
	int r = host_tids_read(&host, pid, &tids);

	if (r < 0)
		return err_set(err, r, "no process %d", pid);
	for (size_t i = 0; r == 0 && i < tids.len; i++) {
		struct count_place place = {.pid = tids.data[i], .cpu = -1, .cgroup = -1};
		char label[64] = "";

		if (job->options.per_thread)
			host_thread_label(&host, place.pid, label, sizeof(label));
		r = add_place(job, tree, places, place, label);
	}
	vec_fini(&tids);
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

/* Calls with every process of -p; stops at the first that gives non-zero. */
static int for_each_pid(const struct topdown_job *job, int (*call)(void *ctx, int pid), void *ctx,
			struct err *err)
{
	CLEANUP_FREE char *list = strdup(job->options.pids);
	char *save = NULL;
	int r = list ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (char *word = list ? strtok_r(list, ",", &save) : NULL; word && r == 0;
	     word = strtok_r(NULL, ",", &save)) {
		unsigned long long pid;

		if (parse_u64(word, 10, &pid) < 0 || pid == 0 || pid > INT32_MAX)
			return err_set(err, -EINVAL, "-p: '%s' is not a process number", word);
		r = call(ctx, (int)pid);
	}
	return r;
}

struct process_places {
	const struct topdown_job *job;
	struct topdown_tree *tree;
	struct topdown_places *places;
	struct err *err;
};

static int call_add_process(void *ctx, int pid)
{
	struct process_places *p = ctx;

	return add_process(p->job, p->tree, p->places, pid, p->err);
}

int topdown_target_places(const struct topdown_job *job, struct topdown_tree *tree,
			  struct topdown_places *ret, struct err *err)
{
	struct process_places processes = {job, tree, ret, err};

	if (job->options.all_cpus)
		return add_cpus(job, tree, ret, err);
	if (job->options.pids)
		return for_each_pid(job, call_add_process, &processes, err);
	return topdown_tree_row(job, tree, "") < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int call_is_alive(void *ctx, int pid)
{
	(void)ctx;
	return kill(pid, 0) == 0 || errno != ESRCH;
}

bool topdown_target_ended(const struct topdown_job *job)
{
	return job->options.pids && for_each_pid(job, call_is_alive, NULL, NULL) == 0;
}

void topdown_target_title(const struct topdown_job *job, struct topdown_side *side)
{
	if (side->argv && !job->options.all_cpus && !job->options.pids) {
		for (size_t i = 0; side->argv[i]; i++)
			str_printf(&side->title, "%s%s", i ? " " : "", side->argv[i]);
	} else if (job->options.pids) {
		str_printf(&side->title, "process%s %s", strchr(job->options.pids, ',') ? "es" : "",
			   job->options.pids);
	} else {
		str_puts(&side->title, "the whole machine");
	}
}
