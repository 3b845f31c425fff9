/* The writer's state, shared by writer.c (layout, records) and writer-features.c (what is known of
 * the host). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "sample/writer.h"

struct perf_section {
	uint64_t offset, size;
};

struct perf_file_header {
	uint64_t magic, size, attr_size;
	struct perf_section attrs, data, event_types;
	uint64_t features[4];
};

struct writer_feature {
	enum perf_feature feature;
	struct str bytes;
};

struct zstd_writer;

struct writer {
	int fd;
	char *path;
	bool kept_old; /* as path.old */
	int failed;    /* the first error of writing records: none are taken after it, as a
			* compressed stream does not go on behind a gap */
	struct perf_file_header header;
	struct writer_event *events;
	uint32_t event_count;
	uint64_t position, raw_bytes, synced_ns;
	size_t ring_bytes;
	int zstd_level;
	struct zstd_writer *zstd;
	struct str raw, packed;
	VEC(struct writer_feature) features;
};

/* Adds TRACING_DATA when tracepoints were recorded (writer-tracing.c). */
int writer_tracing_feature(struct writer *writer);
