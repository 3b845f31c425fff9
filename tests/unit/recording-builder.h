/* Builds small perf.data files byte by byte, in either byte order, for the tests of the reader. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct builder {
	struct str bytes;
	bool big;       /* big-endian */
	bool monotonic; /* times are of CLOCK_MONOTONIC; little-endian files only */
	bool inherit;
	unsigned events; /* 0 means 1 */
	uint64_t sample_type, read_format;
	size_t record, data; /* where the open record begins; and the first one */
};

void put8(struct builder *b, uint8_t v);
void put16(struct builder *b, uint16_t v);
void put32(struct builder *b, uint32_t v);
void put64(struct builder *b, uint64_t v);
void put_text(struct builder *b, const char *text, size_t size); /* padded with zeros to size */
void patch64(struct builder *b, size_t at, uint64_t v);

void record_begin(struct builder *b, uint32_t type, uint16_t misc);
void record_end(struct builder *b);
/* pid, tid and time at the end of records other than samples. */
void put_sample_id(struct builder *b, uint32_t pid, uint32_t tid, uint64_t time);

/* A 104-byte header, 64-byte attributes of cpu-clock, page-faults, ... with the ids 7, 8, ...;
 * records follow. */
void file_begin(struct builder *b, uint64_t sample_type);
/* Completes the header's data size. */
void file_end(struct builder *b);
/* After file_end(): the table of sections, then the sections, ascending; the features' bits in the
 * header. Returns where the first section begins. */
size_t put_features(struct builder *b, const unsigned *features, size_t count,
		    void (*fill)(struct builder *b, unsigned feature));
/* The 16-byte header of pipe mode and a HEADER_ATTR record. */
void pipe_begin(struct builder *b, uint64_t sample_type);

void put_comm(struct builder *b, uint32_t pid, uint32_t tid, const char *comm, bool exec,
	      uint64_t time);
void put_fork(struct builder *b, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid,
	      uint64_t time);
void put_mmap(struct builder *b, uint16_t misc, uint32_t pid, uint64_t start, uint64_t len,
	      uint64_t pgoff, const char *path, uint64_t time);
/* The chain's entries end with 0. */
void put_sample(struct builder *b, uint16_t misc, uint32_t pid, uint32_t tid, uint64_t time,
		uint64_t ip, const uint64_t *chain);

/* The bytes as a file: the same name each time in one process, gone at its end. */
const char *write_recording(const void *data, size_t size);
