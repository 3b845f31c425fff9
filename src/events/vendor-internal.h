/* The two sources behind vendor.h. */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "events/vendor.h"

/* --- the user's files ------------------------------------------------------------------------ */

struct file_event { /* all texts live in the arena */
	const char *name, *description, *counters, *table, *pmu, *terms;
	bool deprecated;
	uint32_t next; /* the same name for another PMU: its index and one, 0 none */
};

struct vendor_files {
	VEC(struct file_event) events;
	struct hash_index index; /* by canonical name: capitals, '.' for ':' */
	struct arena arena;
	struct str problems; /* files that could not be read, "; " between them */
};

/*
 * Calls take for every file of events or of metrics in a directory that belongs to the CPU: by
 * mapfile.csv, else every file. cpu: a short name, NULL: model. pmu: of a hybrid's row, "" the core
 * PMU. A negative return ends it.
 */
enum vendor_dir {
	VENDOR_DIR_EVENTS,
	VENDOR_DIR_METRICS,
};

int vendor_dir_each(const char *dir, enum vendor_dir what, const struct host_cpu_model *model,
		    const char *cpu,
		    int (*take)(void *ctx, const char *path, const char *pmu,
				const struct host_cpu_model *model),
		    void *ctx, struct err *err);

/* Reads the directory. Files that are damaged or of other CPUs are passed over, and told in
 * problems. -ENOENT and words when the directory cannot be read. */
int vendor_files_read(struct vendor_files *files, const char *dir,
		      const struct host_cpu_model *model, const char *cpu, struct err *err);
void vendor_files_fini(struct vendor_files *files);
const struct file_event *vendor_files_find(const struct vendor_files *files, const char *name);

/* The events of one JSON document (see vendor-files.c for the layouts); for the fuzzer too. */
int vendor_files_parse(struct vendor_files *files, const char *text, size_t size, const char *table,
		       const char *pmu, const struct host_cpu_model *model, struct err *err);

/* --- libpfm4 --------------------------------------------------------------------------------- */

struct pfm;

/* Loads the library. -ENOENT with words when it is not installed or knows no table of the CPU. cpu
 * NULL: the CPU found. */
int pfm_open(const char *uarch, const char *cpu, struct pfm **ret, struct err *err);
void pfm_close(struct pfm *pfm);
int pfm_find(struct pfm *pfm, const char *name, struct vendor_event *ret, struct err *err);
int pfm_each(struct pfm *pfm, int (*fn)(void *arg, const struct vendor_event *event), void *arg);
/* "skl, skx ...": the names --cpu takes. */
void pfm_cpu_names(struct str *out);
