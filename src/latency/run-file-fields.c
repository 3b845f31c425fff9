#include <string.h>

#include "base/util.h"
#include "latency/run-file-internal.h"

#define TABLE(name)                                                      \
	const struct field_table name##_fields = {.fields = name##_rows, \
						  .count = ARRAY_LEN(name##_rows)}

static const struct field run_rows[] = {
	FIELD(FIELD_NAME, struct latency_run, engine_reason),
	FIELD(FIELD_NAME, struct latency_run, clock),
	FIELD(FIELD_NAME, struct latency_run, source),
	FIELD(FIELD_POSITIVE, struct latency_run, period_ns),
	FIELD(FIELD_POSITIVE, struct latency_run, runtime_ns),
	FIELD(FIELD_POSITIVE, struct latency_run, threshold_ns),
	FIELD(FIELD_POSITIVE, struct latency_run, started_realtime_ns),
	FIELD(FIELD_POSITIVE, struct latency_run, duration_ns),
	FIELD(FIELD_BOOL, struct latency_run, stopped),
	FIELD(FIELD_U64, struct latency_run, lost_records),
	FIELD(FIELD_U64, struct latency_run, ring_drops),
	FIELD(FIELD_U64, struct latency_run, recursion_misses),
	FIELD(FIELD_U64, struct latency_run, unknown_lines),
	FIELD(FIELD_BOOL, struct latency_run, lost_uncounted),
	FIELD(FIELD_U64, struct latency_run, joined_sources),
};
TABLE(run);

static const struct field limit_rows[] = {
	FIELD(FIELD_POSITIVE, struct latency_limits, irq_ns),
	FIELD(FIELD_POSITIVE, struct latency_limits, thread_ns),
	FIELD(FIELD_POSITIVE, struct latency_limits, single_ns),
	FIELD(FIELD_POSITIVE, struct latency_limits, total_ns),
};
TABLE(limit);

static const struct field cpu_rows[] = {
	FIELD(FIELD_U64, struct latency_cpu, periods),
	FIELD(FIELD_POSITIVE, struct latency_cpu, runtime_ns),
	FIELD(FIELD_U64, struct latency_cpu, noise_ns),
	FIELD(FIELD_U64, struct latency_cpu, max_noise_ns),
	FIELD(FIELD_U64, struct latency_cpu, max_single_ns),
	FIELD(FIELD_U64, struct latency_cpu, unexplained_inside_ns),
	FIELD(FIELD_TIME, struct latency_cpu, steal_ns),
	FIELD(FIELD_U64, struct latency_cpu, steal_count),
	FIELD(FIELD_U64, struct latency_cpu, steal_max_ns),
	FIELD(FIELD_TIME, struct latency_cpu, smi_count),
	FIELD(FIELD_TIME, struct latency_cpu, max_from_idle_ns),
	FIELD(FIELD_U64, struct latency_cpu, lost),
};
TABLE(cpu);

/* What H of the contract does not say. */
static const struct field series_rows[] = {
	FIELD(FIELD_BOOL, struct latency_series, distribution),
	FIELD(FIELD_U64, struct latency_series, above_last),
	FIELD(FIELD_POSITIVE, struct latency_series, resolution_ns),
	FIELD(FIELD_U64, struct latency_series, negative),
	FIELD(FIELD_TIME, struct latency_series, current_ns),
	FIELD(FIELD_U64, struct latency_series, over_threshold),
};
TABLE(series);

static const struct field source_rows[] = {
	FIELD(FIELD_NAME, struct noise_source, name),
	FIELD(FIELD_INT, struct noise_source, number),
	FIELD(FIELD_NAME, struct noise_source, function),
	FIELD(FIELD_U64, struct noise_source, count),
	FIELD(FIELD_U64, struct noise_source, total_ns),
	FIELD(FIELD_UINT, struct noise_source, worst_cpu),
};
TABLE(source);

static const struct field verdict_rows[] = {
	FIELD(FIELD_UINT, struct latency_verdict, cpu),
	FIELD(FIELD_U64, struct latency_verdict, seq),
	FIELD(FIELD_TIME, struct latency_verdict, total_ns),
	FIELD(FIELD_TIME, struct latency_verdict, irq_latency_ns),
	FIELD(FIELD_TIME, struct latency_verdict, delay_ns),
	FIELD(FIELD_BOOL, struct latency_verdict, from_idle),
	FIELD(FIELD_BOOL, struct latency_verdict, handler_running),
	FIELD(FIELD_TIME, struct latency_verdict, timer_irq_ns),
	FIELD(FIELD_TIME, struct latency_verdict, blocking_ns),
	FIELD(FIELD_INT, struct latency_verdict, blocking_pid),
	FIELD(FIELD_NAME, struct latency_verdict, blocking_comm),
	FIELD(FIELD_NAME, struct latency_verdict, blocking_work),
	FIELD(FIELD_TIME, struct latency_verdict, return_ns),
	FIELD(FIELD_TIME, struct latency_verdict, steal_ns),
	FIELD(FIELD_TIME, struct latency_verdict, rest_ns),
	FIELD(FIELD_BOOL, struct latency_verdict, decided),
	FIELD(FIELD_NAME, struct latency_verdict, culprit),
	FIELD(FIELD_TIME, struct latency_verdict, culprit_ns),
	FIELD(FIELD_NAME, struct latency_verdict, why),
	FIELD(FIELD_NAME, struct latency_verdict, remedy),
	FIELD(FIELD_NAME, struct latency_verdict, command),
};
TABLE(verdict);

static const struct field part_rows[] = {
	FIELD(FIELD_NAME, struct latency_part, name),
	FIELD(FIELD_INT, struct latency_part, number),
	FIELD(FIELD_NAME, struct latency_part, function),
	FIELD(FIELD_TIME, struct latency_part, start_ns),
	FIELD(FIELD_TIME, struct latency_part, duration_ns),
};
TABLE(part);

int noise_class_find(const char *name)
{
	for (int i = 0; i < NOISE_CLASSES; i++)
		if (strcmp(noise_class_name((enum noise_class)i), name) == 0)
			return i;
	return -1;
}
