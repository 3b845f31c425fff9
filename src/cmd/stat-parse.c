/* The text of -e into events of the set: the events module knows the names, this knows what
 * competes for counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/stat.h"
#include "events/parse.h"

static enum count_kind kind_of(const struct event *event)
{
	if (event->tool != TOOL_NONE)
		return COUNT_TOOL;
	if (event->uncore)
		return COUNT_UNCORE;
	/* What neither counts in the core nor for a package (software, msr/tsc/) is never short. */
	return event->core ? COUNT_CORE : COUNT_SOFTWARE;
}

static int add_parsed(struct stat_job *job, const struct event *event)
{
	struct count_event added = {
		.name = event->name,
		.unit = event->unit,
		.attr = event->attr,
		.kind = kind_of(event),
		.scale = event->scale > 0 ? event->scale : 1,
		.user_group = event->group,
		.weak = event->weak,
		.partial = event->partial,
		.cpus = event->uncore ? event->cpus : NULL,
		.tool = event->tool,
	};

	return count_set_add(&job->set, &added);
}

/* ":W" stands on the leader and means its whole group. */
static void spread_weak(struct count_set *set)
{
	for (size_t i = 1; i < set->events.len; i++)
		if (set->events.data[i].user_group >= 0 &&
		    set->events.data[i].user_group == set->events.data[i - 1].user_group)
			set->events.data[i].weak |= set->events.data[i - 1].weak;
}

int stat_add_event_texts(struct stat_job *job, const char *const *texts, size_t count,
			 struct err *err)
{
	struct event_env_options options = {0};
	struct event_list list = {0};
	struct event_env *env = NULL;
	int r = event_env_new(&options, &env, err);

	for (size_t i = 0; i < count && r == 0; i++) {
		r = events_parse(texts[i], env, &list, err);
		if (r < 0)
			err_wrap(err, r, "--event");
	}
	for (size_t i = 0; i < list.events.len && r == 0; i++)
		r = add_parsed(job, &list.events.data[i]);
	spread_weak(&job->set);
	event_list_fini(&list);
	event_env_free(env);
	return r;
}
