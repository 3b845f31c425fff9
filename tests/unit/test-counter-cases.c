/*
 * Published outputs of perf stat: the counts go through the metrics and the printing of culprit
 * stat, and every derived value must come out as it was printed, to the last digit. Where the
 * printed value is known to be wrong (-r and -I of old versions), the right one must come out.
 *
 * A case file holds the counts, then a table of "formula | printed | recomputed | agree".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/stat.h"
#include "events/parse.h"
#include "fake-pmu.h"
#include "harness/tap.h"

#define RUNS       5
#define EVENTS_MAX 32

/* The head of JSON documents, not printed here. */
void json_document(struct json *json, const char *kind)
{
	(void)json;
	(void)kind;
}

struct oracle {
	char *text;  /* the file */
	char *scope; /* the part of it with this run's counts */
	char *table; /* "RECOMPUTED" and on */
	struct stat_job job;
	char *printed; /* what stat -x prints */
};

/* The digits behind a name that stands as a word of the run's part, NULL when there is none. */
static const char *number_after(const struct oracle *o, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = o->scope; (at = strstr(at, name)) != NULL; at += len) {
		const char *next = at + len;

		if (at != o->scope && !strchr(" \n", at[-1]))
			continue;
		next += strncmp(next, ":u", 2) == 0 ? 2 : 0;
		if (*next == ' ' && next[1] >= '0' && next[1] <= '9')
			return next + 1;
	}
	return NULL;
}

static double spread_after(const char *number)
{
	const char *end = number + strcspn(number, "\n"), *at = strstr(number, "( +- ");

	return at && at < end ? strtod(at + 5, NULL) / 100 : 0;
}

/* One run, or five whose mean and standard error are the printed ones. */
static void add_value(struct oracle *o, unsigned run, double value, double spread, double share)
{
	static const double steps[RUNS] = {-2, -1, 0, 1, 2}; /* standard error: sqrt(0.5) */
	bool repeated = o->job.options.repeat > 1;
	double of_run = value * (1 + (repeated ? steps[run] * spread / 0.70710678 : 0));
	size_t at = stat_events(&o->job) - 1;

	o->job.run_values.data[run][at] = (struct count_value){
		.value = of_run,
		.raw = (uint64_t)of_run,
		.enabled_ns = 10000000,
		.running_ns = (uint64_t)(share * 10000000 + 0.5),
		.state = share >= 1                  ? VALUE_MEASURED
			 : share >= VALUE_WEAK_SHARE ? VALUE_ESTIMATED
						     : VALUE_WEAK,
	};
}

static void add_event(struct oracle *o, const char *name, const char *base, uint64_t pmu)
{
	struct count_event event = {.scale = 1, .user_group = -1, .name = strdup(name)};
	const char *number = number_after(o, name), *share;
	const struct stat_known *known = stat_known_find(base);
	bool clock = strstr(base, "-clock") != NULL;
	double value;

	if (known) {
		event.attr.type = known->type;
		event.attr.config = known->config | pmu;
	} else { /* slots */
		event.attr.type = PERF_TYPE_RAW;
		event.attr.config = 0x400;
	}
	event.kind = count_kind_of(&event.attr);
	if (!number || count_set_add(&o->job.set, &event) < 0)
		abort();
	free(event.name);
	value = strtod(number, NULL) * (clock ? 1e6 : 1);
	share = number + strspn(number, "0123456789.");
	for (unsigned run = 0; run < o->job.run_values.len; run++)
		add_value(o, run, value, spread_after(number),
			  strncmp(share, " (", 2) == 0 && strchr("0123456789", share[2]) &&
					  !strstr(o->scope, "run1:") && !clock
				  ? strtod(share + 2, NULL) / 100
				  : 1);
}

static void add_runs(struct oracle *o)
{
	unsigned runs = o->job.options.repeat > 1 ? RUNS : 1;
	const char *elapsed = strstr(o->scope, "elapsed ");
	double seconds = elapsed ? strtod(elapsed + 8, NULL) : 1;
	double spread = runs > 1 ? strtod(strstr(elapsed, "+- ") + 3, NULL) / seconds : 0;
	static const double steps[RUNS] = {-2, -1, 0, 1, 2};

	for (unsigned run = 0; run < runs; run++) {
		struct count_value *values = calloc(EVENTS_MAX, sizeof(*values));
		double wall =
			seconds * 1e9 * (1 + (runs > 1 ? steps[run] * spread / 0.70710678 : 0));

		if (!values || vec_push(&o->job.run_values, values) < 0 ||
		    vec_push(&o->job.run_walls, (uint64_t)wall) < 0 ||
		    vec_push(&o->job.run_users, 0) < 0 || vec_push(&o->job.run_systems, 0) < 0)
			abort();
	}
}

/* False when the data is not there. part: where this run's counts begin; its end when in one line.
 */
static bool oracle_open(struct oracle *o, const char *file, const char *part, bool one_line,
			unsigned repeat)
{
	char name[128];
	const char *path;
	size_t size;

	*o = (struct oracle){0};
	snprintf(name, sizeof(name), "counter_cases/%s", file);
	path = tap_data(name);
	if (!path || file_read(path, 65536, &o->text, &size, NULL) < 0)
		return false;
	o->table = strstr(o->text, "\nRECOMPUTED");
	o->scope = strstr(o->text, part);
	if (!o->table || !o->scope)
		abort();
	o->scope = strndup(o->scope,
			   one_line ? strcspn(o->scope, "\n") : (size_t)(o->table - o->scope));
	o->job.options.separator = ";";
	o->job.options.repeat = repeat;
	if (!o->scope || vec_push(&o->job.target.rows, ((struct stat_row){.cpu = -1})) < 0)
		abort();
	add_runs(o);
	return true;
}

static void oracle_print(struct oracle *o)
{
	struct stat_result result;
	size_t size;

	o->job.out = open_memstream(&o->printed, &size);
	if (!o->job.out || stat_choose_metrics(&o->job, NULL) < 0 ||
	    stat_result_new(&o->job, &result) < 0 || stat_merge_runs(&o->job, &result) < 0)
		abort();
	stat_print_perf(&o->job, &result);
	if (o->job.options.repeat > 1)
		fprintf(o->job.out, "elapsed;%.3f;%.3f;%.2f%%\n", (double)result.wall_ns / 1e9,
			result.wall_stderr_ns / 1e9,
			100 * result.wall_stderr_ns / (double)result.wall_ns);
	fclose(o->job.out);
	stat_result_free(&result);
}

/*
 * The same counts as the second interval of -I: reads go on from those of a first interval that was
 * quite another, and what is shown is what the session makes of the difference.
 */
static void oracle_print_interval(struct oracle *o)
{
	size_t events = stat_events(&o->job), words = events + 2, size;
	CLEANUP_FREE uint64_t *reads = calloc(2 * words, sizeof(*reads));
	struct count_group group = {.len = (unsigned)events, .anchor = -1, .total = -1, .pass = -1};
	struct count_place place = {.pid = -1, .cpu = 0, .cgroup = -1};
	struct count_session_options how = {0};
	struct replay replay = {reads, (unsigned)words, 2, 0, 0, -1};
	struct count_session *session;
	struct stat_result result;

	if (!reads)
		abort();
	reads[0] = reads[1] = 1000000000;
	reads[words] = reads[words + 1] = 2000000000;
	for (unsigned i = 0; i < events; i++) {
		group.members[i] = i;
		reads[2 + i] = 7777 * (i + 1);
		reads[words + 2 + i] = reads[2 + i] + o->job.run_values.data[0][i].raw;
	}
	o->job.options.interval_ns = 1000000000;
	o->job.out = open_memstream(&o->printed, &size);
	if (!o->job.out || vec_push(&o->job.set.groups, group) < 0 ||
	    stat_choose_metrics(&o->job, NULL) < 0 || stat_result_new(&o->job, &result) < 0 ||
	    count_session_open(&o->job.set, &replay_ops, &replay, &place, 1, 1, &how, &session,
			       NULL) < 0)
		abort();
	count_session_read(session);
	count_session_restart(session); /* the first interval was shown */
	count_session_read(session);
	result.time_ns = 2000000000;
	result.wall_ns = 1000000000;
	stat_fill_result(&o->job, session, &result);
	stat_print_perf(&o->job, &result);
	fclose(o->job.out);
	count_session_close(session);
	stat_result_free(&result);
}

static void oracle_close(struct oracle *o)
{
	vec_for_each(&o->job.run_values, values)
		free(*values);
	vec_fini(&o->job.run_values);
	vec_fini(&o->job.run_walls);
	vec_fini(&o->job.run_users);
	vec_fini(&o->job.run_systems);
	vec_fini(&o->job.target.rows);
	vec_for_each(&o->job.metrics, metric)
		stat_metric_fini(metric);
	vec_fini(&o->job.metrics);
	event_env_free(o->job.env);
	arena_fini(&o->job.texts);
	count_set_fini(&o->job.set);
	free(o->printed);
	free(o->scope);
	free(o->text);
}

/* A field of an event's line of -x: 0 value, 1 unit, 2 name ... negative ones count from the end.
 */
static const char *field(const struct oracle *o, const char *event, int index)
{
	static char buf[4][64];
	static unsigned turn;
	char name[80], line[512], *fields[16], *rest = line;
	const char *at, *begin;
	int n = 0;

	snprintf(name, sizeof(name), ";%s;", event);
	at = strstr(o->printed, name);
	if (!at)
		return "no such line";
	for (begin = at; begin > o->printed && begin[-1] != '\n'; begin--)
		;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(begin, "\n"), begin);
	while (n < 16 && (fields[n] = strsep(&rest, ";")) != NULL)
		n++;
	index = index < 0 ? n + index : index;
	turn = (turn + 1) % 4;
	snprintf(buf[turn], sizeof(buf[turn]), "%s", index < n ? fields[index] : "");
	return buf[turn];
}

/* The printed value of a row of the case's table, or the right one where they do not agree. */
static const char *expected(const struct oracle *o, const char *label)
{
	static char buf[32];
	char printed[32], recomputed[32], agree[8], key[80];
	const char *row;

	snprintf(key, sizeof(key), "\n%s | ", label);
	row = strstr(o->table, key);
	if (!row || sscanf(row + strlen(key), "%31s | %31s | %7s", printed, recomputed, agree) != 3)
		return "no such row";
	snprintf(buf, sizeof(buf), "%s", strcmp(agree, "yes") == 0 ? printed : recomputed);
	return buf;
}

#define EXPECT_ROW(o_, event_, label_) EXPECT_STR(field(o_, event_, -2), expected(o_, label_))

TEST(case_01_ratios_of_user_mode)
{
	struct oracle o;

	SKIP_IF(!oracle_open(&o, "01-spr-topdownl1-uopdrop.txt", "msec", false, 1), "no test data");
	o.scope[0] = ' '; /* "msec task-clock": the unit comes first here */
	add_event(&o, "task-clock", "task-clock", 0);
	add_event(&o, "cycles", "cycles", 0);
	add_event(&o, "instructions", "instructions", 0);
	add_event(&o, "branches", "branches", 0);
	add_event(&o, "branch-misses", "branch-misses", 0);
	oracle_print(&o);
	EXPECT_ROW(&o, "instructions", "instructions/cycles");
	EXPECT_ROW(&o, "branch-misses", "100*branch-misses/branches");
	/* The printed 0.998 comes of the unrounded clock: 0.54 ms is all that is known of it. */
	EXPECT_NEAR(strtod(field(&o, "cycles", -2), NULL), 0.998, 0.998 * 0.005 / 0.54);
	oracle_close(&o);
}

TEST(case_03_starved_ipc)
{
	struct oracle o;

	SKIP_IF(!oracle_open(&o, "03-icl-skl-group-starvation.txt", "(B)", false, 1),
		"no test data");
	add_event(&o, "instructions", "instructions", 0);
	add_event(&o, "cycles", "cycles", 0);
	oracle_print(&o);
	EXPECT_ROW(&o, "instructions", "B instructions/cycles");
	EXPECT_STR(field(&o, "instructions", 4), "50.67");
	EXPECT_STR(field(&o, "cycles", 4), "74.28");
	oracle_close(&o);
}

/* perf 5.15 divided by a differently averaged denominator: the right rates are sums over sums. */
TEST(case_04_repeated_runs)
{
	static const struct {
		const char *event, *spread, *row;
	} rows[] = {
		{"task-clock", "0.05%", "task-clock/elapsed"},
		{"context-switches", "0.99%", "context-switches/task-clock per s"},
		{"page-faults", "0.01%", "page-faults/task-clock K/s"},
		{"cycles", "0.06%", "cycles/task-clock GHz"},
		{"instructions", "0.00%", "instructions/cycles"},
		{"branches", "0.00%", "branches/task-clock M/s"},
		{"branch-misses", "0.03%", "100*branch-misses/branches"},
		{"slots", "0.03%", "slots/task-clock G/s"},
	};
	struct oracle o;

	SKIP_IF(!oracle_open(&o, "04-icx-bzimage-5runs.txt", "msec", false, RUNS), "no test data");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		add_event(&o, rows[i].event, rows[i].event, 0);
	oracle_print(&o);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		EXPECT_STR(field(&o, rows[i].event, 3), rows[i].spread);
		EXPECT_ROW(&o, rows[i].event, rows[i].row);
	}
	EXPECT(strstr(o.printed, "elapsed;60.114;0.112;0.19%") != NULL);
	oracle_close(&o);
}

static void check_filter_run(const char *run, bool first)
{
	struct oracle o;
	char part[32], row[32];

	snprintf(part, sizeof(part), "%s: task-clock", run);
	SKIP_IF(!oracle_open(&o, "05-topdown-comma-locale.txt", part, true, 1), "no test data");
	for (char *c = o.scope; *c; c++) /* "cycles 62 (3.370 GHz)" is no share of time */
		*c = *c == '(' ? '[' : *c;
	add_event(&o, "task-clock", "task-clock", 0);
	add_event(&o, "cycles", "cycles", 0);
	add_event(&o, "instructions", "instructions", 0);
	add_event(&o, "branches", "branches", 0);
	add_event(&o, "branch-misses", "branch-misses", 0);
	oracle_print(&o);
	snprintf(row, sizeof(row), "%s IPC", run);
	EXPECT_ROW(&o, "instructions", row);
	snprintf(row, sizeof(row), "%s CPUs", run);
	EXPECT_ROW(&o, "task-clock", row);
	snprintf(row, sizeof(row), "%s miss%%", run);
	EXPECT_ROW(&o, "branch-misses", row);
	if (first) {
		EXPECT_ROW(&o, "cycles", "run1 GHz");
		EXPECT_STR(field(&o, "branches", -2), "625.544");
		EXPECT_STR(field(&o, "branches", -1), "M/sec");
	} else {
		EXPECT_STR(field(&o, "cycles", -2), "3.276");
	}
	oracle_close(&o);
}

TEST(case_05_first_run)
{
	check_filter_run("run1", true);
}

TEST(case_05_fourth_run)
{
	check_filter_run("run4", false);
}

TEST(case_07_shares_and_cache_rates)
{
	struct oracle o;

	SKIP_IF(!oracle_open(&o, "07-icx-sum-vs-slots.txt", "task-clock", false, 1),
		"no test data");
	add_event(&o, "task-clock", "task-clock", 0);
	add_event(&o, "cycles", "cycles", 0);
	add_event(&o, "instructions", "instructions", 0);
	add_event(&o, "branches", "branches", 0);
	add_event(&o, "branch-misses", "branch-misses", 0);
	add_event(&o, "L1-dcache-loads", "L1-dcache-loads", 0);
	add_event(&o, "L1-dcache-load-misses", "L1-dcache-load-misses", 0);
	add_event(&o, "LLC-loads", "LLC-loads", 0);
	add_event(&o, "LLC-load-misses", "LLC-load-misses", 0);
	oracle_print(&o);
	EXPECT_ROW(&o, "cycles", "GHz");
	EXPECT_ROW(&o, "instructions", "IPC");
	EXPECT_ROW(&o, "L1-dcache-load-misses", "L1 miss%");
	EXPECT_ROW(&o, "LLC-load-misses", "LLC miss%");
	EXPECT_ROW(&o, "task-clock", "CPUs");
	EXPECT_STR(field(&o, "branch-misses", -2), "0.18");
	EXPECT_STR(field(&o, "cycles", 4), "38.27");
	EXPECT_STR(field(&o, "branch-misses", 4), "61.57");
	oracle_close(&o);
}

/* An old perf -I divided by running averages: every ratio is of the interval's own counts. */
static void case_13(void (*print)(struct oracle *o))
{
	struct oracle o;

	SKIP_IF(!oracle_open(&o, "13-perf-interval-ratio-mismatch.txt", "cpu-clock", false, 1),
		"no test data");
	add_event(&o, "cpu-clock", "cpu-clock", 0);
	add_event(&o, "context-switches", "context-switches", 0);
	add_event(&o, "cycles", "cycles", 0);
	add_event(&o, "instructions", "instructions", 0);
	add_event(&o, "branches", "branches", 0);
	add_event(&o, "branch-misses", "branch-misses", 0);
	add_event(&o, "L1-dcache-loads", "L1-dcache-loads", 0);
	add_event(&o, "L1-dcache-load-misses", "L1-dcache-load-misses", 0);
	print(&o);
	EXPECT_ROW(&o, "cycles", "cycles/cpu-clock GHz");
	EXPECT_ROW(&o, "instructions", "instructions/cycles (interval)");
	EXPECT_ROW(&o, "branch-misses", "100*branch-misses/branches (interval)");
	EXPECT_ROW(&o, "L1-dcache-load-misses", "100*L1 misses/loads (interval)");
	/* "0.587 K/sec" in the notation of then; the two M/sec were wrong like the ratios. */
	EXPECT_STR(field(&o, "context-switches", -2), "587.128");
	EXPECT_STR(field(&o, "context-switches", -1), "/sec");
	EXPECT_NEAR(strtod(field(&o, "branches", -2), NULL), 1022617146 / 8008.478891e3, 0.0005);
	EXPECT_NEAR(strtod(field(&o, "L1-dcache-loads", -2), NULL), 1674419284 / 8008.478891e3,
		    0.0005);
	oracle_close(&o);
}

TEST(case_13_interval_ratios)
{
	case_13(oracle_print);
}

TEST(case_13_as_an_interval_among_others)
{
	case_13(oracle_print_interval);
}

/* Both halves of each ratio are of one kind of core. */
TEST(case_14_hybrid_cores)
{
	static const char *const names[] = {"cycles",           "instructions",  "cache-misses",
					    "cache-references", "branch-misses", "branches"};
	struct oracle o;
	char name[64];

	SKIP_IF(!oracle_open(&o, "14-hybrid-comma-locale.txt", "cpu_atom/cycles/", false, 1),
		"no test data");
	add_event(&o, "task-clock", "task-clock", 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(name, sizeof(name), "cpu_core/%s/", names[i]);
		add_event(&o, name, names[i], UINT64_C(4) << 32);
		snprintf(name, sizeof(name), "cpu_atom/%s/", names[i]);
		add_event(&o, name, names[i], UINT64_C(10) << 32);
	}
	oracle_print(&o);
	EXPECT_ROW(&o, "cpu_atom/instructions/", "atom IPC");
	EXPECT_ROW(&o, "cpu_core/instructions/", "core IPC");
	EXPECT_ROW(&o, "cpu_atom/cycles/", "atom GHz");
	EXPECT_ROW(&o, "cpu_core/cycles/", "core GHz");
	EXPECT_ROW(&o, "cpu_atom/cache-misses/", "atom cache miss%");
	EXPECT_ROW(&o, "cpu_core/cache-misses/", "core cache miss%");
	EXPECT_ROW(&o, "cpu_atom/branch-misses/", "atom br miss%");
	EXPECT_ROW(&o, "cpu_core/branch-misses/", "core br miss%");
	EXPECT_STR(field(&o, "cpu_core/cycles/", 4), "78.79");
	oracle_close(&o);
}
