#include "latency/sla.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"

#define RULE_BYTES 96

static int parse_value(const char *text, struct sla_rule *rule, struct err *err)
{
	size_t len = strlen(text);
	unsigned long long ns;
	char number[RULE_BYTES];
	snprintf(number, sizeof(number), "%s", text);
	if (rule->unit == SLA_NS) {
		if (len && isdigit((unsigned char)text[len - 1]))
			return err_set(err, -EINVAL, "'%s' needs a unit: ns, us, ms or s", text);
		if (parse_duration_ns(text, 1, &ns) < 0)
			return err_set(err, -EINVAL, "'%s' is no duration, as 10us", text);
		rule->limit = (double)ns;
		return 0;
	}
	bool percent = len && text[len - 1] == '%';
	if (percent)
		number[len - 1] = 0;
	if (percent != (rule->unit == SLA_SHARE) || parse_double(number, &rule->limit) < 0 ||
	    !isfinite(rule->limit))
		return err_set(err, -EINVAL, "'%s' is no %s", text,
			       rule->unit == SLA_SHARE ? "share, as 99.9%" : "number");
	if (percent)
		rule->limit /= 100;
	return 0;
}

static int parse_statistic(const char *text, struct sla_rule *rule, struct err *err)
{
	static const struct {
		const char *name;
		enum sla_statistic statistic;
	} statistics[] = {
		{"min", SLA_MIN}, {"avg", SLA_AVG}, {"max", SLA_MAX}, {"count", SLA_COUNT}};
	for (unsigned i = 0; i < ARRAY_LEN(statistics); i++) {
		if (strcmp(text, statistics[i].name) == 0) {
			rule->statistic = statistics[i].statistic;
			rule->unit = rule->statistic == SLA_COUNT ? SLA_NUMBER : SLA_NS;
			return 0;
		}
	}
	double percent;
	if (text[0] == 'p' && isdigit((unsigned char)text[1]) &&
	    parse_double(text + 1, &percent) == 0) {
		/* p999 and p9999 are common spellings of p99.9 and p99.99 */
		while (percent > 100)
			percent /= 10;
		if (percent > 0 && percent <= 100) {
			rule->statistic = SLA_PERCENTILE;
			rule->share = percent / 100;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "'%s' is none of min, avg, max, count, p50, p99, p99.9 ...",
		       text);
}

static int parse_noise(const char *statistic, struct sla_rule *rule, struct err *err)
{
	static const struct {
		const char *name;
		enum sla_what what;
		enum sla_unit unit;
	} values[] = {
		{"single", SLA_NOISE_SINGLE, SLA_NS},
		{"max", SLA_NOISE_MAX, SLA_NS},
		{"total", SLA_NOISE_MAX, SLA_NS},
		{"available", SLA_NOISE_AVAILABLE, SLA_SHARE},
	};
	for (unsigned i = 0; i < ARRAY_LEN(values); i++) {
		if (strcmp(statistic, values[i].name) == 0) {
			rule->what = values[i].what;
			rule->unit = values[i].unit;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "'noise.%s': noise has single, max and available", statistic);
}

static int parse_subject(const char *name, const char *statistic, struct sla_rule *rule,
			 struct err *err)
{
	if (strcmp(name, "noise") == 0)
		return parse_noise(statistic, rule, err);
	if (strcmp(statistic, "count") == 0) {
		for (unsigned i = 0; i < NOISE_CLASSES; i++) {
			if (strcmp(name, noise_class_name((enum noise_class)i)) == 0) {
				rule->what = SLA_CLASS_COUNT;
				rule->index = i;
				rule->unit = SLA_NUMBER;
				return 0;
			}
		}
	}
	rule->what = SLA_CONTEXT;
	for (rule->index = 0; rule->index < LATENCY_CONTEXTS; rule->index++) {
		if (strcmp(name, latency_context_name((enum latency_context)rule->index)) == 0)
			return parse_statistic(statistic, rule, err);
	}
	rule->what = SLA_GAP;
	if (strcmp(name, "gap") == 0)
		return parse_statistic(statistic, rule, err);
	return err_set(err, -EINVAL,
		       "'%s' is none of irq, thread, user, gap, noise, unexplained, nmi, softirq",
		       name);
}

static int parse_rule(const char *text, struct sla_rule *rule, struct err *err)
{
	static const struct {
		const char *sign;
		int comparison;
	} signs[] = {{"<=", SLA_LE}, {">=", SLA_GE}, {"<", SLA_LT}, {">", SLA_GT}};
	for (unsigned i = 0; i < ARRAY_LEN(signs); i++) {
		const char *at = strstr(text, signs[i].sign);
		char subject[RULE_BYTES];
		if (!at)
			continue;
		snprintf(subject, sizeof(subject), "%.*s", (int)(at - text), text);
		char *dot = strchr(subject, '.');
		if (!dot)
			break;
		*dot = 0;
		rule->comparison = signs[i].comparison;
		int r = parse_subject(subject, dot + 1, rule, err);
		return r < 0 ? r : parse_value(at + strlen(signs[i].sign), rule, err);
	}
	return err_set(err, -EINVAL, "no rule, as thread.p99<=10us");
}

int sla_parse(const char *text, struct sla *sla, struct err *err)
{
	while (*text) {
		size_t len = strcspn(text, ",");
		char compact[RULE_BYTES];
		size_t used = 0;
		struct sla_rule rule = {0};
		for (size_t i = 0; i < len && used + 1 < sizeof(compact); i++) {
			if (!isspace((unsigned char)text[i]))
				compact[used++] = text[i];
		}
		compact[used] = 0;
		int r = parse_rule(compact, &rule, err);
		if (r < 0)
			return err_wrap(err, r, "rule '%s'", compact);
		rule.text = strdup(compact);
		if (!rule.text || vec_push(&sla->rules, rule) < 0) {
			free(rule.text);
			return -ENOMEM;
		}
		text += len + (text[len] == ',');
	}
	return sla->rules.len ? 0 : err_set(err, -EINVAL, "no rule, as thread.p99<=10us");
}

void sla_fini(struct sla *sla)
{
	vec_for_each(&sla->rules, rule)
		free(rule->text);
	vec_fini(&sla->rules);
}

/* NaN when the series does not tell. */
static double series_value(const struct latency_series *series, const struct sla_rule *rule)
{
	const struct histogram *values = &series->values;
	if (rule->statistic == SLA_COUNT)
		return (double)values->count;
	if (!values->count)
		return NAN;
	switch (rule->statistic) {
	case SLA_MIN:
		return (double)values->min;
	case SLA_AVG:
		return histogram_mean(values);
	case SLA_MAX:
		return series->has_max ? (double)values->max : NAN;
	case SLA_PERCENTILE: {
		int64_t ns = latency_series_percentile(series, rule->share);
		return ns == LATENCY_UNKNOWN_NS ? NAN : (double)ns;
	}
	default:
		return NAN;
	}
}

/* irq.count and thread.count: wake-ups where those are measured, interruptions where noise is. */
static double class_count(const struct latency_run *run, const struct latency_cpu *cpu,
			  unsigned class)
{
	bool wake_ups = run->tool == LATENCY_TIMERLAT || run->tool == LATENCY_CYCLIC;
	if (wake_ups && class == NOISE_IRQ)
		return (double)cpu->context[LATENCY_IRQ].values.count;
	if (wake_ups && class == NOISE_THREAD)
		return (double)cpu->context[LATENCY_THREAD].values.count;
	return cpu->class_known[class] ? (double)cpu->class_count[class] : NAN;
}

static double cpu_value(const struct latency_run *run, const struct latency_cpu *cpu,
			const struct sla_rule *rule)
{
	switch (rule->what) {
	case SLA_CONTEXT:
		return series_value(&cpu->context[rule->index], rule);
	case SLA_GAP:
		return series_value(&cpu->gaps, rule);
	case SLA_NOISE_SINGLE:
		return cpu->runtime_ns ? (double)cpu->max_single_ns : NAN;
	case SLA_NOISE_MAX:
		return cpu->runtime_ns ? (double)cpu->max_noise_ns : NAN;
	case SLA_NOISE_AVAILABLE:
		return cpu->runtime_ns ? 1 - (double)cpu->noise_ns / (double)cpu->runtime_ns : NAN;
	case SLA_CLASS_COUNT:
		return class_count(run, cpu, rule->index);
	}
	return NAN;
}

static bool is_kept(const struct sla_rule *rule, double value)
{
	switch (rule->comparison) {
	case SLA_LE:
		return value <= rule->limit;
	case SLA_LT:
		return value < rule->limit;
	case SLA_GE:
		return value >= rule->limit;
	default:
		return value > rule->limit;
	}
}

void sla_check(const struct sla_rule *rule, const struct latency_run *run, struct sla_result *ret)
{
	bool upper = rule->comparison == SLA_LE || rule->comparison == SLA_LT;
	unsigned unknown = 0;
	*ret = (struct sla_result){.state = SLA_UNKNOWN, .value = NAN, .cpu = -1};
	vec_for_each(&run->cpus, cpu) {
		double value = cpu_value(run, cpu, rule);
		if (isnan(value)) {
			unknown++;
			continue;
		}
		if (isnan(ret->value) || (upper ? value > ret->value : value < ret->value)) {
			ret->value = value;
			ret->cpu = (int)cpu->cpu;
		}
	}
	if (!isnan(ret->value) && !is_kept(rule, ret->value))
		ret->state = SLA_EXCEEDED;
	else if (isnan(ret->value))
		snprintf(ret->reason, sizeof(ret->reason), "the run does not hold this value");
	else if (unknown)
		snprintf(ret->reason, sizeof(ret->reason), "%u of %zu CPUs do not hold this value",
			 unknown, run->cpus.len);
	else if (latency_run_incomplete(run))
		snprintf(ret->reason, sizeof(ret->reason),
			 "the run is incomplete: what is missing may have been worse");
	else
		ret->state = SLA_KEPT;
}
