/*
 * Unwinding while recording: takes the kernel's records in the order of their times, follows what
 * the processes map, and rewrites samples that carry registers and stack bytes into samples that
 * carry a chain. Such a file is a small fraction of one with the bytes, and any reader understands
 * it.
 *
 * A chain that does not reach its root ends with context markers behind which no address follows
 * (PERF_CONTEXT_USER): one when the copied bytes end, two when nothing tells the caller. Readers
 * that do not know this skip them.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "symbols/symbols.h"

struct live;

struct live_stats {
	uint64_t stacks;           /* user stacks that were unwound; of these: */
	uint64_t cut;              /* leave the copied bytes */
	uint64_t lost;             /* end in code whose callers nothing tells */
	uint64_t by_frame_pointer; /* some frames were found so */
};

/* attr: as the kernel has it, with REGS_USER and STACK_USER. symbols: where objects are looked for;
 * NULL: the defaults. keep_copies: records stay as they are, stacks are counted only. */
int live_new(const struct perf_event_attr *attr, const struct symbols_options *symbols,
	     bool keep_copies, struct live **ret);
void live_free(struct live *live);
/* sample_max_stack of the attribute in such files: no chain ends because of its length. */
#define LIVE_MAX_STACK UINT16_MAX
/* The attribute for the file: how the records are that come out. */
void live_file_attr(struct perf_event_attr *attr);
/* The time of a record, 0 when it has none. size: of the whole record. */
uint64_t live_record_time(const struct live *live, const struct perf_event_header *record);
/* Appends the record, rewritten if it is a sample, to out. 0 or -ENOMEM. */
int live_record(struct live *live, const struct perf_event_header *record, struct str *out);

const struct live_stats *live_stats(const struct live *live);
/* The object in which most stacks were lost, and why; "" when none was. */
void live_explain(const struct live *live, struct str *out);
