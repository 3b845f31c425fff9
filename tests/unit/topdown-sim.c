#include "topdown-sim.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"

#define DEVICES       "/sys/bus/event_source/devices"
#define CYCLES_PER_NS 1.0
#define LIVE_STEP_NS  (2 * NSEC_PER_MSEC) /* a reading of the clock while something is counted */
#define TRIAL_STEP_NS 1000
#define PHASE_NS      (40 * NSEC_PER_MSEC) /* of a thread moving between kinds of cores */

struct sim sim;
const char *sim_counts_folder = "";

/* --- what cmd/ needs of the rest of the program ---------------------------------------------- */

int cmd_write_stdout(const struct command *self, const void *text, unsigned long size)
{
	str_append(&sim.out, text, size);
	return EXIT_DONE;
}

int cmd_fail(const struct command *self, int code, const struct err *err)
{
	snprintf(sim.error, sizeof(sim.error), "%s", err_text(err, code));
	return EXIT_FAILED;
}

int cmd_failf(const struct command *self, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(sim.error, sizeof(sim.error), fmt, args);
	va_end(args);
	return EXIT_FAILED;
}

void json_document(struct json *json, const char *kind)
{
	json_object(json, NULL);
	json_text(json, "kind", kind);
}

/* --- PMUs ------------------------------------------------------------------------------------ */

static struct sim_pmu *pmu_of(const struct perf_event_attr *attr)
{
	unsigned type =
		attr->type == PERF_TYPE_HARDWARE ? (unsigned)(attr->config >> 32) : attr->type;

	for (unsigned i = 0; i < sim.pmu_count; i++)
		if (sim.pmus[i].type == type)
			return &sim.pmus[i];
	return attr->type == PERF_TYPE_HARDWARE ? &sim.pmus[0] : NULL;
}

/* Where the thread is: the first kind of core for core_share of every phase. Trials stay where they
 * were sent. */
static bool is_here(const struct sim_pmu *pmu)
{
	bool first = (double)(sim.now % PHASE_NS) < sim.core_share * (double)PHASE_NS;

	return sim.live == 0 || sim.opening || (pmu == &sim.pmus[0]) == first;
}

static double rate(const struct perf_event_attr *attr, uint64_t now)
{
	const struct sim_pmu *pmu = pmu_of(attr);
	double wobble = 1 + sim.wobble * ((double)(sim.runs % 3) - 1);

	if (attr->type == PERF_TYPE_HARDWARE && (uint32_t)attr->config == PERF_COUNT_HW_CPU_CYCLES)
		return CYCLES_PER_NS;
	for (unsigned i = 0; pmu && i < pmu->truths; i++)
		if (pmu->truth[i].config == attr->config)
			return CYCLES_PER_NS * pmu->truth[i].rate *
			       (attr->config == sim.wobbly ? wobble : 1);
	return 0;
}

/* PERF_METRICS and slots stand beside the general counters: for the fake PMU they are software. */
static bool beside(const struct perf_event_attr *attr, const struct sim_pmu *pmu)
{
	return !pmu->atom && attr->type == pmu->type &&
	       (attr->config == 0x400 ||
		(attr->config >= 0x8000 && attr->config <= 0x8700 && (attr->config & 0xff) == 0));
}

static double fake_rate(const struct perf_event_attr *attr, uint64_t now)
{
	struct perf_event_attr real = *attr;

	if (attr->type == PERF_TYPE_SOFTWARE) { /* config2 keeps the PMU */
		real.type = (uint32_t)attr->config2;
		real.config2 = 0;
	}
	return rate(&real, now);
}

static bool schedulable(const struct perf_event_attr *attr)
{
	struct perf_event_attr real = *attr;
	const struct sim_pmu *pmu;

	if (attr->type == PERF_TYPE_SOFTWARE)
		real.type = (uint32_t)attr->config2;
	pmu = pmu_of(&real);
	return pmu && is_here(pmu);
}

static int encode(const struct sim_pmu *pmu, int fd)
{
	return fd < 0 ? fd : 1000 * (1 + (int)(pmu - sim.pmus)) + fd;
}

static struct sim_pmu *decode(int fd)
{
	return &sim.pmus[fd / 1000 - 1];
}

static void pass_time(uint64_t ns)
{
	for (unsigned i = 0; i < sim.pmu_count; i++)
		fake_advance(&sim.pmus[i].fake, ns);
	sim.now += ns;
}

static int sim_open(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags)
{
	struct sim_pmu *pmu = pmu_of(attr);
	struct perf_event_attr own = *attr;
	int leader = group_fd < 0 ? -1 : group_fd % 1000, fd;

	if (!pmu)
		return -ENOENT;
	if (beside(attr, pmu)) {
		const struct fake_event *first = leader < 0 ? NULL : &pmu->fake.events[leader];

		if (attr->config != 0x400 && (!first || first->attr.config != 0x400)) {
			sim.metrics_alone++;
			return -EINVAL; /* as the kernel says it */
		}
		own.type = PERF_TYPE_SOFTWARE;
		own.config2 = pmu->type;
	}
	if (own.enable_on_exec)
		own.disabled = 0;
	/* One CPU's for a thread; four CPUs' when they are counted themselves. */
	pmu->fake.counters = pmu->counters * (cpu >= 0 ? 4 : 1);
	sim.last = *attr;
	sim.opening = true; /* the kernel's check of a group is not about where the thread is */
	fd = fake_ops.open(&pmu->fake, &own, pid, cpu, leader, flags);
	sim.opening = false;
	sim.opens++;
	if (fd >= 0 && (pid > 0 || cpu >= 0) && sim.live++ == 0)
		sim.runs++;
	return encode(pmu, fd);
}

static int sim_read(void *ctx, int fd, uint64_t *words, unsigned count)
{
	return fake_ops.read(&decode(fd)->fake, fd % 1000, words, count);
}

static int sim_enable(void *ctx, int fd)
{
	return fake_ops.enable(&decode(fd)->fake, fd % 1000);
}

/* A command may end before its counters were read once: time passes for it here at the latest. */
static int sim_disable(void *ctx, int fd)
{
	if (sim.live && sim.ended != sim.runs) {
		sim.ended = sim.runs;
		for (int i = 0; i < 100; i++)
			pass_time(LIVE_STEP_NS);
	}
	return fake_ops.disable(&decode(fd)->fake, fd % 1000);
}

static void sim_close(void *ctx, int fd)
{
	struct fake_pmu *fake = &decode(fd)->fake;
	const struct fake_event *event = &fake->events[fd % 1000];

	if (event->pid > 0 || event->cpu >= 0)
		sim.live--;
	fake_ops.close(fake, fd % 1000);
}

static uint64_t sim_clock(void *ctx)
{
	pass_time(sim.live ? LIVE_STEP_NS : TRIAL_STEP_NS);
	return sim.now;
}

/* Trials are where they were sent: see is_here(). */
static int sim_run_on(void *ctx, const struct cpuset *cpus)
{
	return 0;
}

static const struct counter_ops sim_ops = {sim_open,  sim_read,  sim_enable, sim_disable,
					   sim_close, sim_clock, sim_run_on};

void sim_truth(unsigned pmu, uint64_t config, double rate_per_cycle)
{
	struct sim_pmu *p = &sim.pmus[pmu];

	for (unsigned i = 0; i < p->truths; i++)
		if (p->truth[i].config == config) {
			p->truth[i].rate = rate_per_cycle;
			return;
		}
	p->truth[p->truths].config = config;
	p->truth[p->truths++].rate = rate_per_cycle;
}

uint64_t sim_kernel_code(const struct topdown_table *table, uint64_t config)
{
	if (table->vendor == TOPDOWN_INTEL && (config & 0xffff) == 0x100)
		return (config & ~UINT64_C(0xffff)) | 0xc0;
	if (table->vendor == TOPDOWN_INTEL && (config & 0xffff) == 0x200)
		return (config & ~UINT64_C(0xffff)) | 0x3c;
	return config;
}

/* The number of a line, without the commas in it. */
static double line_number(const char *text)
{
	char digits[64];
	size_t len = 0;

	for (; *text && *text != '\n' && len < sizeof(digits) - 1; text++)
		if (*text != ',' && *text != ' ')
			digits[len++] = *text;
	digits[len] = '\0';
	return strtod(digits, NULL);
}

static void follow(unsigned pmu, const char *cpu)
{
	const struct topdown_table *table = topdown_table_find(cpu);
	CLEANUP_FREE char *text = NULL;
	double cycles = 0;
	char path[512];
	size_t size;

	snprintf(path, sizeof(path), "%s/%s%s.counts", COUNTS_DIR, sim_counts_folder, cpu);
	if (file_read(path, 1 << 20, &text, &size, NULL) < 0 || !table)
		abort();
	for (int pass = 0; pass < 2; pass++)
		for (char *line = text; line && *line;
		     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
			char name[128];
			unsigned factor;
			int event;

			if (sscanf(line, "%127[^ \n#]", name) != 1)
				continue;
			event = topdown_event_match(table, name, &factor);
			if (event < 0)
				continue;
			if (pass == 0 && strstr(name, "smt_on") == NULL &&
			    (sim_kernel_code(table, table->events[event].config) == 0x3c ||
			     (table->vendor == TOPDOWN_AMD &&
			      table->events[event].config == 0x76) ||
			     (table->vendor == TOPDOWN_ARM && table->events[event].config == 0x11)))
				cycles = line_number(line + strlen(name)) / factor;
			else if (pass == 1)
				sim_truth(pmu, sim_kernel_code(table, table->events[event].config),
					  line_number(line + strlen(name)) / factor / cycles);
		}
	/* Cycles by the PMU's own code. */
	sim_truth(pmu,
		  table->vendor == TOPDOWN_INTEL ? 0x3c
		  : table->vendor == TOPDOWN_AMD ? 0x76
						 : 0x11,
		  1);
}

void sim_add_pmu(const char *name, unsigned type, const char *cpu, unsigned counters,
		 const char *cpus)
{
	struct sim_pmu *pmu = &sim.pmus[sim.pmu_count];
	char path[128], text[32];

	fake_init(&pmu->fake, counters);
	pmu->fake.rate = fake_rate;
	pmu->fake.schedulable = schedulable;
	pmu->type = type;
	pmu->counters = counters;
	pmu->atom = strstr(name, "atom") != NULL;
	sim.pmu_count++;
	snprintf(path, sizeof(path), DEVICES "/%s/type", name);
	snprintf(text, sizeof(text), "%u\n", type);
	fake_root_file(&sim.root, path, text);
	if (cpus) {
		snprintf(path, sizeof(path), DEVICES "/%s/cpus", name);
		fake_root_file(&sim.root, path, cpus);
	}
	if (cpu)
		follow(sim.pmu_count - 1, cpu);
}

void sim_make(const char *cpu, const char *cpuinfo, unsigned counters)
{
	str_fini(&sim.out);
	memset(&sim, 0, sizeof(sim));
	sim.core_share = 1;
	sim.now = NSEC_PER_SEC;
	fake_root_make(&sim.root);
	fake_root_file(&sim.root, "/proc/cpuinfo", cpuinfo);
	fake_root_file(&sim.root, "/proc/sys/kernel/perf_event_paranoid", "-1\n");
	fake_root_file(&sim.root, "/sys/devices/system/cpu/online", "0-3\n");
	fake_root_file(&sim.root, "/sys/devices/system/cpu/possible", "0-3\n");
	for (unsigned i = 0; i < 4; i++) {
		char path[128], text[16];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/core_id", i);
		snprintf(text, sizeof(text), "%u\n", i / 2);
		fake_root_file(&sim.root, path, text);
	}
	sim.machine = (struct topdown_machine){.host = &sim.root.host, .ops = &sim_ops};
	if (counters)
		sim_add_pmu(strstr(cpuinfo, "0x41") ? "armv8_pmuv3_0" : "cpu", 4, cpu, counters,
			    NULL);
}

void sim_end(void)
{
	fake_root_remove(&sim.root);
	str_fini(&sim.out);
}

extern const struct command command_topdown;

void sim_topdown(const char *words)
{
	char copy[1024], *save = NULL, *argv[64] = {0};
	static char name[] = "topdown";
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	argv[argc++] = name;
	for (char *word = strtok_r(copy, " ", &save); word && argc < 63;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	str_clear(&sim.out);
	sim.error[0] = '\0';
	sim.runs = sim.ended = 0;
	sim.status = topdown_main(&command_topdown, &sim.machine, argc, argv);
}

/* --- what it printed ------------------------------------------------------------------------- */

static const char *find_node(const char *text, const char *node)
{
	char quoted[128];

	snprintf(quoted, sizeof(quoted), "\"name\": \"%s\"", node);
	return text ? strstr(text, quoted) : NULL;
}

static double share_in(const char *text, const char *node)
{
	const char *at = find_node(text, node);

	at = at ? strstr(at, "\"raw_share\": ") : NULL;
	return at && strncmp(at + 13, "null", 4) != 0 ? strtod(at + 13, NULL) : NAN;
}

double sim_share(const char *node)
{
	return share_in(str_text(&sim.out), node);
}

double sim_share_after(const char *mark, const char *node)
{
	return share_in(strstr(str_text(&sim.out), mark), node);
}

const char *sim_value(const char *node, const char *key)
{
	static char value[256];
	char quoted[128];
	const char *at = find_node(str_text(&sim.out), node);

	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = at ? strstr(at, quoted) : NULL;
	if (!at)
		return "none";
	at += strlen(quoted);
	at += *at == '"';
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\"\n"), at);
	if (value[0] && value[strlen(value) - 1] == ',')
		value[strlen(value) - 1] = '\0';
	return value;
}
