/*
 * Metrics asked for by name, group, glob or formula: what each is made of. The events of a metric
 * are added to the set and tied into a bundle, so that the plan counts them together. A name in a
 * formula may be another metric; its own names then are parts of the first one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "cmd/stat-formula.h"
#include "events/builtin-metrics.h"
#include "events/parse.h"
#include "events/topdown.h"

#define DEPTH_MAX 20 /* metrics made of metrics */

int stat_env(struct stat_job *job, struct event_env **ret, struct err *err)
{
	struct event_env_options options = {.events_dir = job->options.events_dir};
	int r = job->env ? 0 : event_env_new(&options, &job->env, err);

	*ret = job->env;
	return r;
}

/* --- constants of this machine --------------------------------------------------------------- */

static int parse_name(struct stat_job *job, const char *name, struct event_list *ret,
		      struct err *err)
{
	struct event_env *env;
	char text[512];
	int r = stat_env(job, &env, err);

	if (r == 0 && topdown_event_perf_text(name, "cpu", text, sizeof(text)) < 0)
		r = err_set(err, -ENOTSUP, "no event can have the suffix of '%s'", name);
	return r < 0 ? r : events_parse(text, env, ret, err);
}

static void constant(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	struct stat_job *job = ctx;
	struct event_list list = {0};
	const char *event = name;
	int r;

	if (ask == EXPR_LITERAL && strcasecmp(name, "chas_per_socket") == 0) {
		ask = EXPR_SOURCE_COUNT;
		event = "UNC_CHA_CLOCKTICKS";
	}
	if (ask != EXPR_HAS_EVENT && ask != EXPR_SOURCE_COUNT) {
		expr_host_constant(&job->machine, ask, name, ret);
		return;
	}
	r = parse_name(job, event, &list, NULL);
	if (ask == EXPR_HAS_EVENT)
		*ret = expr_number(r == 0);
	else if (r == 0)
		*ret = expr_number((double)list.events.len);
	event_list_fini(&list);
}

static int read_machine(struct stat_job *job, struct err *err)
{
	struct event_env *env;
	int r = stat_env(job, &env, err);
	double hz;

	if (r < 0 || job->machine_read)
		return r;
	expr_host_read(event_env_host(env), event_env_model(env), &job->machine);
	hz = counter_tsc_hz();
	job->machine.tsc_hz = hz > 0 ? hz : 0;
	job->machine.system_wide = job->target.system_wide;
	job->machine_read = true;
	return 0;
}

/* --- parts ------------------------------------------------------------------------------------ */

struct build {
	struct stat_job *job;
	struct stat_metric *metric;
	struct count_bundle *bundle;
	unsigned depth;
	int r;
	struct err *err;
};

static void add_leaf(void *ctx, const char *name);

static int push_leaf(struct stat_metric *metric, const struct stat_leaf *leaf)
{
	struct stat_leaf *grown =
		realloc(metric->leaves, (metric->leaf_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	metric->leaves = grown;
	grown[metric->leaf_count++] = *leaf;
	return 0;
}

static int leaf_event(struct build *b, struct stat_leaf *leaf, unsigned event)
{
	struct count_bundle *bundle = b->bundle;
	int *grown = realloc(leaf->slots, (leaf->count + 1) * sizeof(*grown));
	unsigned at = 0;

	if (!grown)
		return -ENOMEM;
	leaf->slots = grown;
	while (at < bundle->len && bundle->members[at] != event)
		at++;
	if (at == bundle->len && bundle->len < COUNT_GROUP_MAX)
		bundle->members[bundle->len++] = event;
	/* Beyond the largest group an event is counted by itself. */
	leaf->slots[leaf->count++] = at < bundle->len ? (int)at : -1 - (int)event;
	return 0;
}

/* perfmon's names of what the kernel calls topdown-*. */
static const char *perf_metric(const char *name)
{
	static const char *const names[][2] = {
		{"TOPDOWN.SLOTS:perf_metrics", "slots"},
		{"PERF_METRICS.RETIRING", "topdown-retiring"},
		{"PERF_METRICS.BAD_SPECULATION", "topdown-bad-spec"},
		{"PERF_METRICS.FRONTEND_BOUND", "topdown-fe-bound"},
		{"PERF_METRICS.BACKEND_BOUND", "topdown-be-bound"},
		{"PERF_METRICS.HEAVY_OPERATIONS", "topdown-heavy-ops"},
		{"PERF_METRICS.BRANCH_MISPREDICTS", "topdown-br-mispredict"},
		{"PERF_METRICS.FETCH_LATENCY", "topdown-fetch-lat"},
		{"PERF_METRICS.MEMORY_BOUND", "topdown-mem-bound"},
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(names[i][0], name) == 0)
			return names[i][1];
	return name;
}

/* The events a name stands for: one, or one for each PMU that has it. */
static int leaf_events(struct build *b, struct stat_leaf *leaf)
{
	struct err why = {0};
	const char *asked = strcmp(leaf->name, "TSC") == 0 ? "msr/tsc/" : leaf->name;
	char text[512];
	size_t before;
	int r = 0, known;

	if (strcmp(asked, "task-clock") == 0 && b->job->target.system_wide)
		asked = "cpu-clock";
	known = stat_need_event(b->job, asked);
	if (known >= 0)
		return leaf_event(b, leaf, (unsigned)known);
	if (known == -ENOMEM)
		return known;
	if (topdown_event_perf_text(perf_metric(asked), "cpu", text, sizeof(text)) < 0)
		r = err_set(&why, -ENOTSUP, "no event can have this suffix");
	if (r == 0)
		r = stat_need_text(b->job, text, &before, &leaf->count, &why);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		leaf->count = 0;
		leaf->kind = STAT_LEAF_MISSING;
		snprintf(leaf->reason, sizeof(leaf->reason), "%s", err_text(&why, r));
		return 0;
	}
	known = (int)leaf->count;
	leaf->count = 0;
	for (int i = 0; i < known && r == 0; i++)
		r = leaf_event(b, leaf, (unsigned)(before + (size_t)i));
	return r;
}

/* The user's files go before the table. */
static const struct metric *find_metric(struct stat_job *job, const char *name)
{
	const struct builtin_metric *builtin = builtin_metric_find(name);
	const struct metrics *metrics;
	const struct metric *found = NULL;
	struct event_env *env;

	if (stat_env(job, &env, NULL) == 0 && event_env_metrics(env, &metrics, NULL) == 0)
		found = metrics_find(metrics, name, "");
	return found ? found : builtin ? &builtin->metric : NULL;
}

static int leaf_metric(struct build *b, struct stat_leaf *leaf, const struct metric *def)
{
	int r = expr_parse(def->formula, &leaf->expr, b->err), at;

	if (r < 0)
		return err_wrap(b->err, r, "the metric %s", def->name);
	leaf->kind = STAT_LEAF_METRIC;
	leaf->formula = def->formula;
	leaf->scale = 1; /* in formulas metrics are what theirs give, without the unit */
	expr_fold(leaf->expr, constant, b->job);
	r = push_leaf(b->metric, leaf);
	at = (int)b->metric->leaf_count - 1;
	if (r < 0 || b->depth == DEPTH_MAX)
		return r;
	b->depth++;
	expr_names(b->metric->leaves[at].expr, add_leaf, b);
	b->depth--;
	return b->r;
}

static void add_leaf(void *ctx, const char *name)
{
	static const struct {
		const char *name;
		enum stat_leaf_kind kind;
	} times[] = {{"duration_time", STAT_LEAF_WALL},
		     {"user_time", STAT_LEAF_USER},
		     {"system_time", STAT_LEAF_SYSTEM}};
	struct build *b = ctx;
	struct stat_leaf leaf = {.kind = STAT_LEAF_EVENTS, .scale = 1};
	const struct metric *def;

	if (b->r < 0 || stat_leaf_find(b->metric, name) >= 0)
		return;
	leaf.name = strdup(name);
	if (!leaf.name) {
		b->r = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (strcasecmp(times[i].name, name) == 0)
			leaf.kind = times[i].kind;
	if (leaf.kind == STAT_LEAF_EVENTS && !stat_known_find(name) && !strchr(name, '/')) {
		def = find_metric(b->job, name);
		if (def) {
			b->r = leaf_metric(b, &leaf, def);
			return;
		}
	}
	if (leaf.kind == STAT_LEAF_EVENTS)
		b->r = leaf_events(b, &leaf);
	if (b->r == 0)
		b->r = push_leaf(b->metric, &leaf);
}

/* The first event of a formula carries the metric where there is one place only. */
static int first_event(const struct stat_job *job, const struct stat_metric *metric)
{
	for (unsigned i = 0; i < metric->leaf_count; i++)
		if (metric->leaves[i].count > 0)
			return (int)stat_leaf_event(job, metric, &metric->leaves[i], 0);
	return -1;
}

/* "percent of slots" of Arm is "% of slots", "1GHz" of perf GHz. */
static const char *short_unit(const char *unit)
{
	if (strncasecmp(unit, "percent", 7) == 0)
		return unit[7] == '\0' ? "%" : unit;
	return unit;
}

static int ask_formula(struct stat_job *job, const struct metric *def, bool explain,
		       struct err *err)
{
	const struct builtin_metric *builtin = builtin_metric_find(def->name);
	bool own = builtin && def == &builtin->metric;
	struct count_bundle bundle = {0};
	struct stat_metric metric = {.unit = short_unit(def->unit),
				     .formula = def->formula,
				     .description =
					     def->description[0] ? def->description : def->title,
				     .scale = def->scale,
				     .digits = own ? builtin->digits : 2,
				     .share = own && builtin->share,
				     .bundle = (int)job->set.bundles.len,
				     .asked = true,
				     .explain = explain,
				     .own_name = strdup(def->name)};
	struct build build = {.job = job, .metric = &metric, .bundle = &bundle, .err = err};
	int r;

	metric.name = metric.own_name;
	if (!metric.name)
		return -ENOMEM;
	for (size_t m = 0; m < job->metrics.len; m++)
		if (strcmp(job->metrics.data[m].name, metric.name) == 0) {
			job->metrics.data[m].explain |= explain;
			stat_metric_fini(&metric);
			return 0;
		}
	r = expr_parse(def->formula, &metric.expr, err);
	if (r < 0)
		err_wrap(err, r, "the metric %s", def->name);
	if (r == 0) {
		expr_fold(metric.expr, constant, job);
		expr_names(metric.expr, add_leaf, &build);
		r = build.r;
	}
	snprintf(bundle.name, sizeof(bundle.name), "%.60s", def->name);
	if (r == 0)
		r = vec_push(&job->set.bundles, bundle); /* of this number the metric speaks */
	if (r == 0) {
		metric.shown_at = first_event(job, &metric);
		r = vec_push(&job->metrics, metric);
	}
	if (r < 0)
		stat_metric_fini(&metric);
	return r;
}

/* --- words ------------------------------------------------------------------------------------ */

static bool word_matches(const struct metrics *metrics, const struct metric *metric,
			 const char *word)
{
	return strpbrk(word, "*?[") ? str_glob(word, metric->name)
				    : metric_in_group(metrics, metric, word);
}

static void nearer(const char *word, const char *name, const char **nearest, unsigned *best)
{
	unsigned distance = str_distance(word, name);

	if (distance < *best) {
		*best = distance;
		*nearest = name;
	}
}

static int unknown_metric(const struct metrics *metrics, const char *word, struct err *err)
{
	const char *nearest = NULL;
	unsigned best = 5;

	for (size_t i = 0; i < metrics->list.len; i++)
		nearer(word, metrics->list.data[i].name, &nearest, &best);
	for (size_t i = 0; i < builtin_metrics_len; i++)
		nearer(word, builtin_metrics[i].metric.name, &nearest, &best);
	if (nearest)
		return err_set(err, -EINVAL, "no metric '%s'; did you mean '%s'?", word, nearest);
	return err_set(err, -EINVAL, "no metric or group '%s'; 'culprit list metric' shows them",
		       word);
}

/* A formula typed in: "-" between letters belongs to a name, as everywhere else on the line. */
static int ask_own(struct stat_job *job, const char *word, bool explain, struct err *err)
{
	struct metric own = {.name = word, .title = "", .unit = "", .description = "", .scale = 1};
	struct str formula = {0};
	int r;

	for (const char *c = word; *c; c++) {
		if (*c == '-' && c > word && isalnum((unsigned char)c[-1]) &&
		    isalpha((unsigned char)c[1]))
			str_putc(&formula, '\\');
		str_putc(&formula, *c);
	}
	r = str_status(&formula);
	own.formula = arena_strndup(&job->texts, str_text(&formula), formula.len);
	str_fini(&formula);
	if (r < 0 || !own.formula)
		return -ENOMEM;
	return ask_formula(job, &own, explain, err);
}

static int ask_word(struct stat_job *job, const char *word, bool explain, struct err *err)
{
	const struct builtin_metric *builtin = builtin_metric_find(word);
	const struct metrics *metrics = NULL;
	const struct metric *exact;
	struct event_env *env;
	bool found = false;
	int r = read_machine(job, err);

	if (r == 0)
		r = stat_env(job, &env, err);
	if (r == 0) {
		r = event_env_metrics(env, &metrics, err);
		if (r == -ENOENT && builtin) /* the files lack what the table has */
			return ask_formula(job, &builtin->metric, explain, err);
	}
	if (r < 0)
		return r;
	exact = find_metric(job, word);
	if (exact)
		return ask_formula(job, exact, explain, err);
	for (size_t i = 0; i < metrics->list.len && r == 0; i++)
		if (word_matches(metrics, &metrics->list.data[i], word)) {
			found = true;
			r = ask_formula(job, &metrics->list.data[i], explain, err);
		}
	for (size_t i = 0; i < builtin_metrics_len && r == 0; i++)
		if (word_matches(NULL, &builtin_metrics[i].metric, word)) {
			found = true;
			r = ask_formula(job, &builtin_metrics[i].metric, explain, err);
		}
	if (found || r < 0)
		return r;
	return strpbrk(word, "+*/()<> ") ? ask_own(job, word, explain, err)
					 : unknown_metric(metrics, word, err);
}

/* Commas inside brackets belong to the formula. */
static int ask_words(struct stat_job *job, const char *list, bool explain, struct err *err)
{
	int r = 0;

	while (*list && r == 0) {
		size_t len = 0;
		int depth = 0;
		CLEANUP_FREE char *word = NULL;

		for (; list[len] && (list[len] != ',' || depth > 0); len++)
			depth += list[len] == '(' ? 1 : list[len] == ')' ? -1 : 0;
		word = strndup(list, len);
		if (!word)
			return -ENOMEM;
		if (len > 0)
			r = ask_word(job, word, explain, err);
		list += len + (list[len] == ',');
	}
	return r;
}

int stat_metric_events(struct stat_job *job, struct err *err)
{
	int r = 0;

	if (job->options.metrics)
		r = ask_words(job, job->options.metrics, false, err);
	if (r == 0 && job->options.explain)
		r = ask_words(job, job->options.explain, true, err);
	return r;
}
