/* What /proc and /sys say, on machines made of files. */
#include <errno.h>

#include "base/util.h"
#include "fake-root.h"
#include "harness/tap.h"

TEST(numbers_and_lines_say_why_they_are_unknown)
{
	struct fake_root root;
	struct host_number number;
	struct host_text text;

	fake_root_make(&root);
	fake_root_file(&root, "/a", " -12 \n");
	fake_root_file(&root, "/b", "0x1F\n");
	fake_root_file(&root, "/c", "word\n");
	fake_root_file(&root, "/d", "");
	number = host_number(&root.host, "/a");
	EXPECT(number.known && number.value == -12);
	number = host_number(&root.host, "/b");
	EXPECT(number.known && number.value == 31);
	number = host_number(&root.host, "/c");
	EXPECT(!number.known);
	EXPECT_STR(number.why, "/c holds no number");
	number = host_number(&root.host, "/none");
	EXPECT(!number.known);
	EXPECT_STR(number.why, "/none does not exist");
	text = host_line(&root.host, "/a");
	EXPECT(text.known);
	EXPECT_STR(text.value, "-12");
	text = host_line(&root.host, "/d");
	EXPECT(text.known);
	EXPECT_STR(text.value, "");
	fake_root_remove(&root);
}

TEST(topology_of_threads_and_hybrids)
{
	struct fake_root root;
	struct host_topology topology;

	fake_root_intel(&root);
	EXPECT_INT(host_topology_read(&root.host, &topology, NULL), 0);
	EXPECT(topology.cpus.len == 8 && topology.threads_per_core == 2 && !topology.hybrid);
	EXPECT_INT(host_topology_cpu(&topology, 5)->core, 2);
	EXPECT_INT(host_topology_cpu(&topology, 5)->node, 0);
	EXPECT_INT(host_topology_cpu(&topology, 5)->socket, 0);
	EXPECT_INT(host_topology_cpu(&topology, 5)->cluster, -1);
	EXPECT_INT(host_topology_cpu(&topology, 5)->type, CORE_TYPE_UNIFORM);
	EXPECT(host_topology_cpu(&topology, 8) == NULL);
	host_topology_fini(&topology);
	fake_root_remove(&root);

	fake_root_hybrid(&root);
	EXPECT_INT(host_topology_read(&root.host, &topology, NULL), 0);
	EXPECT(topology.hybrid && topology.threads_per_core == 1);
	EXPECT_INT(host_topology_cpu(&topology, 0)->type, CORE_TYPE_PERFORMANCE);
	EXPECT_INT(host_topology_cpu(&topology, 7)->type, CORE_TYPE_EFFICIENT);
	host_topology_fini(&topology);
	fake_root_remove(&root);

	fake_root_arm(&root);
	fake_root_file(&root, "/sys/devices/system/cpu/cpu0/cpu_capacity", "446\n");
	fake_root_file(&root, "/sys/devices/system/cpu/cpu1/cpu_capacity", "1024\n");
	EXPECT_INT(host_topology_read(&root.host, &topology, NULL), 0);
	EXPECT(topology.hybrid);
	EXPECT_INT(host_topology_cpu(&topology, 0)->type, CORE_TYPE_EFFICIENT);
	EXPECT_INT(host_topology_cpu(&topology, 1)->type, CORE_TYPE_PERFORMANCE);
	EXPECT_INT(host_topology_cpu(&topology, 2)->type, CORE_TYPE_UNKNOWN);
	host_topology_fini(&topology);
	fake_root_remove(&root);

	fake_root_make(&root);
	EXPECT_INT(host_topology_read(&root.host, &topology, NULL), -ENOENT);
	fake_root_remove(&root);
}

TEST(cpu_models)
{
	static const struct {
		const char *vendor, *family, *model, *stepping, *uarch;
	} rows[] = {
		{"GenuineIntel", "6", "85", "4", "skx"},
		{"GenuineIntel", "6", "85", "7", "clx"},
		{"GenuineIntel", "6", "143", "8", "spr"},
		{"GenuineIntel", "6", "207", "2", "emr"},
		{"GenuineIntel", "6", "151", "2", "adl-p"},
		{"GenuineIntel", "6", "106", "6", "icx"},
		{"AuthenticAMD", "23", "49", "0", "zen2"},
		{"AuthenticAMD", "25", "1", "1", "zen3"},
		{"AuthenticAMD", "25", "17", "1", "zen4"},
		{"AuthenticAMD", "25", "97", "2", "zen4"},
		{"AuthenticAMD", "26", "2", "1", "zen5"},
	};
	struct fake_root root;
	struct host_cpu_model model;
	char text[512];

	fake_root_make(&root);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text),
			 "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %s\nmodel\t\t: %s\n"
			 "model name\t: A CPU\nstepping\t: %s\nflags\t\t: fpu hypervisor\n\n",
			 rows[i].vendor, rows[i].family, rows[i].model, rows[i].stepping);
		fake_root_file(&root, "/proc/cpuinfo", text);
		host_cpu_model_read(&root.host, &model);
		EXPECT(model.known && model.hypervisor_flag);
		EXPECT_STR(model.uarch, rows[i].uarch);
		EXPECT_STR(model.name, "A CPU");
	}
	EXPECT_STR(model.id, "AuthenticAMD-26-2-1");
	fake_root_remove(&root);

	fake_root_arm(&root);
	host_cpu_model_read(&root.host, &model);
	EXPECT(model.known && model.vendor == CPU_VENDOR_ARM && model.midr == 0x413fd0c1);
	EXPECT_STR(model.name, "Neoverse-N1 r3p1");
	EXPECT_STR(model.uarch, "n1");
	fake_root_file(&root, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "\n");
	host_cpu_model_read(&root.host, &model); /* now from /proc/cpuinfo */
	EXPECT_INT(model.midr, 0x413fd0c1);
	fake_root_remove(&root);

	fake_root_make(&root);
	host_cpu_model_read(&root.host, &model);
	EXPECT(!model.known && model.why[0] != '\0' && model.uarch == NULL);
	fake_root_remove(&root);
}

TEST(rights_and_lockdown)
{
	struct fake_root root;
	struct host_rights rights;
	struct host_text lockdown;

	fake_root_intel(&root);
	EXPECT_INT(host_perf_paranoid(&root.host).value, 2);
	EXPECT_INT(host_rdpmc(&root.host, "cpu").value, 1);
	EXPECT(!host_rdpmc(&root.host, "nothing").known);
	EXPECT(!host_lockdown(&root.host).known);
	fake_root_file(&root, "/sys/kernel/security/lockdown",
		       "none [integrity] confidentiality\n");
	lockdown = host_lockdown(&root.host);
	EXPECT_STR(lockdown.value, "integrity");
	EXPECT(!host_rights(&root.host).known);
	fake_root_file(&root, "/proc/self/status",
		       "Name:\tx\nCapEff:\t0000004000000000\nCapBnd:\t000001ffffffffff\n"
		       "NoNewPrivs:\t1\nSeccomp:\t2\n");
	rights = host_rights(&root.host);
	EXPECT(rights.known && rights.seccomp == 2 && rights.no_new_privs == 1);
	EXPECT(host_can(&rights, HOST_CAP_PERFMON) && !host_can(&rights, HOST_CAP_SYS_ADMIN));
	EXPECT(host_can_perfmon(&rights));
	fake_root_remove(&root);
}

TEST(hypervisors_and_containers)
{
	struct fake_root root;
	struct host_text text;

	fake_root_intel(&root); /* no hypervisor flag */
	EXPECT_STR(host_hypervisor(&root.host).value, "none");
	fake_root_file(&root, "/proc/cpuinfo",
		       "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nflags\t\t: fpu "
		       "hypervisor\n");
	EXPECT_STR(host_hypervisor(&root.host).value, "unknown");
	fake_root_file(&root, "/sys/devices/system/clocksource/clocksource0/available_clocksource",
		       "kvm-clock tsc\n");
	EXPECT_STR(host_hypervisor(&root.host).value, "kvm");
	fake_root_file(&root, "/sys/class/dmi/id/product_name", "VMware Virtual Platform\n");
	EXPECT_STR(host_hypervisor(&root.host).value, "vmware");
	text = host_container(&root.host);
	EXPECT(!text.known);
	fake_root_file(&root, "/proc/self/cgroup", "0::/user.slice\n");
	EXPECT_STR(host_container(&root.host).value, "none");
	fake_root_file(&root, "/proc/self/cgroup", "0::/kubepods/besteffort/pod1/2\n");
	EXPECT_STR(host_container(&root.host).value, "kubernetes");
	fake_root_file(&root, "/.dockerenv", "");
	EXPECT_STR(host_container(&root.host).value, "docker");
	fake_root_remove(&root);
}

TEST(cgroups_of_both_versions)
{
	struct fake_root root;
	struct host_cgroups cgroups;
	struct err err = {0};
	char path[256];

	fake_root_make(&root);
	fake_root_file(&root, "/proc/self/mounts",
		       "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
	fake_root_file(&root, "/proc/self/cgroup", "0::/user.slice/session-1.scope\n");
	EXPECT_INT(host_cgroups_read(&root.host, &cgroups, NULL), 0);
	EXPECT_INT(cgroups.layout, CGROUP_V2);
	EXPECT_STR(cgroups.perf_event, "/sys/fs/cgroup");
	EXPECT_INT(host_cgroup_of(&root.host, &cgroups, 0, path, sizeof(path), NULL), 0);
	EXPECT_STR(path, "/user.slice/session-1.scope");

	fake_root_file(&root, "/proc/self/mounts",
		       "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
		       "cgroup /mnt/perf\\040event cgroup rw,perf_event 0 0\n"
		       "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nshort line\n");
	fake_root_file(&root, "/proc/7/cgroup", "3:cpu,perf_event:/docker/1\n0::/other\n");
	EXPECT_INT(host_cgroups_read(&root.host, &cgroups, NULL), 0);
	EXPECT_INT(cgroups.layout, CGROUP_HYBRID);
	EXPECT_STR(cgroups.perf_event, "/mnt/perf event");
	EXPECT_STR(cgroups.v2, "/sys/fs/cgroup/unified");
	EXPECT_INT(host_cgroup_of(&root.host, &cgroups, 7, path, sizeof(path), NULL), 0);
	EXPECT_STR(path, "/docker/1");
	EXPECT_INT(host_cgroup_of(&root.host, &cgroups, 0, path, sizeof(path), &err), -ENOENT);
	EXPECT_INT(host_tracefs(&root.host, path, sizeof(path), &err), -ENOENT);
	EXPECT(strstr(err.text, "mount -t tracefs"));
	fake_root_file(&root, "/sys/kernel/debug/tracing/events/enable", "0");
	EXPECT_INT(host_tracefs(&root.host, path, sizeof(path), &err), 0);
	EXPECT_STR(path, "/sys/kernel/debug/tracing");
	fake_root_remove(&root);
}

TEST(threads_of_a_process)
{
	struct fake_root root;
	struct host_tids tids = {0};
	struct host_task task;
	char label[64];

	fake_root_make(&root);
	fake_root_file(&root, "/proc/7/task/7/comm", "x");
	fake_root_file(&root, "/proc/7/task/9/comm", "x");
	fake_root_file(&root, "/proc/7/task/none", "x");
	fake_root_file(&root, "/proc/9/comm", "a (b) c\n");
	fake_root_file(&root, "/proc/9/stat",
		       "9 (a (b) c) R 1 9 9 0 -1 2097216 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 1 0 0 0 0 "
		       "0 0 0 0 0 0 0 0 17 3 50 1 0 0 0\n");
	fake_root_file(&root, "/proc/8/stat", "8 (cut) S 1 8\n");
	fake_root_file(&root, "/proc/6/stat", "nothing\n");
	EXPECT_INT(host_tids_read(&root.host, 7, &tids), 0);
	ASSERT(tids.len == 2);
	EXPECT_INT(tids.data[0] + tids.data[1], 16);
	vec_fini(&tids);
	EXPECT_INT(host_tids_read(&root.host, 5, &tids), -ESRCH);
	host_thread_label(&root.host, 9, label, sizeof(label));
	EXPECT_STR(label, "a (b) c-9");
	host_thread_label(&root.host, 10, label, sizeof(label));
	EXPECT_STR(label, "?-10");
	ASSERT(host_task_read(&root.host, 9, &task));
	EXPECT_STR(task.comm, "a (b) c");
	EXPECT(task.state == 'R' && task.is_kernel && task.cpu == 3);
	EXPECT(task.priority == 50 && task.policy == 1);
	ASSERT(host_task_read(&root.host, 8, &task));
	EXPECT(task.state == 'S' && !task.is_kernel && task.cpu == -1);
	EXPECT(!host_task_read(&root.host, 6, &task));
	EXPECT(!host_task_read(&root.host, 4, &task));
	fake_root_remove(&root);
}
