/*
 * The tables of runs, word for word: a made-up engine is a table of records. Print what is made
 * with CULPRIT_GOLDEN_WRITE=1 to renew tests/unit/golden/latency-*.txt after looking at it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/latency-tables.h"
#include "harness/tap.h"
#include "latency/analysis.h"

/* What the tables need of the commands. */
int cmd_fail(const struct command *self, int code, const struct err *err)
{
	return EXIT_FAILED;
}

int cmd_write_stdout(const struct command *self, const void *text, unsigned long size)
{
	return EXIT_DONE;
}

static int feed(struct latency_run *run, struct latency_analysis *analysis, unsigned cpu, int pid,
		const char *comm, struct latency_record record, int64_t time_ns)
{
	int r;

	record.cpu = cpu;
	record.pid = pid;
	record.comm = comm;
	record.time_ns = (uint64_t)time_ns;
	r = latency_run_take(run, &record);
	return r == 0 && analysis ? MIN(latency_analysis_take(analysis, &record), 0) : r;
}

/* For a run without analysis; when and by whom does not matter. */
static void put(struct latency_run *run, unsigned cpu, struct latency_record record)
{
	EXPECT_INT(feed(run, NULL, cpu, -1, NULL, record, 0), 0);
}

struct event {
	unsigned cpu;
	enum latency_context context;
	bool noise;
	enum noise_class class;
	int number;
	const char *name, *function;
	int64_t at_ns, for_ns; /* after the expiry; a sample's latency is at_ns */
};

static const struct event cycle[] = {
	{0, LATENCY_IRQ, true, NOISE_IRQ, 30, "igb-rx", NULL, -4000, 9000},
	{0, LATENCY_IRQ, false, 0, 0, NULL, NULL, 6200, 0},
	{0, LATENCY_IRQ, true, NOISE_IRQ, 236, "local_timer", "timerlat_irq", 5900, 3100},
	{0, LATENCY_IRQ, true, NOISE_SOFTIRQ, 3, "NET_RX", NULL, 9000, 11000},
	{0, LATENCY_IRQ, true, NOISE_THREAD, 4711, "hog", NULL, 20000, 80000},
	{0, LATENCY_THREAD, false, 0, 0, NULL, NULL, 100400, 0},
	{0, LATENCY_USER, false, 0, 0, NULL, NULL, 101500, 0},
};

static void play(struct latency_run *run, struct latency_analysis *analysis)
{
	static const char *const frames[] = {"timerlat_irq", "asm_sysvec_apic_timer_interrupt",
					     "_raw_spin_unlock_irqrestore", "hog_write"};
	struct latency_record stack = {.kind = LATENCY_STACK,
				       .stack = {.frames = frames, .count = 4}};

	for (size_t i = 0; i < ARRAY_LEN(cycle); i++) {
		const struct event *e = &cycle[i];
		int64_t base = 1000000000;
		struct latency_record record = {.kind = e->noise ? LATENCY_NOISE : LATENCY_SAMPLE};

		if (e->noise) {
			record.noise.class = e->class;
			record.noise.number = e->number;
			record.noise.name = e->name;
			record.noise.function = e->function;
			record.noise.start_ns = base + e->at_ns;
			record.noise.duration_ns = e->for_ns;
		} else {
			record.sample.context = e->context;
			record.sample.seq = 7;
			record.sample.latency_ns = e->at_ns;
		}
		EXPECT_INT(feed(run, analysis, e->cpu, 4711, "hog", record,
				base + e->at_ns + e->for_ns),
			   0);
		if (i == 1)
			EXPECT_INT(feed(run, analysis, 0, 4711, "hog", stack, base + 6300), 0);
	}
}

static void make_timerlat(struct latency_run *run)
{
	struct latency_analysis *analysis = NULL;

	if (latency_run_init(run, LATENCY_TIMERLAT, ENGINE_BPF) < 0)
		abort();
	run->limits.thread_ns = 100000;
	run->period_ns = 1000000;
	run->duration_ns = UINT64_C(5000000000);
	(void)strtab_intern_text(&run->names,
				 "the kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER)",
				 &run->engine_reason);
	(void)strtab_intern_text(&run->names, "CLOCK_MONOTONIC", &run->clock);
	(void)latency_run_condition(run, "hypervisor", "kvm");
	(void)latency_run_condition(run, "policy", "SCHED_FIFO 95");
	(void)latency_run_warn(
		run, "a warning that is long enough to be wrapped because it goes on and on "
		     "behind the hundredth column of a terminal");
	if (latency_analysis_new(run, 0, &analysis) < 0)
		abort();
	for (unsigned cpu = 0; cpu < 2; cpu++)
		for (unsigned context = 0; context < LATENCY_CONTEXTS; context++)
			for (int i = 0; i < 1000; i++)
				put(run, cpu,
				    (struct latency_record){
					    .kind = LATENCY_SAMPLE,
					    .sample = {(enum latency_context)context, 0,
						       500 + 10 * i + 7000 * (int64_t)context}});
	play(run, analysis);
	put(run, 1, (struct latency_record){.kind = LATENCY_STEAL, .steal = {5900000}});
	run->stopped = true;
	EXPECT_INT(latency_analysis_finish(analysis), 0);
	latency_analysis_free(analysis);
}

static void make_osnoise(struct latency_run *run)
{
	if (latency_run_init(run, LATENCY_OSNOISE, ENGINE_TRACER) < 0)
		abort();
	run->threshold_ns = 5000;
	run->runtime_ns = run->period_ns = NSEC_PER_SEC;
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		struct latency_record record = {.kind = LATENCY_PERIOD};

		for (int i = 1; i < 300; i++)
			put(run, cpu,
			    (struct latency_record){.kind = LATENCY_GAP,
						    .gap = {.duration_ns = 5000 + 100 * (uint64_t)i,
							    .interferences = (uint64_t)i % 2,
							    .explained_ns = 4000}});
		record.period.runtime_ns = NSEC_PER_SEC;
		record.period.noise_ns = 2083000;
		record.period.max_single_ns = 34900;
		record.period.count[NOISE_UNEXPLAINED] = 149;
		record.period.count[NOISE_IRQ] = 1012;
		put(run, cpu, record);
		for (int i = 0; i < 20; i++)
			put(run, cpu,
			    (struct latency_record){.kind = LATENCY_NOISE,
						    .noise = {NOISE_THREAD, 77 + i, "kworker/0:1",
							      "flush_to_ldisc", 0, 7000 + i}});
	}
	run->lost_records = 3;
}

static void compare(const char *name, struct str *have)
{
	char path[512];
	CLEANUP_FREE char *want = NULL;
	size_t size = 0;
	struct err err = {0};

	snprintf(path, sizeof(path), "%s/unit/golden/latency-%s.txt", CULPRIT_TESTS_DIR, name);
	if (getenv("CULPRIT_GOLDEN_WRITE"))
		(void)file_write_atomic(path, str_text(have), have->len, 0644, &err);
	EXPECT_INT(file_read(path, 1 << 20, &want, &size, &err), 0);
	if (want)
		EXPECT_STR(str_text(have), want);
	str_fini(have);
}

static struct latency_view plain(const struct latency_run *run)
{
	struct latency_view view = latency_view_of(run);

	view.color = false;
	view.width = 0;
	return view;
}

/* A test of what is put into out about a run that make() makes. */
#define PAGE(name_, make_)                                                                  \
	static void put_##name_(struct latency_run *, struct latency_view *, struct str *); \
	TEST(name_)                                                                         \
	{                                                                                   \
		struct latency_run run;                                                     \
		struct latency_view view;                                                   \
		struct str out = {0};                                                       \
                                                                                            \
		make_(&run);                                                                \
		view = plain(&run);                                                         \
		put_##name_(&run, &view, &out);                                             \
		str_fini(&out);                                                             \
		latency_run_fini(&run);                                                     \
	}                                                                                   \
	static void put_##name_(struct latency_run *run, struct latency_view *view, struct str *out)

PAGE(timerlat_top, make_timerlat)
{
	latency_put_head(view, out);
	latency_put_top(view, out);
	latency_put_verdicts(view, 0, out);
	latency_put_end(view, out);
	EXPECT_INT(latency_put_culprits(view, 2, out), 0);
	compare("timerlat-top", out);
}

PAGE(timerlat_in_nanoseconds_without_contexts, make_timerlat)
{
	view->nano = view->no_irq = true;
	latency_put_top(view, out);
	EXPECT(strstr(str_text(out), "IRQ") == NULL);
	EXPECT(strstr(str_text(out), "(ns)") != NULL);
	EXPECT(strstr(str_text(out), "100400") != NULL);
	str_clear(out);
	EXPECT_INT(latency_put_csv(view, false, out), 0);
	compare("timerlat-csv", out);
}

PAGE(timerlat_hist, make_timerlat)
{
	view->bucket_ns = 2000;
	view->entries = 10;
	latency_put_hist(view, out);
	compare("timerlat-hist", out);
	view->no_index = view->with_zeros = view->no_header = view->no_summary = view->no_thread =
		true;
	latency_put_hist(view, out);
	compare("timerlat-hist-bare", out);
	EXPECT_INT(latency_put_csv(view, true, out), 0);
	EXPECT(strncmp(str_text(out), "cpu,context,low_ns,high_ns,count\n", 33) == 0);
}

PAGE(osnoise_top_and_hist, make_osnoise)
{
	latency_put_head(view, out);
	latency_put_top(view, out);
	latency_put_hist(view, out);
	latency_put_end(view, out);
	EXPECT_INT(latency_put_culprits(view, 3, out), 0);
	compare("osnoise", out);
	EXPECT_INT(latency_put_csv(view, false, out), 0);
	compare("osnoise-csv", out);
	run->tool = LATENCY_HWNOISE;
	latency_put_top(view, out);
	EXPECT(strstr(str_text(out), "Softirq") == NULL);
}

TEST(nothing_is_told_as_nothing)
{
	struct latency_run run;
	struct latency_view view;
	struct str out = {0};

	ASSERT(latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_USER) == 0);
	view = plain(&run);
	latency_put_top(&view, &out);
	EXPECT_STR(str_text(&out), "\n0 samples\n");
	str_clear(&out);
	run.tool = LATENCY_OSNOISE;
	run.threshold_ns = 5000;
	(void)latency_run_cpu(&run, 0);
	latency_put_hist(&view, &out);
	EXPECT_STR(str_text(&out), "\n0 samples above 5.0 us\n");
	str_fini(&out);
	latency_run_fini(&run);
}
