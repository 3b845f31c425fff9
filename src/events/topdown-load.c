/*
 * From metrics to a table: first the nodes, parents before children, then their formulas with names
 * as the evaluation knows them, then what every table has.
 */
#include "events/topdown-load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "events/topdown-load-internal.h"

#define LEVEL_MAX  9
#define MEANS_MAX  240u
#define HEIGHT_MAX 2000u /* of all formulas that are open at once: a megabyte of stack */

static int fail(struct topdown_loaded *l, int r)
{
	return r == -ENOMEM  ? err_set(l->err, r, "out of memory")
	       : r == -E2BIG ? err_set(l->err, r, "%s: more than %d nodes or events",
				       l->metrics->file, TOPDOWN_LOAD_MAX)
			     : r;
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* What a built-in table says about a node of this name, in its own words. */
static const struct topdown_node *known_node(const struct topdown_loaded *l, const char *name)
{
	int node = l->base ? topdown_node_find(l->base, name) : -1;

	if (node >= 0)
		return &l->base->nodes[node];
	for (size_t i = 0; i < topdown_tables_len; i++) {
		node = topdown_node_find(&topdown_tables[i], name);
		if (node >= 0)
			return &topdown_tables[i].nodes[node];
	}
	return NULL;
}

/* The first sentence of the file's description. */
static const char *first_sentence(struct topdown_loaded *l, const char *text)
{
	const char *stop = strstr(text, ". ");
	size_t len = stop ? (size_t)(stop + 1 - text) : strlen(text);

	if (len > MEANS_MAX)
		len = str_utf8_cut(text, MEANS_MAX);
	return loaded_keep(l, text, len);
}

static int describe(struct topdown_loaded *l, const struct metric *metric,
		    struct topdown_node *node)
{
	const struct topdown_node *known = known_node(l, node->name);
	struct str helps = {0};

	if (known && l->metrics->layout == METRIC_PERF) /* "MS_Switches", not "Ms_Switches" */
		node->title = known->title;
	if (known) {
		node->means = known->means;
		node->helps = known->helps;
		return 0;
	}
	node->means =
		metric->description[0] ? first_sentence(l, metric->description) : metric->title;
	if (metric->sample[0])
		str_printf(&helps, "culprit record -e %.*s finds the code responsible.",
			   (int)strcspn(metric->sample, ";, "), metric->sample);
	else
		str_puts(&helps, "--explain shows what it is made of.");
	node->helps = loaded_keep(l, str_text(&helps), helps.len);
	str_fini(&helps);
	return node->means && node->helps ? 0 : -ENOMEM;
}

/* perfmon and Arm say what a share is of; for perf it is what the built-in tables say, else what
 * the description does. */
static enum topdown_unit unit_of(const struct topdown_loaded *l, const struct metric *metric,
				 const struct topdown_node *node)
{
	enum metric_layout layout = l->metrics->layout;
	const struct topdown_node *known = known_node(l, node->name);
	const char *words = layout == METRIC_PERFMON ? metric->domain
			    : layout == METRIC_ARM   ? metric->unit
						     : metric->description;

	if (!metric->percent)
		return TOPDOWN_RATE;
	if (layout == METRIC_PERF && known && known->level == node->level)
		return known->unit;
	if (strcasestr(words, "slots"))
		return TOPDOWN_SLOTS;
	if (strcasestr(words, "cycles") || strcasestr(words, "clocks"))
		return TOPDOWN_CLOCKS;
	if (strcasestr(words, "uops") || strcasestr(words, "operations"))
		return TOPDOWN_UOPS;
	return node->level <= 2 && layout != METRIC_ARM ? TOPDOWN_SLOTS : TOPDOWN_CLOCKS;
}

static int add_node(struct topdown_loaded *l, const struct metric *metric, int parent)
{
	struct topdown_node node = {.parent = parent, .or_node = -1};
	struct str name = {0};
	int r;

	if (l->nodes.len >= TOPDOWN_LOAD_MAX)
		return -E2BIG;
	node.level = parent < 0 ? 1 : l->nodes.data[parent].level + 1;
	node.name = loaded_node_name(l, metric);
	node.title = loaded_node_title(l, metric);
	if (!node.name || !node.title)
		return -ENOMEM;
	node.unit = unit_of(l, metric, &node);
	node.unit_text = loaded_keep(l, metric->unit, strlen(metric->unit));
	if (!node.unit_text)
		return -ENOMEM;
	vec_for_each(&l->nodes, other) /* below several branches: named by the branch too */
		if (parent >= 0 && strcmp(other->name, node.name) == 0 && name.len == 0)
			str_printf(&name, "%s.%s", l->nodes.data[parent].name, node.name);
	if (name.len)
		node.name = loaded_keep(l, str_text(&name), name.len);
	str_fini(&name);
	if (!node.name)
		return -ENOMEM;
	r = describe(l, metric, &node);
	if (r == 0)
		r = vec_push(&l->nodes, node);
	return r < 0 ? r : vec_push(&l->sources, metric);
}

static bool is_ours(const struct topdown_loaded *l, const struct metric *metric)
{
	return metric->pmu[0] == '\0' || strcmp(metric->pmu, l->pmu) == 0;
}

/* Children by the parent that each metric names. */
static int add_children(struct topdown_loaded *l)
{
	for (size_t parent = 0; parent < l->nodes.len; parent++)
		vec_for_each(&l->metrics->list, metric) {
			int r;

			if (metric->parent[0] == '\0' || metric->root || !is_ours(l, metric) ||
			    l->nodes.data[parent].level >= LEVEL_MAX ||
			    loaded_parent(l, metric) != l->sources.data[parent] ||
			    metric == l->sources.data[parent])
				continue;
			r = add_node(l, metric, (int)parent);
			if (r < 0)
				return r;
		}
	return 0;
}

static bool is_above(const struct topdown_loaded *l, int node, const struct metric *metric)
{
	for (; node >= 0; node = l->nodes.data[node].parent)
		if (l->sources.data[node] == metric)
			return true;
	return false;
}

static bool is_below(const struct topdown_loaded *l, int parent, const struct metric *metric)
{
	for (size_t i = 0; i < l->nodes.len; i++)
		if (l->nodes.data[i].parent == parent && l->sources.data[i] == metric)
			return true;
	return false;
}

/* A metric, or every metric of a group, below a node of Arm's decision tree. */
static int add_item(struct topdown_loaded *l, const char *item, int parent)
{
	const struct metric *metric = metrics_find(l->metrics, item, "");
	int r = 0;

	if (metric)
		return is_above(l, parent, metric) || is_below(l, parent, metric)
			       ? 0
			       : add_node(l, metric, parent);
	for (size_t i = 0; i < l->metrics->members.len && r == 0; i++) {
		const struct metric_pair *member = &l->metrics->members.data[i];

		metric = strcmp(member->from, item) == 0 ? metrics_find(l->metrics, member->to, "")
							 : NULL;
		if (metric && !is_above(l, parent, metric) && !is_below(l, parent, metric))
			r = add_node(l, metric, parent);
	}
	return r;
}

static int add_steps(struct topdown_loaded *l, const char *from, int parent)
{
	int r = 0;

	for (size_t i = 0; i < l->metrics->next.len && r == 0; i++)
		if (strcasecmp(l->metrics->next.data[i].from, from) == 0)
			r = add_item(l, l->metrics->next.data[i].to, parent);
	return r;
}

static int add_arm_nodes(struct topdown_loaded *l)
{
	int r = add_steps(l, "", -1);

	if (r == 0 && l->nodes.len == 0)
		r = add_item(l, "Topdown_L1", -1);
	for (size_t i = 0; i < l->nodes.len && r == 0; i++)
		if (l->nodes.data[i].level < LEVEL_MAX)
			r = add_steps(l, l->sources.data[i]->name, (int)i);
	return r;
}

static int add_nodes(struct topdown_loaded *l)
{
	int r = 0;

	if (l->metrics->layout == METRIC_ARM) {
		r = add_arm_nodes(l);
	} else {
		for (size_t i = 0; i < l->metrics->list.len && r == 0; i++) {
			const struct metric *metric = &l->metrics->list.data[i];

			if (metric->root && is_ours(l, metric))
				r = add_node(l, metric, -1);
		}
		if (r == 0)
			r = add_children(l);
	}
	if (r < 0)
		return fail(l, r);
	return l->nodes.len ? 0
			    : err_set(l->err, -ENOENT, "%s: no metric is level 1 of a tree",
				      l->metrics->file);
}

/* --- formulas -------------------------------------------------------------------------------- */

static int rewrite(struct topdown_loaded *l, const struct metric *metric, struct str *out);

static int enter(struct topdown_loaded *l, const struct metric *metric)
{
	struct str way = {0};
	bool loop = false;

	for (unsigned i = 0; i < l->depth; i++)
		loop |= l->path[i] == metric;
	if (!loop && l->depth < ARRAY_LEN(l->path) && l->height + metric->height <= HEIGHT_MAX) {
		l->path[l->depth++] = metric;
		l->height += metric->height;
		return 0;
	}
	for (unsigned i = 0; i < l->depth; i++)
		str_printf(&way, "%s > ", l->path[i]->name);
	err_set(l->err, loop ? -ELOOP : -E2BIG, "%s: %s: %.600s%s", l->metrics->file,
		loop ? "a formula needs itself" : "formulas are nested too deep", str_text(&way),
		metric->name);
	str_fini(&way);
	return loop ? -ELOOP : -E2BIG;
}

/* The name that stands for a metric in other formulas: its let, which is made when it is new. */
static int use_metric(struct topdown_loaded *l, const struct metric *metric, struct str *out)
{
	struct str name = {0}, formula = {0};
	const char *lower = loaded_node_name(l, metric);
	struct topdown_let let = {NULL, NULL};
	int r = lower ? 0 : -ENOMEM;

	str_printf(&name, "value_of.%s", lower ? lower : "");
	vec_for_each(&l->lets, have)
		if (strcmp(have->name, str_text(&name)) == 0)
			let = *have;
	if (r == 0 && !let.name) {
		r = enter(l, metric);
		if (r == 0) {
			r = rewrite(l, metric, &formula);
			l->depth--;
			l->height -= metric->height;
		}
		let.name = r < 0 ? NULL : loaded_keep(l, str_text(&name), name.len);
		let.formula = r < 0 ? NULL : loaded_keep(l, str_text(&formula), formula.len);
		if (r == 0)
			r = let.name && let.formula ? vec_push(&l->lets, let) : -ENOMEM;
	}
	if (r == 0)
		expr_put_name(out, let.name);
	str_fini(&name);
	str_fini(&formula);
	return r;
}

/* How long an instruction takes to retire is nothing that is counted here. Formulas that ask
 * whether it is known (">= 0") then take a constant; others have no value. */
static bool is_latency(const char *text, size_t len)
{
	return len > 15 && strncasecmp(text + len - 15, ":retire_latency", 15) == 0;
}

static bool has_guard(const char *formula)
{
	return strstr(formula, ">=") || strstr(formula, "> =");
}

static int rename_one(void *ctx, const char *text, size_t len, struct str *out)
{
	struct topdown_loaded *l = ctx;
	char plain[256];
	const struct metric *metric;
	const char *event;
	int r;

	if (*text == '#') {
		for (size_t i = 0; i < len; i++)
			str_putc(out,
				 (char)(text[i] | (text[i] >= 'A' && text[i] <= 'Z' ? 32 : 0)));
		l->smt |= len == 7 && l->level == 1 && strncasecmp(text, "#smt_on", 7) == 0;
		return 0;
	}
	if (is_latency(text, len) && has_guard(l->path[l->depth - 1]->formula)) {
		str_puts(out, "(-1)");
		return 0;
	}
	/* No share depends on how long it was measured: all is per second. */
	if (len == 13 && memcmp(text, "duration_time", 13) == 0 && l->share) {
		str_putc(out, '1');
		return 0;
	}
	if (len >= 7 && strncmp(text, "msr@tsc", 7) == 0 && l->share) {
		str_puts(out, "#system_tsc_freq");
		return 0;
	}
	snprintf(plain, sizeof(plain), "%.*s", (int)MIN(len, sizeof(plain) - 1), text);
	metric = metrics_find(l->metrics, plain, l->pmu);
	if (metric && metric != l->path[l->depth - 1]) /* of its own name: the event */
		return use_metric(l, metric, out);
	event = loaded_event(l, text, len, &r);
	if (!event)
		return r;
	expr_put_name(out, event);
	return 0;
}

static int rewrite(struct topdown_loaded *l, const struct metric *metric, struct str *out)
{
	return expr_rewrite(metric->formula, rename_one, l, out);
}

/* "100 * ( X )": where X begins, and its length; else NULL. */
static const char *inside_percent(const char *formula, size_t *ret_len)
{
	const char *at = formula + strspn(formula, " ");
	unsigned depth = 1;

	if (strncmp(at, "100", 3) != 0)
		return NULL;
	at += 3 + strspn(at + 3, " ");
	if (*at++ != '*')
		return NULL;
	at += strspn(at, " ");
	if (*at++ != '(')
		return NULL;
	for (const char *end = at; *end; end++) {
		depth += *end == '(';
		depth -= *end == ')';
		if (depth == 0) {
			*ret_len = (size_t)(end - at);
			return end[1 + strspn(end + 1, " ")] == '\0' ? at : NULL;
		}
	}
	return NULL;
}

/* "X * 100" of factors alone: the length of X; else 0. */
static size_t before_percent(const char *formula)
{
	size_t len = strlen(formula);
	unsigned depth = 0;

	while (len > 0 && formula[len - 1] == ' ')
		len--;
	if (len < 6 || strncmp(formula + len - 6, " * 100", 6) != 0)
		return 0;
	for (size_t i = 0; i < len; i++) {
		depth += formula[i] == '(';
		depth -= formula[i] == ')';
		if (depth == 0 && strchr("+-<>&|^%", formula[i]) &&
		    (i == 0 || formula[i - 1] != '\\'))
			return 0;
		if (depth == 0 && strncmp(formula + i, " if ", 4) == 0)
			return 0;
	}
	return len - 6;
}

static int make_formula(struct topdown_loaded *l, size_t index)
{
	const struct metric *metric = l->sources.data[index];
	struct topdown_node *node = &l->nodes.data[index];
	double factor = node->unit == TOPDOWN_RATE ? metric->scale : metric->scale / 100;
	struct str raw = {0}, out = {0};
	const char *inside;
	size_t len;
	int r;

	l->depth = 1;
	l->level = node->level;
	l->share = node->unit != TOPDOWN_RATE;
	l->path[0] = metric;
	l->height = metric->height;
	r = rewrite(l, metric, &raw);
	inside = factor == 0.01 ? inside_percent(str_text(&raw), &len) : NULL;
	if (inside)
		str_append(&out, inside + strspn(inside, " "), len - strspn(inside, " "));
	else if (factor == 0.01 && before_percent(str_text(&raw)) > 0)
		str_append(&out, str_text(&raw), before_percent(str_text(&raw)));
	else if (factor == 1)
		str_puts(&out, str_text(&raw));
	else if (factor < 1)
		str_printf(&out, "(%s) / %.17g", str_text(&raw), 1 / factor);
	else
		str_printf(&out, "(%s) * %.17g", str_text(&raw), factor);
	while (out.len > 0 && out.data[out.len - 1] == ' ')
		out.data[--out.len] = '\0';
	if (r == 0)
		node->formula = loaded_keep(l, str_text(&out), out.len);
	if (r == 0 && !node->formula)
		r = -ENOMEM;
	str_fini(&raw);
	str_fini(&out);
	if (r == 0)
		loaded_threshold(l, metric, metric->scale / 100, node);
	return r;
}

/* --- the table ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum topdown_vendor vendor_of(const struct topdown_loaded *l)
{
	if (l->metrics->layout == METRIC_ARM)
		return TOPDOWN_ARM;
	if (l->base)
		return l->base->vendor;
	vec_for_each(&l->metrics->list, metric)
		if (strcasestr(metric->formula, "ls_not_halted_cyc") ||
		    strcasestr(metric->formula, "ex_ret_ops"))
			return TOPDOWN_AMD;
		else if (strstr(metric->formula, "STALL_SLOT") ||
			 strcasestr(metric->formula, "stall_backend"))
			return TOPDOWN_ARM;
	return TOPDOWN_INTEL;
}

static int name_table(struct topdown_loaded *l)
{
	static const char *const vendors[] = {"Intel", "AMD", "Arm"};
	struct topdown_table *table = &l->table;
	struct str set = {0};

	str_printf(&set, "%s%s%s (%s)", vendors[table->vendor], l->metrics->version[0] ? " " : "",
		   l->metrics->version, l->metrics->file);
	table->set = loaded_keep(l, str_text(&set), set.len);
	str_fini(&set);
	table->width = l->base ? l->base->width : l->metrics->slots;
	table->pmu = l->pmu[0]                      ? l->pmu
		     : l->base                      ? l->base->pmu
		     : table->vendor == TOPDOWN_ARM ? "armv8_pmuv3_0"
						    : "cpu";
	table->own_thresholds = table->vendor == TOPDOWN_ARM;
	return table->set ? 0 : -ENOMEM;
}

static void finish(struct topdown_loaded *l)
{
	struct topdown_table *table = &l->table;

	qsort(l->events.data, l->events.len, sizeof(*l->events.data), by_name);
	table->percore = l->smt && table->vendor == TOPDOWN_INTEL;
	table->events = l->events.data;
	table->event_count = l->events.len;
	table->aliases = l->aliases.data;
	table->alias_count = l->aliases.len;
	table->lets = l->lets.data;
	table->let_count = l->lets.len;
	table->nodes = l->nodes.data;
	table->node_count = l->nodes.len;
}

int topdown_load(const struct metrics *metrics, const char *cpu, struct topdown_loaded **ret,
		 struct err *err)
{
	struct topdown_loaded *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(err, -ENOMEM, "out of memory");
	l->metrics = metrics;
	l->base = cpu ? topdown_table_find(cpu) : NULL;
	l->err = err;
	l->pmu = "";
	vec_for_each(&metrics->list, metric) /* a hybrid's file: the cores that are meant */
		if (str_prefix(metric->pmu, "cpu_", NULL))
			l->pmu = l->base && strcmp(l->base->pmu, "cpu_atom") == 0 ? "cpu_atom"
										  : "cpu_core";
	l->table.vendor = vendor_of(l);
	l->table.cpus = loaded_keep(l, cpu ? cpu : "", cpu ? strlen(cpu) : 0);
	r = l->table.cpus ? name_table(l) : -ENOMEM;
	if (r < 0)
		fail(l, r);
	else
		r = add_nodes(l);
	for (size_t i = 0; i < l->nodes.len && r == 0; i++)
		r = fail(l, make_formula(l, i));
	if (r == 0)
		r = fail(l, loaded_common(l));
	if (r < 0) {
		topdown_loaded_free(l);
		return r;
	}
	finish(l);
	l->err = NULL;
	l->metrics = NULL;
	*ret = l;
	return 0;
}

void topdown_loaded_free(struct topdown_loaded *l)
{
	if (!l)
		return;
	vec_fini(&l->events);
	vec_fini(&l->aliases);
	vec_fini(&l->lets);
	vec_fini(&l->nodes);
	vec_fini(&l->sources);
	arena_fini(&l->arena);
	free(l);
}

const struct topdown_table *topdown_loaded_table(const struct topdown_loaded *l)
{
	return &l->table;
}
