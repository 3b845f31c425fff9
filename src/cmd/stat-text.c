/*
 * The text form of stat: one line per event with its value, unit, name and derived numbers; errors
 * and shares where values are estimated; below the table, what the marks on it mean and nothing
 * else.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/stat.h"

#define NOTES_MAX 32

struct note {
	enum value_state state;
	const char *reason;
};

struct layout {
	int value, unit, name, where, metric;
	bool color, grouped;
	struct note notes[NOTES_MAX];
	unsigned note_count;
	bool shared, apart, phases, user_only, weak;
};

static const char *const state_words[] = {
	[VALUE_NOT_COUNTED] = "not counted",
	[VALUE_NOT_SUPPORTED] = "not supported",
	[VALUE_INVALID] = "invalid",
};

/* The number of the note that gives this reason, from 1; 0 when there are too many. */
static unsigned note_for(struct layout *layout, const struct count_value *value)
{
	for (unsigned i = 0; i < layout->note_count; i++)
		if (layout->notes[i].state == value->state &&
		    strcmp(layout->notes[i].reason, value->reason) == 0)
			return i + 1;
	if (layout->note_count == NOTES_MAX)
		return 0;
	layout->notes[layout->note_count++] = (struct note){value->state, value->reason};
	return layout->note_count;
}

static void cell_text(const struct stat_job *job, struct layout *layout, unsigned event,
		      const struct count_value *value, char *buf, size_t size)
{
	if (value_has_number(value))
		stat_value_text(job, event, value, layout->grouped, buf, size);
	else
		snprintf(buf, size, "%s [%u]", state_words[value->state], note_for(layout, value));
}

static void metric_text(const struct stat_metric *metric, const struct count_ratio *ratio,
			char *number, size_t size, char *unit, size_t unit_size)
{
	static const char prefixes[] = {0, 'K', 'M', 'G'};
	double value = ratio->value;
	size_t prefix = 0;

	for (; metric->per_time && value >= 1000 && prefix < 3; prefix++)
		value /= 1000;
	snprintf(number, size, "%.*f", metric->digits, value);
	if (prefix)
		snprintf(unit, unit_size, " %c%s", prefixes[prefix], metric->unit);
	else
		snprintf(unit, unit_size, "%s%s", metric->unit[0] == '%' ? "" : " ", metric->unit);
}

static void measure(const struct stat_job *job, const struct stat_result *result,
		    struct layout *layout)
{
	char text[64], unit[64];

	for (size_t row = 0; row < job->target.rows.len; row++) {
		layout->where = MAX(layout->where, (int)strlen(job->target.rows.data[row].label));
		for (unsigned i = 0; i < stat_events(job); i++) {
			const struct count_event *event = &job->set.events.data[i];

			if (event->internal)
				continue;
			cell_text(job, layout, i, &result->values[row * stat_events(job) + i], text,
				  sizeof(text));
			layout->value = MAX(layout->value, (int)strlen(text));
			layout->unit = MAX(layout->unit, (int)strlen(stat_unit(job, i)));
			layout->name = MAX(layout->name, (int)strlen(event->name));
			layout->user_only |= event->user_only;
		}
		for (size_t m = 0; m < job->metrics.len; m++) {
			if (job->metrics.data[m].asked)
				continue;
			metric_text(&job->metrics.data[m],
				    &result->ratios[row * job->metrics.len + m], text, sizeof(text),
				    unit, sizeof(unit));
			layout->metric = MAX(layout->metric, (int)strlen(text));
		}
	}
}

/* Intervals begin with their time. */
static void print_when(const struct stat_job *job, const struct stat_result *result)
{
	if (job->options.interval_ns)
		fprintf(job->out, "%5llu.%06llu  ",
			(unsigned long long)(result->time_ns / NSEC_PER_SEC),
			(unsigned long long)(result->time_ns % NSEC_PER_SEC / 1000));
}

static void print_metrics(const struct stat_job *job, const struct stat_result *result, size_t row,
			  unsigned event, struct layout *layout)
{
	bool first = true;

	for (size_t m = 0; m < job->metrics.len; m++) {
		const struct stat_metric *metric = &job->metrics.data[m];
		const struct count_ratio *ratio = &result->ratios[row * job->metrics.len + m];
		char number[64], unit[64];

		if (metric->asked || metric->shown_at != (int)event || isnan(ratio->value))
			continue;
		metric_text(metric, ratio, number, sizeof(number), unit, sizeof(unit));
		fprintf(job->out, first ? "  # %*s%s%s" : ", %*s%s%s", first ? layout->metric : 0,
			number, unit, ratio->together ? "" : "*");
		layout->apart |= !ratio->together;
		first = false;
	}
}

/* What -M asked for stands in lines of its own: with the name, the error, and why when there is
 * no number. */
static void print_asked(const struct stat_job *job, const struct stat_result *result, size_t row,
			struct layout *layout)
{
	for (size_t m = 0; m < job->metrics.len; m++) {
		const struct stat_metric *metric = &job->metrics.data[m];
		const struct count_ratio *ratio = &result->ratios[row * job->metrics.len + m];
		char number[64], unit[64];

		if (!metric->asked)
			continue;
		print_when(job, result);
		if (layout->where)
			fprintf(job->out, "%-*s  ", layout->where,
				job->target.rows.data[row].label);
		if (isnan(ratio->value)) {
			fprintf(job->out, "%*s  %s  (%s)\n", layout->value,
				state_words[ratio->state] ? state_words[ratio->state] : "-",
				metric->name, ratio->reason);
			continue;
		}
		metric_text(metric, ratio, number, sizeof(number), unit, sizeof(unit));
		fprintf(job->out, "%*s%s%s  %s", layout->value, number, unit,
			ratio->together ? "" : "*", metric->name);
		if (ratio->stderr_ > 0 && ratio->value != 0)
			fprintf(job->out, "  +- %.2f%%", 100 * ratio->stderr_ / fabs(ratio->value));
		else if (ratio->state != VALUE_MEASURED && isnan(ratio->stderr_))
			fprintf(job->out, "  +- ?");
		if (ratio->state != VALUE_MEASURED && ratio->share < 1)
			fprintf(job->out, " (%.0f%%%s)", 100 * ratio->share,
				ratio->state == VALUE_WEAK ? ", weak" : "");
		fputc('\n', job->out);
		layout->weak |= ratio->state == VALUE_WEAK;
		layout->apart |= !ratio->together;
		layout->shared |= ratio->state == VALUE_ESTIMATED || ratio->state == VALUE_WEAK;
	}
}

static void print_error(const struct stat_job *job, const struct count_value *value,
			struct layout *layout)
{
	bool estimated = value->state == VALUE_ESTIMATED || value->state == VALUE_WEAK;

	if (!value_has_number(value))
		return;
	if ((value->stderr_ > 0 || (estimated && value->stderr_ == 0)) && value->value > 0)
		fprintf(job->out, "  +- %.2f%%", 100 * value->stderr_ / value->value);
	else if (estimated && isnan(value->stderr_))
		fprintf(job->out, "  +- ?");
	if (estimated) {
		fprintf(job->out, " (%.0f%%%s)", 100 * value_share(value),
			value->state == VALUE_WEAK ? ", weak" : "");
		layout->shared = true;
		layout->weak |= value->state == VALUE_WEAK;
	} else if (value->reason[0]) {
		fprintf(job->out, "  (%s)", value->reason);
	}
	layout->phases |= value->phases;
}

static void print_line(const struct stat_job *job, const struct stat_result *result, size_t row,
		       unsigned i, struct layout *layout)
{
	const struct count_value *value = &result->values[row * stat_events(job) + i];
	const char *dim = layout->color && !value_has_number(value) ? "\033[2m" : "";
	char text[64];

	print_when(job, result);
	if (layout->where)
		fprintf(job->out, "%-*s  ", layout->where, job->target.rows.data[row].label);
	cell_text(job, layout, i, value, text, sizeof(text));
	fprintf(job->out, "%s%*s", dim, layout->value, text);
	if (layout->unit)
		fprintf(job->out, " %-*s", layout->unit, stat_unit(job, i));
	fprintf(job->out, "  %-*s%s", value_has_number(value) ? layout->name : 0,
		job->set.events.data[i].name, dim[0] ? "\033[0m" : "");
	print_metrics(job, result, row, i, layout);
	print_error(job, value, layout);
	fputc('\n', job->out);
}

static void print_seconds(const struct stat_job *job, uint64_t ns, double stderr_ns,
			  const char *what)
{
	fprintf(job->out, "%16.9f s %s", (double)ns / 1e9, what);
	if (stderr_ns > 0 && ns > 0)
		fprintf(job->out, "  +- %.2f%%", 100 * stderr_ns / (double)ns);
	fputc('\n', job->out);
}

static void print_note(const struct stat_job *job, const struct stat_result *result,
		       const struct note *note, unsigned number)
{
	const char *before = "";

	fprintf(job->out, " [%u] %s: ", number, state_words[note->state]);
	for (unsigned i = 0; i < stat_events(job); i++) {
		const struct count_value *value = &result->values[i];

		if (job->set.events.data[i].internal || value->state != note->state ||
		    strcmp(value->reason, note->reason) != 0 || job->target.rows.len > 1)
			continue;
		fprintf(job->out, "%s%s", before, job->set.events.data[i].name);
		before = ", ";
	}
	fprintf(job->out, "%s%s\n", before[0] ? ":\n     " : "", note->reason);
}

static void print_legend(const struct stat_job *job, const struct stat_result *result,
			 const struct layout *layout)
{
	for (unsigned i = 0; i < layout->note_count; i++)
		print_note(job, result, &layout->notes[i], i + 1);
	if (layout->shared)
		fprintf(job->out, " (n%%) the event had a counter in this share of the time, the "
				  "rest is estimated from the\n"
				  "     cycles seen meanwhile; +- is one standard error. --exact "
				  "counts without sharing.\n");
	if (layout->weak)
		fprintf(job->out, " weak: counted in less than 40%% of the time; ask for fewer "
				  "events at once\n");
	if (layout->apart)
		fprintf(job->out,
			" *   the two halves of this ratio were counted at different times\n");
	if (layout->phases)
		fprintf(job->out, " The slices differ by more than sampling explains: this work "
				  "has phases. See them with\n"
				  " -I 100, or count without sharing with --exact.\n");
	if (layout->user_only)
		fprintf(job->out, " :u  user mode only: kernel.perf_event_paranoid forbids "
				  "counting the kernel\n");
	if (job->set.passes > 1)
		fprintf(job->out,
			" Counted in %d runs for each repeat, nothing shared a counter.\n",
			job->set.passes);
}

static void print_verbose(const struct stat_job *job, const struct stat_result *result)
{
	fprintf(job->out, "\n raw counts, time enabled and running in ns, by group:\n");
	for (size_t g = 0; g < job->set.groups.len; g++) {
		const struct count_group *group = &job->set.groups.data[g];

		fprintf(job->out, "  group %zu%s%s\n", g, group->pinned ? ", pinned" : "",
			group->anchor >= 0 ? ", scaled by its cycles" : "");
		for (unsigned i = 0; i < group->len; i++) {
			const struct count_value *value = &result->values[group->members[i]];

			fprintf(job->out, "    %-28s %20llu %14llu %14llu  %s\n",
				job->set.events.data[group->members[i]].name,
				(unsigned long long)value->raw,
				(unsigned long long)value->enabled_ns,
				(unsigned long long)value->running_ns,
				value_state_name(value->state));
		}
	}
}

void stat_print_text(struct stat_job *job, const struct stat_result *result)
{
	bool interval = job->options.interval_ns > 0;
	struct layout layout = {.value = 14,
				.color = isatty(fileno(job->out)) && !getenv("NO_COLOR"),
				.grouped = !job->options.plain_numbers};

	measure(job, result, &layout);
	if (!interval) {
		fprintf(job->out, "\n Counted %s", job->title);
		if (result->runs > 1)
			fprintf(job->out, " (%u runs)", result->runs);
		fprintf(job->out, ":\n\n");
	} else if (!job->header_done) {
		fprintf(job->out, "#  time (s)\n");
		job->header_done = true;
	}
	for (size_t row = 0; row < job->target.rows.len; row++) {
		for (unsigned i = 0; i < stat_events(job); i++)
			if (!job->set.events.data[i].internal)
				print_line(job, result, row, i, &layout);
		print_asked(job, result, row, &layout);
	}
	if (!interval) {
		fputc('\n', job->out);
		print_seconds(job, result->wall_ns, result->wall_stderr_ns, "elapsed");
		if (result->has_times) {
			print_seconds(job, result->user_ns, result->user_stderr_ns, "user");
			print_seconds(job, result->sys_ns, result->sys_stderr_ns, "system");
		}
		fputc('\n', job->out);
		print_legend(job, result, &layout);
	}
	if (job->options.verbose)
		print_verbose(job, result);
}
