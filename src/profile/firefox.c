/*
 * Two passes over the threads: the first finds which values there are, since value types come
 * before samples; the second reads one thread's tables after the other, so that never more than
 * one thread (and what all share) is held as numbers.
 */
#include "profile/firefox.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/scan.h"
#include "base/util.h"
#include "profile/firefox-internal.h"

#define PROCESSES_DEPTH_MAX 8

enum value {
	VALUE_SAMPLES,
	VALUE_TIME,
	VALUE_SPACE,
	VALUE_CPU,
	VALUES
};

static const char *const value_names[VALUES][2] = {
	[VALUE_SAMPLES] = {"samples", "count"},
	[VALUE_TIME] = {"time", "nanoseconds"},
	[VALUE_SPACE] = {"space", "bytes"},
	[VALUE_CPU] = {"cpu", "nanoseconds"},
};

static const char *const frame_columns[] = {"func", "location", "address", "inlineDepth",
					    "line", "column",   "category"};
static const char *const func_columns[] = {"name", "resource", "fileName", "source", "lineNumber"};
static const char *const stack_columns[] = {"prefix", "frame"};
static const char *const sample_columns[] = {"stack", "weight", "threadCPUDelta", "time",
					     "timeDeltas"};
static const char *const resource_columns[] = {"lib"};
static const char *const source_columns[] = {"filename"};

/* The parts of a thread, or of what all threads share. */
struct parts {
	struct json_slice name, pid, tid, samples, strings, string_table, frame, func, stack,
		resource, libs, sources;
};

struct firefox {
	struct firefox_document document;
	struct json_slice top;
	bool tid, ours, seen[VALUES];
	uint32_t column[VALUES];
	double cpu_ns; /* of threadCPUDelta; 0: unknown */
	bool any_thread;
	struct parts shared;
	struct firefox_tables shared_tables;
	firefox_libs libs; /* of the process that is read */
	double first_ms, last_ms;
};

static void find_parts(struct json_slice object, struct parts *ret)
{
	const struct json_member members[] = {
		{"name", &ret->name},
		{"pid", &ret->pid},
		{"tid", &ret->tid},
		{"samples", &ret->samples},
		{"stringArray", &ret->strings},
		{"stringTable", &ret->string_table},
		{"frameTable", &ret->frame},
		{"funcTable", &ret->func},
		{"stackTable", &ret->stack},
		{"resourceTable", &ret->resource},
		{"libs", &ret->libs},
		{"sources", &ret->sources},
	};

	json_slice_members(object, members, ARRAY_LEN(members));
	if (!ret->strings.at)
		ret->strings = ret->string_table;
}

static enum value weight_of(struct firefox *f, struct json_slice samples)
{
	struct str *text = &f->document.text;

	if (!json_slice_text(json_slice_member(samples, "weightType"), text))
		return VALUE_SAMPLES;
	if (strcmp(str_text(text), "tracing-ms") == 0)
		return VALUE_TIME;
	return strcmp(str_text(text), "bytes") == 0 ? VALUE_SPACE : VALUE_SAMPLES;
}

static bool has_column(const struct firefox_table *table, unsigned column)
{
	vec_for_each(&table->columns[column], value)
		if (!isnan(*value))
			return true;
	return false;
}

static int find_values(struct firefox *f, const struct parts *thread)
{
	struct firefox_table cpu = {0};
	int r = 0;

	if (!thread->samples.at)
		return 0;
	f->seen[weight_of(f, thread->samples)] = true;
	if (f->cpu_ns > 0 && !f->seen[VALUE_CPU])
		r = firefox_table_read(thread->samples, &sample_columns[SAMPLE_CPU], 1, &cpu);
	f->seen[VALUE_CPU] |= has_column(&cpu, 0);
	firefox_table_fini(&cpu);
	return r;
}

static int load_tables(struct firefox *f, const struct parts *parts, struct firefox_tables *ret)
{
	struct firefox_document *d = &f->document;
	int r = 0;

	ret->strings = parts->strings.at ? &ret->own_strings : &f->shared_tables.own_strings;
	ret->sources = &d->sources;
	if (parts->strings.at)
		r = firefox_strings(d, parts->strings, &ret->own_strings);
	if (r == 0)
		r = firefox_table_read(parts->frame, frame_columns, ARRAY_LEN(frame_columns),
				       &ret->frame);
	if (r == 0)
		r = firefox_table_read(parts->func, func_columns, ARRAY_LEN(func_columns),
				       &ret->func);
	if (r == 0)
		r = firefox_table_read(parts->resource, resource_columns, 1, &ret->resource);
	if (r == 0)
		r = firefox_table_read(parts->stack, stack_columns, ARRAY_LEN(stack_columns),
				       &ret->stack);
	return r < 0 ? r : firefox_resolve(d, ret);
}

/* A number that stands as one or as text; else the text itself is the label. */
static int id_label(struct firefox *f, const char *key, struct json_slice slice,
		    struct profile_label *labels, uint32_t *count)
{
	struct strtab *strings = &f->document.profile->strings;
	struct str *text = &f->document.text;
	struct profile_label label = {0};
	struct scan digits;
	int r;

	if (!slice.at || !json_slice_text(slice, text) || text->len == 0 ||
	    strcmp(str_text(text), FIREFOX_NO_PID) == 0)
		return str_status(text);
	r = strtab_intern_text(strings, key, &label.key);
	digits = scan_of(text->data, text->len);
	if (r == 0 && (!scan_i64(&digits, &label.number) || scan_len(digits) > 0)) {
		label.number = 0;
		r = strtab_intern(strings, text->data, text->len, &label.text);
	}
	labels[(*count)++] = label;
	return r;
}

static int thread_labels(struct firefox *f, const struct parts *thread, uint32_t *ret)
{
	struct profile_label labels[3] = {0};
	struct strtab *strings = &f->document.profile->strings;
	struct str *text = &f->document.text;
	uint32_t count = 0;
	int r = 0;

	if (json_slice_text(thread->name, text) && text->len > 0) {
		r = strtab_intern_text(strings, "comm", &labels[0].key);
		if (r == 0)
			r = strtab_intern(strings, text->data, text->len, &labels[0].text);
		count = 1;
	}
	if (r == 0)
		r = id_label(f, "pid", thread->pid, labels, &count);
	if (r == 0 && f->tid)
		r = id_label(f, "tid", thread->tid, labels, &count);
	return r < 0 ? r : profile_label_set(f->document.profile, labels, count, ret);
}

static void note_time(struct firefox *f, double ms)
{
	if (isnan(ms))
		return;
	f->first_ms = isnan(f->first_ms) ? ms : MIN(f->first_ms, ms);
	f->last_ms = isnan(f->last_ms) ? ms : MAX(f->last_ms, ms);
}

/* Samples without a weight are one each, when they are counted. */
static bool values_of(struct firefox *f, const struct firefox_table *samples, uint64_t row,
		      enum value weight, struct json_carry carry[VALUES], int64_t values[VALUES])
{
	double amount = firefox_value(samples, SAMPLE_WEIGHT, row),
	       cpu = firefox_value(samples, SAMPLE_CPU, row);

	if (isnan(amount))
		amount = samples->columns[SAMPLE_WEIGHT].len == 0;
	if (!json_carry_add(&carry[weight], (struct json_amount){.value = amount},
			    &values[f->column[weight]]))
		return false;
	return !f->seen[VALUE_CPU] || isnan(cpu) ||
	       json_carry_add(&carry[VALUE_CPU], (struct json_amount){.value = cpu},
			      &values[f->column[VALUE_CPU]]);
}

static int add_samples(struct firefox *f, const struct firefox_table *samples, enum value weight,
		       const firefox_ids *stacks, uint32_t labels)
{
	struct json_carry carry[VALUES] = {{1, 0}, {1e6, 0}, {1, 0}, {f->cpu_ns, 0}};
	size_t count = samples->columns[SAMPLE_STACK].len;
	double at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		int64_t stack = firefox_index(samples, SAMPLE_STACK, i), values[VALUES] = {0};

		if (samples->columns[SAMPLE_DELTA].len > i)
			note_time(f, at += firefox_value(samples, SAMPLE_DELTA, i));
		else
			note_time(f, firefox_value(samples, SAMPLE_TIME, i));
		if (stack < 0)
			continue;
		if ((uint64_t)stack >= stacks->len)
			return err_set(f->document.err, -EBADMSG, "sample %zu: stack %jd of %zu", i,
				       (intmax_t)stack, stacks->len);
		if (!values_of(f, samples, i, weight, carry, values))
			return -EOVERFLOW;
		r = profile_add(f->document.profile, stacks->data[stack], labels, values);
	}
	return r;
}

static int read_thread(struct firefox *f, const struct parts *thread)
{
	struct firefox_table samples = {0};
	struct firefox_tables tables = {0};
	firefox_libs libs = {0};
	uint32_t labels = 0;
	int r = 0;

	if (!thread->samples.at)
		return 0;
	if (thread->libs.at)
		r = firefox_libs_read(&f->document, thread->libs, &libs);
	tables.libs = thread->libs.at ? &libs : &f->libs;
	if (r == 0 && thread->stack.at)
		r = load_tables(f, thread, &tables);
	if (r == 0)
		r = firefox_table_read(thread->samples, sample_columns, ARRAY_LEN(sample_columns),
				       &samples);
	if (r == 0)
		r = thread_labels(f, thread, &labels);
	if (r == 0)
		r = add_samples(f, &samples, weight_of(f, thread->samples),
				thread->stack.at ? &tables.stacks : &f->shared_tables.stacks,
				labels);
	firefox_table_fini(&samples);
	firefox_tables_fini(&tables);
	vec_fini(&libs);
	return r;
}

static int each_thread(struct firefox *f, struct json_slice threads,
		       int (*act)(struct firefox *f, const struct parts *thread))
{
	struct json_walk walk = json_walk_make(threads);
	struct json_slice slice;
	size_t number = 0;
	int r = 0;

	while (r == 0 && !walk.object && json_walk_next(&walk, &slice)) {
		struct parts thread = {0};

		find_parts(slice, &thread);
		f->any_thread = true;
		r = act(f, &thread);
		if (r < 0 && r != -ENOMEM)
			err_wrap(f->document.err, r, "thread %zu", number);
		number++;
	}
	json_walk_fini(&walk);
	return r;
}

/* Gecko's processes have processes inside, each with libraries of its own. */
static int each_process(struct firefox *f, struct json_slice process, unsigned depth,
			int (*act)(struct firefox *f, const struct parts *thread))
{
	struct json_slice libs = {0}, threads = {0}, processes = {0}, inner;
	const struct json_member members[] = {
		{"libs", &libs}, {"threads", &threads}, {"processes", &processes}};
	struct json_walk walk;
	int r;

	json_slice_members(process, members, ARRAY_LEN(members));
	f->libs.len = 0;
	r = firefox_libs_read(&f->document, libs, &f->libs);
	if (r == 0 && depth == 0 && act == read_thread && f->shared.stack.at) {
		f->shared_tables.libs = &f->libs;
		r = load_tables(f, &f->shared, &f->shared_tables);
	}
	if (r == 0)
		r = each_thread(f, threads, act);
	walk = json_walk_make(processes);
	while (r == 0 && depth < PROCESSES_DEPTH_MAX && !walk.object &&
	       json_walk_next(&walk, &inner))
		r = each_process(f, inner, depth + 1, act);
	json_walk_fini(&walk);
	return r;
}

static int read_categories(struct firefox *f, struct json_slice categories)
{
	struct firefox_document *d = &f->document;
	struct json_walk walk = json_walk_make(categories);
	struct json_slice category;
	uint32_t id;
	int r = 0;

	while (r == 0 && !walk.object && json_walk_next(&walk, &category)) {
		id = 0;
		if (json_slice_text(json_slice_member(category, "name"), &d->text))
			r = strtab_intern(&d->profile->strings, str_text(&d->text), d->text.len,
					  &id);
		if (r == 0)
			r = vec_push(&d->categories, id);
	}
	json_walk_fini(&walk);
	return r;
}

static int read_meta(struct firefox *f, struct json_slice meta)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"\xc2\xb5s", 1e3}, {"us", 1e3}, {"ms", 1e6}};
	struct profile *p = f->document.profile;
	struct json_slice categories = {0}, start = {0}, interval = {0}, sample_units = {0},
			  from = {0};
	const struct json_member members[] = {{"categories", &categories},
					      {"startTime", &start},
					      {"interval", &interval},
					      {"sampleUnits", &sample_units},
					      {"importedFrom", &from}};
	double ms;
	int r = 0;

	json_slice_members(meta, members, ARRAY_LEN(members));
	if (json_slice_number(start, &ms) && ms > 0 && ms < 9e12)
		p->time_ns = (int64_t)(ms * 1e6);
	if (json_slice_text(json_slice_member(sample_units, "threadCPUDelta"), &f->document.text))
		for (size_t i = 0; i < ARRAY_LEN(units); i++)
			if (strcmp(str_text(&f->document.text), units[i].unit) == 0)
				f->cpu_ns = units[i].ns;
	f->ours = json_slice_text(from, &f->document.text) &&
		  strcmp(str_text(&f->document.text), FIREFOX_OWN) == 0;
	if (!f->ours && json_slice_number(interval, &ms) && ms > 0 && ms < 9e12) {
		r = strtab_intern_text(&p->strings, "wall", &p->period_type.type);
		if (r == 0)
			r = strtab_intern_text(&p->strings, "nanoseconds", &p->period_type.unit);
		p->period = (int64_t)(ms * 1e6);
	}
	return r < 0 ? r : read_categories(f, categories);
}

static int add_values(struct firefox *f)
{
	struct profile *p = f->document.profile;
	uint32_t count = 0;
	int r = 0;

	/* Threads without samples are a profile of none. */
	f->seen[VALUE_SAMPLES] |= !f->seen[VALUE_TIME] && !f->seen[VALUE_SPACE];
	for (unsigned i = 0; r >= 0 && i < VALUES; i++)
		if (f->seen[i]) {
			f->column[i] = count++;
			r = profile_add_value_type(p, value_names[i][0], value_names[i][1]);
		}
	if (r >= 0 && count > 0)
		p->default_type = p->value_types.data[0].type;
	return MIN(r, 0);
}

static int read_document(struct firefox *f)
{
	struct json_slice meta = {0}, shared = {0};
	const struct json_member members[] = {{"meta", &meta}, {"shared", &shared}};
	struct firefox_document *d = &f->document;
	int r;

	json_slice_members(f->top, members, ARRAY_LEN(members));
	find_parts(shared, &f->shared);
	r = read_meta(f, meta);
	if (r == 0)
		r = firefox_table_read(f->shared.sources, source_columns, 1, &d->sources);
	if (r == 0 && f->shared.strings.at && !f->shared.stack.at)
		r = firefox_strings(d, f->shared.strings, &f->shared_tables.own_strings);
	if (r == 0)
		r = each_process(f, f->top, 0, find_values);
	if (r == 0 && !f->any_thread)
		r = err_set(d->err, -ENODATA, "there are no threads in it");
	if (r == 0)
		r = add_values(f);
	if (r == 0)
		r = each_process(f, f->top, 0, read_thread);
	if (r == 0 && !f->ours && f->last_ms - f->first_ms > 0 && f->last_ms - f->first_ms < 9e12)
		d->profile->duration_ns = (int64_t)((f->last_ms - f->first_ms) * 1e6);
	return r;
}

static int fill(void *arg, struct profile *profile, struct err *err)
{
	struct firefox *f = arg;
	int r;

	f->document.profile = profile;
	f->document.err = err;
	r = read_document(f);
	firefox_tables_fini(&f->shared_tables);
	firefox_table_fini(&f->document.sources);
	vec_fini(&f->document.categories);
	vec_fini(&f->libs);
	str_fini(&f->document.text);
	return r;
}

int firefox_read(const void *data, size_t size, bool tid, struct profile *ret, struct err *err)
{
	struct firefox f = {.tid = tid, .first_ms = NAN, .last_ms = NAN};
	int r = json_slice_document(data, size, &f.top, err);

	return r < 0 ? r : profile_make(fill, &f, ret, err);
}

bool firefox_detect(const void *data, size_t size)
{
	static const char *const keys[] = {"meta", "threads"};

	return json_top_keys(data, size, keys, ARRAY_LEN(keys)) == 3;
}
