/* list --probe: which events really open here, and why the others do not. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd/list.h"
#include "count/ops.h"
#include "count/set.h"

static int try_open(const struct event *event, bool user_only)
{
	struct perf_event_attr attr = event->attr;
	int cpu = event->cpus ? cpuset_next(event->cpus, 0) : -1;
	int fd;

	attr.disabled = 1;
	if (user_only)
		attr.exclude_kernel = attr.exclude_hv = 1;
	fd = counter_kernel.open(NULL, &attr, event->uncore ? -1 : 0, event->uncore ? cpu : -1, -1,
				 0);
	if (fd >= 0)
		counter_kernel.close(NULL, fd);
	return fd < 0 ? fd : 0;
}

static void reason_of(const struct event *event, int error, char *buf, size_t size)
{
	struct count_event counted = {.name = event->name, .attr = event->attr};

	counted.kind = event->uncore ? COUNT_UNCORE : count_kind_of(&event->attr);
	count_open_reason(&counted, error, buf, (unsigned)size);
}

static int fail(struct list *list, struct list_row *row, const char *why)
{
	row->probe = "fails";
	row->reason = arena_strndup(&list->arena, why, strlen(why));
	return row->reason ? 0 : -ENOMEM;
}

/* A name of several events works when all of them do. */
static int probe_events(struct list *list, struct list_row *row, const struct event_list *events)
{
	bool user_only = false;

	for (size_t i = 0; i < events->events.len; i++) {
		const struct event *event = &events->events.data[i];
		char why[256];
		int r;

		if (event->kind == EVENT_TOOL)
			continue;
		r = try_open(event, false);
		if ((r == -EACCES || r == -EPERM) && !event->uncore && try_open(event, true) == 0) {
			user_only = true;
			r = 0;
		}
		if (r < 0) {
			reason_of(event, r, why, sizeof(why));
			return fail(list, row, why);
		}
	}
	row->probe = user_only ? "user only" : "works";
	row->reason = user_only ? "the kernel's part may not be counted by this user" : NULL;
	return 0;
}

static int probe_row(struct list *list, struct list_row *row)
{
	struct event_list events = {0};
	struct err err = {0};
	int r;

	/* These describe how to write an event; there is nothing to open. */
	if (row->kind == LIST_FORMAT || row->kind == LIST_RAW || row->kind == LIST_METRIC ||
	    row->kind == LIST_GROUP)
		return 0;
	r = events_parse(row->name, list->env, &events, &err);
	if (r == 0)
		r = probe_events(list, row, &events);
	else
		r = r == -ENOMEM ? r
				 : fail(list, row,
					row->kind == LIST_VENDOR && !row->encoding
						? "needs another unit mask beside this one"
						: err_text(&err, r));
	event_list_fini(&events);
	return r;
}

int list_probe(struct list *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->rows.len; i++)
		r = probe_row(list, &list->rows.data[i]);
	return r;
}
