/* culprit doctor: what this machine lets one measure, what not, why, and the line that mends it. */
#include "cmd/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd/command.h"
#include "cmd/feature.h"
#include "cmd/option.h"
#include "latency/journal.h"
#include "view/table.h"

#define FILE_BYTES (1 << 20)

static const struct {
	const char *name;
	void (*run)(struct doctor *doctor);
} doctor_areas[] = {
	{"counting", doctor_counting},
	{"rights", doctor_rights},
	{"limits", doctor_limits},
	{"latency", doctor_latency},
};

struct doctor_options {
	const char *area;
	bool json, csv, strict, repair;
};

static const struct option_spec doctor_options[] = {
	{.kind = OPTION_TEXT,
	 .name = "area",
	 .arg = "AREA",
	 .help = "Only the checks of one area: counting, rights, limits, latency.",
	 .offset = offsetof(struct doctor_options, area),
	 .complete = "counting rights limits latency"},
	OPT_FLAG(0, "strict", struct doctor_options, strict,
		 "Exit with status 2 when a check fails, for scripts."),
	OPT_FLAG(0, "repair", struct doctor_options, repair,
		 "First put back what killed measurements of latency and noise left changed, a "
		 "dead rtla's trace "
		 "instances included. Only what still has the value they set."),
	OPT_FLAG(0, "json", struct doctor_options, json, "Print one JSON document."),
	OPT_FLAG(0, "csv", struct doctor_options, csv,
		 "Print comma-separated values with a header."),
	OPT_END,
};

struct doctor_check *doctor_add(struct doctor *doctor, const char *name, enum doctor_state state,
				const char *value_fmt, ...)
{
	static struct doctor_check lost; /* written and never shown, should memory run out */
	struct doctor_check check = {.name = name, .area = doctor->area, .state = state};
	va_list args;

	va_start(args, value_fmt);
	vsnprintf(check.value, sizeof(check.value), value_fmt, args);
	va_end(args);
	if (vec_push(&doctor->checks, check) < 0)
		return &lost;
	return &doctor->checks.data[doctor->checks.len - 1];
}

void doctor_why(struct doctor_check *check, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(check->why, sizeof(check->why), fmt, args);
	va_end(args);
}

void doctor_remedy(struct doctor_check *check, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(check->remedy, sizeof(check->remedy), fmt, args);
	va_end(args);
}

struct doctor_check *doctor_unknown(struct doctor *doctor, const char *name, const char *why)
{
	struct doctor_check *check = doctor_add(doctor, name, DOCTOR_UNKNOWN, "%s", "");

	doctor_why(check, "%s", why);
	return check;
}

char *doctor_read_file(const struct doctor *doctor, const char *path)
{
	char *data;
	size_t size;

	return host_read(&doctor->host, path, FILE_BYTES, &data, &size, NULL) == 0 ? data
										   : strdup("");
}

static const char *const state_names[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_WARN] = "warn",
	[DOCTOR_FAIL] = "fail",
	[DOCTOR_UNKNOWN] = "unknown",
};

static int fill_table(const struct doctor *doctor, struct table **ret)
{
	static const struct table_column columns[] = {
		{.key = "state", .title = "STATE", .kind = CELL_TEXT},
		{.key = "area", .title = "AREA", .kind = CELL_TEXT},
		{.key = "name", .title = "CHECK", .kind = CELL_TEXT},
		{.key = "value", .title = "VALUE", .kind = CELL_TEXT},
		{.key = "why", .title = "WHAT IT MEANS", .kind = CELL_TEXT},
		{.key = "remedy", .kind = CELL_TEXT},
	};
	struct table *table;
	int r = table_new(columns, ARRAY_LEN(columns), &table);

	if (r < 0)
		return r;
	for (size_t i = 0; i < doctor->checks.len; i++) {
		const struct doctor_check *check = &doctor->checks.data[i];

		table_text(table, state_names[check->state]);
		table_text(table, check->area);
		table_text(table, check->name);
		table_text(table, check->value[0] ? check->value : NULL);
		table_text(table, check->why[0] ? check->why : NULL);
		table_text(table, check->remedy[0] ? check->remedy : NULL);
	}
	r = table_status(table);
	if (r < 0)
		table_free(table);
	else
		*ret = table;
	return r;
}

static void print_text(const struct doctor *doctor, const struct table *table, struct str *out)
{
	struct table_style style = {.color = isatty(STDOUT_FILENO) == 1};
	struct winsize size;
	bool first = true;

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		style.width = size.ws_col;
	str_printf(out, "%s%s%s\n\n", doctor->model.known ? doctor->model.name : "CPU not known",
		   doctor->model.known ? ", " : "", doctor->model.known ? doctor->model.id : "");
	table_print_text(table, &style, out);
	for (size_t i = 0; i < doctor->checks.len; i++) {
		const struct doctor_check *check = &doctor->checks.data[i];

		if (check->remedy[0] == '\0')
			continue;
		str_printf(out, "%s  %s: %s\n", first ? "\nWhat would help:\n" : "", check->name,
			   check->remedy);
		first = false;
	}
}

static void print_json(const struct doctor *doctor, const struct table *table, struct str *out)
{
	struct host_text release = host_kernel_release(&doctor->host);
	struct json json = {0};

	json_document(&json, "doctor");
	json_text(&json, "cpu_model", doctor->model.known ? doctor->model.name : NULL);
	json_text(&json, "cpu_id", doctor->model.known ? doctor->model.id : NULL);
	json_text(&json, "kernel", release.known ? release.value : NULL);
	table_print_json(table, "checks", &json);
	json_end_object(&json);
	str_append(out, json.out.data, json.out.len);
	str_fini(&json.out);
}

static int print(const struct command *self, const struct doctor *doctor,
		 const struct doctor_options *options)
{
	struct table *table = NULL;
	struct str out = {0};
	int r = fill_table(doctor, &table);

	if (r < 0)
		return cmd_failf(self, "out of memory");
	if (options->json)
		print_json(doctor, table, &out);
	else if (options->csv)
		table_print_csv(table, ',', &out);
	else
		print_text(doctor, table, &out);
	table_free(table);
	r = str_status(&out) < 0 ? cmd_failf(self, "out of memory")
				 : cmd_write_stdout(self, str_text(&out), out.len);
	str_fini(&out);
	return r;
}

static int repair(const struct command *self)
{
	struct journal_report report = {0};
	struct err err = {0};
	int r = journal_repair("", JOURNAL_RTLA, &report, &err);

	if (report.text.len)
		fputs(str_text(&report.text), stderr);
	journal_report_fini(&report);
	return r < 0 ? cmd_fail(self, r, &err) : EXIT_DONE;
}

static bool any_failed(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->checks.len; i++)
		if (doctor->checks.data[i].state == DOCTOR_FAIL)
			return true;
	return false;
}

static int doctor_run(const struct command *self, int argc, char **argv)
{
	struct doctor_options options = {0};
	struct doctor doctor = {.host.root = ""};
	int first = options_parse(self, &options, argc, argv), r;
	bool known = options.area == NULL;

	if (first < argc)
		return cmd_failf(self, "unexpected '%s'; an area is chosen by --area", argv[first]);
	if (options.json && options.csv)
		return cmd_failf(self, "--json and --csv exclude each other");
	for (size_t i = 0; i < ARRAY_LEN(doctor_areas); i++)
		known |= options.area && strcmp(options.area, doctor_areas[i].name) == 0;
	if (!known)
		return cmd_failf(self, "no area '%s'; there are counting, rights, limits, latency",
				 options.area);
	if (options.repair && repair(self) != EXIT_DONE)
		return EXIT_FAILED;
	host_cpu_model_read(&doctor.host, &doctor.model);
	doctor.rights = host_rights(&doctor.host);
	doctor.hypervisor = host_hypervisor(&doctor.host);
	doctor.container = host_container(&doctor.host);
	for (size_t i = 0; i < ARRAY_LEN(doctor_areas); i++) {
		doctor.area = doctor_areas[i].name;
		if (!options.area || strcmp(options.area, doctor.area) == 0)
			doctor_areas[i].run(&doctor);
	}
	r = print(self, &doctor, &options);
	if (r == EXIT_DONE && options.strict && any_failed(&doctor))
		r = EXIT_THRESHOLD;
	vec_fini(&doctor.checks);
	return r;
}

const struct command command_doctor = {
	.name = "doctor",
	.args = "[OPTIONS]",
	.summary = "check what can be measured here and how to get more",
	.details =
		"Finds out what this machine, kernel, container and user allow: whether there are "
		"hardware "
		"counters, how many of them are really free (by opening and running events until "
		"one more "
		"does not fit), whether they tell the truth, and which setting stands in the way. "
		"Each check "
		"is a row; what is not ok has a remedy of one line below the table.\n\n"
		"The self-test runs a loop of known length for a few milliseconds under cycles and "
		"instructions. It catches virtual PMUs that open every event and count zero or "
		"nonsense.\n\n"
		"States: ok; warn, something works less well than it could; fail, something of the "
		"area cannot "
		"work; unknown, it could not be found out. Nothing is changed on the machine "
		"without --repair.",
	.examples = "culprit doctor\n\tEverything, with remedies.\n"
		    "culprit doctor --area counting --strict\n\tStatus 2 when counters cannot be "
		    "trusted.\n"
		    "culprit doctor --json\n\tFor a script or a bug report.\n",
	.exits = "0 the checks were made, 2 with --strict when one failed, 1 failure.",
	.options = doctor_options,
	.run = doctor_run,
};
