/*
 * The text of the kernel's trace files ("trace", "trace_pipe") and of trace-cmd report, turned into
 * records.
 *
 * Lines are read from the right: the name of a task may hold anything. Events that are no part of
 * latency measurement are counted and passed over. Where the noise events' own start times come
 * from another clock than the time stamps (the top-level buffer of an unstable sched_clock does
 * that), they are moved onto the time stamps' clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "latency/record.h"

struct trace_text_stats {
	uint64_t records;
	uint64_t other_events;    /* events that say nothing about latency */
	uint64_t bad_lines;       /* lines of no known form */
	uint64_t first_bad_line;  /* 1 is the first line of the text; 0 none */
	uint64_t first_backwards; /* line at which a CPU's time goes back: pieces of traces; 0 none
				   */
	int64_t clock_offset_ns;  /* taken off the noise events' start times, 0: same clock */
};

/* Whether a line has the form "comm-pid [cpu] flags time: event". */
bool trace_text_line(const char *line, size_t len);

/* 0, or what the sink said. Never fails for the text's sake. */
int trace_text_read(const char *text, size_t size, struct latency_sink *sink,
		    struct trace_text_stats *ret);
