/*
 * Vendor events: the names of the CPU's manual.
 *
 * Two sources: the user's directory of vendor JSON files (intel/perfmon, Arm telemetry and perf's
 * pmu-events layouts), then libpfm4's tables, loaded by dlopen only when a name is asked for that
 * the user's files do not have.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/host.h"

struct vendor;

struct vendor_event {
	const char *name;
	const char *description; /* "" when there is none */
	const char *counters;    /* "0,1,2,3", "fixed 1"; "" not known */
	const char *table;       /* "libpfm4 skl", or the file */
	const char *pmu;         /* prefix of the PMUs that have it; "" the core PMU */
	const char *
		terms; /* "event=0xd1,umask=0x08": to be laid out by the PMU's format; NULL: attr */
	const struct perf_event_attr *attr; /* complete (libpfm4); NULL: terms */
	bool deprecated;
	uint32_t next; /* for vendor_next() */
};

struct vendor_options {
	const struct host *host;
	const struct host_cpu_model *model;
	const char *cpu; /* short name of another CPU; NULL: model's */
	const char *dir; /* user's files; "" none */
	bool no_libpfm;
};

/* Reads nothing yet. */
int vendor_new(const struct vendor_options *options, struct vendor **ret);
void vendor_free(struct vendor *vendor);

/*
 * Finds a name in either spelling, case ignored: "mem_load_retired.l1_miss",
 * "MEM_LOAD_RETIRED:L1_MISS", libpfm4's attributes ("INST_RETIRED:ANY_P:c=1:u") included. The event
 * lives until the next call. -ENOENT: no table has it; err then says which tables were asked, or
 * why an attribute is wrong (-EINVAL).
 */
int vendor_find(struct vendor *vendor, const char *name, struct vendor_event *ret, struct err *err);

/* The same name for another PMU (the other kind of core of a hybrid CPU): true and *event replaced.
 */
bool vendor_next(struct vendor *vendor, struct vendor_event *event);

/* Every event, each with its unit masks, once. fn's negative return stops and is returned. */
int vendor_each(struct vendor *vendor, int (*fn)(void *arg, const struct vendor_event *event),
		void *arg, struct err *err);
