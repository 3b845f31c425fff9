/* The lines of perf script, taken apart. Texts are borrowed from the input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	const char *at;
	size_t len;
};

struct script_head {
	struct span comm, event, rest; /* rest: behind the event's colon */
	int64_t pid, tid;              /* -1: not told */
	uint64_t period;               /* 0: not told */
	bool timed;
};

struct script_frame {
	uint64_t address;
	struct span symbol, object; /* symbol: without +0xoffset; both may be "[unknown]" */
	bool inlined;
};

bool script_head(struct span line, struct script_head *ret);
bool script_frame(struct span line, struct script_frame *ret);
/* A source position ("file.c:12") or a part of an annotation that perf prints among frames. */
bool script_source(struct span line);
/* The next line without its end; false at the end. */
bool script_line(struct span *text, struct span *ret);

static inline bool span_is(struct span span, const char *text)
{
	return span.len == __builtin_strlen(text) && __builtin_memcmp(span.at, text, span.len) == 0;
}
