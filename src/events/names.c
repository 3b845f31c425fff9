/*
 * Generic names and cache names. Spellings from perf-list(1), codes from linux/perf_event.h. A
 * cache name is CACHE[-OP][-RESULT], OP and RESULT in either order; a missing operation is a load,
 * a missing result is an access.
 */
#include "events/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define HW(name_, alias_, config_, text_)                                                         \
	{                                                                                         \
		name_, alias_, EVENT_HARDWARE, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config_, text_ \
	}
#define SW(name_, alias_, config_, text_)                                         \
	{                                                                         \
		name_, alias_, EVENT_SOFTWARE, PERF_TYPE_SOFTWARE, config_, text_ \
	}
#define TOOL(name_, tool_, text_)                                         \
	{                                                                 \
		name_, NULL, EVENT_TOOL, PERF_TYPE_SOFTWARE, tool_, text_ \
	}

#define SW_CGROUP_SWITCHES 11 /* since Linux 5.13, not in older headers */

const struct generic_event generic_events[] = {
	HW("cycles", "cpu-cycles", CPU_CYCLES,
	   "Core cycles while not halted; they follow the frequency."),
	HW("instructions", NULL, INSTRUCTIONS, "Instructions retired."),
	HW("cache-references", NULL, CACHE_REFERENCES,
	   "Accesses to the last-level cache (what counts differs between CPUs)."),
	HW("cache-misses", NULL, CACHE_MISSES,
	   "Misses of the last-level cache (what counts differs between CPUs)."),
	HW("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "Branches retired."),
	HW("branch-misses", NULL, BRANCH_MISSES, "Branches whose prediction was wrong."),
	HW("bus-cycles", NULL, BUS_CYCLES, "Cycles of the bus clock."),
	HW("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND,
	   "Cycles in which the front end issued nothing."),
	HW("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND,
	   "Cycles in which the back end took nothing."),
	HW("ref-cycles", NULL, REF_CPU_CYCLES,
	   "Cycles while not halted at a constant rate, whatever the frequency."),
	SW("cpu-clock", NULL, PERF_COUNT_SW_CPU_CLOCK, "Time of the CPU clock, ns."),
	SW("task-clock", NULL, PERF_COUNT_SW_TASK_CLOCK, "Time the task ran, ns."),
	SW("page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, "Page faults, minor and major."),
	SW("context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, "Switches to another task."),
	SW("cpu-migrations", "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "Moves to another CPU."),
	SW("minor-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MIN, "Page faults served from memory."),
	SW("major-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	   "Page faults that had to read from a device."),
	SW("alignment-faults", NULL, PERF_COUNT_SW_ALIGNMENT_FAULTS,
	   "Unaligned accesses mended by the kernel."),
	SW("emulation-faults", NULL, PERF_COUNT_SW_EMULATION_FAULTS,
	   "Instructions emulated by the kernel."),
	SW("dummy", NULL, PERF_COUNT_SW_DUMMY,
	   "Counts nothing; carries side records (mmap, comm) while recording."),
	SW("bpf-output", NULL, PERF_COUNT_SW_BPF_OUTPUT, "Data that BPF programs emit."),
	SW("cgroup-switches", NULL, SW_CGROUP_SWITCHES, "Switches to a task of another cgroup."),
	TOOL("duration_time", TOOL_DURATION_TIME, "Wall time of the measurement, ns."),
	TOOL("user_time", TOOL_USER_TIME, "User time of the command, ns."),
	TOOL("system_time", TOOL_SYSTEM_TIME, "System time of the command, ns."),
};

const unsigned generic_events_len = ARRAY_LEN(generic_events);

const struct generic_event *generic_event_find(const char *name)
{
	for (unsigned i = 0; i < generic_events_len; i++) {
		const struct generic_event *event = &generic_events[i];

		if (strcasecmp(event->name, name) == 0 ||
		    (event->alias && strcasecmp(event->alias, name) == 0))
			return event;
	}
	return NULL;
}

/* --- cache names ----------------------------------------------------------------------------- */

#define SPELLINGS 8

/* The first spelling of each value is the one that is printed. */
static const char *const caches[PERF_COUNT_HW_CACHE_MAX][SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_L1D] = {"L1-dcache", "l1-d", "l1d", "L1-data"},
	[PERF_COUNT_HW_CACHE_L1I] = {"L1-icache", "l1-i", "l1i", "L1-instruction"},
	[PERF_COUNT_HW_CACHE_LL] = {"LLC", "L2"},
	[PERF_COUNT_HW_CACHE_DTLB] = {"dTLB", "d-tlb", "Data-TLB"},
	[PERF_COUNT_HW_CACHE_ITLB] = {"iTLB", "i-tlb", "Instruction-TLB"},
	[PERF_COUNT_HW_CACHE_BPU] = {"branch", "branches", "bpu", "btb", "bpc"},
	[PERF_COUNT_HW_CACHE_NODE] = {"node"},
};

static const char *const ops[PERF_COUNT_HW_CACHE_OP_MAX][SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = {"load", "loads", "read"},
	[PERF_COUNT_HW_CACHE_OP_WRITE] = {"store", "stores", "write"},
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = {"prefetch", "prefetches", "speculative-read",
					     "speculative-load"},
};

static const char *const results[PERF_COUNT_HW_CACHE_RESULT_MAX][SPELLINGS] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = {"refs", "Reference", "ops", "access"},
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = {"misses", "miss"},
};

/* The longest spelling that text begins with and that ends at '-' or the end; its length, or 0. */
static size_t match(const char *text, const char *const (*table)[SPELLINGS], unsigned count,
		    unsigned *ret_value)
{
	size_t best = 0;

	for (unsigned value = 0; value < count; value++)
		for (unsigned i = 0; i < SPELLINGS && table[value][i]; i++) {
			size_t len = strlen(table[value][i]);

			if (len > best && strncasecmp(text, table[value][i], len) == 0 &&
			    (text[len] == '-' || text[len] == '\0')) {
				best = len;
				*ret_value = value;
			}
		}
	return best;
}

int cache_event_parse(const char *name, uint64_t *ret_config)
{
	unsigned cache = 0, op = PERF_COUNT_HW_CACHE_OP_READ,
		 result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	bool have_op = false, have_result = false;
	size_t len = match(name, caches, ARRAY_LEN(caches), &cache);
	const char *at = name + len;

	if (len == 0)
		return -ENOENT;
	while (*at == '-') {
		at++;
		if (!have_op && (len = match(at, ops, ARRAY_LEN(ops), &op)) > 0)
			have_op = true;
		else if (!have_result &&
			 (len = match(at, results, ARRAY_LEN(results), &result)) > 0)
			have_result = true;
		else
			return -ENOENT;
		at += len;
	}
	if (*at != '\0')
		return -ENOENT;
	*ret_config = cache | op << 8 | result << 16;
	return 0;
}

/* Operations that a cache can see: nothing stores to an instruction cache. */
static const uint8_t valid_ops[PERF_COUNT_HW_CACHE_MAX] = {
	[PERF_COUNT_HW_CACHE_L1D] = 7,  [PERF_COUNT_HW_CACHE_L1I] = 1 | 4,
	[PERF_COUNT_HW_CACHE_LL] = 7,   [PERF_COUNT_HW_CACHE_DTLB] = 7,
	[PERF_COUNT_HW_CACHE_ITLB] = 1, [PERF_COUNT_HW_CACHE_BPU] = 1,
	[PERF_COUNT_HW_CACHE_NODE] = 7,
};

bool cache_event_get(unsigned i, char *buf, size_t size, uint64_t *ret_config)
{
	for (unsigned cache = 0; cache < PERF_COUNT_HW_CACHE_MAX; cache++)
		for (unsigned op = 0; op < PERF_COUNT_HW_CACHE_OP_MAX; op++)
			for (unsigned result = 0; result < PERF_COUNT_HW_CACHE_RESULT_MAX;
			     result++) {
				if (!(valid_ops[cache] >> op & 1) || i-- > 0)
					continue;
				if (result == PERF_COUNT_HW_CACHE_RESULT_MISS)
					snprintf(buf, size, "%s-%s-misses", caches[cache][0],
						 ops[op][0]);
				else
					snprintf(buf, size, "%s-%s", caches[cache][0], ops[op][1]);
				*ret_config = cache | op << 8 | result << 16;
				return true;
			}
	return false;
}

void cache_event_describe(uint64_t config, struct str *out)
{
	static const char *const cache_texts[] = {
		"the first-level data cache", "the first-level instruction cache",
		"the last-level cache",       "the data TLB",
		"the instruction TLB",        "the branch predictor",
		"memory of this NUMA node",
	};
	static const char *const op_texts[] = {"Loads", "Stores", "Prefetches"};
	unsigned cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;

	if (cache >= ARRAY_LEN(cache_texts) || op >= ARRAY_LEN(op_texts))
		return;
	str_printf(out, "%s %s %s.", op_texts[op], result ? "that missed" : "looked up in",
		   cache_texts[cache]);
}
