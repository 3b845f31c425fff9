/* The text of -e into events of the set: the events module knows the names, this knows what
 * competes for counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cmd/stat-formula.h"
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

static int add_parsed(struct stat_job *job, const struct event *event, int user_group)
{
	struct count_event added = {
		.name = event->name,
		.unit = event->unit,
		.attr = event->attr,
		.kind = kind_of(event),
		.scale = event->scale > 0 ? event->scale : 1,
		.user_group = user_group,
		.weak = event->weak,
		.partial = event->partial,
		.cpus = event->uncore || event->partial ? event->cpus : NULL,
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

/* A field of Intel's PERF_METRICS: it counts in the group of slots and nowhere else. */
static bool is_perf_metric(const struct event *event)
{
	return event->core && (event->attr.config & 0xff) == 0 && event->attr.config >= 0x8000 &&
	       event->attr.config <= 0x8700 && strstr(event->name, "topdown-") != NULL;
}

/* Those that stand alone get slots before them and one group for all. */
static int add_with_slots(struct stat_job *job, const struct event *event, struct event_env *env,
			  int group, bool *have_slots)
{
	struct event_list slots = {0};
	int r = *have_slots ? 0 : events_parse("slots", env, &slots, NULL);

	for (size_t i = 0; i < slots.events.len && r == 0; i++)
		if (slots.events.data[i].attr.type == event->attr.type)
			r = add_parsed(job, &slots.events.data[i], group);
	event_list_fini(&slots);
	if (r == -ENOMEM)
		return r;
	*have_slots = true;
	return add_parsed(job, event, group);
}

static int add_list(struct stat_job *job, const struct event_list *list, struct event_env *env)
{
	int base = 0, r = 0;
	bool have_slots = false;

	vec_for_each(&job->set.events, event)
		base = MAX(base, event->user_group + 1);
	for (size_t i = 0; i < list->events.len && r == 0; i++) {
		const struct event *event = &list->events.data[i];

		if (event->group < 0 && is_perf_metric(event))
			r = add_with_slots(job, event, env, base + list->groups, &have_slots);
		else
			r = add_parsed(job, event, event->group < 0 ? -1 : base + event->group);
	}
	spread_weak(&job->set);
	return r;
}

int stat_add_event_texts(struct stat_job *job, const char *const *texts, size_t count,
			 struct err *err)
{
	struct event_list list = {0};
	struct event_env *env = NULL;
	int r = stat_env(job, &env, err);

	for (size_t i = 0; i < count && r == 0; i++) {
		r = events_parse(texts[i], env, &list, err);
		if (r < 0)
			err_wrap(err, r, "--event");
	}
	if (r == 0)
		r = add_list(job, &list, env);
	event_list_fini(&list);
	return r;
}

/* Where the same events stand in the set already, one behind the other; -1 nowhere. */
static long find_events(const struct stat_job *job, const struct event_list *list)
{
	for (size_t at = 0; at + list->events.len <= stat_events(job); at++) {
		size_t same = 0;

		while (same < list->events.len && !job->set.events.data[at + same].internal &&
		       memcmp(&job->set.events.data[at + same].attr, &list->events.data[same].attr,
			      sizeof(struct perf_event_attr)) == 0)
			same++;
		if (same == list->events.len)
			return (long)at;
	}
	return -1;
}

int stat_need_text(struct stat_job *job, const char *text, size_t *ret_first, size_t *ret_count,
		   struct err *err)
{
	struct event_list list = {0};
	struct event_env *env = NULL;
	int r = stat_env(job, &env, err);
	long at;

	if (r == 0)
		r = events_parse(text, env, &list, err);
	if (r == 0) {
		*ret_count = list.events.len;
		at = find_events(job, &list);
		if (at < 0)
			r = add_list(job, &list, env);
		/* Slots may have come before them. */
		*ret_first = at >= 0 ? (size_t)at : stat_events(job) - list.events.len;
	}
	event_list_fini(&list);
	return r;
}
