#include "latency/trace-flight.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "latency/trace-dat.h"

#define COPY_BYTES (64 * 1024)

const struct latency_event trace_flight_events[] = {
	{"irq", "irq_handler_entry", NULL, NULL},
	{"irq", "irq_handler_exit", NULL, NULL},
	{"irq", "softirq_raise", NULL, NULL},
	{"irq", "softirq_entry", NULL, NULL},
	{"irq", "softirq_exit", NULL, NULL},
	{"irq_vectors", NULL, NULL, NULL},
	{"nmi", "nmi_handler", NULL, NULL},
	{"sched", "sched_switch", NULL, NULL},
	{"sched", "sched_waking", NULL, NULL},
	{"sched", "sched_migrate_task", NULL, NULL},
	{"timer", "hrtimer_expire_entry", NULL, NULL},
	{"timer", "hrtimer_expire_exit", NULL, NULL},
	{"workqueue", "workqueue_execute_start", NULL, NULL},
	{"workqueue", "workqueue_execute_end", NULL, NULL},
};
const unsigned trace_flight_event_count = ARRAY_LEN(trace_flight_events);

struct trace_flight {
	const struct tracefs *tracefs;
	struct trace_instance instance;
	struct trace_flight_options options;
	int text;  /* what the instance held, once it was emptied into a trace.dat; -1 none yet */
	char *dat; /* that file */
	int on, marker; /* tracing_on, trace_marker; -1 none */
};

static bool ours(const struct latency_event *event)
{
	return event >= trace_flight_events &&
	       event < trace_flight_events + trace_flight_event_count;
}

static int set_up(struct trace_flight *flight, struct err *err)
{
	const struct trace_flight_options *options = &flight->options;
	const struct tracefs *at = &flight->instance.at;
	char text[32];
	int r = trace_instance_clock(&flight->instance, options->clock ? options->clock : "local",
				     err);

	if (r == 0 && options->buffer_kib) {
		snprintf(text, sizeof(text), "%u", options->buffer_kib);
		r = tracefs_write(at, text, err, "buffer_size_kb");
	}
	for (unsigned i = 0; r >= 0 && i < options->event_count; i++) {
		const struct latency_event *event = &options->events[i];

		r = trace_instance_event(&flight->instance, event->system, event->event,
					 event->filter, event->trigger, err);
		if (r == -ENOENT && ours(event))
			r = 0;
	}
	if (r >= 0 && options->tracer)
		r = tracefs_write(at, options->tracer, err, "current_tracer");
	if (r < 0)
		return r;
	flight->on = tracefs_open(at, O_WRONLY, "tracing_on");
	flight->marker = tracefs_open(at, O_WRONLY, "trace_marker");
	return flight->on < 0 ? err_set(err, flight->on, "%s: tracing_on: %s", at->path,
					strerrordesc_np(-flight->on))
			      : 0;
}

int trace_flight_start(const struct tracefs *tracefs, struct journal *journal,
		       const struct trace_flight_options *options, struct trace_flight **ret,
		       struct err *err)
{
	struct trace_flight *flight = calloc(1, sizeof(*flight));
	int r;

	if (!flight)
		return -ENOMEM;
	flight->tracefs = tracefs;
	flight->options = *options;
	flight->on = flight->marker = flight->text = -1;
	r = trace_instance_make(tracefs, journal, "-flight", &flight->instance, err);
	if (r == 0)
		r = set_up(flight, err);
	if (r < 0) {
		trace_flight_free(flight);
		return err_wrap(err, r, "flight recorder");
	}
	*ret = flight;
	return 0;
}

void trace_flight_mark(struct trace_flight *flight, const char *text)
{
	if (flight->marker >= 0 && write(flight->marker, text, strlen(text)) < 0)
		return; /* frozen already */
}

void trace_flight_freeze(struct trace_flight *flight)
{
	if (flight->on >= 0 && write(flight->on, "0", 1) < 0)
		return;
}

static int copy_file(int from, int to)
{
	CLEANUP_FREE char *buf = malloc(COPY_BYTES);

	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(from, buf, COPY_BYTES);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = fd_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int save(const char *from_path, const char *path, struct err *err)
{
	CLEANUP_CLOSE int from = open(from_path, O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int to = -1;
	int r;

	if (from < 0)
		return err_set(err, -errno, "%s: %s", from_path, strerrordesc_np(errno));
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	r = to < 0 ? -errno : copy_file(from, to);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

/* A file of the instance as a file of the user's. */
static int save_file(const struct trace_flight *flight, const char *name, const char *path,
		     struct err *err)
{
	char from[PATH_MAX];

	if ((size_t)snprintf(from, sizeof(from), "%s%s/%s", flight->instance.at.root,
			     flight->instance.at.path, name) >= sizeof(from))
		return -ENAMETOOLONG;
	return save(from, path, err);
}

static int save_histograms(const struct trace_flight *flight, const char *path, struct err *err)
{
	CLEANUP_FREE char *copy = strdup(path);
	const char *folder = copy ? dirname(copy) : NULL;

	if (!folder)
		return -ENOMEM;
	for (unsigned i = 0; i < flight->options.event_count; i++) {
		const struct latency_event *event = &flight->options.events[i];
		char to[PATH_MAX], from[160];
		int r;

		if (!event->trigger || !str_prefix(event->trigger, "hist:", NULL))
			continue;
		snprintf(from, sizeof(from), "events/%s/%s/hist", event->system, event->event);
		if ((size_t)snprintf(to, sizeof(to), "%s/%s_%s_hist.txt", folder, event->system,
				     event->event) >= sizeof(to))
			return -ENAMETOOLONG;
		r = save_file(flight, from, to, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Writing a trace.dat empties the instance, so the text is kept for whoever asks for it next. */
static int save_dat(struct trace_flight *flight, const char *path, struct err *err)
{
	CLEANUP_CLOSE int from = -1;
	int r;

	if (flight->dat)
		return save(flight->dat, path, err);
	flight->dat = strdup(path);
	flight->text = memfd_create("culprit-trace", MFD_CLOEXEC);
	from = tracefs_open(&flight->instance.at, O_RDONLY, "trace");
	r = !flight->dat       ? -ENOMEM
	    : flight->text < 0 ? -errno
	    : from < 0         ? from
			       : copy_file(from, flight->text);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	return trace_dat_write(flight->tracefs, &flight->instance, path, err);
}

static int save_text(struct trace_flight *flight, const char *path, struct err *err)
{
	char kept[64];

	if (flight->text < 0)
		return save_file(flight, "trace", path, err);
	snprintf(kept, sizeof(kept), "/proc/self/fd/%d", flight->text);
	return save(kept, path, err);
}

int trace_flight_write(struct trace_flight *flight, const char *path, struct err *err)
{
	size_t len = strlen(path);
	int r;

	trace_flight_freeze(flight);
	r = save_histograms(flight, path, err);
	if (r < 0)
		return r;
	return len >= 4 && strcmp(path + len - 4, ".dat") == 0 ? save_dat(flight, path, err)
							       : save_text(flight, path, err);
}

const struct trace_instance *trace_flight_instance(const struct trace_flight *flight)
{
	return &flight->instance;
}

void trace_flight_close(struct trace_flight *flight)
{
	if (flight->on >= 0)
		close(flight->on);
	if (flight->marker >= 0)
		close(flight->marker);
	flight->on = flight->marker = -1;
}

void trace_flight_free(struct trace_flight *flight)
{
	if (!flight)
		return;
	trace_flight_close(flight);
	if (flight->text >= 0)
		close(flight->text);
	free(flight->dat);
	free(flight);
}
