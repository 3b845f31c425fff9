/* cyclictest, oslat and hwlatdetect. */
#include <errno.h>
#include <stdlib.h>

#include "base/json-read.h"
#include "base/util.h"
#include "latency/import-internal.h"

#define THREADS_MAX 4096

/* "T: 0 ( 1636) P: 2 I:10000 C:  10000 Min:      9 Act:   18 Avg:   15 Max:      34"; unit_ns as
 * cyclictest was told */
static int thread_line(struct importer *importer, struct scan line)
{
	uint64_t thread, pid, priority, interval, cycles, cells[4];
	static const char *const labels[] = {"Min:", "Act:", "Avg:", "Max:"};
	if (!scan_skip(&line, "T:") || !scan_u64(&line, &thread) || thread >= THREADS_MAX ||
	    !scan_skip(&line, "(") || !scan_u64(&line, &pid) || !scan_skip(&line, ")") ||
	    !scan_skip(&line, "P:") || !scan_u64(&line, &priority) || !scan_skip(&line, "I:") ||
	    !scan_u64(&line, &interval) || !scan_skip(&line, "C:") || !scan_u64(&line, &cycles))
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(labels); i++) {
		if (!scan_skip(&line, labels[i]) || !scan_u64(&line, &cells[i]) ||
		    cells[i] > INT64_MAX / 1000)
			return 0;
	}
	import_begin(importer, PART_CYCLICTEST);
	while (importer->thread_pids.len <= thread) {
		if (vec_push(&importer->thread_pids, -1) < 0)
			return -ENOMEM;
	}
	int *known = &importer->thread_pids.data[thread];
	if (*known >= 0 && *known != (int)pid) {
		int r = latency_run_warn(importer->run,
					 "thread %u appears again as another process (%u): a "
					 "second run begins, the last one is kept",
					 (unsigned)thread, (unsigned)pid);
		if (r < 0)
			return r;
	}
	*known = (int)pid;
	struct latency_cpu *row = latency_run_cpu(importer->run, (unsigned)thread);
	if (!row)
		return -ENOMEM;
	int64_t unit = (int64_t)importer->unit_ns;
	struct latency_series *series = &row->context[LATENCY_USER];
	import_summary(series, cycles, (int64_t)cells[0] * unit, (int64_t)cells[2] * unit,
		       (int64_t)cells[3] * unit);
	series->current_ns = (int64_t)cells[1] * unit;
	series->resolution_ns = importer->unit_ns;
	importer->run->period_ns = interval * 1000;
	return 1;
}

/* The footer of a histogram: "# Total: 000001997 000001994" */
static int cyclic_footer(struct importer *importer, struct scan line)
{
	static const char *const labels[] = {"Total:", "Min Latencies:", "Avg Latencies:",
					     "Max Latencies:", "Histogram Overflows:"};
	static const enum import_cell cells[] = {CELL_COUNTED, CELL_MIN, CELL_AVG, CELL_MAX,
						 CELL_OVER};
	int label = import_label(&line, labels, ARRAY_LEN(labels));
	if (label < 0)
		return 0;
	vec_for_each(&importer->columns, column) {
		uint64_t value;
		if (!scan_u64(&line, &value) || value > INT64_MAX / 1000)
			break;
		import_cell(importer, column, cells[label], value, true);
		column->count_without_over = true;
	}
	return 1;
}

/* "000012 000253	000227": the value and a count for each thread */
static int value_row(struct importer *importer, struct scan line, int context)
{
	uint64_t value, samples;
	if (!scan_u64(&line, &value) || value > INT64_MAX / 1000)
		return 0;
	scan_skip(&line, "(us):");
	for (unsigned thread = 0; thread < THREADS_MAX && scan_u64(&line, &samples); thread++) {
		if (thread == importer->columns.len &&
		    !import_column_add(importer, thread, context))
			return -ENOMEM;
		struct import_column *column = &importer->columns.data[thread];
		int r = samples ? histogram_add_n(&column->rows, value * importer->unit_ns, samples)
				: 0;
		if (r < 0)
			return r;
		/* the last row of oslat holds everything from there on */
		if (scan_find(line, "(including overflows)") && samples) {
			column->over = samples;
			column->has_over = column->over_in_rows = true;
		}
	}
	importer->bucket_step = 1;
	return 1;
}

static int cyclictest_line(struct importer *importer, struct scan text)
{
	struct scan rest = text;
	int r = thread_line(importer, text);
	if (r)
		return r;
	if (scan_is(text, "# Histogram")) {
		import_begin(importer, PART_CYCLICTEST);
		importer->cyclic_histogram = true;
		return 1;
	}
	if (scan_skip(&rest, "#")) {
		if (scan_find(rest, "cpu_dma_latency set to"))
			return 1;
		if (importer->cyclic_histogram && (r = cyclic_footer(importer, rest)))
			return r;
		return importer->cyclic_histogram &&
		       (scan_skip(&rest, "Histogram Overflow at") || scan_skip(&rest, "Thread"));
	}
	if (scan_starts(text, "policy:"))
		return 1;
	return importer->cyclic_histogram ? value_row(importer, text, LATENCY_USER) : 0;
}

/* Per core: "     Minimum:	 1 1 (us)", "     Average:	 1.002 1.002 (us)" */
static int oslat_footer(struct importer *importer, struct scan text)
{
	static const char *const labels[] = {
		"Minimum:", "Average:", "Maximum:", "Max-Min:", "Duration:"};
	int label = import_label(&text, labels, ARRAY_LEN(labels));
	if (label < 0)
		return 0;
	vec_for_each(&importer->columns, column) {
		int64_t nano;
		if (!scan_nano(&text, &nano))
			break;
		uint64_t whole = (uint64_t)nano / NSEC_PER_SEC;
		switch (label) {
		case 0:
			column->min = whole;
			column->has_min = true;
			break;
		case 1:
			column->avg_ns = (uint64_t)nano / 1000000;
			column->has_avg = true;
			break;
		case 2:
			column->max = whole;
			column->has_max = true;
			break;
		case 4:
			importer->run->duration_ns =
				MAX(importer->run->duration_ns, (uint64_t)nano);
			break;
		default:
			break;
		}
	}
	return 1;
}

static int oslat_line(struct importer *importer, struct scan text)
{
	static const char *const settings[] = {
		"oslat V",       "Total runtime:",       "Thread priority:",
		"CPU list:",     "CPU for main thread:", "Workload:",
		"Workload mem:", "Preheat cores:",       "Pre-heat for",
		"Test starts",   "Test completed",       "Core:",
		"Counter Freq:"};
	struct scan rest = text;
	uint64_t value;
	if (scan_u64(&rest, &value) && scan_skip(&rest, "(us):")) {
		import_begin(importer, PART_OSLAT);
		return value_row(importer, text, -1);
	}
	if (importer->first_line[PART_OSLAT]) {
		int r = oslat_footer(importer, text);
		if (r)
			return r;
	}
	for (unsigned i = 0; i < ARRAY_LEN(settings); i++) {
		if (scan_starts(text, settings[i]))
			return 1;
	}
	return 0;
}

/* "ts: 1646837340.346151918, inner:5, outer:9, cpu:3" */
static int hwlat_sample(struct importer *importer, struct scan text)
{
	uint64_t inner, outer, cpu = 0;
	int64_t time;
	if (!scan_skip(&text, "ts:") || !scan_nano(&text, &time) || !scan_skip(&text, ",") ||
	    !scan_skip(&text, "inner:") || !scan_u64(&text, &inner) || !scan_skip(&text, ",") ||
	    !scan_skip(&text, "outer:") || !scan_u64(&text, &outer) ||
	    MAX(inner, outer) > INT64_MAX / 1000)
		return 0;
	const char *cpu_at = scan_find(text, "cpu:");
	struct scan number = {cpu_at ? cpu_at + strlen("cpu:") : text.end, text.end};
	scan_u64(&number, &cpu);
	import_begin(importer, PART_HWLATDETECT);
	struct latency_record record = {.kind = LATENCY_HWLAT,
					.cpu = (unsigned)MIN(cpu, 1u << 20),
					.time_ns = time > 0 ? (uint64_t)time : 0,
					.pid = -1};
	record.hwlat.inner_ns = inner * 1000;
	record.hwlat.outer_ns = outer * 1000;
	record.hwlat.nmi_total_ns = LATENCY_UNKNOWN_NS;
	int r = latency_run_take(importer->run, &record);
	return r < 0 ? r : 1;
}

static int hwlatdetect_line(struct importer *importer, struct scan text)
{
	static const struct {
		const char *label, *condition;
	} settings[] = {
		{"detector:", "detector"},
		{"Latency threshold:", "hwlat threshold"},
		{"Sample window:", "hwlat window"},
		{"Sample width:", "hwlat width"},
		{"Non-sampling period:", NULL},
		{"parameters:", NULL},
		{"CPU list:", NULL},
		{"Output File:", NULL},
		{"Starting test", NULL},
		{"test finished", NULL},
		{"report saved to", NULL},
		{"Max Latency:", "hwlatdetect max latency"},
		{"Samples recorded:", "hwlatdetect samples"},
		{"Samples exceeding threshold:", NULL},
		{"SMIs during run:", "SMIs during run"},
	};
	struct scan rest = text;
	uint64_t seconds;
	if (scan_skip(&rest, "hwlatdetect:")) {
		import_begin(importer, PART_HWLATDETECT);
		if (scan_skip(&rest, "test duration") && scan_u64(&rest, &seconds) &&
		    seconds < UINT32_MAX)
			importer->run->duration_ns = seconds * NSEC_PER_SEC;
		return 1;
	}
	int r = hwlat_sample(importer, text);
	if (r || !importer->first_line[PART_HWLATDETECT])
		return r;
	for (unsigned i = 0; i < ARRAY_LEN(settings); i++) {
		char value[64];
		struct scan tail = text;
		if (!scan_skip(&tail, settings[i].label))
			continue;
		if (!settings[i].condition)
			return 1;
		scan_copy(scan_trim(tail), value, sizeof(value));
		r = latency_run_condition(importer->run, settings[i].condition, value);
		return r < 0 ? r : 1;
	}
	return 0;
}

int import_rt_tests_line(struct importer *importer, struct scan line)
{
	struct scan text = scan_trim(line);
	int r = cyclictest_line(importer, text);
	if (!r)
		r = oslat_line(importer, text);
	return r ? r : hwlatdetect_line(importer, text);
}

/* One "thread" of the JSON of cyclictest or oslat. */
struct json_thread {
	struct import_column column;
	uint64_t cycles, last_bucket;
	bool has_cycles;
};

static double token_number(const struct json_reader *reader)
{
	double value;
	return parse_double(str_text(&reader->text), &value) == 0 && value >= 0 && value < 9e15
		       ? value
		       : 0;
}

static int read_buckets(struct json_reader *reader, struct json_thread *thread, uint64_t unit_ns)
{
	enum json_token token;
	while ((token = json_next(reader)) == JSON_KEY) {
		unsigned long long value;
		bool number = parse_u64(str_text(&reader->text), 10, &value) == 0 &&
			      value < INT64_MAX / 1000;
		token = json_next(reader);
		if (!number || token != JSON_NUMBER) {
			json_skip(reader, token);
			continue;
		}
		int r = histogram_add_n(&thread->column.rows, value * unit_ns,
					(uint64_t)token_number(reader));
		if (r < 0)
			return r;
		thread->last_bucket = MAX(thread->last_bucket, value);
	}
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

static int read_thread(struct json_reader *reader, struct json_thread *thread, uint64_t unit_ns,
		       bool *ret_oslat, uint64_t *duration_ns)
{
	enum json_token token;
	while ((token = json_next(reader)) == JSON_KEY) {
		char key[32];
		scan_copy(scan_of(str_text(&reader->text), reader->text.len), key, sizeof(key));
		token = json_next(reader);
		if (token == JSON_OBJECT && strcmp(key, "histogram") == 0) {
			int r = read_buckets(reader, thread, unit_ns);
			if (r < 0)
				return r;
			continue;
		}
		if (token != JSON_NUMBER) {
			json_skip(reader, token);
			continue;
		}
		double value = token_number(reader);
		if (strcmp(key, "cycles") == 0) {
			thread->cycles = (uint64_t)value;
			thread->has_cycles = true;
		} else if (strcmp(key, "min") == 0) {
			thread->column.min = (uint64_t)value;
			thread->column.has_min = true;
		} else if (strcmp(key, "max") == 0) {
			thread->column.max = (uint64_t)value;
			thread->column.has_max = true;
		} else if (strcmp(key, "avg") == 0) {
			thread->column.avg_ns = (uint64_t)(value * (double)unit_ns);
			thread->column.has_avg = true;
		} else if (strcmp(key, "cpu") == 0) {
			thread->column.cpu = (unsigned)MIN(value, 1048576.0);
		} else if (strcmp(key, "freq") == 0) {
			*ret_oslat = true;
		} else if (strcmp(key, "duration") == 0) {
			*duration_ns = MAX(*duration_ns, (uint64_t)(value * 1e9));
		}
	}
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

/* What the histogram left out: values beyond its last bucket. */
static void close_thread(struct json_thread *thread, uint64_t unit_ns, bool oslat)
{
	struct import_column *column = &thread->column;
	if (thread->has_cycles) {
		column->count = thread->cycles;
		column->has_count = true;
		if (column->rows.count && thread->cycles >= column->rows.count) {
			column->over = thread->cycles - column->rows.count;
			column->has_over = true;
		}
	}
	/* oslat's last bucket holds everything from there on */
	if (oslat && column->has_max && column->max > thread->last_bucket && column->rows.count) {
		column->over =
			column->rows.buckets[histogram_bucket_of(thread->last_bucket * unit_ns)];
		column->has_over = column->over_in_rows = true;
	}
}

static int read_threads(struct importer *importer, struct json_reader *reader, bool *ret_oslat)
{
	enum json_token token;
	while ((token = json_next(reader)) == JSON_KEY) {
		unsigned long long number;
		if (parse_u64(str_text(&reader->text), 10, &number) < 0 || number >= THREADS_MAX)
			number = importer->columns.len;
		token = json_next(reader);
		if (token != JSON_OBJECT) {
			json_skip(reader, token);
			continue;
		}
		struct json_thread thread = {.column = {.cpu = (unsigned)number}};
		bool oslat = false;
		int r = read_thread(reader, &thread, importer->unit_ns, &oslat,
				    &importer->run->duration_ns);
		if (r == 0) {
			close_thread(&thread, importer->unit_ns, oslat);
			thread.column.context = oslat ? -1 : LATENCY_USER;
			*ret_oslat |= oslat;
			r = importer->columns.len < THREADS_MAX
				    ? vec_push(&importer->columns, thread.column)
				    : -EBADMSG;
		}
		if (r < 0) {
			histogram_fini(&thread.column.rows);
			return r;
		}
	}
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

static int read_document(struct importer *importer, struct json_reader *reader, bool *ret_found,
			 bool *ret_oslat)
{
	enum json_token token = json_next(reader);
	if (token != JSON_OBJECT)
		return -EBADMSG;
	while ((token = json_next(reader)) == JSON_KEY) {
		char key[32];
		scan_copy(scan_of(str_text(&reader->text), reader->text.len), key, sizeof(key));
		token = json_next(reader);
		int r = 0;
		if (token == JSON_OBJECT && strcmp(key, "thread") == 0) {
			*ret_found = true;
			r = read_threads(importer, reader, ret_oslat);
		} else if (token == JSON_NUMBER && strcmp(key, "resolution_in_ns") == 0) {
			importer->unit_ns = token_number(reader) > 0 ? 1 : 1000;
		} else if (token == JSON_STRING && strcmp(key, "cmdline:") == 0) {
			r = latency_run_condition(importer->run, "command line",
						  str_text(&reader->text));
		} else if (token == JSON_STRING && strcmp(key, "rt_test_version:") == 0) {
			r = latency_run_condition(importer->run, "rt-tests",
						  str_text(&reader->text));
		} else if (json_skip(reader, token) == JSON_BAD) {
			r = -EBADMSG;
		}
		if (r < 0)
			return r;
	}
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

int import_rt_tests_json(const char *text, size_t size, const char *name, struct latency_run *run,
			 struct err *err)
{
	struct importer importer = {.run = run, .unit_ns = 1000, .bucket_step = 1};
	struct json_reader reader = json_reader_make(text, size);
	bool found = false, oslat = false;
	int r = read_document(&importer, &reader, &found, &oslat);
	if (r == -EBADMSG) {
		r = reader.problem ? json_reader_why(&reader, err)
				   : err_set(err, r, "not the JSON of cyclictest or oslat");
		err_wrap(err, r, "%s", name);
	} else if (r == 0 && !found) {
		r = err_set(err, -EBADMSG,
			    "%s: JSON without the \"thread\" of cyclictest and oslat", name);
	} else if (r == 0) {
		r = import_columns_finish(&importer, oslat ? LATENCY_OSNOISE : LATENCY_CYCLIC);
	}
	json_reader_fini(&reader);
	import_columns_clear(&importer);
	vec_fini(&importer.columns);
	return r;
}
