/*
 * Automatic analysis: names what made a wake-up late. A state machine over the records of each CPU,
 * fed live, from the kernel's tracers, BPF or imported text alike.
 *
 * delay + timer interrupt + blocking + NMI + IRQ + softirq + thread + rest = latency; when the rest
 * is more than a tenth of the latency there is no verdict, only the parts.
 */
#pragma once

#include "base/cpuset.h"
#include "latency/record.h"
#include "latency/run.h"

/* One interruption between expiry and the thread's sample. */
struct latency_part {
	enum noise_class class;
	int number;
	uint32_t name, function; /* ids in run->names */
	int64_t start_ns;        /* after the expected start */
	int64_t duration_ns;     /* net, or the overlap for interrupts before the timer's */
};

struct latency_verdict {
	unsigned cpu;
	uint64_t seq;
	enum latency_context context; /* LATENCY_IRQ: the thread never ran; LATENCY_USER: the limit
					 was passed on the way back to user space */
	int64_t total_ns;
	int64_t irq_latency_ns; /* the following are LATENCY_UNKNOWN_NS when not measured */
	int64_t delay_ns; /* expiry to the timer's interrupt; negative: its handler already ran */
	bool from_idle;
	bool handler_running; /* the timer was caught by a handler that already ran */
	int64_t timer_irq_ns;
	int64_t blocking_ns;
	int blocking_pid; /* the interrupted thread, also when it blocked nothing */
	uint32_t blocking_comm, blocking_work; /* ids, 0 unknown */
	int64_t class_ns[NOISE_CLASSES];       /* after the timer's interrupt */
	int64_t return_ns;                     /* context LATENCY_USER: from thread to user space */
	int64_t steal_ns;                      /* inside the other times, not beside them */
	int64_t rest_ns;
	struct latency_part *before; /* IRQs and NMIs overlapping [expiry, timer interrupt) */
	unsigned before_count;
	struct latency_part *parts; /* after it, in time order */
	unsigned part_count;
	uint32_t *stack; /* ids of frames, innermost first */
	unsigned stack_count;
	/* the verdict */
	bool decided;     /* false: rest too large, or parts missing; why says which */
	uint32_t culprit; /* id: "thread stress-ng-hdd:24898", "irq igb-rx", "exit from idle" */
	int64_t culprit_ns;
	uint32_t why, remedy, command; /* ids; command 0: none exists */
};

/* A verdict that knows nothing: every time LATENCY_UNKNOWN_NS, the pid -1. */
struct latency_verdict latency_verdict_empty(void);

struct latency_analysis;

/* Verdicts go into run when a limit is passed; besides, the keep worst samples per CPU are analysed
 * (0: only by limits). */
int latency_analysis_new(struct latency_run *run, unsigned keep, struct latency_analysis **ret);
/* CPUs that remedies may name as free for other work; without them commands say LIST. */
void latency_analysis_spare_cpus(struct latency_analysis *analysis, const struct cpuset *cpus);
/* 0, -ENOMEM or -EINVAL as latency_run_take(); 1: an interruption that was in nobody's way: the
 * measured timer's own interrupt with no other work in it, or threads and softirqs while nobody
 * waited. */
int latency_analysis_take(struct latency_analysis *analysis, const struct latency_record *record);
/* The measurement stops and starts anew: nothing is joined across. 0 or -ENOMEM. */
int latency_analysis_break(struct latency_analysis *analysis);
/* Completes the open cycles and moves the verdicts, worst first, into run. */
int latency_analysis_finish(struct latency_analysis *analysis);
void latency_analysis_free(struct latency_analysis *analysis);
void latency_verdicts_free(struct latency_verdict *verdicts, unsigned count);
