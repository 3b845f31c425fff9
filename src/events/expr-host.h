/*
 * What metric formulas ask about the machine: #literals, strcmp_cpuid_str(), and constants of a
 * recording.
 *
 *	#num_cpus #num_cpus_online #num_cores #num_dies #num_packages #threads_per_core #smt_on
 *	#core_wide #slots #system_tsc_freq #has_pmem #ebs_mode          (case ignored)
 *
 * #smt_on is 1 when two threads of a core are online; #core_wide when every thread of a core is
 * counted (whole CPUs) or SMT is off; #slots is the width that Arm cores tell; #ebs_mode is 0:
 * counts are not samples. What is not known has no number, and a formula that needs it has none
 * either.
 */
#pragma once

#include "events/expr.h"
#include "host/host.h"

struct expr_host {
	const struct host_cpu_model *model; /* NULL: not known; borrowed */
	bool system_wide;
	double tsc_hz; /* 0: not known */
	/* 0: not known */
	unsigned cpus, cpus_online, cores, dies, packages, threads_per_core, slots;
	int smt_on, has_pmem; /* -1: not known */
};

/* Reads the machine. What cannot be read is not known. */
void expr_host_read(const struct host *host, const struct host_cpu_model *model,
		    struct expr_host *ret);
/* For expr_fold() and resolvers; ctx is a struct expr_host. Names and has_event() stay open. */
void expr_host_constant(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret);
