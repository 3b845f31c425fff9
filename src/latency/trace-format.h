/*
 * Layouts of trace records: event format files ("format" below tracefs events/SYSTEM/EVENT, also
 * inside trace.dat) and pages of the ring buffer. Offsets always come from the formats: they differ
 * from kernel to kernel (PREEMPT_RT has a longer common part).
 *
 * Everything here is bounds-checked: trace.dat files come from anywhere. Page layout: the kernel's
 * Documentation/trace/ring-buffer-design.rst and events/header_{page,event}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TRACE_FIELDS_MAX 48 /* of one event; further ones are ignored */

struct trace_field {
	char name[32];
	uint32_t offset, size; /* size 0: to the end of the record */
	bool is_signed, data_loc;
};

struct trace_format {
	char system[40], name[64];
	uint32_t id;
	unsigned field_count;
	struct trace_field fields[TRACE_FIELDS_MAX];
};

/* -EBADMSG when it is not a format. */
int trace_format_parse(const char *text, size_t size, const char *system, struct trace_format *ret,
		       struct err *err);
/* NULL: there is none of this name. */
const struct trace_field *trace_format_field(const struct trace_format *format, const char *name);

/* One record's bytes, and how its numbers are stored. */
struct trace_bytes {
	const uint8_t *data;
	size_t size;
	bool swap;
};

/* An integer of 1, 2, 4 or 8 bytes, sign-extended. False: it does not lie inside the record. */
bool trace_field_number(const struct trace_field *field, const struct trace_bytes *bytes,
			uint64_t *ret);
/* A text in place or behind a __data_loc, cut to buf. False: it does not lie inside the record. */
bool trace_field_text(const struct trace_field *field, const struct trace_bytes *bytes, char *buf,
		      size_t size);

/* The header of a page, from events/header_page. */
struct trace_page_layout {
	unsigned commit_offset, commit_size, data_offset;
	size_t page_size;
	bool swap;       /* the other byte order than this machine's */
	bool big_endian; /* of the file: bit fields start at the other end */
};

/* big_endian: of the machine that wrote the pages. */
int trace_page_layout_parse(const char *text, size_t size, bool big_endian,
			    struct trace_page_layout *ret, struct err *err);

/* Walks the records of one page. */
struct trace_page {
	const struct trace_page_layout *layout;
	const uint8_t *data;
	size_t size, pos;
	uint64_t time_ns;     /* of the latest record */
	bool lost;            /* records are missing before this page */
	uint64_t lost_events; /* how many, 0 unknown */
};

/* bytes: a whole page, or as much as its commit counter says. -EBADMSG. */
int trace_page_open(const struct trace_page_layout *layout, const void *bytes, size_t size,
		    struct trace_page *ret);
/* 1 and the record, 0 at the end, -EBADMSG. */
int trace_page_next(struct trace_page *page, struct trace_bytes *ret);
