/*
 * trace.dat files, as trace-cmd and KernelShark read them: written from a frozen instance or
 * from latency records (version 6), and read back into latency records (versions 6 and 7, with zlib
 * and zstd). Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).
 *
 * A file holds the formats of its events, so that it can be read on any machine: of the events that
 * the instance has enabled and of all of the kernel's own (ftrace:...), kernel function names,
 * thread names and the pages of each CPU's ring buffer as they were.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "latency/record.h"
#include "latency/tracefs.h"

/* Writes what the instance holds and empties it. tracefs is the file system it lies in. */
int trace_dat_write(const struct tracefs *tracefs, const struct trace_instance *instance,
		    const char *path, struct err *err);

/*
 * Writes records that each() hands on, time-ordered per CPU, as the events that the kernel's
 * tracers would have made of them. clock: of their times ("mono"). 0, or what each() or the file
 * failed with.
 */
int trace_dat_write_records(int (*each)(void *arg, struct latency_sink *sink), void *arg,
			    const char *clock, const char *path, struct err *err);

/*
 * Hands on the records of the latency tracers (trace-decode.h tells which), one CPU after the
 * other; returns how many, 0 when the file holds none. Times are 0 where the trace clock does not
 * count nanoseconds. -EBADMSG names the offset of the damage; records before it were handed on.
 */
int trace_dat_read(const char *path, struct latency_sink *sink, struct err *err);
/* The same from memory. */
int trace_dat_parse(const void *data, size_t size, struct latency_sink *sink, struct err *err);
