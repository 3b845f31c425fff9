/* culprit list: what can be counted, by which names, and with --probe whether it really opens. */
#include "cmd/list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd/command.h"
#include "cmd/feature.h"
#include "cmd/option.h"
#include "view/table.h"
#include "view/text.h"

struct list_options {
	const char *cpu, *events_dir, *event;
	bool json, csv, details, probe;
};

static const struct option_spec list_options[] = {
	OPT_TEXT('e', "event", "EVENTS", struct list_options, event,
		 "Instead of a list: what this text, as -e of stat and record takes it, becomes. "
		 "One row "
		 "per event that would be opened, with its attribute."),
	OPT_FLAG(0, "probe", struct list_options, probe,
		 "Really open each event, say which work here and why the others do not. Opening "
		 "every "
		 "tracepoint takes a while: give a filter."),
	OPT_FLAG('d', "details", struct list_options, details,
		 "A paragraph per event, with the whole description, the encoding and the "
		 "counters."),
	OPT_TEXT(0, "cpu", "NAME", struct list_options, cpu,
		 "Vendor names of another CPU, by its short name (skl, icx, spr, zen4, n1, v2 "
		 "...), a "
		 "table name of libpfm4, or a folder of the vendor files."),
	OPT_TEXT(0, "events-dir", "DIR", struct list_options, events_dir,
		 "A directory of vendor JSON files in the layout of intel/perfmon, of perf, or of "
		 "Arm's "
		 "telemetry data. Default: $CULPRIT_EVENTS_DIR."),
	OPT_FLAG(0, "json", struct list_options, json, "Print one JSON document."),
	OPT_FLAG(0, "csv", struct list_options, csv, "Print comma-separated values with a header."),
	OPT_END,
};

enum {
	COLUMN_NAME,
	COLUMN_KIND,
	COLUMN_ENCODING,
	COLUMN_COUNTERS,
	COLUMN_DESCRIPTION,
	COLUMN_TABLE,
	COLUMN_DEPRECATED,
	COLUMN_PROBE,
	COLUMN_REASON,
	COLUMN_UNIT,
	COLUMN_GROUPS,
	COLUMN_NEEDS,
	COLUMN_THRESHOLD,
};

static const struct table_column list_columns[] = {
	[COLUMN_NAME] = {.key = "name", .title = "NAME", .kind = CELL_TEXT, .max_width = 60},
	[COLUMN_KIND] = {.key = "kind", .title = "KIND", .kind = CELL_TEXT},
	[COLUMN_ENCODING] = {.key = "encoding",
			     .title = "ENCODING",
			     .kind = CELL_TEXT,
			     .max_width = 80},
	[COLUMN_COUNTERS] = {.key = "counters", .title = "COUNTERS", .kind = CELL_TEXT},
	[COLUMN_DESCRIPTION] = {.key = "description", .title = "DESCRIPTION", .kind = CELL_TEXT},
	[COLUMN_TABLE] = {.key = "table", .kind = CELL_TEXT},
	[COLUMN_DEPRECATED] = {.key = "deprecated", .kind = CELL_TEXT},
	[COLUMN_PROBE] = {.key = "probe", .title = "HERE", .kind = CELL_TEXT},
	[COLUMN_REASON] = {.key = "reason", .title = "WHY NOT", .kind = CELL_TEXT},
	[COLUMN_UNIT] = {.key = "unit", .kind = CELL_TEXT},
	[COLUMN_GROUPS] = {.key = "groups", .kind = CELL_TEXT},
	[COLUMN_NEEDS] = {.key = "needs", .kind = CELL_TEXT},
	[COLUMN_THRESHOLD] = {.key = "threshold", .kind = CELL_TEXT},
};

/* perf's short words are understood too. */
static int kind_of_word(const char *word)
{
	static const struct {
		const char *word;
		enum list_kind kind;
	} words[] = {{"hw", LIST_HARDWARE},       {"sw", LIST_SOFTWARE},
		     {"hwcache", LIST_CACHE},     {"metrics", LIST_METRIC},
		     {"metricgroup", LIST_GROUP}, {"metricgroups", LIST_GROUP}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(word, words[i].word) == 0)
			return (int)words[i].kind;
	for (int kind = 0; kind < LIST_KINDS; kind++)
		if (strcasecmp(word, list_kind_names[kind]) == 0)
			return kind;
	return -1;
}

static int fill_table(const struct list *list, bool probe, struct table **ret)
{
	struct table_column columns[ARRAY_LEN(list_columns)];
	struct table *table;
	int r;

	memcpy(columns, list_columns, sizeof(columns));
	if (probe)
		columns[COLUMN_DESCRIPTION].title = columns[COLUMN_COUNTERS].title = NULL;
	else
		columns[COLUMN_PROBE].title = columns[COLUMN_REASON].title = NULL;
	r = table_new(columns, ARRAY_LEN(columns), &table);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list->rows.len; i++) {
		const struct list_row *row = &list->rows.data[i];

		table_text(table, row->name);
		table_text(table, list_kind_names[row->kind]);
		table_text(table, row->encoding);
		table_text(table, row->counters);
		table_text(table, row->description);
		table_text(table, row->table);
		table_text(table, row->deprecated ? "yes" : "no");
		table_text(table, row->probe);
		table_text(table, row->reason);
		table_text(table, row->unit);
		table_text(table, row->groups);
		table_text(table, row->needs);
		table_text(table, row->threshold);
	}
	r = table_status(table);
	if (r < 0)
		table_free(table);
	else
		*ret = table;
	return r;
}

static void line(struct str *out, const char *key, const char *value)
{
	if (!value)
		return;
	str_printf(out, "    %-12s ", key);
	text_clean(out, value, strlen(value));
	str_putc(out, '\n');
}

static void print_details(const struct list *list, struct str *out)
{
	for (size_t i = 0; i < list->rows.len; i++) {
		const struct list_row *row = &list->rows.data[i];

		text_clean(out, row->name, strlen(row->name));
		str_printf(out, "%s\n", row->deprecated ? "  (deprecated)" : "");
		line(out, "kind", list_kind_names[row->kind]);
		line(out, "what", row->description);
		line(out, row->kind == LIST_METRIC ? "formula" : "encoding", row->encoding);
		line(out, "unit", row->unit);
		line(out, "needs", row->kind == LIST_METRIC ? row->needs : NULL);
		line(out, "groups", row->groups);
		line(out, "threshold", row->threshold);
		line(out, "counters", row->counters);
		line(out, "table", row->table);
		line(out, "here", row->probe);
		line(out, "why not", row->reason);
		str_putc(out, '\n');
	}
}

static void print_json(const struct list *list, const struct table *table, struct str *out)
{
	const struct host_cpu_model *model = event_env_model(list->env);
	struct json json = {0};

	json_document(&json, "list");
	json_text(&json, "cpu_model", model->known ? model->id : NULL);
	json_text(&json, "notes", list->notes[0] ? list->notes : NULL);
	table_print_json(table, "events", &json);
	json_end_object(&json);
	str_append(out, json.out.data, json.out.len);
	str_fini(&json.out);
}

static int print(const struct command *self, const struct list *list,
		 const struct list_options *options)
{
	struct table_style style = {.color = isatty(STDOUT_FILENO) == 1};
	struct table *table = NULL;
	struct str out = {0};
	struct winsize size;
	int r = fill_table(list, options->probe, &table);

	if (r < 0)
		return cmd_failf(self, "out of memory");
	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		style.width = size.ws_col;
	if (options->json)
		print_json(list, table, &out);
	else if (options->csv)
		table_print_csv(table, ',', &out);
	else if (options->details)
		print_details(list, &out);
	else
		table_print_text(table, &style, &out);
	table_free(table);
	r = str_status(&out) < 0 ? cmd_failf(self, "out of memory")
				 : cmd_write_stdout(self, str_text(&out), out.len);
	str_fini(&out);
	return r;
}

/* Words that are kinds choose sources, all others are patterns; both together narrow. */
static void take_filters(struct list *list, char **words, unsigned count, const char **patterns)
{
	for (unsigned i = 0; i < count; i++) {
		int kind = kind_of_word(words[i]);

		if (kind >= 0)
			list->kinds |= 1u << kind;
		else
			patterns[list->pattern_count++] = words[i];
	}
	list->patterns = patterns;
	if (list->kinds == 0) {
		list->kinds = (1u << LIST_KINDS) - 1;
		/* How to write raw events is of no use to a search, fields neither. */
		if (list->pattern_count)
			list->kinds &= ~(1u << LIST_RAW | 1u << LIST_FORMAT);
		/* Of another CPU only the tables are known. */
		if (list->other_cpu)
			list->kinds = 1u << LIST_VENDOR | 1u << LIST_METRIC | 1u << LIST_GROUP;
	}
}

static int list_with(const struct command *self, struct list *list,
		     const struct list_options *options)
{
	struct err err = {0};
	int r = options->event ? list_explain(list, options->event, &err)
			       : list_collect(list, &err);

	if (r == 0 && options->probe)
		r = list_probe(list);
	if (r < 0)
		return cmd_fail(self, r, &err);
	for (char *rest = list->notes, *text; !options->json && rest && *rest;) {
		text = strsep(&rest, "\n");
		if (*text)
			cmd_warnf(self, "%s", text);
	}
	if (list->rows.len == 0)
		return cmd_failf(self, "nothing matches%s%s", list->pattern_count ? " " : "",
				 list->pattern_count ? list->patterns[0] : "");
	return print(self, list, options);
}

static int list_run(const struct command *self, int argc, char **argv)
{
	struct list_options options = {0};
	int first = options_parse(self, &options, argc, argv), r;
	CLEANUP_FREE const char **patterns = calloc((size_t)(argc - first) + 1, sizeof(*patterns));
	struct event_env_options env_options = {.cpu = options.cpu,
						.events_dir = options.events_dir};
	struct list list = {.other_cpu = options.cpu != NULL};
	struct err err = {0};

	if (!patterns)
		return cmd_failf(self, "out of memory");
	if (options.json + options.csv + options.details > 1)
		return cmd_failf(self, "--json, --csv and --details exclude each other");
	if (options.event && first < argc)
		return cmd_failf(self, "-e explains one text; it takes no filters");
	if (options.probe && options.cpu)
		return cmd_failf(self, "--probe opens events here; --cpu names another CPU");
	take_filters(&list, argv + first, (unsigned)(argc - first), patterns);
	r = event_env_new(&env_options, &list.env, &err);
	if (r < 0)
		return cmd_fail(self, r, &err);
	r = list_with(self, &list, &options);
	list_fini(&list);
	event_env_free(list.env);
	return r;
}

const struct command command_list = {
	.name = "list",
	.args = "[OPTIONS] [FILTER...]",
	.summary = "list the events and metrics that can be counted and sampled here",
	.details = "Lists every name that -e takes, with its raw encoding, the counters that may "
		   "hold it and "
		   "what it means: events that all kernels know (hardware, cache, software), those "
		   "of the "
		   "PMUs in /sys (pmu) and the fields to build one's own (format), tracepoints, "
		   "and the names "
		   "of the CPU's manual (vendor), from libpfm4 or from the vendor's files; then "
		   "the numbers that -M of "
		   "stat derives from events (metric: the formula stands in place of the encoding) "
		   "and the groups "
		   "those come in (group), built in or from the vendor's files.\n\n"
		   "A FILTER is one of the kinds hardware (hw), cache, software (sw), tool, raw, "
		   "pmu, format, "
		   "tracepoint, vendor, metric and group, a glob over the name (sched:*), or a "
		   "part of the name; of "
		   "metrics also the name of a group. "
		   "A row is "
		   "shown when it is of one of the kinds and matches one of the patterns.\n\n"
		   "Whether an event works here depends on the CPU, the virtual machine, the "
		   "kernel's settings "
		   "and one's rights. --probe finds out by opening it, and words the reason when "
		   "it cannot be "
		   "opened. Some events open but cannot see the kernel: those are marked 'user "
		   "only'.\n\n"
		   "-  in a column stands for what is not known.",
	.examples = "culprit list hw cache --probe\n\tWhich of the usual events work here?\n"
		    "culprit list 'sched:*'\n\tThe scheduler's tracepoints.\n"
		    "culprit list --details l1_miss\n\tWhat the manual calls L1 misses, in full.\n"
		    "culprit list --cpu spr stall\n\tNames of a CPU that this machine is not.\n"
		    "culprit list --details metric\n\tWhat -M of stat can compute, with formulas.\n"
		    "culprit list -e '{cycles,instructions}:u'\n\tWhat this text opens, attribute "
		    "by attribute.\n"
		    "culprit list --json vendor >events.json\n\tEverything the tables know, for a "
		    "script.\n",
	.options = list_options,
	.run = list_run,
};
