/* What culprit cyclic was asked for, and how it prints. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/str.h"
#include "latency/cyclic.h"

struct cyclic_cli {
	struct cpuset affinity; /* empty: all that are allowed */
	uint64_t threads;       /* 0: one per CPU */
	bool smp, lock_memory, on_new_max, quiet, nano, relative, smi, summary_column, json;
	uint64_t priority;
	int policy; /* -1: fifo with a priority, else other */
	uint64_t interval_ns, distance_ns, duration_ns, loops, break_ns, rows;
	bool has_distance;
	int64_t align_ns;    /* -1: not given */
	uint64_t latency_us; /* UINT64_MAX: PM QoS is left alone */
	uint64_t clock;
	const char *output, *json_file, *histogram_file;
};

/* One "T:" line for each thread. */
void cyclic_print_threads(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
			  unsigned count, struct str *out);
/* cyclictest's histogram with its footer; values beyond the last row follow as comments. */
void cyclic_print_histogram(const struct cyclic_cli *cli, const struct cyclic_thread *threads,
			    unsigned count, struct str *out);
