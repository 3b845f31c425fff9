/* What the verbs of 'culprit latency' share. */
#pragma once

#include "base/str.h"
#include "cmd/command.h"
#include "latency/import.h"
#include "latency/run.h"
#include "latency/sla.h"

struct latency_args {
	const char *output, *junit;
	struct sla sla;
	double gate; /* percent, negative: none */
	uint64_t keep, irq_ns, thread_ns;
	bool json, csv;
};

/* A file as given on the command line: a run file, or anything that can be imported. */
struct latency_input {
	const char *path;
	struct latency_run run;
};

int latency_check_verb(const struct command *self, const struct latency_args *args,
		       struct latency_input *inputs, unsigned count);
int latency_diff_verb(const struct command *self, const struct latency_args *args,
		      struct latency_input *inputs, unsigned count);
int latency_plot_verb(const struct command *self, const struct latency_args *args,
		      struct latency_input *inputs, unsigned count);
/* The way tables go to a person. */
struct table;
void latency_print_table(const struct table *table, struct str *out);
