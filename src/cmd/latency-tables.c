/* What stands around the tables of a run: heading, sources of noise, losses; and the whole of it.
 */
#include "cmd/latency-tables.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "latency/analysis.h"
#include "latency/run-file.h"
#include "view/table.h"
#include "view/text.h"

#define HEAD_WIDTH    100
#define CULPRITS_TEXT 20
#define VERDICTS_TEXT 4

struct latency_view latency_view_of(const struct latency_run *run)
{
	bool terminal = isatty(STDOUT_FILENO) == 1;
	struct winsize size;
	struct latency_view view = {
		.run = run, .bucket_ns = NSEC_PER_USEC, .entries = 256, .width = 0};

	view.color = terminal && !getenv("NO_COLOR");
	if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		view.width = size.ws_col;
	return view;
}

const char *latency_unit(const struct latency_view *view)
{
	return view->nano ? "ns" : "us";
}

bool latency_is_noise(const struct latency_run *run)
{
	return run->tool == LATENCY_OSNOISE || run->tool == LATENCY_HWNOISE;
}

void latency_put_time(const struct latency_view *view, struct str *out, int width, int64_t ns)
{
	if (ns == LATENCY_UNKNOWN_NS)
		str_printf(out, "%*s", width, "-");
	else if (view->nano)
		str_printf(out, "%*lld", width, (long long)ns);
	else
		str_printf(out, "%*.*f", width, ns < 100000000 ? 1 : 0, (double)ns / 1000);
}

void latency_put_time_double(const struct latency_view *view, struct str *out, int width, double ns)
{
	latency_put_time(view, out, width,
			 isfinite(ns) ? (int64_t)llround(ns) : LATENCY_UNKNOWN_NS);
}

void latency_put_source_name(const struct latency_run *run, enum noise_class class, int number,
			     uint32_t name, uint32_t function, struct str *out)
{
	const struct strtab_entry *text = &run->names.entries.data[name];

	text_clean(out, text->len ? text->text : "(unknown)", text->len ? text->len : 9);
	if (number >= 0 && class != NOISE_SOFTIRQ)
		str_printf(out, ":%d", number);
	if (function) {
		text = &run->names.entries.data[function];
		str_puts(out, " in ");
		text_clean(out, text->text, text->len);
	}
}

/* --- heading ------------------------------------------------------------------------------- */

/* Words wrapped at HEAD_WIDTH; lines after the first are indented deeper. */
static void put_wrapped(struct str *out, const char *start, const char *text)
{
	struct str clean = {0};
	size_t column = strlen(start);
	const char *at;

	text_clean(&clean, text, strlen(text));
	at = str_text(&clean);
	str_puts(out, start);
	while (*at) {
		size_t word = strcspn(at, " ");

		if (column + word > HEAD_WIDTH && column > strlen(start)) {
			str_puts(out, "\n      ");
			column = 6;
		}
		str_append(out, at, word);
		column += word;
		at += word;
		if (*at == ' ') {
			str_putc(out, ' ');
			column++;
			at += strspn(at, " ");
		}
	}
	str_putc(out, '\n');
	str_fini(&clean);
}

static void put_sentences(struct str *out, const char *start, const struct strtab *names,
			  const uint32_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_wrapped(out, start, strtab_text(names, ids[i]));
}

static void put_conditions(const struct latency_run *run, struct str *out)
{
	struct str line = {0};

	vec_for_each(&run->conditions, condition)
		str_printf(&line, "%s%s: %s", line.len ? "; " : "",
			   strtab_text(&run->names, condition->name),
			   strtab_text(&run->names, condition->value));
	if (line.len)
		put_wrapped(out, "  ", str_text(&line));
	str_fini(&line);
}

static void put_span(const char *what, uint64_t ns, struct str *line)
{
	if (ns == 0)
		return;
	str_printf(line, "%s%s ", line->len ? ", " : "", what);
	if (ns >= NSEC_PER_SEC)
		str_printf(line, "%.1f s", (double)ns / 1e9);
	else if (ns >= 10 * NSEC_PER_MSEC && ns % NSEC_PER_MSEC)
		str_printf(line, "%.1f ms", (double)ns / 1e6);
	else
		str_printf(line, "%.*f us", ns % 1000 ? 3 : 0, (double)ns / 1e3);
}

void latency_put_head(const struct latency_view *view, struct str *out)
{
	const struct latency_run *run = view->run;
	struct str line = {0};

	str_printf(&line, "engine %c (%s)", latency_engine_letter(run->engine),
		   latency_engine_name(run->engine));
	if (run->engine_reason)
		str_printf(&line, ": %s", strtab_text(&run->names, run->engine_reason));
	if (run->source)
		str_printf(&line, " from %s", strtab_text(&run->names, run->source));
	str_printf(out, "%s, ", latency_tool_name(run->tool));
	put_wrapped(out, "", str_text(&line));
	str_clear(&line);
	put_span("measured", run->duration_ns, &line);
	put_span("period", run->period_ns, &line);
	if (latency_is_noise(run)) {
		put_span("runtime", run->runtime_ns, &line);
		put_span("noise counts from", run->threshold_ns, &line);
	}
	put_span("IRQ limit", run->limits.irq_ns, &line);
	put_span("thread limit", run->limits.thread_ns, &line);
	put_span("limit of a gap", run->limits.single_ns, &line);
	put_span("limit of a period's noise", run->limits.total_ns, &line);
	if (run->clock)
		str_printf(&line, "%sclock %s", line.len ? ", " : "",
			   strtab_text(&run->names, run->clock));
	if (line.len)
		put_wrapped(out, "  ", str_text(&line));
	str_fini(&line);
	put_conditions(run, out);
	put_sentences(out, "  cannot see: ", &run->names, run->cannot_see.data,
		      run->cannot_see.len);
	put_sentences(out, "  warning: ", &run->names, run->warnings.data, run->warnings.len);
}

/* --- sources of noise ---------------------------------------------------------------------- */

static const struct table_column culprit_columns[] = {
	{.key = "kind", .title = "Kind", .kind = CELL_TEXT},
	{.key = "name", .title = "Who", .kind = CELL_TEXT, .max_width = 48},
	{.key = "count", .title = "Count", .kind = CELL_COUNT},
	{.key = "total_ns", .title = "Total", .kind = CELL_TIME_NS},
	{.key = "share", .title = "Share", .kind = CELL_SHARE},
	{.key = "p99_ns", .title = "p99", .kind = CELL_TIME_NS},
	{.key = "max_ns", .title = "Max", .kind = CELL_TIME_NS},
	{.key = "cpu", .title = "on CPU", .kind = CELL_COUNT},
};

static void culprit_row(struct table *table, const struct latency_run *run,
			const struct noise_source *source, double whole)
{
	const struct histogram *h = &source->durations;
	struct str name = {0};

	latency_put_source_name(run, source->class, source->number, source->name, source->function,
				&name);
	table_text(table, noise_class_name(source->class));
	table_text(table, str_text(&name));
	table_count(table, source->count);
	table_count(table, source->total_ns);
	table_double(table, whole > 0 ? (double)source->total_ns / whole : NAN);
	if (h->count > 0) {
		table_count(table, histogram_percentile(h, 0.99));
		table_count(table, h->max);
		table_count(table, source->worst_cpu);
	} else {
		for (int i = 0; i < 3; i++)
			table_unknown(table);
	}
	str_fini(&name);
}

/* What is kept per CPU and has no row of its own. */
static void derived_row(struct table *table, const char *kind, const char *name, uint64_t count,
			uint64_t total_ns, uint64_t max_ns, unsigned cpu, double whole)
{
	if (total_ns == 0)
		return;
	table_text(table, kind);
	table_text(table, name);
	if (count)
		table_count(table, count);
	else
		table_unknown(table);
	table_count(table, total_ns);
	table_double(table, whole > 0 ? (double)total_ns / whole : NAN);
	table_unknown(table);
	if (max_ns)
		table_count(table, max_ns);
	else
		table_unknown(table);
	if (max_ns)
		table_count(table, cpu);
	else
		table_unknown(table);
}

static void derived_rows(struct table *table, const struct latency_run *run, double whole)
{
	uint64_t steal_ns = 0, steals = 0, steal_max_ns = 0, inside_ns = 0;
	unsigned worst = 0;

	vec_for_each(&run->cpus, cpu) {
		steal_ns += (uint64_t)MAX(cpu->steal_ns, 0);
		steals += cpu->steal_count;
		inside_ns += cpu->unexplained_inside_ns;
		if (cpu->steal_max_ns > steal_max_ns) {
			steal_max_ns = cpu->steal_max_ns;
			worst = cpu->cpu;
		}
	}
	derived_row(table, "unexplained", "around known interruptions", 0, inside_ns, 0, 0, whole);
	/* inside the times of the others: no share of its own */
	derived_row(table, "steal", "hypervisor (inside the others)", steals, steal_ns,
		    steal_max_ns, worst, 0);
}

int latency_put_culprits(const struct latency_view *view, unsigned max, struct str *out)
{
	const struct latency_run *run = view->run;
	struct table_style style = {.color = view->color, .width = view->width};
	struct table *table = NULL;
	double whole = 0;
	int r = table_new(culprit_columns, ARRAY_LEN(culprit_columns), &table);

	if (r < 0)
		return r;
	vec_for_each(&run->sources, source)
		whole += (double)source->total_ns;
	vec_for_each(&run->cpus, cpu)
		whole += (double)cpu->unexplained_inside_ns;
	vec_for_each(&run->sources, source)
		culprit_row(table, run, source, whole);
	derived_rows(table, run, whole);
	r = table_status(table);
	if (r == 0 && table_row_count(table) > 0) {
		struct str text = {0};
		const char *line;
		unsigned lines = 0;

		table_sort(table, 3, true);
		table_print_text(table, &style, &text);
		str_puts(out, "\nWho was in the way:\n");
		for (line = str_text(&text); *line && (max == 0 || lines <= max); lines++) {
			size_t len = strcspn(line, "\n");

			str_append(out, line, len);
			str_putc(out, '\n');
			line += len + (line[len] == '\n');
		}
		if (*line)
			str_printf(out, "  ... and %llu more\n",
				   (unsigned long long)(table_row_count(table) + 1 - lines));
		str_fini(&text);
	}
	table_free(table);
	return r;
}

/* --- losses and the end -------------------------------------------------------------------- */

static void put_loss(const char *what, uint64_t count, struct str *line)
{
	str_printf(line, "%s%llu %s", line->len ? ", " : "", (unsigned long long)count, what);
}

static void put_steal(const struct latency_view *view, struct str *out)
{
	bool known = false;

	vec_for_each(&view->run->cpus, cpu) {
		if (cpu->steal_ns == LATENCY_UNKNOWN_NS)
			continue;
		str_printf(out, "%s CPU %u ", known ? "," : "steal:", cpu->cpu);
		latency_put_time(view, out, 0, cpu->steal_ns);
		str_printf(out, " %s", latency_unit(view));
		known = true;
	}
	str_puts(out, known ? "\n" : "steal: not known\n");
}

static void put_over(const struct latency_view *view, struct str *out)
{
	static const char *const names[] = {"IRQ", "thread", "user"};
	const struct latency_run *run = view->run;

	for (unsigned i = 0; i < LATENCY_CONTEXTS; i++) {
		uint64_t limit = i == LATENCY_IRQ ? run->limits.irq_ns : run->limits.thread_ns;
		uint64_t over = 0;

		if (!limit || !latency_run_has(run, (enum latency_context)i))
			continue;
		vec_for_each(&run->cpus, cpu)
			over += cpu->context[i].over_threshold;
		str_printf(out, "%llu %s samples at or above ", (unsigned long long)over, names[i]);
		latency_put_time(view, out, 0, (int64_t)limit);
		str_printf(out, " %s\n", latency_unit(view));
	}
}

void latency_put_end(const struct latency_view *view, struct str *out)
{
	const struct latency_run *run = view->run;
	struct str line = {0};
	uint64_t negative = 0;

	str_putc(out, '\n');
	put_over(view, out);
	put_steal(view, out);
	put_loss("records lost", run->lost_records, &line);
	put_loss("dropped by full rings", run->ring_drops, &line);
	put_loss("missed by recursion", run->recursion_misses, &line);
	if (run->unknown_lines)
		put_loss("lines not understood", run->unknown_lines, &line);
	if (run->lost_uncounted)
		str_puts(&line, ", and an unknown number more");
	str_printf(out, "%s%s\n", str_text(&line),
		   latency_run_incomplete(run) ? ": the data is INCOMPLETE" : "");
	str_fini(&line);
	vec_for_each(&run->cpus, cpu)
		for (unsigned i = 0; i < LATENCY_CONTEXTS; i++)
			negative += cpu->context[i].negative;
	if (negative)
		str_printf(out,
			   "%llu samples came before their expiry (two clocks): not in the table\n",
			   (unsigned long long)negative);
	if (run->joined_sources)
		str_printf(out, "%llu interruptions are of sources beyond the first %u: joined\n",
			   (unsigned long long)run->joined_sources, LATENCY_SOURCES_NAMED);
	if (run->stopped)
		str_printf(out, "a threshold stopped it on CPU %u\n", run->stopped_cpu);
}

/* --- the whole ----------------------------------------------------------------------------- */

int latency_write_run_file(const struct latency_run *run, const char *path, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int r;

	if (!memory)
		return -ENOMEM;
	r = latency_run_write(run, memory, true, err);
	if (fclose(memory) != 0 && r == 0)
		r = -ENOMEM;
	return r < 0 ? r : file_write_atomic(path, text, size, 0644, err);
}

static int put_text(const struct latency_view *view, bool histogram, struct str *out)
{
	if (!view->no_header)
		latency_put_head(view, out);
	if (histogram)
		latency_put_hist(view, out);
	else
		latency_put_top(view, out);
	if (view->no_summary)
		return 0;
	latency_put_verdicts(view, VERDICTS_TEXT, out);
	latency_put_end(view, out);
	return latency_put_culprits(view, CULPRITS_TEXT, out);
}

static int print_json(const struct command *self, const struct latency_run *run)
{
	struct err err = {0};
	int r = latency_run_write(run, stdout, false, &err);

	if (r == -EPIPE)
		return EXIT_FAILED;
	return r < 0 ? cmd_fail(self, r, &err) : EXIT_DONE;
}

int latency_print_view(const struct command *self, const struct latency_view *view, bool histogram,
		       bool json, bool csv)
{
	struct str out = {0};
	int r, status;

	if (json)
		return print_json(self, view->run);
	r = csv ? latency_put_csv(view, histogram, &out) : put_text(view, histogram, &out);
	if (r == 0)
		r = str_status(&out);
	status = r < 0 ? cmd_fail(self, r, NULL) : cmd_write_stdout(self, str_text(&out), out.len);
	str_fini(&out);
	return status;
}

int latency_print_run(const struct command *self, const struct latency_run *run, bool json,
		      bool csv)
{
	struct latency_view view = latency_view_of(run);

	return latency_print_view(self, &view, false, json, csv);
}
