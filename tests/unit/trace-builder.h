/* Ring buffer pages and event formats written by hand, in either byte order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct trace_builder {
	uint8_t page[4096];
	size_t at; /* behind the header */
	bool big;
};

/* events/header_page, and the formats by system and text; the last is none of the decoder's. */
extern const char trace_page_format[];
extern const char *const trace_formats[][2];
extern const size_t trace_format_count;

/* size bytes of value at offset at behind the page's header. */
void trace_put(struct trace_builder *b, size_t at, uint64_t value, size_t size);
/* The first word of a record. */
void trace_word(struct trace_builder *b, unsigned type, uint32_t delta);
/* A record with its common part; returns where its bytes start. */
size_t trace_record(struct trace_builder *b, uint32_t delta, unsigned id, uint8_t flags, int pid,
		    size_t size);
/* The page's header: its time, and flags of the commit counter. */
void trace_finish(struct trace_builder *b, uint64_t time_ns, uint64_t commit_flags);

void trace_timerlat(struct trace_builder *b, uint32_t delta, int pid, unsigned seq, int context,
		    uint64_t latency_ns);
void trace_irq_noise(struct trace_builder *b, uint32_t delta, const char *name, int vector,
		     uint64_t start_ns, uint64_t duration_ns);
void trace_thread_noise(struct trace_builder *b, uint32_t delta, const char *comm, int pid,
			uint64_t start_ns, uint64_t duration_ns);
/* An event whose last field is a function's address at an offset. */
void trace_function_event(struct trace_builder *b, unsigned id, uint8_t flags, int pid,
			  size_t offset, uint64_t function);

/*
 * A trace.dat of two CPUs with the formats above: a page of samples each. version: '6', or '7' with
 * compression "none", "zlib" or "zstd".
 */
void trace_dat_build(char version, const char *compression, bool big, struct str *out);
