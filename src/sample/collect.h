/*
 * A recording as a profile: stacks interned while reading, each unique address named once
 * afterwards, modules in parallel. Value types: per event "samples"/"count" when there is one
 * event, else the event's name with its unit; and the period as "cpu"/"nanoseconds" or
 * "<event>"/"events". Labels: comm, pid (number), and on request tid, cpu,
 * cgroup (its path) and namespaces ("pid:[4026531836]"). With several events
 * the first of each pair is called
 * "<event>_samples". A location's address is in its module's own addresses: the file offset for ELF
 * files, so that mappings begin at address 0 and offset 0. Frames without a mapping get the mapping
 * and the function "[unknown]".
 */
#pragma once

#include "base/err.h"
#include "profile/profile.h"
#include "sample/session.h"

struct collect_options {
	bool tid, cpu, cgroup;          /* labels to add */
	bool namespaces;                /* the labels pidns and cgroupns, where they are known */
	bool no_symbols;                /* leave addresses as they are */
	bool no_inlines;                /* one function per address, no files and lines */
	bool no_callchains;             /* leaves only */
	const char *comm, *dso, *event; /* keep only these; globs; NULL: all */
	struct symbols_options symbols;
	const char *time;             /* "FROM,TO": only samples of these times; NULL: all */
	session_progress_fn progress; /* by one thread at a time; may be NULL */
	void *progress_arg;
	/* One line for each object whose names could not be had; may be NULL. */
	void (*warn)(void *arg, const char *text);
	void *warn_arg;
};

/* Of a session of session_open_header() the rest is known, too, after success. */
int collect_profile(struct session *session, const struct collect_options *options,
		    struct profile *profile, struct err *err);
