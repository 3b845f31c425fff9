/*
 * Writing a run as JSON. The keys that scripts rely on come first in each object; what only the
 * reader needs (buckets, parts of verdicts) follows.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "latency/run-file-internal.h"
#include "latency/run-file.h"

struct writer {
	const struct latency_run *run;
	struct json json;
	bool full;
};

static void write_time(struct json *json, const char *key, int64_t value)
{
	if (value == LATENCY_UNKNOWN_NS)
		json_null(json, key);
	else
		json_i64(json, key, value);
}

static void write_name(struct writer *w, const char *key, uint32_t id)
{
	json_text(&w->json, key, id ? strtab_text(&w->run->names, id) : NULL);
}

static void write_fields(struct writer *w, const struct field_table *table, const void *object)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct field *f = &table->fields[i];
		const void *at = (const char *)object + f->offset;

		switch (f->kind) {
		case FIELD_U64:
			json_u64(&w->json, f->key, *(const uint64_t *)at);
			break;
		case FIELD_POSITIVE:
			if (*(const uint64_t *)at == 0)
				json_null(&w->json, f->key);
			else
				json_u64(&w->json, f->key, *(const uint64_t *)at);
			break;
		case FIELD_TIME:
			write_time(&w->json, f->key, *(const int64_t *)at);
			break;
		case FIELD_UINT:
			json_u64(&w->json, f->key, *(const unsigned *)at);
			break;
		case FIELD_INT:
			if (*(const int *)at == -1)
				json_null(&w->json, f->key);
			else
				json_i64(&w->json, f->key, *(const int *)at);
			break;
		case FIELD_BOOL:
			json_bool(&w->json, f->key, *(const bool *)at);
			break;
		case FIELD_NAME:
			write_name(w, f->key, *(const uint32_t *)at);
			break;
		}
	}
}

/* Sums may pass 64 bits: then as text. */
static void write_sum(struct json *json, const char *key, unsigned __int128 sum)
{
	char text[40];
	char *at = text + sizeof(text) - 1;

	if (sum <= UINT64_MAX) {
		json_u64(json, key, (uint64_t)sum);
		return;
	}
	*at = '\0';
	for (; sum > 0; sum /= 10)
		*--at = (char)('0' + (int)(sum % 10));
	json_text(json, key, at);
}

/* [[first value of the bucket, count], ...] on as few lines as can be read. */
static void write_buckets(struct json *json, const struct histogram *h)
{
	bool compact = json->compact;

	json_array(json, "histogram");
	json->compact = true;
	for (unsigned i = 0; i < h->bucket_count; i++) {
		if (h->buckets[i] == 0)
			continue;
		json_array(json, NULL);
		json_u64(json, NULL, histogram_bucket_low(i));
		json_u64(json, NULL, h->buckets[i]);
		json_end_array(json);
	}
	json_end_array(json);
	json->compact = compact;
}

/* H of the contract, then the rest. */
static void write_series(struct writer *w, const char *key, const struct latency_series *series)
{
	static const struct {
		const char *key;
		double share;
	} percentiles[] = {
		{"p50_ns", 0.5}, {"p99_ns", 0.99}, {"p999_ns", 0.999}, {"p9999_ns", 0.9999}};
	struct json *json = &w->json;
	double average = latency_series_average(series);

	json_object(json, key);
	json_u64(json, "count", series->values.count);
	write_time(json, "min_ns", latency_series_min(series));
	json_double(json, "avg_ns", isfinite(average) ? round(average * 10) / 10 : NAN);
	for (size_t i = 0; i < ARRAY_LEN(percentiles); i++)
		write_time(json, percentiles[i].key,
			   latency_series_percentile(series, percentiles[i].share));
	write_time(json, "max_ns", latency_series_max(series));
	if (series->values.count > 0 && !series->unknown_average)
		write_sum(json, "sum_ns", series->values.sum);
	else
		json_null(json, "sum_ns");
	write_fields(w, &series_fields, series);
	if (w->full && series->distribution)
		write_buckets(json, &series->values);
	json_end_object(json);
}

static void write_names(struct writer *w, const char *key, const uint32_t *ids, size_t count)
{
	json_array(&w->json, key);
	for (size_t i = 0; i < count; i++)
		json_text(&w->json, NULL, strtab_text(&w->run->names, ids[i]));
	json_end_array(&w->json);
}

static void write_class_counts(struct writer *w, const struct latency_cpu *cpu)
{
	static const char *const keys[] = {"hw", "nmi", "irq", "softirq", "thread"};

	for (unsigned i = 0; i < NOISE_CLASSES; i++) {
		json_u64_if(&w->json, keys[i], cpu->class_known[i], cpu->class_count[i]);
	}
}

static void write_kinds(struct writer *w, const struct latency_cpu *cpu)
{
	struct json *json = &w->json;

	json_object(json, "kinds");
	for (unsigned i = 0; i < NOISE_CLASSES; i++) {
		if (!cpu->class_known[i])
			continue;
		json_object(json, noise_class_name((enum noise_class)i));
		json_u64(json, "count", cpu->class_count[i]);
		json_u64(json, "total_ns", cpu->class_ns[i]);
		json_end_object(json);
	}
	json_end_object(json);
}

static bool is_noise(const struct latency_run *run)
{
	return run->tool == LATENCY_OSNOISE || run->tool == LATENCY_HWNOISE;
}

static void write_context(struct writer *w, enum latency_context context,
			  const struct latency_series *series)
{
	if (latency_run_has(w->run, context))
		write_series(w, latency_context_name(context), series);
	else
		json_null(&w->json, latency_context_name(context));
}

static void write_cpu(struct writer *w, const struct latency_cpu *cpu)
{
	struct json *json = &w->json;

	json_object(json, NULL);
	json_u64(json, "cpu", cpu->cpu);
	if (is_noise(w->run)) {
		json_double(json, "available_share",
			    cpu->runtime_ns > 0
				    ? 1 - (double)cpu->noise_ns / (double)cpu->runtime_ns
				    : NAN);
		write_class_counts(w, cpu);
	} else {
		for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
			write_context(w, (enum latency_context)i, &cpu->context[i]);
	}
	write_fields(w, &cpu_fields, cpu);
	write_kinds(w, cpu);
	if (cpu->gaps.values.count > 0)
		write_series(w, "gaps", &cpu->gaps);
	if (cpu->inner.values.count > 0)
		write_series(w, "inner", &cpu->inner);
	if (cpu->outer.values.count > 0)
		write_series(w, "outer", &cpu->outer);
	json_end_object(json);
}

static int by_total(const void *a, const void *b)
{
	const struct noise_source *const *left = a, *const *right = b;

	if ((*left)->total_ns != (*right)->total_ns)
		return (*left)->total_ns < (*right)->total_ns ? 1 : -1;
	return *left < *right ? -1 : 1;
}

static void write_source(struct writer *w, const struct noise_source *source)
{
	struct json *json = &w->json;
	const struct histogram *h = &source->durations;

	json_object(json, NULL);
	json_text(json, "kind", noise_class_name(source->class));
	write_fields(w, &source_fields, source);
	if (h->count > 0) {
		json_u64(json, "min_ns", h->min);
		json_u64(json, "max_ns", h->max);
		json_u64(json, "p50_ns", histogram_percentile(h, 0.5));
		json_u64(json, "p99_ns", histogram_percentile(h, 0.99));
		if (w->full) {
			json_u64(json, "histogram_count", h->count);
			write_sum(json, "sum_ns", h->sum);
			write_buckets(json, h);
		}
	}
	json_end_object(json);
}

/* Time the hypervisor took, and what surrounds known interruptions, are culprits too; they are kept
 * per CPU, so the reader passes over these rows. */
static void write_derived(struct writer *w)
{
	uint64_t steal_ns = 0, count = 0, max_ns = 0, inside_ns = 0;
	struct json *json = &w->json;

	vec_for_each(&w->run->cpus, cpu) {
		steal_ns += (uint64_t)MAX(cpu->steal_ns, 0);
		count += cpu->steal_count;
		max_ns = MAX(max_ns, cpu->steal_max_ns);
		inside_ns += cpu->unexplained_inside_ns;
	}
	for (int i = 0; i < 2; i++) {
		uint64_t total_ns = i == 0 ? steal_ns : inside_ns;

		if (total_ns == 0)
			continue;
		json_object(json, NULL);
		json_text(json, "kind", i == 0 ? "steal" : "unexplained");
		json_text(json, "name", i == 0 ? "hypervisor" : "around known interruptions");
		json_bool(json, "derived", true);
		json_u64_if(json, "count", i == 0 && count > 0, count);
		json_u64(json, "total_ns", total_ns);
		json_u64_if(json, "max_ns", i == 0 && count > 0, max_ns);
		json_end_object(json);
	}
}

static int write_culprits(struct writer *w)
{
	size_t count = w->run->sources.len;
	const struct noise_source **order CLEANUP_FREE = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = &w->run->sources.data[i];
	qsort(order, count, sizeof(*order), by_total);
	json_array(&w->json, "culprits");
	for (size_t i = 0; i < count; i++)
		write_source(w, order[i]);
	write_derived(w);
	json_end_array(&w->json);
	return 0;
}

static void write_parts(struct writer *w, const char *key, const struct latency_part *parts,
			unsigned count)
{
	json_array(&w->json, key);
	for (unsigned i = 0; i < count; i++) {
		json_object(&w->json, NULL);
		json_text(&w->json, "kind", noise_class_name(parts[i].class));
		write_fields(w, &part_fields, &parts[i]);
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
}

static void write_verdict(struct writer *w, const struct latency_verdict *verdict)
{
	struct json *json = &w->json;

	json_object(json, NULL);
	json_text(json, "context", latency_context_name(verdict->context));
	write_fields(w, &verdict_fields, verdict);
	json_double(json, "culprit_share",
		    verdict->decided && verdict->total_ns > 0
			    ? (double)verdict->culprit_ns / (double)verdict->total_ns
			    : NAN);
	json_object(json, "kinds_ns");
	for (unsigned i = 0; i < NOISE_CLASSES; i++)
		write_time(json, noise_class_name((enum noise_class)i), verdict->class_ns[i]);
	json_end_object(json);
	write_parts(w, "before", verdict->before, verdict->before_count);
	write_parts(w, "parts", verdict->parts, verdict->part_count);
	write_names(w, "stack", verdict->stack, verdict->stack_count);
	json_end_object(json);
}

/* The largest over all CPUs, so that nobody has to look for it. */
static void write_worst(struct writer *w)
{
	struct json *json = &w->json;

	json_object(json, "worst");
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++) {
		const struct latency_cpu *cpu = latency_run_worst(w->run, (enum latency_context)i);

		if (!cpu) {
			json_null(json, latency_context_name((enum latency_context)i));
			continue;
		}
		json_object(json, latency_context_name((enum latency_context)i));
		json_u64(json, "cpu", cpu->cpu);
		write_time(json, "max_ns", latency_series_max(&cpu->context[i]));
		json_end_object(json);
	}
	json_end_object(json);
}

static void write_worst_noise(struct writer *w)
{
	const struct latency_cpu *worst = NULL;
	struct json *json = &w->json;

	vec_for_each(&w->run->cpus, cpu) {
		if (!worst || cpu->max_single_ns > worst->max_single_ns)
			worst = cpu;
	}
	json_object(json, "worst");
	if (worst) {
		json_u64(json, "cpu", worst->cpu);
		json_u64(json, "max_single_ns", worst->max_single_ns);
	}
	json_end_object(json);
}

static int write_all(struct writer *w)
{
	int r = 0;

	json_object(&w->json, "all");
	for (unsigned i = 0; i < LATENCY_CONTEXTS && r == 0; i++) {
		struct latency_series total = {0};

		r = latency_run_total(w->run, (enum latency_context)i, &total);
		if (r == 0)
			write_context(w, (enum latency_context)i, &total);
		latency_series_fini(&total);
	}
	json_end_object(&w->json);
	return r;
}

static void write_head(struct writer *w)
{
	const struct latency_run *run = w->run;
	struct json *json = &w->json;
	const char letter[2] = {latency_engine_letter(run->engine), '\0'};

	json_text(json, "culprit", CULPRIT_VERSION);
	json_u64(json, "schema", RUN_FILE_SCHEMA);
	json_text(json, "kind", latency_tool_name(run->tool));
	json_text(json, "engine", letter);
	json_text(json, "engine_name", latency_engine_name(run->engine));
	write_fields(w, &run_fields, run);
	json_u64_if(json, "stopped_cpu", run->stopped, run->stopped_cpu);
	write_time(json, "lost", latency_run_lost(run));
	json_bool(json, "incomplete", latency_run_incomplete(run));
	json_object(json, "limits");
	write_fields(w, &limit_fields, &run->limits);
	json_end_object(json);
	write_names(w, "cannot_see", run->cannot_see.data, run->cannot_see.len);
	write_names(w, "warnings", run->warnings.data, run->warnings.len);
	json_object(json, "conditions");
	vec_for_each(&run->conditions, condition)
		json_text(json, strtab_text(&run->names, condition->name),
			  strtab_text(&run->names, condition->value));
	json_end_object(json);
}

static int write_document(struct writer *w)
{
	const struct latency_run *run = w->run;
	int r;

	json_object(&w->json, NULL);
	write_head(w);
	if (is_noise(run)) {
		write_worst_noise(w);
	} else {
		write_worst(w);
		r = write_all(w);
		if (r < 0)
			return r;
	}
	json_array(&w->json, "cpus");
	vec_for_each(&run->cpus, cpu)
		write_cpu(w, cpu);
	json_end_array(&w->json);
	r = write_culprits(w);
	if (r < 0)
		return r;
	json_array(&w->json, "verdicts");
	for (unsigned i = 0; i < run->verdict_count; i++)
		write_verdict(w, &run->verdicts[i]);
	json_end_array(&w->json);
	json_end_object(&w->json);
	return str_status(&w->json.out);
}

int latency_run_write(const struct latency_run *run, FILE *out, bool full, struct err *err)
{
	struct writer w = {.run = run, .full = full};
	int r = write_document(&w);

	if (r == 0) {
		errno = 0;
		if (fwrite(w.json.out.data, 1, w.json.out.len, out) != w.json.out.len ||
		    fflush(out) != 0)
			r = errno ? -errno : -EIO;
	}
	str_fini(&w.json.out);
	return r < 0 ? err_wrap(err, r, "write the run") : 0;
}
