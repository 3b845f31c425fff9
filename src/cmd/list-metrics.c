/* The metrics and groups of metrics of culprit list. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "cmd/list.h"
#include "events/builtin-metrics.h"
#include "events/expr.h"

/* Names as they are written everywhere else. */
static int plain_name(void *ctx, const char *name, size_t len, struct str *out)
{
	(void)ctx;
	for (size_t i = 0; i < len; i++)
		if (name[i] != '\\')
			str_putc(out, name[i] == '@' ? '/' : name[i]);
	return 0;
}

struct needs {
	struct str text; /* "instructions, cycles" */
	VEC(char *) names;
	bool failed;
};

static void add_need(void *ctx, const char *name)
{
	struct needs *needs = ctx;
	char *copy;

	vec_for_each(&needs->names, seen)
		if (strcmp(*seen, name) == 0)
			return;
	copy = strdup(name);
	if (!copy || vec_push(&needs->names, copy) < 0) {
		free(copy);
		needs->failed = true;
		return;
	}
	str_printf(&needs->text, "%s%s", needs->text.len ? ", " : "", name);
}

/* Arm's groups stand beside the metrics. */
static void put_groups(const struct metrics *metrics, const struct metric *metric, struct str *out)
{
	str_puts(out, metric->groups);
	for (size_t i = 0; i < metrics->members.len; i++)
		if (strcasecmp(metrics->members.data[i].to, metric->name) == 0)
			str_printf(out, "%s%s", out->len ? ";" : "", metrics->members.data[i].from);
}

static int add_metric(struct list *list, const struct metrics *metrics, const struct metric *metric,
		      const char *table)
{
	const char *what = metric->description[0] ? metric->description : metric->title;
	struct list_row row = {
		.kind = LIST_METRIC,
		.name = metric->name,
		.description = what[0] ? what : NULL,
		.table = table,
		.unit = metric->unit[0] ? metric->unit : NULL,
		.threshold = metric->threshold[0] ? metric->threshold : NULL,
	};
	struct str formula = {0}, groups = {0};
	struct needs needs = {0};
	struct expr *expr = NULL;
	int r = expr_parse(metric->formula, &expr, NULL);

	if (r == 0) {
		r = expr_rewrite(metric->formula, plain_name, NULL, &formula);
		put_groups(metrics, metric, &groups);
		if (metric->scale != 1)
			str_printf(&formula, ", times %g", metric->scale);
		expr_names(expr, add_need, &needs);
		row.encoding = str_text(&formula);
		row.groups = groups.len ? str_text(&groups) : NULL;
		row.needs = needs.text.len ? str_text(&needs.text) : NULL;
		r = needs.failed || r < 0 ? -ENOMEM : list_add(list, &row);
	}
	expr_free(expr);
	str_fini(&formula);
	str_fini(&groups);
	str_fini(&needs.text);
	vec_for_each(&needs.names, name)
		free(*name);
	vec_fini(&needs.names);
	return r;
}

static bool matches(const struct list *list, const struct metrics *metrics,
		    const struct metric *metric)
{
	for (unsigned i = 0; i < list->pattern_count; i++)
		if (metric_in_group(metrics, metric, list->patterns[i]))
			return true;
	return list_wanted(list, metric->name);
}

struct group {
	const char *name;
	size_t len;
	unsigned count;
	const char *table;
	struct str members;
};

struct groups {
	VEC(struct group) list;
};

static int add_to_group(struct groups *groups, const char *name, size_t len, const char *member,
			const char *table)
{
	struct group *at = NULL;

	vec_for_each(&groups->list, group)
		if (group->len == len && strncasecmp(group->name, name, len) == 0)
			at = group;
	if (!at) {
		if (vec_push(&groups->list,
			     ((struct group){.name = name, .len = len, .table = table})) < 0)
			return -ENOMEM;
		at = &groups->list.data[groups->list.len - 1];
	}
	str_printf(&at->members, "%s%s", at->count++ ? ", " : "", member);
	return 0;
}

static int add_groups_of(struct groups *groups, const struct metric *metric, const char *table)
{
	int r = 0;

	for (const char *at = metric->groups; *at && r == 0;) {
		size_t len = strcspn(at, ";");

		if (len > 0)
			r = add_to_group(groups, at, len, metric->name, table);
		at += len + (at[len] == ';');
	}
	return r;
}

static int add_groups(struct list *list, const struct metrics *metrics)
{
	struct groups groups = {0};
	int r = 0;

	for (size_t i = 0; i < metrics->list.len && r == 0; i++)
		r = add_groups_of(&groups, &metrics->list.data[i], metrics->file);
	for (size_t i = 0; i < metrics->members.len && r == 0; i++)
		r = add_to_group(&groups, metrics->members.data[i].from,
				 strlen(metrics->members.data[i].from), metrics->members.data[i].to,
				 metrics->file);
	for (size_t i = 0; i < builtin_metrics_len && r == 0 && !list->other_cpu; i++)
		r = add_groups_of(&groups, &builtin_metrics[i].metric, "culprit");
	vec_for_each(&groups.list, group) {
		struct str name = {0}, text = {0};
		struct list_row row = {.kind = LIST_GROUP, .table = group->table};

		str_append(&name, group->name, group->len);
		str_printf(&text, "%u metric%s: %s", group->count, group->count == 1 ? "" : "s",
			   str_text(&group->members));
		row.name = str_text(&name);
		row.description = str_text(&text);
		row.needs = str_text(&group->members);
		if (r == 0 && list_wanted(list, row.name))
			r = list_add(list, &row);
		str_fini(&name);
		str_fini(&text);
		str_fini(&group->members);
	}
	vec_fini(&groups.list);
	return r;
}

int list_collect_metrics(struct list *list, enum list_kind kind)
{
	static const struct metrics none;
	const struct metrics *metrics = &none;
	struct err why = {0};
	int r = event_env_metrics(list->env, &metrics, &why);

	if (r == -ENOMEM)
		return r;
	if (r < 0 && kind == LIST_METRIC)
		list_note(list, "metrics", err_text(&why, r));
	r = 0;
	if (kind == LIST_GROUP)
		return add_groups(list, metrics);
	if (metrics->problems.len)
		list_note(list, "metrics passed over", str_text(&metrics->problems));
	for (size_t i = 0; i < metrics->list.len && r == 0; i++)
		if (matches(list, metrics, &metrics->list.data[i]))
			r = add_metric(list, metrics, &metrics->list.data[i], metrics->file);
	for (size_t i = 0; i < builtin_metrics_len && r == 0 && !list->other_cpu; i++)
		if (matches(list, metrics, &builtin_metrics[i].metric))
			r = add_metric(list, metrics, &builtin_metrics[i].metric, "culprit");
	return r;
}
