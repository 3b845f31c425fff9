/* The engines with threads of our own: rings, names, and short live measurements. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "harness/tap.h"
#include "latency/engine.h"
#include "latency/irq-names.h"
#include "latency/proc-deltas.h"
#include "latency/ring.h"
#include "latency/sampler.h"

#define ok(condition, ...) tap_expect((condition), __FILE__, __LINE__, __VA_ARGS__)
#define LIVE_NS            (20 * NSEC_PER_SEC) /* given up then; the wanted records end it long before */

/* --- rings ----------------------------------------------------------------------------------- */

static void fill(struct ring *ring, unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ring_write(ring, &(struct lat_record){.kind = LAT_GAP, .number = (int)(from + i)});
}

TEST(ring_order)
{
	struct lat_record slots[8] = {0}, record;
	unsigned long long head = 0;
	struct ring ring = {.slots = slots, .mask = 7, .head = &head};

	ok(!lat_ring_read(&ring, false, &record), "an empty ring has nothing");
	fill(&ring, 0, 8);
	for (int i = 0; i < 8; i++)
		if (!lat_ring_read(&ring, false, &record) || record.number != i)
			ok(false, "record %d of a full ring", i);
	ok(ring.lost == 0 && !lat_ring_read(&ring, false, &record), "a full ring loses nothing");
	fill(&ring, 8, 20);
	ok(lat_ring_read(&ring, false, &record) && record.number == 8 + (int)ring.lost,
	   "an overtaken reader knows how many records it missed: %llu",
	   (unsigned long long)ring.lost);
	while (lat_ring_read(&ring, false, &record))
		;
	ok(record.number == 27, "and reads to the end");
	head++; /* a writer that was interrupted after taking its place */
	fill(&ring, 29, 1);
	ok(!lat_ring_read(&ring, false, &record), "an unfinished record is waited for");
	{
		uint64_t lost = ring.lost;

		ok(lat_ring_read(&ring, true, &record) && record.number == 29 &&
			   ring.lost == lost + 1,
		   "once the writers have ended it counts as lost");
	}
}

#define WRITES 200000

static void *write_many(void *arg)
{
	fill(arg, 0, WRITES);
	return NULL;
}

/* Two writers at once and a reader: every record is read whole, or counted as lost. */
TEST(ring_threads)
{
	struct lat_record *slots = calloc(1024, sizeof(*slots)), record;
	unsigned long long head = 0;
	struct ring ring = {.slots = slots, .mask = 1023, .head = &head};
	pthread_t threads[2];
	uint64_t seen = 0, bad = 0;

	for (unsigned i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, write_many, &ring);
	while (seen + ring.lost < 2 * WRITES) {
		if (!lat_ring_read(&ring, false, &record)) {
			sched_yield();
			continue;
		}
		bad += record.kind != LAT_GAP || record.number < 0 || record.number >= WRITES;
		seen++;
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ok(bad == 0 && seen + ring.lost == 2 * WRITES,
	   "two writers: %llu read, %llu lost, none torn", (unsigned long long)seen,
	   (unsigned long long)ring.lost);
	free(slots);
}

/* --- names ----------------------------------------------------------------------------------- */

static const char interrupts_before[] =
	"           CPU0       CPU2       \n"
	"  0:         35          0   IO-APIC   2-edge      timer\n"
	" 16:          5          7   IO-APIC  16-fasteoi   i801_smbus, ehci_hcd:usb1\n"
	" 36:          0       1000  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n"
	"120:          9          9\n"
	"LOC:     100000     200000   Local timer interrupts\n"
	"ERR:          0\n";
static const char interrupts_after[] =
	"           CPU0       CPU2       \n"
	"  0:         35          0   IO-APIC   2-edge      timer\n"
	" 16:          6          7   IO-APIC  16-fasteoi   i801_smbus, ehci_hcd:usb1\n"
	" 36:          0       1500  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n"
	" 41:          0          3  PCI-MSIX-0000:00:03.0   0-edge      nvme0q1\n"
	"120:          9          9\n"
	"LOC:     100010     201250   Local timer interrupts\n"
	"ERR:          0\n";
static const char interrupts_arm[] =
	"           CPU0       CPU1       \n"
	" 11:       5000       6000     GICv3  27 Level     arch_timer\n"
	"IPI0:       120        130       Rescheduling interrupts\n";

TEST(names_of_interrupts)
{
	struct irq_names names;
	struct str text = {0};

	ok(irq_names_parse(interrupts_before, &names) == 0, "interrupts are read");
	names.unknown = 120;
	EXPECT_STR(irq_names_find(&names, 36), "virtio1-req.0");
	EXPECT_STR(irq_names_find(&names, 16), "i801_smbus, ehci_hcd:usb1");
	ok(!irq_names_find(&names, 120), "a line without action has no name");
	irq_names_fini(&names);
	ok(irq_names_parse(interrupts_arm, &names) == 0, "interrupts of an Arm machine");
	EXPECT_STR(irq_names_find(&names, 11), "arch_timer");
	irq_names_fini(&names);
	ok(irq_names_parse("\n 1\n2:\n 3: \n:\n99999999999999: 1 a  b", &names) == 0,
	   "rubbish is passed over");
	irq_names_fini(&names);

	ok(proc_deltas(interrupts_before, interrupts_after, 2, 8, &text) == 3,
	   "three rows counted");
	EXPECT_STR(str_text(&text), "Local timer interrupts 1250, virtio1-req.0 500, nvme0q1 3");
	str_clear(&text);
	ok(proc_deltas(interrupts_before, interrupts_after, 1, 8, &text) == 0,
	   "a CPU without a column has no counts");
	ok(proc_deltas("", "", 0, 8, &text) == 0, "nothing has no counts");
	str_fini(&text);
}

/* --- live ------------------------------------------------------------------------------------ */

struct counts {
	struct latency_sink sink;
	struct latency_run run;
	uint64_t samples[LATENCY_CONTEXTS], noise[NOISE_CLASSES], gaps, periods, stopped, stacks;
	int64_t worst_thread;
	uint64_t wrong; /* negative durations, thread before interrupt */
	int64_t irq[2];
};

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	struct counts *counts = (struct counts *)sink;

	switch (record->kind) {
	case LATENCY_SAMPLE:
		counts->samples[record->sample.context]++;
		counts->wrong += record->sample.latency_ns < 0;
		if (record->sample.context == LATENCY_IRQ)
			counts->irq[record->cpu & 1] = record->sample.latency_ns;
		else if (record->sample.context == LATENCY_THREAD)
			counts->wrong += record->sample.latency_ns < counts->irq[record->cpu & 1];
		break;
	case LATENCY_NOISE:
		counts->noise[record->noise.class]++;
		counts->wrong += record->noise.duration_ns < 0 || !record->noise.name;
		break;
	case LATENCY_GAP:
		counts->gaps++;
		break;
	case LATENCY_PERIOD:
		counts->periods++;
		break;
	case LATENCY_STOPPED:
		counts->stopped++;
		break;
	case LATENCY_STACK:
		counts->stacks++;
		break;
	default:
		break;
	}
	return latency_run_take(&counts->run, record);
}

static struct latency_options live_options(enum latency_tool tool)
{
	struct latency_options options = {
		.tool = tool,
		.period_ns = tool == LATENCY_TIMERLAT ? NSEC_PER_MSEC : 50 * NSEC_PER_MSEC,
		.runtime_ns = 40 * NSEC_PER_MSEC,
		.threshold_ns = 1000,
		.policy = -1,
		.clock = CLOCK_MONOTONIC,
	};

	cpuset_add(&options.cpus, (unsigned)sched_getcpu());
	return options;
}

/* Measures until enough() or the time is over; false: the engine cannot run here. */
static bool measure(const struct latency_engine_ops *ops, const struct latency_options *options,
		    bool (*enough)(const struct counts *), struct counts *counts, const char *trace)
{
	uint64_t end = clock_monotonic_ns() + LIVE_NS;
	struct latency_engine *engine;
	struct err err = {0};
	int r;

	memset(counts, 0, sizeof(*counts));
	counts->sink.take = take;
	latency_run_init(&counts->run, options->tool, ops->id);
	r = ops->probe(options, &err);
	if (r < 0) {
		tap_skip("engine %c: %s", latency_engine_letter(ops->id), err_text(&err, r));
		return false;
	}
	r = ops->start(options, &counts->run, &engine, &err);
	if (r < 0) {
		ok(false, "engine %c starts: %s", latency_engine_letter(ops->id),
		   err_text(&err, r));
		return false;
	}
	while (r >= 0 && !enough(counts) && clock_monotonic_ns() < end)
		r = ops->poll(engine, 50, &counts->sink, &err);
	ok(r >= 0 || r == -ECANCELED, "engine %c measures", latency_engine_letter(ops->id));
	r = ops->stop(engine, &counts->sink, &counts->run, &err);
	ok(r == 0, "and stops: %s", err_text(&err, r));
	if (trace)
		ok(ops->trace(engine, trace, &err) == 0, "and writes its flight recorder");
	ops->free(engine);
	return true;
}

static bool enough_samples(const struct counts *c)
{
	return c->samples[LATENCY_USER] >= 100;
}

static bool enough_gaps(const struct counts *c)
{
	return c->periods >= 3 && c->gaps >= 3;
}

static bool ended(const struct counts *c)
{
	return c->stopped > 0;
}

TEST(live_timerlat)
{
	struct latency_options options = live_options(LATENCY_TIMERLAT);
	struct counts counts;

	if (measure(&engine_bpf_ops, &options, enough_samples, &counts, NULL)) {
		uint64_t complete = counts.samples[LATENCY_THREAD];

		ok(counts.samples[LATENCY_IRQ] >= 100 && complete >= 100 &&
			   counts.samples[LATENCY_USER] >= 100,
		   "B: samples of all three contexts");
		ok(complete + 2 >= counts.samples[LATENCY_USER] &&
			   complete <= counts.samples[LATENCY_USER] + 2,
		   "B: as many of the thread as of user space (%llu, %llu)",
		   (unsigned long long)complete, (unsigned long long)counts.samples[LATENCY_USER]);
		ok(counts.noise[NOISE_IRQ] >= complete - 2,
		   "B: the timer's own interrupt is among the noise");
		ok(counts.wrong == 0, "B: no negative time, no thread before its interrupt");
	}
	latency_run_fini(&counts.run);
	if (measure(&engine_light_ops, &options, enough_samples, &counts, NULL))
		ok(counts.samples[LATENCY_THREAD] >= 98 && counts.samples[LATENCY_IRQ] >= 98 &&
			   counts.noise[NOISE_IRQ] == 0,
		   "L: latencies of all three contexts, no noise");
	latency_run_fini(&counts.run);
	if (measure(&engine_user_ops, &options, enough_samples, &counts, NULL))
		ok(counts.samples[LATENCY_THREAD] == 0 && counts.samples[LATENCY_USER] >= 100,
		   "U: latency of user space alone");
	latency_run_fini(&counts.run);
}

TEST(live_limits)
{
	struct latency_options options = live_options(LATENCY_TIMERLAT);
	struct counts counts;
	char trace[64], line[512];
	unsigned lines = 0;
	FILE *file;

	snprintf(trace, sizeof(trace), "%s/flight", tap_dir());
	options.limits.irq_ns = 1; /* the first wake-up reaches it */
	options.stack_ns = 1;
	options.trace = true;
	if (measure(&engine_bpf_ops, &options, ended, &counts, trace)) {
		ok(counts.stopped == 1 && counts.samples[LATENCY_IRQ] == 1 &&
			   counts.samples[LATENCY_THREAD] == 0,
		   "B: the first interrupt over the limit ends it, before the thread runs");
		ok(counts.noise[NOISE_IRQ] >= 1, "B: that interrupt's own end is still recorded");
		ok(counts.stacks == 1, "B: with the stack it interrupted");
		file = fopen(trace, "r");
		while (file && fgets(line, sizeof(line), file))
			lines++;
		if (file)
			fclose(file);
		ok(lines > 4, "B: the flight recorder has %u lines", lines);
	}
	latency_run_fini(&counts.run);
	options = live_options(LATENCY_TIMERLAT);
	options.limits.thread_ns = 1;
	if (measure(&engine_user_ops, &options, ended, &counts, NULL))
		ok(counts.stopped == 1, "U: a limit ends it");
	latency_run_fini(&counts.run);
}

TEST(live_noise)
{
	struct latency_options options = live_options(LATENCY_OSNOISE);
	struct counts counts;

	if (measure(&engine_bpf_ops, &options, enough_gaps, &counts, NULL)) {
		ok(counts.gaps >= 3 && counts.noise[NOISE_IRQ] > 0,
		   "B: gaps, and interrupts in them");
		ok(counts.wrong == 0, "B: no negative duration, every source has a name");
	}
	latency_run_fini(&counts.run);
	if (measure(&engine_user_ops, &options, enough_gaps, &counts, NULL))
		ok(counts.gaps >= 3, "U: gaps");
	latency_run_fini(&counts.run);
	options.threshold_ns = 1;
	options.limits.single_ns = 1;
	if (measure(&engine_user_ops, &options, ended, &counts, NULL))
		ok(counts.stopped >= 1, "U: a gap over the limit ends it");
	latency_run_fini(&counts.run);
}

TEST(refusals)
{
	struct latency_options options = live_options(LATENCY_TIMERLAT);
	struct err err = {0};

	options.workload = WORKLOAD_KERNEL;
	options.workload_chosen = true;
	ok(engine_user_ops.probe(&options, &err) == -EOPNOTSUPP &&
		   strstr(err.text, "kernel threads"),
	   "kernel threads are engine K's: %s", err.text);
	options = live_options(LATENCY_OSNOISE);
	options.runtime_ns = options.period_ns + 1;
	ok(engine_user_ops.probe(&options, &err) == -EINVAL && strstr(err.text, "period"),
	   "a runtime longer than the period: %s", err.text);
	ok(engine_light_ops.probe(&options, &err) == -EOPNOTSUPP, "L measures no noise: %s",
	   err.text);
	options = live_options(LATENCY_TIMERLAT);
	options.policy = SCHED_FIFO;
	options.priority = 200;
	{
		struct latency_engine *engine;
		struct latency_run run;

		latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_USER);
		ok(engine_user_ops.start(&options, &run, &engine, &err) < 0 &&
			   strstr(err.text, "policy fifo, priority 200"),
		   "a policy that was asked for and refused: %s", err.text);
		latency_run_fini(&run);
	}
}
