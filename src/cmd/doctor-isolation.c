/* CPUs that the boot line keeps free of others: how well they are, and who is there all the same.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/doctor.h"

#define NAMES_SHOWN  6
#define THREADS_SEEN 65536

/* The value of a kernel command line word "key=value"; false when the word is not there. */
static bool boot_word(const char *line, const char *key, char *value, size_t bytes)
{
	size_t len = strlen(key);

	for (const char *at = line; (at = strstr(at, key)) != NULL; at += len) {
		if ((at > line && !isspace((unsigned char)at[-1])) || at[len] != '=')
			continue;
		snprintf(value, bytes, "%.*s", (int)strcspn(at + len + 1, " \n"), at + len + 1);
		return true;
	}
	return false;
}

/* The CPUs of a sysfs list; empty when the file is missing or empty. */
static bool read_cpus(const struct doctor *doctor, const char *path, struct cpuset *ret)
{
	struct host_text text = host_line(&doctor->host, path);

	memset(ret, 0, sizeof(*ret));
	return text.known && (!*text.value || strcmp(text.value, "(null)") == 0 ||
			      cpuset_parse(text.value, ret, NULL) == 0);
}

static void check_isolation(struct doctor *doctor, struct cpuset *ret_isolated)
{
	static const struct {
		const char *key, *why;
	} words[] = {
		{"nohz_full", "the tick stops there while one thread runs"},
		{"rcu_nocbs", "RCU callbacks run elsewhere"},
		{"irqaffinity", "interrupts go there by default"},
	};
	CLEANUP_FREE char *line = doctor_read_file(doctor, "/proc/cmdline");
	struct str cpus = {0};
	struct doctor_check *check;

	if (!read_cpus(doctor, "/sys/devices/system/cpu/isolated", ret_isolated)) {
		doctor_unknown(doctor, "isolcpus",
			       "/sys/devices/system/cpu/isolated cannot be read");
	} else if (!cpuset_count(ret_isolated)) {
		check = doctor_add(doctor, "isolcpus", DOCTOR_OK, "none");
		doctor_why(check, "no CPU is kept free: latencies are those of a shared machine");
	} else {
		cpuset_format(ret_isolated, &cpus);
		check = doctor_add(doctor, "isolcpus", DOCTOR_OK, "%s", str_text(&cpus));
		doctor_why(check, "the scheduler places nothing there by itself");
	}
	for (size_t i = 0; line && i < ARRAY_LEN(words); i++) {
		char value[128];

		if (boot_word(line, words[i].key, value, sizeof(value))) {
			check = doctor_add(doctor, words[i].key, DOCTOR_OK, "%s", value);
			doctor_why(check, "%s", words[i].why);
			continue;
		}
		bool wanted = cpuset_count(ret_isolated) > 0;
		check = doctor_add(doctor, words[i].key, wanted ? DOCTOR_WARN : DOCTOR_OK,
				   "not set");
		if (!wanted) {
			doctor_why(check, "only of use for isolated CPUs: %s", words[i].why);
		} else {
			doctor_why(check, "CPUs are isolated, but not from this: %s", words[i].why);
			doctor_remedy(check,
				      strcmp(words[i].key, "irqaffinity") == 0
					      ? "boot with irqaffinity=HOUSEKEEPING-CPUS"
					      : "boot with %s=%s",
				      words[i].key, str_text(&cpus));
		}
	}
	str_fini(&cpus);
}

/* Appends to a short list of names, then only counts. */
static void note_name(struct str *names, unsigned *count, const char *name)
{
	if (++*count <= NAMES_SHOWN)
		str_printf(names, "%s%s", *count > 1 ? ", " : "", name);
}

static bool sets_meet(const struct cpuset *a, const struct cpuset *b)
{
	for (int cpu = cpuset_next(a, 0); cpu >= 0; cpu = cpuset_next(a, (unsigned)cpu + 1)) {
		if (cpuset_has(b, (unsigned)cpu))
			return true;
	}
	return false;
}

static void check_isolated_irqs(struct doctor *doctor, const struct cpuset *isolated)
{
	char path[HOST_TEXT_BYTES];
	struct str names = {0};
	unsigned count = 0;
	DIR *dir = host_path(&doctor->host, path, sizeof(path), "/proc/irq") == 0 ? opendir(path)
										  : NULL;

	if (!dir) {
		doctor_unknown(doctor, "IRQs on isolated CPUs", "/proc/irq cannot be read");
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct cpuset effective;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/irq/%.32s/effective_affinity_list",
			 entry->d_name);
		if (read_cpus(doctor, path, &effective) && sets_meet(&effective, isolated))
			note_name(&names, &count, entry->d_name);
	}
	closedir(dir);
	struct doctor_check *check = doctor_add(
		doctor, "IRQs on isolated CPUs", count ? DOCTOR_WARN : DOCTOR_OK, "%u%s%s%s", count,
		count ? ": " : "", str_text(&names), count > NAMES_SHOWN ? " ..." : "");
	if (count) {
		doctor_why(check, "each of them interrupts what was isolated");
		doctor_remedy(check,
			      "for i in %s; do echo HOUSEKEEPING-CPUS "
			      ">/proc/irq/$i/smp_affinity_list; done (managed "
			      "ones need isolcpus=managed_irq)",
			      count == 1 ? str_text(&names) : "...");
	}
	str_fini(&names);
}

static void check_isolated_threads(struct doctor *doctor, const struct cpuset *isolated)
{
	char path[HOST_TEXT_BYTES];
	struct str names = {0};
	unsigned count = 0, seen = 0;
	DIR *dir =
		host_path(&doctor->host, path, sizeof(path), "/proc") == 0 ? opendir(path) : NULL;

	if (!dir) {
		doctor_unknown(doctor, "threads on isolated CPUs", "/proc cannot be read");
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir)) && seen < THREADS_SEEN;) {
		struct host_task task;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		seen++;
		/* the kernel's own threads of each CPU belong there */
		if (host_task_read(&doctor->host, atoi(entry->d_name), &task) && !task.is_kernel &&
		    task.cpu >= 0 && cpuset_has(isolated, (unsigned)task.cpu))
			note_name(&names, &count, task.comm);
	}
	closedir(dir);
	struct doctor_check *check =
		doctor_add(doctor, "threads on isolated CPUs", DOCTOR_OK, "%u%s%s%s", count,
			   count ? ": " : "", str_text(&names), count > NAMES_SHOWN ? " ..." : "");
	doctor_why(check, "processes that ran there last: they should be those that the CPUs were "
			  "isolated for");
	str_fini(&names);
}

void doctor_isolation(struct doctor *doctor)
{
	struct cpuset isolated;

	check_isolation(doctor, &isolated);
	if (cpuset_count(&isolated) > 0) {
		check_isolated_irqs(doctor, &isolated);
		check_isolated_threads(doctor, &isolated);
	}
}
