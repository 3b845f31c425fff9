/* Machine forms of stat: the columns of perf stat -x, CSV with states, and JSON. Always the C
 * locale. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/stat.h"
#include "view/table.h"

static bool is_clock(const struct stat_job *job, unsigned event)
{
	const struct perf_event_attr *attr = &job->set.events.data[event].attr;

	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_TASK_CLOCK ||
						    attr->config == PERF_COUNT_SW_CPU_CLOCK);
}

const char *stat_unit(const struct stat_job *job, unsigned event)
{
	return is_clock(job, event) ? "msec" : job->set.events.data[event].unit;
}

static void group_digits(const char *digits, char *buf, size_t size)
{
	size_t len = strcspn(digits, "."), out = 0;

	for (size_t i = 0; digits[i] && out + 2 < size; i++) {
		if (i > 0 && i < len && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf[out++] = ',';
		buf[out++] = digits[i];
	}
	buf[out] = '\0';
}

void stat_value_text(const struct stat_job *job, unsigned event, const struct count_value *value,
		     bool grouped, char *buf, size_t size)
{
	const struct count_event *e = &job->set.events.data[event];
	char text[64];

	if (!value_has_number(value)) {
		buf[0] = '\0';
		return;
	}
	if (is_clock(job, event))
		snprintf(text, sizeof(text), "%.2f", value->value / 1e6);
	else if (e->scale != 1)
		snprintf(text, sizeof(text), "%.2f", value->value * e->scale);
	else if (value->state == VALUE_MEASURED && value->value == (double)value->raw)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)value->raw);
	else
		snprintf(text, sizeof(text), "%.0f", value->value);
	if (grouped)
		group_digits(text, buf, size);
	else
		snprintf(buf, size, "%s", text);
}

/* A number of the form perf prints it in: C locale, fixed digits, K M G before "/sec". */
static void perf_metric(const struct stat_metric *metric, const struct count_ratio *ratio,
			char *number, size_t size, char *unit, size_t unit_size)
{
	static const char prefixes[] = {0, 'K', 'M', 'G'};
	double value = ratio->value;
	size_t prefix = 0;

	number[0] = unit[0] = '\0';
	if (isnan(value))
		return;
	for (; metric->per_time && value >= 1000 && prefix < 3; prefix++)
		value /= 1000;
	snprintf(number, size, "%.*f", metric->digits, value);
	if (metric->asked) /* as perf has it: the unit and the name */
		snprintf(unit, unit_size, "%s%s%s", metric->unit, metric->unit[0] ? "  " : "",
			 metric->name);
	else if (prefix)
		snprintf(unit, unit_size, "%c%s", prefixes[prefix], metric->unit);
	else
		snprintf(unit, unit_size, "%s",
			 metric->unit + (str_prefix(metric->unit, "% ", NULL) ? 2 : 0));
}

static const struct stat_metric *first_metric_of(const struct stat_job *job, unsigned event,
						 size_t *ret_index)
{
	for (size_t m = 0; m < job->metrics.len; m++)
		if (!job->metrics.data[m].asked && job->metrics.data[m].shown_at == (int)event) {
			*ret_index = m;
			return &job->metrics.data[m];
		}
	return NULL;
}

/* The columns before the value. */
static void perf_head(struct stat_job *job, const struct stat_result *result, size_t row)
{
	const char *sep = job->options.separator;
	const struct stat_row *r = &job->target.rows.data[row];

	if (job->options.interval_ns)
		fprintf(job->out, "%6llu.%09llu%s",
			(unsigned long long)(result->time_ns / NSEC_PER_SEC),
			(unsigned long long)(result->time_ns % NSEC_PER_SEC), sep);
	if (r->label[0] && job->options.aggregate != STAT_PER_CGROUP)
		fprintf(job->out, "%s%s", r->label, sep);
	if (job->options.aggregate >= STAT_PER_CORE && job->options.aggregate <= STAT_PER_NODE)
		fprintf(job->out, "%u%s", r->cpus, sep);
}

/* Metrics that were asked for: rows with nothing but the last two columns. */
static void perf_asked(struct stat_job *job, const struct stat_result *result, size_t row)
{
	const char *sep = job->options.separator;
	unsigned blank =
		5u + (job->options.aggregate == STAT_PER_CGROUP) + (job->options.repeat > 1);

	for (size_t m = 0; m < job->metrics.len; m++) {
		const struct stat_metric *metric = &job->metrics.data[m];
		char number[64], unit[256];

		if (!metric->asked)
			continue;
		perf_metric(metric, &result->ratios[row * job->metrics.len + m], number,
			    sizeof(number), unit, sizeof(unit));
		if (number[0] == '\0')
			continue;
		perf_head(job, result, row);
		for (unsigned i = 0; i < blank; i++)
			fputs(sep, job->out);
		fprintf(job->out, "%s%s%s\n", number, sep, unit);
	}
}

static void perf_row(struct stat_job *job, const struct stat_result *result, size_t row, unsigned i)
{
	const char *sep = job->options.separator;
	const struct stat_row *r = &job->target.rows.data[row];
	const struct count_value *value = &result->values[row * stat_events(job) + i];
	char text[64], number[64] = "", unit[256] = "";
	const struct stat_metric *metric;
	size_t m = 0;

	perf_head(job, result, row);
	stat_value_text(job, i, value, false, text, sizeof(text));
	fprintf(job->out, "%s%s%s%s%s%s",
		text[0]                               ? text
		: value->state == VALUE_NOT_SUPPORTED ? "<not supported>"
						      : "<not counted>",
		sep, stat_unit(job, i), sep, job->set.events.data[i].name, sep);
	if (job->options.aggregate == STAT_PER_CGROUP)
		fprintf(job->out, "%s%s", r->label, sep);
	if (job->options.repeat > 1)
		fprintf(job->out, "%.2f%%%s",
			value_has_number(value) && value->value > 0
				? 100 * value->stderr_ / value->value
				: 0.0,
			sep);
	metric = first_metric_of(job, i, &m);
	if (metric && text[0])
		perf_metric(metric, &result->ratios[row * job->metrics.len + m], number,
			    sizeof(number), unit, sizeof(unit));
	fprintf(job->out, "%llu%s%.2f%s%s%s%s\n",
		(unsigned long long)(value->running_ns / MAX(job->options.repeat, UINT64_C(1))),
		sep, value->enabled_ns ? 100 * value_share(value) : 100.0, sep, number, sep, unit);
}

void stat_print_perf(struct stat_job *job, const struct stat_result *result)
{
	for (size_t row = 0; row < job->target.rows.len; row++) {
		for (unsigned i = 0; i < stat_events(job); i++)
			if (!job->set.events.data[i].internal)
				perf_row(job, result, row, i);
		perf_asked(job, result, row);
	}
}

static const struct table_column csv_columns[] = {
	{.key = "time_ns", .kind = CELL_COUNT},    {.key = "where", .kind = CELL_TEXT},
	{.key = "kind", .kind = CELL_TEXT},        {.key = "name", .kind = CELL_TEXT},
	{.key = "value", .kind = CELL_TEXT},       {.key = "unit", .kind = CELL_TEXT},
	{.key = "stderr", .kind = CELL_TEXT},      {.key = "raw", .kind = CELL_COUNT},
	{.key = "enabled_ns", .kind = CELL_COUNT}, {.key = "running_ns", .kind = CELL_COUNT},
	{.key = "state", .kind = CELL_TEXT},       {.key = "together", .kind = CELL_TEXT},
	{.key = "reason", .kind = CELL_TEXT},      {.key = "schema", .kind = CELL_COUNT},
};

#define CSV_SCHEMA 1 /* columns are only ever added, behind the last */

/* Machine units: clocks in ns, scaled events in their own unit. */
static double machine_value(const struct stat_job *job, unsigned event, double value)
{
	return value * job->set.events.data[event].scale;
}

static const char *machine_unit(const struct stat_job *job, unsigned event)
{
	return is_clock(job, event) ? "ns" : job->set.events.data[event].unit;
}

static const char *metric_name(const struct stat_job *job, const struct stat_metric *metric,
			       char *buf, size_t size)
{
	if (strcmp(metric->name, "rate") != 0)
		return metric->name;
	snprintf(buf, size, "%s_per_sec", job->set.events.data[metric->shown_at].name);
	return buf;
}

static const char *metric_unit(const struct stat_metric *metric)
{
	return str_prefix(metric->unit, "% ", NULL) ? "%" : metric->per_time ? "1/s" : metric->unit;
}

/* Whole numbers as such, others with the digits that read back as the same number. */
static void csv_number(struct table *table, double value)
{
	char text[64];

	if (!isfinite(value)) {
		table_unknown(table);
		return;
	}
	snprintf(text, sizeof(text), "%.0f", value);
	for (int digits = 6; digits <= 17 && strtod(text, NULL) != value; digits++)
		snprintf(text, sizeof(text), "%.*g", digits, value);
	table_text(table, text);
}

static void csv_event(struct stat_job *job, struct table *table, const struct stat_result *result,
		      size_t row, unsigned i)
{
	const struct count_value *value = &result->values[row * stat_events(job) + i];
	bool counted = value->state != VALUE_NOT_SUPPORTED;

	table_count(table, result->time_ns);
	table_text(table, job->target.rows.data[row].label);
	table_text(table, "event");
	table_text(table, job->set.events.data[i].name);
	csv_number(table, machine_value(job, i, value->value));
	table_text(table, machine_unit(job, i));
	csv_number(table, machine_value(job, i, value->stderr_));
	if (counted) {
		table_count(table, value->raw);
		table_count(table, value->enabled_ns);
		table_count(table, value->running_ns);
	} else {
		for (int cell = 0; cell < 3; cell++)
			table_unknown(table);
	}
	table_text(table, value_state_name(value->state));
	table_unknown(table);
	table_text(table, value->reason[0] ? value->reason : NULL);
	table_count(table, CSV_SCHEMA);
}

static void csv_metric(struct stat_job *job, struct table *table, const struct stat_result *result,
		       size_t row, size_t m)
{
	const struct stat_metric *metric = &job->metrics.data[m];
	const struct count_ratio *ratio = &result->ratios[row * job->metrics.len + m];
	char name[96];

	table_count(table, result->time_ns);
	table_text(table, job->target.rows.data[row].label);
	table_text(table, "metric");
	table_text(table, metric_name(job, metric, name, sizeof(name)));
	csv_number(table, ratio->value);
	table_text(table, metric_unit(metric));
	csv_number(table, ratio->stderr_);
	for (int cell = 0; cell < 3; cell++)
		table_unknown(table);
	table_text(table, value_state_name(ratio->state));
	table_text(table, ratio->together ? "yes" : "no");
	table_text(table, ratio->reason[0] ? ratio->reason : NULL);
	table_count(table, CSV_SCHEMA);
}

void stat_print_csv(struct stat_job *job, const struct stat_result *result)
{
	struct str out = {0};
	struct table *table;
	const char *text;

	if (table_new(csv_columns, ARRAY_LEN(csv_columns), &table) < 0)
		return;
	for (size_t row = 0; row < job->target.rows.len; row++) {
		for (unsigned i = 0; i < stat_events(job); i++)
			if (!job->set.events.data[i].internal)
				csv_event(job, table, result, row, i);
		for (size_t m = 0; m < job->metrics.len; m++)
			csv_metric(job, table, result, row, m);
	}
	table_print_csv(table, ',', &out);
	text = str_text(&out);
	if (job->header_done) { /* one header however many intervals */
		const char *line = strchr(text, '\n');

		text = line ? line + 1 : text;
	}
	fputs(text, job->out);
	job->header_done = true;
	str_fini(&out);
	table_free(table);
}

static void flush_json(struct stat_job *job)
{
	fwrite(str_text(&job->json.out), 1, job->json.out.len, job->out);
	str_clear(&job->json.out);
}

void stat_json_begin(struct stat_job *job)
{
	json_document(&job->json, "stat");
	json_text(&job->json, "target", job->title);
	if (job->options.interval_ns)
		json_array(&job->json, "intervals");
}

static void json_event(struct stat_job *job, const struct stat_result *result, size_t row,
		       unsigned i)
{
	const struct count_value *value = &result->values[row * stat_events(job) + i];
	const struct stat_row *r = &job->target.rows.data[row];
	struct json *json = &job->json;
	bool counted = value->state != VALUE_NOT_SUPPORTED;

	json_object(json, NULL);
	json_text(json, "name", job->set.events.data[i].name);
	json_u64_if(json, "cpu", r->cpu >= 0, (uint64_t)r->cpu);
	if (r->label[0])
		json_text(json, "where", r->label);
	if (value->state == VALUE_MEASURED && job->set.events.data[i].scale == 1 &&
	    value->value == (double)value->raw)
		json_u64(json, "value", value->raw);
	else
		json_double(json, "value", machine_value(job, i, value->value));
	json_text(json, "unit", machine_unit(job, i));
	json_double(json, "stderr", machine_value(job, i, value->stderr_));
	json_u64_if(json, "raw", counted, value->raw);
	json_u64_if(json, "enabled_ns", counted, value->enabled_ns);
	json_u64_if(json, "running_ns", counted, value->running_ns);
	json_text(json, "state", value_state_name(value->state));
	json_text(json, "reason", value->reason[0] ? value->reason : NULL);
	json_bool(json, "phases", value->phases);
	json_end_object(json);
}

static void json_metric(struct stat_job *job, const struct stat_result *result, size_t row,
			size_t m)
{
	const struct stat_metric *metric = &job->metrics.data[m];
	const struct count_ratio *ratio = &result->ratios[row * job->metrics.len + m];
	const struct stat_row *r = &job->target.rows.data[row];
	struct json *json = &job->json;
	char name[96];

	json_object(json, NULL);
	json_text(json, "name", metric_name(job, metric, name, sizeof(name)));
	if (r->label[0])
		json_text(json, "where", r->label);
	json_double(json, "value", ratio->value);
	json_text(json, "unit", metric_unit(metric));
	json_text(json, "formula", metric->asked ? metric->formula : NULL);
	json_double(json, "stderr", ratio->stderr_);
	json_text(json, "state", value_state_name(ratio->state));
	json_bool(json, "together", ratio->together);
	json_double(json, "counted_share", ratio->share);
	json_text(json, "reason", ratio->reason[0] ? ratio->reason : NULL);
	json_end_object(json);
}

void stat_json_result(struct stat_job *job, const struct stat_result *result)
{
	struct json *json = &job->json;
	bool interval = job->options.interval_ns > 0;

	if (interval) {
		json_object(json, NULL);
		json_u64(json, "time_ns", result->time_ns);
	}
	json_u64(json, "wall_ns", result->wall_ns);
	if (!interval) {
		json_double(json, "wall_stderr_ns", result->wall_stderr_ns);
		json_u64_if(json, "user_ns", result->has_times, result->user_ns);
		json_u64_if(json, "sys_ns", result->has_times, result->sys_ns);
		json_u64(json, "runs", result->runs);
	}
	json_array(json, "events");
	for (size_t row = 0; row < job->target.rows.len; row++)
		for (unsigned i = 0; i < stat_events(job); i++)
			if (!job->set.events.data[i].internal)
				json_event(job, result, row, i);
	json_end_array(json);
	json_array(json, "metrics");
	for (size_t row = 0; row < job->target.rows.len; row++)
		for (size_t m = 0; m < job->metrics.len; m++)
			json_metric(job, result, row, m);
	json_end_array(json);
	if (interval)
		json_end_object(json);
	flush_json(job);
}

void stat_json_end(struct stat_job *job)
{
	if (job->options.interval_ns)
		json_end_array(&job->json);
	json_text(&job->json, "notes", job->set.notes.len ? str_text(&job->set.notes) : NULL);
	json_end_object(&job->json);
	flush_json(job);
}
