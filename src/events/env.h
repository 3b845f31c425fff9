/*
 * What events can be named with on one machine: its CPU, PMUs and vendor tables, each read when it
 * is first asked for. For list and doctor; the parser is in events/parse.h.
 */
#pragma once

#include "events/metrics.h"
#include "events/parse.h"
#include "events/pmu.h"
#include "events/vendor.h"

const struct host *event_env_host(const struct event_env *env);
const struct host_cpu_model *event_env_model(struct event_env *env);
int event_env_pmus(struct event_env *env, struct pmu_set **ret, struct err *err);
/* The vendor tables; an empty set when there are none. */
int event_env_vendor(struct event_env *env, struct vendor **ret, struct err *err);
/* The metrics of the user's files; none when there is no directory. -ENOENT and words when it has
 * none for the CPU. */
int event_env_metrics(struct event_env *env, const struct metrics **ret, struct err *err);
