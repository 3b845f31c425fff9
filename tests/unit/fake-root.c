#include "fake-root.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "harness/tap.h"

#define CPU     "/sys/devices/system/cpu/cpu%u"
#define DEVICES "/sys/bus/event_source/devices"

void fake_root_make(struct fake_root *root)
{
	snprintf(root->path, sizeof(root->path), "%s/root-XXXXXX", tap_dir());
	if (!mkdtemp(root->path))
		abort();
	root->host.root = root->path;
}

void fake_root_file(const struct fake_root *root, const char *path, const char *text)
{
	char full[512], *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root->path, path);
	slash = strrchr(full, '/');
	*slash = '\0';
	if (dir_make(full, 0755, NULL) < 0)
		abort();
	*slash = '/';
	file = fopen(full, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

void fake_root_remove(struct fake_root *root)
{
	nftw(root->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void files(const struct fake_root *root, const char *const (*table)[2], size_t count)
{
	for (size_t i = 0; i < count; i++)
		fake_root_file(root, table[i][0], table[i][1]);
}

static void cpus(const struct fake_root *root, unsigned count, unsigned threads)
{
	char path[128], text[64];

	snprintf(text, sizeof(text), "0-%u\n", count - 1);
	fake_root_file(root, "/sys/devices/system/cpu/online", text);
	fake_root_file(root, "/sys/devices/system/cpu/possible", text);
	for (unsigned cpu = 0; cpu < count; cpu++) {
		snprintf(path, sizeof(path), CPU "/topology/%s", cpu, "core_id");
		snprintf(text, sizeof(text), "%u\n", cpu / threads);
		fake_root_file(root, path, text);
		snprintf(path, sizeof(path), CPU "/topology/%s", cpu, "physical_package_id");
		fake_root_file(root, path, "0\n");
		snprintf(path, sizeof(path), CPU "/topology/%s", cpu, "die_id");
		fake_root_file(root, path, "0\n");
		snprintf(path, sizeof(path), CPU "/topology/%s", cpu, "thread_siblings_list");
		snprintf(text, sizeof(text), "%u-%u\n", cpu / threads * threads,
			 cpu / threads * threads + threads - 1);
		fake_root_file(root, path, text);
		snprintf(path, sizeof(path), CPU "/node0/cpulist", cpu);
		fake_root_file(root, path, "0\n");
	}
}

static const char *const intel_core[][2] = {
	{"/format/event", "config:0-7\n"},
	{"/format/umask", "config:8-15\n"},
	{"/format/edge", "config:18\n"},
	{"/format/inv", "config:23\n"},
	{"/format/cmask", "config:24-31\n"},
	{"/format/ldlat", "config1:0-15\n"},
	{"/format/offcore_rsp", "config1:0-63\n"},
	{"/format/frontend", "config1:0-23\n"},
	{"/events/cpu-cycles", "event=0x3c\n"},
	{"/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"},
	{"/events/slots", "event=0x00,umask=0x4\n"},
	{"/events/topdown-retiring", "event=0x00,umask=0x80\n"},
};

static void core_pmu(const struct fake_root *root, const char *name, const char *type)
{
	char path[128];

	snprintf(path, sizeof(path), DEVICES "/%s/type", name);
	fake_root_file(root, path, type);
	for (size_t i = 0; i < sizeof(intel_core) / sizeof(intel_core[0]); i++) {
		snprintf(path, sizeof(path), DEVICES "/%s%s", name, intel_core[i][0]);
		fake_root_file(root, path, intel_core[i][1]);
	}
}

static const char *const common[][2] = {
	{DEVICES "/software/type", "1\n"},
	{DEVICES "/tracepoint/type", "2\n"},
	{DEVICES "/breakpoint/type", "5\n"},
	{"/proc/sys/kernel/perf_event_paranoid", "2\n"},
	{"/proc/sys/kernel/kptr_restrict", "1\n"},
	{"/proc/sys/kernel/nmi_watchdog", "1\n"},
	{"/proc/sys/kernel/perf_event_mlock_kb", "516\n"},
	{"/proc/sys/kernel/perf_event_max_sample_rate", "100000\n"},
	{"/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"},
	{"/sys/kernel/tracing/events/sched/sched_switch/id", "316\n"},
	{"/sys/kernel/tracing/events/sched/sched_wakeup/id", "318\n"},
	{"/sys/kernel/tracing/events/sched/sched_waking/id", "319\n"},
	{"/sys/kernel/tracing/events/irq/irq_handler_entry/id", "120\n"},
	{"/sys/kernel/tracing/events/ftrace/function/format", "name: function\n"},
	{"/sys/kernel/tracing/events/header_page", "no directory\n"},
};

#define CPUINFO_INTEL                                                                         \
	"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %s\n"         \
	"model name\t: Intel(R) Test CPU\nstepping\t: 4\nflags\t\t: fpu vme arch_perfmon\n\n" \
	"processor\t: 1\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %s\n\n"

void fake_root_intel(struct fake_root *root)
{
	static const char *const uncore[][2] = {
		{DEVICES "/cpu/rdpmc", "1\n"},
		{DEVICES "/uncore_imc_0/type", "20\n"},
		{DEVICES "/uncore_imc_0/cpumask", "0\n"},
		{DEVICES "/uncore_imc_0/format/event", "config:0-7\n"},
		{DEVICES "/uncore_imc_0/format/umask", "config:8-15,32-55\n"},
		{DEVICES "/uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03\n"},
		{DEVICES "/uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5\n"},
		{DEVICES "/uncore_imc_0/events/cas_count_read.unit", "MiB\n"},
		{DEVICES "/uncore_imc_1/type", "21\n"},
		{DEVICES "/uncore_imc_1/cpumask", "0\n"},
		{DEVICES "/uncore_imc_1/format/event", "config:0-7\n"},
		{DEVICES "/uncore_imc_1/format/umask", "config:8-15,32-55\n"},
		{DEVICES "/uncore_imc_1/events/cas_count_read", "event=0x04,umask=0x03\n"},
		{DEVICES "/uncore_imc_free_running_0/type", "22\n"},
		{DEVICES "/uncore_imc_free_running_0/cpumask", "0\n"},
		{DEVICES "/uncore_imc_free_running_0/format/event", "config:0-7\n"},
		{DEVICES "/power/type", "23\n"},
		{DEVICES "/power/cpumask", "0\n"},
		{DEVICES "/power/format/event", "config:0-7\n"},
		{DEVICES "/power/events/energy-pkg", "event=0x02\n"},
		{DEVICES "/power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n"},
		{DEVICES "/power/events/energy-pkg.unit", "Joules\n"},
		{DEVICES "/msr/type", "24\n"},
		{DEVICES "/msr/format/event", "config:0-63\n"},
		{DEVICES "/msr/events/tsc", "event=0x00\n"},
		{DEVICES "/hv_24x7/type", "25\n"},
		{DEVICES "/hv_24x7/format/domain", "config:0-3\n"},
		{DEVICES "/hv_24x7/format/core", "config:16-31\n"},
		{DEVICES "/hv_24x7/format/split", "config2:0-3,60-63\n"},
		{DEVICES "/hv_24x7/events/PM_CYC", "domain=0x1,core=?\n"},
	};
	char text[1024];

	fake_root_make(root);
	cpus(root, 8, 2);
	core_pmu(root, "cpu", "4\n");
	files(root, common, sizeof(common) / sizeof(common[0]));
	files(root, uncore, sizeof(uncore) / sizeof(uncore[0]));
	snprintf(text, sizeof(text), CPUINFO_INTEL, "85", "85");
	fake_root_file(root, "/proc/cpuinfo", text);
}

void fake_root_hybrid(struct fake_root *root)
{
	char text[1024];

	fake_root_make(root);
	cpus(root, 8, 1);
	core_pmu(root, "cpu_core", "4\n");
	core_pmu(root, "cpu_atom", "10\n");
	fake_root_file(root, DEVICES "/cpu_core/cpus", "0-3\n");
	fake_root_file(root, DEVICES "/cpu_atom/cpus", "4-7\n");
	files(root, common, sizeof(common) / sizeof(common[0]));
	snprintf(text, sizeof(text), CPUINFO_INTEL, "151", "151");
	fake_root_file(root, "/proc/cpuinfo", text);
}

void fake_root_arm(struct fake_root *root)
{
	static const char *const arm[][2] = {
		{DEVICES "/armv8_pmuv3_0/type", "8\n"},
		{DEVICES "/armv8_pmuv3_0/cpus", "0-3\n"},
		{DEVICES "/armv8_pmuv3_0/format/event", "config:0-15\n"},
		{DEVICES "/armv8_pmuv3_0/format/long", "config1:0\n"},
		{DEVICES "/armv8_pmuv3_0/events/cpu_cycles", "event=0x0011\n"},
		{DEVICES "/armv8_pmuv3_0/events/stall_slot", "event=0x003f\n"},
		{"/sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
		 "0x00000000413fd0c1\n"},
		{"/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n"
				  "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"
				  "CPU revision\t: 1\n\n"},
	};

	fake_root_make(root);
	cpus(root, 4, 1);
	files(root, common, sizeof(common) / sizeof(common[0]));
	files(root, arm, sizeof(arm) / sizeof(arm[0]));
}
