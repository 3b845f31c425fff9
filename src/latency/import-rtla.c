/* The tables of rtla: timerlat, osnoise and hwnoise, top and hist. */
#include <errno.h>

#include "base/util.h"
#include "latency/import-internal.h"

#define COLUMNS_MAX 12288 /* three for each of 4096 CPUs */

/* "  0 00:01:00": days and h:m:s. */
static bool parse_elapsed(struct scan *text, uint64_t *ret_ns)
{
	uint64_t days, hours, minutes, seconds;
	struct scan rest = *text;
	if (!scan_u64(&rest, &days) || !scan_u64(&rest, &hours) || !scan_skip(&rest, ":") ||
	    !scan_u64(&rest, &minutes) || !scan_skip(&rest, ":") || !scan_u64(&rest, &seconds) ||
	    days > 36500 || hours > 23 || minutes > 59 || seconds > 60)
		return false;
	*text = rest;
	*ret_ns = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * NSEC_PER_SEC;
	return true;
}

static void find_unit(struct importer *importer, struct scan line)
{
	if (scan_find(line, "(us)") || scan_find(line, "time is in us") ||
	    scan_find(line, "microseconds"))
		importer->unit_ns = 1000;
	else if (scan_find(line, "(ns)") || scan_find(line, "time is in ns") ||
		 scan_find(line, "nanoseconds"))
		importer->unit_ns = 1;
}

/* A cell: a number, or "-" for none (then -1). False for anything else. */
static bool parse_cell(struct scan *text, int64_t *ret)
{
	struct scan word = scan_word(text);
	uint64_t value;
	if (scan_is(word, "-")) {
		*ret = -1;
		return true;
	}
	if (!scan_u64(&word, &value) || word.at != word.end)
		return false;
	/* ~0 is what rtla prints for the minimum of nothing */
	*ret = value > INT64_MAX / 1000 ? -1 : (int64_t)value;
	return true;
}

static int64_t scaled(const struct importer *importer, int64_t cell)
{
	return cell < 0 ? LATENCY_UNKNOWN_NS : cell * (int64_t)importer->unit_ns;
}

/* "  0 #4622      |       54         7       156      6243 |      119        30       193 7660" */
static int timerlat_top_row(struct importer *importer, struct scan line)
{
	uint64_t cpu, count;
	if (!scan_u64(&line, &cpu) || cpu > 1u << 20 || !scan_skip(&line, "#") ||
	    !scan_u64(&line, &count) || !scan_skip(&line, "|"))
		return 0;
	struct latency_cpu *row = latency_run_cpu(importer->run, (unsigned)cpu);
	if (!row)
		return -ENOMEM;
	for (unsigned context = 0; context < LATENCY_CONTEXTS; context++) {
		int64_t cells[4]; /* cur min avg max */
		for (unsigned i = 0; i < 4; i++) {
			if (!parse_cell(&line, &cells[i]))
				return context > 0;
		}
		struct latency_series *series = &row->context[context];
		bool none = cells[1] < 0 && cells[3] < 0;
		import_summary(series, none ? 0 : count, scaled(importer, cells[1]),
			       scaled(importer, cells[2]), scaled(importer, cells[3]));
		series->current_ns = scaled(importer, cells[0]);
		series->resolution_ns = importer->unit_ns;
		if (!scan_skip(&line, "|"))
			break;
	}
	return 1;
}

/* "  0 #59  53100000  304896  99.42580  6978  56  549  0  53111  1590  13"; hwnoise has two
 * counters instead of five */
static int osnoise_top_row(struct importer *importer, struct scan line, unsigned counters)
{
	uint64_t cpu, periods, cells[9] = {0};
	int64_t share;
	if (!scan_u64(&line, &cpu) || cpu > 1u << 20 || !scan_skip(&line, "#") ||
	    !scan_u64(&line, &periods) || !scan_u64(&line, &cells[0]) ||
	    !scan_u64(&line, &cells[1]) || !scan_nano(&line, &share))
		return 0;
	for (unsigned i = 2; i < 4 + counters; i++) {
		if (!scan_u64(&line, &cells[i]))
			return 0;
	}
	for (unsigned i = 0; i < 4; i++) {
		if (cells[i] > INT64_MAX / 1000)
			return 0;
	}
	struct latency_cpu *row = latency_run_cpu(importer->run, (unsigned)cpu);
	if (!row)
		return -ENOMEM;
	row->periods = periods;
	row->runtime_ns = cells[0] * importer->unit_ns;
	row->noise_ns = cells[1] * importer->unit_ns;
	row->max_noise_ns = cells[2] * importer->unit_ns;
	row->max_single_ns = cells[3] * importer->unit_ns;
	for (unsigned i = 0; i < counters; i++) {
		row->class_count[i] = cells[4 + i];
		row->class_known[i] = true;
	}
	return 1;
}

/* "Index   IRQ-000   Thr-000   Usr-000" */
static int hist_header(struct importer *importer, struct scan line)
{
	static const struct {
		const char *prefix;
		int context;
	} kinds[] = {{"IRQ-", LATENCY_IRQ},
		     {"Thr-", LATENCY_THREAD},
		     {"Usr-", LATENCY_USER},
		     {"CPU-", -1}};
	/* a second histogram takes the place of the first */
	import_columns_clear(importer);
	importer->in_table = true;
	for (;;) {
		struct scan word = scan_word(&line);
		uint64_t cpu;
		unsigned kind = 0;
		if (word.at == word.end)
			return 1;
		while (kind < ARRAY_LEN(kinds) && !scan_skip(&word, kinds[kind].prefix))
			kind++;
		if (kind == ARRAY_LEN(kinds) || !scan_u64(&word, &cpu) || cpu > 1u << 20 ||
		    importer->columns.len == COLUMNS_MAX)
			return 1;
		if (!import_column_add(importer, (unsigned)cpu, kinds[kind].context))
			return -ENOMEM;
	}
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static int hist_row(struct importer *importer, struct scan line)
{
	uint64_t index, samples;
	if (!scan_u64(&line, &index) || index > INT64_MAX / 1000)
		return 0;
	importer->bucket_step = greatest_common_divisor(importer->bucket_step, index);
	vec_for_each(&importer->columns, column) {
		if (!scan_u64(&line, &samples))
			break;
		int r = samples ? histogram_add_n(&column->rows, index * importer->unit_ns, samples)
				: 0;
		if (r < 0)
			return r;
	}
	return 1;
}

/* "over:", "count:", "min:" ... with a cell for each column */
static int hist_footer(struct importer *importer, struct scan line)
{
	static const char *const labels[] = {"over:", "count:", "min:", "avg:", "max:"};
	int label = import_label(&line, labels, ARRAY_LEN(labels));
	if (label < 0)
		return 0;
	vec_for_each(&importer->columns, column) {
		int64_t cell;
		if (!parse_cell(&line, &cell))
			break;
		import_cell(importer, column, (enum import_cell)label,
			    cell < 0 ? 0 : (uint64_t)cell, cell >= 0);
	}
	return 1;
}

static enum import_part histogram_part(const struct importer *importer, struct scan line)
{
	bool noise = importer->first_line[PART_OSNOISE_HIST] || scan_find(line, "CPU-");
	return noise ? PART_OSNOISE_HIST : PART_TIMERLAT_HIST;
}

static int table_row(struct importer *importer, struct scan line)
{
	if (importer->first_line[PART_TIMERLAT_TOP]) {
		int r = timerlat_top_row(importer, line);
		if (r)
			return r;
	}
	if (importer->first_line[PART_OSNOISE_TOP] || importer->first_line[PART_HWNOISE_TOP]) {
		int r = osnoise_top_row(importer, line,
					importer->first_line[PART_OSNOISE_TOP] ? 5 : 2);
		if (r)
			return r;
	}
	if (importer->in_table) {
		int r = hist_footer(importer, line);
		return r ? r : hist_row(importer, line);
	}
	return 0;
}

static bool title_line(struct importer *importer, struct scan line)
{
	static const struct {
		const char *words;
		enum import_part part;
	} titles[] = {
		{"IRQ Timer Latency", PART_TIMERLAT_TOP},
		{"Operating System Noise", PART_OSNOISE_TOP},
		{"Hardware-related Noise", PART_HWNOISE_TOP},
		{"RTLA timerlat histogram", PART_TIMERLAT_HIST},
		{"RTLA osnoise histogram", PART_OSNOISE_HIST},
	};
	for (unsigned i = 0; i < ARRAY_LEN(titles); i++) {
		if (scan_find(line, titles[i].words)) {
			import_begin(importer, titles[i].part);
			return true;
		}
	}
	return false;
}

int import_rtla_line(struct importer *importer, struct scan line)
{
	struct scan text = scan_trim(line), rest = text;
	bool comment = scan_skip(&rest, "#");
	uint64_t elapsed;
	find_unit(importer, text);
	bool title = title_line(importer, text);
	if (title && !scan_find(text, "|"))
		return 1;
	if (scan_skip(&rest, "Duration:") || scan_skip(&rest, "duration:") ||
	    scan_find(rest, "|")) {
		if (parse_elapsed(&rest, &elapsed)) {
			importer->run->duration_ns = elapsed;
			return 1;
		}
	}
	if (title || (comment && (scan_find(rest, "RTLA") || scan_find(rest, "Time unit is"))))
		return 1;
	if (scan_starts(text, "Index")) {
		import_begin(importer, histogram_part(importer, text));
		return hist_header(importer, (struct scan){text.at + strlen("Index"), text.end});
	}
	if (scan_starts(text, "Timer Latency") || scan_starts(text, "CPU COUNT") ||
	    scan_starts(text, "CPU Period"))
		return 1;
	if (scan_starts(text, "ALL")) { /* sums over all CPUs: they are made anew */
		importer->in_table = false;
		return importer->first_line[PART_TIMERLAT_TOP] || importer->columns.len > 0;
	}
	return table_row(importer, text);
}
