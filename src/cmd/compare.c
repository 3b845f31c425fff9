/*
 * culprit compare: is B faster than A?
 *
 * Both commands run in pairs, so that whatever drifts (frequency, temperature, neighbours) touches
 * both. Which of a pair runs first is drawn for each pair anew: the test of the verdict rests on
 * nothing else. When it tells nothing and could not have told a difference of --resolution, more
 * pairs follow; the level is shared out over these looks before the first.
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
#include "cmd/topdown-software.h"
#include "stats/rng.h"

#define PAIRS_LEAST 10
#define PAIRS_MOST  1000 /* without -r */

struct compare_options {
	uint64_t runs, warmup, seed, min_time_ns, max_time_ns;
	double max_regression, resolution;
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
static int set_share(const char *option, const char *value, double *ret, struct err *err)
{
	char text[64];
	size_t len = strlen(value);
	bool percent = len > 0 && value[len - 1] == '%';
	double share;

	snprintf(text, sizeof(text), "%.*s", (int)MIN(len - percent, sizeof(text) - 1), value);
	if (parse_double(text, &share) < 0 || !(share >= 0))
		return err_set(err, -EINVAL, "--%s takes a share such as 5%% or 0.05, not '%s'",
			       option, value);
	if (!percent && share >= 1)
		return err_set(err, -EINVAL, "--%s %s: write %s%% for percent", option, value,
			       value);
	*ret = percent ? share / 100 : share;
	return 0;
}

static int set_max_regression(void *options, const char *value, struct err *err)
{
	struct compare_options *o = options;

	return set_share("max-regression", value, &o->max_regression, err);
}

static int set_resolution(void *options, const char *value, struct err *err)
{
	struct compare_options *o = options;

	return set_share("resolution", value, &o->resolution, err);
}

static const struct option_spec compare_options[] = {
	OPT_HEADING("How often"),
	OPT_U64('r', "runs", "N", struct compare_options, runs,
		"Run N pairs. Default: at least 10, and more until --min-time is reached, at most "
		"1000."),
	OPT_DURATION(0, "min-time", "TIME", struct compare_options, min_time_ns, NSEC_PER_SEC,
		     "Without -r, run pairs until this much time was measured altogether (default: "
		     "3s)."),
	OPT_DURATION(0, "max-time", "TIME", struct compare_options, max_time_ns, NSEC_PER_SEC,
		     "Without -r, go on up to this long while no difference is told and one of "
		     "--resolution could not have been (default: four times --min-time). The same "
		     "as --min-time: do not go on."),
	OPT_CALL(0, "resolution", "SHARE", set_resolution,
		 "The difference worth going on for (default: 3%)."),
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

static void progress(size_t pairs, double measured_ns, uint64_t *shown_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - *shown_ns < NSEC_PER_SEC || !isatty(STDERR_FILENO))
		return;
	*shown_ns = now_ns;
	fprintf(stderr, "\r\033[Kcompare: %zu pairs, %.1f s", pairs, measured_ns / 1e9);
}

/* The runs so far, and how many of them there shall be. */
struct compare_run_state {
	struct rng rng;
	double measured_ns, budget_ns;
	uint64_t shown_ns;
};

static bool enough(const struct compare_options *o, size_t pairs,
		   const struct compare_run_state *state)
{
	if (o->runs)
		return pairs >= o->runs;
	return pairs >= PAIRS_MOST ||
	       (pairs >= PAIRS_LEAST && state->measured_ns >= state->budget_ns);
}

static int warm_up(const struct command *self, const struct compare_options *o,
		   struct compare_result *result)
{
	int status = EXIT_DONE;

	for (uint64_t i = 0; i < o->warmup && status == EXIT_DONE; i++) {
		struct compare_pair pair = {.b_first = i % 2};

		status = run_pair(self, o, result, &pair);
	}
	return status;
}

static int run_pairs(const struct command *self, const struct compare_options *o,
		     struct compare_run_state *state, struct compare_result *result)
{
	while (!enough(o, result->pairs.len, state)) {
		struct compare_pair pair = {.b_first = rng_next(&state->rng) & 1};
		int status = run_pair(self, o, result, &pair);

		if (status != EXIT_DONE)
			return status;
		if (vec_push(&result->pairs, pair) < 0)
			return cmd_failf(self, "out of memory");
		state->measured_ns += pair.a.elapsed_ns + pair.b.elapsed_ns;
		progress(result->pairs.len, state->measured_ns, &state->shown_ns);
	}
	return EXIT_DONE;
}

/* Half of the level is spent at the first look, half of the rest at the next and so on; what the
 * last has left is all its. */
static bool last_look(const struct compare_options *o, const struct compare_run_state *state,
		      struct compare_result *result)
{
	bool last = o->runs || state->budget_ns >= (double)o->max_time_ns;

	result->looks++;
	result->alpha = ldexp(COMPARE_P, last ? 1 - (int)result->looks : -(int)result->looks);
	return last;
}

static int run_all(const struct command *self, const struct compare_options *o,
		   struct compare_result *result)
{
	struct compare_run_state state = {.rng = rng_seed(result->seed),
					  .budget_ns = (double)o->min_time_ns,
					  .shown_ns = clock_monotonic_ns()};
	uint64_t start_ns = state.shown_ns;
	int status = warm_up(self, o, result), r;
	bool last = false;

	while (status == EXIT_DONE && !last) {
		status = run_pairs(self, o, &state, result);
		last = last_look(o, &state, result);
		r = status == EXIT_DONE ? compare_decide(result) : 0;
		if (r < 0)
			status = cmd_fail(self, r, NULL);
		last |= result->verdict != VERDICT_NO_DIFFERENCE ||
			result->pairs.len >= PAIRS_MOST || result->smallest <= o->resolution;
		state.budget_ns = fmin(2 * state.budget_ns, (double)o->max_time_ns);
	}
	if (state.shown_ns != start_ns && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return status;
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

static double steal_share(const struct accounts *before, const struct accounts *after)
{
	double steal = after->steal - before->steal;
	double all = steal + after->user - before->user + after->system - before->system +
		     after->idle - before->idle;

	return all > 0 ? steal / all : NAN;
}

static int compare_main(const struct command *self, int argc, char **argv)
{
	struct compare_options o = {.warmup = 1,
				    .min_time_ns = 3 * NSEC_PER_SEC,
				    .max_regression = NAN,
				    .resolution = 0.03};
	struct accounts before = unknown_accounts(), after = before;
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
	if (o.max_time_ns == 0)
		o.max_time_ns = 4 * o.min_time_ns;
	result.warmup = o.warmup;
	result.seed = o.seed;
	result.max_regression = o.max_regression;
	compare_counters_probe(&counters);
	accounts_of_machine(&before);
	if (status == EXIT_DONE)
		status = run_all(self, &o, &result);
	accounts_of_machine(&after);
	result.steal_share = steal_share(&before, &after);
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
		   "The verdict is by time. Two clocks are asked: wall time, and, where the kernel "
		   "tells it of the whole "
		   "command (one thread, no children), wall time less the waits for a CPU, which "
		   "other programs cause. "
		   "Each is looked at as a whole (the pairs' ratios, bounded) and in the "
		   "fastest fifth of its runs. "
		   "p is the share of all orders that could have been drawn whose result lies as "
		   "far out: it assumes nothing "
		   "of the noise, and the chance that any look speaks up falsely is 1%. "
		   "Without a verdict the output says how small a difference so many pairs could "
		   "have shown. The other rows explain; when CPU time alone tells a difference, "
		   "that is said, and is no verdict on time.\n"
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
