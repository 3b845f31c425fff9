/* Where stat counts: a command, threads, CPUs or cgroups, and which of them are summed into one
 * row. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/stat.h"
#include "host/host.h"

static const struct host this_machine = {.root = ""};

#define CGROUP1_MAGIC 0x27e0eb
#define CGROUP2_MAGIC 0x63677270

static int read_number(const char *path, int fallback)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;

	return file_read(path, 64, &text, &size, NULL) < 0 ? fallback : atoi(text);
}

static int topology_number(int cpu, const char *what)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
	return MAX(read_number(path, 0), 0);
}

static int cpu_node(int cpu)
{
	char path[64];
	struct dirent *entry;
	int node = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL)
		if (str_prefix(entry->d_name, "node", NULL) &&
		    isdigit((unsigned char)entry->d_name[4]))
			node = atoi(entry->d_name + 4);
	if (dir)
		closedir(dir);
	return node;
}

/* The row of this label, made at need; -ENOMEM. */
static int row_for(struct stat_target *target, const char *label, int cpu)
{
	struct stat_row row = {.cpu = cpu, .cpus = 1};

	for (size_t i = 0; i < target->rows.len; i++)
		if (strcmp(target->rows.data[i].label, label) == 0) {
			target->rows.data[i].cpus++;
			return (int)i;
		}
	snprintf(row.label, sizeof(row.label), "%s", label);
	return vec_push(&target->rows, row) < 0 ? -ENOMEM : (int)target->rows.len - 1;
}

static void cpu_label(enum stat_aggregate aggregate, int cpu, char *buf, size_t size)
{
	int socket = topology_number(cpu, "physical_package_id");

	switch (aggregate) {
	case STAT_PER_CPU:
		snprintf(buf, size, "CPU%d", cpu);
		break;
	case STAT_PER_CORE:
		snprintf(buf, size, "S%d-D%d-C%d", socket, topology_number(cpu, "die_id"),
			 topology_number(cpu, "core_id"));
		break;
	case STAT_PER_SOCKET:
		snprintf(buf, size, "S%d", socket);
		break;
	case STAT_PER_NODE:
		snprintf(buf, size, "N%d", cpu_node(cpu));
		break;
	default:
		buf[0] = '\0';
	}
}

static int choose_cpus(const struct stat_job *job, struct cpuset *ret, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	struct cpuset online;
	size_t size;
	int r = file_read("/sys/devices/system/cpu/online", 4096, &text, &size, err);

	if (r == 0)
		r = cpuset_parse(text, &online, err);
	if (r < 0)
		return r;
	*ret = online;
	if (!job->options.cpus)
		return 0;
	r = cpuset_parse(job->options.cpus, ret, err);
	if (r < 0)
		return err_wrap(err, r, "--cpu");
	cpuset_for_each(ret, cpu)
		if (!cpuset_has(&online, (unsigned)cpu))
			return err_set(err, -ENXIO, "--cpu: CPU %d is not online", cpu);
	return cpuset_count(ret) ? 0 : err_set(err, -EINVAL, "--cpu: the list is empty");
}

static int add_cpus(struct stat_job *job, struct err *err)
{
	struct stat_target *target = &job->target;
	struct cpuset cpus;
	char label[64];
	int r = choose_cpus(job, &cpus, err);

	if (r < 0)
		return r;
	target->system_wide = true;
	cpuset_for_each(&cpus, cpu) {
		struct count_place place = {.pid = -1, .cpu = cpu, .cgroup = -1};
		int row;

		cpu_label(job->options.aggregate, cpu, label, sizeof(label));
		row = row_for(target, label, job->options.aggregate == STAT_PER_CPU ? cpu : -1);
		place.row = (unsigned)MAX(row, 0);
		if (row < 0 || vec_push(&target->places, place) < 0)
			return err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

static int add_thread(struct stat_job *job, pid_t tid, struct err *err)
{
	struct count_place place = {.pid = tid, .cpu = -1, .cgroup = -1};
	char label[64] = "";
	int row;

	if (job->options.aggregate == STAT_PER_THREAD)
		host_thread_label(&this_machine, tid, label, sizeof(label));
	row = row_for(&job->target, label, -1);
	place.row = (unsigned)MAX(row, 0);
	return row < 0 || vec_push(&job->target.places, place) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

static int add_process(struct stat_job *job, pid_t pid, struct err *err)
{
	struct host_tids tids = {0};
	int r = host_tids_read(&this_machine, pid, &tids);

	if (r < 0)
		return err_set(err, r, "no process %d", pid);
	for (size_t i = 0; r == 0 && i < tids.len; i++)
		r = add_thread(job, tids.data[i], err);
	vec_fini(&tids);
	return r;
}

static int watch(struct stat_job *job, pid_t pid, struct err *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	char path[64];

	if (fd < 0 && errno == ESRCH)
		return err_set(err, -ESRCH, "no process %d", pid);
	if (fd < 0) { /* a thread that leads no process (before Linux 6.9): its folder tells when it
			 ends */
		snprintf(path, sizeof(path), "/proc/%d", pid);
		if (access(path, F_OK) < 0)
			return err_set(err, -ESRCH, "no thread %d", pid);
		return 0;
	}
	return vec_push(&job->target.pidfds, fd) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int for_each_id(struct stat_job *job, const char *list, const char *option,
		       int (*add)(struct stat_job *job, pid_t pid, struct err *err),
		       struct err *err)
{
	CLEANUP_FREE char *copy = strdup(list);
	char *save = NULL;

	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		unsigned long long id;
		int r;

		if (parse_u64(word, 10, &id) < 0 || id == 0 || id > INT32_MAX)
			return err_set(err, -EINVAL, "%s: '%s' is not a process number", option,
				       word);
		r = add(job, (pid_t)id, err);
		if (r == 0)
			r = watch(job, (pid_t)id, err);
		if (r < 0)
			return r;
	}
	return job->target.places.len ? 0 : err_set(err, -EINVAL, "%s: the list is empty", option);
}

/* The folder of a cgroup: as given, or below where the hierarchy that perf_event belongs to is
 * mounted. */
static int open_cgroup(const char *name, struct err *err)
{
	static const char *const roots[] = {"", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup",
					    "/sys/fs/cgroup/unified"};
	struct statfs fs;
	char path[4096];

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		int fd;

		if (i == 0 && !str_prefix(name, "/sys/", NULL))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", roots[i], name[0] == '/' ? "" : "/", name);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstatfs(fd, &fs) == 0 &&
		    (fs.f_type == CGROUP2_MAGIC || fs.f_type == CGROUP1_MAGIC))
			return fd;
		close(fd);
	}
	return err_set(err, -ENOENT, "--for-each-cgroup: no cgroup '%s' below /sys/fs/cgroup",
		       name);
}

static int add_cgroups(struct stat_job *job, struct err *err)
{
	CLEANUP_FREE char *copy = strdup(job->options.cgroups);
	struct cpuset cpus;
	char *save = NULL;
	int r = choose_cpus(job, &cpus, err);

	job->options.aggregate = STAT_PER_CGROUP;
	job->target.system_wide = true;
	if (!copy)
		r = -ENOMEM;
	for (char *word = strtok_r(copy, ",", &save); r == 0 && word;
	     word = strtok_r(NULL, ",", &save)) {
		int fd = open_cgroup(word, err), row;

		if (fd < 0)
			return fd;
		row = row_for(&job->target, word, -1);
		if (row < 0 || vec_push(&job->target.cgroup_fds, fd) < 0)
			return err_set(err, -ENOMEM, "out of memory");
		cpuset_for_each(&cpus, cpu) {
			struct count_place place = {
				.pid = -1, .cpu = cpu, .cgroup = fd, .row = (unsigned)row};

			if (vec_push(&job->target.places, place) < 0)
				return err_set(err, -ENOMEM, "out of memory");
		}
	}
	return r < 0 ? r
	       : job->target.places.len
		       ? 0
		       : err_set(err, -EINVAL, "--for-each-cgroup: the list is empty");
}

int stat_choose_target(struct stat_job *job, struct err *err)
{
	const struct stat_options *o = &job->options;
	bool by_cpu = o->aggregate >= STAT_PER_CPU && o->aggregate <= STAT_PER_NODE;

	if ((o->pids || o->tids) && (o->all_cpus || o->cpus || by_cpu || o->cgroups))
		return err_set(err, -EINVAL,
			       "-p and -t count threads; they do not go with -a, -C, -A, "
			       "--per-core or cgroups");
	if (o->aggregate == STAT_PER_THREAD && !o->pids && !o->tids)
		return err_set(err, -EINVAL, "--per-thread needs -p or -t");
	if (o->cgroups)
		return add_cgroups(job, err);
	if (o->pids)
		return for_each_id(job, o->pids, "--pid", add_process, err);
	if (o->tids)
		return for_each_id(job, o->tids, "--tid", add_thread, err);
	if (o->all_cpus || o->cpus || by_cpu)
		return add_cpus(job, err);
	if (!job->argv)
		return err_set(err, -EINVAL,
			       "what should be counted? Give a command, -p PID or -a");
	return row_for(&job->target, "", -1) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}
