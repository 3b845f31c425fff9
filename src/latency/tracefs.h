/*
 * The kernel's tracing file system, and one instance of it: a ring buffer of its own with its own
 * tracer, events, clock and switches.
 *
 * Paths are without the root that tests put before them, as the journal wants them. Files of an own
 * instance are written directly: they go with the instance. The global ones (osnoise/...,
 * tracing_thresh) are changed through the journal only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "latency/journal.h"

#define TRACEFS_PATH_BYTES 256

struct tracefs {
	const char *root; /* borrowed */
	char path[TRACEFS_PATH_BYTES];
};

/*
 * Where it is mounted. journal not NULL: mounts it when it is not, until the journal is restored.
 * -ENOENT with the remedy; -EPERM or -EACCES when it may not be used, with the reason.
 */
int tracefs_find(const char *root, struct journal *journal, struct tracefs *ret, struct err *err);

bool tracefs_has(const struct tracefs *tracefs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A whole file, NUL-terminated, owned by the caller. */
int tracefs_read(const struct tracefs *tracefs, char **ret_text, size_t *ret_size, struct err *err,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The value of a small file: the choice in brackets, or its text without blanks around. */
int tracefs_value(const struct tracefs *tracefs, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int tracefs_write(const struct tracefs *tracefs, const char *value, struct err *err,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* A descriptor, or a negative errno. */
int tracefs_open(const struct tracefs *tracefs, int flags, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Is the tracer one of this kernel's? */
bool tracefs_has_tracer(const struct tracefs *tracefs, const char *tracer);
/* Who runs one of the tracers that share the osnoise settings: true, the instance ("" the top one)
 * and its tracer. */
bool tracefs_osnoise_user(const struct tracefs *tracefs, char *instance, size_t instance_bytes,
			  char *tracer, size_t tracer_bytes);

/* An instance: tracefs->path + "/instances/NAME". */
struct trace_instance {
	struct tracefs at; /* its folder */
	char name[64];
};

/* "culprit-BOOT-PID" with suffix, through the journal. */
int trace_instance_make(const struct tracefs *tracefs, struct journal *journal, const char *suffix,
			struct trace_instance *ret, struct err *err);
/* Sets the clock; -EINVAL names the clocks there are. */
int trace_instance_clock(const struct trace_instance *instance, const char *clock, struct err *err);
/* Turns an event ("sched", "sched_switch") or a whole system (event NULL) on, with an optional
 * filter and trigger. */
int trace_instance_event(const struct trace_instance *instance, const char *system,
			 const char *event, const char *filter, const char *trigger,
			 struct err *err);
/* Records on these CPUs only. */
int trace_instance_cpus(const struct trace_instance *instance, const struct cpuset *cpus,
			struct err *err);
bool trace_instance_on(const struct trace_instance *instance); /* still recording */
