/* The recorder's state, shared by recorder-open.c (events, targets, rings) and recorder.c (the
 * loop). */
#pragma once

#include "base/str.h"
#include "base/vec.h"
#include "sample/bpf-loaded.h"
#include "sample/live.h"
#include "sample/recorder.h"
#include "sample/ring.h"
#include "sample/tally.h"
#include "sample/writer.h"

struct recorder_fd {
	int fd;
	uint32_t event; /* index into attrs */
	uint32_t ring;  /* index into rings */
	uint64_t id;
};

struct recorder {
	struct recorder_options options;
	VEC(struct perf_event_attr) attrs; /* as opened; the first one also carries the side band */
	VEC(const char *) names;
	VEC(struct recorder_fd) fds;
	VEC(struct ring) rings;
	VEC(size_t) polled; /* by ring: the index in fds of the descriptor that stands for it */
	VEC(pid_t) targets; /* thread ids; -1: every thread of the CPU */
	struct cpuset cpus;
	uint64_t ring_bytes;
	uint32_t stack_bytes;
	bool rings_shrunk;
	bool on_exec; /* the kernel enables the events at the workload's exec */
	struct writer *writer;
	struct tally tally;
	struct bpf_loaded *bpf; /* NULL: nothing of the kernel is sampled */
	struct live *live;      /* stacks are unwound while recording, NULL: they are not */
	struct live_merge *merge;
	struct str unwound; /* records that are to be written */
	int epoll, signals, timer;
	uint64_t start_ns;
	int signal;
	bool signal_from_terminal;
};

/* recorder-live.c: the rings through the unwinder into the file. */
int recorder_live_open(struct recorder *recorder);
void recorder_live_close(struct recorder *recorder);
int recorder_live_put(struct recorder *recorder, const void *record);
/* all: nothing is written to the rings any more. */
int recorder_live_drain(struct recorder *recorder, bool all);

/* ring_bytes and stack_bytes, for the CPUs that are known by then. */
void recorder_choose_sizes(struct recorder *recorder);

/* attrs, targets, descriptors and rings for the options. */
int recorder_open_events(struct recorder *recorder, struct err *err);
