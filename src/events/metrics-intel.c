/*
 * One metric of intel/perfmon's list or of perf's. perfmon's formulas are over aliases ("a / b"),
 * which are replaced here; its thresholds name metrics as its spreadsheets do
 * ("metric_TMA_....L1_Bound(%)").
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "events/expr.h"
#include "events/metrics-internal.h"

struct alias {
	const char *alias, *name;
};

enum text {
	T_NAME,
	T_EXPR,    /* perf */
	T_FORMULA, /* perfmon */
	T_GROUP,
	T_PARENT,
	T_THRESHOLD, /* perf; perfmon's is an object */
	T_SCALE_UNIT,
	T_UNIT_OF_MEASURE,
	T_UNIT,
	T_DOMAIN,
	T_LEVEL,
	T_LOCATE,
	T_BRIEF,
	T_LEGACY,
	T_CATEGORY,
	T_COUNT,
};

static const struct {
	const char *key;
	enum text text;
} keys[] = {
	{"MetricName", T_NAME},
	{"MetricExpr", T_EXPR},
	{"Formula", T_FORMULA},
	{"MetricGroup", T_GROUP},
	{"ParentCategory", T_PARENT},
	{"MetricThreshold", T_THRESHOLD},
	{"ScaleUnit", T_SCALE_UNIT},
	{"UnitOfMeasure", T_UNIT_OF_MEASURE},
	{"Unit", T_UNIT},
	{"CountDomain", T_DOMAIN},
	{"Level", T_LEVEL},
	{"LocateWith", T_LOCATE},
	{"BriefDescription", T_BRIEF},
	{"LegacyName", T_LEGACY},
	{"Category", T_CATEGORY},
};

struct entry {
	const char *text[T_COUNT];
	VEC(struct alias) aliases, thresholds;
	const char *threshold; /* perfmon's, over its aliases */
};

/* --- reading --------------------------------------------------------------------------------- */

/* [{"Name" or "Value": "X", "Alias": "a"}, ...], behind the '['. */
static int read_aliases(struct metrics_document *d, struct entry *e, bool threshold)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_OBJECT) {
		struct alias alias = {NULL, NULL};

		while ((token = json_next(&d->reader)) == JSON_KEY) {
			bool is_alias = strcmp(str_text(&d->reader.text), "Alias") == 0;
			bool is_name = strcmp(str_text(&d->reader.text), "Name") == 0 ||
				       strcmp(str_text(&d->reader.text), "Value") == 0;

			token = json_next(&d->reader);
			if ((token == JSON_STRING || token == JSON_NUMBER) && is_alias)
				alias.alias = metrics_keep(d, 64);
			else if ((token == JSON_STRING || token == JSON_NUMBER) && is_name)
				alias.name = metrics_keep(d, 512);
			else if (json_skip(&d->reader, token) == JSON_BAD)
				return -EBADMSG;
		}
		if (token != JSON_OBJECT_END)
			return -EBADMSG;
		if (!alias.alias || !alias.name)
			continue;
		if (e->aliases.len + e->thresholds.len >= METRIC_ALIASES_MAX)
			continue;
		r = threshold ? vec_push(&e->thresholds, alias) : vec_push(&e->aliases, alias);
	}
	return r < 0 ? r : token == JSON_ARRAY_END ? 0 : -EBADMSG;
}

static int read_threshold(struct metrics_document *d, struct entry *e)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		bool formula = strcmp(str_text(&d->reader.text), "Formula") == 0;
		bool metrics = strcmp(str_text(&d->reader.text), "ThresholdMetrics") == 0;

		token = json_next(&d->reader);
		if (formula && token == JSON_STRING)
			r = (e->threshold = metrics_keep(d, METRIC_TEXT_MAX)) ? 0 : -ENOMEM;
		else if (metrics && token == JSON_ARRAY)
			r = read_aliases(d, e, true);
		else
			r = json_skip(&d->reader, token) == JSON_BAD ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	return r < 0 ? r : token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

static int read_member(struct metrics_document *d, struct entry *e)
{
	char key[64];
	enum json_token token;

	snprintf(key, sizeof(key), "%s", str_text(&d->reader.text));
	token = json_next(&d->reader);
	if (token == JSON_ARRAY && (strcmp(key, "Events") == 0 || strcmp(key, "Constants") == 0))
		return read_aliases(d, e, false);
	if (token == JSON_OBJECT && strcmp(key, "Threshold") == 0)
		return read_threshold(d, e);
	for (size_t i = 0; i < ARRAY_LEN(keys) && (token == JSON_STRING || token == JSON_NUMBER);
	     i++)
		if (strcmp(keys[i].key, key) == 0) {
			e->text[keys[i].text] = metrics_keep(
				d, keys[i].text == T_BRIEF ? METRIC_BRIEF_MAX : METRIC_TEXT_MAX);
			return e->text[keys[i].text] ? 0 : -ENOMEM;
		}
	return json_skip(&d->reader, token) == JSON_BAD ? -EBADMSG : 0;
}

/* --- formulas -------------------------------------------------------------------------------- */

/* What perfmon calls its constants. */
static const struct {
	const char *name, *formula;
} constants[] = {
	{"SYSTEM_TSC_FREQ", "#system_tsc_freq"},
	{"HYPERTHREADING_ON", "#smt_on"},
	{"SMT_ON", "#smt_on"},
	{"THREADS_PER_CORE", "#threads_per_core"},
	{"SOCKET_COUNT", "#num_packages"},
	{"CORES_PER_SOCKET", "(#num_cores / #num_packages)"},
	{"CHAS_PER_SOCKET", "#chas_per_socket"},
	{"DURATIONTIMEINSECONDS", "duration_time"},
	{"DURATIONTIMEINMILLISECONDS", "(duration_time * 1000)"},
	{"system.sockets[0].cpus.count * system.socket_count", "#num_cpus"},
};

static bool put_constant(const struct entry *e, const char *name, size_t len, struct str *out)
{
	/* The metrics of the method mean ticks of the measured time, divided by its length. */
	if (len == strlen("SYSTEM_TSC_FREQ") && strncasecmp(name, "SYSTEM_TSC_FREQ", len) == 0 &&
	    e->text[T_CATEGORY] && strcmp(e->text[T_CATEGORY], "TMA") == 0) {
		str_puts(out, "(#system_tsc_freq * duration_time)");
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(constants); i++)
		if (strlen(constants[i].name) == len &&
		    strncasecmp(constants[i].name, name, len) == 0) {
			str_puts(out, constants[i].formula);
			return true;
		}
	return false;
}

static int rename_alias(void *ctx, const char *name, size_t len, struct str *out)
{
	const struct entry *e = ctx;

	for (size_t i = 0; i < e->aliases.len; i++) {
		const char *to = e->aliases.data[i].name;
		double number;

		if (strlen(e->aliases.data[i].alias) != len ||
		    memcmp(e->aliases.data[i].alias, name, len) != 0)
			continue;
		if (put_constant(e, to, strlen(to), out))
			return 0;
		if (parse_double(to, &number) == 0) /* a number where a name should stand */
			str_puts(out, to);
		else
			expr_put_name(out, to);
		return 0;
	}
	if (!put_constant(e, name, len, out))
		str_append(out, name, len);
	return 0;
}

/* "metric_TMA_....L1_Bound(%)" becomes "L1_Bound". */
static void put_legacy(struct str *out, const char *name)
{
	char plain[256];

	(void)str_prefix(name, "metric_", &name);
	(void)str_prefix(name, "TMA_", &name);
	name += strspn(name, ".");
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, "("), name);
	expr_put_name(out, plain); /* "4K_Aliasing" begins with a digit */
}

static int rename_threshold(void *ctx, const char *name, size_t len, struct str *out)
{
	const struct entry *e = ctx;
	char plain[256];

	for (size_t i = 0; i < e->thresholds.len; i++)
		if (strlen(e->thresholds.data[i].alias) == len &&
		    memcmp(e->thresholds.data[i].alias, name, len) == 0) {
			put_legacy(out, e->thresholds.data[i].name);
			return 0;
		}
	if (len < sizeof(plain)) {
		memcpy(plain, name, len);
		plain[len] = '\0';
		put_legacy(out, plain);
	}
	return 0;
}

/* "(%)" stands behind names, which is no formula. */
static void drop_percent_signs(struct str *text)
{
	char *at;

	while (text->len > 0 && (at = strstr(text->data, "(%)")) != NULL) {
		memmove(at, at + 3, strlen(at + 3) + 1);
		text->len -= 3;
	}
}

static int make_threshold(struct metrics *metrics, struct entry *e, const char **ret)
{
	struct str plain = {0}, out = {0};
	int r;

	*ret = e->text[T_THRESHOLD] ? e->text[T_THRESHOLD] : "";
	if (!e->threshold || e->threshold[0] == '\0')
		return 0;
	str_puts(&plain, e->threshold);
	drop_percent_signs(&plain);
	r = expr_rewrite(str_text(&plain), rename_threshold, e, &out);
	*ret = r < 0 ? NULL : metrics_keep_str(metrics, &out);
	str_fini(&plain);
	str_fini(&out);
	return *ret ? 0 : -ENOMEM;
}

static int make_formula(struct metrics *metrics, struct entry *e, const char **ret)
{
	struct str out = {0};
	int r;

	if (e->text[T_EXPR]) {
		*ret = e->text[T_EXPR];
		return 0;
	}
	r = expr_rewrite(e->text[T_FORMULA], rename_alias, e, &out);
	*ret = r < 0 ? NULL : metrics_keep_str(metrics, &out);
	str_fini(&out);
	return *ret ? 0 : -ENOMEM;
}

/* --- the tree -------------------------------------------------------------------------------- */

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* A word of "A;B;C"; the one that begins with prefix and ends with end: what is between. */
static size_t between(const char *groups, const char *prefix, const char *end, const char **ret)
{
	for (const char *at = groups; *at; at += strspn(at, "; ")) {
		size_t len = strcspn(at, "; "), head = strlen(prefix), tail = strlen(end);

		if (len > head + tail && strncasecmp(at, prefix, head) == 0 &&
		    strncasecmp(at + len - tail, end, tail) == 0) {
			*ret = at + head;
			return len - head - tail;
		}
		at += len;
	}
	return 0;
}

static unsigned group_level(const char *groups)
{
	static const char *const prefixes[] = {"TopdownL", "PipelineL", "TmaL"};
	const char *digits;

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (between(groups, prefixes[i], "", &digits) > 0 && *digits >= '1' &&
		    *digits <= '9')
			return (unsigned)(*digits - '0');
	return 0;
}

/* perf: a child's groups hold its parent's name: "TopdownL2;tma_L2_group;tma_frontend_bound_group".
 */
static int find_parent(struct metrics *metrics, const char *groups, const char **ret)
{
	const char *at = groups, *name;
	size_t len;

	*ret = "";
	while ((len = between(at, "", "_group", &name)) > 0) {
		bool level = len == 6 && strncasecmp(name, "tma_L", 5) == 0 &&
			     isdigit((unsigned char)name[5]); /* not "tma_l1_bound" */

		if (!level && strncasecmp(name, "tma_issue", 9) != 0) {
			*ret = arena_strndup(&metrics->arena, name, len);
			return *ret ? 0 : -ENOMEM;
		}
		at = name + len + strlen("_group");
	}
	return 0;
}

static void set_unit(const struct entry *e, struct metric *m)
{
	const char *unit = or_empty(e->text[T_SCALE_UNIT]);
	char *end;

	m->scale = 1;
	m->unit = or_empty(e->text[T_UNIT_OF_MEASURE]);
	if (unit[0]) {
		m->scale = strtod(unit, &end);
		m->unit = end;
		if (end == unit || !(m->scale > 0 && m->scale < 1e15))
			m->scale = 1;
	}
	m->percent = m->unit[0] == '%' || strcmp(m->unit, "percent") == 0; /* AMD: "%slots" */
}

/* perfmon's level 1: "metric_TMA_Frontend_Bound(%)" of slots, no parent, no information besides. */
static bool is_root(const struct entry *e, const struct metric *m)
{
	if (m->parent[0] || m->level != 1 || !m->percent)
		return false;
	if (e->text[T_EXPR])
		return true;
	return strcmp(or_empty(e->text[T_CATEGORY]), "TMA") == 0 && strcmp(m->domain, "Slots") == 0;
}

static int make_metric(struct metrics_document *d, struct entry *e)
{
	struct metric m = {.name = e->text[T_NAME],
			   .title = e->text[T_NAME],
			   .description = or_empty(e->text[T_BRIEF]),
			   .groups = or_empty(e->text[T_GROUP]),
			   .domain = or_empty(e->text[T_DOMAIN]),
			   .sample = or_empty(e->text[T_LOCATE]),
			   .pmu = or_empty(e->text[T_UNIT]),
			   .parent = or_empty(e->text[T_PARENT]),
			   .level = group_level(or_empty(e->text[T_GROUP]))};
	int r = make_formula(d->metrics, e, &m.formula);

	if (r == 0)
		r = make_threshold(d->metrics, e, &m.threshold);
	if (r == 0 && e->text[T_EXPR])
		r = find_parent(d->metrics, m.groups, &m.parent);
	if (r < 0)
		return r;
	if (e->text[T_LEVEL])
		m.level = (unsigned)MIN(strtoul(e->text[T_LEVEL], NULL, 10), 99UL);
	set_unit(e, &m);
	m.root = is_root(e, &m);
	d->metrics->layout = e->text[T_EXPR] ? METRIC_PERF : METRIC_PERFMON;
	return metrics_add(d, &m);
}

int metrics_read_entry(struct metrics_document *d)
{
	struct entry e = {{NULL}};
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		r = read_member(d, &e);
		token = JSON_KEY;
	}
	if (r == 0 && token != JSON_OBJECT_END)
		r = -EBADMSG;
	if (r == 0 && e.text[T_NAME] && e.text[T_NAME][0] && (e.text[T_EXPR] || e.text[T_FORMULA]))
		r = make_metric(d, &e);
	vec_fini(&e.aliases);
	vec_fini(&e.thresholds);
	return r;
}
