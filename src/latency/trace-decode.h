/*
 * From the kernel's binary trace records to latency records: one decoder for the live ring buffer
 * (engine K) and for trace.dat files.
 *
 * Known: ftrace:{timerlat,osnoise,hwlat,kernel_stack,print}, osnoise:*_noise and sample_threshold,
 * sched:sched_switch, workqueue:workqueue_execute_start, timer:hrtimer_expire_entry,
 * task:task_rename. Everything else is skipped. Besides translating it learns thread names, and
 * joins what the kernel reports apart: the timer function to its interrupt, the work function to
 * its kworker, the known interruptions to the gap of the sampling loop that they explain.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "latency/record.h"
#include "latency/trace-format.h"

struct trace_decoder;

/* Where names come from that the records do not tell. NULL functions and results: unknown. */
struct trace_names {
	void *arg;
	const char *(*comm)(void *arg, int pid);
	const char *(*function)(void *arg, uint64_t address);
};

int trace_decoder_new(const struct trace_page_layout *layout, const struct trace_names *names,
		      struct trace_decoder **ret);
void trace_decoder_free(struct trace_decoder *decoder);
/* Takes an event's format. 1: it is one of the known, 0: it will be skipped; -EBADMSG, -ENOMEM. */
int trace_decoder_event(struct trace_decoder *decoder, const char *system, const char *text,
			size_t size, struct err *err);
/* A thread's name; later ones replace earlier ones. */
int trace_decoder_comm(struct trace_decoder *decoder, int pid, const char *comm);
/* The lines "PID NAME" of saved_cmdlines; only for threads not known yet. */
int trace_decoder_comms(struct trace_decoder *decoder, const char *text, size_t size);
/* Hands a page's records on; returns how many, or a negative errno (the sink's too). */
int trace_decoder_page(struct trace_decoder *decoder, unsigned cpu, const void *bytes, size_t size,
		       struct latency_sink *sink, struct err *err);
