/*
 * This machine, as /proc and /sys tell it.
 *
 * Everything is read below a root that the caller gives, so tests describe a whole machine with a
 * few files in a temporary directory. Reading costs what it reads: nothing is cached here.
 *
 * What cannot be found out is never 0: a number or text that is not known says why. Sources: the
 * kernel's Documentation/ABI/{stable,testing}/sysfs-devices-system-cpu, proc(5), cgroups(7).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

struct host {
	const char *root; /* put before every path; "" is the machine itself; borrowed */
};

#define HOST_WHY_BYTES  96
#define HOST_TEXT_BYTES 256

struct host_number {
	bool known;
	int64_t value;
	char why[HOST_WHY_BYTES]; /* why it is not known, "" when it is */
};

struct host_text {
	bool known;
	char value[HOST_TEXT_BYTES]; /* cut there */
	char why[HOST_WHY_BYTES];
};

/* root + formatted path. -ENAMETOOLONG. */
int host_path(const struct host *host, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A whole file of at most max bytes below the root, NUL-terminated, owned by the caller. */
int host_read(const struct host *host, const char *path, size_t max, char **ret_data,
	      size_t *ret_size, struct err *err);
/* The first number of a file, decimal or 0x hexadecimal. */
struct host_number host_number(const struct host *host, const char *path);
/* The first line of a file, blanks around it removed. */
struct host_text host_line(const struct host *host, const char *path);

/* --- CPUs ------------------------------------------------------------------------------------ */

enum core_type {
	CORE_TYPE_UNKNOWN,
	CORE_TYPE_PERFORMANCE, /* the kernel lists it under cpu_core, or the largest capacity */
	CORE_TYPE_EFFICIENT,
	CORE_TYPE_UNIFORM, /* all cores of the machine are alike */
};

struct host_cpu {
	unsigned cpu;
	bool online;
	/* Numbers as the kernel gives them, unique within what encloses them only (core within
	 * socket); -1: not known. */
	int core, cluster, die, socket, node;
	int capacity; /* 1024: the fastest of the machine; -1: not known */
	enum core_type type;
};

struct host_topology {
	struct cpuset online, possible;
	VEC(struct host_cpu) cpus; /* sorted by number; every possible CPU that has a directory */
	unsigned threads_per_core; /* the largest seen, 0: not known */
	bool hybrid;               /* more than one core type */
};

int host_topology_read(const struct host *host, struct host_topology *ret, struct err *err);
void host_topology_fini(struct host_topology *topology);
/* The row of a CPU, or NULL. */
const struct host_cpu *host_topology_cpu(const struct host_topology *topology, unsigned cpu);

enum cpu_vendor {
	CPU_VENDOR_UNKNOWN,
	CPU_VENDOR_INTEL,
	CPU_VENDOR_AMD, /* and Hygon */
	CPU_VENDOR_ARM, /* any implementer of the Arm architecture */
	CPU_VENDOR_OTHER,
};

struct host_cpu_model {
	bool known;
	enum cpu_vendor vendor;
	char vendor_id[32];          /* x86: "GenuineIntel"; Arm: implementer "0x41" */
	int family, model, stepping; /* x86; -1 not known */
	uint64_t midr;               /* Arm: MIDR_EL1 of the first CPU, 0: not known */
	char id[64];                 /* "GenuineIntel-6-CF-2" or "0x00000000410fd0c0" */
	char name[128];              /* for people; "" when the kernel gives none */
	const char *uarch;    /* "spr", "zen4", "n1": the short name used by --cpu, or NULL */
	bool hypervisor_flag; /* x86: the "hypervisor" CPU flag */
	char why[HOST_WHY_BYTES];
};

/* The CPU that tables and events are chosen by: the first online one. */
void host_cpu_model_read(const struct host *host, struct host_cpu_model *ret);
/* The short name for a model, or NULL. Intel client parts with two core types give the P-core. */
const char *host_cpu_uarch(const struct host_cpu_model *model);

/* The MIDR (variant and revision 0) of an Arm core by its short name, 0 when it is none. */
uint64_t host_arm_midr(const char *uarch);

/* --- limits and rights ----------------------------------------------------------------------- */

struct host_number host_perf_paranoid(const struct host *host);          /* -1..4 */
struct host_number host_kptr_restrict(const struct host *host);          /* 0..2 */
struct host_number host_nmi_watchdog(const struct host *host);           /* 0 or 1 */
struct host_number host_perf_mlock_kb(const struct host *host);          /* per user and CPU */
struct host_number host_perf_max_sample_rate(const struct host *host);   /* Hz */
struct host_number host_rdpmc(const struct host *host, const char *pmu); /* 0, 1, 2 */
struct host_text host_kernel_release(const struct host *host);           /* "6.1.0-18-amd64" */
struct host_text host_lockdown(
	const struct host *host); /* "none", "integrity" or "confidentiality" */

/* Capabilities of a process ("self" or a number). */
enum host_capability {
	HOST_CAP_IPC_LOCK = 14,
	HOST_CAP_SYS_RAWIO = 17,
	HOST_CAP_SYS_PTRACE = 19,
	HOST_CAP_SYS_ADMIN = 21,
	HOST_CAP_SYS_NICE = 23,
	HOST_CAP_SYS_RESOURCE = 24,
	HOST_CAP_SYSLOG = 34,
	HOST_CAP_PERFMON = 38,
	HOST_CAP_BPF = 39,
};

struct host_rights {
	bool known;
	uint64_t effective, bounding; /* bit masks of capabilities */
	int seccomp;                  /* 0 off, 1 strict, 2 filter; -1 not known */
	int no_new_privs;             /* 0, 1; -1 not known */
	char why[HOST_WHY_BYTES];
};

struct host_rights host_rights(const struct host *host);

static inline bool host_can(const struct host_rights *rights, enum host_capability capability)
{
	return rights->known && (rights->effective >> capability & 1);
}

/* CAP_PERFMON, or CAP_SYS_ADMIN which includes it. */
bool host_can_perfmon(const struct host_rights *rights);

/* --- processes and threads ------------------------------------------------------------------- */

struct host_tids {
	pid_t *data; /* vec_fini() frees */
	size_t len, cap;
};

/* The threads of a process; -ESRCH when there is none. */
int host_tids_read(const struct host *host, pid_t pid, struct host_tids *ret);
/* "comm-tid"; "?-tid" when it is gone. */
void host_thread_label(const struct host *host, pid_t tid, char *buf, size_t size);

struct host_task {
	pid_t tid;
	char comm[64];
	char state;        /* 'R' runs or could */
	bool is_kernel;    /* a thread of the kernel */
	int cpu;           /* where it ran last; -1 not told */
	int policy;        /* SCHED_* */
	unsigned priority; /* of real-time policies */
};

/* False when it is gone. */
bool host_task_read(const struct host *host, pid_t tid, struct host_task *ret);

/* --- where we run ---------------------------------------------------------------------------- */

/* "none" on bare metal, else "kvm", "xen", "vmware", "hyperv", "qemu" or "unknown". */
struct host_text host_hypervisor(const struct host *host);
/* "none", or "docker", "podman", "lxc", "kubernetes", "systemd-nspawn", "container". */
struct host_text host_container(const struct host *host);

enum cgroup_layout {
	CGROUP_NONE,
	CGROUP_V1,
	CGROUP_V2,
	CGROUP_HYBRID, /* v2 beside v1: perf_event stays on v1 when it is mounted there */
};

struct host_cgroups {
	enum cgroup_layout layout;
	char v2[HOST_TEXT_BYTES];         /* mount point without the root, "" none */
	char perf_event[HOST_TEXT_BYTES]; /* where PERF_FLAG_PID_CGROUP directories are; "" none */
};

int host_cgroups_read(const struct host *host, struct host_cgroups *ret, struct err *err);
/* Path of a process's cgroup ("/user.slice/...") in the hierarchy of perf_event. pid 0: ourselves.
 */
int host_cgroup_of(const struct host *host, const struct host_cgroups *cgroups, int pid, char *buf,
		   size_t size, struct err *err);

/* Where tracefs is mounted ("/sys/kernel/tracing"), without the root. -ENOENT with the remedy. */
int host_tracefs(const struct host *host, char *buf, size_t size, struct err *err);
