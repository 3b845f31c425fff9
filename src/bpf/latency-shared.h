/*
 * What the BPF programs of latency and noise measurement share with user space: the records, the
 * ring of each CPU they stand in, and each CPU's state. Both sides have these in mapped memory, and
 * so has the engine without BPF, which uses the same rings.
 *
 * A ring never says no: writers (programs of one CPU that interrupt each other, and the sampling
 * thread there) take position `head` by an atomic add, so that each has a slot of its own, and the
 * oldest records are overwritten. A slot is whole when its seq is (uint32_t)position + 1; the
 * reader finds what was overwritten before it came by the numbers that are missing. What is in the
 * ring when the measurement ends is the flight recorder.
 *
 * Basic types only: this file is compiled for BPF too. All times are ns of CLOCK_MONOTONIC.
 */
#ifndef CULPRIT_BPF_LATENCY_SHARED_H
#define CULPRIT_BPF_LATENCY_SHARED_H

enum lat_kind {
	LAT_SAMPLE = 1, /* cls: context; start: expiry, value: latency, extra: seq */
	LAT_NOISE,      /* cls, sub, number; start: arrival, value: net ns, extra: function */
	LAT_GAP,        /* start, value: length, number: interferences, extra: explained ns */
	LAT_PERIOD,     /* start: runtime, value: noise, extra: longest; LAT_COUNTS follows */
	LAT_COUNTS,     /* start, value: two counts each, low half first; number: unexplained */
	LAT_STACK,      /* number: index of the first frame, pid: frames in all; words() */
	LAT_SWITCH,     /* number: next pid, comm: next, pid: previous, extra: next prio */
	LAT_WORK,       /* extra: function */
	LAT_STEAL,      /* value: ns */
	LAT_STOPPED,    /* cls: context whose limit was reached; value: latency */
};

enum lat_class {
	LAT_NMI,
	LAT_IRQ,
	LAT_SOFTIRQ,
	LAT_THREAD,
	LAT_CLASSES
};
enum lat_context {
	LAT_IN_IRQ,
	LAT_IN_THREAD,
	LAT_IN_USER
};

/* lat_record.sub of LAT_IRQ: where its name comes from. */
enum lat_source {
	LAT_DEVICE, /* number is an interrupt of /proc/interrupts */
	LAT_IPI,    /* comm holds the reason */
	LAT_LOCAL_TIMER,
	LAT_RESCHEDULE,
	LAT_CALL_FUNCTION,
	LAT_CALL_FUNCTION_SINGLE,
	LAT_IRQ_WORK,
	LAT_PLATFORM_IPI,
	LAT_THERMAL,
	LAT_THRESHOLD,
	LAT_DEFERRED_ERROR,
	LAT_SPURIOUS,
	LAT_ERROR,
	LAT_SOURCES,
};

#define LAT_COMM         16
#define LAT_STACK_FRAMES 32
#define LAT_STACK_WORDS  5 /* of one LAT_STACK record: start, value, extra, comm[0..15] */

struct lat_record {
	unsigned int seq; /* 0 while it is written */
	unsigned char kind, cls, sub, cpu_unused;
	unsigned long long time;
	unsigned long long start;
	long long value;
	unsigned long long extra;
	int pid;
	int number;
	char comm[LAT_COMM];
};

/*
 * State of one CPU. CPUs share no cache line. After an idle wait every line costs a miss, so they
 * are sorted by who needs them: a wake-up's latencies stand in the first, an interrupt's window in
 * the second. Writers: [u] user space until the programs are attached, [t] the sampling thread, [a]
 * atomically by thread and programs, else the programs of this CPU; those of one class never
 * interrupt each other, so that their sums need no atomic addition.
 */
struct lat_cpu {
	unsigned long long next;           /* [t] expiry that the sampling thread sleeps until */
	unsigned long long head;           /* [a] positions taken in the ring */
	unsigned long long fired, sampled; /* expiries seen in the interrupt, by the thread */
	unsigned long long seq;
	unsigned long long epoch; /* changes when the timer's interrupt sets starts anew */
	unsigned int active;      /* [u] measured */
	int tid;                  /* the sampling thread; 0 not seen yet */
	unsigned int ring_base;   /* [u] index of the ring's first slot */
	unsigned int sampling;    /* [t] the noise loop runs: interruptions are written down */

	/* interruptions: changes with each beginning, 0: not measured */
	unsigned long long counter;
	/* open windows: start moves with what interrupts them, 0 closed */
	unsigned long long start[LAT_CLASSES];
	unsigned long long irq_arrival;
	unsigned long long timer_now; /* function of the timer that runs in this interrupt */
	unsigned long long timers;    /* how many did */

	unsigned long long softirq_arrival, thread_arrival;
	unsigned long long steal_address, steal_last;
	/* functions of the thread that runs: now, and the longest */
	unsigned long long work_now, work_since, work_longest, work_function;

	/* sums over windows that ended, for the noise loop */
	unsigned long long net[LAT_CLASSES], count[LAT_CLASSES];

	/* seldom needed: an interrupt of several timers, and what is told at the end */
	unsigned long long timer_since, timer_longest, timer_function;
	unsigned long long steal_total;
	long long stop_value;
	unsigned long long missed_irq; /* wake-ups whose interrupt no program saw */
	unsigned long long second_source;
	unsigned long long stack_count; /* frames kept of the latest timer interrupt, 0 none */
	unsigned int stop_pending;
	int ns_tid; /* [u] the sampling thread as its pid namespace numbers it */
} __attribute__((aligned(64)));

#ifndef __bpf__
_Static_assert(sizeof(struct lat_record) == 64, "one record is one cache line");
#endif

#endif
