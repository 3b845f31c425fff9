/* Accounting of records, and the run file: what is written is read the same; damage is named. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "latency/analysis.h"
#include "latency/run-file.h"

static struct latency_record sample(unsigned cpu, enum latency_context context, int64_t latency_ns)
{
	return (struct latency_record){.kind = LATENCY_SAMPLE,
				       .cpu = cpu,
				       .pid = -1,
				       .sample = {.context = context, .latency_ns = latency_ns}};
}

static struct latency_record noise(unsigned cpu, enum noise_class class, int number,
				   const char *name, int64_t duration_ns)
{
	return (struct latency_record){.kind = LATENCY_NOISE,
				       .cpu = cpu,
				       .pid = -1,
				       .noise = {.class = class,
						 .number = number,
						 .name = name,
						 .duration_ns = duration_ns}};
}

static void take(struct latency_run *run, struct latency_record record)
{
	EXPECT_INT(latency_run_take(run, &record), 0);
}

TEST(names)
{
	EXPECT_STR(latency_tool_name(LATENCY_TIMERLAT), "timerlat");
	EXPECT_STR(latency_tool_name(LATENCY_CYCLIC), "cyclic");
	EXPECT_STR(latency_tool_name((enum latency_tool)77), "unknown");
	EXPECT_STR(latency_engine_name(ENGINE_LIGHT), "BPF light");
	EXPECT_STR(latency_engine_name((enum latency_engine_id)77), "unknown");
	EXPECT_INT(latency_engine_letter(ENGINE_USER), 'U');
	EXPECT_INT(latency_engine_letter((enum latency_engine_id)77), '?');
}

TEST(samples_are_counted_per_cpu_and_context)
{
	struct latency_run run;
	struct latency_series total = {0};

	ASSERT(latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_BPF) == 0);
	run.limits.irq_ns = 1000;
	run.limits.thread_ns = 5000;
	take(&run, sample(7, LATENCY_IRQ, 999));
	take(&run, sample(2, LATENCY_IRQ, 1000));
	take(&run, sample(2, LATENCY_THREAD, 5001));
	take(&run, sample(2, LATENCY_IRQ, -20));
	EXPECT_INT(run.cpus.len, 2);
	EXPECT_INT(run.cpus.data[0].cpu, 2);
	EXPECT_INT(run.cpus.data[0].context[LATENCY_IRQ].over_threshold, 1);
	EXPECT_INT(run.cpus.data[0].context[LATENCY_IRQ].negative, 1);
	EXPECT_INT(run.cpus.data[0].context[LATENCY_IRQ].values.count, 1);
	EXPECT_INT(run.cpus.data[0].context[LATENCY_THREAD].over_threshold, 1);
	EXPECT_INT(run.cpus.data[1].context[LATENCY_IRQ].over_threshold, 0);
	EXPECT_INT(run.cpus.data[1].context[LATENCY_THREAD].current_ns, LATENCY_UNKNOWN_NS);
	EXPECT(latency_run_has(&run, LATENCY_THREAD) && !latency_run_has(&run, LATENCY_USER));
	EXPECT_INT(latency_run_worst(&run, LATENCY_IRQ)->cpu, 2);
	EXPECT(latency_run_worst(&run, LATENCY_USER) == NULL);
	EXPECT_INT(latency_run_total(&run, LATENCY_IRQ, &total), 0);
	EXPECT_INT(total.values.count, 2);
	EXPECT_INT(latency_series_min(&total), 999);
	EXPECT_INT(latency_series_max(&total), 1000);
	EXPECT_INT(total.negative, 1);
	EXPECT(!latency_run_incomplete(&run));
	latency_series_fini(&total);
	latency_run_fini(&run);
}

TEST(impossible_records_are_refused)
{
	struct latency_run run;
	struct latency_record record = sample(100000, LATENCY_IRQ, 1);

	ASSERT(latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_BPF) == 0);
	EXPECT_INT(latency_run_take(&run, &record), -EINVAL);
	record = sample(0, (enum latency_context)9, 1);
	EXPECT_INT(latency_run_take(&run, &record), -EINVAL);
	record = noise(0, (enum noise_class)9, 0, "x", 1);
	EXPECT_INT(latency_run_take(&run, &record), -EINVAL);
	latency_run_fini(&run);
}

TEST(empty_and_cut_series_tell_no_percentile)
{
	struct latency_series series;

	latency_series_init(&series);
	EXPECT_INT(latency_series_percentile(&series, 0.5), LATENCY_UNKNOWN_NS);
	EXPECT_INT(latency_series_min(&series), LATENCY_UNKNOWN_NS);
	EXPECT_INT(latency_series_max(&series), LATENCY_UNKNOWN_NS);
	EXPECT(isnan(latency_series_average(&series)));
	for (int i = 1; i <= 90; i++)
		EXPECT_INT(latency_series_add(&series, i), 0);
	/* ten more are known only to lie beyond */
	series.values.count += 10;
	series.above_last = 10;
	series.has_max = false;
	EXPECT_INT(latency_series_percentile(&series, 0.5), 50);
	EXPECT_INT(latency_series_percentile(&series, 0.9), 90);
	EXPECT_INT(latency_series_percentile(&series, 0.99), LATENCY_UNKNOWN_NS);
	EXPECT_INT(latency_series_percentile(&series, 1), LATENCY_UNKNOWN_NS);
	latency_series_fini(&series);
}

TEST(noise_counts_follow_the_periods)
{
	struct latency_run run;
	struct latency_record gap = {.kind = LATENCY_GAP, .cpu = 1, .pid = -1};
	struct latency_record period = {.kind = LATENCY_PERIOD, .cpu = 1, .pid = -1};
	struct latency_cpu *cpu;

	ASSERT(latency_run_init(&run, LATENCY_OSNOISE, ENGINE_TRACER) == 0);
	take(&run, noise(1, NOISE_IRQ, 236, "local_timer", 3000));
	take(&run, noise(1, NOISE_IRQ, 236, "local_timer", 5000));
	take(&run, noise(1, NOISE_THREAD, 12, "kworker/1:0", 9000));
	gap.gap.duration_ns = 7000;
	take(&run, gap);
	gap.gap.duration_ns = 10000;
	gap.gap.interferences = 1;
	gap.gap.explained_ns = 8000;
	take(&run, gap);
	cpu = latency_run_cpu(&run, 1);
	EXPECT_INT(cpu->class_count[NOISE_IRQ], 2);
	EXPECT_INT(cpu->class_count[NOISE_UNEXPLAINED], 1);
	EXPECT_INT(cpu->noise_ns, 17000);
	EXPECT_INT(cpu->unexplained_inside_ns, 2000);
	EXPECT_INT(cpu->gaps.values.count, 2);
	EXPECT(!cpu->class_known[NOISE_NMI]);
	period.period.runtime_ns = 1000000;
	period.period.noise_ns = 16000;
	period.period.max_single_ns = 9500;
	period.period.count[NOISE_IRQ] = 3;
	take(&run, period);
	take(&run, noise(1, NOISE_IRQ, 236, "local_timer", 4000));
	cpu = latency_run_cpu(&run, 1);
	EXPECT_INT(cpu->class_count[NOISE_IRQ], 3);
	EXPECT_INT(cpu->noise_ns, 16000);
	EXPECT_INT(cpu->max_single_ns, 10000);
	EXPECT_INT(cpu->class_ns[NOISE_IRQ], 12000);
	EXPECT(cpu->class_known[NOISE_NMI]);
	EXPECT_INT(run.sources.len, 3);
	EXPECT_INT(run.sources.data[0].count, 3);
	EXPECT_INT(run.sources.data[0].total_ns, 12000);
	latency_run_fini(&run);
}

TEST(negative_durations_are_said)
{
	struct latency_run run;

	ASSERT(latency_run_init(&run, LATENCY_OSNOISE, ENGINE_TRACER) == 0);
	take(&run, noise(0, NOISE_SOFTIRQ, 3, "NET_RX", -99000));
	take(&run, noise(0, NOISE_SOFTIRQ, 3, "NET_RX", -99000));
	EXPECT_INT(run.warnings.len, 1);
	EXPECT_INT(run.cpus.data[0].class_count[NOISE_SOFTIRQ], 2);
	EXPECT_INT(run.cpus.data[0].class_ns[NOISE_SOFTIRQ], 0);
	latency_run_fini(&run);
}

TEST(losses_make_it_incomplete)
{
	struct latency_run run;
	struct latency_record lost = {.kind = LATENCY_LOST, .cpu = 3, .lost = {.events = 12}};

	ASSERT(latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_TRACER) == 0);
	EXPECT_INT(latency_run_lost(&run), 0);
	take(&run, lost);
	EXPECT_INT(latency_run_lost(&run), 12);
	EXPECT_INT(latency_run_cpu(&run, 3)->lost, 12);
	EXPECT(latency_run_incomplete(&run));
	lost.lost.events = 0;
	take(&run, lost);
	EXPECT_INT(latency_run_lost(&run), LATENCY_UNKNOWN_NS);
	latency_run_fini(&run);
}

TEST(steal_hwlat_and_stop)
{
	struct latency_run run;
	struct latency_record record = {.kind = LATENCY_STEAL, .steal = {.duration_ns = 400}};

	ASSERT(latency_run_init(&run, LATENCY_HWNOISE, ENGINE_TRACER) == 0);
	take(&run, record);
	record.steal.duration_ns = 500;
	take(&run, record);
	EXPECT_INT(run.cpus.data[0].steal_ns, 900);
	EXPECT_INT(run.cpus.data[0].steal_max_ns, 500);
	record = (struct latency_record){
		.kind = LATENCY_HWLAT,
		.hwlat = {.inner_ns = 8000, .outer_ns = 9000, .nmi_total_ns = 700, .nmi_count = 2}};
	take(&run, record);
	EXPECT_INT(run.cpus.data[0].max_single_ns, 9000);
	EXPECT_INT(run.cpus.data[0].class_count[NOISE_NMI], 2);
	EXPECT_INT(latency_series_max(&run.cpus.data[0].inner), 8000);
	record = (struct latency_record){.kind = LATENCY_STOPPED, .cpu = 0};
	take(&run, record);
	EXPECT(run.stopped);
	latency_run_fini(&run);
}

TEST(too_many_sources_are_joined)
{
	struct latency_run run;
	char name[32];
	uint64_t count = 0;

	ASSERT(latency_run_init(&run, LATENCY_OSNOISE, ENGINE_BPF) == 0);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "job%d", i / 2);
		struct latency_record record = noise(0, NOISE_THREAD, i, name, 10);
		EXPECT_INT(latency_run_take(&run, &record), 0);
	}
	EXPECT_INT(run.sources.len, LATENCY_SOURCES_MAX + 1);
	vec_for_each(&run.sources, source)
		count += source->count;
	EXPECT_INT(count, 5000);
	EXPECT(run.joined_sources > 0);
	EXPECT_STR(strtab_text(&run.names, run.sources.data[LATENCY_SOURCES_MAX].name), "(others)");
	latency_run_fini(&run);
}

/* --- the run file -------------------------------------------------------------------------- */

static void add_verdict(struct latency_run *run)
{
	struct latency_verdict verdict = latency_verdict_empty();

	verdict.cpu = 2;
	verdict.seq = 9;
	verdict.total_ns = 4601000;
	verdict.blocking_pid = 24898;
	verdict.decided = true;
	verdict.class_ns[NOISE_SOFTIRQ] = 25400;
	verdict.culprit_ns = 4367700;
	(void)strtab_intern_text(&run->names, "exit from idle", &verdict.culprit);
	verdict.parts = calloc(2, sizeof(*verdict.parts));
	verdict.stack = calloc(1, sizeof(*verdict.stack));
	run->verdicts = calloc(1, sizeof(*run->verdicts));
	if (!verdict.parts || !verdict.stack || !run->verdicts)
		abort();
	verdict.part_count = 2;
	verdict.parts[0] = (struct latency_part){NOISE_SOFTIRQ, 3, 1, 0, -5, 25400};
	verdict.parts[1] =
		(struct latency_part){NOISE_IRQ, -1, 1, 2, LATENCY_UNKNOWN_NS, LATENCY_UNKNOWN_NS};
	verdict.stack_count = 1;
	verdict.stack[0] = verdict.culprit;
	run->verdicts[0] = verdict;
	run->verdict_count = 1;
}

static void make_run(struct latency_run *run, enum latency_tool tool)
{
	if (latency_run_init(run, tool, ENGINE_BPF) < 0)
		abort();
	run->period_ns = 1000000;
	run->limits.thread_ns = 4000;
	(void)latency_run_condition(run, "clocksource", "kvm-clock");
	(void)latency_run_condition(run, "clocksource", "tsc");
	(void)latency_run_warn(run, "a \"quoted\" warning\n");
	for (int i = 0; i < 3000; i++) {
		take(run, sample(2, LATENCY_IRQ, i * 37));
		take(run, sample(5, LATENCY_THREAD, (int64_t)i * i * 1001));
	}
	take(run, sample(5, LATENCY_THREAD, -4));
	take(run, noise(2, NOISE_IRQ, 236, "local_timer", 1234));
	take(run, noise(5, NOISE_THREAD, 77, "kworker/5:1-ev", 55555));
	take(run,
	     (struct latency_record){.kind = LATENCY_GAP, .cpu = 2, .gap = {.duration_ns = 9}});
	take(run, (struct latency_record){.kind = LATENCY_STEAL, .cpu = 2, .steal = {55}});
	add_verdict(run);
}

static char *written(const struct latency_run *run, bool full, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);
	struct err err = {0};

	if (!out || latency_run_write(run, out, full, &err) < 0)
		abort();
	fclose(out);
	return text;
}

static void round_trip(enum latency_tool tool, bool full)
{
	struct latency_run run, again;
	struct err err = {0};
	size_t size = 0, size_again = 0;
	char *first CLEANUP_FREE = NULL, *second CLEANUP_FREE = NULL;

	make_run(&run, tool);
	first = written(&run, full, &size);
	latency_run_fini(&run);
	ASSERT(tap_expect(latency_run_read_bytes(first, size, &again, &err) == 0, __FILE__,
			  __LINE__, "%s", err.text));
	EXPECT_INT(again.tool, tool);
	EXPECT_INT(again.verdict_count, 1);
	EXPECT_INT(again.conditions.len, 1);
	if (full) {
		second = written(&again, full, &size_again);
		EXPECT(size == size_again && memcmp(first, second, size) == 0);
	} else if (tool == LATENCY_TIMERLAT) {
		const struct latency_series *series = &again.cpus.data[1].context[LATENCY_THREAD];

		EXPECT_INT(series->values.count, 3000);
		EXPECT(!series->distribution);
		EXPECT_INT(latency_series_max(series), INT64_C(2999) * 2999 * 1001);
		EXPECT_INT(latency_series_percentile(series, 0.5), LATENCY_UNKNOWN_NS);
	}
	latency_run_fini(&again);
}

TEST(what_is_written_is_read)
{
	round_trip(LATENCY_TIMERLAT, true);
	round_trip(LATENCY_OSNOISE, true);
	round_trip(LATENCY_HWNOISE, true);
	round_trip(LATENCY_CYCLIC, true);
	round_trip(LATENCY_TIMERLAT, false);
	round_trip(LATENCY_OSNOISE, false);
}

TEST(sums_beyond_64_bits_survive)
{
	struct latency_run run, again;
	struct latency_series *series;
	size_t size = 0;
	char *text CLEANUP_FREE = NULL;

	ASSERT(latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_IMPORTED) == 0);
	series = &latency_run_cpu(&run, 0)->context[LATENCY_USER];
	series->distribution = series->has_max = true;
	EXPECT_INT(histogram_add_n(&series->values, UINT64_C(1) << 60, 1000), 0);
	text = written(&run, true, &size);
	latency_run_fini(&run);
	ASSERT(latency_run_read_bytes(text, size, &again, NULL) == 0);
	series = &again.cpus.data[0].context[LATENCY_USER];
	EXPECT(series->values.sum == (unsigned __int128)1000 << 60);
	latency_run_fini(&again);
}

TEST(empty_contexts_are_null_not_zero)
{
	struct latency_run run;
	size_t size = 0;
	char *text CLEANUP_FREE = NULL;

	ASSERT(latency_run_init(&run, LATENCY_TIMERLAT, ENGINE_USER) == 0);
	take(&run, sample(0, LATENCY_USER, 5));
	text = written(&run, false, &size);
	EXPECT(strstr(text, "\"irq\": null") != NULL);
	EXPECT(strstr(text, "\"steal_ns\": null") != NULL);
	EXPECT(strstr(text, "18446744073709551615") == NULL);
	EXPECT(strstr(text, "\"engine\": \"U\"") != NULL);
	latency_run_fini(&run);
}

TEST(damage_is_named)
{
	static const struct {
		const char *document, *words;
	} cases[] = {
		{"[]", "no JSON object"},
		{"{\"schema\":1}", "the key kind is missing"},
		{"{\"kind\":\"timerlat\"}", "the key schema is missing"},
		{"{\"schema\":2,\"kind\":\"timerlat\"}", "schema: written by a newer culprit"},
		{"{\"schema\":1,\"kind\":\"stat\"}", "kind: not a run of timerlat"},
		{"{\"schema\":1,\"kind\":\"timerlat\",\"engine\":\"X\"}", "engine: not an engine"},
		{"{\"cpus\":[{\"cpu\":0},{\"cpu\":1,\"irq\":{\"count\":\"5\"}}]}",
		 "cpus[1].irq.count: not a number"},
		{"{\"cpus\":[{\"cpu\":4096}]}", "cpus[0].cpu: the number is out of range"},
		{"{\"cpus\":[{\"cpu\":1},{\"cpu\":1}]}", "cpus[1]: the CPU was there before"},
		{"{\"cpus\":[{}]}", "cpus[0]: the key cpu is missing"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":1,\"histogram\":[[1,2]]}}]}",
		 "cpus[0].user: the histogram holds more values than the count"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":9,\"histogram\":[[3,1],[2,1]]}}]}",
		 "user.histogram[1]: the buckets are out of order"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":9,\"histogram\":[[257,1]]}}]}",
		 "user.histogram[0]: not the first value of a bucket"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":9,\"histogram\":[[1,1,1]]}}]}",
		 "not a pair"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":1,\"min_ns\":3,\"max_ns\":2}}]}",
		 "the minimum is above the maximum"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":1,\"max_ns\":2,"
		 "\"histogram\":[[50,1]]}}]}",
		 "the maximum is below the last bucket"},
		{"{\"cpus\":[{\"cpu\":0,\"user\":{\"count\":1,\"above_last\":2}}]}",
		 "above_last is more than the count"},
		{"{\"period_ns\":-4}", "period_ns: not a whole number"},
		{"{\"period_ns\":1e9}", "period_ns: not a whole number"},
		{"{\"period_ns\":99999999999999999999}", "period_ns: the number is too large"},
		{"{\"stopped\":1}", "stopped: neither true nor false"},
		{"{\"culprits\":[{\"kind\":\"magic\"}]}", "culprits[0].kind: not a kind of noise"},
		{"{\"culprits\":[{\"name\":\"x\"}]}", "culprits[0]: the key kind is missing"},
		{"{\"culprits\":[{\"kind\":\"irq\"},{\"kind\":\"irq\"}]}",
		 "culprits[1]: the source was there before"},
		{"{\"verdicts\":[{\"context\":\"moon\"}]}",
		 "verdicts[0].context: not irq, thread or user"},
		{"{\"conditions\":[]}", "conditions: not an object"},
		{"{\"warnings\":{}}", "warnings: not an array"},
		{"{\"warnings\":[5]}", "warnings[0]: not a text"},
		{"{\"schema\":1,\"kind\":\"timerlat\"", "byte "},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct latency_run run;
		struct err err = {0};

		EXPECT_INT(latency_run_read_bytes(cases[i].document, strlen(cases[i].document),
						  &run, &err),
			   -EBADMSG);
		tap_expect(strstr(err.text, cases[i].words) != NULL, __FILE__, __LINE__,
			   "\"%s\" does not say \"%s\"", err.text, cases[i].words);
	}
}

TEST(every_cut_and_flip_is_survived)
{
	struct latency_run run, again;
	size_t size = 0;
	char *text CLEANUP_FREE = NULL;

	make_run(&run, LATENCY_OSNOISE);
	text = written(&run, true, &size);
	latency_run_fini(&run);
	for (size_t cut = 0; cut < size; cut += 97)
		EXPECT_INT(latency_run_read_bytes(text, cut, &again, NULL), -EBADMSG);
	for (size_t at = 0; at < size; at += 61) {
		char kept = text[at];

		text[at] ^= 0x11;
		if (latency_run_read_bytes(text, size, &again, NULL) == 0)
			latency_run_fini(&again);
		text[at] = kept;
	}
	EXPECT_INT(latency_run_read_bytes(text, size, &again, NULL), 0);
	latency_run_fini(&again);
}

TEST(memory_has_a_budget)
{
	struct latency_run run;
	struct err err = {0};
	struct str doc = {0};

	str_puts(&doc, "{\"culprits\":[");
	for (int i = 0; i < 2000; i++)
		str_printf(&doc,
			   "%s{\"kind\":\"irq\",\"number\":%d,\"histogram_count\":1,\"histogram\":["
			   "[%llu,1]]}",
			   i ? "," : "", i, 1ULL << 62);
	str_puts(&doc, "],\"cpus\":[");
	for (int i = 0; i < 4000; i++)
		str_printf(&doc, "%s{\"cpu\":%d,\"irq\":{\"count\":1,\"histogram\":[[%llu,1]]}}",
			   i ? "," : "", i, 1ULL << 62);
	str_puts(&doc, "]}");
	EXPECT_INT(latency_run_read_bytes(doc.data, doc.len, &run, &err), -EBADMSG);
	EXPECT(strstr(err.text, "too much memory") != NULL);
	str_fini(&doc);
}

TEST(a_file_is_named_in_its_error)
{
	struct latency_run run;
	struct err err = {0};

	EXPECT_INT(latency_run_read("/nonexistent/run.json", &run, &err), -ENOENT);
	EXPECT(strstr(err.text, "/nonexistent/run.json") != NULL);
}
