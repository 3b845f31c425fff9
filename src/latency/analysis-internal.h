/* What the state machine (analysis.c, analysis-cycle.c) holds and hands to the choice of the
 * culprit (analysis-verdict.c) and its remedies (analysis-advice.c). */
#pragma once

#include "base/cpuset.h"
#include "base/vec.h"
#include "latency/analysis.h"

/* Who or what may be to blame, in the order of remedies. */
enum blame {
	BLAME_BEFORE,   /* an interrupt that ran when the timer expired */
	BLAME_IDLE,     /* the CPU woke up out of an idle state */
	BLAME_IRQS_OFF, /* the interrupted thread kept interrupts off, or the hardware stalled */
	BLAME_STEAL,    /* the hypervisor */
	BLAME_TIMER,    /* the timer's interrupt itself: other timers in it */
	BLAME_BLOCKING, /* the interrupted thread did not give the CPU away */
	BLAME_PART,     /* an interruption after the timer's interrupt */
	BLAME_RETURN,   /* the way back to user space */
};

struct candidate {
	enum blame blame;
	enum noise_class class;
	int number;
	uint32_t name, function;
	int64_t ns;
};

struct advice_context {
	struct latency_run *run;
	const struct latency_verdict *verdict;
	const struct cpuset *free_cpus; /* NULL: not known */
};

/* Facts about the whole run that decide whether times may be attributed at all. */
struct analysis_clock {
	uint64_t step_ns;   /* greatest common divisor of all durations */
	uint64_t durations; /* how many, zeros included */
};

bool analysis_clock_coarse(const struct analysis_clock *clock);

#define RECENT_MAX 64 /* interrupts remembered before an expiry */

enum state {
	WAIT_IRQ,
	WAIT_THREAD,
	WAIT_USER,
};

struct interruption {
	enum noise_class class;
	int number;
	uint32_t name, function;
	int64_t start_ns, end_ns, duration_ns;
};

struct kept {
	VEC(struct latency_verdict) verdicts; /* unordered */
	unsigned smallest;
};

struct analysis_cpu {
	unsigned cpu;
	enum state state;
	struct interruption recent[RECENT_MAX];
	unsigned recent_count, recent_next;
	bool offset_known, one_clock;
	int64_t offset_ns; /* of records' time against "start" */
	int work_pid;
	uint32_t work;
	/* the activation */
	uint64_t seq;
	int64_t time_ns, latency_ns, expiry_ns; /* of the sample in the interrupt */
	bool has_time, has_timer, has_thread, idle;
	int run_pid;
	uint32_t run_comm, run_work;
	int64_t timer_start_ns, timer_ns;
	int64_t blocking_ns;
	uint32_t blocking_name;
	int64_t class_ns[NOISE_CLASSES], steal_ns;
	bool has_steal;
	int64_t last_steal_ns, last_steal_time_ns; /* told before the sample in the interrupt */
	int64_t thread_ns;                         /* latency at the thread's sample */
	VEC(struct latency_part) parts;            /* start_ns absolute until a verdict is made */
	VEC(uint32_t) stack;
	struct kept kept;
};

struct latency_analysis {
	struct latency_run *run;
	unsigned keep;
	struct analysis_clock clock;
	bool has_free_cpus;
	struct cpuset free_cpus;
	VEC(struct analysis_cpu *) cpus; /* by number, NULL: not seen */
};

bool analysis_over_limit(const struct latency_run *run, enum latency_context context, int64_t ns);
/* The activation's sample that is told, kept when it is among the worst. 0 or -ENOMEM. */
int analysis_close(struct latency_analysis *analysis, struct analysis_cpu *cpu,
		   enum latency_context context, int64_t total_ns);
/* Fills the verdict's conclusion from its parts. 0 or -ENOMEM. */
int analysis_conclude(struct latency_run *run, const struct analysis_clock *clock,
		      const struct cpuset *free_cpus, struct latency_verdict *verdict);
/* Texts for the chosen candidate: culprit, why, remedy, command. 0 or -ENOMEM. */
int analysis_advise(const struct advice_context *context, const struct candidate *candidate,
		    struct latency_verdict *verdict);
/* The function that ran when the interrupt came, from its stack; 0 none. */
uint32_t analysis_interrupted_function(const struct latency_run *run,
				       const struct latency_verdict *verdict);
/* An id of formatted text. */
int analysis_text(struct latency_run *run, uint32_t *ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
