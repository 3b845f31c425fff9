/* The list of events, what they are, and the words for events that cannot be opened. */
#include "count/set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/file.h"
#include "base/util.h"
#include "count/set-internal.h"

int count_set_add(struct count_set *set, const struct count_event *event)
{
	struct count_event copy = *event;

	copy.name = strdup(event->name);
	copy.unit = strdup(event->unit ? event->unit : "");
	copy.cpus = NULL;
	copy.same_as = -1;
	if (event->cpus) {
		copy.cpus = malloc(sizeof(*copy.cpus));
		if (copy.cpus)
			*copy.cpus = *event->cpus;
	}
	if (!copy.name || !copy.unit || (event->cpus && !copy.cpus) ||
	    vec_push(&set->events, copy) < 0) {
		free(copy.name);
		free(copy.unit);
		free(copy.cpus);
		return -ENOMEM;
	}
	return 0;
}

void count_set_fini(struct count_set *set)
{
	vec_for_each(&set->events, event) {
		free(event->name);
		free(event->unit);
		free(event->cpus);
	}
	vec_fini(&set->events);
	vec_fini(&set->groups);
	vec_fini(&set->bundles);
	str_fini(&set->notes);
}

int count_set_find(const struct count_set *set, uint32_t type, uint64_t config)
{
	for (size_t i = 0; i < set->events.len; i++) {
		const struct count_event *event = &set->events.data[i];

		if (!event->internal && event->attr.type == type && event->attr.config == config)
			return (int)i;
	}
	return -1;
}

bool count_set_in_bundle(const struct count_set *set, unsigned event)
{
	vec_for_each(&set->bundles, bundle)
		for (unsigned i = 0; i < bundle->len; i++)
			if (bundle->members[i] == event)
				return true;
	return false;
}

int count_set_group_of(const struct count_set *set, unsigned event, unsigned *ret_position)
{
	for (size_t g = 0; g < set->groups.len; g++) {
		const struct count_group *group = &set->groups.data[g];

		for (unsigned i = 0; i < group->len; i++) {
			if (group->members[i] != event)
				continue;
			if (ret_position)
				*ret_position = i;
			return (int)g;
		}
	}
	return -1;
}

enum count_kind count_kind_of(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return COUNT_SOFTWARE;
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return COUNT_CORE;
	default:
		return COUNT_UNCORE;
	}
}

bool count_is_cycles(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE &&
	       (uint32_t)attr->config == PERF_COUNT_HW_CPU_CYCLES;
}

bool count_same_mode(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel &&
	       a->exclude_hv == b->exclude_hv && a->exclude_host == b->exclude_host &&
	       a->exclude_guest == b->exclude_guest;
}

bool count_is_pair(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	static const uint32_t pairs[][2] = {
		{PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES},
		{PERF_COUNT_HW_BRANCH_MISSES, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
		{PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_CACHE_REFERENCES},
	};
	uint32_t x = (uint32_t)a->config, y = (uint32_t)b->config;

	if (a->type != b->type || a->config >> 32 != b->config >> 32 || !count_same_mode(a, b))
		return false;
	if (a->type == PERF_TYPE_HW_CACHE)
		return x != y && (x & 0xffff) == (y & 0xffff); /* the same cache and operation */
	for (size_t i = 0; a->type == PERF_TYPE_HARDWARE && i < ARRAY_LEN(pairs); i++)
		if ((x == pairs[i][0] && y == pairs[i][1]) ||
		    (x == pairs[i][1] && y == pairs[i][0]))
			return true;
	return false;
}

struct perf_event_attr count_open_attr(const struct count_event *event)
{
	struct perf_event_attr attr = event->attr;

	attr.size = sizeof(attr);
	attr.read_format =
		PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_GROUP;
	attr.sample_period = 0;
	attr.sample_type = 0;
	attr.disabled = 1;
	attr.inherit = 0;
	attr.enable_on_exec = 0;
	return attr;
}

static int read_setting(const char *path)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;

	return file_read(path, 64, &text, &size, NULL) < 0 ? -100 : atoi(text);
}

static bool under_hypervisor(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned eax, ebx, ecx, edx;

	/* CPUID leaf 1, ECX bit 31 is reserved for this; /proc/cpuinfo would cost more than the
	 * whole start */
	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx >> 31;
#else
	return access("/sys/hypervisor/type", F_OK) == 0 ||
	       access("/proc/device-tree/hypervisor", F_OK) == 0;
#endif
}

static bool has_core_pmu(void)
{
	static const char *const names[] = {"cpu",
					    "cpu_core",
					    "armv8_pmuv3",
					    "armv8_pmuv3_0",
					    "armv8_cortex_a57",
					    "armv8_cortex_a53",
					    "armv8_cortex_a72"};
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s", names[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static void core_absent_reason(char *buf, unsigned size)
{
	static int present = -1;

	if (present < 0)
		present = has_core_pmu();
	if (present)
		snprintf(buf, size, "this CPU's counters have no such event");
	else if (under_hypervisor())
		snprintf(buf, size,
			 "this virtual machine has no hardware counters (no vPMU): enable it on "
			 "the host");
	else
		snprintf(buf, size, "the kernel found no hardware counters on this machine");
}

void count_open_reason(const struct count_event *event, int error, char *buf, unsigned size)
{
	switch (-error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
	case ENXIO:
		if (event->kind == COUNT_CORE)
			core_absent_reason(buf, size);
		else if (event->attr.type == PERF_TYPE_TRACEPOINT)
			snprintf(buf, size, "this kernel has no such tracepoint");
		else
			snprintf(buf, size, "this kernel has no such event");
		break;
	case EACCES:
	case EPERM: {
		int paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid");

		if (paranoid == -100)
			snprintf(
				buf, size,
				"not permitted (perf_event_paranoid cannot be read; a container?)");
		else if (paranoid > 0)
			snprintf(buf, size,
				 "not permitted: kernel.perf_event_paranoid is %d; needs "
				 "CAP_PERFMON or a lower value",
				 paranoid);
		else
			snprintf(buf, size, "not permitted (a security policy, or no CAP_PERFMON)");
		break;
	}
	case EINVAL:
		snprintf(buf, size, "the kernel refuses this combination of event and modifiers");
		break;
	case EMFILE:
	case ENFILE:
		snprintf(buf, size, "too many open files: raise the limit (ulimit -n)");
		break;
	case EBUSY:
		snprintf(buf, size, "another user holds the counter for itself");
		break;
	case ESRCH:
		snprintf(buf, size, "the process or thread is gone");
		break;
	case ENOSPC:
		snprintf(buf, size, "all hardware breakpoints are in use");
		break;
	default:
		snprintf(buf, size, "%s",
			 strerrordesc_np(-error) ? strerrordesc_np(-error) : "unknown error");
	}
}

void count_event_fail(struct count_event *event, int error)
{
	event->status = error;
	count_open_reason(event, error, event->reason, sizeof(event->reason));
}

bool count_event_to_user(struct count_event *event, int error)
{
	char *name = NULL;

	if ((error != -EACCES && error != -EPERM) || event->attr.exclude_kernel ||
	    event->kind == COUNT_UNCORE)
		return false;
	/* These happen inside the kernel: user mode alone would count a false 0. */
	if (event->attr.type == PERF_TYPE_TRACEPOINT ||
	    (event->attr.type == PERF_TYPE_SOFTWARE &&
	     (event->attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
	      event->attr.config == PERF_COUNT_SW_CPU_MIGRATIONS)))
		return false;
	if (asprintf(&name, "%s%s", event->name, strchr(event->name, ':') ? "u" : ":u") < 0)
		return false;
	free(event->name);
	event->name = name;
	event->attr.exclude_kernel = 1;
	event->attr.exclude_hv = 1;
	event->user_only = true;
	return true;
}
