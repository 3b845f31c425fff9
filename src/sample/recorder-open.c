/*
 * Opening: every event on every CPU and target. Events of one CPU share one ring (the first
 * descriptor's), so the number of rings is that of the CPUs, however many threads are watched.
 *
 * Settings that an older kernel does not know (EINVAL) are given up one by one, newest first; what
 * the recording loses with each is nothing that a reader needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "host/host.h"
#include "sample/explain.h"
#include "sample/recorder-internal.h"

#if defined(__x86_64__)
/* ax..r15 without the segment registers, as the unwinder needs them (asm/perf_regs.h) */
#define USER_REGS UINT64_C(0xff0fff)
#elif defined(__aarch64__)
#define USER_REGS     ((UINT64_C(1) << 33) - 1)
#define LINK_REGISTER (UINT64_C(1) << 30)
#else
#define USER_REGS 0
#endif
#ifndef LINK_REGISTER
#define LINK_REGISTER 0
#endif

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static void set_callgraph(struct perf_event_attr *attr, const struct recorder *recorder)
{
	switch (recorder->options.callgraph) {
	case CALLGRAPH_NONE:
		return;
	case CALLGRAPH_DWARF:
	case CALLGRAPH_DWARF_RAW:
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = USER_REGS;
		attr->sample_stack_user = recorder->stack_bytes;
		attr->exclude_callchain_user = 1;
		break;
	case CALLGRAPH_LBR:
		attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
					   PERF_SAMPLE_BRANCH_NO_CYCLES |
					   PERF_SAMPLE_BRANCH_NO_FLAGS;
		break; /* the chain has the innermost address at least */
	case CALLGRAPH_FP:
		/* The callers of functions without a frame (unwinder.c). */
		if (LINK_REGISTER) {
			attr->sample_type |= PERF_SAMPLE_REGS_USER;
			attr->sample_regs_user = LINK_REGISTER;
		}
		break;
	}
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
}

/* The records that tell who runs and what is mapped. */
static void set_side_band(struct perf_event_attr *attr)
{
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->ksymbol = 1;
	attr->bpf_event = 1;
	attr->build_id = 1;
}

static void set_common(struct perf_event_attr *attr, const struct recorder *recorder, bool several)
{
	const struct recorder_options *options = &recorder->options;

	attr->size = sizeof(*attr);
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	if (attr->freq)
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	if (options->system_wide)
		attr->sample_type |= PERF_SAMPLE_CPU;
	if (attr->type == PERF_TYPE_TRACEPOINT)
		attr->sample_type |= PERF_SAMPLE_RAW;
	if (several)
		attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
	attr->read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->inherit = options->inherit && !options->system_wide;
	attr->disabled = 1;
	attr->enable_on_exec = recorder->on_exec;
	/* Half a ring wakes us (watermark 0); the loop also drains once a second. */
	attr->watermark = 1;
	set_callgraph(attr, recorder);
}

/*
 * Leader sampling ({a,b}:S): the first of the group samples and reads the others, which do not
 * sample. The kernel cannot inherit such reads, so children are not followed then.
 */
static void set_group_reads(struct recorder *recorder)
{
	const struct recorder_options *options = &recorder->options;
	uint32_t own = (uint32_t)recorder->attrs.len - options->event_count;
	bool reads = false;

	for (uint32_t i = 0; i < options->event_count; i++)
		reads |= options->events[i].sample_read;
	for (uint32_t i = 0; reads && i < recorder->attrs.len; i++) {
		struct perf_event_attr *attr = &recorder->attrs.data[i];
		const struct recorder_event *asked = i < own ? NULL : &options->events[i - own];

		attr->inherit = 0;
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format |= PERF_FORMAT_GROUP;
		if (asked && asked->sample_read && i > own && asked[-1].group == asked->group) {
			attr->freq = 0;
			attr->sample_period = 0;
		}
	}
}

/*
 * With a delay the sampling events are still off while the program starts, so its mappings need an
 * event of their own that counts nothing.
 */
static int build_attrs(struct recorder *recorder)
{
	const struct recorder_options *options = &recorder->options;
	bool dummy = options->delay_ns > 0, several = dummy || options->event_count > 1;
	uint64_t sample_type = 0;

	recorder->on_exec = options->workload > 0 && !options->system_wide;
	if (dummy) {
		struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
					       .config = PERF_COUNT_SW_DUMMY};

		attr.exclude_kernel = options->events[0].attr.exclude_kernel;
		attr.sample_period = 1;
		set_common(&attr, recorder, several);
		if (vec_push(&recorder->attrs, attr) < 0 ||
		    vec_push(&recorder->names, "dummy:u") < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < options->event_count; i++) {
		struct perf_event_attr attr = options->events[i].attr;

		set_common(&attr, recorder, several);
		if (dummy)
			attr.enable_on_exec = 0;
		if (vec_push(&recorder->attrs, attr) < 0 ||
		    vec_push(&recorder->names, options->events[i].name) < 0)
			return -ENOMEM;
	}
	set_group_reads(recorder);
	set_side_band(&recorder->attrs.data[0]);
	/* perf looks for unwind tables in the mappings, where they lie beside the code. */
	recorder->attrs.data[0].mmap_data = options->callgraph == CALLGRAPH_DWARF_RAW;
	/* One record layout for all events: readers and the tally rely on it. */
	vec_for_each(&recorder->attrs, attr)
		sample_type |= attr->sample_type;
	vec_for_each(&recorder->attrs, attr)
		attr->sample_type = sample_type;
	return 0;
}

static int add_threads(struct recorder *recorder, pid_t pid, struct err *err)
{
	const struct host host = {.root = ""};
	struct host_tids tids = {0};
	int r = host_tids_read(&host, pid, &tids);

	if (r == -ESRCH)
		return err_set(err, r, "process %d does not exist", (int)pid);
	for (size_t i = 0; r == 0 && i < tids.len; i++)
		r = vec_push(&recorder->targets, tids.data[i]);
	vec_fini(&tids);
	return r;
}

static int build_targets(struct recorder *recorder, struct err *err)
{
	const struct recorder_options *options = &recorder->options;
	int r = 0;

	if (options->system_wide)
		return vec_push(&recorder->targets, -1);
	if (options->workload > 0)
		r = vec_push(&recorder->targets, options->workload);
	for (size_t i = 0; r == 0 && i < options->pid_count; i++)
		r = add_threads(recorder, options->pids[i], err);
	for (size_t i = 0; r == 0 && i < options->tid_count; i++)
		r = vec_push(&recorder->targets, options->tids[i]);
	return r;
}

static int build_cpus(struct recorder *recorder, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	struct cpuset online;
	size_t size;
	int r;

	r = file_read("/sys/devices/system/cpu/online", 4096, &text, &size, err);
	if (r == 0)
		r = cpuset_parse(text, &online, err);
	if (r < 0)
		return r;
	if (!recorder->options.cpus) {
		recorder->cpus = online;
		return 0;
	}
	cpuset_for_each(recorder->options.cpus, cpu) {
		if (!cpuset_has(&online, (unsigned)cpu))
			return err_set(err, -ENODEV, "CPU %d is not online (online: %.*s)", cpu,
				       (int)strcspn(text, "\n"), text);
	}
	recorder->cpus = *recorder->options.cpus;
	return 0;
}

/* Newest first; false when there is nothing left to give up. */
static bool give_up_one(struct perf_event_attr *attr)
{
	if (attr->read_format & PERF_FORMAT_LOST)
		attr->read_format &= ~(uint64_t)PERF_FORMAT_LOST; /* 6.0 */
	else if (attr->build_id)
		attr->build_id = 0; /* 5.12 */
	else if (attr->ksymbol || attr->bpf_event)
		attr->ksymbol = attr->bpf_event = 0; /* 5.1 */
	else if (attr->use_clockid)
		attr->use_clockid = 0, attr->clockid = 0; /* 4.1; not for PEBS with large buffers */
	else
		return false;
	return true;
}

/* Opens one descriptor; learns on the way what this kernel takes, for all later ones. */
static int open_one(struct recorder *recorder, uint32_t event, pid_t pid, int cpu, int group_fd,
		    struct err *err)
{
	struct perf_event_attr *attr = &recorder->attrs.data[event];
	struct recorder_fd entry = {.event = event};
	int r;

	r = event_open(attr, pid, cpu, group_fd);
	while (r == -EINVAL && recorder->fds.len == 0 && give_up_one(attr)) {
		vec_for_each(&recorder->attrs, other) {
			other->read_format = attr->read_format;
			other->use_clockid = attr->use_clockid;
			other->clockid = attr->clockid;
		}
		r = event_open(attr, pid, cpu, group_fd);
	}
	if (r < 0)
		return explain_event_open(attr, recorder->names.data[event], pid, cpu, r, err);
	entry.fd = r;
	if (ioctl(entry.fd, PERF_EVENT_IOC_ID, &entry.id) < 0)
		entry.id = 0;
	if (vec_push(&recorder->fds, entry) < 0) {
		close(entry.fd);
		return -ENOMEM;
	}
	return entry.fd;
}

/* A ring for this descriptor, as large as the mlock limit allows. */
static int open_ring(struct recorder *recorder, int fd, uint32_t cpu, struct err *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct ring ring;
	int r;

	r = ring_open(fd, cpu, recorder->ring_bytes, &ring);
	while (r == -EPERM && recorder->ring_bytes > page) {
		recorder->ring_bytes /= 2;
		recorder->rings_shrunk = true;
		r = ring_open(fd, cpu, recorder->ring_bytes, &ring);
	}
	if (r < 0)
		return explain_ring_open(recorder->ring_bytes, r, err);
	if (vec_push(&recorder->polled, recorder->fds.len - 1) < 0 ||
	    vec_push(&recorder->rings, ring) < 0) {
		ring_close(&ring);
		return -ENOMEM;
	}
	return 0;
}

/* The caller's event behind an attr, NULL for our own dummy. */
static const struct recorder_event *event_of(const struct recorder *recorder, uint32_t event)
{
	uint32_t own = (uint32_t)recorder->attrs.len - recorder->options.event_count;

	return event < own ? NULL : &recorder->options.events[event - own];
}

static int event_group(const struct recorder *recorder, uint32_t event)
{
	const struct recorder_event *asked = event_of(recorder, event);

	return asked ? asked->group : -1;
}

static const struct cpuset *event_cpus(const struct recorder *recorder, uint32_t event)
{
	const struct recorder_event *asked = event_of(recorder, event);

	return asked ? asked->cpus : NULL;
}

static int set_filter(const struct recorder *recorder, uint32_t event, int fd, struct err *err)
{
	const struct recorder_event *asked = event_of(recorder, event);
	const char *filter = asked ? asked->filter : NULL;

	if (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0)
		return err_set(err, -errno, "%s: the kernel refuses the filter '%s': %s",
			       recorder->names.data[event], filter, strerrordesc_np(errno));
	return 0;
}

static int open_cpu(struct recorder *recorder, int cpu, struct err *err)
{
	int ring_fd = -1;

	vec_for_each(&recorder->targets, pid) {
		int group = -1, leader_fd = -1;

		for (uint32_t event = 0; event < recorder->attrs.len; event++) {
			const struct cpuset *cpus = event_cpus(recorder, event);
			int fd, r;

			if (cpus && !cpuset_has(cpus, (unsigned)cpu))
				continue;
			if (event_group(recorder, event) != group || group < 0)
				leader_fd = -1;
			group = event_group(recorder, event);
			fd = open_one(recorder, event, *pid, cpu, leader_fd, err);
			if (fd >= 0 && leader_fd < 0)
				leader_fd = fd;
			if (fd == -ESRCH && recorder->targets.len > 1)
				continue; /* one of several threads ended in the meantime */
			if (fd < 0)
				return fd;
			r = set_filter(recorder, event, fd, err);
			if (r == 0 && ring_fd < 0) {
				r = open_ring(recorder, fd, (uint32_t)cpu, err);
				ring_fd = fd;
			} else if (r == 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) < 0) {
				r = err_set(err, -errno, "%s: cannot share the ring of CPU %d: %s",
					    recorder->names.data[event], cpu,
					    strerrordesc_np(errno));
			}
			if (r < 0)
				return r;
			recorder->fds.data[recorder->fds.len - 1].ring =
				(uint32_t)recorder->rings.len - 1;
		}
	}
	return 0;
}

/* Threads times CPUs times events descriptors may be more than the soft limit. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int recorder_open_events(struct recorder *recorder, struct err *err)
{
	int r;

	r = build_cpus(recorder, err);
	if (r < 0)
		return r;
	recorder_choose_sizes(recorder);
	r = build_attrs(recorder);
	if (r == 0)
		r = build_targets(recorder, err);
	if (r < 0)
		return r;
	raise_fd_limit();
	cpuset_for_each(&recorder->cpus, cpu) {
		r = open_cpu(recorder, cpu, err);
		if (r < 0)
			return r;
	}
	if (recorder->rings.len == 0)
		return err_set(err, -ESRCH,
			       "nothing to record: every process that was asked for has ended");
	return 0;
}
