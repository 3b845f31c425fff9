/*
 * Reading a run file. The bytes may come from anybody: every number is checked against the range of
 * its field, histograms against their own count, and the memory for buckets has a budget. An error
 * names the key on the way to it, "cpus[3].irq.count: not a number".
 */
#include "latency/run-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/file.h"
#include "base/util.h"
#include "latency/run-file-doc.h"

#define FILE_BYTES_MAX (256U << 20)
#define VERDICTS_MAX   100000
#define PARTS_MAX      100000
#define STACK_MAX      1024
#define NAMES_MAX      100000
#define CONDITIONS_MAX 1000

/* --- CPUs ---------------------------------------------------------------------------------- */

struct cpu_reading {
	struct latency_cpu row;
	bool has_cpu;
};

struct kind_reading {
	struct latency_cpu *row;
	unsigned class;
};

static int kind_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct kind_reading *kind = object;

	if (strcmp(key, "count") == 0)
		return doc_u64(doc, token, &kind->row->class_count[kind->class]);
	if (strcmp(key, "total_ns") == 0)
		return doc_u64(doc, token, &kind->row->class_ns[kind->class]);
	return 1;
}

static int kinds_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	int class = noise_class_find(key);
	struct kind_reading kind = {.row = object, .class = (unsigned)class};

	if (class < 0)
		return 1;
	kind.row->class_known[class] = true;
	return doc_object(doc, token, kind_member, &kind);
}

static int cpu_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct cpu_reading *reading = object;
	struct latency_cpu *row = &reading->row;
	int64_t cpu = 0;
	int r;

	if (strcmp(key, "cpu") == 0) {
		r = doc_int(doc, token, 0, CPUSET_MAX - 1, &cpu);
		row->cpu = (unsigned)cpu;
		reading->has_cpu = r == 0;
		return r;
	}
	if (strcmp(key, "kinds") == 0)
		return doc_object(doc, token, kinds_member, row);
	/* counts of the contract share the names of contexts: "kinds" has them */
	for (unsigned i = 0; i < LATENCY_CONTEXTS && token != JSON_NUMBER; i++)
		if (strcmp(key, latency_context_name((enum latency_context)i)) == 0)
			return doc_series(doc, token, &row->context[i]);
	if (strcmp(key, "gaps") == 0)
		return doc_series(doc, token, &row->gaps);
	if (strcmp(key, "inner") == 0)
		return doc_series(doc, token, &row->inner);
	if (strcmp(key, "outer") == 0)
		return doc_series(doc, token, &row->outer);
	return doc_tabled(doc, &cpu_fields, key, token, row);
}

static void drop_series(struct latency_cpu *row)
{
	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		latency_series_fini(&row->context[i]);
	latency_series_fini(&row->gaps);
	latency_series_fini(&row->inner);
	latency_series_fini(&row->outer);
}

static int read_cpu(struct doc *doc, enum json_token token, void *object)
{
	struct cpu_reading reading = {
		.row = {.steal_ns = LATENCY_UNKNOWN_NS, .smi_count = LATENCY_UNKNOWN_NS, .max_from_idle_ns = LATENCY_UNKNOWN_NS}};
	struct latency_run *run = doc->run;
	struct latency_cpu *row;
	size_t before = run->cpus.len;
	int r;

	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
		latency_series_init(&reading.row.context[i]);
	latency_series_init(&reading.row.gaps);
	latency_series_init(&reading.row.inner);
	latency_series_init(&reading.row.outer);
	r = doc_object(doc, token, cpu_member, &reading);
	if (r == 0 && !reading.has_cpu)
		r = doc_fail(doc, "the key cpu is missing");
	row = r == 0 ? latency_run_cpu(run, reading.row.cpu) : NULL;
	if (row && run->cpus.len == before) {
		r = doc_fail(doc, "the CPU was there before");
		row = NULL;
	}
	if (row)
		*row = reading.row;
	else
		drop_series(&reading.row);
	return r == 0 && !row ? -ENOMEM : r;
}

/* --- culprits ------------------------------------------------------------------------------ */

struct source_reading {
	struct noise_source source;
	struct doc_values values;
	bool derived, has_kind;
};

static int read_class(struct doc *doc, enum json_token token, enum noise_class *ret)
{
	int class;

	if (token != JSON_STRING)
		return doc_fail(doc, "not a text");
	class = noise_class_find(str_text(&doc->json.text));
	if (class < 0)
		return doc_fail(doc, "not a kind of noise");
	*ret = (enum noise_class) class;
	return 0;
}

static int source_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct source_reading *reading = object;
	int r;

	if (strcmp(key, "kind") == 0) {
		reading->has_kind = true;
		if (token == JSON_STRING && strcmp(str_text(&doc->json.text), "steal") == 0) {
			reading->derived = true;
			return 0;
		}
		return read_class(doc, token, &reading->source.class);
	}
	if (strcmp(key, "derived") == 0) {
		reading->derived |= token == JSON_TRUE;
		return 0;
	}
	if (token == JSON_NULL && (strcmp(key, "count") == 0 || strcmp(key, "total_ns") == 0))
		return 0;
	if (strcmp(key, "histogram_count") == 0)
		return doc_u64(doc, token, &reading->values.count);
	r = doc_tabled(doc, &source_fields, key, token, &reading->source);
	return r == 1 ? doc_values(doc, key, token, &reading->values) : r;
}

static int read_source(struct doc *doc, enum json_token token, void *object)
{
	struct source_reading reading = {.source = {.number = -1}, .values = {.last_bucket = -1}};
	struct latency_run *run = doc->run;
	int r = doc_object(doc, token, source_member, &reading);

	if (r == 0 && !reading.has_kind)
		r = doc_fail(doc, "the key kind is missing");
	if (r == 0 && reading.derived) {
		histogram_fini(&reading.values.h);
		return 0;
	}
	/* a document without buckets: what it tells stays */
	if (!reading.values.has_buckets && reading.values.has_max) {
		reading.values.count = reading.source.count;
		reading.values.sum = reading.source.total_ns;
		reading.values.has_sum = true;
	}
	if (r == 0 && latency_run_source_known(run, &reading.source))
		r = doc_fail(doc, "the source was there before");
	if (r == 0)
		r = doc_values_finish(doc, &reading.values, &reading.source.durations);
	histogram_fini(&reading.values.h);
	if (r == 0 && !latency_run_source_add(run, &reading.source))
		r = -ENOMEM;
	if (r < 0)
		histogram_fini(&reading.source.durations);
	return r;
}

/* --- verdicts ------------------------------------------------------------------------------ */

struct part_list {
	VEC(struct latency_part) parts;
};

static int part_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct latency_part *part = object;

	if (strcmp(key, "kind") == 0)
		return read_class(doc, token, &part->class);
	return doc_tabled(doc, &part_fields, key, token, part);
}

static int read_part(struct doc *doc, enum json_token token, void *object)
{
	struct part_list *list = object;
	struct latency_part part = {
		.number = -1, .start_ns = LATENCY_UNKNOWN_NS, .duration_ns = LATENCY_UNKNOWN_NS};
	int r = doc_object(doc, token, part_member, &part);

	return r < 0 ? r : vec_push(&list->parts, part);
}

static int read_parts(struct doc *doc, enum json_token token, struct latency_part **parts,
		      unsigned *count)
{
	struct part_list list = {0};
	int r = *parts ? doc_fail(doc, "the key was there before")
		       : doc_elements(doc, token, PARTS_MAX, read_part, &list);

	if (r < 0) {
		vec_fini(&list.parts);
		return r;
	}
	*parts = list.parts.data;
	*count = (unsigned)list.parts.len;
	return 0;
}

struct id_list {
	VEC(uint32_t) ids;
};

static int read_id(struct doc *doc, enum json_token token, void *object)
{
	struct id_list *list = object;
	uint32_t id = 0;
	int r = doc_name(doc, token, &id);

	return r < 0 ? r : vec_push(&list->ids, id);
}

static int class_time_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct latency_verdict *verdict = object;
	int class = noise_class_find(key);
	struct field f = {key, FIELD_TIME, 0};

	return class < 0 ? 1 : doc_field(doc, &f, token, &verdict->class_ns[class]);
}

static int read_stack(struct doc *doc, enum json_token token, struct latency_verdict *verdict)
{
	struct id_list list = {0};
	int r = verdict->stack ? doc_fail(doc, "the key was there before")
			       : doc_elements(doc, token, STACK_MAX, read_id, &list);

	if (r < 0) {
		vec_fini(&list.ids);
		return r;
	}
	verdict->stack = list.ids.data;
	verdict->stack_count = (unsigned)list.ids.len;
	return 0;
}

static int read_context(struct doc *doc, enum json_token token, enum latency_context *ret)
{
	for (unsigned i = 0; i < LATENCY_CONTEXTS && token == JSON_STRING; i++) {
		if (strcmp(str_text(&doc->json.text),
			   latency_context_name((enum latency_context)i)) == 0) {
			*ret = (enum latency_context)i;
			return 0;
		}
	}
	return doc_fail(doc, "not irq, thread or user");
}

static int verdict_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct latency_verdict *verdict = object;

	if (strcmp(key, "context") == 0)
		return read_context(doc, token, &verdict->context);
	if (strcmp(key, "kinds_ns") == 0)
		return doc_object(doc, token, class_time_member, verdict);
	if (strcmp(key, "before") == 0)
		return read_parts(doc, token, &verdict->before, &verdict->before_count);
	if (strcmp(key, "parts") == 0)
		return read_parts(doc, token, &verdict->parts, &verdict->part_count);
	if (strcmp(key, "stack") == 0)
		return read_stack(doc, token, verdict);
	return doc_tabled(doc, &verdict_fields, key, token, verdict);
}

static int read_verdict(struct doc *doc, enum json_token token, void *object)
{
	struct latency_run *run = doc->run;
	struct latency_verdict *grown =
		realloc(run->verdicts, (run->verdict_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	run->verdicts = grown;
	grown[run->verdict_count] = latency_verdict_empty();
	return doc_object(doc, token, verdict_member, &grown[run->verdict_count++]);
}

/* --- the document -------------------------------------------------------------------------- */

static int limit_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	return doc_tabled(doc, &limit_fields, key, token, object);
}

static int condition_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	if (token != JSON_STRING)
		return doc_fail(doc, "not a text");
	if (doc->run->conditions.len == CONDITIONS_MAX)
		return doc_fail(doc, "too many conditions");
	if (strlen(key) == DOC_KEY_BYTES - 1 || !doc_is_utf8(key) ||
	    !doc_is_utf8(str_text(&doc->json.text)))
		return doc_fail(doc, "not a condition that was written");
	return latency_run_condition(doc->run, key, str_text(&doc->json.text));
}

static int read_engine(struct doc *doc, enum json_token token)
{
	for (int i = 0; i <= ENGINE_IMPORTED && token == JSON_STRING; i++) {
		const char letter[2] = {latency_engine_letter((enum latency_engine_id)i), '\0'};

		if (strcmp(str_text(&doc->json.text), letter) == 0) {
			doc->run->engine = (enum latency_engine_id)i;
			return 0;
		}
	}
	return doc_fail(doc, "not an engine");
}

static int read_tool(struct doc *doc, enum json_token token)
{
	for (int i = 0; i <= LATENCY_CYCLIC && token == JSON_STRING; i++) {
		if (strcmp(str_text(&doc->json.text), latency_tool_name((enum latency_tool)i)) ==
		    0) {
			doc->run->tool = (enum latency_tool)i;
			return 0;
		}
	}
	return doc_fail(doc, "not a run of timerlat, osnoise, hwnoise or cyclic");
}

static int read_ids(struct doc *doc, enum json_token token, uint32_t **data, size_t *len,
		    size_t *cap)
{
	struct id_list list = {0};
	int r = doc_elements(doc, token, NAMES_MAX, read_id, &list);

	if (r < 0) {
		vec_fini(&list.ids);
		return r;
	}
	free(*data);
	*data = list.ids.data;
	*len = list.ids.len;
	*cap = list.ids.cap;
	return 0;
}

struct head {
	bool has_kind, has_schema;
};

static int top_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct latency_run *run = doc->run;
	struct head *head = object;
	uint64_t schema = 0;
	int r;

	if (strcmp(key, "schema") == 0) {
		r = doc_u64(doc, token, &schema);
		head->has_schema = r == 0;
		return r == 0 && schema > RUN_FILE_SCHEMA
			       ? doc_fail(doc, "written by a newer culprit; update this one")
			       : r;
	}
	if (strcmp(key, "kind") == 0) {
		head->has_kind = true;
		return read_tool(doc, token);
	}
	if (strcmp(key, "engine") == 0)
		return read_engine(doc, token);
	if (strcmp(key, "limits") == 0)
		return doc_object(doc, token, limit_member, &run->limits);
	if (strcmp(key, "conditions") == 0)
		return doc_object(doc, token, condition_member, NULL);
	if (strcmp(key, "cannot_see") == 0)
		return read_ids(doc, token, &run->cannot_see.data, &run->cannot_see.len,
				&run->cannot_see.cap);
	if (strcmp(key, "warnings") == 0)
		return read_ids(doc, token, &run->warnings.data, &run->warnings.len,
				&run->warnings.cap);
	if (strcmp(key, "cpus") == 0)
		return doc_elements(doc, token, CPUSET_MAX, read_cpu, NULL);
	if (strcmp(key, "culprits") == 0)
		return doc_elements(doc, token, LATENCY_SOURCES_MAX + 16, read_source, NULL);
	if (strcmp(key, "verdicts") == 0)
		return doc_elements(doc, token, VERDICTS_MAX, read_verdict, NULL);
	if (strcmp(key, "stopped_cpu") == 0) {
		int64_t cpu = 0;

		r = token == JSON_NULL ? 0 : doc_int(doc, token, 0, CPUSET_MAX - 1, &cpu);
		run->stopped_cpu = (unsigned)cpu;
		return r;
	}
	return doc_tabled(doc, &run_fields, key, token, run);
}

static int read_document(struct doc *doc)
{
	struct head head = {0};
	enum json_token token = json_next(&doc->json);
	int r;

	if (token == JSON_BAD)
		return doc_broken(doc);
	if (token != JSON_OBJECT)
		return err_set(doc->err, -EBADMSG, "not a run file: no JSON object");
	r = doc_members(doc, top_member, &head);
	if (r < 0)
		return r;
	if (!head.has_kind || !head.has_schema)
		return err_set(doc->err, -EBADMSG, "not a run file: the key %s is missing",
			       head.has_schema ? "kind" : "schema");
	return json_next(&doc->json) == JSON_END ? 0 : doc_broken(doc);
}

int latency_run_read_bytes(const void *data, size_t size, struct latency_run *run, struct err *err)
{
	struct latency_run made;
	struct doc doc = {.json = json_reader_make(data, size), .run = &made, .err = err};
	int r = latency_run_init(&made, LATENCY_TIMERLAT, ENGINE_IMPORTED);

	if (r == 0)
		r = read_document(&doc);
	json_reader_fini(&doc.json);
	if (r < 0) {
		latency_run_fini(&made);
		return r == -ENOMEM ? err_set(err, r, "out of memory") : r;
	}
	*run = made;
	return 0;
}

int latency_run_read(const char *path, struct latency_run *run, struct err *err)
{
	char *data CLEANUP_FREE = NULL;
	size_t size = 0;
	int r = file_read(path, FILE_BYTES_MAX, &data, &size, err);

	if (r < 0)
		return r;
	r = latency_run_read_bytes(data, size, run, err);
	return r < 0 ? err_wrap(err, r, "%s", path) : 0;
}
