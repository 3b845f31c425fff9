/*
 * Writes perf.data, file mode, as perf reads it (layout:
 * tools/perf/Documentation/perf.data-file-format.txt of the kernel; docs/formats/perf-data.md).
 *
 * The file is readable at any moment: header, attributes and ids come first, records are appended,
 * and the header's data size is brought up to date about once a second (writer_sync). Until
 * writer_finish() the features (host, command line, kernel symbols) are missing, as after a kill
 * -9.
 *
 * With compression, records are packed into PERF_RECORD_COMPRESSED records of one zstd stream.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/str.h"

struct writer_event {
	struct perf_event_attr attr;
	const char *name;
	const uint64_t *ids; /* one per file descriptor of the event */
	uint32_t id_count;
};

/* Feature bits of the format; perf knows them by these numbers. */
enum perf_feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_TOTAL_MEM = 10,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCKID = 23,
	FEATURE_BPF_PROG_INFO = 25,
	FEATURE_BPF_BTF = 26,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29,
	FEATURE_CULPRIT = 250, /* ours; perf skips bits it does not know */
	FEATURE_CULPRIT_STACKS = 251,
	FEATURE_CULPRIT_VDSO = 252,
};

struct writer;

/* Creates path (a regular file that is there is kept as path.old). zstd_level 0: no compression. */
int writer_open(const char *path, const struct writer_event *events, uint32_t event_count,
		int zstd_level, size_t ring_bytes, struct writer **ret, struct err *err);
/* Frees without finishing: what was written stays readable. */
void writer_close(struct writer *writer);
/* Removes the file and puts the old one back; writer_close() follows. */
void writer_discard(struct writer *writer);

/* Appends whole records, given in pieces (a record may span two pieces). The errors of write(2). */
int writer_records(struct writer *writer, const struct iovec *pieces, unsigned count);
/* One record from a header and the bytes behind it; sizes are filled in and rounded up to 8. */
int writer_record(struct writer *writer, uint32_t type, uint16_t misc, const void *body,
		  size_t size);
/* Everything written so far is ordered before everything later, up to one round: lets readers sort
 * in bounded memory. */
int writer_finished_round(struct writer *writer);
/* Writes the data size into the header when a second has passed since the last time. */
int writer_sync(struct writer *writer);

/* Adds a feature section for writer_finish(); bytes are copied. */
int writer_feature(struct writer *writer, enum perf_feature feature, const void *bytes,
		   size_t size);
/* The usual features: hostname, release, arch, CPUs, command line, events, sample times, clock. */
int writer_standard_features(struct writer *writer, int argc, char **argv);
/* Appends the features and completes the header. */
int writer_finish(struct writer *writer);

uint64_t writer_bytes(const struct writer *writer);     /* size of the file so far */
uint64_t writer_raw_bytes(const struct writer *writer); /* records before compression */
