/*
 * The BPF programs of latency and noise measurement: loaded, attached, their memory mapped.
 *
 * Needs Linux 5.12 (atomic operations in BPF), BTF of the kernel, CAP_BPF and CAP_PERFMON (or
 * root), and no lockdown in confidentiality mode. Programs whose event a kernel lacks are left out.
 * libbpf's own messages go into struct err, nothing is printed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "bpf/latency-shared.h"

struct bpf_latency_options {
	const struct cpuset *cpus; /* measured */
	const int *tids;           /* sampling thread of each of them, ascending; as gettid() */
	bool timerlat;             /* wake-ups, else gaps */
	bool full;                 /* who interrupted whom; else latencies alone */
	bool trace;                /* write everything */
	bool remote;               /* timers may expire on other CPUs */
	uint64_t irq_limit_ns, thread_limit_ns, stack_ns; /* 0 none */
	unsigned ring_slots;                              /* of each CPU; a power of two */
};

struct bpf_latency;

/* One program's cost; run_ns and runs count only while kernel.bpf_stats_enabled is set. */
struct bpf_latency_cost {
	char name[32], event[40];
	uint64_t runs, run_ns;
	uint64_t misses; /* events lost because they interrupted the same program */
};

/* "1.1", or "not built". */
const char *bpf_latency_version(void);
/* Whether bpf_latency_open() has a chance: 0, or the reason and the remedy. Loads one tiny program,
 * changes nothing. */
int bpf_latency_probe(struct err *err);
/* Attaches; nothing is written before bpf_latency_activate(). */
int bpf_latency_open(const struct bpf_latency_options *options, struct bpf_latency **ret,
		     struct err *err);
/* Enrols the threads and lets the programs write. */
void bpf_latency_activate(struct bpf_latency *set);
/* Waits until the threads were seen and every CPU's share of the hypervisor is known, at most
 * timeout_ms; -ETIMEDOUT: a thread was not seen. */
int bpf_latency_settle(struct bpf_latency *set, unsigned timeout_ms);
/* State of a measured CPU and the first slot of its ring. */
struct lat_cpu *bpf_latency_cpu(const struct bpf_latency *set, unsigned cpu);
struct lat_record *bpf_latency_ring(const struct bpf_latency *set, unsigned cpu);
/* Not 0: nothing is written any more. Set by the programs when a limit is reached, or by us. */
unsigned *bpf_latency_frozen(struct bpf_latency *set);
/* Detaches: afterwards the rings rest. They stay mapped. */
void bpf_latency_detach(struct bpf_latency *set);
/* The i-th loaded program's cost; false: there is none. Works until detached. */
bool bpf_latency_cost(const struct bpf_latency *set, unsigned i, struct bpf_latency_cost *ret);
void bpf_latency_free(struct bpf_latency *set);
