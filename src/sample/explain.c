#include "sample/explain.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "host/host.h"

static const struct host this_host = {.root = ""};

/* What an event may need: kernel samples, other people's threads, the whole machine. */
struct need {
	bool whole_machine, kernel, raw_tracepoint;
};

static const char *need_text(const struct need *need)
{
	return need->whole_machine    ? "recording the whole machine"
	       : need->raw_tracepoint ? "recording tracepoint data"
	       : need->kernel         ? "recording the kernel"
				      : "recording another user's process";
}

/* The level of perf_event_paranoid up to which an ordinary user may do it (kernel/events/core.c).
 */
static int allowed_paranoid(const struct need *need)
{
	return need->raw_tracepoint ? -1 : need->whole_machine ? 0 : need->kernel ? 1 : 2;
}

static int explain_forbidden(const struct perf_event_attr *attr, const char *name, pid_t pid,
			     int code, struct err *err)
{
	struct need need = {
		.whole_machine = pid == -1,
		.kernel = !attr->exclude_kernel,
		.raw_tracepoint =
			attr->type == PERF_TYPE_TRACEPOINT && (attr->sample_type & PERF_SAMPLE_RAW),
	};
	struct host_number paranoid = host_perf_paranoid(&this_host);
	struct host_text lockdown = host_lockdown(&this_host);
	struct host_rights rights = host_rights(&this_host);

	if (host_can_perfmon(&rights) && lockdown.known &&
	    strcmp(lockdown.value, "confidentiality") == 0)
		return err_set(
			err, code,
			"%s: kernel lockdown is 'confidentiality', which forbids %s; boot without "
			"lockdown=confidentiality (and without Secure Boot enforcing it)",
			name, need_text(&need));
	if (host_can_perfmon(&rights) && rights.seccomp > 0)
		return err_set(err, code,
			       "%s: perf_event_open is forbidden although the capabilities are "
			       "there: a seccomp "
			       "filter is on (Seccomp: %d in /proc/self/status); start the "
			       "container with a profile "
			       "that allows it (docker: --security-opt seccomp=unconfined)",
			       name, rights.seccomp);
	if (host_can_perfmon(&rights))
		return err_set(err, code,
			       "%s: forbidden by a security module although CAP_PERFMON is there "
			       "(SELinux class "
			       "perf_event, AppArmor); see 'dmesg' or the audit log",
			       name);
	if (!paranoid.known)
		return err_set(err, code,
			       "%s: not permitted, and kernel.perf_event_paranoid cannot be read "
			       "(%s); run as root",
			       name, paranoid.why);
	if (paranoid.value > allowed_paranoid(&need))
		return err_set(err, code,
			       "%s: kernel.perf_event_paranoid is %lld, and %s needs %d or less, "
			       "or CAP_PERFMON; "
			       "sudo sysctl kernel.perf_event_paranoid=%d, or run as root",
			       name, (long long)paranoid.value, need_text(&need),
			       allowed_paranoid(&need), allowed_paranoid(&need));
	if (rights.seccomp > 0)
		return err_set(err, code,
			       "%s: not permitted although kernel.perf_event_paranoid is %lld: a "
			       "seccomp filter is on "
			       "(a container?); allow perf_event_open in its profile",
			       name, (long long)paranoid.value);
	return err_set(err, code,
		       "%s: process %d belongs to another user; run as root or with CAP_PERFMON "
		       "and CAP_SYS_PTRACE",
		       name, (int)pid);
}

static int explain_unsupported(const struct perf_event_attr *attr, const char *name, int code,
			       struct err *err)
{
	struct host_text hypervisor = host_hypervisor(&this_host);

	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return err_set(
			err, code,
			"%s: branch stacks (LBR) are not supported here; use --call-graph fp",
			name);
	if (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	    attr->type == PERF_TYPE_RAW) {
		if (hypervisor.known && strcmp(hypervisor.value, "none") != 0)
			return err_set(err, code,
				       "%s: this machine shows no counters for it; it is a virtual "
				       "machine (%s), whose "
				       "host must pass a PMU on; use -e cpu-clock",
				       name, hypervisor.value);
		return err_set(err, code,
			       "%s: this CPU, or the kernel's driver for it, does not count this; "
			       "'culprit list --probe' "
			       "tells what works; use -e cpu-clock",
			       name);
	}
	if (attr->precise_ip > 0)
		return err_set(
			err, code,
			"%s: this precision (precise_ip %d) is not supported here; leave out ':p'",
			name, attr->precise_ip);
	return err_set(
		err, code,
		"%s: not supported by this kernel (%s); 'culprit list --probe' tells what works",
		name, strerrordesc_np(-code));
}

int explain_event_open(const struct perf_event_attr *attr, const char *name, pid_t pid, int cpu,
		       int code, struct err *err)
{
	struct host_number rate;

	switch (code) {
	case -EACCES:
	case -EPERM:
		return explain_forbidden(attr, name, pid, code, err);
	case -ENOENT:
	case -EOPNOTSUPP:
	case -ENOSYS:
		return explain_unsupported(attr, name, code, err);
	case -ESRCH:
		return err_set(err, code, "process or thread %d does not exist (any more)",
			       (int)pid);
	case -ENODEV:
		return err_set(err, code,
			       "%s: CPU %d cannot count it (offline, or a core of another kind)",
			       name, cpu);
	case -EBUSY:
		return err_set(err, code,
			       "%s: the counter is taken, by another profiler or the NMI watchdog; "
			       "sudo sysctl kernel.nmi_watchdog=0",
			       name);
	case -EMFILE:
		return err_set(err, code,
			       "too many open files: one is needed per thread, CPU and event; "
			       "raise 'ulimit -n'");
	case -EINVAL:
		rate = host_perf_max_sample_rate(&this_host);
		if (attr->freq && rate.known && (int64_t)attr->sample_freq > rate.value)
			return err_set(err, code,
				       "%s: %llu Hz is above kernel.perf_event_max_sample_rate, "
				       "which is %lld; lower -F, or "
				       "sudo sysctl kernel.perf_event_max_sample_rate=%llu",
				       name, (unsigned long long)attr->sample_freq,
				       (long long)rate.value,
				       (unsigned long long)attr->sample_freq);
		if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
			return err_set(err, code,
				       "%s: branch stacks (LBR) are not supported here; use "
				       "--call-graph fp",
				       name);
		return err_set(err, code,
			       "%s: the kernel refuses this event as it is (invalid argument)",
			       name);
	default:
		return err_set(err, code, "%s: cannot be opened: %s", name, strerrordesc_np(-code));
	}
}

int explain_ring_open(uint64_t ring_bytes, int code, struct err *err)
{
	struct host_number limit = host_perf_mlock_kb(&this_host);

	if (code == -EPERM && limit.known)
		return err_set(
			err, code,
			"no ring buffer of even %llu bytes fits: kernel.perf_event_mlock_kb is "
			"%lld for this user; "
			"end other recordings, or sudo sysctl kernel.perf_event_mlock_kb=%lld",
			(unsigned long long)ring_bytes, (long long)limit.value,
			(long long)limit.value * 4);
	return err_set(err, code, "a ring buffer of %llu bytes cannot be mapped: %s",
		       (unsigned long long)ring_bytes, strerrordesc_np(-code));
}

int explain_hidden_kernel(int code, struct err *err)
{
	struct host_number level = host_kptr_restrict(&this_host);

	if (level.known && level.value > 0)
		return err_set(
			err, code,
			"kernel.kptr_restrict is %lld and hides the kernel's addresses from this "
			"user; sudo sysctl kernel.kptr_restrict=0, or record as root",
			(long long)level.value);
	return err_set(err, code,
		       "the kernel hides its addresses from a user without CAP_SYSLOG "
		       "(kernel.kptr_restrict "
		       "is %s); sudo sysctl kernel.perf_event_paranoid=1, or record as root",
		       level.known ? "0" : "not readable");
}
