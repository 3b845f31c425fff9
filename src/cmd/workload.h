/*
 * The command that is measured: started so that counters can be attached before its first
 * instruction, waited for together with timers and a control channel, and its end passed on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

struct workload {
	pid_t pid;   /* 0: none */
	int release; /* write end: one byte lets a held command exec; -1 when not held */
	bool ended;
	bool stopped; /* by us, at the end of the time asked for: its status is not its own */
	int status;   /* of wait4 */
	struct rusage usage;
	uint64_t start_ns, end_ns;
};

/*
 * Starts argv at once. The caller's inherited counters follow it (inherit, enable_on_exec). When it
 * cannot be executed: -ENOENT and others, with words.
 */
int workload_start(struct workload *w, char **argv, struct err *err);
/* Forks and holds the child before exec, so that counters can be attached to its pid. */
int workload_hold(struct workload *w, char **argv, struct err *err);
/* Lets it exec; the errno of a failing exec as above. */
int workload_release(struct workload *w, char **argv, struct err *err);
/* Reaps it if it ended; true when it did. */
bool workload_reap(struct workload *w, bool block);
void workload_kill(struct workload *w, int signal);
/* 126 or 127 for a negative errno of exec. */
int workload_exec_status(int error);
/* Ends this process as the command ended: exit status, or death by the same signal. */
void workload_exit_like(const struct workload *w) __attribute__((noreturn));
