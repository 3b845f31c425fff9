/* What decides about latency and noise here: the kernel, timers, power, the hypervisor. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cmd/doctor.h"
#include "latency/journal.h"

static void check_tracers(struct doctor *doctor)
{
	static const char *const wanted[] = {"timerlat", "osnoise", "hwlat"};
	char mount[HOST_TEXT_BYTES], path[HOST_TEXT_BYTES + 32], have[64] = "", missing[64] = "";
	struct doctor_check *check;
	struct err err = {0};

	if (host_tracefs(&doctor->host, mount, sizeof(mount), &err) < 0) {
		check = doctor_unknown(doctor, "kernel tracers", err_text(&err, -ENOENT));
		doctor_remedy(check, "sudo mount -t tracefs tracefs /sys/kernel/tracing");
		return;
	}
	snprintf(path, sizeof(path), "%s/available_tracers", mount);
	CLEANUP_FREE char *tracers = doctor_read_file(doctor, path);
	if (!tracers || !*tracers) {
		doctor_unknown(
			doctor, "kernel tracers",
			"available_tracers cannot be read: it takes root, and lockdown hides it");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		char *list = strstr(tracers, wanted[i]) ? have : missing;
		size_t len = strlen(list);

		snprintf(list + len, 64 - len, "%s%s", len ? " " : "", wanted[i]);
	}
	if (!*missing) {
		check = doctor_add(doctor, "kernel tracers", DOCTOR_OK, "%s", have);
		doctor_why(check, "timerlat, osnoise and hwnoise can use the kernel's own tracers "
				  "(engine K)");
		return;
	}
	check = doctor_add(doctor, "kernel tracers", DOCTOR_WARN, "%s", *have ? have : "none");
	doctor_why(check, "without %s a measurement is made with BPF, or in user space alone",
		   missing);
	doctor_remedy(check, "a kernel with CONFIG_TIMERLAT_TRACER, CONFIG_OSNOISE_TRACER and "
			     "CONFIG_HWLAT_TRACER, as "
			     "Debian's linux-image-rt");
}

static void check_bpf(struct doctor *doctor)
{
	char path[HOST_TEXT_BYTES];
	struct doctor_check *check;
	bool may = host_can(&doctor->rights, HOST_CAP_SYS_ADMIN) ||
		   (host_can(&doctor->rights, HOST_CAP_BPF) && host_can_perfmon(&doctor->rights));
	bool btf = host_path(&doctor->host, path, sizeof(path), "/sys/kernel/btf/vmlinux") == 0 &&
		   access(path, R_OK) == 0;

	if (btf && may) {
		check = doctor_add(doctor, "BPF", DOCTOR_OK, "BTF of the kernel, rights");
		doctor_why(
			check,
			"latencies and noise can be attributed by BPF programs (engines B and L)");
		return;
	}
	check = doctor_add(doctor, "BPF", DOCTOR_WARN, "%s", btf ? "no rights" : "no BTF");
	doctor_why(check, "only what user space sees by itself can be measured (engine U)");
	doctor_remedy(check, btf ? "run as root, or with CAP_BPF and CAP_PERFMON"
				 : "a kernel with CONFIG_DEBUG_INFO_BTF");
}

static void check_preemption(struct doctor *doctor)
{
	struct host_number realtime = host_number(&doctor->host, "/sys/kernel/realtime");
	CLEANUP_FREE char *version = doctor_read_file(doctor, "/proc/version");
	bool rt = (realtime.known && realtime.value == 1) ||
		  (version && strstr(version, "PREEMPT_RT"));
	const char *model = rt                                              ? "PREEMPT_RT"
			    : version && strstr(version, "PREEMPT_DYNAMIC") ? "PREEMPT_DYNAMIC"
			    : version && strstr(version, "PREEMPT")         ? "PREEMPT"
									    : "voluntary or none";
	struct doctor_check *check =
		doctor_add(doctor, "preemption model", rt ? DOCTOR_OK : DOCTOR_WARN, "%s", model);

	doctor_why(check, rt ? "interrupts and softirqs run in threads: they can be preempted"
			     : "softirqs and long kernel sections delay every thread, real-time "
			       "priority or not");
	if (!rt)
		doctor_remedy(
			check,
			"for bounded latencies a PREEMPT_RT kernel (Debian: linux-image-rt-amd64)");
}

static void check_throttling(struct doctor *doctor)
{
	struct host_number runtime =
		host_number(&doctor->host, "/proc/sys/kernel/sched_rt_runtime_us");
	struct host_number period =
		host_number(&doctor->host, "/proc/sys/kernel/sched_rt_period_us");
	struct doctor_check *check;

	if (!runtime.known || !period.known) {
		doctor_unknown(doctor, "RT throttling", runtime.known ? period.why : runtime.why);
		return;
	}
	if (runtime.value < 0 || runtime.value >= period.value) {
		check = doctor_add(doctor, "RT throttling", DOCTOR_OK, "off");
		doctor_why(
			check,
			"a real-time thread may run for ever, and starve the kernel's own threads");
		return;
	}
	check = doctor_add(doctor, "RT throttling", DOCTOR_WARN, "%.1f %% of %lld ms",
			   100.0 * (double)runtime.value / (double)period.value,
			   (long long)(period.value / 1000));
	doctor_why(check,
		   "a real-time thread that never sleeps is stopped for %lld us of each period",
		   (long long)(period.value - runtime.value));
	doctor_remedy(check, "only if your threads sleep by themselves: sudo sysctl "
			     "kernel.sched_rt_runtime_us=-1");
}

static void check_watchdog(struct doctor *doctor)
{
	struct host_number on = host_nmi_watchdog(&doctor->host);
	struct doctor_check *check;

	if (!on.known) {
		doctor_unknown(doctor, "NMI watchdog", on.why);
		return;
	}
	check = doctor_add(doctor, "NMI watchdog", on.value ? DOCTOR_WARN : DOCTOR_OK, "%s",
			   on.value ? "on" : "off");
	doctor_why(check,
		   on.value
			   ? "interrupts each CPU every few seconds, and takes one hardware counter"
			   : "no NMI comes from it");
	if (on.value)
		doctor_remedy(check, "sudo sysctl kernel.nmi_watchdog=0");
}

static void check_power(struct doctor *doctor)
{
	struct host_text governor =
		host_line(&doctor->host, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	struct host_text idle =
		host_line(&doctor->host, "/sys/devices/system/cpu/cpuidle/current_driver");
	struct doctor_check *check;
	char deepest[64] = "";
	long long exit_us = -1;

	if (governor.known) {
		bool fast = strcmp(governor.value, "performance") == 0;

		check = doctor_add(doctor, "frequency governor", fast ? DOCTOR_OK : DOCTOR_WARN,
				   "%s", governor.value);
		doctor_why(check, fast ? "the clock is kept high"
				       : "the clock follows the load: wake-ups find it low");
		if (!fast)
			doctor_remedy(check, "sudo cpupower frequency-set -g performance");
	} else {
		check = doctor_add(doctor, "frequency governor", DOCTOR_OK, "none");
		doctor_why(check,
			   "the kernel does not scale the clock here; firmware or the host may");
	}
	for (unsigned state = 0; state < 16; state++) {
		char path[HOST_TEXT_BYTES];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%u/latency",
			 state);
		struct host_number latency = host_number(&doctor->host, path);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%u/name",
			 state);
		struct host_text name = host_line(&doctor->host, path);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%u/disable",
			 state);
		struct host_number disabled = host_number(&doctor->host, path);

		if (!latency.known)
			break;
		if (disabled.known && disabled.value)
			continue;
		snprintf(deepest, sizeof(deepest), "%.60s", name.known ? name.value : "state");
		exit_us = latency.value;
	}
	if (exit_us < 0) {
		check = doctor_add(doctor, "idle states", DOCTOR_OK, "%s",
				   idle.known ? idle.value : "none");
		doctor_why(check, "the kernel shows no idle states with exit latencies; a "
				  "hypervisor may halt the CPU all the same");
		return;
	}
	check = doctor_add(doctor, "idle states", exit_us > 20 ? DOCTOR_WARN : DOCTOR_OK,
			   "up to %s, %lld us to leave", deepest, exit_us);
	doctor_why(check, "that much is added to the first wake-up of an idle CPU");
	if (exit_us > 20)
		doctor_remedy(check, "measure with --dma-latency 0 to see the difference; for "
				     "good: an application that holds "
				     "/dev/cpu_dma_latency");
}

static void check_smt(struct doctor *doctor)
{
	struct host_number active =
		host_number(&doctor->host, "/sys/devices/system/cpu/smt/active");
	struct doctor_check *check;

	if (!active.known) {
		doctor_unknown(doctor, "SMT", active.why);
		return;
	}
	check = doctor_add(doctor, "SMT", active.value ? DOCTOR_WARN : DOCTOR_OK, "%s",
			   active.value ? "active" : "off");
	doctor_why(check, active.value
				  ? "the sibling of a busy CPU takes part of its core at any moment"
				  : "no CPU shares its core with another");
	if (active.value)
		doctor_remedy(check, "isolate both siblings, or: echo off | sudo tee "
				     "/sys/devices/system/cpu/smt/control");
}

static void check_clocksource(struct doctor *doctor)
{
	struct host_text source = host_line(
		&doctor->host, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	struct doctor_check *check;

	if (!source.known) {
		doctor_unknown(doctor, "clocksource", source.why);
		return;
	}
	bool quick = strcmp(source.value, "tsc") == 0 ||
		     strcmp(source.value, "arch_sys_counter") == 0 ||
		     strcmp(source.value, "kvm-clock") == 0;
	check = doctor_add(doctor, "clocksource", quick ? DOCTOR_OK : DOCTOR_WARN, "%s",
			   source.value);
	doctor_why(check,
		   quick ? "read in user space, in some ten nanoseconds"
			 : "each reading of the clock is a slow system call, and noise itself");
	if (!quick)
		doctor_remedy(check, "find out with dmesg why the kernel left tsc; on sound "
				     "hardware boot with tsc=reliable");
}

static void check_huge_pages(struct doctor *doctor)
{
	struct host_text mode =
		host_line(&doctor->host, "/sys/kernel/mm/transparent_hugepage/enabled");
	struct doctor_check *check;

	if (!mode.known) {
		doctor_unknown(doctor, "transparent huge pages", mode.why);
		return;
	}
	bool always = strstr(mode.value, "[always]");
	check = doctor_add(doctor, "transparent huge pages", always ? DOCTOR_WARN : DOCTOR_OK, "%s",
			   mode.value);
	doctor_why(
		check,
		always ? "faults may zero 2 MiB, and khugepaged stops threads to move their memory"
		       : "only programs that ask for them");
	if (always)
		doctor_remedy(
			check,
			"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

/* Field number (from 1) of the "cpu " line of /proc/stat, in USER_HZ; -1 when it is not there. */
static long long stat_field(const char *stat, unsigned number)
{
	long long values[10];
	int got = sscanf(stat, "cpu %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld", &values[0],
			 &values[1], &values[2], &values[3], &values[4], &values[5], &values[6],
			 &values[7], &values[8], &values[9]);

	return got >= (int)number ? values[number - 1] : -1;
}

static void check_host(struct doctor *doctor)
{
	bool virtual = doctor->hypervisor.known && strcmp(doctor->hypervisor.value, "none") != 0;
	struct host_number smi =
		host_number(&doctor->host, "/sys/bus/event_source/devices/msr/type");
	char path[HOST_TEXT_BYTES];
	struct doctor_check *check;

	if (virtual) {
		CLEANUP_FREE char *stat = doctor_read_file(doctor, "/proc/stat");
		long long steal = stat ? stat_field(stat, 8) : -1, all = 0;

		for (unsigned i = 1; stat && i <= 8; i++)
			all += MAX(stat_field(stat, i), 0);
		if (steal < 0 || !all) {
			doctor_unknown(doctor, "steal", "/proc/stat does not tell it");
		} else {
			check = doctor_add(
				doctor, "steal", steal * 1000 > all ? DOCTOR_WARN : DOCTOR_OK,
				"%.3f %% since boot", 100.0 * (double)steal / (double)all);
			doctor_why(check,
				   "time in which %s ran something else: it looks like hardware "
				   "noise from inside",
				   doctor->hypervisor.value);
			if (steal * 1000 > all)
				doctor_remedy(
					check,
					"pin the virtual CPUs to CPUs of their own on the host");
		}
	}
	bool counted = smi.known &&
		       host_path(&doctor->host, path, sizeof(path),
				 "/sys/bus/event_source/devices/msr/events/smi") == 0 &&
		       access(path, R_OK) == 0;
	if (!counted) {
		check = doctor_unknown(doctor, "SMI counter",
				       virtual ? "a virtual machine does not see the host's system "
						 "management interrupts"
					       : "this CPU or kernel has no msr/smi/ event");
		return;
	}
	check = doctor_add(doctor, "SMI counter", DOCTOR_OK, "msr/smi/");
	doctor_why(check,
		   "firmware that takes the CPU is seen: culprit stat -a -e msr/smi/ -- sleep 60");
}

/* What measurements that were killed have left behind, ours and rtla's. */
static void check_leftovers(struct doctor *doctor)
{
	struct journal_report report = {0};
	struct err err = {0};
	int r = journal_repair(doctor->host.root, JOURNAL_DRY | JOURNAL_RTLA, &report, &err);
	unsigned count = report.restored + report.instances;
	struct doctor_check *check;

	if (r < 0) {
		doctor_unknown(doctor, "leftovers", err_text(&err, r));
	} else if (count == 0) {
		check = doctor_add(doctor, "leftovers", DOCTOR_OK, "none");
		doctor_why(check,
			   "no killed measurement left a setting or a trace instance behind");
	} else {
		check = doctor_add(doctor, "leftovers", DOCTOR_WARN, "%u settings, %u instances",
				   report.restored, report.instances);
		doctor_why(
			check,
			"a measurement was killed before it could put back what it changed: %.*s",
			(int)strcspn(str_text(&report.text), "\n"), str_text(&report.text));
		doctor_remedy(check, "sudo culprit doctor --repair");
	}
	journal_report_fini(&report);
}

void doctor_latency(struct doctor *doctor)
{
	check_tracers(doctor);
	check_bpf(doctor);
	check_preemption(doctor);
	doctor_isolation(doctor);
	check_throttling(doctor);
	check_watchdog(doctor);
	check_power(doctor);
	check_smt(doctor);
	check_clocksource(doctor);
	check_huge_pages(doctor);
	check_host(doctor);
	check_leftovers(doctor);
}
