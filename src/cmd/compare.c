/*
 * culprit compare: is B faster than A?
 *
 * Both commands run in pairs, so that whatever drifts (frequency, temperature, neighbours) touches
 * both; which of a pair runs first is drawn, balanced over two pairs, so that being first favours
 * nobody. The verdict needs two witnesses: Wilcoxon's signed-rank test of the pairs below
 * COMPARE_P, and the bootstrap interval of the change on one side of 0.
 */
#include "cmd/compare.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/command.h"
#include "cmd/feature.h"
#include "cmd/option.h"
#include "stats/rng.h"

#define PAIRS_LEAST 10
#define PAIRS_MOST  1000 /* without -r */

struct compare_options {
	uint64_t runs, warmup, seed, min_time_ns;
	double max_regression;
	enum compare_output output;
	const char *prepare;
	bool shell, ignore_failure, json, csv, seeded;
};

static int set_seed(void *options, const char *value, struct err *err)
{
	struct compare_options *o = options;
	unsigned long long seed;

	if (parse_u64(value, 0, &seed) < 0)
		return err_set(err, -EINVAL, "--seed takes a number, not '%s'", value);
	o->seed = seed;
	o->seeded = true;
	return 0;
}

static int set_output(void *options, const char *value, struct err *err)
{
	static const char *const names[] = {"null", "inherit", "pipe"};
	struct compare_options *o = options;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(value, names[i]) == 0) {
			o->output = (enum compare_output)i;
			return 0;
		}
	return err_set(err, -EINVAL, "--output takes null, inherit or pipe, not '%s'", value);
}

/* "5%" or "0.05". */
static int set_max_regression(void *options, const char *value, struct err *err)
{
	struct compare_options *o = options;
	char text[64];
	size_t len = strlen(value);
	bool percent = len > 0 && value[len - 1] == '%';
	double share;

	snprintf(text, sizeof(text), "%.*s", (int)MIN(len - percent, sizeof(text) - 1), value);
	if (parse_double(text, &share) < 0 || !(share >= 0))
		return err_set(err, -EINVAL,
			       "--max-regression takes a share such as 5%% or 0.05, not '%s'",
			       value);
	if (!percent && share >= 1)
		return err_set(err, -EINVAL, "--max-regression %s: write %s%% for percent", value,
			       value);
	o->max_regression = percent ? share / 100 : share;
	return 0;
}

static const struct option_spec compare_options[] = {
	OPT_HEADING("How often"),
	OPT_U64('r', "runs", "N", struct compare_options, runs,
		"Run N pairs. Default: at least 10, and more until --min-time is reached, at most "
		"1000."),
	OPT_DURATION(0, "min-time", "TIME", struct compare_options, min_time_ns, NSEC_PER_SEC,
		     "Without -r, run pairs until this much time was measured altogether (default: "
		     "3s)."),
	OPT_U64('w', "warmup", "N", struct compare_options, warmup,
		"Run N pairs first that do not count (default: 1)."),
	OPT_CALL(0, "seed", "N", set_seed,
		 "Draw the order and the resamples from this seed, to repeat a comparison."),
	OPT_HEADING("The commands"),
	OPT_FLAG('S', "shell", struct compare_options, shell,
		 "Run both through sh -c. The shell's own time is measured with them. Without this "
		 "option a command "
		 "given as one word is split at blanks; quotes and backslashes keep words "
		 "together."),
	{.kind = OPTION_CALL,
	 .name = "output",
	 .arg = "WHERE",
	 .set = set_output,
	 .complete = "null inherit pipe",
	 .help = "Where their output goes: null (default), inherit (this terminal), or pipe (read "
		 "and thrown away: for "
		 "programs that do less when they write to /dev/null)."},
	OPT_TEXT(0, "prepare", "COMMAND", struct compare_options, prepare,
		 "Run this with sh -c before every run, not measured: to drop caches or restore "
		 "files."),
	OPT_FLAG('i', "ignore-failure", struct compare_options, ignore_failure,
		 "Accept commands that exit with another status than 0."),
	OPT_HEADING("The result"),
	OPT_CALL(0, "max-regression", "SHARE", set_max_regression,
		 "Exit with status 2 when B is slower than A by more than this (5%, or 0.05) and "
		 "the difference can be told."),
	OPT_FLAG(0, "json", struct compare_options, json,
		 "Print one JSON document, with every run."),
	OPT_FLAG(0, "csv", struct compare_options, csv, "Print one row for each metric."),
	OPT_END,
};

static void sides_fini(struct compare_side *sides)
{
	for (int i = 0; i < 2; i++) {
		free(sides[i].argv);
		free(sides[i].text);
	}
}

/* Splits text into words as a shell would, without expansions. 0, -EINVAL for an open quote,
 * -ENOMEM. */
static int split_words(const char *text, struct compare_side *side)
{
	char *to = side->text = strdup(text), quote = 0;
	VEC(char *) words = {0};
	bool in_word = false, failed = !to;

	for (const char *from = text; !failed && *from; from++) {
		if (!quote && isspace((unsigned char)*from)) {
			if (in_word)
				*to++ = '\0';
			in_word = false;
			continue;
		}
		if (!in_word && vec_push(&words, to) < 0)
			failed = true;
		in_word = true;
		if (*from == '\\' && quote != '\'' && from[1])
			*to++ = *++from;
		else if (quote ? *from == quote : *from == '"' || *from == '\'')
			quote = quote ? 0 : *from;
		else
			*to++ = *from;
	}
	failed |= vec_push(&words, NULL) < 0;
	side->argv = words.data;
	side->argc = (int)words.len - 1;
	if (failed)
		return -ENOMEM;
	*to = '\0';
	return quote ? -EINVAL : 0;
}

static int shell_words(struct compare_side *side, int argc, char **argv)
{
	static const char head[] = "/bin/sh\0-c";
	struct str text = {0};
	int r;

	str_append(&text, head, sizeof(head));
	for (int i = 0; i < argc; i++)
		str_printf(&text, "%s%s", i ? " " : "", argv[i]);
	r = str_take(&text, &side->text);
	side->argv = calloc(4, sizeof(*side->argv));
	if (r < 0 || !side->argv)
		return -ENOMEM;
	side->argv[0] = side->text;
	side->argv[1] = side->text + sizeof("/bin/sh");
	side->argv[2] = side->text + sizeof(head);
	side->argc = 3;
	return 0;
}

static int make_side(const struct command *self, const struct compare_options *o, const char *name,
		     int argc, char **argv, struct compare_side *ret)
{
	int r = 0;

	ret->name = name;
	if (o->shell && argc > 0) {
		r = shell_words(ret, argc, argv);
	} else if (argc == 1 && access(argv[0], X_OK) != 0) {
		r = split_words(argv[0], ret);
	} else {
		ret->argv = calloc((size_t)argc + 1, sizeof(*ret->argv));
		if (ret->argv)
			memcpy(ret->argv, argv, (size_t)argc * sizeof(*argv));
		ret->argc = argc;
		r = ret->argv ? 0 : -ENOMEM;
	}
	if (r == -EINVAL)
		return cmd_failf(self, "%s: unbalanced quote in: %s", name, argv[0]);
	if (r < 0)
		return cmd_failf(self, "out of memory");
	if (ret->argc == 0)
		return cmd_failf(self,
				 "%s: no command; usage: culprit compare [OPTIONS] -- A [ARG...] "
				 "--vs B [ARG...]",
				 name);
	return EXIT_DONE;
}

static int prepare(const struct command *self, const struct compare_options *o)
{
	int status;

	if (!o->prepare)
		return EXIT_DONE;
	status = system(o->prepare);
	if (status != 0)
		return cmd_failf(self, "--prepare failed (%s %d): %s",
				 WIFSIGNALED(status) ? "signal" : "status",
				 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
				 o->prepare);
	return EXIT_DONE;
}

static int run_side(const struct command *self, const struct compare_options *o,
		    const struct compare_result *result, int which, struct compare_sample *ret)
{
	const struct compare_side *side = &result->sides[which];
	struct err err = {0};
	int code = 0, r, status = prepare(self, o);

	if (status != EXIT_DONE)
		return status;
	r = compare_run(side, o->output, result->counters, ret, &code, &err);
	if (r == -ECANCELED) {
		cmd_fail(self, r, &err);
		return code == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	if (r < 0)
		return cmd_fail(self, r, &err);
	if (WIFSIGNALED(ret->status))
		return cmd_failf(self, "%s was killed by signal %d (%s)", side->name,
				 WTERMSIG(ret->status), strsignal(WTERMSIG(ret->status)));
	if (WEXITSTATUS(ret->status) != 0 && !o->ignore_failure)
		return cmd_failf(self,
				 "%s failed with status %d; --output inherit shows what it says, "
				 "-i accepts it",
				 side->name, WEXITSTATUS(ret->status));
	return EXIT_DONE;
}

static int run_pair(const struct command *self, const struct compare_options *o,
		    const struct compare_result *result, struct compare_pair *pair)
{
	struct compare_sample *samples[2] = {&pair->a, &pair->b};
	int status = EXIT_DONE;

	for (int i = 0; i < 2 && status == EXIT_DONE; i++) {
		int which = i ^ pair->b_first;

		status = run_side(self, o, result, which, samples[which]);
	}
	return status;
}

static bool enough(const struct compare_options *o, size_t pairs, double measured_ns)
{
	if (o->runs)
		return pairs >= o->runs;
	return pairs >= PAIRS_MOST ||
	       (pairs >= PAIRS_LEAST && measured_ns >= (double)o->min_time_ns);
}

static void progress(size_t pairs, double measured_ns, uint64_t *shown_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - *shown_ns < NSEC_PER_SEC || !isatty(STDERR_FILENO))
		return;
	*shown_ns = now_ns;
	fprintf(stderr, "\r\033[Kcompare: %zu pairs, %.1f s", pairs, measured_ns / 1e9);
}

static int run_all(const struct command *self, const struct compare_options *o,
		   struct compare_result *result)
{
	struct rng rng = rng_seed(result->seed);
	uint64_t shown_ns = clock_monotonic_ns(), start_ns = shown_ns;
	double measured_ns = 0;
	bool first = false;

	for (uint64_t i = 0; i < o->warmup; i++) {
		struct compare_pair pair = {.b_first = i % 2};
		int status = run_pair(self, o, result, &pair);

		if (status != EXIT_DONE)
			return status;
	}
	while (!enough(o, result->pairs.len, measured_ns)) {
		struct compare_pair pair = {0};
		int status;

		/* Two pairs are mirror images: A B B A or B A A B. */
		first = result->pairs.len % 2 ? !first : rng_next(&rng) & 1;
		pair.b_first = first;
		status = run_pair(self, o, result, &pair);
		if (status != EXIT_DONE)
			return status;
		if (vec_push(&result->pairs, pair) < 0)
			return cmd_failf(self, "out of memory");
		measured_ns += pair.a.values[METRIC_WALL] + pair.b.values[METRIC_WALL];
		progress(result->pairs.len, measured_ns, &shown_ns);
	}
	if (shown_ns != start_ns && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return EXIT_DONE;
}

static int show(const struct command *self, const struct compare_options *o,
		const struct compare_result *result)
{
	struct json json = {0};
	struct str out = {0};
	int r = 0, status;

	if (o->json) {
		json_document(&json, "compare");
		compare_print_json(result, &json);
		json_end_object(&json);
		out = json.out;
	} else if (o->csv) {
		r = compare_print_csv(result, &out);
	} else {
		r = compare_print_text(result, isatty(STDOUT_FILENO), &out);
	}
	status = r < 0 ? cmd_fail(self, r, NULL) : cmd_write_stdout(self, str_text(&out), out.len);
	str_fini(&out);
	if (status == EXIT_DONE && result->regression)
		status = EXIT_THRESHOLD;
	return status;
}

static int compare_main(const struct command *self, int argc, char **argv)
{
	struct compare_options o = {
		.warmup = 1, .min_time_ns = 3 * NSEC_PER_SEC, .max_regression = NAN};
	struct compare_side sides[2] = {0};
	struct compare_counters counters;
	struct compare_result result = {.sides = sides, .counters = &counters};
	int at = options_parse(self, &o, argc, argv), vs = at, status, r;

	while (vs < argc && strcmp(argv[vs], "--vs") != 0)
		vs++;
	if (o.json && o.csv)
		return cmd_failf(self, "--json and --csv exclude each other");
	if (vs >= argc)
		return cmd_failf(
			self,
			"no --vs: usage: culprit compare [OPTIONS] -- A [ARG...] --vs B [ARG...]");
	status = make_side(self, &o, "A", vs - at, argv + at, &sides[0]);
	if (status == EXIT_DONE)
		status = make_side(self, &o, "B", argc - vs - 1, argv + vs + 1, &sides[1]);
	if (!o.seeded && getrandom(&o.seed, sizeof(o.seed), 0) == (ssize_t)sizeof(o.seed))
		o.seed %= 1000000;
	result.warmup = o.warmup;
	result.seed = o.seed;
	result.max_regression = o.max_regression;
	compare_counters_probe(&counters);
	if (status == EXIT_DONE)
		status = run_all(self, &o, &result);
	if (status == EXIT_DONE) {
		r = compare_evaluate(&result);
		status = r < 0 ? cmd_fail(self, r, NULL) : show(self, &o, &result);
	}
	vec_fini(&result.pairs);
	sides_fini(sides);
	return status;
}

const struct command command_compare = {
	.name = "compare",
	.args = "[OPTIONS] -- A [ARG...] --vs B [ARG...]",
	.summary = "run two commands against each other and say which is faster",
	.details = "A and B run in pairs, next to each other, in an order that is drawn anew; what "
		   "drifts (frequency, "
		   "temperature, neighbours) then touches both. The table shows medians and the "
		   "change from A to B with its "
		   "95% bootstrap interval, for wall time, CPU time, memory, page faults, context "
		   "switches and, where the "
		   "machine has counters, instructions and cycles.\n"
		   "\n"
		   "The verdict is by wall time alone. B is faster or slower when two witnesses "
		   "agree: Wilcoxon's signed-rank "
		   "test over the pairs finds p below 0.01, and the interval of the change does "
		   "not contain 0. "
		   "Otherwise no difference can be told, and the output says how small a "
		   "difference so many pairs could have "
		   "shown. The other rows explain the verdict; they never make it.\n"
		   "\n"
		   "The first word --vs separates the two commands. Standard input is empty.",
	.examples = "culprit compare -- ./old input --vs ./new input\n"
		    "\tis the new program faster?\n"
		    "culprit compare --max-regression 5% -r 40 -- ./base --vs ./change\n"
		    "\ta gate for CI: status 2 when the change costs more than 5%\n"
		    "culprit compare --shell -- 'sort big | uniq' --vs 'sort -u big'\n"
		    "\tpipelines\n"
		    "culprit compare --prepare 'sync; echo 3 >/proc/sys/vm/drop_caches' -- grep -r "
		    "x /usr/share --vs rg x /usr/share\n"
		    "\twith cold caches\n",
	.exits = "0 compared, whatever the verdict; 1 failure, also of A or B; 2 B is slower by "
		 "more than --max-regression; "
		 "126 or 127 when A or B cannot be started",
	.options = compare_options,
	.stops_at_operand = true,
	.run = compare_main,
};
