/*
 * Topology and model of the CPUs. Numbers come from /sys/devices/system/cpu; the node of a CPU from
 * its nodeN link; the core type from the PMUs cpu_core and cpu_atom (x86) or from the capacities.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"

#define CPU_DIR       "/sys/devices/system/cpu"
#define CPUINFO_BYTES (16 << 20)

static int read_set(const struct host *host, const char *path, struct cpuset *ret)
{
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = host_read(host, path, 1 << 16, &text, &size, NULL);

	return r < 0 ? r : cpuset_parse(text, ret, NULL);
}

static int cpu_number(const struct host *host, unsigned cpu, const char *file)
{
	char path[128];
	struct host_number number;

	snprintf(path, sizeof(path), CPU_DIR "/cpu%u/%s", cpu, file);
	number = host_number(host, path);
	return number.known && number.value >= 0 && number.value <= INT_MAX ? (int)number.value
									    : -1;
}

/* The cpuN directory has an entry nodeM when the kernel knows NUMA nodes. */
static int cpu_node(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		const char *rest;

		if (str_prefix(entry->d_name, "node", &rest) && isdigit((unsigned char)*rest))
			return atoi(rest);
	}
	return -1;
}

static int add_cpu(const struct host *host, struct host_topology *topology, unsigned cpu)
{
	struct host_cpu row = {.cpu = cpu};
	char path[PATH_MAX];
	DIR *dir;

	if (host_path(host, path, sizeof(path), CPU_DIR "/cpu%u", cpu) < 0)
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return 0;
	row.node = cpu_node(dir);
	closedir(dir);
	row.online = cpuset_has(&topology->online, cpu);
	row.core = cpu_number(host, cpu, "topology/core_id");
	row.cluster = cpu_number(host, cpu, "topology/cluster_id");
	row.die = cpu_number(host, cpu, "topology/die_id");
	row.socket = cpu_number(host, cpu, "topology/physical_package_id");
	row.capacity = cpu_number(host, cpu, "cpu_capacity");
	return vec_push(&topology->cpus, row);
}

static void set_core_types(const struct host *host, struct host_topology *topology)
{
	struct cpuset core = {0}, atom = {0};
	bool x86 = read_set(host, "/sys/bus/event_source/devices/cpu_core/cpus", &core) == 0 &&
		   read_set(host, "/sys/bus/event_source/devices/cpu_atom/cpus", &atom) == 0;
	int most = -1, least = INT_MAX;

	vec_for_each(&topology->cpus, cpu) {
		if (cpu->capacity >= 0) {
			most = MAX(most, cpu->capacity);
			least = MIN(least, cpu->capacity);
		}
	}
	topology->hybrid = x86 || (most >= 0 && least < most);
	vec_for_each(&topology->cpus, cpu) {
		if (!topology->hybrid)
			cpu->type = CORE_TYPE_UNIFORM;
		else if (x86)
			cpu->type = cpuset_has(&core, cpu->cpu)   ? CORE_TYPE_PERFORMANCE
				    : cpuset_has(&atom, cpu->cpu) ? CORE_TYPE_EFFICIENT
								  : CORE_TYPE_UNKNOWN;
		else if (cpu->capacity >= 0)
			cpu->type =
				cpu->capacity == most ? CORE_TYPE_PERFORMANCE : CORE_TYPE_EFFICIENT;
	}
}

static unsigned count_threads(const struct host *host, const struct host_topology *topology)
{
	unsigned most = 0;

	for (size_t i = 0; i < topology->cpus.len; i++) {
		struct cpuset siblings = {0};
		char path[128];

		snprintf(path, sizeof(path), CPU_DIR "/cpu%u/topology/thread_siblings_list",
			 topology->cpus.data[i].cpu);
		if (read_set(host, path, &siblings) == 0)
			most = MAX(most, cpuset_count(&siblings));
	}
	return most;
}

int host_topology_read(const struct host *host, struct host_topology *ret, struct err *err)
{
	struct host_topology topology = {0};
	int r = read_set(host, CPU_DIR "/online", &topology.online);

	if (r < 0)
		return err_set(err, r, "%s/online: %s", CPU_DIR, strerrordesc_np(-r));
	if (read_set(host, CPU_DIR "/possible", &topology.possible) < 0)
		topology.possible = topology.online;
	cpuset_for_each(&topology.possible, cpu) {
		r = add_cpu(host, &topology, (unsigned)cpu);
		if (r < 0) {
			host_topology_fini(&topology);
			return err_set(err, r, "CPU topology: %s", strerrordesc_np(-r));
		}
	}
	set_core_types(host, &topology);
	topology.threads_per_core = count_threads(host, &topology);
	*ret = topology;
	return 0;
}

void host_topology_fini(struct host_topology *topology)
{
	vec_fini(&topology->cpus);
}

const struct host_cpu *host_topology_cpu(const struct host_topology *topology, unsigned cpu)
{
	size_t first = partition_point(topology->cpus.len, at, topology->cpus.data[at].cpu < cpu);

	return first < topology->cpus.len && topology->cpus.data[first].cpu == cpu
		       ? &topology->cpus.data[first]
		       : NULL;
}

/* --- model ----------------------------------------------------------------------------------- */

/* The value of "key : value" in the first block of /proc/cpuinfo, or "". */
static void cpuinfo_field(const char *text, const char *key, char *buf, size_t size)
{
	size_t key_len = strlen(key);

	buf[0] = '\0';
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *at;
		size_t len;

		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0)
			continue;
		at = line + key_len;
		at += strspn(at, " \t");
		if (*at != ':')
			continue;
		at++;
		at += strspn(at, " \t");
		len = MIN(strcspn(at, "\n"), size - 1);
		memcpy(buf, at, len);
		buf[len] = '\0';
		return;
	}
}

static int cpuinfo_int(const char *text, const char *key)
{
	char value[64], *end;
	long number;

	cpuinfo_field(text, key, value, sizeof(value));
	number = strtol(value, &end, 0);
	return end == value || number < 0 || number > INT_MAX ? -1 : (int)number;
}

static void read_x86(const char *text, struct host_cpu_model *model)
{
	char *flags = malloc(CPUINFO_BYTES / 1024);

	cpuinfo_field(text, "vendor_id", model->vendor_id, sizeof(model->vendor_id));
	cpuinfo_field(text, "model name", model->name, sizeof(model->name));
	model->family = cpuinfo_int(text, "cpu family");
	model->model = cpuinfo_int(text, "model");
	model->stepping = cpuinfo_int(text, "stepping");
	model->vendor = strcmp(model->vendor_id, "GenuineIntel") == 0   ? CPU_VENDOR_INTEL
			: strcmp(model->vendor_id, "AuthenticAMD") == 0 ? CPU_VENDOR_AMD
			: strcmp(model->vendor_id, "HygonGenuine") == 0 ? CPU_VENDOR_AMD
									: CPU_VENDOR_OTHER;
	snprintf(model->id, sizeof(model->id), "%s-%d-%X-%X", model->vendor_id, model->family,
		 (unsigned)model->model, (unsigned)model->stepping);
	if (flags) {
		cpuinfo_field(text, "flags", flags, CPUINFO_BYTES / 1024);
		model->hypervisor_flag = strstr(flags, " hypervisor") != NULL;
	}
	free(flags);
	model->known = model->family >= 0 && model->model >= 0;
}

static const char *arm_part_name(uint64_t midr)
{
	static const struct {
		uint16_t part;
		const char *name;
	} parts[] = {
		{0xd03, "Cortex-A53"},  {0xd04, "Cortex-A35"},    {0xd05, "Cortex-A55"},
		{0xd07, "Cortex-A57"},  {0xd08, "Cortex-A72"},    {0xd09, "Cortex-A73"},
		{0xd0a, "Cortex-A75"},  {0xd0b, "Cortex-A76"},    {0xd0c, "Neoverse-N1"},
		{0xd0d, "Cortex-A77"},  {0xd40, "Neoverse-V1"},   {0xd41, "Cortex-A78"},
		{0xd44, "Cortex-X1"},   {0xd46, "Cortex-A510"},   {0xd47, "Cortex-A710"},
		{0xd48, "Cortex-X2"},   {0xd49, "Neoverse-N2"},   {0xd4a, "Neoverse-E1"},
		{0xd4b, "Cortex-A78C"}, {0xd4d, "Cortex-A715"},   {0xd4e, "Cortex-X3"},
		{0xd4f, "Neoverse-V2"}, {0xd80, "Cortex-A520"},   {0xd81, "Cortex-A720"},
		{0xd82, "Cortex-X4"},   {0xd83, "Neoverse-V3AE"}, {0xd84, "Neoverse-V3"},
		{0xd85, "Cortex-X925"}, {0xd87, "Cortex-A725"},   {0xd8e, "Neoverse-N3"},
	};

	if ((midr >> 24 & 0xff) != 0x41)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].part == (midr >> 4 & 0xfff))
			return parts[i].name;
	return NULL;
}

/* MIDR_EL1 put together from cpuinfo where sysfs has no copy of the register. */
static uint64_t midr_from_cpuinfo(const char *text)
{
	int implementer = cpuinfo_int(text, "CPU implementer");
	int variant = cpuinfo_int(text, "CPU variant");
	int part = cpuinfo_int(text, "CPU part");
	int revision = cpuinfo_int(text, "CPU revision");

	if (implementer < 0 || part < 0)
		return 0;
	return (uint64_t)implementer << 24 | (uint64_t)MAX(variant, 0) << 20 | 0xfu << 16 |
	       (uint64_t)part << 4 | (uint64_t)MAX(revision, 0);
}

static void read_arm(const struct host *host, const char *text, struct host_cpu_model *model)
{
	struct cpuset online = {0};
	char path[128];
	struct host_number midr;
	const char *name;
	int first = 0;

	if (read_set(host, CPU_DIR "/online", &online) == 0)
		first = MAX(cpuset_next(&online, 0), 0);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/regs/identification/midr_el1", first);
	midr = host_number(host, path);
	model->midr = midr.known ? (uint64_t)midr.value : midr_from_cpuinfo(text);
	if (model->midr == 0) {
		snprintf(model->why, sizeof(model->why), "neither MIDR nor /proc/cpuinfo name it");
		return;
	}
	model->vendor = CPU_VENDOR_ARM;
	snprintf(model->vendor_id, sizeof(model->vendor_id), "0x%02x",
		 (unsigned)(model->midr >> 24 & 0xff));
	snprintf(model->id, sizeof(model->id), "0x%016llx", (unsigned long long)model->midr);
	name = arm_part_name(model->midr);
	if (name)
		snprintf(model->name, sizeof(model->name), "%s r%up%u", name,
			 (unsigned)(model->midr >> 20 & 0xf), (unsigned)(model->midr & 0xf));
	model->known = true;
}

void host_cpu_model_read(const struct host *host, struct host_cpu_model *ret)
{
	struct host_cpu_model model = {.family = -1, .model = -1, .stepping = -1};
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = host_read(host, "/proc/cpuinfo", CPUINFO_BYTES, &text, &size, NULL);
	char *block;

	if (r < 0)
		snprintf(model.why, sizeof(model.why), "/proc/cpuinfo: %s", strerrordesc_np(-r));
	/* Hundreds of CPUs repeat the same block: the first is enough. */
	block = text ? strstr(text, "\n\n") : NULL;
	if (block && strstr(text, "vendor_id"))
		block[1] = '\0';
	if (text && strstr(text, "vendor_id"))
		read_x86(text, &model);
	else
		read_arm(host, text ? text : "", &model);
	if (!model.known && model.why[0] == '\0')
		snprintf(model.why, sizeof(model.why), "/proc/cpuinfo names no family and model");
	model.uarch = host_cpu_uarch(&model);
	*ret = model;
}
