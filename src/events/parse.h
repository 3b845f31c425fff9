/*
 * Event text, as perf takes it, to attributes for perf_event_open(2).
 *
 *	cycles:u,{L1-dcache-loads,L1-dcache-load-misses}:S,cpu/event=0xd1,umask=0x08,name=l1_hit/,
 *	sched:sched_switch,r1a8,uncore_imc/clockticks/,mem:0x1000/8:rw,MEM_LOAD_RETIRED:L1_MISS
 *
 * Grammar (blanks around ',' and braces are skipped):
 *
 *	events    = item *("," item)
 *	item      = [group-name ":"] "{" event *("," event) "}" [":" modifiers] | event
 *	event     = name [":" modifiers]             generic, cache, sysfs, vendor or tool name
 *	          | "r" hex [":" modifiers]          raw config of the core PMU
 *	          | type ":" config [":" modifiers]  numbers, as in perf_event_attr
 *	          | system ":" name [":" modifiers]  tracepoint; * and ? and [] in both parts
 *	          | "mem:" address ["/" length] [":" 1*("r" / "w" / "x")] [":" modifiers]
 *	          | pmu "/" terms "/" [[":"] modifiers]
 *	terms     = term *("," term) ; term = name ["=" value] ; a quoted 'value' may hold anything
 *	modifiers = letters of u k h (levels) G H (guest, host) I (not idle) p pp ppp P (precision)
 *	            S (sample the group) D (pinned) e (exclusive) W (may be split) b (by BPF)
 *
 * Names are looked for in this order: generic, cache, raw, tracepoint, the PMUs' own in sysfs, the
 * user's vendor files, libpfm4's tables (the library is loaded only then). One text may give
 * several events: one per core PMU on hybrid machines, one per instance of an uncore PMU, one per
 * tracepoint that a wildcard matches; they share the number in origin.
 *
 * Levels and precision follow perf: no level means all levels, ":u" excludes the others. Events of
 * the core PMU exclude guests unless G or H is given; others leave both exclude bits alone, since
 * PMUs without exclusion refuse them. attr holds nothing but what the text says: disabled, inherit,
 * read_format, sample_type and a default period are for the one who opens it.
 *
 * Errors: -EINVAL wrong syntax (with the position and what was expected), -ENOENT a name that
 * nothing knows (with the nearest ones), -EACCES tracefs may not be read, -ENOMEM, -E2BIG too many
 * events.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/host.h"

enum event_kind {
	EVENT_HARDWARE,
	EVENT_CACHE,
	EVENT_SOFTWARE,
	EVENT_TRACEPOINT,
	EVENT_BREAKPOINT,
	EVENT_RAW,    /* rNNN and type:config */
	EVENT_PMU,    /* pmu/terms/, or a name that the PMU lists in sysfs */
	EVENT_VENDOR, /* from libpfm4 or the user's files */
	EVENT_TOOL, /* duration_time, user_time, system_time: taken by the tool, nothing to open */
};

enum event_tool {
	TOOL_NONE,
	TOOL_DURATION_TIME,
	TOOL_USER_TIME,
	TOOL_SYSTEM_TIME, /* all in ns */
};

struct event {
	char *name; /* for people: the text, or name=; hybrid: "cpu_core/cycles/u" */
	char *pmu;  /* name of the PMU, NULL when none is named (software, tracepoints, generic) */
	enum event_kind kind;
	enum event_tool tool;
	struct perf_event_attr attr;
	int group;       /* events of one {} have the same number, from 0; -1: alone */
	bool leader;     /* first of its group, or alone */
	unsigned origin; /* number of the event in the text, from 0 */

	/* modifiers that are not in attr (pinned, exclusive, precise_ip, exclude_* are) */
	bool weak;         /* :W, on the leader: the group may be split */
	bool sample_read;  /* :S, on every member */
	bool bpf;          /* :b */
	bool max_precise;  /* :P: attr.precise_ip is 3, to be lowered until the kernel takes it */
	bool levels_given; /* any of u k h */

	/* where it may be opened */
	bool core;           /* a counter of the CPU core: follows tasks, competes for counters */
	struct cpuset *cpus; /* the only CPUs: one per package (uncore) or the PMU's; NULL: all */
	bool uncore;         /* counts a package, not a task: system-wide only, on cpus */
	bool partial;        /* a core PMU that not all CPUs have (hybrid) */
	bool no_pmu;         /* the kernel shows no PMU for it: opening will fail, -ENOENT */

	/* how its value reads */
	double scale; /* unit per count; 1 for plain counts */
	char *unit;   /* "Joules", "MiB"; "" for plain counts */
	bool per_package, snapshot;

	/* record's own terms; -1 or 0: not given */
	char *filter;    /* tracepoints; set by event_list_add_filter() */
	int inherit;     /* inherit, no-inherit */
	bool percore;    /* sum the hardware threads of a core */
	char *callgraph; /* call-graph=fp|dwarf|lbr|no */
};

struct event_list {
	VEC(struct event) events;
	int groups;       /* {} seen */
	unsigned origins; /* events in the texts so far */
};

struct event_env;

struct event_env_options {
	const struct host *host; /* NULL: the machine itself; borrowed */
	const char *cpu;        /* vendor tables of this CPU ("spr", "zen4"); NULL: the one found */
	const char *events_dir; /* the user's vendor files; NULL: $CULPRIT_EVENTS_DIR, "" none */
	bool no_libpfm;
};

/* Cheap: PMUs, tracepoints and vendor tables are read when they are first asked for. */
int event_env_new(const struct event_env_options *options, struct event_env **ret, struct err *err);
void event_env_free(struct event_env *env);

/* Appends the events of the text to list (zero-initialized, or with events already). On failure the
 * list is as before. */
int events_parse(const char *text, struct event_env *env, struct event_list *list, struct err *err);
void event_list_fini(struct event_list *list);

/* Gives the tracepoints of the last text parsed a filter; -EINVAL when it has none. An earlier
 * filter is joined by &&, as perf does. */
int event_list_add_filter(struct event_list *list, const char *filter, struct err *err);

/* "type=4 config=0x8d1 config1=0x0 ..." : what the text became, for --details and -v. */
void event_describe_attr(const struct perf_event_attr *attr, struct str *out);
