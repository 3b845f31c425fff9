/* From a name without slashes to events: generic, raw, tracepoint, sysfs and vendor names. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "events/parse-internal.h"

int event_add_modified(const struct parser *p, const struct event *base, const char *name,
		       const char *pmu, const char *unit, const char *letters, size_t letters_pos)
{
	int r = event_add(p, base, name, pmu, unit);

	return r < 0 ? r
		     : modifiers_apply(p, letters_pos, letters, false,
				       &p->list->events.data[p->list->events.len - 1]);
}

void event_set_pmu(struct event *event, const struct pmu_set *set, const struct pmu *pmu,
		   struct cpuset *cpus)
{
	event->core = pmu->core;
	event->uncore = pmu->uncore;
	event->partial = pmu->core && set->hybrid;
	event->no_pmu = pmu->assumed;
	event->cpus = NULL;
	if (pmu->has_cpus && (pmu->uncore || event->partial)) {
		*cpus = pmu->cpus;
		event->cpus = cpus;
	}
}

/* One event for each kind of core: the PMU's type stands in the upper half of config. */
static int add_for_cores(const struct parser *p, const struct event *base,
			 const struct name_text *name)
{
	struct pmu_set *set;
	int r = event_env_pmus(p->env, &set, p->err);

	if (r < 0)
		return r;
	if (!set->hybrid) {
		struct event event = *base;

		event.no_pmu = set->pmus.data[0].assumed;
		return event_add_modified(p, &event, name->whole, NULL, NULL, name->letters,
					  name->letters_pos);
	}
	for (size_t i = 0; r == 0 && i < set->core_count; i++) {
		const struct pmu *pmu = &set->pmus.data[i];
		struct event event = *base;
		struct cpuset cpus;
		struct str text = {0};

		event_set_pmu(&event, set, pmu, &cpus);
		if (event.attr.type == PERF_TYPE_RAW)
			event.attr.type = pmu->type;
		else
			event.attr.config |= (uint64_t)pmu->type << 32;
		str_printf(&text, "%s/%s/%s", pmu->name, name->name, name->letters);
		r = str_status(&text) < 0
			    ? -ENOMEM
			    : event_add_modified(p, &event, str_text(&text), pmu->name, NULL,
						 name->letters, name->letters_pos);
		str_fini(&text);
	}
	return r;
}

static bool parse_raw(const char *name, struct event *event)
{
	char *end;

	if (name[0] != 'r' || !isxdigit((unsigned char)name[1]) || strlen(name) > 17)
		return false;
	event->attr.type = PERF_TYPE_RAW;
	event->attr.config = strtoull(name + 1, &end, 16);
	return *end == '\0';
}

/* "type:config", both numbers. */
static bool parse_numeric(const char *name, struct event *event)
{
	unsigned long long type, config;
	char *end;

	if (!isdigit((unsigned char)name[0]))
		return false;
	errno = 0;
	type = strtoull(name, &end, 0);
	if (*end != ':' || type > UINT32_MAX || !isdigit((unsigned char)end[1]))
		return false;
	config = strtoull(end + 1, &end, 0);
	if (*end != '\0' || errno != 0)
		return false;
	event->attr.type = (uint32_t)type;
	event->attr.config = config;
	event->core =
		type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW;
	return true;
}

static bool is_time(const struct generic_event *generic)
{
	return generic->kind == EVENT_TOOL ||
	       (generic->kind == EVENT_SOFTWARE && (generic->config == PERF_COUNT_SW_CPU_CLOCK ||
						    generic->config == PERF_COUNT_SW_TASK_CLOCK));
}

int resolve_generic(const struct parser *p, const struct name_text *name)
{
	const struct generic_event *generic = generic_event_find(name->name);
	struct event event;
	uint64_t config;

	if (generic) {
		event_init(p, generic->kind, &event);
		event.attr.type = generic->type;
		event.attr.config = generic->config;
		if (generic->kind == EVENT_HARDWARE)
			return add_for_cores(p, &event, name);
		if (generic->kind == EVENT_TOOL) {
			event.tool = (enum event_tool)generic->config;
			event.attr.config = PERF_COUNT_SW_DUMMY;
		}
		return event_add_modified(p, &event, name->whole, NULL,
					  is_time(generic) ? "ns" : NULL, name->letters,
					  name->letters_pos);
	}
	if (cache_event_parse(name->name, &config) == 0) {
		event_init(p, EVENT_CACHE, &event);
		event.attr.type = PERF_TYPE_HW_CACHE;
		event.attr.config = config;
		return add_for_cores(p, &event, name);
	}
	event_init(p, EVENT_RAW, &event);
	if (parse_raw(name->name, &event))
		return add_for_cores(p, &event, name);
	if (parse_numeric(name->name, &event))
		return event_add_modified(p, &event, name->whole, NULL, NULL, name->letters,
					  name->letters_pos);
	return -ENOENT;
}

/* --- tracepoints ----------------------------------------------------------------------------- */

struct tracepoint_add {
	const struct parser *p;
	const struct name_text *name;
	bool has_id; /* it was looked up already */
	uint64_t id;
};

static int add_tracepoint(void *arg, const char *system, const char *name)
{
	const struct tracepoint_add *add = arg;
	struct event event;
	struct str text = {0};
	uint64_t id = add->id;
	int r = add->has_id ? 0
			    : tracepoint_id(event_env_host(add->p->env), system, name, &id,
					    add->p->err);

	/* ftrace's own records (ftrace:function) have no number to open. */
	if (r < 0)
		return r == -ENOENT && strpbrk(add->name->name, "*?[") ? 0 : r;
	event_init(add->p, EVENT_TRACEPOINT, &event);
	event.attr.type = PERF_TYPE_TRACEPOINT;
	event.attr.config = id;
	str_printf(&text, "%s:%s%s%s", system, name, add->name->letters[0] ? ":" : "",
		   add->name->letters);
	r = str_status(&text) < 0 ? -ENOMEM
				  : event_add_modified(add->p, &event, str_text(&text), NULL, NULL,
						       add->name->letters, add->name->letters_pos);
	str_fini(&text);
	return r;
}

int resolve_tracepoint(const struct parser *p, const struct name_text *name)
{
	const char *colon = strchr(name->name, ':');
	struct tracepoint_add add = {.p = p, .name = name};
	struct err why = {0};
	CLEANUP_FREE char *system = NULL;
	int r;

	if (!colon || colon == name->name || strchr(colon + 1, ':') || colon[1] == '\0')
		return -ENOENT;
	/* Vendor names are written in capitals: no need to look for those. */
	for (const char *at = name->name; at < colon; at++)
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) &&
		    !strchr("_-*?[].", *at))
			return -ENOENT;
	system = strndup(name->name, (size_t)(colon - name->name));
	if (!system)
		return -ENOMEM;
	if (!strpbrk(name->name, "*?[")) {
		char mount[256];

		add.has_id = true;
		r = tracepoint_id(event_env_host(p->env), system, colon + 1, &add.id, NULL);
		if (r == 0)
			return add_tracepoint(&add, system, colon + 1);
		r = host_tracefs(event_env_host(p->env), mount, sizeof(mount), &why);
		if (r == 0) /* it can be read, and has no such tracepoint */
			return -ENOENT;
	} else {
		r = tracepoints_each(event_env_host(p->env), system, colon + 1, add_tracepoint,
				     &add, &why);
		if (r > 0)
			return 0;
		if (r == 0)
			return err_set(p->err, -ENOENT, "no tracepoint matches");
	}
	/* add_tracepoint() words its own failures. */
	if (why.text[0])
		(void)err_set(p->err, r, "%s", why.text);
	return r == -EACCES ? -ENOENT : r;
}

/* --- names of PMUs in sysfs ------------------------------------------------------------------ */

static bool has_alias(const struct host *host, const struct pmu *pmu, const char *name)
{
	char path[PATH_MAX];

	if (pmu->assumed || strchr(name, '/') || name[0] == '.')
		return false;
	if (pmu->loaded)
		return pmu_alias_find(pmu, name) != NULL;
	return host_path(host, path, sizeof(path), "/sys/bus/event_source/devices/%s/events/%s",
			 pmu->name, name) == 0 &&
	       access(path, F_OK) == 0;
}

static int add_alias(const struct parser *p, struct pmu_set *set, struct pmu *pmu,
		     const struct name_text *name)
{
	struct event event;
	struct cpuset cpus;
	CLEANUP_FREE char *renamed = NULL;
	struct str text = {0};
	int r = pmu_event(p, set, pmu, name->name, name->pos, &event, &cpus, &renamed);

	if (r < 0)
		return r;
	if (event.partial)
		str_printf(&text, "%s/%s/%s", pmu->name, name->name, name->letters);
	else
		str_puts(&text, name->whole);
	r = str_status(&text) < 0
		    ? -ENOMEM
		    : event_add_modified(p, &event, str_text(&text), pmu->name, event.unit,
					 name->letters, name->letters_pos);
	str_fini(&text);
	free(event.unit);
	free(event.callgraph);
	return r;
}

int resolve_sysfs(const struct parser *p, const struct name_text *name)
{
	struct pmu_set *set;
	int added = 0, r = event_env_pmus(p->env, &set, p->err);
	bool core = false;

	for (size_t i = 0; r == 0 && i < set->pmus.len; i++) {
		struct pmu *pmu = &set->pmus.data[i];

		/* A core event hides the same name of PMUs beside the cores. */
		if (core && !pmu->core)
			break;
		if (!has_alias(event_env_host(p->env), pmu, name->name))
			continue;
		core |= pmu->core;
		r = add_alias(p, set, pmu, name);
		added++;
	}
	return r < 0 ? r : added ? 0 : -ENOENT;
}

/* --- vendor names ---------------------------------------------------------------------------- */

/* One entry of the vendor's files on every PMU it belongs to; *added counts them. */
static int add_vendor_terms(const struct parser *p, struct pmu_set *set,
			    const struct vendor_event *found, const struct name_text *name,
			    int *added)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < set->pmus.len; i++) {
		struct pmu *pmu = &set->pmus.data[i];
		struct event event;
		struct cpuset cpus;
		CLEANUP_FREE char *renamed = NULL;
		struct str text = {0};

		if (found->pmu[0] ? !pmu_matches(pmu, found->pmu) : !pmu->core)
			continue;
		r = pmu_load(event_env_host(p->env), pmu, p->err);
		if (r < 0)
			return r;
		event_init(p, EVENT_VENDOR, &event);
		event.attr.type = pmu->type;
		event_set_pmu(&event, set, pmu, &cpus);
		r = pmu_terms_apply(p, pmu, found->terms, SIZE_MAX, found->table, &event, &renamed);
		if (event.partial)
			str_printf(&text, "%s/%s/%s", pmu->name, name->name, name->letters);
		else
			str_puts(&text, name->whole);
		if (r == 0)
			r = str_status(&text);
		if (r == 0)
			r = event_add_modified(p, &event, str_text(&text), pmu->name, event.unit,
					       name->letters, name->letters_pos);
		str_fini(&text);
		free(event.unit);
		++*added;
	}
	return r;
}

static int add_vendor_entries(const struct parser *p, struct vendor *vendor,
			      struct vendor_event *found, const struct name_text *name)
{
	struct pmu_set *set;
	char first[64];
	int added = 0, r = event_env_pmus(p->env, &set, p->err);

	snprintf(first, sizeof(first), "%s", found->pmu);
	do {
		if (r == 0)
			r = add_vendor_terms(p, set, found, name, &added);
	} while (r == 0 && vendor_next(vendor, found));
	if (r == 0 && !added)
		return err_set(p->err, -ENOENT,
			       "it belongs to the PMU '%s', which this machine lacks", first);
	return r;
}

int resolve_vendor(const struct parser *p, const struct name_text *name)
{
	struct vendor *vendor;
	struct vendor_event found;
	struct event event;
	struct pmu_set *set;
	struct err why = {0};
	int r = event_env_vendor(p->env, &vendor, p->err);

	if (r < 0)
		return r;
	r = vendor_find(vendor, name->name, &found, &why);
	if (r < 0) {
		if (why.text[0] && p->err->text[0] == '\0')
			(void)err_set(p->err, r, "%s", why.text);
		return r;
	}
	if (!found.attr)
		return add_vendor_entries(p, vendor, &found, name);
	r = event_env_pmus(p->env, &set, p->err);
	if (r < 0)
		return r;
	event_init(p, EVENT_VENDOR, &event);
	event.attr = *found.attr;
	event.attr.size = sizeof(event.attr);
	event.levels_given =
		event.attr.exclude_user || event.attr.exclude_kernel || event.attr.exclude_hv;
	event.core = event.attr.type == PERF_TYPE_RAW || event.attr.type == PERF_TYPE_HARDWARE;
	event.no_pmu = event.core && set->pmus.data[0].assumed;
	return event_add_modified(p, &event, name->whole, found.pmu[0] ? found.pmu : NULL, NULL,
				  name->letters, name->letters_pos);
}
