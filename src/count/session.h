/*
 * One run of counting: the groups of a planned set, opened on places (threads or CPUs), read in
 * slices.
 *
 * Every place belongs to a row (a CPU, a core, a thread, a cgroup, or the one row of a plain run):
 * sums and slices are kept per row. A slice is what was counted between two reads; there are never
 * more than COUNT_SLICES_MAX, when full neighbours are merged and the slice length doubles, so
 * memory and wake-ups stay bounded however long the run is.
 *
 * Counters are summed by difference from the last read, modulo 2^64, or modulo 2^48 when a counter
 * that is only so wide wrapped; a restarted place thus cannot take back what was counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "count/ops.h"
#include "count/set.h"
#include "count/value.h"

#define COUNT_SLICES_MAX 512

struct count_place {
	pid_t pid;  /* -1: everything on cpu */
	int cpu;    /* -1: on every CPU */
	int cgroup; /* descriptor of a cgroup directory, -1: none */
	unsigned row;
	const char *gone; /* set by the caller when the place vanished (cgroup removed): why */
};

struct count_session_options {
	bool inherit;        /* count children too */
	bool enable_on_exec; /* start when the place's task (or its child) execs */
	bool keep_slices;
	int pass; /* of an exact plan, 0 otherwise */
};

struct count_session;

/*
 * Opens everything, disabled. Events that fail get their status in the set. Fails as a whole only
 * for -ENOMEM, -EMFILE (with the limit named) and -ESRCH when no place is left.
 */
int count_session_open(struct count_set *set, const struct counter_ops *ops, void *ctx,
		       const struct count_place *places, unsigned place_count, unsigned row_count,
		       const struct count_session_options *options, struct count_session **ret,
		       struct err *err);
void count_session_close(struct count_session *session);
/* The same, but the descriptors stay open until the process ends, which is about to. */
void count_session_leave(struct count_session *session);

int count_session_enable(struct count_session *session);
int count_session_disable(struct count_session *session);

/* Reads everything and ends a slice. Returns 0, or the first read error. */
int count_session_read(struct count_session *session);
/* Forgets the sums and slices, not the position of the counters: starts an interval. */
void count_session_restart(struct count_session *session);
/* How long the next slice should be, ns: grows with the slices kept and with the cost of reading.
 */
uint64_t count_session_slice_ns(const struct count_session *session);
void count_session_place_gone(struct count_session *session, unsigned place, const char *why);

/* The value of an event in a row. */
void count_session_value(const struct count_session *session, unsigned row, unsigned event,
			 struct count_value *ret);

/* The ratio of two events in a row, with how it came about. */
struct count_ratio {
	double value, stderr_; /* NaN when there is none */
	double share;  /* the least share of the time that a part was counted; NaN: none was */
	bool together; /* both halves saw the same time */
	enum value_state state;
	char reason[VALUE_REASON_BYTES];
};
void count_session_ratio(const struct count_session *session, unsigned row, unsigned numerator,
			 unsigned denominator, struct count_ratio *ret);
/* From two values that are known already; never together unless both are measured. */
void count_ratio_of_values(const struct count_value *numerator,
			   const struct count_value *denominator, struct count_ratio *ret);

/*
 * For formulas of several events: the group that holds them all (its anchor stands in for the
 * cycles that are always on), or -1; and the standard error of sum(weights[i] * value of
 * events[i]), from the slices of that group. With the derivatives of a formula as weights that is
 * the formula's own error to first order, with all that its events have in common. NaN: not known.
 */
int count_session_common_group(const struct count_session *session, const unsigned *events,
			       size_t len);
double count_session_sum_error(const struct count_session *session, unsigned row, unsigned group,
			       const unsigned *events, const double *weights, size_t len);

/* now - before of a counter that may be 64 or 48 bits wide. */
uint64_t counter_delta(uint64_t before, uint64_t now);
/* a * b / c without overflow; 0 for c = 0. Saturates at UINT64_MAX. */
uint64_t counter_scale(uint64_t a, uint64_t b, uint64_t c);
