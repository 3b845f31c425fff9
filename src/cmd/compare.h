/* Shared by compare.c (the command), compare-run.c (one run) and compare-print.c (what was found).
 */
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

enum compare_metric {
	METRIC_WALL,
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
	int status; /* of waitpid() */
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
	struct paired_medians medians;
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
	struct compare_finding findings[METRIC_COUNT];
	enum compare_verdict verdict;
	double smallest; /* difference that so many pairs show 4 times of 5; NaN: none */
	bool regression;
};

#define COMPARE_LEVEL     0.95 /* of the intervals */
#define COMPARE_P         0.01 /* a difference is told below this */
#define COMPARE_PAIRS_MIN 8    /* fewer pairs cannot reach COMPARE_P: 2 / 2^8 */

int compare_evaluate(struct compare_result *result);

int compare_print_text(const struct compare_result *result, bool color, struct str *out);
int compare_print_csv(const struct compare_result *result, struct str *out);
void compare_print_json(const struct compare_result *result, struct json *json);
