/* The rows of culprit list, source by source. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "cmd/list.h"
#include "events/names.h"
#include "events/tracepoint.h"

const char *const list_kind_names[LIST_KINDS] = {
	[LIST_HARDWARE] = "hardware", [LIST_CACHE] = "cache",
	[LIST_SOFTWARE] = "software", [LIST_TOOL] = "tool",
	[LIST_RAW] = "raw",           [LIST_PMU] = "pmu",
	[LIST_FORMAT] = "format",     [LIST_TRACEPOINT] = "tracepoint",
	[LIST_VENDOR] = "vendor",     [LIST_METRIC] = "metric",
	[LIST_GROUP] = "group",
};

void list_fini(struct list *list)
{
	vec_fini(&list->rows);
	arena_fini(&list->arena);
}

void list_note(struct list *list, const char *what, const char *why)
{
	size_t len = strlen(list->notes);

	/* What is too long is cut, and the next note begins in its own line still. */
	if (snprintf(list->notes + len, sizeof(list->notes) - len, "%s: %s\n", what, why) >=
	    (int)(sizeof(list->notes) - len))
		list->notes[sizeof(list->notes) - 2] = '\n';
}

bool list_wanted(const struct list *list, const char *name)
{
	for (unsigned i = 0; i < list->pattern_count; i++) {
		const char *pattern = list->patterns[i];

		if (strpbrk(pattern, "*?[") ? str_glob(pattern, name)
					    : strcasestr(name, pattern) != NULL)
			return true;
	}
	return list->pattern_count == 0;
}

/* NULL stays NULL. */
static int keep(struct list *list, const char **slot)
{
	if (!*slot)
		return 0;
	*slot = arena_strndup(&list->arena, *slot, strlen(*slot));
	return *slot ? 0 : -ENOMEM;
}

int list_add(struct list *list, const struct list_row *row)
{
	struct list_row copy = *row;
	int r = keep(list, &copy.name);

	r = r < 0 ? r : keep(list, &copy.encoding);
	r = r < 0 ? r : keep(list, &copy.description);
	r = r < 0 ? r : keep(list, &copy.counters);
	r = r < 0 ? r : keep(list, &copy.table);
	r = r < 0 ? r : keep(list, &copy.unit);
	r = r < 0 ? r : keep(list, &copy.groups);
	r = r < 0 ? r : keep(list, &copy.needs);
	r = r < 0 ? r : keep(list, &copy.threshold);
	return r < 0 ? r : vec_push(&list->rows, copy);
}

static int add(struct list *list, const struct list_row *row)
{
	return list_wanted(list, row->name) ? list_add(list, row) : 0;
}

/* --- names of the kernel --------------------------------------------------------------------- */

/* The fixed counters of Intel's cores; elsewhere the kernel does not tell. */
static const char *fixed_counter(struct list *list, const struct generic_event *event)
{
	if (event_env_model(list->env)->vendor != CPU_VENDOR_INTEL ||
	    event->kind != EVENT_HARDWARE || list->other_cpu)
		return NULL;
	switch (event->config) {
	case PERF_COUNT_HW_INSTRUCTIONS:
		return "fixed 0, any";
	case PERF_COUNT_HW_CPU_CYCLES:
		return "fixed 1, any";
	case PERF_COUNT_HW_REF_CPU_CYCLES:
		return "fixed 2";
	default:
		return "any";
	}
}

static int collect_generic(struct list *list, enum list_kind kind, enum event_kind wants)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < generic_events_len; i++) {
		const struct generic_event *event = &generic_events[i];
		char encoding[64], description[256];
		struct list_row row = {
			.kind = kind,
			.name = event->name,
			.counters = fixed_counter(list, event),
			.description = event->description,
		};

		if (event->kind != wants)
			continue;
		if (wants != EVENT_TOOL) {
			snprintf(encoding, sizeof(encoding), "type=%u config=0x%" PRIx64,
				 event->type, event->config);
			row.encoding = encoding;
		}
		r = add(list, &row);
		if (r < 0 || !event->alias)
			continue;
		snprintf(description, sizeof(description), "Another name of %s.", event->name);
		row.name = event->alias;
		row.description = description;
		r = add(list, &row);
	}
	return r;
}

static int collect_cache(struct list *list)
{
	char name[64], encoding[64];
	uint64_t config;
	int r = 0;

	for (unsigned i = 0; r == 0 && cache_event_get(i, name, sizeof(name), &config); i++) {
		struct str text = {0};
		struct list_row row = {.kind = LIST_CACHE, .name = name, .encoding = encoding};

		snprintf(encoding, sizeof(encoding), "type=%d config=0x%" PRIx64,
			 PERF_TYPE_HW_CACHE, config);
		cache_event_describe(config, &text);
		row.description = str_text(&text);
		r = add(list, &row);
		str_fini(&text);
	}
	return r;
}

static int collect_raw(struct list *list)
{
	static const struct list_row rows[] = {
		{.kind = LIST_RAW,
		 .name = "rNNN",
		 .encoding = "type=4 config=0xNNN",
		 .description = "The core PMU's own code, hexadecimal: r1a8."},
		{.kind = LIST_RAW,
		 .name = "TYPE:CONFIG",
		 .encoding = "type=TYPE config=CONFIG",
		 .description = "Two numbers as in perf_event_attr: 4:0x3c."},
		{.kind = LIST_RAW,
		 .name = "PMU/TERM=VALUE,.../",
		 .description = "Fields of a PMU ('culprit list format' shows them): "
				"cpu/event=0xd1,umask=0x08/."},
		{.kind = LIST_RAW,
		 .name = "mem:ADDRESS[/LENGTH][:rwx]",
		 .encoding = "type=5",
		 .description =
			 "Accesses to an address, by a hardware breakpoint: mem:0x1000/8:w."},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rows); i++)
		r = add(list, &rows[i]);
	return r;
}

/* --- PMUs ------------------------------------------------------------------------------------ */

/* Bytes of a PMU's name without the number of its instance: "uncore_imc_3" is 10. */
static size_t stem_length(const char *name)
{
	const char *at = strrchr(name, '_');

	return at && at[1] && at[1 + strspn(at + 1, "0123456789")] == '\0' ? (size_t)(at - name)
									   : strlen(name);
}

static bool same_stem(const char *a, const char *b)
{
	size_t len = stem_length(a);

	return len == stem_length(b) && memcmp(a, b, len) == 0;
}

static void mask_text(const struct pmu_format *format, struct str *out)
{
	const char *before = ":";

	str_puts(out, "config");
	if (format->word)
		str_printf(out, "%u", format->word);
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned last = bit;

		if (!(format->mask >> bit & 1))
			continue;
		while (last < 63 && format->mask >> (last + 1) & 1)
			last++;
		str_printf(out, last > bit ? "%s%u-%u" : "%s%u", before, bit, last);
		before = ",";
		bit = last;
	}
}

/* Adds a row of these texts, and frees them. */
static int add_texts(struct list *list, enum list_kind kind, struct str *name, struct str *encoding,
		     struct str *text)
{
	struct list_row row = {.kind = kind,
			       .name = str_text(name),
			       .encoding = str_text(encoding),
			       .description = str_text(text)};
	int r = add(list, &row);

	str_fini(name);
	str_fini(encoding);
	str_fini(text);
	return r;
}

static int add_format(struct list *list, const char *stem, const struct pmu_format *format)
{
	struct str name = {0}, encoding = {0}, text = {0};

	str_printf(&name, "%s/%s=/", stem, format->name);
	mask_text(format, &encoding);
	str_printf(&text, "A field of %s: 0 to 0x%" PRIx64 ".", stem, pmu_format_max(format->mask));
	return add_texts(list, LIST_FORMAT, &name, &encoding, &text);
}

static int add_alias(struct list *list, const char *stem, const struct pmu *pmu, unsigned instances,
		     const struct pmu_alias *alias)
{
	struct str name = {0}, encoding = {0}, text = {0};

	str_printf(&name, "%s/%s/", stem, alias->name);
	str_printf(&encoding, "%s/%s/", stem, alias->terms);
	str_printf(&text, "%s of the PMU %s", alias->name, stem);
	if (alias->unit[0])
		str_printf(&text, ", in %s", alias->unit);
	if (alias->scale != 1)
		str_printf(&text, ", scale %.9g", alias->scale);
	if (instances > 1)
		str_printf(&text, ", summed over %u instances", instances);
	if (pmu->uncore)
		str_puts(&text, ", system-wide only");
	str_putc(&text, '.');
	return add_texts(list, LIST_PMU, &name, &encoding, &text);
}

static int collect_pmu(struct list *list, struct pmu *pmu, unsigned instances, enum list_kind kind,
		       struct err *err)
{
	char stem[128];
	int r = pmu_load(event_env_host(list->env), pmu, err);

	snprintf(stem, sizeof(stem), "%.*s",
		 (int)(instances > 1 ? stem_length(pmu->name) : strlen(pmu->name)), pmu->name);
	if (kind == LIST_PMU)
		for (size_t i = 0; r == 0 && i < pmu->aliases.len; i++)
			r = add_alias(list, stem, pmu, instances, &pmu->aliases.data[i]);
	else
		for (size_t i = 0; r == 0 && i < pmu->formats.len; i++)
			r = add_format(list, stem, &pmu->formats.data[i]);
	return r;
}

static int collect_pmus(struct list *list, enum list_kind kind, struct err *err)
{
	struct pmu_set *set;
	int r = event_env_pmus(list->env, &set, err);

	for (size_t i = 0; r == 0 && i < set->pmus.len;) {
		size_t end = i + 1;

		while (end < set->pmus.len &&
		       same_stem(set->pmus.data[i].name, set->pmus.data[end].name))
			end++;
		if (!set->pmus.data[i].assumed)
			r = collect_pmu(list, &set->pmus.data[i], (unsigned)(end - i), kind, err);
		i = end;
	}
	return r;
}

/* --- tracepoints and vendor names ------------------------------------------------------------ */

static int add_tracepoint(void *arg, const char *system, const char *name)
{
	struct list *list = arg;
	char text[256], encoding[64];
	struct list_row row = {.kind = LIST_TRACEPOINT, .name = text, .encoding = encoding};
	uint64_t id;

	if ((size_t)snprintf(text, sizeof(text), "%s:%s", system, name) >= sizeof(text) ||
	    !list_wanted(list, text) ||
	    tracepoint_id(event_env_host(list->env), system, name, &id, NULL) < 0)
		return 0;
	snprintf(encoding, sizeof(encoding), "type=%d config=0x%" PRIx64, PERF_TYPE_TRACEPOINT, id);
	return add(list, &row);
}

static int add_vendor(void *arg, const struct vendor_event *event)
{
	struct list *list = arg;
	struct str encoding = {0};
	struct list_row row = {
		.kind = LIST_VENDOR,
		.name = event->name,
		.description = event->description[0] ? event->description : NULL,
		.counters = event->counters[0] ? event->counters : NULL,
		.table = event->table,
		.deprecated = event->deprecated,
	};
	int r;

	if (!list_wanted(list, event->name))
		return 0;
	if (event->terms)
		str_printf(&encoding, "%s/%s/", event->pmu[0] ? event->pmu : "cpu", event->terms);
	else if (event->attr)
		event_describe_attr(
			&(struct perf_event_attr){
				.type = event->attr->type,
				.config = event->attr->config,
				.config1 = event->attr->config1,
				.config2 = event->attr->config2,
			},
			&encoding);
	row.encoding = encoding.len ? str_text(&encoding) : NULL;
	r = add(list, &row);
	str_fini(&encoding);
	return r;
}

static int collect_vendor(struct list *list)
{
	struct vendor *vendor;
	struct err why = {0};
	int r = event_env_vendor(list->env, &vendor, &why);

	if (r == 0)
		r = vendor_each(vendor, add_vendor, list, &why);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		list_note(list, "vendor names", err_text(&why, r));
	return 0;
}

/* Which rows the kinds of the parser belong to. */
static enum list_kind kind_of_event(const struct event *event)
{
	switch (event->kind) {
	case EVENT_HARDWARE:
		return LIST_HARDWARE;
	case EVENT_CACHE:
		return LIST_CACHE;
	case EVENT_SOFTWARE:
		return LIST_SOFTWARE;
	case EVENT_TOOL:
		return LIST_TOOL;
	case EVENT_TRACEPOINT:
		return LIST_TRACEPOINT;
	case EVENT_PMU:
		return LIST_PMU;
	case EVENT_VENDOR:
		return LIST_VENDOR;
	case EVENT_RAW:
	case EVENT_BREAKPOINT:
		break;
	}
	return LIST_RAW;
}

/* Where and how it counts, beside the attribute. */
static void event_words(const struct event *event, struct str *out)
{
	if (event->group >= 0)
		str_printf(out, "group %d%s, ", event->group, event->leader ? " (leader)" : "");
	if (event->pmu)
		str_printf(out, "PMU %s, ", event->pmu);
	if (event->cpus) {
		str_puts(out, "CPUs ");
		cpuset_format(event->cpus, out);
		str_puts(out, ", ");
	}
	if (event->unit[0])
		str_printf(out, "in %s, ", event->unit);
	if (event->scale != 1)
		str_printf(out, "scale %.9g, ", event->scale);
	str_puts(out, event->sample_read ? "read with its group, " : "");
	str_puts(out, event->weak ? "the group may be split, " : "");
	str_puts(out, event->max_precise ? "as precise as can be, " : "");
	str_puts(out, event->no_pmu ? "this kernel shows no PMU for it, " : "");
}

int list_explain(struct list *list, const char *text, struct err *err)
{
	struct event_list events = {0};
	int r = events_parse(text, list->env, &events, err);

	for (size_t i = 0; r == 0 && i < events.events.len; i++) {
		const struct event *event = &events.events.data[i];
		struct str encoding = {0}, words = {0};
		struct list_row row = {.kind = kind_of_event(event), .name = event->name};

		event_describe_attr(&event->attr, &encoding);
		event_words(event, &words);
		if (words.len > 2)
			words.data[words.len - 2] = '\0';
		row.encoding = str_text(&encoding);
		row.description = words.len ? str_text(&words) : NULL;
		r = add(list, &row);
		str_fini(&encoding);
		str_fini(&words);
	}
	event_list_fini(&events);
	return r;
}

int list_collect(struct list *list, struct err *err)
{
	struct err why = {0};
	int r = 0;

	for (enum list_kind kind = 0; r == 0 && kind < LIST_KINDS; kind++) {
		if (!(list->kinds >> kind & 1))
			continue;
		switch (kind) {
		case LIST_HARDWARE:
			r = collect_generic(list, kind, EVENT_HARDWARE);
			break;
		case LIST_CACHE:
			r = collect_cache(list);
			break;
		case LIST_SOFTWARE:
			r = collect_generic(list, kind, EVENT_SOFTWARE);
			break;
		case LIST_TOOL:
			r = collect_generic(list, kind, EVENT_TOOL);
			break;
		case LIST_RAW:
			r = collect_raw(list);
			break;
		case LIST_PMU:
		case LIST_FORMAT:
			r = collect_pmus(list, kind, err);
			break;
		case LIST_TRACEPOINT:
			r = tracepoints_each(event_env_host(list->env), "*", "*", add_tracepoint,
					     list, &why);
			if (r < 0 && r != -ENOMEM)
				list_note(list, "tracepoints", err_text(&why, r));
			r = r == -ENOMEM ? r : 0;
			break;
		case LIST_VENDOR:
			r = collect_vendor(list);
			break;
		case LIST_METRIC:
		case LIST_GROUP:
			r = list_collect_metrics(list, kind);
			break;
		case LIST_KINDS:
			break;
		}
	}
	return r == -ENOMEM ? err_set(err, r, "out of memory") : r;
}
