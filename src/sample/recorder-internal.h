/* The recorder's state, shared by recorder-open.c (events, targets, rings) and recorder.c (the
 * loop). */
#pragma once

#include "base/vec.h"
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
	bool rings_shrunk;
	bool on_exec; /* the kernel enables the events at the workload's exec */
	struct writer *writer;
	struct tally tally;
	int epoll, signals, timer;
	uint64_t start_ns;
	int signal;
	bool signal_from_terminal;
};

/* attrs, targets, descriptors and rings for the options. */
int recorder_open_events(struct recorder *recorder, struct err *err);
