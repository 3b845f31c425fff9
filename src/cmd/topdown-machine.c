/*
 * The trees of this machine: one for each core PMU, with the table of its cores. Cores without a
 * table get the cycle accounting that the kernel's own events allow.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/topdown.h"

#define DEVICES      "/sys/bus/event_source/devices"
#define TSC_LEAST_NS (5 * NSEC_PER_MSEC)

/* Sorted by name, as topdown_event_find() wants it. */
static const struct topdown_event generic_events[] = {
	{"branch-misses", "branch-misses", PERF_COUNT_HW_BRANCH_MISSES, 0},
	{"branches", "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0},
	{"cycles", "cycles", PERF_COUNT_HW_CPU_CYCLES, 0},
	{"instructions", "instructions", PERF_COUNT_HW_INSTRUCTIONS, 0},
	{"stalled-cycles-backend", "stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	 0},
	{"stalled-cycles-frontend", "stalled-cycles-frontend",
	 PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 0},
};

static const struct topdown_let generic_lets[] = {
	{"CYCLES", "cycles"},
	{"INSTRUCTIONS", "instructions"},
};

static const struct topdown_node generic_nodes[] = {
	{"frontend_stalled", "Frontend_Stalled", "stalled\\-cycles\\-frontend / CYCLES", -1, 1,
	 TOPDOWN_CLOCKS, 0.15, -1, 0, false,
	 "Share of cycles in which nothing was sent on because fetch had nothing.",
	 "Code layout and size (PGO, BOLT), huge pages for code, predictable branches."},
	{"backend_stalled", "Backend_Stalled", "stalled\\-cycles\\-backend / CYCLES", -1, 1,
	 TOPDOWN_CLOCKS, 0.20, -1, 0, false,
	 "Share of cycles in which nothing was sent on because the core had no room.",
	 "Better data locality, shorter dependency chains."},
	{"branch_mispredict_rate", "Branch_Mispredict_Rate", "branch\\-misses / branches", -1, 1,
	 TOPDOWN_EVENTS, 0.02, -1, 0, false, "Share of branches guessed wrong.",
	 "Sort data, use masks or conditional moves."},
};

const struct topdown_table topdown_generic_table = {
	.set = "cycle accounting by the kernel's events",
	.cpus = "",
	.pmu = "cpu",
	.vendor = TOPDOWN_AMD, /* no PERF_METRICS */
	.width = 1,
	.own_thresholds = true,
	.events = generic_events,
	.event_count = ARRAY_LEN(generic_events),
	.lets = generic_lets,
	.let_count = ARRAY_LEN(generic_lets),
	.nodes = generic_nodes,
	.node_count = ARRAY_LEN(generic_nodes),
};

struct core_pmu {
	char name[48];
	unsigned type;
	bool has_cpus;
	struct cpuset cpus;
};

static bool read_pmu(const struct host *host, const char *name, struct core_pmu *ret)
{
	CLEANUP_FREE char *text = NULL;
	struct host_number type;
	char path[128];
	size_t size;

	snprintf(path, sizeof(path), DEVICES "/%.47s/type", name);
	type = host_number(host, path);
	if (!type.known || type.value < 0 || strlen(name) >= sizeof(ret->name))
		return false;
	*ret = (struct core_pmu){.type = (unsigned)type.value};
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	snprintf(path, sizeof(path), DEVICES "/%.47s/cpus", name);
	if (host_read(host, path, 1 << 16, &text, &size, NULL) == 0)
		ret->has_cpus =
			cpuset_parse(text, &ret->cpus, NULL) == 0 && cpuset_count(&ret->cpus) > 0;
	return true;
}

static int by_type(const void *a, const void *b)
{
	unsigned x = ((const struct core_pmu *)a)->type, y = ((const struct core_pmu *)b)->type;

	return x < y ? -1 : x > y;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The core PMUs: cpu_core and cpu_atom, or cpu; Arm's are armv8_... and armv9_... */
static unsigned find_pmus(const struct host *host, struct core_pmu *pmus)
{
	static const char *const names[] = {"cpu_core", "cpu_atom", "cpu"};
	char path[300];
	struct dirent *entry;
	unsigned len = 0;
	DIR *dir;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((i < 2 || len == 0) && read_pmu(host, names[i], &pmus[len]))
			len++;
	if (len > 0 || host_path(host, path, sizeof(path), DEVICES) < 0 || !(dir = opendir(path)))
		return len;
	while (len < TOPDOWN_TREES_MAX && (entry = readdir(dir)) != NULL)
		if ((str_prefix(entry->d_name, "armv8_", NULL) ||
		     str_prefix(entry->d_name, "armv9_", NULL)) &&
		    read_pmu(host, entry->d_name, &pmus[len]))
			len++;
	closedir(dir);
	qsort(pmus, len, sizeof(*pmus), by_type);
	return len;
}

/* The name that --cpu has for the cores of a PMU, "" when none is known. */
static void core_name(const struct host *host, const struct host_cpu_model *model,
		      const struct core_pmu *pmu, bool several, char *name, size_t size)
{
	struct host_cpu_model own = *model;
	char path[128];

	if (model->vendor == CPU_VENDOR_ARM && several && pmu->has_cpus) {
		struct host_number midr;

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/regs/identification/midr_el1",
			 cpuset_next(&pmu->cpus, 0));
		midr = host_number(host, path);
		own.midr = midr.known ? (uint64_t)midr.value : 0;
		own.uarch = midr.known ? host_cpu_uarch(&own) : NULL;
	}
	snprintf(name, size, "%s", own.uarch ? own.uarch : "");
	if (strcmp(name, "n2") == 0 && (own.midr >> 20 & 0xf) == 0 && (own.midr & 0xf) < 3)
		snprintf(name, size, "n2-r0p%u", (unsigned)(own.midr & 0xf)); /* the erratum */
	if (strcmp(pmu->name, "cpu_atom") == 0 && strlen(name) > 2 &&
	    strcmp(name + strlen(name) - 2, "-p") == 0)
		name[strlen(name) - 1] = 'e';
}

static void label_tree(struct topdown_tree *tree)
{
	const char *kind = strcmp(tree->pmu_name, "cpu_core") == 0   ? "P-cores"
			   : strcmp(tree->pmu_name, "cpu_atom") == 0 ? "E-cores"
								     : "cores of";

	snprintf(tree->label, sizeof(tree->label),
		 strcmp(kind, "cores of") == 0 ? "%s %.36s" : "%s (%.36s)", kind, tree->pmu_name);
}

/*
 * Arm kernels list the architected events that the core says it has; opening another one works and
 * counts nothing. Numbers that no kernel lists are not known to be there or not.
 */
static int find_lacking(const struct host *host, struct topdown_tree *tree)
{
	char path[300], folder[256];
	bool have[0x40] = {false};
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), DEVICES "/%.47s/events", tree->pmu_name);
	if (tree->table->vendor != TOPDOWN_ARM ||
	    host_path(host, path, sizeof(path), "%s", folder) < 0 || !(dir = opendir(path)))
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		struct host_text line;
		unsigned long number;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.230s/%.60s", folder, entry->d_name);
		line = host_line(host, path);
		if (!line.known || strncmp(line.value, "event=", 6) != 0)
			continue;
		number = strtoul(line.value + 6, NULL, 0);
		if (number < ARRAY_LEN(have))
			have[number] = true;
	}
	closedir(dir);
	tree->lacking = calloc(tree->table->event_count + 1, sizeof(*tree->lacking));
	if (!tree->lacking)
		return -ENOMEM;
	for (size_t i = 0; i < tree->table->event_count; i++) {
		uint64_t number = tree->table->events[i].config;

		tree->lacking[i] = have[0x11] && number < 0x38 && !have[number];
	}
	return 0;
}

void topdown_list_events(const struct host *host, const struct topdown_tree *tree, struct str *out)
{
	VEC(char *) names = {0};
	char path[300];
	struct dirent *entry;
	DIR *dir = NULL;

	if (host_path(host, path, sizeof(path), DEVICES "/%.47s/events", tree->pmu_name) == 0)
		dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL) {
		char *name = entry->d_name[0] == '.' || strchr(entry->d_name, '.')
				     ? NULL
				     : strdup(entry->d_name);

		if (name && vec_push(&names, name) < 0)
			free(name);
	}
	if (dir)
		closedir(dir);
	if (names.len > 0)
		qsort(names.data, names.len, sizeof(*names.data), by_name);
	vec_for_each(&names, name) {
		str_printf(out, " %s", *name);
		free(*name);
	}
	vec_fini(&names);
}

static uint64_t read_tsc(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

void topdown_tsc_begin(struct topdown_tsc *tsc)
{
	*tsc = (struct topdown_tsc){
		.hz = counter_tsc_hz(), .start = read_tsc(), .start_ns = clock_monotonic_ns()};
}

struct expr_value topdown_tsc_frequency(const struct topdown_tsc *tsc)
{
	uint64_t now = read_tsc(), ns = clock_monotonic_ns() - tsc->start_ns;

	if (tsc->hz > 0)
		return expr_number(tsc->hz);
	if (tsc->start > 0 && now > tsc->start && ns >= TSC_LEAST_NS)
		return expr_number((double)(now - tsc->start) * 1e9 / (double)ns);
	return expr_missing(EXPR_NOT_COUNTED,
			    "the frequency of the time stamp counter is not known");
}

static int add_tree(struct topdown_job *job, const struct host_cpu_model *model,
		    const struct core_pmu *pmu, bool several, struct err *err)
{
	struct topdown_side *side = &job->sides[0];
	struct topdown_tree *tree = &side->trees[side->tree_count];
	char name[32];
	int r = 0;

	core_name(job->machine->host, model, pmu, several, name, sizeof(name));
	*tree = (struct topdown_tree){.table = NULL};
	if (job->options.metrics)
		r = topdown_user_table(job, model, name, &tree->table, err);
	else
		tree->table = topdown_table_find(name);
	if (r < 0)
		return r;
	if (!tree->table) {
		tree->table = &topdown_generic_table;
		tree->pmu.generic = true;
		str_printf(&job->notes,
			   "No top-down events are known for %s (%s): these are the stalled cycles "
			   "that the kernel can count.\n",
			   several ? pmu->name : "this core",
			   name[0]        ? name
			   : model->known ? model->id
					  : model->why);
	}
	side->tree_count++; /* from here on side_fini() frees what it has */
	tree->pmu.type = pmu->type;
	tree->pmu.partial = several;
	tree->pmu.cpus = pmu->cpus;
	snprintf(tree->pmu_name, sizeof(tree->pmu_name), "%s", pmu->name);
	if (several)
		label_tree(tree);
	if (find_lacking(job->machine->host, tree) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (job->options.metrics)
		r = topdown_user_encode(job, tree, err);
	if (r == 0)
		r = topdown_new(tree->table, &tree->topdown, err);
	if (r == 0 && job->options.metrics)
		topdown_user_fold(job, model, tree);
	return r;
}

int topdown_detect(struct topdown_job *job, struct err *err)
{
	const struct topdown_machine *machine = job->machine;
	struct host_number smt = host_number(machine->host, "/sys/devices/system/cpu/smt/active");
	struct core_pmu pmus[TOPDOWN_TREES_MAX];
	unsigned len = find_pmus(machine->host, pmus);
	struct host_cpu_model model;
	int r = 0;

	host_cpu_model_read(machine->host, &model);
	snprintf(job->cpu_model, sizeof(job->cpu_model), "%s",
		 model.name[0] ? model.name : model.id);
	if (len == 0) {
		struct host_text hypervisor = host_hypervisor(machine->host);

		return err_set(err, -ENOENT, "the kernel shows no counters of the core%s",
			       hypervisor.known && strcmp(hypervisor.value, "none") != 0
				       ? ": this is a virtual machine whose host gives it none"
				       : "");
	}
	job->smt = smt.known && smt.value;
	if (machine->ops == &counter_kernel) /* a simulated machine has none */
		topdown_tsc_begin(&job->tsc);
	for (unsigned i = 0; i < len && r == 0; i++)
		r = add_tree(job, &model, &pmus[i], len > 1, err);
	for (unsigned t = 0; t < job->sides[0].tree_count && r == 0; t++)
		job->half_core |= job->sides[0].trees[t].table->percore && job->smt &&
				  (!job->options.all_cpus || job->options.per_thread);
	return r;
}
