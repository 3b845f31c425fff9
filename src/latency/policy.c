/* Scheduling policies: their names, and why the kernel refuses them. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "host/host.h"
#include "latency/sampler.h"

const char *policy_name(int policy)
{
	switch (policy) {
	case SCHED_OTHER:
		return "other";
	case SCHED_FIFO:
		return "fifo";
	case SCHED_RR:
		return "rr";
	case SCHED_BATCH:
		return "batch";
	case SCHED_IDLE:
		return "idle";
	case SCHED_DEADLINE:
		return "deadline";
	}
	return "unknown";
}

/* The kernel's struct sched_attr, first version. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

int policy_set(int tid, int policy, int priority, uint64_t dl_runtime_ns, uint64_t dl_period_ns)
{
	struct scheduling scheduling = {.size = sizeof(scheduling), .policy = (uint32_t)policy};

	if (policy == SCHED_DEADLINE) {
		scheduling.runtime_ns = dl_runtime_ns;
		scheduling.deadline_ns = scheduling.period_ns = dl_period_ns;
	} else if (policy == SCHED_FIFO || policy == SCHED_RR) {
		scheduling.priority = (uint32_t)priority;
	} else {
		/* 0: what it has; an ordinary user may not take it back to 0 */
		scheduling.nice = priority ? priority : getpriority(PRIO_PROCESS, (id_t)tid);
	}
	return syscall(SYS_sched_setattr, tid, &scheduling, 0) < 0 ? -errno : 0;
}

/* gVisor shows a kernel of its own that has not changed since 2016. */
static bool is_gvisor(void)
{
	struct utsname name;

	return uname(&name) == 0 && strstr(name.version, "Sun Jan 10 15:06:54 PST 2016");
}

/* With RT_GROUP_SCHED a control group without a budget has no real-time threads. */
static bool lacks_rt_budget(void)
{
	const struct host host = {.root = ""};
	char line[512], path[640];
	struct host_number budget;
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool lacks = false;

	if (!file)
		return false;
	while (!lacks && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':'), *group;

		group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (!strstr(controllers, ":cpu,") && !strstr(controllers, ",cpu") &&
		    strcmp(controllers, ":cpu"))
			continue;
		snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.rt_runtime_us", group);
		budget = host_number(&host, path);
		lacks = budget.known && budget.value == 0;
	}
	fclose(file);
	return lacks;
}

int policy_refused(int code, int policy, int priority, struct err *err)
{
	const struct host host = {.root = ""};
	struct host_rights rights = host_rights(&host);
	struct rlimit limit;
	char what[48];

	if (policy == SCHED_DEADLINE)
		snprintf(what, sizeof(what), "policy deadline");
	else
		snprintf(what, sizeof(what), "policy %s, priority %d", policy_name(policy),
			 priority);
	if (is_gvisor())
		return err_set(err, code, "%s: gVisor has no real-time policies", what);
	if (policy == SCHED_DEADLINE && code == -EPERM && host_can(&rights, HOST_CAP_SYS_NICE))
		return err_set(
			err, code,
			"%s: a deadline thread may not be pinned to a part of its CPUs: measure "
			"inside an exclusive cpuset of this CPU alone, or switch the admission "
			"off for the time (kernel.sched_rt_runtime_us = -1)",
			what);
	if (policy == SCHED_DEADLINE && code == -EBUSY)
		return err_set(err, code,
			       "%s: the deadline threads together would need more than "
			       "kernel.sched_rt_runtime_us leaves",
			       what);
	if (code == -EINVAL)
		return err_set(
			err, code,
			"%s: not valid (priorities are 1 to 99; deadline: runtime <= period, "
			"at least 1024 ns)",
			what);
	if (code == -EPERM && lacks_rt_budget())
		return err_set(err, code,
			       "%s: this control group has no real-time budget "
			       "(cpu.rt_runtime_us is 0)",
			       what);
	if (code == -EPERM && !host_can(&rights, HOST_CAP_SYS_NICE) &&
	    getrlimit(RLIMIT_RTPRIO, &limit) == 0)
		return err_set(err, code,
			       "%s: needs CAP_SYS_NICE or a larger limit of real-time priorities "
			       "(ulimit -r is %llu)",
			       what, (unsigned long long)limit.rlim_cur);
	return err_set(err, code, "%s: %s%s", what, strerror(-code),
		       code == -EPERM ? " (a seccomp filter or security module forbids it, or the "
					"control group has no real-time budget)"
				      : "");
}
