/* What the kernel and the container let us do, and the limits that recordings run into. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/util.h"
#include "cmd/doctor.h"
#include "count/ops.h"

/* The system call itself, with the event that every kernel has. */
static void check_syscall(struct doctor *doctor)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	bool container = doctor->container.known && strcmp(doctor->container.value, "none") != 0;
	int fd = counter_kernel.open(NULL, &attr, 0, -1, -1, 0);
	struct doctor_check *check;

	if (fd >= 0) {
		counter_kernel.close(NULL, fd);
		check = doctor_add(doctor, "perf_event_open", DOCTOR_OK, "works");
		doctor_why(check, "this process may open events for itself");
		return;
	}
	check = doctor_add(doctor, "perf_event_open", DOCTOR_FAIL, "%s", strerrordesc_np(-fd));
	if (fd == -ENOSYS) {
		doctor_why(check,
			   "this kernel was built without perf events, or a filter hides them");
		doctor_remedy(check, "use a kernel with CONFIG_PERF_EVENTS");
	} else if (doctor->rights.seccomp > 0) {
		doctor_why(check, "a seccomp filter forbids the system call");
		doctor_remedy(check,
			      container
				      ? "docker run --cap-add PERFMON (or --security-opt "
					"seccomp=unconfined)"
				      : "allow perf_event_open in the service's SystemCallFilter");
	} else {
		doctor_why(check, "the kernel does not let this user open any event");
		doctor_remedy(check, "sudo sysctl kernel.perf_event_paranoid=1");
	}
}

static void check_paranoid(struct doctor *doctor)
{
	struct host_number level = host_perf_paranoid(&doctor->host);
	struct doctor_check *check;
	bool free_of_it = host_can_perfmon(&doctor->rights);
	const char *why;
	enum doctor_state state = DOCTOR_OK;

	if (!level.known) {
		doctor_unknown(doctor, "perf_event_paranoid", level.why);
		return;
	}
	if (free_of_it)
		why = "this user has CAP_PERFMON or CAP_SYS_ADMIN: the level does not bind it";
	else if (level.value >= 3)
		why = "ordinary users may open nothing", state = DOCTOR_FAIL;
	else if (level.value == 2)
		why = "only own processes, and only in user mode", state = DOCTOR_WARN;
	else if (level.value == 1)
		why = "only own processes; -a and tracepoints need more", state = DOCTOR_WARN;
	else
		why = level.value == 0 ? "everything but raw tracepoint data" : "everything";
	check = doctor_add(doctor, "perf_event_paranoid", state, "%lld", (long long)level.value);
	doctor_why(check, "%s", why);
	if (state != DOCTOR_OK)
		doctor_remedy(check, "sudo sysctl kernel.perf_event_paranoid=%d",
			      level.value > 1 ? 1 : -1);
}

static void check_capabilities(struct doctor *doctor)
{
	static const struct {
		enum host_capability capability;
		const char *name;
	} names[] = {
		{HOST_CAP_PERFMON, "PERFMON"},           {HOST_CAP_BPF, "BPF"},
		{HOST_CAP_SYS_ADMIN, "SYS_ADMIN"},       {HOST_CAP_SYSLOG, "SYSLOG"},
		{HOST_CAP_SYS_PTRACE, "SYS_PTRACE"},     {HOST_CAP_IPC_LOCK, "IPC_LOCK"},
		{HOST_CAP_SYS_RESOURCE, "SYS_RESOURCE"},
	};
	struct str text = {0};
	struct doctor_check *check;

	if (!doctor->rights.known) {
		doctor_unknown(doctor, "capabilities", doctor->rights.why);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (host_can(&doctor->rights, names[i].capability))
			str_printf(&text, "%s%s", text.len ? " " : "", names[i].name);
	check = doctor_add(doctor, "capabilities",
			   host_can_perfmon(&doctor->rights) ? DOCTOR_OK : DOCTOR_WARN, "%s",
			   text.len ? str_text(&text) : "none");
	str_fini(&text);
	if (host_can_perfmon(&doctor->rights)) {
		doctor_why(check, "system-wide counting and kernel samples are allowed");
		return;
	}
	doctor_why(check, "without CAP_PERFMON the level of perf_event_paranoid decides");
	doctor_remedy(check,
		      "sudo setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep $(command -v culprit)");
}

static void check_seccomp(struct doctor *doctor)
{
	static const char *const modes[] = {"off", "strict", "filter"};
	int mode = doctor->rights.seccomp;
	struct doctor_check *check;

	if (mode < 0 || mode >= (int)ARRAY_LEN(modes)) {
		doctor_unknown(doctor, "seccomp", "/proc/self/status does not tell");
		return;
	}
	check = doctor_add(doctor, "seccomp", DOCTOR_OK, "%s", modes[mode]);
	doctor_why(check, mode ? "a filter is set; perf_event_open above says whether it forbids it"
			       : "no system call is filtered");
}

static void check_lockdown(struct doctor *doctor)
{
	struct host_text mode = host_lockdown(&doctor->host);
	struct doctor_check *check;

	if (!mode.known) {
		check = doctor_add(doctor, "lockdown", DOCTOR_OK, "absent");
		doctor_why(check, "this kernel has no lockdown, or securityfs is not mounted");
		return;
	}
	if (strcmp(mode.value, "confidentiality") == 0) {
		check = doctor_add(doctor, "lockdown", DOCTOR_FAIL, "%s", mode.value);
		doctor_why(check, "the kernel refuses kernel samples, BPF reads and tracefs");
		doctor_remedy(check, "boot with lockdown=integrity, or without Secure Boot");
		return;
	}
	check = doctor_add(doctor, "lockdown", DOCTOR_OK, "%s", mode.value);
	doctor_why(check, "it does not forbid measuring");
}

static void check_container(struct doctor *doctor)
{
	struct doctor_check *check;

	if (!doctor->container.known) {
		doctor_unknown(doctor, "container", doctor->container.why);
		return;
	}
	if (strcmp(doctor->container.value, "none") == 0) {
		check = doctor_add(doctor, "container", DOCTOR_OK, "none");
		doctor_why(check, "the whole machine can be seen");
		return;
	}
	check = doctor_add(doctor, "container",
			   host_can_perfmon(&doctor->rights) ? DOCTOR_OK : DOCTOR_WARN, "%s",
			   doctor->container.value);
	if (host_can_perfmon(&doctor->rights)) {
		doctor_why(check, "a container with the right to count");
		return;
	}
	doctor_why(check, "a container without the right to count beyond itself");
	doctor_remedy(check, "docker run --cap-add PERFMON --cap-add SYS_PTRACE --pid host");
}

static void check_kptr(struct doctor *doctor)
{
	struct host_number level = host_kptr_restrict(&doctor->host);
	struct doctor_check *check;
	bool hidden;

	if (!level.known) {
		doctor_unknown(doctor, "kptr_restrict", level.why);
		return;
	}
	hidden = level.value >= 2 ||
		 (level.value == 1 && !host_can(&doctor->rights, HOST_CAP_SYSLOG));
	check = doctor_add(doctor, "kptr_restrict", hidden ? DOCTOR_WARN : DOCTOR_OK, "%lld",
			   (long long)level.value);
	doctor_why(check,
		   hidden ? "kernel addresses are hidden: kernel functions will have no names"
			  : "kernel functions get their names");
	if (hidden)
		doctor_remedy(check, "sudo sysctl kernel.kptr_restrict=%d",
			      level.value >= 2 ? 1 : 0);
}

void doctor_rights(struct doctor *doctor)
{
	check_syscall(doctor);
	check_paranoid(doctor);
	check_capabilities(doctor);
	check_seccomp(doctor);
	check_lockdown(doctor);
	check_container(doctor);
	check_kptr(doctor);
}

/* --- limits ---------------------------------------------------------------------------------- */

#define MLOCK_KB_DEFAULT 516  /* the kernel's: 128 pages and one */
#define RATE_WANTED      4000 /* Hz: the usual frequency of a recording */

static void check_mlock(struct doctor *doctor)
{
	struct host_number kb = host_perf_mlock_kb(&doctor->host);
	bool unlimited = host_can(&doctor->rights, HOST_CAP_IPC_LOCK);
	struct doctor_check *check;

	if (!kb.known) {
		doctor_unknown(doctor, "perf_event_mlock_kb", kb.why);
		return;
	}
	check = doctor_add(doctor, "perf_event_mlock_kb",
			   unlimited || kb.value >= MLOCK_KB_DEFAULT ? DOCTOR_OK : DOCTOR_WARN,
			   "%lld KiB", (long long)kb.value);
	if (unlimited) {
		doctor_why(check, "CAP_IPC_LOCK: ring buffers of any size");
		return;
	}
	doctor_why(check, "ring buffers per user and CPU; larger ones fall back to smaller");
	if (check->state == DOCTOR_WARN)
		doctor_remedy(check, "sudo sysctl kernel.perf_event_mlock_kb=%d", MLOCK_KB_DEFAULT);
}

static void check_files(struct doctor *doctor)
{
	struct host_topology topology = {0};
	struct rlimit limit;
	struct doctor_check *check;
	unsigned long long soft, need;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		doctor_unknown(doctor, "open_files", "getrlimit() failed");
		return;
	}
	if (host_topology_read(&doctor->host, &topology, NULL) < 0)
		topology.online.bits[0] = 1;
	soft = (unsigned long long)limit.rlim_cur;
	/* -a opens each event on each CPU; 32 events are a large set. */
	need = 64 + 32ull * cpuset_count(&topology.online);
	host_topology_fini(&topology);
	check = doctor_add(doctor, "open_files",
			   soft >= need || limit.rlim_max >= need ? DOCTOR_OK : DOCTOR_WARN, "%llu",
			   soft);
	if (soft >= need) {
		doctor_why(check, "enough for 32 events on every CPU");
	} else if (check->state == DOCTOR_OK) {
		doctor_why(check,
			   "below what 32 events on every CPU take, but it is raised when needed");
	} else {
		doctor_why(check, "32 events on every CPU take %llu", need);
		doctor_remedy(check, "ulimit -n %llu", need);
	}
}

static void check_rate(struct doctor *doctor)
{
	struct host_number rate = host_perf_max_sample_rate(&doctor->host);
	struct doctor_check *check;

	if (!rate.known) {
		doctor_unknown(doctor, "max_sample_rate", rate.why);
		return;
	}
	check = doctor_add(doctor, "max_sample_rate",
			   rate.value >= RATE_WANTED ? DOCTOR_OK : DOCTOR_WARN, "%lld Hz",
			   (long long)rate.value);
	if (check->state == DOCTOR_OK) {
		doctor_why(check, "enough for the usual frequencies");
		return;
	}
	doctor_why(check,
		   "the kernel lowers it when samples take long; recordings will be throttled");
	doctor_remedy(check, "sudo sysctl kernel.perf_event_max_sample_rate=100000");
}

static void check_tracefs(struct doctor *doctor)
{
	char mount[HOST_TEXT_BYTES];
	struct err why = {0};
	struct doctor_check *check;
	int r = host_tracefs(&doctor->host, mount, sizeof(mount), &why);

	if (r == 0) {
		check = doctor_add(doctor, "tracefs", DOCTOR_OK, "%s", mount);
		doctor_why(check, "tracepoints can be named");
		return;
	}
	check = doctor_add(doctor, "tracefs", DOCTOR_WARN, "%s",
			   r == -EACCES ? "not readable" : "not mounted");
	doctor_why(check, "tracepoints cannot be named");
	doctor_remedy(check, "%s",
		      r == -EACCES ? "sudo mount -o remount,mode=755 /sys/kernel/tracing"
				   : "sudo mount -t tracefs nodev /sys/kernel/tracing");
}

void doctor_limits(struct doctor *doctor)
{
	check_mlock(doctor);
	check_files(doctor);
	check_rate(doctor);
	check_tracefs(doctor);
}
