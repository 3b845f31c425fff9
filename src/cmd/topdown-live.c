/*
 * Live top-down: the counters of this machine for a command, processes or everything. The command
 * can be run again: first level 1, then the events of the marked branch alone, as far as marks go.
 * Where nothing can be counted it is said what is missing, and times, faults and switches are
 * shown.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/topdown.h"
#include "cmd/workload.h"
#include "count/topdown-set.h"
#include "host/host.h"

#define DEVICES  "/sys/bus/event_source/devices"
#define RUNS_MAX 16

struct live {
	struct topdown_job *job;
	struct topdown_set ts;
	struct count_session *session;
	struct workload work;
	VEC(struct count_place) places; /* empty: the command */
	unsigned pmu_type, run;
	bool user_only;
	int signals;
};

/* The core PMU's number: as the table calls it, or the first with the vendor's prefix. */
static int find_pmu(const struct host *host, const struct topdown_table *table)
{
	const char *names[] = {table->pmu, "cpu", "cpu_core", NULL};
	char path[300];
	struct dirent *entry;
	struct host_number type;
	int found = -ENOENT;
	DIR *dir = NULL;

	for (size_t i = 0; names[i] && table->vendor != TOPDOWN_ARM; i++) {
		snprintf(path, sizeof(path), DEVICES "/%s/type", names[i]);
		type = host_number(host, path);
		if (type.known)
			return (int)type.value;
	}
	if (table->vendor == TOPDOWN_ARM && host_path(host, path, sizeof(path), DEVICES) == 0)
		dir = opendir(path);
	if (!dir)
		return found;
	while (found < 0 && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), DEVICES "/%.200s/type", entry->d_name);
		type = host_number(host, path);
		if (strncmp(entry->d_name, "armv8_", 6) == 0 && type.known)
			found = (int)type.value;
	}
	closedir(dir);
	return found;
}

/* The table of this machine's cores. -ENOENT with what is missing. */
int topdown_detect(struct topdown_job *job, struct err *err)
{
	struct host_cpu_model model;
	char name[32];

	host_cpu_model_read(job->machine->host, &model);
	snprintf(job->cpu_model, sizeof(job->cpu_model), "%s",
		 model.name[0] ? model.name : model.id);
	if (!model.uarch)
		return err_set(err, -ENOENT, "no table for this core (%s)",
			       model.known ? model.id : model.why);
	snprintf(name, sizeof(name), "%s", model.uarch);
	if (strcmp(name, "n2") == 0 && (model.midr >> 20 & 0xf) == 0 && (model.midr & 0xf) < 3)
		snprintf(name, sizeof(name), "n2-r0p%u",
			 (unsigned)(model.midr & 0xf)); /* the erratum */
	job->table = topdown_table_find(name);
	if (!job->table)
		return err_set(err, -ENOENT, "no top-down events are known for this core (%s)",
			       name);
	return 0;
}

static int make_set(struct live *live, const bool *nodes, bool *ret_multiplexed, struct err *err)
{
	const struct topdown_machine *machine = live->job->machine;
	const struct topdown_table *table = live->job->table;
	struct count_plan_options how = {.exact = live->job->options.no_multiplex};
	bool wanted[TOPDOWN_EVENTS_MAX] = {false}, together[TOPDOWN_EVENTS_MAX] = {false};
	bool first[TOPDOWN_EVENTS_MAX] = {false};
	bool smt = live->job->counts.literals[0].value != 0;
	int r;

	for (size_t i = 0; i < table->node_count; i++)
		first[i] = table->nodes[i].level == 1;
	topdown_events(live->job->topdown, first, smt, false, together);
	topdown_events(live->job->topdown, nodes, smt, true, wanted);
	topdown_set_fini(&live->ts);
	r = topdown_set_init(&live->ts, table, wanted, together, live->pmu_type, live->user_only);
	if (r == 0)
		r = count_plan(&live->ts.set, machine->ops, machine->ops_ctx, &how);
	*ret_multiplexed = live->ts.set.multiplexed || live->ts.set.passes > 1;
	return r < 0 ? err_set(err, r, "plan the counters: %s", strerrordesc_np(-r)) : 0;
}

static int add_value(void *ctx, unsigned event, const struct expr_value *value)
{
	struct live *live = ctx;

	return topdown_counts_add(&live->job->counts, event, live->run, value);
}

static int evaluate(struct live *live, struct topdown_result *ret)
{
	struct topdown_inputs inputs;

	topdown_counts_inputs(&live->job->counts, &inputs);
	return topdown_eval(live->job->topdown, &inputs, topdown_max_level(live->job), ret);
}

static int show_interval(struct live *live, int pass, struct err *err)
{
	struct topdown_result result = {0};
	int r;

	live->job->counts.counts.len = 0;
	r = topdown_set_values(&live->ts, live->session, 0, pass, add_value, live);
	if (r == 0)
		r = evaluate(live, &result);
	if (r == 0)
		r = topdown_show(live->job, &result, err);
	topdown_result_fini(&result);
	count_session_restart(live->session);
	return r;
}

static bool processes_ended(const struct live *live)
{
	if (live->places.len == 0 || live->places.data[0].pid < 0)
		return false;
	for (size_t i = 0; i < live->places.len; i++)
		if (kill(live->places.data[i].pid, 0) == 0 || errno != ESRCH)
			return false;
	return true;
}

static int wait_for_end(struct live *live, int pass, struct err *err)
{
	const struct topdown_options *o = &live->job->options;
	uint64_t start = clock_monotonic_ns(),
		 next = o->interval_ns ? start + o->interval_ns : UINT64_MAX;
	uint64_t stop = o->duration_ns ? start + o->duration_ns : UINT64_MAX, shown = 0;
	bool stopping = false;
	int r = 0;

	while (r == 0 && !stopping && !workload_reap(&live->work, false)) {
		uint64_t now = clock_monotonic_ns(),
			 due = now + count_session_slice_ns(live->session);
		struct pollfd fd = {live->signals, POLLIN, 0};
		struct signalfd_siginfo info;
		struct timespec wait;

		due = MIN(MIN(due, next), stop);
		if (live->work.pid == 0)
			due = MIN(due, now + 100 * NSEC_PER_MSEC);
		due = due > now ? due - now : 0;
		wait = (struct timespec){(time_t)(due / NSEC_PER_SEC), (long)(due % NSEC_PER_SEC)};
		if (ppoll(&fd, 1, &wait, NULL) > 0)
			while (read(live->signals, &info, sizeof(info)) == sizeof(info))
				if (info.ssi_signo != SIGCHLD) {
					if (live->work.pid > 0 && info.ssi_signo != SIGINT)
						workload_kill(&live->work, (int)info.ssi_signo);
					stopping |= live->work.pid == 0;
				}
		count_session_read(live->session);
		now = clock_monotonic_ns();
		live->job->time_ns = now - start;
		if (now >= next) {
			r = show_interval(live, pass, err);
			next = now + o->interval_ns;
			stopping |= o->interval_count && ++shown >= o->interval_count;
		}
		stopping |= now >= stop || processes_ended(live);
	}
	if (live->work.pid > 0 && !live->work.ended) {
		workload_kill(&live->work, SIGTERM);
		live->work.stopped = true;
		workload_reap(&live->work, true);
	}
	return r;
}

/* One run of what is counted, or the time asked for. */
static int run_once(struct live *live, int pass, struct err *err)
{
	const struct topdown_machine *machine = live->job->machine;
	struct count_place self = {.pid = 0, .cpu = -1, .cgroup = -1};
	bool command = live->job->argv && live->places.len == 0;
	struct count_session_options how = {
		.inherit = true, .keep_slices = true, .enable_on_exec = command, .pass = pass};
	int r = 0;

	live->work = (struct workload){.release = -1};
	if (live->job->argv)
		r = workload_hold(&live->work, live->job->argv, err);
	self.pid = live->work.pid;
	if (r == 0)
		r = count_session_open(&live->ts.set, machine->ops, machine->ops_ctx,
				       command ? &self : live->places.data,
				       command ? 1 : (unsigned)live->places.len, 1, &how,
				       &live->session, err);
	if (r == 0 && !command)
		r = count_session_enable(live->session);
	if (r == 0 && live->job->argv) {
		r = workload_release(&live->work, live->job->argv, err);
		if (r < 0)
			live->job->exit_status = workload_exec_status(r);
	} else if (r < 0 && live->work.pid > 0) {
		workload_kill(&live->work, SIGKILL);
		workload_reap(&live->work, true);
	}
	if (r == 0)
		r = wait_for_end(live, pass, err);
	if (r == 0) {
		count_session_disable(live->session);
		count_session_read(live->session);
		live->run++;
		if (!live->job->options.interval_ns)
			r = topdown_set_values(&live->ts, live->session, 0, pass, add_value, live);
	}
	count_session_close(live->session);
	live->session = NULL;
	return r;
}

/* The nodes of the first run: what was asked for, else levels 1 and 2 when they fit at once or
 * cannot be had by running again, else level 1. */
static int first_nodes(struct live *live, bool *nodes, struct err *err)
{
	const struct topdown_job *job = live->job;
	const struct topdown_table *table = job->table;
	unsigned level = job->options.all     ? 99
			 : job->options.level ? (unsigned)job->options.level
					      : 2;
	bool multiplexed;
	int r;

	for (size_t i = 0; i < table->node_count; i++)
		nodes[i] = job->chosen ? job->chosen[i] : table->nodes[i].level <= level;
	if (job->options.explain) /* found by choose_nodes() */
		nodes[topdown_node_find(table, job->options.explain)] = true;
	r = make_set(live, nodes, &multiplexed, err);
	if (r < 0 || !multiplexed || job->chosen || job->options.explain || job->options.all ||
	    job->options.level || !job->argv || live->places.len > 0 || job->options.interval_ns)
		return r;
	for (size_t i = 0; i < table->node_count; i++)
		nodes[i] = table->nodes[i].level == 1;
	return make_set(live, nodes, &multiplexed, err);
}

/* The children of the mark that no run has counted yet. */
static bool next_nodes(const struct live *live, const struct topdown_result *result, bool *nodes,
		       bool *counted)
{
	const struct topdown_table *table = live->job->table;
	bool any = false;

	for (size_t i = 0; i < table->node_count; i++) {
		nodes[i] = result->bottleneck >= 0 &&
			   table->nodes[i].parent == result->bottleneck && !counted[i] &&
			   table->nodes[i].level <= topdown_max_level(live->job);
		any |= nodes[i];
	}
	for (size_t i = 0; i < table->node_count; i++)
		counted[i] |= nodes[i];
	return any;
}

static int count_and_drill(struct live *live, struct topdown_result *result, struct err *err)
{
	struct topdown_job *job = live->job;
	bool nodes[TOPDOWN_EVENTS_MAX] = {false}, counted[TOPDOWN_EVENTS_MAX], multiplexed;
	bool again = job->argv && live->places.len == 0 && !job->options.interval_ns &&
		     !job->options.level && !job->options.all && !job->chosen;
	int r = first_nodes(live, nodes, err);

	memcpy(counted, nodes, sizeof(nodes));
	while (r == 0) {
		int passes = job->argv ? live->ts.set.passes : 1;

		for (int pass = 0; pass < passes && r == 0; pass++)
			r = run_once(live, pass, err);
		topdown_result_fini(result);
		if (r == 0 && !job->options.interval_ns)
			r = evaluate(live, result);
		if (r < 0 || !again || live->run >= RUNS_MAX ||
		    (live->work.ended && WIFSIGNALED(live->work.status)) ||
		    !next_nodes(live, result, nodes, counted))
			break;
		r = make_set(live, nodes, &multiplexed, err);
	}
	job->runs = live->run;
	if (live->run > 1)
		str_printf(&job->notes,
			   "The command was run %u times, for the events of one branch after the "
			   "other.\n",
			   live->run);
	return r;
}

static int add_places(struct live *live, struct err *err)
{
	struct topdown_job *job = live->job;
	struct host_topology topology;
	CLEANUP_FREE char *list = NULL;
	char *save = NULL;
	int r = 0;

	if (job->options.all_cpus) {
		r = host_topology_read(job->machine->host, &topology, err);
		if (r < 0)
			return r;
		cpuset_for_each(&topology.online, cpu)
			if (vec_push(&live->places,
				     ((struct count_place){
					     .pid = -1, .cpu = (int)cpu, .cgroup = -1})) < 0)
				r = -ENOMEM;
		host_topology_fini(&topology);
		return r;
	}
	if (!job->options.pids)
		return 0;
	list = strdup(job->options.pids);
	for (char *word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		unsigned long long pid;
		struct dirent *entry;
		char path[64];
		DIR *dir;

		if (parse_u64(word, 10, &pid) < 0 || pid == 0 || pid > INT32_MAX)
			return err_set(err, -EINVAL, "-p: '%s' is not a process number", word);
		snprintf(path, sizeof(path), "/proc/%llu/task", pid);
		dir = opendir(path);
		if (!dir)
			return err_set(err, -ESRCH, "no process %llu", pid);
		while ((entry = readdir(dir)) != NULL)
			if (atoi(entry->d_name) > 0 &&
			    vec_push(&live->places,
				     ((struct count_place){.pid = atoi(entry->d_name),
							   .cpu = -1,
							   .cgroup = -1})) < 0)
				r = -ENOMEM;
		closedir(dir);
	}
	return r;
}

/* Why the counters cannot be used, in words; 0 when they can. */
static int check_counters(struct live *live, struct err *err)
{
	const struct topdown_machine *machine = live->job->machine;
	struct host_number paranoid = host_perf_paranoid(machine->host);
	struct host_rights rights = host_rights(machine->host);
	struct host_text hypervisor = host_hypervisor(machine->host);
	struct counters_free free_counters;
	int type = find_pmu(machine->host, live->job->table);

	live->user_only = paranoid.known && paranoid.value >= 2 && !host_can_perfmon(&rights);
	if (type < 0)
		return err_set(err, -ENOENT, "the kernel shows no counters of the core%s",
			       hypervisor.known && strcmp(hypervisor.value, "none") != 0
				       ? ": this is a virtual machine whose host gives it none"
				       : "");
	live->pmu_type = (unsigned)type;
	if (live->user_only && live->job->options.all_cpus)
		return err_set(err, -EACCES,
			       "counting the whole machine needs CAP_PERFMON (perf_event_paranoid "
			       "is %lld)",
			       (long long)paranoid.value);
	counters_probe(machine->ops, machine->ops_ctx, live->user_only, &free_counters);
	if (free_counters.status < 0)
		return err_set(err, free_counters.status, "no counter can be opened: %s",
			       strerrordesc_np(-free_counters.status));
	return 0;
}

static void note_smt(struct live *live)
{
	struct topdown_job *job = live->job;
	struct host_number smt =
		host_number(job->machine->host, "/sys/devices/system/cpu/smt/active");

	job->counts.literals[0] = expr_number(smt.known ? (double)smt.value : 0);
	job->counts.literals[1] = expr_missing(
		EXPR_NOT_COUNTED, "the frequency of the time stamp counter is not known");
	job->counts.by_run = true;
	job->counts.table = job->table;
	if (job->table->percore && smt.known && smt.value && !job->options.all_cpus)
		str_puts(&job->notes, "SMT is on, and the slots of this core belong to both its "
				      "threads: what the other "
				      "thread does is missing here. -a counts both.\n");
	if (live->user_only)
		str_puts(&job->notes, "User mode only: counting the kernel needs CAP_PERFMON.\n");
}

static int count_live(struct live *live, struct err *err)
{
	struct topdown_result result = {.bottleneck = -1};
	sigset_t set;
	int r;

	note_smt(live);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	live->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	r = count_and_drill(live, &result, err);
	if (r == 0 && !live->job->options.interval_ns)
		r = live->job->options.explain ? topdown_explain(live->job, &result, err)
					       : topdown_show(live->job, &result, err);
	if (r == 0 && topdown_show_end(live->job) != EXIT_DONE)
		r = -EPIPE;
	topdown_result_fini(&result);
	close(live->signals);
	return r;
}

int topdown_live(struct topdown_job *job, struct err *err)
{
	struct live live = {.job = job, .signals = -1};
	int r = add_places(&live, err);

	for (size_t i = 0; job->argv && job->argv[i]; i++)
		str_printf(&job->title, "%s%s", i ? " " : "", job->argv[i]);
	if (!job->argv)
		str_puts(&job->title, job->options.pids ? "processes" : "the whole machine");
	if (r == 0 && job->table) {
		r = check_counters(&live, err);
		if (r == 0)
			r = count_live(&live, err);
		else
			r = topdown_software(job, err_text(err, r), err);
	} else if (r == 0) {
		r = topdown_software(job, err->text, err);
	}
	if (r == 0 && live.work.ended && !live.work.stopped)
		job->exit_status = WIFSIGNALED(live.work.status) ? 128 + WTERMSIG(live.work.status)
								 : WEXITSTATUS(live.work.status);
	topdown_set_fini(&live.ts);
	vec_fini(&live.places);
	return r;
}
