/* "Did you mean": the nearest names of every source that is cheap to ask. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "events/parse-internal.h"

#define SUGGESTIONS 3
#define TEXT_BYTES  96

struct nearest {
	char name[TEXT_BYTES]; /* folded */
	unsigned limit;        /* of the distance */
	struct {
		char text[TEXT_BYTES];
		unsigned distance;
	} best[SUGGESTIONS];
	unsigned count;
};

/* Case and the kind of separator are no differences. */
static void fold(const char *text, char *buf, size_t size)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < size; i++)
		buf[i] = text[i] == ':' ? '.' : (char)tolower((unsigned char)text[i]);
	buf[i] = '\0';
}

static void offer(struct nearest *nearest, const char *text)
{
	char folded[TEXT_BYTES];
	unsigned distance, at;

	if (strlen(text) >= sizeof(nearest->best[0].text))
		return;
	fold(text, folded, sizeof(folded));
	distance = str_distance(nearest->name, folded);
	if (distance > nearest->limit)
		return;
	for (at = 0; at < nearest->count; at++) {
		if (strcasecmp(nearest->best[at].text, text) == 0)
			return;
		if (distance < nearest->best[at].distance)
			break;
	}
	if (at == SUGGESTIONS)
		return;
	if (nearest->count < SUGGESTIONS)
		nearest->count++;
	memmove(&nearest->best[at + 1], &nearest->best[at],
		(nearest->count - at - 1) * sizeof(nearest->best[0]));
	strcpy(nearest->best[at].text, text);
	nearest->best[at].distance = distance;
}

static int offer_tracepoint(void *arg, const char *system, const char *name)
{
	char text[TEXT_BYTES];

	if ((size_t)snprintf(text, sizeof(text), "%s:%s", system, name) < sizeof(text))
		offer(arg, text);
	return 0;
}

static int offer_vendor(void *arg, const struct vendor_event *event)
{
	offer(arg, event->name);
	return 0;
}

static void offer_sysfs(const struct parser *p, struct nearest *nearest)
{
	struct pmu_set *set;

	if (event_env_pmus(p->env, &set, NULL) < 0)
		return;
	for (size_t i = 0; i < set->pmus.len; i++) {
		struct pmu *pmu = &set->pmus.data[i];

		if (pmu_load(event_env_host(p->env), pmu, NULL) < 0)
			continue;
		vec_for_each(&pmu->aliases, alias)
			offer(nearest, alias->name);
	}
}

void suggest_names(const struct parser *p, const char *name, struct str *out)
{
	struct nearest nearest = {.limit = (unsigned)MAX(2, strlen(name) / 3)};
	struct vendor *vendor;
	char text[TEXT_BYTES];
	uint64_t config;

	if (strpbrk(name, "*?["))
		return;
	fold(name, nearest.name, sizeof(nearest.name));
	for (unsigned i = 0; i < generic_events_len; i++) {
		offer(&nearest, generic_events[i].name);
		if (generic_events[i].alias)
			offer(&nearest, generic_events[i].alias);
	}
	for (unsigned i = 0; cache_event_get(i, text, sizeof(text), &config); i++)
		offer(&nearest, text);
	offer_sysfs(p, &nearest);
	if (strchr(name, ':'))
		(void)tracepoints_each(event_env_host(p->env), "*", "*", offer_tracepoint, &nearest,
				       NULL);
	if (event_env_vendor(p->env, &vendor, NULL) == 0)
		(void)vendor_each(vendor, offer_vendor, &nearest, NULL);
	for (unsigned i = 0; i < nearest.count; i++)
		str_printf(out, "%s%s",
			   i == 0                   ? " (did you mean "
			   : i + 1 == nearest.count ? " or "
						    : ", ",
			   nearest.best[i].text);
	if (nearest.count)
		str_puts(out, "?)");
}
