/*
 * Records samples into a perf.data file: opens the events on CPUs, processes or the whole machine,
 * drains the kernel's rings into the file, and completes it at the end.
 *
 * Life: recorder_open() (events are open and waiting), the caller lets its workload go,
 * recorder_run() until something ends it, recorder_finish(), recorder_close(). At any failure after
 * recorder_open() what was written stays readable.
 *
 * The caller blocks the signals that shall end the recording; recorder_run() takes them by
 * signalfd.
 */
#pragma once

#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpuset.h"
#include "base/err.h"

struct recorder;

enum callgraph {
	CALLGRAPH_NONE,
	CALLGRAPH_FP,
	CALLGRAPH_DWARF,     /* registers and stack bytes are copied and unwound while recording */
	CALLGRAPH_DWARF_RAW, /* the copies are kept in the file */
	CALLGRAPH_LBR,
};

struct recorder_event {
	const char *name;
	struct perf_event_attr attr; /* type, config, period or frequency, precise_ip, exclude_* */
	const char *filter;          /* tracepoint filter, NULL: none */
	const struct cpuset *cpus;   /* CPUs of its PMU, NULL: all */
	int group;                   /* events of one group have the same number; -1: alone */
	bool sample_read;            /* the group's leader samples, the others are read with it */
};

struct recorder_options {
	const struct recorder_event *events;
	uint32_t event_count;
	const char *output;
	bool system_wide;
	const struct cpuset *cpus; /* NULL: all online */
	const pid_t *pids;         /* whole processes, with their threads */
	size_t pid_count;
	const pid_t *tids; /* single threads */
	size_t tid_count;
	pid_t workload; /* held before its exec, 0: none */
	bool inherit;
	enum callgraph callgraph;
	uint32_t stack_bytes; /* CALLGRAPH_DWARF, 0: as many as the rings allow; _RAW, 0: 8192 */
	uint64_t delay_ns;    /* before sampling begins */
	uint64_t duration_ns; /* 0: until a signal or the workload's end */
	uint64_t ring_bytes;  /* per CPU, a power of two; 0: as much as fits, up to 1 MiB, or with
				 CALLGRAPH_DWARF 32 MiB */
	int zstd_level;       /* 0: no compression */
	int argc;
	char **argv;   /* for the header */
	sigset_t ends; /* signals that end the recording, blocked by the caller */
	void (*status)(void *arg,
		       const struct recorder *recorder); /* called once a second, may be NULL */
	void *status_arg;
};

struct recorder_result {
	uint64_t samples, lost, throttled;
	uint64_t first_time_ns, last_time_ns; /* of samples */
	uint64_t file_bytes, raw_bytes;       /* raw_bytes: before compression */
	uint64_t ring_bytes;                  /* per CPU, as it came to be */
	bool rings_shrunk;                    /* the mlock limit made them smaller than wanted */
	uint32_t stack_bytes;          /* copied of each user stack, as it came to be; 0: none */
	uint64_t stacks;               /* that were copied; of these: */
	uint64_t cut_stacks;           /* leave the copied bytes */
	uint64_t lost_stacks;          /* end in code whose callers nothing tells */
	uint64_t frame_pointer_stacks; /* some frames were found by frame pointers */
	char lost_in[512];             /* the object in which most were lost, and why */
	bool kernel_symbols_missing;   /* kernel addresses were sampled and cannot be named */
	char remark[512];              /* why, one line; "" when all is well */
	int signal;                    /* that ended it, 0: none */
	bool signal_from_terminal;     /* which sent it to the workload as well */
};

/* The words name the event, the setting that forbids it and the remedy. */
int recorder_open(const struct recorder_options *options, struct recorder **ret, struct err *err);
/*
 * Samples until the duration is over, a signal of ends comes, the workload (as told by ended(),
 * asked at SIGCHLD) or every observed process ends. A write error ends it and is returned; the file
 * stays sound.
 */
int recorder_run(struct recorder *recorder, bool (*ended)(void *arg), void *arg, struct err *err);
/* Stops, drains, completes the file. */
int recorder_finish(struct recorder *recorder, struct recorder_result *ret, struct err *err);
/* Nothing was recorded: removes the file, puts the old one back. recorder_close() follows. */
void recorder_discard(struct recorder *recorder);
void recorder_close(struct recorder *recorder);

uint64_t recorder_file_bytes(const struct recorder *recorder);
uint64_t recorder_elapsed_ns(const struct recorder *recorder);
