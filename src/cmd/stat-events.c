/* Which events stat counts: the default set, -d, -e, and what -M and --explain need. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/stat.h"

#define DEFAULT_FIRST 2 /* context-switches ... */
#define DEFAULT_COUNT 9 /* ... cache-misses */

static const unsigned detail_counts[] = {0, 4, 10, 12}; /* of the HW_CACHE rows, for each -d */

/* Two kinds of core: every hardware event is opened on both, which the events module knows how to.
 */
static bool is_hybrid(void)
{
	static int hybrid = -1;

	if (hybrid < 0)
		hybrid = access("/sys/bus/event_source/devices/cpu_core", F_OK) == 0;
	return hybrid;
}

static int add_known(struct stat_job *job, const struct stat_known *known)
{
	struct count_event event = {.scale = 1, .user_group = -1};
	char name[64];

	if (known->type != PERF_TYPE_SOFTWARE && is_hybrid())
		return stat_add_event_texts(job, &known->name, 1, NULL);
	snprintf(name, sizeof(name), "%s", known->name);
	event.name = name;
	event.attr.type = known->type;
	event.attr.config = known->config;
	event.kind = count_kind_of(&event.attr);
	event.attr.exclude_guest = event.kind == COUNT_CORE; /* as for events named with -e */
	return count_set_add(&job->set, &event);
}

/* Adds a known event unless it is counted already, in all modes. Its index, or -ENOMEM. */
static int need_event(struct stat_job *job, const char *name)
{
	const struct stat_known *known = stat_known_find(name);

	for (unsigned i = 0; i < stat_events(job); i++) {
		const struct perf_event_attr *attr = &job->set.events.data[i].attr;

		if (attr->type == known->type && attr->config == known->config &&
		    !attr->exclude_user && !attr->exclude_kernel && !attr->exclude_hv &&
		    job->set.events.data[i].kind != COUNT_TOOL)
			return (int)i;
	}
	return add_known(job, known) < 0 ? -ENOMEM : (int)job->set.events.len - 1;
}

static int add_defaults(struct stat_job *job)
{
	int r = add_known(job,
			  stat_known_find(job->target.system_wide ? "cpu-clock" : "task-clock"));

	for (unsigned i = 0; i < DEFAULT_COUNT && r == 0; i++)
		r = add_known(job, &stat_known_events[DEFAULT_FIRST + i]);
	return r;
}

static int add_detail(struct stat_job *job)
{
	unsigned count = detail_counts[MIN(job->options.detail, ARRAY_LEN(detail_counts) - 1)];

	for (unsigned i = 0; i < count; i++)
		if (need_event(job, stat_known_events[DEFAULT_FIRST + DEFAULT_COUNT + i].name) < 0)
			return -ENOMEM;
	return 0;
}

int stat_choose_events(struct stat_job *job, struct err *err)
{
	int r = 0;

	if (job->options.null_run)
		return 0;
	if (job->options.regions)
		return stat_regions_begin(job, err);
	if (job->options.events.len > 0)
		r = stat_add_event_texts(job, job->options.events.data, job->options.events.len,
					 err);
	if (r < 0)
		return r;
	r = stat_metric_events(job, err);
	if (r == 0 && job->options.events.len == 0 && !job->options.metrics &&
	    !job->options.explain)
		r = add_defaults(job);
	if (r == 0)
		r = add_detail(job);
	return r == -ENOMEM ? err_set(err, r, "out of memory") : r;
}

int stat_need_event(struct stat_job *job, const char *name)
{
	const struct stat_known *known = stat_known_find(name);

	/* Of two kinds of core each has its own event: text becomes both. */
	if (!known || (known->type != PERF_TYPE_SOFTWARE && is_hybrid()))
		return -ENOENT;
	return need_event(job, name);
}
