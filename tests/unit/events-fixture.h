/* An event environment on a machine made of files, and a list that texts are parsed into. */
#pragma once

#include "base/err.h"
#include "events/env.h"
#include "events/parse.h"
#include "fake-root.h"

struct fixture {
	struct fake_root root, files;
	struct event_env *env;
	struct event_list list;
	struct err err;
};

/* cpu: as of --cpu, or NULL. with_files: `files` is an empty user directory of vendor files, else
 * there is none. Aborts the program on failure. */
void fixture_make(struct fixture *f, void (*make)(struct fake_root *), const char *cpu, bool libpfm,
		  bool with_files);
void fixture_remove(struct fixture *f);

/* Parses into an emptied list: what events_parse() returns. */
int fixture_parse(struct fixture *f, const char *text);
/* The i-th event parsed; one of no valid type when there are fewer. */
const struct event *fixture_at(const struct fixture *f, size_t i);
