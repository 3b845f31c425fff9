/*
 * What is to be counted, and how it is laid onto the counters.
 *
 * A set holds the events in the order asked for. count_plan() probes the PMU by really opening and
 * enabling candidates on this thread for a few microseconds, and cuts the set into groups: a group
 * is what the kernel schedules together. When everything fits at once nothing is added. Otherwise
 *
 *  - both halves of every ratio (instructions and cycles, misses and accesses) share a group, and
 *    so do the events of a bundle;
 *  - an always-on, pinned cycles event is opened for each privilege mode in use: the anchor total;
 *  - every group gets its own cycles event of the same mode: the anchor. The estimate is then
 *    count * total cycles / cycles seen in the group, which no idling, frequency change or uneven
 *    rotation can bend (docs/counting.md).
 *
 * With two kinds of core each has its own counters and is planned by itself, on a CPU of its kind.
 *
 * The set owns its strings. Groups hold indexes into events, never pointers.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "count/ops.h"

#define COUNT_GROUP_MAX 64 /* members of one group */

enum count_kind {
	COUNT_SOFTWARE, /* software, tracepoint, breakpoint, probe: never short of counters */
	COUNT_CORE,     /* a counter of the CPU core: follows tasks, competes for counters */
	COUNT_UNCORE,   /* a counter beside the core (memory controller, energy): per package, never
			   per task */
	COUNT_TOOL,     /* nothing to open: its owner fills it in (wall, user, system time) */
};

struct count_event {
	char *name;
	char *unit; /* "" when it is a plain count */
	struct perf_event_attr attr;
	enum count_kind kind;
	double scale;   /* a sysfs event's unit per count; 1 for plain counts */
	int user_group; /* events of one {} have the same number; -1: alone */
	bool weak;      /* ":W": the group may be split */
	bool partial;   /* the PMU exists on some of the CPUs only (hybrid): running < enabled then
			 * means that the thread ran elsewhere, not that counters were short */
	int tool;       /* COUNT_TOOL: which one, the owner's number */
	bool internal;  /* an anchor, added by the plan */
	bool user_only; /* the kernel forbids counting itself here: exclude_kernel was added */
	struct cpuset *cpus; /* the only CPUs to open it on (uncore, partial), NULL: all */
	int same_as; /* set by the plan: the event before that counts the same for it, -1 none */
	int status;  /* 0, or the negative errno that opening gave: not supported */
	char reason[120]; /* why not, in words; "" while status is 0 */
};

struct count_group {
	unsigned members[COUNT_GROUP_MAX]; /* indexes of events; the first leads */
	unsigned len;
	int anchor; /* position in members of its cycles, -1: scale by time */
	int total;  /* group whose only member is the always-on cycles of the same mode, -1: none */
	int pass;   /* the run that counts it in an exact plan, from 0; -1: every run */
	bool pinned;
};

/* Events that only mean something together: those of one metric. */
struct count_bundle {
	char name[64];
	unsigned members[COUNT_GROUP_MAX]; /* indexes of events; the plan may put an internal twin
					      in the place of one that another group has */
	unsigned len;
};

struct count_set {
	VEC(struct count_event) events;
	VEC(struct count_group) groups;
	VEC(struct count_bundle) bundles;
	bool multiplexed; /* more is asked than fits at once */
	int passes;       /* runs that an exact plan needs, else 1 */
	struct str notes; /* lines for people: splits made or proposed, counters missing */
};

int count_set_add(struct count_set *set,
		  const struct count_event *event); /* copies name and unit */
void count_set_fini(struct count_set *set);
/* Index of the first event that is not internal and has this type and config (modifiers ignored),
 * or -1. */
int count_set_find(const struct count_set *set, uint32_t type, uint64_t config);
/* The group and position of an event; -1 when it stands in none. */
int count_set_group_of(const struct count_set *set, unsigned event, unsigned *ret_position);

bool count_set_in_bundle(const struct count_set *set, unsigned event);

/* What kind of event an attr is; uncore cannot be told from the attr alone (see count_event.cpus).
 */
enum count_kind count_kind_of(const struct perf_event_attr *attr);
/* The two halves of a common ratio (misses and their accesses, instructions and cycles) that must
 * share a group: same PMU, same mode. */
bool count_is_pair(const struct perf_event_attr *a, const struct perf_event_attr *b);
bool count_is_cycles(const struct perf_event_attr *attr);
/* True when both count in the same privilege modes. */
bool count_same_mode(const struct perf_event_attr *a, const struct perf_event_attr *b);

struct count_plan_options {
	bool exact;  /* cut into passes that fit entirely, one run of the command each */
	bool pinned; /* every group pinned: fails loudly instead of sharing */
};

/*
 * Fills set->groups. Events that cannot be opened get their status and reason and stand in no
 * group. 0 or -ENOMEM.
 */
int count_plan(struct count_set *set, const struct counter_ops *ops, void *ctx,
	       const struct count_plan_options *options);
struct counters_free {
	unsigned any; /* counters free at once for an event that fits everywhere (instructions) */
	bool cycles_extra; /* cycles has a counter of its own beside them */
	int status;        /* 0, or why none could be tried: -ENOENT no PMU, -EACCES ... */
};
/* By trial: how many counters of the core PMU are really free now. At most 32 are tried. */
void counters_probe(const struct counter_ops *ops, void *ctx, bool user_only,
		    struct counters_free *ret);

/* Words for an errno of perf_event_open() on this event: the true reason, and what to do. */
void count_open_reason(const struct count_event *event, int error, char *buf, unsigned size);
