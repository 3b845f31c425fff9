/* On what this kernel runs (hypervisor) and in what this process is kept (container). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"

static bool exists(const struct host *host, const char *path)
{
	char full[PATH_MAX];

	return host_path(host, full, sizeof(full), "%s", path) == 0 && access(full, F_OK) == 0;
}

static struct host_text known(const char *value)
{
	struct host_text text = {.known = true};

	snprintf(text.value, sizeof(text.value), "%s", value);
	return text;
}

/* Words in the DMI strings that vendors put there. */
static const struct {
	const char *word, *name;
} dmi_words[] = {
	{"KVM", "kvm"},
	{"Amazon EC2", "kvm"},
	{"Google Compute Engine", "kvm"},
	{"OpenStack", "kvm"},
	{"QEMU", "qemu"},
	{"VMware", "vmware"},
	{"Xen", "xen"},
	{"VirtualBox", "virtualbox"},
	{"innotek", "virtualbox"},
	{"Bochs", "bochs"},
	{"Parallels", "parallels"},
	{"Microsoft Corporation", "hyperv"},
};

static const char *dmi_hypervisor(const struct host *host)
{
	static const char *const files[] = {
		"/sys/class/dmi/id/product_name",
		"/sys/class/dmi/id/sys_vendor",
		"/sys/class/dmi/id/board_vendor",
	};

	for (size_t f = 0; f < ARRAY_LEN(files); f++) {
		struct host_text line = host_line(host, files[f]);

		for (size_t i = 0; line.known && i < ARRAY_LEN(dmi_words); i++)
			if (strstr(line.value, dmi_words[i].word))
				return dmi_words[i].name;
	}
	return NULL;
}

/* Paravirtual drivers and clocks tell it where there is no DMI. */
static const char *device_hypervisor(const struct host *host)
{
	struct host_text clocks = host_line(
		host, "/sys/devices/system/clocksource/clocksource0/available_clocksource");
	struct host_text compatible = host_line(host, "/proc/device-tree/hypervisor/compatible");

	if (compatible.known)
		return strstr(compatible.value, "xen") ? "xen" : "kvm";
	if (clocks.known && strstr(clocks.value, "kvm-clock"))
		return "kvm";
	if (clocks.known && strstr(clocks.value, "hyperv"))
		return "hyperv";
	if (clocks.known && strstr(clocks.value, "xen"))
		return "xen";
	compatible = host_line(host, "/proc/device-tree/compatible");
	if (compatible.known && strstr(compatible.value, "dummy-virt"))
		return "qemu";
	return exists(host, "/proc/device-tree/fw-cfg") ? "qemu" : NULL;
}

struct host_text host_hypervisor(const struct host *host)
{
	struct host_cpu_model model;
	struct host_text type = host_line(host, "/sys/hypervisor/type");
	const char *name;

	host_cpu_model_read(host, &model);
	if (type.known && type.value[0] != '\0')
		return known(type.value);
	name = dmi_hypervisor(host);
	/* A DMI vendor of hypervisors also makes real machines: x86 has a flag that decides. */
	if (model.known && model.vendor != CPU_VENDOR_ARM && !model.hypervisor_flag)
		return known("none");
	if (!name)
		name = device_hypervisor(host);
	if (name)
		return known(name);
	if (model.hypervisor_flag)
		return known("unknown");
	if (model.known && model.vendor != CPU_VENDOR_ARM)
		return known("none");
	if (exists(host, "/sys/class/dmi/id/product_name") || exists(host, "/proc/device-tree"))
		return known("none");
	return (struct host_text){.why = "no DMI, device tree or CPU flag tells"};
}

/* systemd and podman leave "container=NAME" in the environment of PID 1. */
static bool container_of_init(const struct host *host, char *buf, size_t size)
{
	size_t bytes;
	CLEANUP_FREE char *data = NULL;

	if (host_read(host, "/proc/1/environ", 1 << 20, &data, &bytes, NULL) < 0)
		return false;
	for (size_t at = 0; at < bytes; at += strlen(data + at) + 1) {
		const char *value;

		if (str_prefix(data + at, "container=", &value) && *value) {
			snprintf(buf, size, "%s", value);
			return true;
		}
	}
	return false;
}

struct host_text host_container(const struct host *host)
{
	static const struct {
		const char *word, *name;
	} words[] = {
		{"kubepods", "kubernetes"}, {"docker", "docker"},
		{"libpod", "podman"},       {"/lxc", "lxc"},
		{"containerd", "docker"},   {"machine.slice", "systemd-nspawn"},
	};
	char name[64];
	size_t size;
	CLEANUP_FREE char *cgroup = NULL;

	if (exists(host, "/run/.containerenv"))
		return known("podman");
	if (exists(host, "/.dockerenv"))
		return known("docker");
	if (container_of_init(host, name, sizeof(name)))
		return known(name);
	if (host_read(host, "/proc/self/cgroup", 1 << 20, &cgroup, &size, NULL) < 0)
		return (struct host_text){.why = "/proc/self/cgroup may not be read"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(cgroup, words[i].word))
			return known(words[i].name);
	return known("none");
}
