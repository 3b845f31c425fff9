/* Events as they are kept: made, copied into a list, freed, given a filter and described. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "events/parse-internal.h"

void event_init(const struct parser *p, enum event_kind kind, struct event *ret)
{
	*ret = (struct event){
		.kind = kind,
		.core = kind == EVENT_HARDWARE || kind == EVENT_CACHE || kind == EVENT_RAW,
		.attr.size = sizeof(struct perf_event_attr),
		.group = p->group,
		.origin = p->origin,
		.scale = 1,
		.inherit = -1,
	};
}

void event_fini(struct event *event)
{
	free(event->name);
	free(event->pmu);
	free(event->cpus);
	free(event->unit);
	free(event->filter);
	free(event->callgraph);
}

static int copy(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

int event_add(const struct parser *p, const struct event *base, const char *name, const char *pmu,
	      const char *unit)
{
	struct event event = *base;
	int r;

	if (p->list->events.len >= EVENTS_MAX)
		return err_set(p->err, -E2BIG, "events: more than %d", EVENTS_MAX);
	event.leader = p->group < 0 || p->list->events.len == 0 ||
		       p->list->events.data[p->list->events.len - 1].group != p->group;
	event.filter = event.callgraph = event.name = event.pmu = event.unit = NULL;
	event.cpus = NULL;
	r = copy(name, &event.name);
	if (r == 0)
		r = copy(pmu, &event.pmu);
	if (r == 0)
		r = copy(unit ? unit : "", &event.unit);
	if (r == 0)
		r = copy(base->callgraph, &event.callgraph);
	if (r == 0 && base->cpus) {
		event.cpus = malloc(sizeof(*event.cpus));
		if (event.cpus)
			*event.cpus = *base->cpus;
		else
			r = -ENOMEM;
	}
	if (r == 0)
		r = vec_push(&p->list->events, event);
	if (r < 0) {
		event_fini(&event);
		return err_set(p->err, r, "events: out of memory");
	}
	return 0;
}

void event_list_cut(struct event_list *list, size_t len)
{
	while (list->events.len > len)
		event_fini(&list->events.data[--list->events.len]);
}

void event_list_fini(struct event_list *list)
{
	event_list_cut(list, 0);
	vec_fini(&list->events);
}

int event_list_add_filter(struct event_list *list, const char *filter, struct err *err)
{
	unsigned origin = list->events.len ? list->events.data[list->events.len - 1].origin : 0;
	bool any = false;

	for (size_t i = list->events.len; i-- > 0 && list->events.data[i].origin == origin;) {
		struct event *event = &list->events.data[i];
		struct str joined = {0};
		char *text;

		if (event->kind != EVENT_TRACEPOINT)
			continue;
		any = true;
		if (event->filter)
			str_printf(&joined, "(%s) && (%s)", event->filter, filter);
		else
			str_puts(&joined, filter);
		if (str_take(&joined, &text) < 0)
			return err_set(err, -ENOMEM, "events: out of memory");
		free(event->filter);
		event->filter = text;
	}
	if (!any)
		return err_set(
			err, -EINVAL,
			"a filter needs a tracepoint before it: -e sched:sched_switch --filter "
			"'prev_pid == 1'");
	return 0;
}

void event_describe_attr(const struct perf_event_attr *attr, struct str *out)
{
	str_printf(out, "type=%u config=0x%" PRIx64, attr->type, (uint64_t)attr->config);
	if (attr->type == PERF_TYPE_BREAKPOINT) {
		str_printf(out, " bp_addr=0x%" PRIx64 " bp_len=%" PRIu64 " bp_type=%u",
			   (uint64_t)attr->bp_addr, (uint64_t)attr->bp_len, attr->bp_type);
	} else {
		if (attr->config1)
			str_printf(out, " config1=0x%" PRIx64, (uint64_t)attr->config1);
		if (attr->config2)
			str_printf(out, " config2=0x%" PRIx64, (uint64_t)attr->config2);
	}
	if (attr->freq)
		str_printf(out, " freq=%" PRIu64, (uint64_t)attr->sample_freq);
	else if (attr->sample_period)
		str_printf(out, " period=%" PRIu64, (uint64_t)attr->sample_period);
	str_puts(out, attr->exclude_user ? " exclude_user" : "");
	str_puts(out, attr->exclude_kernel ? " exclude_kernel" : "");
	str_puts(out, attr->exclude_hv ? " exclude_hv" : "");
	str_puts(out, attr->exclude_idle ? " exclude_idle" : "");
	str_puts(out, attr->exclude_host ? " exclude_host" : "");
	str_puts(out, attr->exclude_guest ? " exclude_guest" : "");
	str_puts(out, attr->pinned ? " pinned" : "");
	str_puts(out, attr->exclusive ? " exclusive" : "");
	if (attr->precise_ip)
		str_printf(out, " precise_ip=%u", attr->precise_ip);
}
