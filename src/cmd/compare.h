/* Shared by compare.c (the command), compare-run.c (one run), compare-evaluate.c (what was found)
 * and compare-print.c (how it is told). */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "stats/paired.h"
#include "stats/verdict.h"

enum compare_metric {
	METRIC_WALL,
	METRIC_UNDISTURBED, /* wall time less waiting for a CPU; of commands of one thread */
	METRIC_READY,       /* waiting for a CPU */
	METRIC_CPU,
	METRIC_USER,
	METRIC_SYS,
	METRIC_MAX_RSS,
	METRIC_MINOR_FAULTS,
	METRIC_MAJOR_FAULTS,
	METRIC_SWITCHES,
	METRIC_PREEMPTIONS,
	METRIC_INSTRUCTIONS,
	METRIC_CYCLES,
	METRIC_IPC,
	METRIC_COUNT,
};

struct compare_metric_info {
	const char *key, *title;
	enum {
		UNIT_NS,
		UNIT_BYTES,
		UNIT_COUNT,
		UNIT_RATIO
	} unit;
};

extern const struct compare_metric_info compare_metrics[METRIC_COUNT];

/* What one run measured; NaN: not known. Times in ns, sizes in bytes. */
struct compare_sample {
	double values[METRIC_COUNT];
	double elapsed_ns; /* until this process saw the end */
	int status;        /* of waitpid() */
};

enum compare_output {
	OUTPUT_NULL,
	OUTPUT_INHERIT,
	OUTPUT_PIPE
};

struct compare_side {
	const char *name; /* "A" or "B" */
	char **argv;      /* ended by NULL; owned, its words belong to text or the command line */
	int argc;
	char *text; /* NULL: the words are the command line's */
};

struct compare_counters {
	bool usable, user_only;
	char reason[120]; /* why not usable */
};

/* Tries the two counters on this thread. */
void compare_counters_probe(struct compare_counters *ret);

/*
 * Runs a side once, from exec to exit. -ECANCELED when the command could not be started: *ret_exec
 * is then its errno. Other negative errnos: this process could not do its part.
 */
int compare_run(const struct compare_side *side, enum compare_output output,
		const struct compare_counters *counters, struct compare_sample *ret, int *ret_exec,
		struct err *err);

enum compare_verdict {
	VERDICT_NO_DIFFERENCE,
	VERDICT_FASTER,
	VERDICT_SLOWER
};

struct compare_finding {
	bool known;   /* every run measured it */
	bool decided; /* a difference that can be told */
	bool more;    /* B more often above A than below */
	double p;     /* Wilcoxon, two-sided; NaN when no pair differs */
	struct paired_quantiles medians;
	struct paired_shift shift; /* the change */
};

/* The clocks that are asked for a verdict. */
enum compare_clock {
	CLOCK_WALL,
	CLOCK_SECOND, /* METRIC_UNDISTURBED; where that is not known METRIC_CPU */
	CLOCK_COUNT,
};

struct compare_pair {
	struct compare_sample a, b;
	bool b_first;
};

struct compare_result {
	const struct compare_side *sides; /* two */
	const struct compare_counters *counters;
	VEC(struct compare_pair) pairs;
	uint64_t warmup, seed;
	double max_regression; /* NaN: none asked for */
	double alpha;          /* the level of the last look at the clocks */
	unsigned looks;
	double steal_share; /* of all CPUs' time; NaN: not known */

	enum compare_metric second; /* what CLOCK_SECOND is */
	struct verdict_view clocks[CLOCK_COUNT][LOOK_COUNT];
	/* What gave the verdict; without one the most precise that is a time. */
	enum compare_clock clock;
	enum verdict_look look;
	enum compare_verdict verdict;
	double smallest; /* difference that so many pairs show 4 times of 5; NaN: none */
	bool regression;
	struct compare_finding findings[METRIC_COUNT];
};

#define COMPARE_LEVEL     0.95 /* of the intervals */
#define COMPARE_P         0.01 /* the chance of a false verdict, over all looks */
#define COMPARE_PAIRS_MIN 8    /* fewer pairs cannot reach COMPARE_P: 2 / 2^8 */

/* Looks at the clocks, at the level result->alpha: everything up to `regression`. 0 or a negative
 * errno. */
int compare_decide(struct compare_result *result);
/* Fills the findings of all metrics. 0 or a negative errno. */
int compare_evaluate(struct compare_result *result);

static inline const struct verdict_view *compare_answer(const struct compare_result *result)
{
	return &result->clocks[result->clock][result->look];
}

/* The CPU time told a difference that wall time could not: no verdict on time. */
bool compare_cpu_alone(const struct compare_result *result);

int compare_print_text(const struct compare_result *result, bool color, struct str *out);
int compare_print_csv(const struct compare_result *result, struct str *out);
void compare_print_json(const struct compare_result *result, struct json *json);
