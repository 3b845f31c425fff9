/* The names that every kernel knows: hardware, software, cache and tool events. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "events/parse.h"

struct generic_event {
	const char *name, *alias; /* alias: NULL none */
	enum event_kind kind;
	uint32_t type;   /* perf_event_attr.type */
	uint64_t config; /* perf_event_attr.config; EVENT_TOOL: enum event_tool */
	const char *description;
};

extern const struct generic_event generic_events[];
extern const unsigned generic_events_len;

/* Case is ignored. NULL when the name is not generic. */
const struct generic_event *generic_event_find(const char *name);

/* "L1-dcache-load-misses" and every other spelling perf takes. 0 and the config, or -ENOENT. */
int cache_event_parse(const char *name, uint64_t *ret_config);

/* The i-th cache event that makes sense (level, operation, result), from 0; false past the last. */
bool cache_event_get(unsigned i, char *buf, size_t size, uint64_t *ret_config);
/* One sentence. */
void cache_event_describe(uint64_t config, struct str *out);
