/*
 * Limits that a run has to keep, as text: "thread.p99<=10us,irq.max<=20us,noise.available>=99.9%".
 *
 * Left of the dot: irq, thread, user (timerlat, cyclic); gap, noise, unexplained, nmi, softirq, irq
 * (osnoise, hwnoise). Right of it: min avg max count pN (p50, p99.9) for latencies and gaps;
 * single, total, available for noise; count for the classes. Durations take ns us ms s, shares take
 * %.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"
#include "latency/run.h"

enum sla_state {
	SLA_KEPT,
	SLA_EXCEEDED,
	SLA_UNKNOWN, /* the run does not hold the value: nothing is proven */
};

enum sla_what {
	SLA_CONTEXT, /* a latency of one context */
	SLA_GAP,
	SLA_NOISE_SINGLE,
	SLA_NOISE_MAX,
	SLA_NOISE_AVAILABLE,
	SLA_CLASS_COUNT,
};

enum sla_statistic {
	SLA_MIN,
	SLA_AVG,
	SLA_MAX,
	SLA_COUNT,
	SLA_PERCENTILE
};

enum sla_unit {
	SLA_NS,
	SLA_SHARE,
	SLA_NUMBER
};

struct sla_rule {
	char *text; /* as given */
	enum sla_what what;
	unsigned index; /* enum latency_context or enum noise_class */
	enum sla_statistic statistic;
	double share; /* of SLA_PERCENTILE, 0..1 */
	enum sla_unit unit;
	enum {
		SLA_LE,
		SLA_LT,
		SLA_GE,
		SLA_GT
	} comparison;
	double limit; /* ns, fraction of 1 or a number */
};

struct sla {
	VEC(struct sla_rule) rules;
};

struct sla_result {
	enum sla_state state;
	double value;     /* the worst CPU's; NaN unknown */
	int cpu;          /* -1: no CPU has it */
	char reason[128]; /* of SLA_UNKNOWN */
};

/* Adds the comma-separated rules of text. -EINVAL names the rule and what it may be. */
int sla_parse(const char *text, struct sla *sla, struct err *err);
void sla_fini(struct sla *sla);
/* Each CPU has to keep the rule; the result is of the worst. */
void sla_check(const struct sla_rule *rule, const struct latency_run *run, struct sla_result *ret);
