/* What is done with finished runs: limits, differences, pictures. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "latency/run-diff.h"
#include "latency/sla.h"
#include "view/distribution-plot.h"

/* A run of two CPUs whose thread latencies are base, base + 1 us .. in a hundred steps, with a tail
 * of tail. */
static int make_run(struct latency_run *run, uint64_t base_ns, uint64_t tail_ns)
{
	int r = latency_run_init(run, LATENCY_TIMERLAT, ENGINE_BPF);
	for (unsigned cpu = 0; r == 0 && cpu < 2; cpu++) {
		for (unsigned i = 0; r == 0 && i < 10000; i++) {
			struct latency_record record = {
				.kind = LATENCY_SAMPLE, .cpu = cpu, .pid = -1};
			record.sample.context = LATENCY_THREAD;
			record.sample.seq = i;
			record.sample.latency_ns =
				(int64_t)(i == 9999 ? tail_ns : base_ns + (i % 100) * 10);
			r = latency_run_take(run, &record);
		}
	}
	run->duration_ns = 10 * NSEC_PER_SEC;
	return r;
}

static enum sla_state check_rule(const char *text, const struct latency_run *run,
				 struct sla_result *ret)
{
	struct sla sla = {0};
	struct err err = {0};
	int r = sla_parse(text, &sla, &err);
	tap_expect(r == 0, __FILE__, __LINE__, "%s: %s", text, err.text);
	if (r == 0)
		sla_check(&sla.rules.data[0], run, ret);
	sla_fini(&sla);
	return ret->state;
}

TEST(limits_hold_on_the_worst_cpu)
{
	struct latency_run run;
	struct sla_result result;
	ASSERT(make_run(&run, 5000, 80000) == 0);
	EXPECT_INT(check_rule("thread.p99<=7us", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("thread.max<=80us", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("thread.max<80us", &run, &result), SLA_EXCEEDED);
	EXPECT_NEAR(result.value, 80000, 0);
	EXPECT_INT(check_rule("thread.p99.99<=6100ns", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("thread.p9999<=6100ns", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("thread.count>=10000", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("irq.max<=1us", &run, &result), SLA_UNKNOWN);
	EXPECT(*result.reason);
	/* nothing is proven by a run that lost records, but what is exceeded is */
	run.lost_records = 1;
	EXPECT_INT(check_rule("thread.max<=80us", &run, &result), SLA_UNKNOWN);
	EXPECT_INT(check_rule("thread.max<=70us", &run, &result), SLA_EXCEEDED);
	latency_run_fini(&run);
}

TEST(noise_limits)
{
	struct latency_run run;
	struct sla_result result;
	ASSERT(latency_run_init(&run, LATENCY_OSNOISE, ENGINE_TRACER) == 0);
	struct latency_cpu *cpu = latency_run_cpu(&run, 3);
	ASSERT(cpu != NULL);
	cpu->runtime_ns = NSEC_PER_SEC;
	cpu->noise_ns = 500000;
	cpu->max_single_ns = 9000;
	cpu->class_known[NOISE_NMI] = true;
	EXPECT_INT(check_rule("noise.available>=99.9%", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("noise.available>=99.96%", &run, &result), SLA_EXCEEDED);
	EXPECT_INT(result.cpu, 3);
	EXPECT_INT(check_rule("noise.single<=9us", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("nmi.count<=0", &run, &result), SLA_KEPT);
	EXPECT_INT(check_rule("irq.count<=0", &run, &result), SLA_UNKNOWN);
	latency_run_fini(&run);
}

TEST(rules_that_are_none_say_what_they_may_be)
{
	static const char *const wrong[][2] = {
		{"thread.p99", "no rule"},
		{"thread.p99<=10", "needs a unit"},
		{"thread.p999999x<=10us", "none of min"},
		{"cpu.max<=10us", "none of irq, thread"},
		{"noise.available>=99", "share"},
		{"noise.foo>=99", "single, max and available"},
		{"", "no rule"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		struct sla sla = {0};
		struct err err = {0};
		EXPECT_INT(sla_parse(wrong[i][0], &sla, &err), -EINVAL);
		tap_expect(strstr(err.text, wrong[i][1]), __FILE__, __LINE__, "'%s': %s",
			   wrong[i][0], err.text);
		sla_fini(&sla);
	}
}

static const struct latency_diff_row *row_of(const struct latency_diff *diff, int context,
					     double share)
{
	vec_for_each(&diff->rows, row) {
		if (row->context == context && fabs(row->share - share) < 1e-9)
			return row;
	}
	return NULL;
}

TEST(a_slower_run_is_significantly_slower_and_the_same_is_not)
{
	struct latency_run base, same, slow;
	struct latency_diff diff;
	ASSERT(make_run(&base, 5000, 80000) == 0 && make_run(&same, 5000, 80000) == 0 &&
	       make_run(&slow, 6000, 81000) == 0);
	ASSERT(latency_diff_make(&base, &slow, &diff) == 0);
	const struct latency_diff_row *median = row_of(&diff, LATENCY_THREAD, 0.5);
	ASSERT(median != NULL);
	EXPECT(median->significant);
	EXPECT_NEAR(median->ratio, 6500.0 / 5500, 0.02);
	latency_diff_fini(&diff);
	ASSERT(latency_diff_make(&base, &same, &diff) == 0);
	vec_for_each(&diff.rows, row)
		EXPECT(!row->significant);
	latency_diff_fini(&diff);
	latency_run_fini(&base);
	latency_run_fini(&same);
	latency_run_fini(&slow);
}

TEST(new_sources_of_noise_stand_first)
{
	struct latency_run base, new;
	struct latency_diff diff;
	ASSERT(make_run(&base, 5000, 80000) == 0 && make_run(&new, 5000, 80000) == 0);
	struct noise_source *tick = latency_run_source(&base, NOISE_IRQ, 236, "local_timer", NULL);
	ASSERT(tick != NULL);
	tick->count = 10000;
	tick->total_ns = 20000000;
	tick = latency_run_source(&new, NOISE_IRQ, 236, "local_timer", NULL);
	ASSERT(tick != NULL);
	tick->count = 10010;
	tick->total_ns = 20020000;
	struct noise_source *worker =
		latency_run_source(&new, NOISE_THREAD, 77, "kworker/3:1", "vmstat_update");
	ASSERT(worker != NULL);
	worker->count = 500;
	worker->total_ns = 5000000;
	ASSERT(latency_diff_make(&base, &new, &diff) == 0);
	ASSERT(diff.sources.len == 2);
	EXPECT_STR(diff.sources.data[0].name, "kworker/3:1");
	EXPECT_STR(diff.sources.data[0].function, "vmstat_update");
	EXPECT(diff.sources.data[0].is_new && diff.sources.data[0].significant);
	EXPECT_NEAR(diff.sources.data[0].new_rate, 50, 1e-9);
	EXPECT(!diff.sources.data[1].is_new && !diff.sources.data[1].significant);
	latency_diff_fini(&diff);
	latency_run_fini(&base);
	latency_run_fini(&new);
}

TEST(pictures_show_every_run_and_escape_names)
{
	struct histogram values = {0}, empty = {0};
	struct str svg = {0}, html = {0};
	for (uint64_t i = 1; i < 1000; i++)
		ASSERT(histogram_add_n(&values, i * 100, 1000 / i + 1) == 0);
	struct plot_series series[] = {
		{.panel = "IRQ",
		 .name = "a<b.json",
		 .run = 0,
		 .values = &values,
		 .distribution = true},
		{.panel = "IRQ",
		 .name = "second",
		 .run = 1,
		 .values = &values,
		 .distribution = true},
		{.panel = "Thread",
		 .name = "second",
		 .run = 1,
		 .values = &empty,
		 .distribution = true},
	};
	struct plot_options options = {.title = "t & u"};
	ASSERT(distribution_plot_svg(series, 3, &options, &svg) == 0);
	EXPECT(strstr(str_text(&svg), "a&lt;b.json") && !strstr(str_text(&svg), "a<b"));
	EXPECT(strstr(str_text(&svg), "t &amp; u") && strstr(str_text(&svg), "no samples"));
	EXPECT(strstr(str_text(&svg), "p99"));
	ASSERT(distribution_plot_html(series, 3, &options, &html) == 0);
	EXPECT(strstr(str_text(&html), "<table>") && strstr(str_text(&html), "<svg"));
	EXPECT_INT(distribution_plot_svg(&series[2], 1, &options, &svg), -ENODATA);
	str_fini(&svg);
	str_fini(&html);
	histogram_fini(&values);
}
