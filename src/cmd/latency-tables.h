/*
 * Runs of timerlat, osnoise, hwnoise and cyclic as a person or a script reads them. All times are
 * microseconds (nanoseconds when asked), the unit stands in the heading; what is not known is "-",
 * never 0.
 */
#pragma once

#include "base/str.h"
#include "cmd/command.h"
#include "latency/run.h"

struct latency_view {
	const struct latency_run *run;
	bool nano;
	bool color;
	unsigned width; /* of the terminal, 0 unlimited */
	/* histograms */
	bool no_irq, no_thread, no_header, no_summary, no_index, with_zeros;
	uint64_t bucket_ns; /* width of a row */
	uint64_t entries;   /* rows; larger values are counted as "over" */
};

/* As rtla shows it: microseconds, 256 rows of 1 us. */
struct latency_view latency_view_of(const struct latency_run *run);

/* Engine, why it, what it cannot see, conditions, warnings. */
void latency_put_head(const struct latency_view *view, struct str *out);
void latency_put_top(const struct latency_view *view, struct str *out);
void latency_put_hist(const struct latency_view *view, struct str *out);
/* Sources of noise by name, the most expensive first; at most max rows, 0 all. 0 or -ENOMEM. */
int latency_put_culprits(const struct latency_view *view, unsigned max, struct str *out);
/* The automatic analysis; at most max of them, 0 all. */
void latency_put_verdicts(const struct latency_view *view, unsigned max, struct str *out);
/* Losses, steal, what a threshold did: always said. */
void latency_put_end(const struct latency_view *view, struct str *out);
/* CSV: a row for each CPU (and context); or for each histogram bucket. 0 or -ENOMEM. */
int latency_put_csv(const struct latency_view *view, bool histogram, struct str *out);

/* A whole run to stdout as text, as the document of --json or as CSV. An exit status; not that of
 * incomplete data, which is the caller's to give. */
int latency_print_run(const struct command *self, const struct latency_run *run, bool json,
		      bool csv);
int latency_print_view(const struct command *self, const struct latency_view *view, bool histogram,
		       bool json, bool csv);
/* The run file, written whole or not at all. */
int latency_write_run_file(const struct latency_run *run, const char *path, struct err *err);

/* --- for the files of the tables ------------------------------------------------------------- */

/* Right-aligned time in the view's unit without the unit's name; "-" unknown. */
void latency_put_time(const struct latency_view *view, struct str *out, int width, int64_t ns);
void latency_put_time_double(const struct latency_view *view, struct str *out, int width,
			     double ns);
const char *latency_unit(const struct latency_view *view); /* "us" */
bool latency_is_noise(const struct latency_run *run);
/* "local_timer:236", with the function inside it. */
void latency_put_source_name(const struct latency_run *run, enum noise_class class, int number,
			     uint32_t name, uint32_t function, struct str *out);
