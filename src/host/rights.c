/* What the kernel lets this process do: sysctls, capabilities, seccomp, lockdown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"

struct host_number host_perf_paranoid(const struct host *host)
{
	return host_number(host, "/proc/sys/kernel/perf_event_paranoid");
}

struct host_number host_kptr_restrict(const struct host *host)
{
	return host_number(host, "/proc/sys/kernel/kptr_restrict");
}

struct host_number host_nmi_watchdog(const struct host *host)
{
	return host_number(host, "/proc/sys/kernel/nmi_watchdog");
}

struct host_number host_perf_mlock_kb(const struct host *host)
{
	return host_number(host, "/proc/sys/kernel/perf_event_mlock_kb");
}

struct host_number host_perf_max_sample_rate(const struct host *host)
{
	return host_number(host, "/proc/sys/kernel/perf_event_max_sample_rate");
}

struct host_number host_rdpmc(const struct host *host, const char *pmu)
{
	char path[256];
	struct host_number number;

	/* Arm has a switch for all PMUs instead of a file per PMU. */
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/rdpmc", pmu);
	number = host_number(host, path);
	return number.known ? number : host_number(host, "/proc/sys/kernel/perf_user_access");
}

struct host_text host_kernel_release(const struct host *host)
{
	return host_line(host, "/proc/sys/kernel/osrelease");
}

/* "none [integrity] confidentiality": the mode in force stands in brackets. */
struct host_text host_lockdown(const struct host *host)
{
	struct host_text text = host_line(host, "/sys/kernel/security/lockdown");
	char *open = strchr(text.value, '['), *close = open ? strchr(open, ']') : NULL;

	if (!text.known)
		return text;
	if (!close) {
		text.known = false;
		text.value[0] = '\0';
		snprintf(text.why, sizeof(text.why), "/sys/kernel/security/lockdown marks no mode");
		return text;
	}
	memmove(text.value, open + 1, (size_t)(close - open - 1));
	text.value[close - open - 1] = '\0';
	return text;
}

/* The value behind "Name:" at a line's start, NULL when it is missing. */
static const char *status_field(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

struct host_rights host_rights(const struct host *host)
{
	struct host_rights rights = {.seccomp = -1, .no_new_privs = -1};
	const char *effective, *bounding, *seccomp, *no_new_privs;
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r = host_read(host, "/proc/self/status", 1 << 20, &text, &size, NULL);

	if (r < 0) {
		snprintf(rights.why, sizeof(rights.why), "/proc/self/status: %s",
			 strerrordesc_np(-r));
		return rights;
	}
	effective = status_field(text, "CapEff");
	bounding = status_field(text, "CapBnd");
	seccomp = status_field(text, "Seccomp");
	no_new_privs = status_field(text, "NoNewPrivs");
	rights.seccomp = seccomp ? atoi(seccomp) : -1;
	rights.no_new_privs = no_new_privs ? atoi(no_new_privs) : -1;
	rights.bounding = bounding ? strtoull(bounding, NULL, 16) : 0;
	rights.known = effective != NULL;
	if (effective)
		rights.effective = strtoull(effective, NULL, 16);
	else
		snprintf(rights.why, sizeof(rights.why), "/proc/self/status has no CapEff");
	return rights;
}

bool host_can_perfmon(const struct host_rights *rights)
{
	return host_can(rights, HOST_CAP_PERFMON) || host_can(rights, HOST_CAP_SYS_ADMIN);
}
