/*
 * A simulated machine for the whole of culprit topdown: host files, core PMUs with a few counters
 * that take turns, PERF_METRICS that exist only behind slots, fixed counters known by the kernel's
 * codes only, cores of two kinds between which a thread moves. What its events count follows a file
 * of counts (tests/cli/topdown/CPU.counts), so that the tree of the file is the truth.
 *
 * Commands run for real; what they "do" is simulated while their counters are read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cmd/topdown.h"
#include "fake-pmu.h"
#include "fake-root.h"

#define SIM_PMUS   2
#define SIM_EVENTS 256

struct sim_pmu {
	struct fake_pmu fake;
	unsigned type, counters; /* counters: of one CPU */
	bool atom;
	struct {
		uint64_t config;
		double rate; /* per cycle */
	} truth[SIM_EVENTS];
	unsigned truths;
};

struct sim {
	struct fake_root root;
	struct sim_pmu pmus[SIM_PMUS];
	unsigned pmu_count;
	double core_share; /* two kinds: of the time on the first; 1 otherwise */
	double wobble;     /* how much the rates of one event change from run to run */
	uint64_t wobbly;   /* its config */
	unsigned live;     /* open events that are not trials */
	unsigned runs;     /* times that live went up from 0 */
	unsigned ended;    /* the run whose time has passed */
	unsigned metrics_alone, opens;
	bool opening;
	struct perf_event_attr last; /* that was opened */
	uint64_t now;
	struct topdown_machine machine;
	struct str out; /* what the command printed */
	char error[1024];
	int status;
};

extern struct sim sim;
extern const char *sim_counts_folder; /* below the folder of the counts, with a / behind */

/* A machine of one kind of core: the name of --cpu, /proc/cpuinfo, general counters. */
void sim_make(const char *cpu, const char *cpuinfo, unsigned counters);
/* Adds a PMU that follows DIR/CPU.counts. */
void sim_add_pmu(const char *name, unsigned type, const char *cpu, unsigned counters,
		 const char *cpus);
/* An event's rate per cycle, over what the file says. */
void sim_truth(unsigned pmu, uint64_t config, double rate);
/* The kernel's codes for the fixed counters of Intel's tables; other codes as they are. */
uint64_t sim_kernel_code(const struct topdown_table *table, uint64_t config);
void sim_end(void);
/* culprit topdown WORDS... on the machine; the words are cut at blanks. */
void sim_topdown(const char *words);

/* raw_share of a node in the JSON that was printed, behind its from-th byte; NaN: null or none. */
double sim_share(const char *node);
double sim_share_after(const char *mark, const char *node);
/* The text of a key's value ("measured") of a node. */
const char *sim_value(const char *node, const char *key);

#define SIM_SPR                                                                          \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Sim " \
	"SPR\nstepping\t: 6\n\n"
#define SIM_SKL                                                                         \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 94\nmodel name\t: Sim " \
	"SKL\nstepping\t: 3\n\n"
#define SIM_ICL                                                                          \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 125\nmodel name\t: Sim " \
	"ICL\nstepping\t: 5\n\n"
#define SIM_ADL                                                                          \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\nmodel name\t: Sim " \
	"ADL\nstepping\t: 2\n\n"
#define SIM_SRF                                                                          \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 175\nmodel name\t: Sim " \
	"SRF\nstepping\t: 3\n\n"
#define SIM_LNL                                                                          \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 189\nmodel name\t: Sim " \
	"LNL\nstepping\t: 1\n\n"
#define SIM_HSW                                                                         \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 60\nmodel name\t: Sim " \
	"HSW\nstepping\t: 3\n\n"
#define SIM_ZEN4                                                                             \
	"vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Sim Zen " \
	"4\nstepping\t: 1\n\n"
#define SIM_ZEN5                                                                            \
	"vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: Sim Zen " \
	"5\nstepping\t: 1\n\n"
#define SIM_ARM(part)                                                                        \
	"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n" \
	"CPU part\t: " part "\nCPU revision\t: 3\n\n"
