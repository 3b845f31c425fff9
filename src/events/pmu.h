/*
 * PMUs, as /sys/bus/event_source/devices describes them: their type number, the bit fields of their
 * config words, their named events, and the CPUs they live on. Format files: kernel
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/host.h"

/* config, config1, config2; config3 is newer than the oldest headers this is built with. */
#define PMU_CONFIG_WORDS 3

struct pmu_format {
	char *name;
	uint8_t word;  /* 0 config, 1 config1, 2 config2 */
	uint64_t mask; /* value bits go to its bits in ascending order */
};

struct pmu_alias {
	char *name;
	char *terms; /* "event=0x3c,umask=0x0"; a value "?" must be given by the user */
	double scale;
	char *unit; /* "" plain count */
	bool per_package, snapshot;
};

struct pmu {
	char *name;
	uint32_t type;
	bool core;    /* a PMU of CPU cores: has tasks, competes for counters */
	bool uncore;  /* has a cpumask: counts something beside the cores */
	bool assumed; /* not in sysfs: the architecture's format, so that text can be understood */
	bool has_cpus;
	struct cpuset cpus;
	bool loaded;                    /* formats and aliases were read */
	VEC(struct pmu_format) formats; /* sorted by name */
	VEC(struct pmu_alias) aliases;  /* sorted by name */
};

struct pmu_set {
	VEC(struct pmu) pmus; /* core PMUs first, then by name, numbers in order */
	unsigned core_count;
	bool hybrid; /* more than one kind of core */
};

/* Names, types and CPUs. A machine without any PMU directory gives an empty set. When no core PMU
 * is found one named "cpu" is assumed with the format of the model. */
int pmu_set_read(const struct host *host, const struct host_cpu_model *model, struct pmu_set *ret,
		 struct err *err);
void pmu_set_fini(struct pmu_set *set);
struct pmu *pmu_find(struct pmu_set *set, const char *name);
/*
 * True when text names this PMU in an event: its name, the name without "uncore_", a glob over it,
 * or either without the instance number behind the last '_' ("uncore_imc" is uncore_imc_0).
 */
bool pmu_matches(const struct pmu *pmu, const char *text);

/* Reads formats and aliases, once. */
int pmu_load(const struct host *host, struct pmu *pmu, struct err *err);
const struct pmu_format *pmu_format_find(const struct pmu *pmu, const char *name);
const struct pmu_alias *pmu_alias_find(const struct pmu *pmu, const char *name);

/* "config1:0-7,32-35" to word and mask. -EINVAL. */
int pmu_format_parse(const char *text, uint8_t *ret_word, uint64_t *ret_mask);
/* Spreads value over the mask; -ERANGE when it has more bits than the mask. */
int pmu_format_deposit(uint64_t mask, uint64_t value, uint64_t *word);
/* The largest value that fits. */
uint64_t pmu_format_max(uint64_t mask);
