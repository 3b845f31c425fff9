/* Names, encodings and thresholds of a table that is made at run time. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "events/topdown-internal.h"
#include "events/topdown-load-internal.h"

const char *loaded_keep(struct topdown_loaded *l, const char *text, size_t len)
{
	return arena_strndup(&l->arena, text, len);
}

const char *loaded_node_name(struct topdown_loaded *l, const struct metric *metric)
{
	const char *name = metric->name;
	char *copy;

	if (strncasecmp(name, "tma_", 4) == 0)
		name += 4;
	copy = arena_strndup(&l->arena, name, strlen(name));
	for (char *c = copy; c && *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
	return copy;
}

const char *loaded_node_title(struct topdown_loaded *l, const struct metric *metric)
{
	const char *name = loaded_node_name(l, metric);
	char *copy = name ? arena_strndup(&l->arena, name, strlen(name)) : NULL;

	if (l->metrics->layout == METRIC_PERFMON)
		return loaded_keep(l, metric->name, strlen(metric->name));
	if (l->metrics->layout == METRIC_ARM) {
		copy = arena_strndup(&l->arena, metric->title, strlen(metric->title));
		for (char *c = copy; c && *c; c++)
			*c = *c == ' ' ? '_' : *c;
		return copy;
	}
	for (char *c = copy; c && *c; c++)
		if (c == copy || c[-1] == '_')
			*c = (char)toupper((unsigned char)*c);
	return copy;
}

/* --- events ---------------------------------------------------------------------------------- */

/* The names of PERF_METRICS and slots are the same on every core that has them. */
static const struct topdown_table *known_names(const struct topdown_loaded *l, const char *name)
{
	bool metrics = str_prefix(name, "perf_metrics.", NULL) ||
		       str_prefix(name, "topdown.slots", NULL) ||
		       str_prefix(name, "topdown-", NULL) || strcmp(name, "slots") == 0;

	return l->base ? l->base : metrics ? topdown_table_find("spr") : NULL;
}

/* Encoded by the file itself, or as the built-in table has it. */
static void encode(struct topdown_loaded *l, struct topdown_event *event,
		   const struct topdown_table *known, int index)
{
	event->no_code = true;
	vec_for_each(&l->metrics->codes, code)
		if (strcasecmp(code->name, event->name) == 0) {
			event->config = code->code;
			event->no_code = false;
			return;
		}
	if (index >= 0) {
		event->config = known->events[index].config;
		event->config1 = known->events[index].config1;
		event->no_code = false;
	}
}

const char *loaded_event(struct topdown_loaded *l, const char *text, size_t len, int *ret_error)
{
	char plain[256], name[256];
	struct topdown_event event = {.name = name};
	const struct topdown_table *known;
	unsigned factor = 1;
	size_t at = 0;
	int index;

	*ret_error = -E2BIG;
	for (size_t i = 0; i < len && at + 1 < sizeof(plain); i++)
		if (text[i] != '\\')
			plain[at++] = text[i] == '@' ? '/' : text[i];
	plain[at] = '\0';
	if (len >= sizeof(plain))
		return NULL;
	topdown_event_canonical(plain, name, sizeof(name));
	known = known_names(l, name);
	index = known ? topdown_event_match(known, name, &factor) : -1;
	if (index >= 0 && factor == 1)
		snprintf(name, sizeof(name), "%s", known->events[index].name);
	vec_for_each(&l->events, have)
		if (strcmp(have->name, name) == 0)
			return have->name;
	if (l->events.len >= TOPDOWN_LOAD_MAX)
		return NULL;
	*ret_error = -ENOMEM;
	encode(l, &event, known, factor == 1 ? index : -1);
	event.name = loaded_keep(l, name, strlen(name));
	event.title = loaded_keep(l, plain, strlen(plain));
	if (!event.name || !event.title || vec_push(&l->events, event) < 0)
		return NULL;
	return event.name;
}

unsigned topdown_loaded_encode(struct topdown_loaded *l, struct event_env *env)
{
	unsigned missing = 0;

	vec_for_each(&l->events, event) {
		struct event_list list = {0};
		struct err err;
		char text[512];

		if (!event->no_code)
			continue;
		if (topdown_event_perf_text(event->title, l->table.pmu, text, sizeof(text)) == 0 &&
		    events_parse(text, env, &list, &err) == 0 && list.events.len > 0 &&
		    list.events.data[0].core) {
			event->config = list.events.data[0].attr.config;
			event->config1 = list.events.data[0].attr.config1;
			event->no_code = false;
		}
		missing += event->no_code;
		event_list_fini(&list);
	}
	return missing;
}

/* --- thresholds ------------------------------------------------------------------------------ */

struct comparison {
	char name[128];
	double number;
	char joined; /* '&', '|' in front of it; 0: first */
};

/* The next "NAME > NUMBER" of a condition; false: there is none. */
static bool next_comparison(const char **at, struct comparison *ret)
{
	char joined = 0;

	while (**at) {
		size_t len = expr_name_length(*at);
		const char *behind = *at + len;
		char *end;

		if (**at == '&' || **at == '|')
			joined = **at;
		if (len == 0) {
			(*at)++;
			continue;
		}
		*at = behind;
		behind += strspn(behind, " )");
		if (*behind != '>' || len >= sizeof(ret->name))
			continue;
		ret->number = strtod(behind + 1, &end);
		if (end == behind + 1)
			continue;
		memcpy(ret->name, *at - len, len);
		ret->name[len] = '\0';
		if (ret->name[0] == '\\')
			memmove(ret->name, ret->name + 1, len);
		ret->joined = joined;
		*at = end;
		return true;
	}
	return false;
}

const struct metric *loaded_parent(const struct topdown_loaded *l, const struct metric *metric)
{
	const struct metric *parent = metrics_find(l->metrics, metric->parent, l->pmu);
	const char *at = metric->threshold;
	struct comparison c;

	if (!parent || l->metrics->layout != METRIC_PERFMON || parent->level + 1 == metric->level)
		return parent;
	while (next_comparison(&at, &c)) {
		const struct metric *other = metrics_find(l->metrics, c.name, l->pmu);

		if (c.joined == '&' && other && other->level + 1 == metric->level)
			return other;
	}
	return parent;
}

static int node_of(const struct topdown_loaded *l, const struct metric *metric)
{
	for (size_t i = 0; metric && i < l->sources.len; i++)
		if (l->sources.data[i] == metric)
			return (int)i;
	return -1;
}

/* perfmon's core tables count in percent, its E-core tables in fractions: no threshold of theirs
 * is below 1%. */
static double fraction(const struct topdown_loaded *l, const struct metric *metric, double number,
		       double factor)
{
	if (l->metrics->layout == METRIC_PERFMON && metric->percent)
		return number >= 1 ? number / 100 : number;
	return number * factor;
}

/* Level 1 of a vendor that publishes none: those of a built-in table. */
static double our_threshold(const char *name)
{
	const struct topdown_table *table = topdown_table_find("v2");
	int node = topdown_node_find(table, name);

	if (strcmp(name, "frontend_stalled_cycles") == 0)
		node = topdown_node_find(table, "frontend_stalled");
	if (strcmp(name, "backend_stalled_cycles") == 0)
		node = topdown_node_find(table, "backend_stalled");
	return node >= 0 ? table->nodes[node].over : NAN;
}

void loaded_threshold(struct topdown_loaded *l, const struct metric *metric, double factor,
		      struct topdown_node *node)
{
	const char *at = metric->threshold;
	struct comparison c;

	node->over = NAN;
	node->or_node = -1;
	if (node->unit == TOPDOWN_RATE)
		return;
	while (next_comparison(&at, &c)) {
		const struct metric *other = metrics_find(l->metrics, c.name, l->pmu);

		if (other == metric && isnan(node->over)) {
			node->over = fraction(l, metric, c.number, factor);
		} else if (c.joined == '|' && node->or_node < 0 && node_of(l, other) >= 0) {
			node->or_node = node_of(l, other);
			node->or_over = fraction(l, other, c.number, factor);
		} else if (c.joined == '&') {
			node->with_parent = true;
		}
	}
	if (metric->threshold[0] == '\0' && node->level == 1)
		node->over = our_threshold(node->name);
}

/* --- what every table has -------------------------------------------------------------------- */

static bool has_event(const struct topdown_loaded *l, const char *name)
{
	vec_for_each(&l->events, event)
		if (strcmp(event->name, name) == 0)
			return true;
	return false;
}

static int add_let(struct topdown_loaded *l, const char *name, const char *formula)
{
	struct topdown_let let = {name, loaded_keep(l, formula, strlen(formula))};

	return let.formula ? vec_push(&l->lets, let) : -ENOMEM;
}

/* A let for the first of these events that the table has, else for the vendor's own. */
static int add_first(struct topdown_loaded *l, const char *let, const char *const *names,
		     const char *vendors_own)
{
	struct str formula = {0};
	const char *name = NULL;
	int r = 0;

	for (size_t i = 0; names[i] && !name; i++)
		if (has_event(l, names[i]))
			name = names[i];
	if (!name)
		name = loaded_event(l, vendors_own, strlen(vendors_own), &r);
	if (!name)
		return r;
	expr_put_name(&formula, name);
	r = add_let(l, let, str_text(&formula));
	str_fini(&formula);
	return r;
}

/* Other names of the events it has, as the built-in table knows them. */
static int add_aliases(struct topdown_loaded *l)
{
	const struct topdown_table *from = l->base;
	int r = 0;

	if (!from && has_event(l, "slots"))
		from = topdown_table_find("spr");
	for (size_t i = 0; from && i < from->alias_count && r == 0; i++)
		if (has_event(l, from->aliases[i].event) && !has_event(l, from->aliases[i].name))
			r = vec_push(&l->aliases, from->aliases[i]);
	return r;
}

int loaded_common(struct topdown_loaded *l)
{
	static const char *const cycles[] = {"cpu_clk_unhalted.thread",
					     "cpu_clk_unhalted.core",
					     "cpu_clk_unhalted.core_p",
					     "ls_not_halted_cyc",
					     "cpu_cycles",
					     "cycles",
					     "cpu-cycles",
					     NULL};
	static const char *const instructions[] = {"inst_retired.any", "ex_ret_instr",
						   "inst_retired", "instructions", NULL};
	static const char *const own[][2] = {
		[TOPDOWN_INTEL] = {"cpu_clk_unhalted.thread", "inst_retired.any"},
		[TOPDOWN_AMD] = {"ls_not_halted_cyc", "ex_ret_instr"},
		[TOPDOWN_ARM] = {"cpu_cycles", "inst_retired"}};
	bool metrics = has_event(l, "topdown-retiring") && has_event(l, "topdown-bad-spec") &&
		       has_event(l, "topdown-fe-bound") && has_event(l, "topdown-be-bound");
	int r = add_first(l, "CYCLES", cycles, own[l->table.vendor][0]);

	if (r == 0)
		r = add_first(l, "INSTRUCTIONS", instructions, own[l->table.vendor][1]);
	if (r == 0 && metrics)
		r = add_let(l, "S4",
			    "topdown\\-retiring + topdown\\-bad\\-spec + topdown\\-fe\\-bound + "
			    "topdown\\-be\\-bound");
	if (r == 0 && metrics)
		r = add_first(l, "SLOTS", (const char *const[]){"slots", NULL}, "slots");
	return r < 0 ? r : add_aliases(l);
}
