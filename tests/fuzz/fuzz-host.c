/*
 * What the kernel tells in files: a machine made of any bytes below a root of our own. Parts of
 * the input begin with a byte that chooses a file and end in 0xff; then everything that reads such
 * files does.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "events/env.h"
#include "events/tracepoint.h"
#include "host/host.h"
#include "latency/irq-names.h"
#include "latency/journal.h"
#include "latency/proc-deltas.h"
#include "sample/synth.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARTS_MAX 64

#define DEVICES "/sys/bus/event_source/devices"
#define CPUS    "/sys/devices/system/cpu"
#define IDLE    "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable"

static const char *const paths[] = {
	"/proc/cpuinfo",
	"/proc/self/status",
	"/proc/self/mounts",
	"/proc/self/cgroup",
	"/proc/1/environ",
	"/proc/1/maps",
	"/proc/1/stat",
	"/proc/1/task/1/comm",
	"/proc/modules",
	"/proc/kallsyms",
	"/proc/interrupts",
	"/proc/sys/kernel/perf_event_paranoid",
	"/sys/kernel/security/lockdown",
	"/sys/kernel/notes",
	"/sys/hypervisor/type",
	"/sys/class/dmi/id/product_name",
	"/sys/kernel/tracing/events/sched/sched_switch/id",
	CPUS "/online",
	CPUS "/possible",
	CPUS "/cpu0/topology/core_id",
	CPUS "/cpu0/topology/thread_siblings_list",
	CPUS "/cpu0/cpu_capacity",
	CPUS "/cpu0/regs/identification/midr_el1",
	DEVICES "/cpu/type",
	DEVICES "/cpu/format/event",
	DEVICES "/cpu/format/umask",
	DEVICES "/cpu/events/cycles",
	DEVICES "/cpu/events/cycles.scale",
	DEVICES "/cpu/events/cycles.unit",
	DEVICES "/uncore_imc_0/type",
	DEVICES "/uncore_imc_0/cpumask",
	"/proc/sys/kernel/osnoise",
	IDLE,
	"/run/culprit/1.journal",
};

static char root[SCRATCH_BYTES];
static bool written[ARRAY_LEN(paths)];

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void remove_root(void)
{
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(size_t which, const uint8_t *data, size_t size)
{
	char path[256], *slash;
	int fd;

	snprintf(path, sizeof(path), "%s%s", root, paths[which]);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) { /* the first one, or a restored journal's folder has gone */
		slash = strrchr(path, '/');
		*slash = '\0';
		if (dir_make(path, 0700, NULL) < 0)
			abort();
		*slash = '/';
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	}
	if (fd < 0 || fd_write_all(fd, data, size) < 0)
		abort();
	close(fd);
	written[which] = size > 0;
}

static void machine(const struct host *host)
{
	struct host_topology topology;
	struct host_cgroups cgroups;
	struct host_cpu_model model;
	char text[256];

	if (host_topology_read(host, &topology, NULL) == 0) {
		vec_for_each(&topology.cpus, cpu) {
			if (host_topology_cpu(&topology, cpu->cpu) != cpu)
				abort();
		}
		host_topology_fini(&topology);
	}
	host_cpu_model_read(host, &model);
	if (model.known == (model.why[0] != '\0'))
		abort();
	(void)host_cpu_uarch(&model);
	(void)host_perf_paranoid(host);
	(void)host_rights(host);
	(void)host_lockdown(host);
	(void)host_hypervisor(host);
	(void)host_container(host);
	if (host_cgroups_read(host, &cgroups, NULL) == 0)
		(void)host_cgroup_of(host, &cgroups, 0, text, sizeof(text), NULL);
	(void)host_tracefs(host, text, sizeof(text), NULL);
}

static void events(const struct host *host)
{
	struct host_cpu_model model;
	struct pmu_set pmus;
	uint64_t id;

	host_cpu_model_read(host, &model);
	if (pmu_set_read(host, &model, &pmus, NULL) == 0) {
		vec_for_each(&pmus.pmus, pmu) {
			if (pmu_load(host, pmu, NULL) < 0)
				continue;
			vec_for_each(&pmu->formats, format) {
				if (format->word >= PMU_CONFIG_WORDS || format->mask == 0)
					abort();
			}
			(void)pmu_alias_find(pmu, "cycles");
		}
		pmu_set_fini(&pmus);
	}
	(void)tracepoint_id(host, "sched", "sched_switch", &id, NULL);
}

static int take(void *arg, const void *record, size_t size)
{
	struct perf_event_header header;

	memcpy(&header, record, MIN(size, sizeof(header)));
	if (size < sizeof(header) || header.size != size || size % 8 != 0)
		abort();
	*(size_t *)arg += size;
	return 0;
}

static void processes(void)
{
	char proc[64], sys[64];
	size_t bytes = 0;
	struct synth synth = {.proc = proc,
			      .sys = sys,
			      .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
			      .data_maps = true,
			      .put = take,
			      .arg = &bytes};

	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(sys, sizeof(sys), "%s/sys", root);
	(void)synth_all(&synth);
	(void)synth_kernel(&synth);
	synth_fini(&synth);
}

static void interrupts(const struct host *host)
{
	struct irq_names names;
	struct str text = {0};
	char *now;
	size_t size;

	if (irq_names_load(root, &names, NULL) == 0)
		irq_names_fini(&names);
	if (host_read(host, "/proc/interrupts", 1 << 20, &now, &size, NULL) < 0)
		return;
	/* Against the half of itself, so that counts differ. */
	now[size / 2] = '\0';
	(void)proc_deltas(now, now + MIN(size, size / 2 + 1), 0, 4, &text);
	str_fini(&text);
	free(now);
}

static void journals(void)
{
	struct journal_report report;
	struct err err;

	for (int dry = 1; dry >= 0; dry--) {
		(void)journal_repair(root, dry ? JOURNAL_DRY : 0, &report, &err);
		journal_report_fini(&report);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct host host = {.root = root};
	static bool ready;

	if (!ready) {
		scratch_make(root);
		atexit(remove_root);
		for (size_t i = 0; i < ARRAY_LEN(paths); i++)
			put(i, NULL, 0);
		ready = true;
	}
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (written[i])
			put(i, NULL, 0);
	for (size_t at = 0, parts = 0; at < size && parts < PARTS_MAX; parts++) {
		const uint8_t *end = memchr(data + at, 0xff, size - at);
		size_t len = end ? (size_t)(end - data) - at : size - at;

		if (len > 1)
			put(data[at] % ARRAY_LEN(paths), data + at + 1, len - 1);
		at += len + 1;
	}
	machine(&host);
	events(&host);
	processes();
	interrupts(&host);
	journals();
	return 0;
}
