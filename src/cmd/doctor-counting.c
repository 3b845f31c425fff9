/* The counters: there, how many are free, do they tell the truth. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cmd/doctor.h"
#include "count/ops.h"
#include "count/set.h"
#include "events/pmu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* General counters that the CPU says it has, 0 when it does not say. */
static unsigned counters_by_cpu(const struct doctor *doctor)
{
#if defined(__x86_64__)
	unsigned a = 0, b = 0, c = 0, d = 0;

	if (doctor->model.vendor == CPU_VENDOR_INTEL && __get_cpuid_count(0x0a, 0, &a, &b, &c, &d))
		return a >> 8 & 0xff;
	if (doctor->model.vendor == CPU_VENDOR_AMD &&
	    __get_cpuid_count(0x80000022, 0, &a, &b, &c, &d) && (a & 1))
		return b & 0xf;
#endif
	(void)doctor;
	return 0;
}

static void absent_remedy(const struct doctor *doctor, struct doctor_check *check, int status)
{
	const char *name = doctor->hypervisor.known ? doctor->hypervisor.value : "";

	if (status == -EACCES || status == -EPERM)
		doctor_remedy(check, "see the checks of the area rights");
	else if (strcmp(name, "kvm") == 0 || strcmp(name, "qemu") == 0)
		doctor_remedy(check,
			      "on the host: give the guest a PMU (QEMU: -cpu host,pmu=on; cloud: a "
			      "metal or larger type)");
	else if (strcmp(name, "vmware") == 0)
		doctor_remedy(check, "in the VM's settings: Virtualize CPU performance counters");
	else if (strcmp(name, "hyperv") == 0)
		doctor_remedy(check, "on the host: Set-VMProcessor NAME -Perfmon @('pmu')");
	else if (strcmp(name, "none") == 0)
		doctor_remedy(check, "check the firmware's settings and 'dmesg | grep -i pmu'");
	else
		doctor_remedy(check, "software events and cpu-clock sampling work without a PMU");
}

static bool check_pmu(struct doctor *doctor, const struct selftest *test)
{
	struct pmu_set set = {0};
	struct str names = {0};
	struct doctor_check *check;
	struct count_event cycles = {.kind = COUNT_CORE, .attr.type = PERF_TYPE_HARDWARE};
	char why[256];
	bool there = test->status == 0;

	if (pmu_set_read(&doctor->host, &doctor->model, &set, NULL) == 0)
		for (size_t i = 0; i < set.core_count; i++)
			if (!set.pmus.data[i].assumed)
				str_printf(&names, "%s%s", names.len ? ", " : "",
					   set.pmus.data[i].name);
	check = doctor_add(doctor, "pmu", there ? DOCTOR_OK : DOCTOR_FAIL, "%s",
			   names.len ? str_text(&names) : "none");
	if (there) {
		doctor_why(check, "hardware counters can be opened");
	} else {
		count_open_reason(&cycles, test->status, why, sizeof(why));
		doctor_why(check, "cycles cannot be counted: %s", why);
		absent_remedy(doctor, check, test->status);
	}
	str_fini(&names);
	pmu_set_fini(&set);
	return there;
}

static void check_width(struct doctor *doctor, const struct selftest *test)
{
	struct doctor_check *check;

	if (test->pmc_width == 0) {
		doctor_unknown(doctor, "counter_width",
			       "the kernel tells it only where user space may read counters");
		return;
	}
	check = doctor_add(doctor, "counter_width", DOCTOR_OK, "%u bits", test->pmc_width);
	doctor_why(check, "differences of raw counter reads are taken modulo this width");
}

static void check_free(struct doctor *doctor)
{
	unsigned by_cpu = counters_by_cpu(doctor);
	struct host_number watchdog = host_nmi_watchdog(&doctor->host);
	struct doctor_check *check;
	struct counters_free here;

	counters_probe(&counter_kernel, NULL, !host_can_perfmon(&doctor->rights), &here);
	if (here.status < 0) {
		check = doctor_unknown(doctor, "counters_free", "");
		doctor_why(check, "the trial could not be made: %s", strerrordesc_np(-here.status));
		return;
	}
	check = doctor_add(doctor, "counters_free", here.any >= 2 ? DOCTOR_OK : DOCTOR_WARN,
			   "%u%s%s", here.any, by_cpu ? " of " : "",
			   here.cycles_extra ? " + cycles" : "");
	if (by_cpu)
		snprintf(check->value, sizeof(check->value), "%u of %u%s", here.any, by_cpu,
			 here.cycles_extra ? " + cycles" : "");
	doctor_why(check, "found by opening and running that many events at once");
	if (by_cpu && here.any < by_cpu) {
		check->state = DOCTOR_WARN;
		doctor_why(check, "%u held by somebody else%s", by_cpu - here.any,
			   watchdog.known && watchdog.value ? ": the NMI watchdog, or another tool"
							    : " (another tool, or the hypervisor)");
		if (watchdog.known && watchdog.value)
			doctor_remedy(check, "sudo sysctl kernel.nmi_watchdog=0");
	}
}

static void check_selftest(struct doctor *doctor, const struct selftest *test)
{
	char why[256];
	struct doctor_check *check;

	if (selftest_judge(test, why, sizeof(why))) {
		bool shared =
			test->cycles && test->running_ns && test->running_ns < test->enabled_ns;

		check = doctor_add(doctor, "self_test", shared ? DOCTOR_WARN : DOCTOR_FAIL, "%s",
				   shared ? "shared" : "wrong");
		doctor_why(check, "%s", why);
		doctor_remedy(check, "%s",
			      shared ? "close other tools that count, or expect estimates"
				     : "do not trust hardware events here; use software events (-e "
				       "task-clock)");
		return;
	}
	check = doctor_add(doctor, "self_test", DOCTOR_OK, "%.2f instructions per cycle, %.2f GHz",
			   (double)test->instructions / (double)test->cycles,
			   test->time_ns ? (double)test->cycles / (double)test->time_ns : 0);
	doctor_why(check, "%s",
		   test->expected ? "a loop of known length was counted right"
				  : "cycles are plausible; no loop of known length for this CPU");
}

static void check_rdpmc(struct doctor *doctor, const struct selftest *test)
{
	struct host_number setting = host_rdpmc(&doctor->host, "cpu");
	struct doctor_check *check;

	if (!setting.known)
		setting = host_rdpmc(&doctor->host, "cpu_core");
	if (test->status == 0) {
		check = doctor_add(doctor, "rdpmc", test->user_rdpmc ? DOCTOR_OK : DOCTOR_WARN,
				   "%s", test->user_rdpmc ? "allowed" : "not allowed");
		doctor_why(
			check, "%s",
			test->user_rdpmc
				? "regions read counters without a system call"
				: "regions read counters by a system call, about ten times slower");
		if (!test->user_rdpmc && doctor->model.vendor == CPU_VENDOR_ARM)
			doctor_remedy(check, "sudo sysctl kernel.perf_user_access=1");
		else if (!test->user_rdpmc && setting.known && setting.value == 0)
			doctor_remedy(check,
				      "echo 1 | sudo tee /sys/bus/event_source/devices/cpu/rdpmc");
		return;
	}
	doctor_unknown(doctor, "rdpmc", "there is no counter to read");
}

static void check_watchdog(struct doctor *doctor, bool pmu)
{
	struct host_number watchdog = host_nmi_watchdog(&doctor->host);
	struct doctor_check *check;

	if (!watchdog.known) {
		check = doctor_add(doctor, "nmi_watchdog", DOCTOR_OK, "absent");
		doctor_why(check, "this kernel has none, so it holds no counter");
		return;
	}
	check = doctor_add(doctor, "nmi_watchdog", watchdog.value && pmu ? DOCTOR_WARN : DOCTOR_OK,
			   "%s", watchdog.value ? "on" : "off");
	doctor_why(check, "%s",
		   !watchdog.value ? "no counter is held by it"
		   : pmu           ? "it holds one counter of each CPU for itself"
				   : "it is on, but there is no counter for it to hold");
	if (watchdog.value && pmu)
		doctor_remedy(check, "sudo sysctl kernel.nmi_watchdog=0");
}

static void check_hypervisor(struct doctor *doctor, bool pmu)
{
	struct doctor_check *check;

	if (!doctor->hypervisor.known) {
		doctor_unknown(doctor, "hypervisor", doctor->hypervisor.why);
		return;
	}
	if (strcmp(doctor->hypervisor.value, "none") == 0) {
		check = doctor_add(doctor, "hypervisor", DOCTOR_OK, "none");
		doctor_why(check, "the counters are the CPU's own");
		return;
	}
	check = doctor_add(doctor, "hypervisor", DOCTOR_WARN, "%s", doctor->hypervisor.value);
	doctor_why(check, "%s",
		   pmu ? "the counters are virtual: some events may be missing or wrong (see "
			 "self_test)"
		       : "a virtual machine to which the host gave no counters");
}

void doctor_counting(struct doctor *doctor)
{
	struct selftest test;
	bool pmu;

	selftest_run(&test);
	pmu = check_pmu(doctor, &test);
	if (pmu) {
		check_selftest(doctor, &test);
		check_free(doctor);
		check_width(doctor, &test);
	}
	check_rdpmc(doctor, &test);
	check_watchdog(doctor, pmu);
	check_hypervisor(doctor, pmu);
}
