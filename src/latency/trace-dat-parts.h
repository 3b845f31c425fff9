/*
 * The parts of a trace.dat that versions 6 and 7 have in common, and what is known of a file while
 * it is read. Every number of the file is untrusted; a part that is damaged is -EBADMSG, with the
 * byte in dat->err.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/vec.h"
#include "latency/kernel-names.h"
#include "latency/trace-decode.h"

enum dat_option_id {
	OPTION_DONE = 0,
	OPTION_BUFFER = 3,
	OPTION_TRACECLOCK = 4,
	OPTION_HEADER_INFO = 16,
	OPTION_FTRACE_EVENTS = 17,
	OPTION_EVENT_FORMATS = 18,
	OPTION_KALLSYMS = 19,
	OPTION_CMDLINES = 21,
};

enum compression {
	COMPRESSION_NONE,
	COMPRESSION_ZLIB,
	COMPRESSION_ZSTD,
};

/* The pages of one CPU. */
struct dat_extent {
	unsigned cpu;
	bool compressed;
	uint64_t offset, size;
};

struct dat_reading {
	struct reader file; /* at the start of the file; copied to read elsewhere */
	bool big_endian;
	enum compression compression;
	struct trace_page_layout layout;
	struct trace_decoder *decoder;
	struct kernel_names names;
	bool no_times;
	VEC(struct dat_extent) extents;
	uint64_t extents_bytes;
	VEC(uint64_t) buffers; /* offsets of further buffers, version 6 */
	uint64_t sections[OPTION_CMDLINES +
			  1]; /* offsets by the option that tells them, version 7 */
	struct err *err;
};

/* -EBADMSG with what, and where at stands. */
int dat_damaged(const struct dat_reading *dat, const struct reader *at, const char *what);
/* A block with its size, of so many bytes, in front; NULL: there is less. */
const uint8_t *dat_block(struct reader *r, unsigned size_bytes, size_t *ret_size);

/* The layout of pages and the decoder; the formats, functions and thread names go to it. */
int dat_read_header_info(struct dat_reading *dat, struct reader *r);
int dat_read_ftrace_formats(struct dat_reading *dat, struct reader *r);
int dat_read_event_formats(struct dat_reading *dat, struct reader *r);
int dat_read_functions(struct dat_reading *dat, struct reader *r);
int dat_read_comms(struct dat_reading *dat, struct reader *r);
void dat_take_clock(struct dat_reading *dat, const uint8_t *data, size_t size);
int dat_add_extent(struct dat_reading *dat, unsigned cpu, bool compressed, uint64_t offset,
		   uint64_t size);
