#include "events/builtin-metrics.h"

#include <string.h>
#include <strings.h>

#include "base/util.h"

#define TABLE(name_, groups_, formula_, unit_, digits_, help_)                             \
	.metric = {.name = name_,                                                          \
		   .title = name_,                                                         \
		   .groups = groups_,                                                      \
		   .formula = formula_,                                                    \
		   .unit = unit_,                                                          \
		   .description = help_,                                                   \
		   .parent = "",                                                           \
		   .threshold = "",                                                        \
		   .domain = "",                                                           \
		   .sample = "",                                                           \
		   .pmu = "",                                                              \
		   .scale = 1},                                                            \
	.digits = digits_

/* Only when it is asked for; beside its first event; beside it, and never above 100 %. */
#define ASKED(...)                 \
	{                          \
		TABLE(__VA_ARGS__) \
	}
#define BESIDE(...)                                \
	{                                          \
		TABLE(__VA_ARGS__), .beside = true \
	}
#define SHARE(...)                                                \
	{                                                         \
		TABLE(__VA_ARGS__), .beside = true, .share = true \
	}

#define MISSES(name_, misses_, accesses_, unit_, what_)                                          \
	SHARE(name_ "_miss_rate", "Misses;Cache", misses_ " / " accesses_ " * 100", unit_, 2,    \
	      what_ ", as a share of the accesses."),                                            \
		BESIDE(name_ "_mpki", "MPKI;Cache", misses_ " / instructions * 1000", "MPKI", 2, \
		       what_ ", per 1000 instructions.")

/* Of an event with several metrics beside it, they are shown in this order. Clocks count ns. */
const struct builtin_metric builtin_metrics[] = {
	BESIDE("ipc", "General", "instructions / cycles", "insn per cycle", 2,
	       "Instructions retired in one cycle."),
	ASKED("cpi", "General", "cycles / instructions", "cycles per insn", 2,
	      "Cycles that one instruction takes."),
	BESIDE("ghz", "General", "cycles / task\\-clock", "GHz", 3, "Clock rate while running."),
	BESIDE("cpus_utilized", "General", "task\\-clock / (duration_time * 1e9)", "CPUs utilized",
	       3, "CPUs kept busy on average."),
	SHARE("branch_miss_rate", "Misses;Branch", "branch\\-misses / branches * 100",
	      "% of all branches", 2, "Branches predicted wrong."),
	BESIDE("branch_mpki", "MPKI;Branch", "branch\\-misses / instructions * 1000", "MPKI", 2,
	       "Wrong predictions per 1000 instructions."),
	MISSES("cache", "cache\\-misses", "cache\\-references", "% of all cache refs",
	       "Misses of the last-level cache"),
	MISSES("l1d", "L1\\-dcache\\-load\\-misses", "L1\\-dcache\\-loads",
	       "% of all L1-dcache accesses", "Loads that miss the first data cache"),
	MISSES("llc", "LLC\\-load\\-misses", "LLC\\-loads", "% of all LL-cache accesses",
	       "Loads that miss the last cache"),
	MISSES("l1i", "L1\\-icache\\-load\\-misses", "L1\\-icache\\-loads",
	       "% of all L1-icache accesses", "Instruction fetches that miss the first cache"),
	MISSES("dtlb", "dTLB\\-load\\-misses", "dTLB\\-loads", "% of all dTLB cache accesses",
	       "Loads whose address translation misses"),
	MISSES("itlb", "iTLB\\-load\\-misses", "iTLB\\-loads", "% of all iTLB cache accesses",
	       "Instruction address translations that miss"),
	ASKED("page_fault_rate", "System", "page\\-faults / task\\-clock * 1e9", "faults/sec", 2,
	      "Page faults per second of CPU time."),
	ASKED("context_switch_rate", "System", "context\\-switches / task\\-clock * 1e9",
	      "switches/sec", 2, "Switches per second of CPU time."),
};
const size_t builtin_metrics_len = ARRAY_LEN(builtin_metrics);

const struct builtin_metric *builtin_metric_find(const char *name)
{
	for (size_t i = 0; i < builtin_metrics_len; i++)
		if (strcasecmp(builtin_metrics[i].metric.name, name) == 0)
			return &builtin_metrics[i];
	return NULL;
}

bool metric_in_group(const struct metrics *metrics, const struct metric *metric, const char *group)
{
	size_t len = strlen(group);

	for (const char *at = metric->groups; *at != '\0';) {
		size_t word = strcspn(at, ";");

		if (word == len && strncasecmp(at, group, len) == 0)
			return true;
		at += word + (at[word] == ';');
	}
	for (size_t i = 0; metrics && i < metrics->members.len; i++)
		if (strcasecmp(metrics->members.data[i].from, group) == 0 &&
		    strcasecmp(metrics->members.data[i].to, metric->name) == 0)
			return true;
	return false;
}
