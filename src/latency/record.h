/*
 * The one event stream of latency and noise measurement. Engines (the kernel's tracers, BPF, user
 * space alone) and importers make these records; accounting, automatic analysis and the text and
 * trace files consume them.
 *
 * Records of one CPU come in time order; CPUs interleave as they are read. All times are ns of the
 * run's one clock (run.h names it), 0 where the source has no time. Strings are borrowed for the
 * call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LATENCY_UNKNOWN_NS INT64_MIN /* a time or duration that the source does not tell */

/* Who took the CPU, in order of who interrupts whom. */
enum noise_class {
	NOISE_UNEXPLAINED, /* no known source: hardware, SMI, hypervisor; rtla's HW column */
	NOISE_NMI,
	NOISE_IRQ,
	NOISE_SOFTIRQ,
	NOISE_THREAD,
	NOISE_CLASSES,
};

/* Where a sample was taken on the way from the timer's expiry to user space. */
enum latency_context {
	LATENCY_IRQ,    /* in the timer's interrupt */
	LATENCY_THREAD, /* the woken thread runs in the kernel (or was switched in) */
	LATENCY_USER,   /* the woken thread is back in user space */
	LATENCY_CONTEXTS,
};

enum latency_record_kind {
	LATENCY_SAMPLE,  /* one wake-up as seen by one context */
	LATENCY_NOISE,   /* one interruption, its net duration */
	LATENCY_GAP,     /* the sampling loop did not run for a while (osnoise sample_threshold) */
	LATENCY_PERIOD,  /* sums of one osnoise period */
	LATENCY_HWLAT,   /* one hwlat sample */
	LATENCY_STACK,   /* kernel stack at the timer interrupt of the latest sample */
	LATENCY_SWITCH,  /* a thread was switched in */
	LATENCY_WORK,    /* a kworker began a work function */
	LATENCY_STEAL,   /* the hypervisor took the CPU for a while */
	LATENCY_STOPPED, /* a threshold stopped the measurement on this CPU */
	LATENCY_LOST,    /* records of this CPU are missing here: pairing starts anew */
};

struct latency_record {
	enum latency_record_kind kind;
	unsigned cpu;
	uint64_t time_ns; /* when the record was made */
	int pid;          /* running (or interrupted) thread, -1 unknown, 0 idle */
	const char *comm; /* its name, NULL unknown */
	union {
		struct {
			enum latency_context context;
			uint64_t seq;
			int64_t latency_ns; /* from expiry; may be negative on two clocks: counted,
					       not hidden */
		} sample;
		struct {
			enum noise_class class;
			int number;           /* IRQ, vector or softirq number, pid; -1 unknown */
			const char *name;     /* "local_timer", "NET_RX", "kworker/0:1" */
			const char *function; /* hrtimer or work function inside it, NULL */
			int64_t start_ns;
			int64_t duration_ns; /* net of what interrupted it */
		} noise;
		struct {
			int64_t start_ns;
			uint64_t duration_ns;
			uint64_t
				interferences; /* 0: nothing known happened, so it is unexplained */
			uint64_t explained_ns; /* net durations of known sources inside */
		} gap;
		struct {
			uint64_t runtime_ns, noise_ns, max_single_ns;
			uint64_t count[NOISE_CLASSES];
		} period;
		struct {
			uint64_t seq, inner_ns, outer_ns;
			uint64_t count;       /* 0 unknown */
			int64_t nmi_total_ns; /* LATENCY_UNKNOWN_NS unknown */
			uint64_t nmi_count;
		} hwlat;
		struct {
			const char *const *frames; /* innermost first, resolved */
			unsigned count;
			bool cut; /* the source kept no more frames */
		} stack;
		struct {
			int next_pid, next_prio;
			const char *next_comm;
		} switched;
		struct {
			const char *function;
		} work;
		struct {
			uint64_t duration_ns;
		} steal;
		struct {
			uint64_t events; /* 0: an unknown number */
		} lost;
	};
};

/* Whoever takes records: 0, or a negative errno that ends the reading. */
struct latency_sink {
	int (*take)(struct latency_sink *sink, const struct latency_record *record);
};

/* "unexplained", "nmi", "irq", "softirq", "thread": the contract's kinds of culprits. */
const char *noise_class_name(enum noise_class class);
const char *latency_context_name(enum latency_context context); /* "irq", "thread", "user" */
