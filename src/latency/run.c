/*
 * Accounting: records become the report model. Every record is either counted here or of no concern
 * to the numbers (stacks, switches and work functions serve the analysis); nothing is dropped
 * silently.
 *
 * Counts of interruptions: the kernel's tracer and our engines tell them per period, exactly for
 * the time that was measured. Sources without periods (a trace that begins later, single events)
 * are counted record by record, so class_count starts that way and starts anew with the first
 * period.
 */
#include "latency/run.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/util.h"
#include "latency/analysis.h"
#include "latency/run-file-internal.h"

static const char *const tool_names[] = {"timerlat", "osnoise", "hwnoise", "cyclic"};
static const char *const engine_names[] = {"kernel tracer", "BPF", "BPF light", "user space",
					   "imported"};
static const char engine_letters[] = "KBLUI";

const char *latency_tool_name(enum latency_tool tool)
{
	return (unsigned)tool < ARRAY_LEN(tool_names) ? tool_names[tool] : "unknown";
}

const char *latency_engine_name(enum latency_engine_id engine)
{
	return (unsigned)engine < ARRAY_LEN(engine_names) ? engine_names[engine] : "unknown";
}

char latency_engine_letter(enum latency_engine_id engine)
{
	return (unsigned)engine < ARRAY_LEN(engine_names) ? engine_letters[engine] : '?';
}

/* --- series -------------------------------------------------------------------------------- */

void latency_series_init(struct latency_series *series)
{
	*series = (struct latency_series){.current_ns = LATENCY_UNKNOWN_NS};
}

void latency_series_fini(struct latency_series *series)
{
	histogram_fini(&series->values);
}

int latency_series_add(struct latency_series *series, int64_t value_ns)
{
	int r;

	if (value_ns < 0) {
		if (value_ns != LATENCY_UNKNOWN_NS)
			series->negative++;
		return 0;
	}
	if (series->values.count == 0)
		series->distribution = series->has_max = true;
	r = histogram_add(&series->values, (uint64_t)value_ns);
	if (r < 0)
		return r;
	series->current_ns = value_ns;
	return 0;
}

int latency_series_merge(struct latency_series *into, const struct latency_series *from)
{
	bool first = into->values.count == 0;
	int r;

	if (from->values.count > 0) {
		r = histogram_merge(&into->values, &from->values);
		if (r < 0)
			return r;
		into->distribution = from->distribution && (first || into->distribution);
		into->has_max = from->has_max && (first || into->has_max);
		into->unknown_min |= from->unknown_min;
		into->unknown_average |= from->unknown_average;
		into->above_last += from->above_last;
		into->resolution_ns = MAX(into->resolution_ns, from->resolution_ns);
		into->current_ns = LATENCY_UNKNOWN_NS;
	}
	into->negative += from->negative;
	into->over_threshold += from->over_threshold;
	return 0;
}

int64_t latency_series_max(const struct latency_series *series)
{
	return series->values.count > 0 && series->has_max && series->values.max <= INT64_MAX
		       ? (int64_t)series->values.max
		       : LATENCY_UNKNOWN_NS;
}

int64_t latency_series_min(const struct latency_series *series)
{
	return series->values.count > 0 && !series->unknown_min && series->values.min <= INT64_MAX
		       ? (int64_t)series->values.min
		       : LATENCY_UNKNOWN_NS;
}

double latency_series_average(const struct latency_series *series)
{
	return series->unknown_average ? NAN : histogram_mean(&series->values);
}

int64_t latency_series_percentile(const struct latency_series *series, double share)
{
	uint64_t count = series->values.count, value;

	if (share >= 1)
		return latency_series_max(series);
	if (count == 0 || !series->distribution)
		return LATENCY_UNKNOWN_NS;
	if (series->above_last > 0 &&
	    share * (double)count > (double)(count - MIN(count, series->above_last)))
		return LATENCY_UNKNOWN_NS;
	value = histogram_percentile(&series->values, share);
	return value <= INT64_MAX ? (int64_t)value : LATENCY_UNKNOWN_NS;
}

/* --- the run ------------------------------------------------------------------------------- */

int latency_run_init(struct latency_run *run, enum latency_tool tool, enum latency_engine_id engine)
{
	struct latency_run made = {.tool = tool, .engine = engine};
	int r = strtab_init(&made.names);

	if (r < 0) {
		strtab_fini(&made.names);
		return r;
	}
	*run = made;
	return 0;
}

static void cpu_fini(struct latency_cpu *cpu)
{
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		latency_series_fini(&cpu->context[i]);
	latency_series_fini(&cpu->gaps);
	latency_series_fini(&cpu->inner);
	latency_series_fini(&cpu->outer);
}

struct latency_verdict latency_verdict_empty(void)
{
	struct latency_verdict verdict = {
		.context = LATENCY_THREAD,
		.total_ns = LATENCY_UNKNOWN_NS,
		.irq_latency_ns = LATENCY_UNKNOWN_NS,
		.delay_ns = LATENCY_UNKNOWN_NS,
		.timer_irq_ns = LATENCY_UNKNOWN_NS,
		.blocking_ns = LATENCY_UNKNOWN_NS,
		.blocking_pid = -1,
		.return_ns = LATENCY_UNKNOWN_NS,
		.steal_ns = LATENCY_UNKNOWN_NS,
		.rest_ns = LATENCY_UNKNOWN_NS,
		.culprit_ns = LATENCY_UNKNOWN_NS,
	};

	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		verdict.class_ns[i] = LATENCY_UNKNOWN_NS;
	return verdict;
}

void latency_verdicts_free(struct latency_verdict *verdicts, unsigned count)
{
	for (unsigned i = 0; verdicts && i < count; i++) {
		free(verdicts[i].before);
		free(verdicts[i].parts);
		free(verdicts[i].stack);
	}
	free(verdicts);
}

void latency_run_fini(struct latency_run *run)
{
	vec_for_each(&run->cpus, cpu)
		cpu_fini(cpu);
	vec_for_each(&run->sources, source)
		histogram_fini(&source->durations);
	vec_fini(&run->cpus);
	vec_fini(&run->sources);
	vec_fini(&run->cannot_see);
	vec_fini(&run->warnings);
	vec_fini(&run->conditions);
	hash_index_fini(&run->source_index);
	latency_verdicts_free(run->verdicts, run->verdict_count);
	strtab_fini(&run->names);
	*run = (struct latency_run){0};
}

struct latency_cpu *latency_run_cpu(struct latency_run *run, unsigned cpu)
{
	size_t first = partition_point(run->cpus.len, at, run->cpus.data[at].cpu < cpu);
	struct latency_cpu *row;

	if (first < run->cpus.len && run->cpus.data[first].cpu == cpu)
		return &run->cpus.data[first];
	if (vec_reserve(&run->cpus, run->cpus.len + 1) < 0)
		return NULL;
	row = &run->cpus.data[first];
	memmove(row + 1, row, (run->cpus.len - first) * sizeof(*row));
	run->cpus.len++;
	*row = (struct latency_cpu){.cpu = cpu,
				    .steal_ns = LATENCY_UNKNOWN_NS,
				    .smi_count = LATENCY_UNKNOWN_NS,
				    .max_from_idle_ns = LATENCY_UNKNOWN_NS};
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		latency_series_init(&row->context[i]);
	latency_series_init(&row->gaps);
	latency_series_init(&row->inner);
	latency_series_init(&row->outer);
	return row;
}

static bool source_equal(const void *owner, uint32_t id, const void *key)
{
	const struct latency_run *run = owner;
	const struct noise_source *have = &run->sources.data[id], *want = key;

	return have->class == want->class && have->number == want->number &&
	       have->name == want->name && have->function == want->function;
}

static uint64_t source_hash(const struct noise_source *source)
{
	return hash_pair((uint64_t)source->name << 32 | source->function,
			 (uint64_t)(uint32_t)source->number << 32 | (uint32_t)source->class);
}

static struct noise_source *find_source(struct latency_run *run, const struct noise_source *key)
{
	uint32_t id = hash_index_find(&run->source_index, source_hash(key), source_equal, run, key);

	return id == HASH_NONE ? NULL : &run->sources.data[id];
}

struct noise_source *latency_run_source_add(struct latency_run *run,
					    const struct noise_source *source)
{
	if (vec_push(&run->sources, *source) < 0)
		return NULL;
	if (hash_index_add(&run->source_index, source_hash(source),
			   (uint32_t)run->sources.len - 1) < 0) {
		run->sources.len--;
		return NULL;
	}
	return &run->sources.data[run->sources.len - 1];
}

bool latency_run_source_known(const struct latency_run *run, const struct noise_source *source)
{
	return hash_index_find(&run->source_index, source_hash(source), source_equal, run,
			       source) != HASH_NONE;
}

/* A machine that starts a thousand processes a second must not cost a row for each. */
static int join_source(struct latency_run *run, struct noise_source *key)
{
	key->number = -1;
	key->function = 0;
	run->joined_sources++;
	if (run->sources.len < LATENCY_SOURCES_MAX || find_source(run, key))
		return 0;
	return strtab_intern_text(&run->names, "(others)", &key->name);
}

struct noise_source *latency_run_source(struct latency_run *run, enum noise_class class, int number,
					const char *name, const char *function)
{
	struct noise_source key = {.class = class, .number = number}, *row;

	if (strtab_intern_text(&run->names, name ? name : "", &key.name) < 0 ||
	    strtab_intern_text(&run->names, function ? function : "", &key.function) < 0)
		return NULL;
	row = find_source(run, &key);
	if (row)
		return row;
	if (run->sources.len >= LATENCY_SOURCES_NAMED) {
		if (join_source(run, &key) < 0)
			return NULL;
		row = find_source(run, &key);
		if (row)
			return row;
	}
	return latency_run_source_add(run, &key);
}

int latency_run_condition(struct latency_run *run, const char *name, const char *value)
{
	struct latency_condition condition;

	if (strtab_intern_text(&run->names, name, &condition.name) < 0 ||
	    strtab_intern_text(&run->names, value, &condition.value) < 0)
		return -ENOMEM;
	vec_for_each(&run->conditions, old) {
		if (old->name == condition.name) {
			old->value = condition.value;
			return 0;
		}
	}
	return vec_push(&run->conditions, condition);
}

int latency_run_warn(struct latency_run *run, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	uint32_t id;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (strtab_intern_text(&run->names, text, &id) < 0)
		return -ENOMEM;
	vec_for_each(&run->warnings, old) {
		if (*old == id)
			return 0;
	}
	return vec_push(&run->warnings, id);
}

bool latency_run_incomplete(const struct latency_run *run)
{
	return run->lost_records || run->ring_drops || run->recursion_misses ||
	       run->unknown_lines || run->lost_uncounted;
}

int64_t latency_run_lost(const struct latency_run *run)
{
	uint64_t lost = run->lost_records + run->ring_drops + run->recursion_misses;

	return run->lost_uncounted || lost > INT64_MAX ? LATENCY_UNKNOWN_NS : (int64_t)lost;
}

bool latency_run_has(const struct latency_run *run, enum latency_context context)
{
	vec_for_each(&run->cpus, cpu) {
		if (cpu->context[context].values.count || cpu->context[context].negative)
			return true;
	}
	return false;
}

const struct latency_cpu *latency_run_worst(const struct latency_run *run,
					    enum latency_context context)
{
	const struct latency_cpu *worst = NULL;
	int64_t max_ns = -1;

	vec_for_each(&run->cpus, cpu) {
		int64_t have = latency_series_max(&cpu->context[context]);

		if (have > max_ns) {
			max_ns = have;
			worst = cpu;
		}
	}
	return worst;
}

int latency_run_total(const struct latency_run *run, enum latency_context context,
		      struct latency_series *into)
{
	if (into->values.count == 0)
		into->current_ns = LATENCY_UNKNOWN_NS;
	vec_for_each(&run->cpus, cpu) {
		int r = latency_series_merge(into, &cpu->context[context]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- records ------------------------------------------------------------------------------- */

static int take_sample(struct latency_run *run, struct latency_cpu *cpu,
		       const struct latency_record *record)
{
	struct latency_series *series;
	uint64_t limit;

	if ((unsigned)record->sample.context >= LATENCY_CONTEXTS)
		return -EINVAL;
	series = &cpu->context[record->sample.context];
	limit = record->sample.context == LATENCY_IRQ ? run->limits.irq_ns : run->limits.thread_ns;
	if (limit && record->sample.latency_ns > 0 && (uint64_t)record->sample.latency_ns >= limit)
		series->over_threshold++;
	return latency_series_add(series, record->sample.latency_ns);
}

static int count_source(struct latency_run *run, unsigned cpu, enum noise_class class, int number,
			const char *name, const char *function, uint64_t duration_ns)
{
	struct noise_source *source = latency_run_source(run, class, number, name, function);

	if (!source)
		return -ENOMEM;
	if (source->count == 0 || duration_ns > source->durations.max)
		source->worst_cpu = cpu;
	source->count++;
	source->total_ns += duration_ns;
	return histogram_add(&source->durations, duration_ns);
}

static int take_noise(struct latency_run *run, struct latency_cpu *cpu,
		      const struct latency_record *record)
{
	enum noise_class class = record->noise.class;
	/* Negative durations come from two clocks or races of the source: that it happened is
	 * known, how long it took is not. */
	bool known = record->noise.duration_ns >= 0;
	uint64_t duration_ns = known ? (uint64_t)record->noise.duration_ns : 0;

	if ((unsigned)class >= NOISE_CLASSES)
		return -EINVAL;
	cpu->class_known[class] = true;
	if (cpu->periods == 0)
		cpu->class_count[class]++;
	if (!known)
		return latency_run_warn(run, "the source gave negative durations; they count as 0");
	cpu->class_ns[class] += duration_ns;
	return count_source(run, cpu->cpu, class, record->noise.number, record->noise.name,
			    record->noise.function, duration_ns);
}

static int take_gap(struct latency_run *run, struct latency_cpu *cpu,
		    const struct latency_record *record)
{
	uint64_t duration_ns = MIN(record->gap.duration_ns, (uint64_t)INT64_MAX);
	int r = latency_series_add(&cpu->gaps, (int64_t)duration_ns);
	struct latency_limits *limits = &run->limits;

	if (r < 0)
		return r;
	if (limits->single_ns && duration_ns >= limits->single_ns)
		cpu->gaps.over_threshold++;
	cpu->max_single_ns = MAX(cpu->max_single_ns, duration_ns);
	if (cpu->periods == 0)
		cpu->noise_ns += duration_ns;
	if (record->gap.interferences > 0) {
		if (record->gap.explained_ns > 0 && record->gap.explained_ns < duration_ns)
			cpu->unexplained_inside_ns += duration_ns - record->gap.explained_ns;
		return 0;
	}
	cpu->class_known[NOISE_UNEXPLAINED] = true;
	if (cpu->periods == 0)
		cpu->class_count[NOISE_UNEXPLAINED]++;
	cpu->class_ns[NOISE_UNEXPLAINED] += duration_ns;
	return count_source(run, cpu->cpu, NOISE_UNEXPLAINED, -1, "unexplained", NULL, duration_ns);
}

/* User space alone tells waiting for the CPU from the rest, no more. */
static bool class_seen(enum latency_engine_id engine, enum noise_class class)
{
	return engine != ENGINE_USER || class == NOISE_UNEXPLAINED || class == NOISE_THREAD;
}

static void take_period(const struct latency_run *run, struct latency_cpu *cpu,
			const struct latency_record *record)
{
	if (cpu->periods == 0) {
		memset(cpu->class_count, 0, sizeof(cpu->class_count));
		cpu->noise_ns = 0;
	}
	cpu->periods++;
	cpu->runtime_ns += record->period.runtime_ns;
	cpu->noise_ns += record->period.noise_ns;
	cpu->max_noise_ns = MAX(cpu->max_noise_ns, record->period.noise_ns);
	cpu->max_single_ns = MAX(cpu->max_single_ns, record->period.max_single_ns);
	for (unsigned i = 0; i < NOISE_CLASSES; i++) {
		cpu->class_count[i] += record->period.count[i];
		cpu->class_known[i] |= class_seen(run->engine, (enum noise_class)i);
	}
}

static int take_hwlat(struct latency_run *run, struct latency_cpu *cpu,
		      const struct latency_record *record)
{
	uint64_t inner_ns = MIN(record->hwlat.inner_ns, (uint64_t)INT64_MAX);
	uint64_t outer_ns = MIN(record->hwlat.outer_ns, (uint64_t)INT64_MAX);
	uint64_t worst_ns = MAX(inner_ns, outer_ns);
	int r = latency_series_add(&cpu->inner, (int64_t)inner_ns);

	if (r == 0)
		r = latency_series_add(&cpu->outer, (int64_t)outer_ns);
	if (r < 0)
		return r;
	cpu->max_single_ns = MAX(cpu->max_single_ns, worst_ns);
	cpu->class_known[NOISE_UNEXPLAINED] = true;
	cpu->class_count[NOISE_UNEXPLAINED]++;
	cpu->class_ns[NOISE_UNEXPLAINED] += worst_ns;
	if (record->hwlat.nmi_total_ns != LATENCY_UNKNOWN_NS && record->hwlat.nmi_count > 0) {
		cpu->class_known[NOISE_NMI] = true;
		cpu->class_count[NOISE_NMI] += record->hwlat.nmi_count;
		cpu->class_ns[NOISE_NMI] += (uint64_t)MAX(record->hwlat.nmi_total_ns, 0);
	}
	return count_source(run, cpu->cpu, NOISE_UNEXPLAINED, -1, "unexplained", NULL, worst_ns);
}

static void take_steal(struct latency_cpu *cpu, uint64_t duration_ns)
{
	int64_t before = MAX(cpu->steal_ns, 0);

	duration_ns = MIN(duration_ns, (uint64_t)(INT64_MAX - before));
	cpu->steal_ns = before + (int64_t)duration_ns;
	cpu->steal_count += duration_ns > 0;
	cpu->steal_max_ns = MAX(cpu->steal_max_ns, duration_ns);
}

static void take_lost(struct latency_run *run, struct latency_cpu *cpu, uint64_t events)
{
	run->lost_uncounted |= events == 0;
	run->lost_records += events;
	cpu->lost += events;
}

int latency_run_take(struct latency_run *run, const struct latency_record *record)
{
	struct latency_cpu *cpu;

	if (record->cpu >= CPUSET_MAX)
		return -EINVAL;
	cpu = latency_run_cpu(run, record->cpu);
	if (!cpu)
		return -ENOMEM;
	switch (record->kind) {
	case LATENCY_SAMPLE:
		return take_sample(run, cpu, record);
	case LATENCY_NOISE:
		return take_noise(run, cpu, record);
	case LATENCY_GAP:
		return take_gap(run, cpu, record);
	case LATENCY_PERIOD:
		take_period(run, cpu, record);
		return 0;
	case LATENCY_HWLAT:
		return take_hwlat(run, cpu, record);
	case LATENCY_STEAL:
		take_steal(cpu, record->steal.duration_ns);
		return 0;
	case LATENCY_STOPPED:
		run->stopped = true;
		run->stopped_cpu = record->cpu;
		return 0;
	case LATENCY_LOST:
		take_lost(run, cpu, record->lost.events);
		return 0;
	case LATENCY_STACK:
	case LATENCY_SWITCH:
	case LATENCY_WORK:
		break;
	}
	return 0;
}
