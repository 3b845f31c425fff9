/*
 * Measurements of other tools, as runs: small texts of our own in each form, and the collected
 * outputs of rtla, cyclictest, oslat, hwlatdetect and the kernel's tracers with the numbers they
 * print.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "latency/analysis.h"
#include "latency/import.h"
#include "latency/trace-text.h"
#include "trace-builder.h"

static const struct latency_import_options defaults = {.keep = 1};

static int import_string(const char *text, struct latency_run *run, struct err *err)
{
	*err = (struct err){0};
	return latency_import_bytes(text, strlen(text), "text", &defaults, run, err);
}

/* A case of the collected outputs, or NULL: the test is skipped. */
static const char *case_path(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "latency_cases/%s", name);
	return tap_data(path);
}

#define OPEN_CASE(name)                                                        \
	const char *path = case_path(name);                                    \
	struct latency_run run;                                                \
	struct err err = {0};                                                  \
	SKIP_IF(!path, "no test data");                                        \
	int opened = latency_import(path, &defaults, &run, &err);              \
	tap_expect(opened == 0, __FILE__, __LINE__, "%s: %s", name, err.text); \
	if (opened < 0)                                                        \
	return

#define REFUSE_CASE(name, words)                                                         \
	do {                                                                             \
		const char *path_ = case_path(name);                                     \
		struct latency_run run_;                                                 \
		struct err err_ = {0};                                                   \
		SKIP_IF(!path_, "no test data");                                         \
		EXPECT(latency_import(path_, &defaults, &run_, &err_) < 0);              \
		tap_expect(strstr(err_.text, words), __FILE__, __LINE__, "%s: %s", name, \
			   err_.text);                                                   \
	} while (0)

static const struct latency_cpu *cpu_of(const struct latency_run *run, unsigned cpu)
{
	static const struct latency_cpu none;
	vec_for_each(&run->cpus, row) {
		if (row->cpu == cpu)
			return row;
	}
	tap_expect(false, __FILE__, __LINE__, "no row of CPU %u", cpu);
	return &none;
}

static void expect_series(const struct latency_series *series, uint64_t count, uint64_t min,
			  uint64_t max, int line)
{
	tap_expect(series->values.count == count && series->values.min == min &&
			   series->values.max == max,
		   __FILE__, line, "count %llu min %llu max %llu, want %llu %llu %llu",
		   (unsigned long long)series->values.count, (unsigned long long)series->values.min,
		   (unsigned long long)series->values.max, (unsigned long long)count,
		   (unsigned long long)min, (unsigned long long)max);
}

#define EXPECT_SERIES(series, count, min, max) expect_series(series, count, min, max, __LINE__)

static const struct noise_source *source_of(const struct latency_run *run, const char *name)
{
	static const struct noise_source none;
	vec_for_each(&run->sources, source) {
		if (strcmp(strtab_text(&run->names, source->name), name) == 0)
			return source;
	}
	tap_expect(false, __FILE__, __LINE__, "no source '%s'", name);
	return &none;
}

/* ---- text of the tracers ---- */

TEST(a_trace_gives_samples_noise_and_the_run_of_both)
{
	struct latency_run run;
	struct err err;
	static const char text[] =
		"# tracer: timerlat\n"
		"     my [task]-3 -77    [004] d..h...   100.000020: #7 context    irq "
		"timer_latency     10000 ns\n"
		"     my [task]-3 -77    [004] d..h...   100.000023: irq_noise: local_timer:236 "
		"start 100.000019000 duration 3000 ns\n"
		"   kworker/4:1-50  (  50) [004] d...3..   100.000031: thread_noise: "
		"kworker/4:1:50 start 100.000024000 duration 6500 ns\n"
		"      timerlat/4-900   [004] .......   100.000033: #7 context thread "
		"timer_latency     23000 ns\n";
	ASSERT(import_string(text, &run, &err) == 0);
	EXPECT_INT(run.tool, LATENCY_TIMERLAT);
	EXPECT_INT(run.engine, ENGINE_IMPORTED);
	EXPECT_INT(run.unknown_lines, 0);
	EXPECT_SERIES(&cpu_of(&run, 4)->context[LATENCY_IRQ], 1, 10000, 10000);
	EXPECT_SERIES(&cpu_of(&run, 4)->context[LATENCY_THREAD], 1, 23000, 23000);
	EXPECT_INT(source_of(&run, "local_timer")->number, 236);
	EXPECT_INT(source_of(&run, "local_timer")->total_ns, 3000);
	EXPECT_INT(source_of(&run, "kworker/4:1")->number, 50);
	EXPECT_INT(source_of(&run, "kworker/4:1")->total_ns, 6500);
	ASSERT(run.verdict_count == 1);
	EXPECT_INT(run.verdicts[0].total_ns, 23000);
	EXPECT_INT(run.verdicts[0].delay_ns, 9000);
	latency_run_fini(&run);
}

TEST(trace_cmd_report_wording)
{
	struct latency_run run;
	struct err err;
	static const char text[] = "cpus=2\n"
				   "          <idle>-0     [001] 54.029346: timerlat:             "
				   "seq:1\tcontext:0\ttimer_latency:2833\n"
				   "      timerlat/1-868   [001] 54.029353: timerlat:             "
				   "seq:1\tcontext:1\ttimer_latency:9820\n";
	ASSERT(import_string(text, &run, &err) == 0);
	EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_IRQ], 1, 2833, 2833);
	EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_THREAD], 1, 9820, 9820);
	latency_run_fini(&run);
}

TEST(lost_events_make_a_trace_incomplete)
{
	struct latency_run run;
	struct err err;
	static const char text[] =
		"   <idle>-0   [001] d.h. 54.029346: #1 context    irq timer_latency 2833 ns\n"
		"CPU:1 [LOST 12 EVENTS]\n"
		"   <...>-9   [001] .... 54.030346: #2 context thread timer_latency 2833 ns\n";
	ASSERT(import_string(text, &run, &err) == 0);
	EXPECT(latency_run_incomplete(&run));
	EXPECT_INT(run.lost_records, 12);
	latency_run_fini(&run);
}

TEST(lines_that_are_none_are_counted_with_the_first)
{
	struct latency_run run;
	struct err err;
	static const char text[] =
		"   <idle>-0   [001] d.h. 54.029346: #1 context    irq timer_latency 2833 ns\n"
		"garbage\n"
		"   <idle>-0   [001] d.h. 54.030346: irq_noise: x:1 start duration 4 ns\n";
	ASSERT(import_string(text, &run, &err) == 0);
	EXPECT_INT(run.unknown_lines, 2);
	EXPECT(run.warnings.len && strstr(strtab_text(&run.names, run.warnings.data[0]), "line 2"));
	latency_run_fini(&run);
}

TEST(case_01_plain_timerlat_trace)
{
	OPEN_CASE("01-timerlat-trace-plain.txt");
	EXPECT_INT(run.cpus.len, 2);
	EXPECT_SERIES(&cpu_of(&run, 0)->context[LATENCY_IRQ], 2, 769, 932);
	EXPECT_SERIES(&cpu_of(&run, 0)->context[LATENCY_THREAD], 2, 3070, 11700);
	EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_IRQ], 2, 935, 2833);
	EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_THREAD], 2, 4351, 9820);
	EXPECT_INT(run.unknown_lines, 0);
	latency_run_fini(&run);
}

TEST(case_03_every_cause_in_one_wake_up)
{
	OPEN_CASE("03-timerlat-multi-cause.txt");
	ASSERT(run.verdict_count == 1);
	const struct latency_verdict *v = &run.verdicts[0];
	EXPECT_INT(v->cpu, 5);
	EXPECT_INT(v->total_ns, 39960);
	EXPECT_INT(v->irq_latency_ns, 13585);
	EXPECT_NEAR((double)v->delay_ns, 13027, 1000); /* the time stamps are cut to microseconds */
	EXPECT_INT(v->timer_irq_ns, 7597);
	EXPECT_INT(v->class_ns[NOISE_IRQ], 7139);
	EXPECT_INT(v->blocking_ns, 9909);
	EXPECT_STR(strtab_text(&run.names, v->blocking_comm), "cc1");
	EXPECT(v->decided);
	latency_run_fini(&run);
}

TEST(case_04_osnoise_periods)
{
	OPEN_CASE("04-osnoise-trace-summary.txt");
	EXPECT_INT(run.tool, LATENCY_OSNOISE);
	EXPECT_INT(run.cpus.len, 4);
	const struct latency_cpu *cpu = cpu_of(&run, 2);
	EXPECT_INT(cpu->runtime_ns, 1000000000);
	EXPECT_INT(cpu->noise_ns, 5675000);
	EXPECT_INT(cpu->max_single_ns, 202000);
	EXPECT_INT(cpu->class_count[NOISE_UNEXPLAINED], 6);
	EXPECT_INT(cpu->class_count[NOISE_IRQ], 1013);
	EXPECT_INT(cpu->class_count[NOISE_SOFTIRQ], 25);
	EXPECT_INT(cpu->class_count[NOISE_THREAD], 21);
	latency_run_fini(&run);
}

TEST(case_05_osnoise_events_by_name)
{
	OPEN_CASE("05-osnoise-events.txt");
	EXPECT_INT(run.tool, LATENCY_OSNOISE);
	EXPECT_INT(source_of(&run, "local_timer")->count, 2);
	EXPECT_INT(source_of(&run, "migration/8")->total_ns, 3068);
	EXPECT_SERIES(&cpu_of(&run, 8)->gaps, 1, 8812, 8812);
	/* 8812 less the timer's 2848 and the thread's 3068 */
	EXPECT_INT(cpu_of(&run, 8)->unexplained_inside_ns, 2896);
	latency_run_fini(&run);
}

TEST(case_07_interleaved_cpus_and_the_exit_from_idle)
{
	OPEN_CASE("07-timerlat-stop-message-interleaved.txt");
	EXPECT(run.stopped);
	EXPECT_INT(run.stopped_cpu, 6);
	ASSERT(run.verdict_count >= 1);
	const struct latency_verdict *v = &run.verdicts[0];
	EXPECT_INT(v->cpu, 6);
	EXPECT_INT(v->total_ns, 41931);
	EXPECT(v->from_idle);
	EXPECT(strstr(strtab_text(&run.names, v->culprit), "idle"));
	latency_run_fini(&run);
}

TEST(case_08_a_clock_too_coarse_gets_no_verdict)
{
	OPEN_CASE("08-timerlat-coarse-clock-m68k.txt");
	EXPECT_SERIES(&cpu_of(&run, 0)->context[LATENCY_IRQ], 2, 108608, 110720);
	for (unsigned i = 0; i < run.verdict_count; i++)
		EXPECT(!run.verdicts[i].decided);
	latency_run_fini(&run);
}

TEST(case_19_stack_buffers_leftovers_are_dropped)
{
	OPEN_CASE("19-rtla-saved-trace-with-garbage-frames.txt");
	EXPECT_INT(run.stopped_cpu, 6);
	const struct latency_verdict *v = NULL;
	for (unsigned i = 0; i < run.verdict_count; i++) {
		if (run.verdicts[i].cpu == 6)
			v = &run.verdicts[i];
	}
	ASSERT(v != NULL);
	EXPECT_INT(v->total_ns, 30328);
	EXPECT_INT(v->stack_count, 7);
	EXPECT_STR(strtab_text(&run.names, v->stack[4]), "_raw_spin_unlock_irqrestore");
	latency_run_fini(&run);
}

TEST(case_20_user_return_is_a_context)
{
	OPEN_CASE("20-timerlat-user-ret.txt");
	EXPECT_SERIES(&cpu_of(&run, 9)->context[LATENCY_USER], 1, 499, 499);
	EXPECT_SERIES(&cpu_of(&run, 2)->context[LATENCY_USER], 1, 462, 462);
	latency_run_fini(&run);
}

TEST(case_29_noise_on_another_clock)
{
	OPEN_CASE("29-own-timerlat-rt-trace.txt");
	EXPECT_SERIES(&cpu_of(&run, 0)->context[LATENCY_IRQ], 2, 2424600, 11453970);
	bool told = false;
	vec_for_each(&run.warnings, warning)
		told |= strstr(strtab_text(&run.names, *warning), "clock") != NULL;
	EXPECT(told);
	latency_run_fini(&run);
}

TEST(case_30_and_31_own_traces)
{
	{
		OPEN_CASE("30-own-osnoise-rt-trace.txt");
		/* the file is two excerpts, the last periods stand in both: counted twice, and told
		 */
		EXPECT_INT(cpu_of(&run, 0)->periods, 3);
		EXPECT(run.warnings.len &&
		       strstr(strtab_text(&run.names, run.warnings.data[0]), "backwards"));
		EXPECT_INT(cpu_of(&run, 0)->max_single_ns, 28190000);
		EXPECT_INT(cpu_of(&run, 1)->noise_ns, (249053 + 2 * 133118) * INT64_C(1000));
		latency_run_fini(&run);
	}
	{
		OPEN_CASE("31-own-hwlat-trace.txt");
		EXPECT_INT(run.tool, LATENCY_HWNOISE);
		EXPECT_SERIES(&cpu_of(&run, 1)->inner, 2, 8058000, 8320000);
		EXPECT_SERIES(&cpu_of(&run, 1)->outer, 2, 8060000, 12048000);
		EXPECT_SERIES(&cpu_of(&run, 0)->inner, 1, 4053000, 4053000);
		latency_run_fini(&run);
	}
}

TEST(trace_dat_is_a_trace_like_any_other)
{
	struct latency_run run;
	struct err err = {0};
	struct str file = {0};
	trace_dat_build('7', "zstd", false, &file);
	ASSERT(str_status(&file) == 0);
	ASSERT(latency_import_bytes(file.data, file.len, "a.dat", &defaults, &run, &err) == 0);
	EXPECT_INT(run.tool, LATENCY_TIMERLAT);
	EXPECT(run.cpus.len > 0 && run.sources.len > 0);
	latency_run_fini(&run);
	EXPECT(latency_import_bytes(file.data, file.len / 2, "half.dat", &defaults, &run, &err) < 0);
	EXPECT(strstr(err.text, "half.dat") && strstr(err.text, "byte"));
	str_fini(&file);
}

/* ---- rtla ---- */

TEST(case_09_irq_latency_without_its_interrupt)
{
	OPEN_CASE("09-rtla-aa-irq-latency-igb.txt");
	ASSERT(run.verdict_count == 1);
	const struct latency_verdict *v = &run.verdicts[0];
	EXPECT_INT(v->cpu, 1);
	EXPECT_INT(v->context, LATENCY_IRQ);
	EXPECT_INT(v->total_ns, 709250);
	EXPECT_STR(strtab_text(&run.names, v->blocking_comm), "ip");
	EXPECT_INT(v->blocking_pid, 3567);
	EXPECT_INT(v->stack_count, 21);
	EXPECT(strstr(strtab_text(&run.names, v->culprit), "igb_update_mc_addr_list") ||
	       strstr(strtab_text(&run.names, v->why), "igb_update_mc_addr_list"));
	latency_run_fini(&run);
}

TEST(case_10_an_analysis_that_lost_its_tabs)
{
	OPEN_CASE("10-rtla-aa-thread-latency-insync.txt");
	ASSERT(run.verdict_count == 1);
	const struct latency_verdict *v = &run.verdicts[0];
	EXPECT_INT(v->cpu, 3);
	EXPECT_INT(v->total_ns, 1235470);
	EXPECT_INT(v->delay_ns, 1300);
	EXPECT_INT(v->irq_latency_ns, 1900);
	EXPECT_INT(v->timer_irq_ns, 3000);
	EXPECT_INT(v->blocking_ns, 1223160);
	EXPECT_INT(v->blocking_pid, 4048);
	EXPECT_INT(v->class_ns[NOISE_IRQ], 4930);
	ASSERT(v->part_count == 1);
	EXPECT_INT(v->parts[0].number, 236);
	EXPECT_INT(v->parts[0].duration_ns, 4930);
	EXPECT(v->decided);
	EXPECT(strstr(strtab_text(&run.names, v->culprit), "insync"));
	latency_run_fini(&run);
}

TEST(case_12_a_histogram_with_empty_columns)
{
	OPEN_CASE("12-rtla-hist-count0-user-threads.txt");
	EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_IRQ], 1, 2000, 2000);
	EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_USER], 1, 36000, 36000);
	EXPECT_SERIES(&cpu_of(&run, 2)->context[LATENCY_THREAD], 1, 52000, 52000);
	EXPECT_INT(cpu_of(&run, 2)->context[LATENCY_USER].values.count, 0);
	ASSERT(run.verdict_count == 1);
	EXPECT_INT(run.verdicts[0].total_ns, 52930);
	EXPECT_INT(run.verdicts[0].delay_ns, 48210);
	EXPECT(run.verdicts[0].from_idle);
	latency_run_fini(&run);
}

TEST(case_13_an_empty_histogram_is_a_result)
{
	OPEN_CASE("13-rtla-osnoise-hist-empty.txt");
	EXPECT_INT(run.tool, LATENCY_OSNOISE);
	EXPECT_INT(run.duration_ns, 5 * INT64_C(1000000000));
	EXPECT_INT(run.cpus.len, 0);
	latency_run_fini(&run);
}

TEST(case_14_and_16_osnoise_and_hwnoise_tables)
{
	{
		OPEN_CASE("14-rtla-osnoise-top.txt");
		const struct latency_cpu *cpu = cpu_of(&run, 1);
		EXPECT_INT(run.cpus.len, 4);
		EXPECT_INT(cpu->periods, 59);
		EXPECT_INT(cpu->runtime_ns, INT64_C(53100000000));
		EXPECT_INT(cpu->noise_ns, 338339000);
		EXPECT_INT(cpu->max_noise_ns, 8092000);
		EXPECT_INT(cpu->max_single_ns, 24000);
		EXPECT_INT(cpu->class_count[NOISE_UNEXPLAINED], 399);
		EXPECT_INT(cpu->class_count[NOISE_THREAD], 31);
		EXPECT_INT(run.duration_ns, 60 * INT64_C(1000000000));
		latency_run_fini(&run);
	}
	{
		OPEN_CASE("16-rtla-hwnoise.txt");
		EXPECT_INT(run.tool, LATENCY_HWNOISE);
		EXPECT_INT(cpu_of(&run, 3)->class_count[NOISE_UNEXPLAINED], 6);
		EXPECT_INT(cpu_of(&run, 7)->class_count[NOISE_NMI], 75);
		EXPECT(!cpu_of(&run, 7)->class_known[NOISE_IRQ]);
		latency_run_fini(&run);
	}
}

TEST(case_15_18_33_histograms_of_rtla)
{
	{
		OPEN_CASE("15-rtla-osnoise-hist.txt");
		EXPECT_INT(run.tool, LATENCY_OSNOISE);
		EXPECT_SERIES(&cpu_of(&run, 2)->gaps, 54703, 0, 20000);
		EXPECT_INT(cpu_of(&run, 2)->gaps.resolution_ns, 10000);
		EXPECT(cpu_of(&run, 2)->gaps.distribution);
		latency_run_fini(&run);
	}
	{
		/* rows are missing from this one: its counts stand, its percentiles do not */
		OPEN_CASE("18-rtla-timerlat-hist.txt");
		EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_THREAD], 600002, 1000, 58000);
		EXPECT(!cpu_of(&run, 1)->context[LATENCY_THREAD].distribution);
		EXPECT_INT(
			latency_series_percentile(&cpu_of(&run, 1)->context[LATENCY_THREAD], 0.99),
			LATENCY_UNKNOWN_NS);
		latency_run_fini(&run);
	}
	{
		OPEN_CASE("33-own-rtla-osnoise-hist.txt");
		const struct latency_series *gaps = &cpu_of(&run, 0)->gaps;
		EXPECT_SERIES(gaps, 656, 0, 40450000);
		EXPECT_INT(gaps->above_last, 107);
		EXPECT_NEAR((double)latency_series_percentile(gaps, 0.5), 0, 50000);
		EXPECT_INT(latency_series_percentile(gaps, 0.99), LATENCY_UNKNOWN_NS);
		latency_run_fini(&run);
	}
}

TEST(a_live_table_keeps_its_last_state)
{
	struct latency_run run;
	struct err err;
	static const char text[] = "                                     Timer Latency\n"
				   "  0 00:00:01   |          IRQ Timer Latency (us)        |      "
				   "   Thread Timer Latency (us)\n"
				   "CPU COUNT      |      cur       min       avg       max |      "
				   "cur       min       avg       max\n"
				   "  0 #1000      |       54         7       156      6243 |      "
				   "119        30       193      7660\n"
				   "  0 00:00:02   |          IRQ Timer Latency (us)        |      "
				   "   Thread Timer Latency (us)\n"
				   "CPU COUNT      |      cur       min       avg       max |      "
				   "cur       min       avg       max\n"
				   "  0 #2000      |       14         5       150      6300 |      "
				   " 19        20       190      7700\n"
				   "  9 #0         |        -         -         -         - |      "
				   "  -         -         -         -\n"
				   "ALL #2000   e0 |                  5       150      6300 |      "
				   "           20       190      7700\n";
	ASSERT(import_string(text, &run, &err) == 0);
	EXPECT_INT(run.cpus.len, 2);
	EXPECT_SERIES(&cpu_of(&run, 0)->context[LATENCY_IRQ], 2000, 5000, 6300000);
	EXPECT_NEAR(histogram_mean(&cpu_of(&run, 0)->context[LATENCY_THREAD].values), 190000, 0.5);
	EXPECT_INT(cpu_of(&run, 9)->context[LATENCY_IRQ].values.count, 0);
	EXPECT_INT(run.duration_ns, 2 * INT64_C(1000000000));
	EXPECT(!cpu_of(&run, 0)->context[LATENCY_IRQ].distribution);
	latency_run_fini(&run);
}

/* ---- rt-tests ---- */

TEST(case_21_35_histograms_of_cyclictest)
{
	{
		OPEN_CASE("21-cyclictest-hist-overflow-others.txt");
		const struct latency_series *user = &cpu_of(&run, 0)->context[LATENCY_USER];
		EXPECT_INT(run.tool, LATENCY_CYCLIC);
		EXPECT_INT(user->values.max, 1475000);
		EXPECT_INT(user->values.min, 5000);
		latency_run_fini(&run);
	}
	{
		OPEN_CASE("35-own-cyclictest-hist.txt");
		const struct latency_series *user = &cpu_of(&run, 0)->context[LATENCY_USER];
		EXPECT_SERIES(user, 2000, 11000, 76000);
		EXPECT_INT(user->above_last, 3);
		EXPECT(user->distribution && user->has_max);
		EXPECT_NEAR((double)latency_series_percentile(user, 0.5), 13000, 200);
		EXPECT_SERIES(&cpu_of(&run, 1)->context[LATENCY_USER], 1996, 11000, 64000);
		latency_run_fini(&run);
	}
}

TEST(case_23_a_thread_of_another_process_is_another_run)
{
	OPEN_CASE("23-cyclictest-summary-lines.txt");
	EXPECT_SERIES(&cpu_of(&run, 0)->context[LATENCY_USER], 349868, 4000, 35000);
	EXPECT(run.warnings.len &&
	       strstr(strtab_text(&run.names, run.warnings.data[0]), "second run"));
	latency_run_fini(&run);
}

TEST(json_of_cyclictest_and_oslat)
{
	struct latency_run run;
	struct err err;
	ASSERT(import_string("{\"file_version\":1,\"cmdline:\":\"cyclictest "
			     "-h20\",\"num_threads\":1,\"resolution_in_ns\":0,"
			     "\"thread\":{\"0\":{\"histogram\":{\"5\":16,\"19\":6},\"cycles\":24,"
			     "\"min\":5,\"max\":235,"
			     "\"avg\":13.43,\"cpu\":3,\"node\":-1}}}",
			     &run, &err) == 0);
	EXPECT_INT(run.tool, LATENCY_CYCLIC);
	EXPECT_SERIES(&cpu_of(&run, 3)->context[LATENCY_USER], 24, 5000, 235000);
	EXPECT_INT(cpu_of(&run, 3)->context[LATENCY_USER].above_last, 2);
	latency_run_fini(&run);
	ASSERT(import_string("{\"cmdline:\":\"oslat\",\"thread\":{\"0\":{\"cpu\":1,\"freq\":2096,"
			     "\"min\":1,\"avg\":1.1,"
			     "\"max\":121446,\"duration\":1.5,\"histogram\":{\"1\":100,\"2\":35,"
			     "\"32\":7}}}}",
			     &run, &err) == 0);
	EXPECT_INT(run.tool, LATENCY_OSNOISE);
	EXPECT_SERIES(&cpu_of(&run, 1)->gaps, 142, 1000, 121446000);
	EXPECT_INT(cpu_of(&run, 1)->gaps.above_last, 7);
	EXPECT_INT(run.duration_ns, 1500000000);
	latency_run_fini(&run);
	EXPECT(import_string("{\"thread\":{\"0\":{\"min\":", &run, &err) < 0);
	EXPECT(import_string("{\"a\":1}", &run, &err) < 0 && strstr(err.text, "thread"));
}

TEST(case_24_27_37_hwlatdetect_and_oslat)
{
	{
		OPEN_CASE("24-hwlatdetect-report.txt");
		EXPECT_INT(run.tool, LATENCY_HWNOISE);
		EXPECT_INT(run.duration_ns, 900 * INT64_C(1000000000));
		EXPECT_SERIES(&cpu_of(&run, 0)->inner, 4, 5000, 48000);
		EXPECT_SERIES(&cpu_of(&run, 0)->outer, 4, 0, 48000);
		latency_run_fini(&run);
	}
	{
		OPEN_CASE("27-oslat-bad.txt");
		EXPECT_INT(run.cpus.len, 6);
		EXPECT_INT(cpu_of(&run, 2)->gaps.values.max, 49000);
		latency_run_fini(&run);
	}
	{
		OPEN_CASE("37-own-oslat.txt");
		EXPECT_SERIES(&cpu_of(&run, 0)->gaps, 78793392, 1000, 39894000);
		EXPECT_INT(cpu_of(&run, 0)->gaps.above_last, 140);
		EXPECT_INT(cpu_of(&run, 1)->gaps.values.max, 3674000);
		latency_run_fini(&run);
	}
}

TEST(what_is_no_measurement_is_refused_with_its_reason)
{
	REFUSE_CASE("26-hwlatdetect-traceback.txt", "crash");
	REFUSE_CASE("28-rtla-tracer-missing.txt", "could not start");
	REFUSE_CASE("34-own-event-formats.txt", "descriptions of trace events");
	REFUSE_CASE("39-own-rtla-vs-user-same-kernel.txt", "in a file of its own");
	struct latency_run run;
	struct err err;
	EXPECT(import_string("hello\n", &run, &err) < 0 && strstr(err.text, "no measurement"));
}
