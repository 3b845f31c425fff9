/*
 * What the engines with threads of our own (B, L, U) have in common: threads and rings, the
 * translation of the rings' records, the flight recorder's text, conditions.
 */
#pragma once

#include "bpf/latency-programs.h"
#include "latency/engine.h"
#include "latency/irq-names.h"
#include "latency/kernel-names.h"
#include "latency/ring.h"
#include "latency/sampler.h"

struct own_cpu {
	unsigned cpu;
	struct lat_cpu *state;
	struct ring ring; /* for reading */
	/* records that come in pieces */
	struct lat_record period;
	bool has_period;
	uint64_t frames[LAT_STACK_FRAMES + LAT_STACK_WORDS];
	unsigned frames_have;
	char running[LAT_COMM]; /* thread switched in last, "" unknown */
	uint64_t lost_told;
	/* at the start */
	int64_t steal_ns, smi_count;
};

struct latency_engine {
	struct latency_options options; /* policy and priority as they were obtained */
	enum latency_engine_id id;
	struct samplers *samplers;
	struct bpf_latency *bpf; /* NULL: engine U */
	struct own_cpu *cpus;
	unsigned cpu_count;
	unsigned *frozen, frozen_memory;
	struct lat_cpu *states; /* engine U's own */
	struct lat_record *slots;
	struct kernel_names kernel;
	bool kernel_known;
	struct irq_names irqs;
	uint64_t records;            /* handed on */
	bool ended;                  /* the threads have */
	char *interrupts, *softirqs; /* texts of /proc at the start, engine U */
};

/* Allocates, starts the threads with the policy (or, by default, the best one that is allowed). */
int own_new(const struct latency_options *options, enum latency_engine_id id,
	    struct latency_run *run, struct latency_engine **ret, struct err *err);
unsigned own_ring_slots(const struct latency_options *options, enum latency_engine_id id);
/* Sets what the rings are and lets the threads measure. */
void own_go(struct latency_engine *engine);
int own_conditions(const struct latency_engine *engine, struct latency_run *run);

int own_poll(struct latency_engine *engine, int timeout_ms, struct latency_sink *sink,
	     struct err *err);
/* Ends the threads, reads the losses, detaches, hands on the rest. */
int own_stop(struct latency_engine *engine, struct latency_sink *sink, struct latency_run *run,
	     struct err *err);
int own_trace(struct latency_engine *engine, const char *path, struct err *err);
void own_free(struct latency_engine *engine);

/* One record to the sink; pieces are put together first. */
int own_translate(struct latency_engine *engine, struct own_cpu *cpu, const struct lat_record *from,
		  struct latency_sink *sink);
/* Checks that all engines with threads of our own make. */
int own_probe(const struct latency_options *options, char letter, struct err *err);

/* The hypervisor's share of /proc/stat, LATENCY_UNKNOWN_NS; MSR_SMI_COUNT where it can be read. */
int64_t cpu_steal_ns(unsigned cpu);
int64_t cpu_smi_count(unsigned cpu);

/* Everything that is still in the rings, all CPUs in time order. */
int own_each(struct latency_engine *engine, struct latency_sink *sink);
