#include "latency/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "latency/analysis.h"
#include "latency/import-internal.h"
#include "latency/trace-dat.h"
#include "latency/trace-text.h"

/* How far into a file the first line of a trace is looked for: headers and messages come before it.
 */
#define TRACE_SEARCH_LINES 20000

static const char *const part_names[PARTS] = {
	[PART_TIMERLAT_TOP] = "a table of rtla timerlat top",
	[PART_TIMERLAT_HIST] = "a histogram of rtla timerlat",
	[PART_OSNOISE_TOP] = "a table of rtla osnoise top",
	[PART_OSNOISE_HIST] = "a histogram of rtla osnoise",
	[PART_HWNOISE_TOP] = "a table of rtla hwnoise",
	[PART_ANALYSIS] = "an automatic analysis of rtla",
	[PART_CYCLICTEST] = "output of cyclictest",
	[PART_OSLAT] = "output of oslat",
	[PART_HWLATDETECT] = "a report of hwlatdetect",
};

static const enum latency_tool part_tools[PARTS] = {
	[PART_TIMERLAT_TOP] = LATENCY_TIMERLAT, [PART_TIMERLAT_HIST] = LATENCY_TIMERLAT,
	[PART_OSNOISE_TOP] = LATENCY_OSNOISE,   [PART_OSNOISE_HIST] = LATENCY_OSNOISE,
	[PART_HWNOISE_TOP] = LATENCY_HWNOISE,   [PART_ANALYSIS] = LATENCY_TIMERLAT,
	[PART_CYCLICTEST] = LATENCY_CYCLIC,     [PART_OSLAT] = LATENCY_OSNOISE,
	[PART_HWLATDETECT] = LATENCY_HWNOISE,
};

void import_begin(struct importer *importer, enum import_part part)
{
	if (!importer->first_line[part])
		importer->first_line[part] = importer->lines.number;
}

struct import_column *import_column_add(struct importer *importer, unsigned cpu, int context)
{
	struct import_column column = {.cpu = cpu, .context = context};
	return vec_push(&importer->columns, column) < 0
		       ? NULL
		       : &importer->columns.data[importer->columns.len - 1];
}

void import_summary(struct latency_series *series, uint64_t count, int64_t min_ns, int64_t avg_ns,
		    int64_t max_ns)
{
	histogram_clear(&series->values);
	series->distribution = false;
	series->values.count = count;
	series->has_max = max_ns != LATENCY_UNKNOWN_NS;
	series->unknown_min = min_ns == LATENCY_UNKNOWN_NS;
	series->unknown_average = avg_ns == LATENCY_UNKNOWN_NS;
	series->values.min = min_ns < 0 ? 0 : (uint64_t)min_ns;
	series->values.max = max_ns < 0 ? 0 : (uint64_t)max_ns;
	series->values.sum = avg_ns < 0 ? 0 : (unsigned __int128)avg_ns * count;
}

int import_label(struct scan *text, const char *const *labels, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (scan_skip(text, labels[i]))
			return (int)i;
	}
	return -1;
}

void import_cell(const struct importer *importer, struct import_column *column,
		 enum import_cell cell, uint64_t value, bool known)
{
	uint64_t *const slots[] = {&column->over, &column->count, &column->min, &column->avg_ns,
				   &column->max};
	bool *const flags[] = {&column->has_over, &column->has_count, &column->has_min,
			       &column->has_avg, &column->has_max};
	*slots[cell] = cell == CELL_AVG ? value * importer->unit_ns : value;
	*flags[cell] = known;
}

void import_columns_clear(struct importer *importer)
{
	vec_for_each(&importer->columns, column)
		histogram_fini(&column->rows);
	importer->columns.len = 0;
}

/* Rows that were cut out of the text leave the footer, and no percentile. */
static int rows_missing(struct importer *importer, const struct import_column *column,
			struct latency_series *series, uint64_t total)
{
	import_summary(series, total, LATENCY_UNKNOWN_NS, LATENCY_UNKNOWN_NS, LATENCY_UNKNOWN_NS);
	return latency_run_warn(
		importer->run,
		"CPU %u: the rows hold %llu of %llu samples: percentiles stay unknown", column->cpu,
		(unsigned long long)column->rows.count, (unsigned long long)total);
}

/* The rows become the distribution; count, minimum, average and maximum of the footer are the exact
 * ones. */
static int finish_column(struct importer *importer, struct import_column *column)
{
	struct latency_cpu *row = latency_run_cpu(importer->run, column->cpu);
	uint64_t unit = importer->unit_ns, beside = column->over_in_rows ? 0 : column->over;
	uint64_t total = column->rows.count + beside;
	if (!row)
		return -ENOMEM;
	struct latency_series *series =
		column->context < 0 ? &row->gaps : &row->context[column->context];
	if (column->has_count)
		total = column->count + (column->count_without_over ? column->over : 0);
	histogram_clear(&series->values);
	int r = histogram_merge(&series->values, &column->rows);
	if (r < 0)
		return r;
	series->distribution = true;
	series->has_max = column->has_max || !column->over;
	if (column->rows.count + beside != total)
		r = rows_missing(importer, column, series, total);
	series->above_last = column->over;
	series->resolution_ns = MAX(importer->bucket_step, 1) * unit;
	series->values.count = total;
	if (r < 0 || !total)
		return r;
	if (column->has_min) {
		series->values.min = column->min * unit;
		series->unknown_min = false;
	}
	if (column->has_max) {
		series->values.max = column->max * unit;
		series->has_max = true;
	}
	if (column->has_avg) {
		series->values.sum = (unsigned __int128)column->avg_ns * total;
		series->unknown_average = false;
	} else if (column->over) {
		series->unknown_average = true;
	}
	return 0;
}

int import_columns_finish(struct importer *importer, enum latency_tool tool)
{
	importer->run->tool = tool;
	vec_for_each(&importer->columns, column) {
		int r = finish_column(importer, column);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What text without a measurement holds instead; the first finding is kept. */
static void note_refusal(struct importer *importer, struct scan line)
{
	static const struct {
		const char *words, *meaning;
	} signs[] = {
		{"tracer not found", "the tool could not start: "},
		{"Tracer timerlat not found",
		 "rtla could not start, the kernel has no such tracer: "},
		{"Tracer osnoise not found",
		 "rtla could not start, the kernel has no such tracer: "},
		{"Failed to set runtime and/or period", "rtla could not start: "},
		{"Traceback (most recent call last)", "a crash instead of a measurement: "},
		{"print fmt:", "descriptions of trace events, not the events: "},
		{"DetectorNotAvailable", "hwlatdetect could not start: "},
	};
	if (importer->refusal.len)
		return;
	for (unsigned i = 0; i < ARRAY_LEN(signs); i++) {
		if (scan_find(line, signs[i].words)) {
			char text[100];
			str_printf(&importer->refusal, "%sline %llu: \"%s\"", signs[i].meaning,
				   (unsigned long long)importer->lines.number,
				   scan_copy(scan_trim(line), text, sizeof(text)));
			return;
		}
	}
}

static int take_line(struct importer *importer, struct scan line)
{
	int r = import_rtla_analysis_line(importer, line);
	if (!r)
		r = import_rtla_line(importer, line);
	if (!r)
		r = import_rt_tests_line(importer, line);
	if (r)
		return MIN(r, 0);
	struct scan text = scan_trim(line);
	note_refusal(importer, text);
	if (text.at < text.end && *text.at != '#')
		importer->run->unknown_lines++;
	return 0;
}

static int refuse(const struct importer *importer, const char *name, struct err *err)
{
	if (importer->refusal.len)
		return err_set(err, -EBADMSG, "%s: %s", name, str_text(&importer->refusal));
	return err_set(err, -EBADMSG,
		       "%s: no measurement in it; tables, histograms and analyses of rtla, traces "
		       "of the kernel's tracers, "
		       "trace.dat, cyclictest, oslat and hwlatdetect can be read",
		       name);
}

/* One tool's measurement is one run; its analysis may stand beside it. */
static int choose_part(const struct importer *importer, const char *name, enum import_part *ret,
		       struct err *err)
{
	int found = -1;
	for (int part = 0; part < PARTS; part++) {
		if (!importer->first_line[part])
			continue;
		if (found >= 0 && part_tools[found] != part_tools[part])
			return err_set(err, -EBADMSG,
				       "%s: %s at line %llu and %s at line %llu: give each in a "
				       "file of its own",
				       name, part_names[found],
				       (unsigned long long)importer->first_line[found],
				       part_names[part],
				       (unsigned long long)importer->first_line[part]);
		if (found < 0)
			found = part;
	}
	if (found < 0)
		return refuse(importer, name, err);
	*ret = (enum import_part)found;
	return 0;
}

static int import_tables(const char *text, size_t size, const char *name, struct latency_run *run,
			 struct err *err)
{
	struct importer importer = {
		.run = run, .lines = {.rest = scan_of(text, size)}, .unit_ns = 1000};
	enum import_part part = PART_ANALYSIS;
	int r = 0;
	for (struct scan line; r == 0 && scan_line(&importer.lines, &line);)
		r = take_line(&importer, line);
	if (r == 0)
		r = choose_part(&importer, name, &part, err);
	if (r == 0)
		r = import_columns_finish(&importer, part_tools[part]);
	if (r == 0)
		r = import_analysis_finish(run);
	import_columns_clear(&importer);
	vec_fini(&importer.columns);
	vec_fini(&importer.thread_pids);
	str_fini(&importer.refusal);
	return r;
}

/* Records go into the accounting and the analysis alike. */
struct tee {
	struct latency_sink sink;
	struct latency_run *run;
	struct latency_analysis *analysis;
	uint64_t records, first_ns, last_ns;
	bool samples, hwlat; /* kinds that were seen: they tell the tool */
};

static int tee_take(struct latency_sink *sink, const struct latency_record *record)
{
	struct tee *tee = (struct tee *)sink;
	tee->records++;
	tee->samples |= record->kind == LATENCY_SAMPLE;
	tee->hwlat |= record->kind == LATENCY_HWLAT;
	if (record->time_ns) {
		tee->first_ns =
			tee->first_ns ? MIN(tee->first_ns, record->time_ns) : record->time_ns;
		tee->last_ns = MAX(tee->last_ns, record->time_ns);
	}
	int r = latency_run_take(tee->run, record);
	return r < 0 ? r : latency_analysis_take(tee->analysis, record);
}

static int trace_notes(struct latency_run *run, const struct trace_text_stats *stats)
{
	int r = 0;
	run->unknown_lines += stats->bad_lines;
	if (stats->bad_lines)
		r = latency_run_warn(run, "%llu lines could not be read, the first is line %llu",
				     (unsigned long long)stats->bad_lines,
				     (unsigned long long)stats->first_bad_line);
	if (r == 0 && stats->first_backwards)
		r = latency_run_warn(run,
				     "time goes backwards at line %llu: pieces of a trace; what "
				     "stands in two counts twice",
				     (unsigned long long)stats->first_backwards);
	if (r == 0 && stats->clock_offset_ns)
		r = latency_run_warn(run,
				     "the noise events' clock is %.6f s ahead of the time stamps: "
				     "taken off their start times",
				     (double)stats->clock_offset_ns / 1e9);
	return r;
}

struct trace_source {
	const char *text; /* of the tracers or trace-cmd report; NULL: data is a trace.dat */
	const void *data;
	size_t size;
};

static int read_trace(const struct trace_source *source, struct latency_run *run,
		      struct latency_sink *sink, struct err *err)
{
	struct trace_text_stats stats;
	if (!source->text)
		return MIN(trace_dat_parse(source->data, source->size, sink, err), 0);
	int r = trace_text_read(source->text, source->size, sink, &stats);
	return r < 0 ? r : trace_notes(run, &stats);
}

static int import_trace(const struct trace_source *source, const char *name,
			const struct latency_import_options *options, struct latency_run *run,
			struct err *err)
{
	struct tee tee = {.sink.take = tee_take, .run = run};
	run->limits = options->limits;
	int r = latency_analysis_new(run, options->keep, &tee.analysis);
	if (r < 0)
		return r;
	r = read_trace(source, run, &tee.sink, err);
	if (r < 0)
		err_wrap(err, r, "%s", name);
	if (r == 0 && !tee.records)
		r = err_set(err, -EBADMSG,
			    "%s: a trace without any event of timerlat, osnoise or hwlat", name);
	if (r == 0)
		r = latency_analysis_finish(tee.analysis);
	run->tool = tee.samples ? LATENCY_TIMERLAT : tee.hwlat ? LATENCY_HWNOISE : LATENCY_OSNOISE;
	run->duration_ns = tee.last_ns - tee.first_ns;
	latency_analysis_free(tee.analysis);
	return r;
}

static bool holds_trace(const char *text, size_t size)
{
	struct scan_lines lines = {.rest = scan_of(text, size)};
	for (struct scan line; lines.number < TRACE_SEARCH_LINES && scan_line(&lines, &line);) {
		if (trace_text_line(line.at, scan_len(line)))
			return true;
	}
	return false;
}

static bool is_json(const char *text, size_t size)
{
	struct scan all = scan_of(text, size);
	while (all.at < all.end && (scan_blank(*all.at) || *all.at == '\n'))
		all.at++;
	return all.at < all.end && *all.at == '{';
}

static int import_any(const char *text, size_t size, const char *name,
		      const struct latency_import_options *options, struct latency_run *run,
		      struct err *err)
{
	static const char trace_dat_magic[] = "\x17\x08\x44tracing";
	const size_t magic = sizeof(trace_dat_magic) - 1;
	if (size >= magic && memcmp(text, trace_dat_magic, magic) == 0)
		return import_trace(&(struct trace_source){.data = text, .size = size}, name,
				    options, run, err);
	if (is_json(text, size))
		return import_rt_tests_json(text, size, name, run, err);
	if (holds_trace(text, size))
		return import_trace(&(struct trace_source){.text = text, .size = size}, name,
				    options, run, err);
	return import_tables(text, size, name, run, err);
}

int latency_import_bytes(const void *data, size_t size, const char *name,
			 const struct latency_import_options *options, struct latency_run *run,
			 struct err *err)
{
	struct latency_run made;
	int r = latency_run_init(&made, LATENCY_TIMERLAT, ENGINE_IMPORTED);
	if (r < 0)
		return r;
	r = strtab_intern_text(&made.names, name, &made.source);
	if (r == 0)
		r = size ? import_any(data, size, name, options, &made, err)
			 : err_set(err, -EBADMSG, "%s: the file is empty", name);
	if (r < 0)
		latency_run_fini(&made);
	else
		*run = made;
	return r;
}

int latency_import(const char *path, const struct latency_import_options *options,
		   struct latency_run *run, struct err *err)
{
	struct file_map map;
	int r = file_map_open(path, &map, err);
	if (r < 0)
		return r;
	r = latency_import_bytes(map.data, map.size, path, options, run, err);
	file_map_close(&map);
	return r;
}
