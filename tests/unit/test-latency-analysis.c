/* The automatic analysis on made-up records: every branch, and each known way to blame the wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "harness/tap.h"
#include "latency/analysis.h"

struct scene {
	struct latency_run run;
	struct latency_analysis *analysis;
	unsigned cpu;
	uint64_t now_ns; /* of the next record */
	int pid;
	const char *comm;
};

static void scene_begin(struct scene *scene, uint64_t limit_ns)
{
	*scene = (struct scene){.pid = 500, .comm = "hog"};
	if (latency_run_init(&scene->run, LATENCY_TIMERLAT, ENGINE_BPF) < 0 ||
	    latency_analysis_new(&scene->run, 0, &scene->analysis) < 0)
		abort();
	scene->run.limits.irq_ns = scene->run.limits.thread_ns = limit_ns;
}

static void scene_end(struct scene *scene)
{
	latency_analysis_free(scene->analysis);
	latency_run_fini(&scene->run);
}

/* A test of one scene with this limit; it begins before and ends behind the body. */
#define SCENE(name_, limit_ns_)                   \
	static void play_##name_(struct scene *); \
	TEST(name_)                               \
	{                                         \
		struct scene scene;               \
                                                  \
		scene_begin(&scene, limit_ns_);   \
		play_##name_(&scene);             \
		scene_end(&scene);                \
	}                                         \
	static void play_##name_(struct scene *scene)

static void feed(struct scene *scene, struct latency_record record)
{
	record.cpu = scene->cpu;
	record.time_ns = scene->now_ns;
	record.pid = scene->pid;
	record.comm = scene->comm;
	EXPECT_INT(latency_run_take(&scene->run, &record), 0);
	EXPECT(latency_analysis_take(scene->analysis, &record) >= 0);
}

/* All times in microseconds after the expiry, which is at 1 s + seq ms. */
static uint64_t base_of(uint64_t seq)
{
	return 1000000000 + seq * 1000000;
}

static void sample(struct scene *scene, uint64_t seq, enum latency_context context, double at_us)
{
	scene->now_ns = base_of(seq) + (uint64_t)(at_us * 1000);
	feed(scene, (struct latency_record){.kind = LATENCY_SAMPLE,
					    .sample = {.context = context,
						       .seq = seq,
						       .latency_ns = (int64_t)(at_us * 1000)}});
}

static void noise(struct scene *scene, uint64_t seq, enum noise_class class, int number,
		  const char *name, const char *function, double at_us, double for_us)
{
	scene->now_ns = base_of(seq) + (uint64_t)(int64_t)((at_us + for_us) * 1000);
	feed(scene, (struct latency_record){
			    .kind = LATENCY_NOISE,
			    .noise = {.class = class,
				      .number = number,
				      .name = name,
				      .function = function,
				      .start_ns = (int64_t)base_of(seq) + (int64_t)(at_us * 1000),
				      .duration_ns = (int64_t)(for_us * 1000)}});
}

static void timer(struct scene *scene, uint64_t seq, double at_us, double for_us)
{
	noise(scene, seq, NOISE_IRQ, 236, "local_timer", NULL, at_us, for_us);
}

static const struct latency_verdict *finish(struct scene *scene, unsigned count)
{
	EXPECT_INT(latency_analysis_finish(scene->analysis), 0);
	EXPECT_INT(scene->run.verdict_count, count);
	return scene->run.verdict_count ? scene->run.verdicts : NULL;
}

static const char *text(const struct scene *scene, uint32_t id)
{
	return strtab_text(&scene->run.names, id);
}

static void expect_words(const struct scene *scene, uint32_t id, const char *words)
{
	tap_expect(strstr(text(scene, id), words) != NULL, __FILE__, __LINE__,
		   "\"%s\" does not say \"%s\"", text(scene, id), words);
}

/* 2 us delay, 3 us interrupt. */
static void prompt_irq(struct scene *scene, uint64_t seq)
{
	sample(scene, seq, LATENCY_IRQ, 2.5);
	timer(scene, seq, 2, 3);
}

/* A plain activation: after the interrupt 95 us of the interrupted thread. */
static void blocked_cycle(struct scene *scene, uint64_t seq)
{
	prompt_irq(scene, seq);
	noise(scene, seq, NOISE_THREAD, 500, "hog", NULL, 5, 95);
	sample(scene, seq, LATENCY_THREAD, 100.5);
}

SCENE(the_interrupted_thread_blocks, 50000)
{
	const struct latency_verdict *v;

	blocked_cycle(scene, 1);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->context, LATENCY_THREAD);
	EXPECT_INT(v->total_ns, 100500);
	EXPECT_INT(v->irq_latency_ns, 2500);
	EXPECT_INT(v->delay_ns, 2000);
	EXPECT_INT(v->timer_irq_ns, 3000);
	EXPECT_INT(v->blocking_ns, 95000);
	EXPECT_INT(v->rest_ns, 500);
	EXPECT(v->decided);
	EXPECT_STR(text(scene, v->culprit), "thread hog:500");
	EXPECT_INT(v->culprit_ns, 95000);
	EXPECT_STR(text(scene, v->command), "taskset -acp LIST 500");
	EXPECT_INT(v->steal_ns, LATENCY_UNKNOWN_NS);
}

SCENE(below_the_limit_there_is_no_verdict, 200000)
{
	blocked_cycle(scene, 1);
	(void)finish(scene, 0);
}

TEST(the_worst_are_kept_without_limits)
{
	struct scene scene = {.pid = 500, .comm = "hog"};
	const struct latency_verdict *v;

	ASSERT(latency_run_init(&scene.run, LATENCY_TIMERLAT, ENGINE_BPF) == 0);
	ASSERT(latency_analysis_new(&scene.run, 2, &scene.analysis) == 0);
	for (uint64_t seq = 1; seq <= 40; seq++) {
		double late = (double)(seq * 7 % 40);

		sample(&scene, seq, LATENCY_IRQ, 1.2);
		timer(&scene, seq, 1, 2);
		noise(&scene, seq, NOISE_THREAD, 500, "hog", NULL, 3, late);
		sample(&scene, seq, LATENCY_THREAD, late + 3);
	}
	v = finish(&scene, 2);
	ASSERT(v);
	EXPECT_INT(v[0].total_ns, 42000);
	EXPECT_INT(v[1].total_ns, 41000);
	scene_end(&scene);
}

SCENE(every_activation_starts_anew, 90000)
{
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 1);
	timer(scene, 1, 1, 1);
	noise(scene, 1, NOISE_SOFTIRQ, 3, "NET_RX", NULL, 3, 60);
	sample(scene, 1, LATENCY_THREAD, 63);
	blocked_cycle(scene, 2);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->class_ns[NOISE_SOFTIRQ], 0);
	EXPECT_INT(v->part_count, 0);
}

SCENE(all_interrupts_before_are_listed_with_their_overlap, 50000)
{
	const struct latency_verdict *v;

	noise(scene, 1, NOISE_IRQ, 9, "acpi", NULL, -300, 100); /* ended before the expiry */
	noise(scene, 1, NOISE_IRQ, 30, "igb-rx", NULL, -10, 60);
	noise(scene, 1, NOISE_NMI, -1, "nmi", NULL, 50, 4);
	noise(scene, 1, NOISE_IRQ, 31, "igb-tx", NULL, 54, 20);
	sample(scene, 1, LATENCY_IRQ, 76);
	timer(scene, 1, 75, 2);
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 77, 3);
	sample(scene, 1, LATENCY_THREAD, 80);
	v = finish(scene, 1);
	ASSERT(v);
	ASSERT(v->before_count == 3);
	EXPECT_INT(v->before[0].start_ns, -10000);
	EXPECT_INT(v->before[0].duration_ns, 50000);
	EXPECT_INT(v->before[1].class, NOISE_NMI);
	EXPECT_INT(v->before[2].duration_ns, 20000);
	EXPECT(v->decided);
	EXPECT_STR(text(scene, v->culprit), "irq igb-rx:30");
	EXPECT_INT(v->culprit_ns, 50000);
	EXPECT_STR(text(scene, v->command), "echo LIST > /proc/irq/30/smp_affinity_list");
}

SCENE(remedies_name_free_cpus, 50000)
{
	struct cpuset free_cpus = {0};
	const struct latency_verdict *v;

	cpuset_add(&free_cpus, 0);
	cpuset_add(&free_cpus, 3);
	latency_analysis_spare_cpus(scene->analysis, &free_cpus);
	blocked_cycle(scene, 1);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_STR(text(scene, v->command), "taskset -acp 0,3 500");
}

SCENE(the_timers_interrupt_is_the_one_around_the_sample, 50000)
{
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 2.5);
	/* one that nests in the timer's interrupt ends, and is recorded, first */
	noise(scene, 1, NOISE_IRQ, 77, "nested", NULL, 6, 10);
	noise(scene, 1, NOISE_IRQ, 236, "local_timer", NULL, 2, 20);
	noise(scene, 1, NOISE_IRQ, 30, "igb-rx", NULL, 40, 70);
	sample(scene, 1, LATENCY_THREAD, 102.5);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->timer_irq_ns, 20000);
	EXPECT_INT(v->delay_ns, 2000);
	EXPECT_INT(v->class_ns[NOISE_IRQ], 80000);
	EXPECT_INT(v->part_count, 2);
	EXPECT_STR(text(scene, v->culprit), "irq igb-rx:30");
}

SCENE(an_interrupt_recorded_late_is_not_the_timers, 50000)
{
	const struct latency_verdict *v;

	scene->now_ns = base_of(1) + 60000;
	sample(scene, 1, LATENCY_IRQ, 60);
	/* ended at 50 us, before the sample */
	noise(scene, 1, NOISE_IRQ, 30, "igb-rx", NULL, -10, 60);
	timer(scene, 1, 59, 2);
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 61, 3);
	sample(scene, 1, LATENCY_THREAD, 64);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->before_count, 1);
	EXPECT_INT(v->delay_ns, 59000);
	EXPECT_STR(text(scene, v->culprit), "irq igb-rx:30");
}

SCENE(a_lost_timer_interrupt_leaves_no_verdict, 50000)
{
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 2.5);
	noise(scene, 1, NOISE_IRQ, 30, "igb-rx", NULL, 40, 60);
	sample(scene, 1, LATENCY_THREAD, 102.5);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT(!v->decided);
	EXPECT_INT(v->timer_irq_ns, LATENCY_UNKNOWN_NS);
	expect_words(scene, v->why, "timer's interrupt took is not among the records");
}

SCENE(a_handler_that_already_ran, 50000)
{
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 0.5);
	timer(scene, 1, -7, 90);
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 83, 2);
	sample(scene, 1, LATENCY_THREAD, 85.2);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT(v->handler_running);
	EXPECT_INT(v->delay_ns, -7000);
	EXPECT_INT(v->rest_ns, 200);
	EXPECT_STR(text(scene, v->culprit), "irq timer interrupt");
	EXPECT_INT(v->culprit_ns, 83000);
	expect_words(scene, v->command, "nohz_full=0");
}

SCENE(idle_is_told_as_the_way_out_of_it, 30000)
{
	const struct latency_verdict *v;

	scene->cpu = 6;
	scene->pid = 0;
	scene->comm = "swapper/6";
	sample(scene, 1, LATENCY_IRQ, 34.7);
	timer(scene, 1, 34, 2.4);
	noise(scene, 1, NOISE_THREAD, 0, "swapper/6", NULL, 36.4, 4.3);
	sample(scene, 1, LATENCY_THREAD, 41.9);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT(v->from_idle && v->decided);
	EXPECT_STR(text(scene, v->culprit), "exit from idle");
	EXPECT_INT(v->culprit_ns, 38300);
	expect_words(scene, v->command, "/cpu6/cpuidle/");
	EXPECT_INT(latency_run_cpu(&scene->run, 6)->max_from_idle_ns, 34700);
}

SCENE(idle_in_a_guest_is_the_hosts, 30000)
{
	const struct latency_verdict *v;

	EXPECT_INT(latency_run_condition(&scene->run, "virtual machine", "kvm"), 0);
	scene->pid = 0;
	sample(scene, 1, LATENCY_IRQ, 34.7);
	timer(scene, 1, 34, 2.4);
	sample(scene, 1, LATENCY_THREAD, 37);
	v = finish(scene, 1);
	ASSERT(v);
	expect_words(scene, v->remedy, "haltpoll");
	EXPECT_INT(v->command, 0);
}

static void put_stack(struct scene *scene, const char *const *frames, unsigned count)
{
	feed(scene, (struct latency_record){.kind = LATENCY_STACK,
					    .stack = {.frames = frames, .count = count}});
}

static const char *const igb_stack[] = {"timerlat_irq",
					"__hrtimer_run_queues",
					"hrtimer_interrupt",
					"__sysvec_apic_timer_interrupt",
					"sysvec_apic_timer_interrupt",
					"asm_sysvec_apic_timer_interrupt",
					"_raw_spin_unlock_irqrestore",
					"igb_update_mc_addr_list",
					"igb_set_rx_mode",
					"asm_sysvec_other"};

SCENE(the_irq_case_names_who_was_interrupted, 500000)
{
	const struct latency_verdict *v;

	blocked_cycle(scene, 1);
	scene->pid = 3567;
	scene->comm = "ip";
	sample(scene, 2, LATENCY_IRQ, 709.25);
	put_stack(scene, igb_stack, ARRAY_LEN(igb_stack));
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->context, LATENCY_IRQ);
	EXPECT_INT(v->total_ns, 709250);
	EXPECT_INT(v->delay_ns, LATENCY_UNKNOWN_NS); /* nobody measured it: not 0 */
	EXPECT_INT(v->blocking_pid, 3567);
	EXPECT_STR(text(scene, v->blocking_comm), "ip");
	EXPECT_INT(v->stack_count, 10);
	EXPECT(v->decided);
	EXPECT_STR(text(scene, v->culprit),
		   "interrupts off in igb_update_mc_addr_list of thread ip:3567");
	expect_words(scene, v->remedy, "stalled the bus");
}

SCENE(user_space_has_no_interrupts_off, 50000)
{
	static const char *const frames[] = {"[user space]"};
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 90);
	put_stack(scene, frames, 1);
	timer(scene, 1, 89, 2);
	sample(scene, 1, LATENCY_THREAD, 92);
	sample(scene, 2, LATENCY_IRQ, 2.5);
	put_stack(scene, frames, 1);
	timer(scene, 2, 2, 3);
	noise(scene, 2, NOISE_THREAD, 500, "hog", NULL, 5, 80);
	sample(scene, 2, LATENCY_THREAD, 85.5);
	v = finish(scene, 2);
	ASSERT(v);
	EXPECT_STR(text(scene, v[0].culprit), "unexplained: below the kernel");
	expect_words(scene, v[0].remedy, "SMI");
	EXPECT_STR(text(scene, v[1].culprit), "thread hog:500");
	EXPECT_STR(text(scene, v[1].command), "chrt -o -p 0 500");
}

SCENE(irqs_off_without_a_stack_asks_for_one, 50000)
{
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 90);
	timer(scene, 1, 89, 2);
	sample(scene, 1, LATENCY_THREAD, 92);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_STR(text(scene, v->culprit), "interrupts off in thread hog:500");
	expect_words(scene, v->remedy, "--stack");
}

SCENE(steal_is_taken_off_the_largest, 50000)
{
	const struct latency_verdict *v;

	prompt_irq(scene, 1);
	feed(scene, (struct latency_record){.kind = LATENCY_STEAL, .steal = {70000}});
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 5, 95);
	sample(scene, 1, LATENCY_THREAD, 100.5);
	sample(scene, 2, LATENCY_IRQ, 2.5);
	timer(scene, 2, 2, 3);
	feed(scene, (struct latency_record){.kind = LATENCY_STEAL, .steal = {10000}});
	noise(scene, 2, NOISE_THREAD, 500, "hog", NULL, 5, 94);
	sample(scene, 2, LATENCY_THREAD, 99.5);
	v = finish(scene, 2);
	ASSERT(v);
	EXPECT_STR(text(scene, v[0].culprit), "steal: the hypervisor");
	EXPECT_INT(v[0].culprit_ns, 70000);
	EXPECT_INT(v[0].steal_ns, 70000);
	EXPECT_STR(text(scene, v[1].culprit), "thread hog:500");
	EXPECT_INT(v[1].culprit_ns, 84000);
}

SCENE(steal_told_just_before_the_sample_counts, 50000)
{
	const struct latency_verdict *v;

	scene->now_ns = base_of(1) - 400000;
	feed(scene, (struct latency_record){.kind = LATENCY_STEAL, .steal = {900000}});
	scene->now_ns = base_of(1) + 4300000;
	feed(scene, (struct latency_record){.kind = LATENCY_STEAL, .steal = {4200000}});
	sample(scene, 1, LATENCY_IRQ, 4369);
	timer(scene, 1, 4367, 31);
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 4398, 200);
	sample(scene, 1, LATENCY_THREAD, 4600);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->steal_ns, 4200000);
	EXPECT_STR(text(scene, v->culprit), "steal: the hypervisor");
}

SCENE(losses_end_the_pairing, 50000)
{
	const struct latency_verdict *v;

	prompt_irq(scene, 1);
	feed(scene, (struct latency_record){.kind = LATENCY_LOST, .lost = {12}});
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 5, 95);
	sample(scene, 1, LATENCY_THREAD, 100.5);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT(!v->decided);
	EXPECT_INT(v->irq_latency_ns, LATENCY_UNKNOWN_NS);
	EXPECT_INT(v->class_ns[NOISE_THREAD], LATENCY_UNKNOWN_NS);
	expect_words(scene, v->why, "not among the records");
}

SCENE(other_activations_are_not_paired, 50000)
{
	const struct latency_verdict *v;

	prompt_irq(scene, 1);
	sample(scene, 7, LATENCY_THREAD, 80);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->seq, 7);
	EXPECT(!v->decided);
}

SCENE(no_verdict_when_the_parts_do_not_add_up, 50000)
{
	const struct latency_verdict *v;

	prompt_irq(scene, 1);
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 5, 50);
	sample(scene, 1, LATENCY_THREAD, 100);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->rest_ns, 45000);
	EXPECT(!v->decided);
	EXPECT_INT(v->culprit, 0);
	expect_words(scene, v->why, "45.00 us of 100.00 us are nobody's");
}

SCENE(a_softirq_counted_twice_is_mended, 50000)
{
	const struct latency_verdict *v;

	prompt_irq(scene, 1);
	noise(scene, 1, NOISE_SOFTIRQ, 3, "NET_RX", NULL, 5, 60);
	/* the source charges 40 us of softirq from before the interrupt to the thread */
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 65, 45);
	sample(scene, 1, LATENCY_THREAD, 70);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->blocking_ns, 5000);
	EXPECT_INT(v->rest_ns, 0);
	EXPECT_STR(text(scene, v->culprit), "softirq NET_RX");
}

SCENE(a_coarse_clock_blames_nobody, 50000)
{
	const struct latency_verdict *v;

	for (uint64_t seq = 1; seq < 4; seq++) {
		sample(scene, seq, LATENCY_IRQ, 110.72);
		timer(scene, seq, 0, 1000);
		noise(scene, seq, NOISE_THREAD, 500, "hog", NULL, 1000, 0);
		sample(scene, seq, LATENCY_THREAD, 407.168);
	}
	v = finish(scene, 3);
	ASSERT(v);
	EXPECT(!v->decided);
	expect_words(scene, v->why, "steps of 1000 us");
	EXPECT_INT(scene->run.warnings.len, 1);
}

SCENE(starts_in_another_clock_are_brought_over, 50000)
{
	const struct latency_verdict *v;
	struct latency_record record = {.kind = LATENCY_NOISE};

	for (int i = 0; i < 2; i++) {
		bool is_timer = i == 1;
		int64_t start = (int64_t)base_of(1) + (is_timer ? 2000 : -500000);

		if (is_timer)
			sample(scene, 1, LATENCY_IRQ, 2.5);
		record.noise.class = NOISE_IRQ;
		record.noise.number = 236;
		record.noise.name = "local_timer";
		record.noise.start_ns = start + 155000000;
		record.noise.duration_ns = 3000;
		scene->now_ns = (uint64_t)start + 3100;
		feed(scene, record);
	}
	record.noise.class = NOISE_THREAD;
	record.noise.number = 500;
	record.noise.name = "hog";
	record.noise.start_ns = (int64_t)base_of(1) + 155005000;
	record.noise.duration_ns = 95000;
	scene->now_ns = base_of(1) + 100100;
	feed(scene, record);
	sample(scene, 1, LATENCY_THREAD, 100.5);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_NEAR(v->delay_ns, 2100, 200);
	EXPECT(v->decided);
	EXPECT_STR(text(scene, v->culprit), "thread hog:500");
}

SCENE(one_late_record_is_not_another_clock, 50000)
{
	const struct latency_verdict *v;

	/* the host took the CPU between the end of the interrupt and its record */
	feed(scene, (struct latency_record){.kind = LATENCY_NOISE,
					    .noise = {.class = NOISE_IRQ,
						      .number = 236,
						      .name = "local_timer",
						      .start_ns = 1000,
						      .duration_ns = 3000}});
	scene->now_ns = 5000000;
	feed(scene, (struct latency_record){.kind = LATENCY_NOISE,
					    .noise = {.class = NOISE_IRQ,
						      .number = 236,
						      .name = "local_timer",
						      .start_ns = 1000,
						      .duration_ns = 3000}});
	blocked_cycle(scene, 1);
	blocked_cycle(scene, 2);
	v = finish(scene, 2);
	ASSERT(v);
	EXPECT_INT(v[1].delay_ns, 2000);
}

SCENE(work_functions_are_named, 50000)
{
	const struct latency_verdict *v;

	scene->pid = 44;
	scene->comm = "kworker/0:1";
	feed(scene,
	     (struct latency_record){.kind = LATENCY_WORK, .work = {.function = "flush_to_ldisc"}});
	prompt_irq(scene, 1);
	noise(scene, 1, NOISE_THREAD, 44, "kworker/0:1", NULL, 5, 95);
	sample(scene, 1, LATENCY_THREAD, 100.5);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_STR(text(scene, v->culprit), "thread kworker/0:1:44 in flush_to_ldisc");
	expect_words(scene, v->remedy, "unbound work");
}

SCENE(the_way_back_to_user_space, 50000)
{
	const struct latency_verdict *v;

	prompt_irq(scene, 1);
	noise(scene, 1, NOISE_THREAD, 500, "hog", NULL, 5, 5);
	sample(scene, 1, LATENCY_THREAD, 10.5);
	sample(scene, 1, LATENCY_USER, 80);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->context, LATENCY_USER);
	EXPECT_INT(v->return_ns, 69500);
	EXPECT_INT(v->rest_ns, 500);
	EXPECT_STR(text(scene, v->culprit), "return to user space");
}

SCENE(user_space_alone_cannot_tell, 50000)
{
	const struct latency_verdict *v;

	scene->run.engine = ENGINE_USER;
	sample(scene, 1, LATENCY_USER, 80);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT(!v->decided);
	expect_words(scene, v->why, "engine U does not see");
}

SCENE(a_stack_behind_its_sample_belongs_to_it, 50000)
{
	const struct latency_verdict *v;

	blocked_cycle(scene, 1);
	put_stack(scene, igb_stack, ARRAY_LEN(igb_stack));
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->stack_count, 10);
	EXPECT_STR(text(scene, v->culprit), "thread hog:500 (in igb_update_mc_addr_list)");
}

SCENE(a_thread_that_never_came, 50000)
{
	const struct latency_verdict *v;

	sample(scene, 1, LATENCY_IRQ, 60);
	timer(scene, 1, 59.5, 2);
	sample(scene, 2, LATENCY_IRQ, 2);
	v = finish(scene, 1);
	ASSERT(v);
	EXPECT_INT(v->context, LATENCY_IRQ);
	EXPECT_INT(v->seq, 1);
	EXPECT_INT(v->delay_ns, 59500);
	EXPECT_INT(v->rest_ns, LATENCY_UNKNOWN_NS);
}

TEST(each_culprit_has_its_remedy)
{
	static const struct {
		enum noise_class class;
		int number;
		const char *name, *culprit, *command;
	} cases[] = {
		{NOISE_NMI, -1, "perf", "nmi perf", "sysctl kernel.nmi_watchdog=0"},
		{NOISE_IRQ, 253, "reschedule", "irq reschedule:253", "isolcpus="},
		{NOISE_IRQ, 249, "thermal_apic", "irq thermal_apic:249", "dmesg"},
		{NOISE_IRQ, 236, "local_timer", "irq local_timer:236", "nohz_full=0"},
		{NOISE_IRQ, 21, "qxl", "irq qxl:21", "/proc/irq/21/"},
		{NOISE_SOFTIRQ, 9, "RCU", "softirq RCU", "rcu_nocbs=0"},
		{NOISE_SOFTIRQ, 4, "BLOCK", "softirq BLOCK", "rq_affinity"},
		{NOISE_SOFTIRQ, 3, "NET_RX", "softirq NET_RX", "smp_affinity_list"},
		{NOISE_SOFTIRQ, 7, "SCHED", "softirq SCHED", "isolcpus="},
		{NOISE_THREAD, 15, "rcu_preempt", "thread rcu_preempt:15", "rcu_nocbs=0"},
		{NOISE_THREAD, 54, "migration/0", "thread migration/0:54", NULL},
		{NOISE_THREAD, 14, "ksoftirqd/0", "thread ksoftirqd/0:14", "nohz_full=0"},
		{NOISE_THREAD, 99, "irq/30-igb", "thread irq/30-igb:99", "/proc/irq/30/"},
		{NOISE_THREAD, 98, "kworker/0:2", "thread kworker/0:2:98", "workqueue/cpumask"},
		{NOISE_THREAD, 97, "make", "thread make:97", "taskset -acp LIST 97"},
		{NOISE_THREAD, -1, "many", "thread many", NULL},
		{NOISE_UNEXPLAINED, -1, "unexplained", "unexplained unexplained", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scene scene;
		const struct latency_verdict *v;

		scene_begin(&scene, 50000);
		sample(&scene, 1, LATENCY_IRQ, 2.5);
		timer(&scene, 1, 2, 3);
		noise(&scene, 1, cases[i].class, cases[i].number, cases[i].name, NULL, 5, 95);
		sample(&scene, 1, LATENCY_THREAD, 100.5);
		v = finish(&scene, 1);
		ASSERT(v);
		EXPECT_STR(text(&scene, v->culprit), cases[i].culprit);
		EXPECT(v->remedy != 0);
		if (cases[i].command)
			expect_words(&scene, v->command, cases[i].command);
		else
			EXPECT_INT(v->command, 0);
		scene_end(&scene);
	}
}

SCENE(the_measured_timer_is_nobodys_noise, 50000)
{
	struct latency_record record = {.kind = LATENCY_NOISE,
					.time_ns = base_of(1) + 5000,
					.noise = {.class = NOISE_IRQ,
						  .name = "local_timer",
						  .function = "hrtimer_wakeup",
						  .start_ns = (int64_t)base_of(1) + 2000,
						  .duration_ns = 3000}};

	sample(scene, 1, LATENCY_IRQ, 2.5);
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 1);
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 0);
	sample(scene, 2, LATENCY_IRQ, 1002.5);
	record.noise.function = "tick_nohz_handler";
	record.time_ns += 2000000;
	record.noise.start_ns += 2000000;
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 0);
	(void)finish(scene, 1);
}

SCENE(absurd_times_overflow_nothing, 1)
{
	struct latency_record record = {.kind = LATENCY_NOISE,
					.time_ns = UINT64_MAX,
					.noise = {.class = NOISE_THREAD,
						  .name = "x",
						  .start_ns = INT64_MAX,
						  .duration_ns = INT64_MAX}};

	sample(scene, 1, LATENCY_IRQ, 2.5);
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 0);
	record.time_ns = 1;
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 0);
	record.kind = LATENCY_SAMPLE;
	record.sample.latency_ns = INT64_MAX;
	record.sample.context = LATENCY_IRQ;
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 0);
	record.sample.latency_ns = LATENCY_UNKNOWN_NS;
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), 0);
	(void)finish(scene, 1);
}

SCENE(impossible_records_are_refused, 1)
{
	struct latency_record record = {.kind = LATENCY_SAMPLE, .cpu = 9999999};

	EXPECT_INT(latency_analysis_take(scene->analysis, &record), -EINVAL);
	record.cpu = 0;
	record.sample.context = (enum latency_context)8;
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), -EINVAL);
	record.kind = LATENCY_NOISE;
	record.noise.class = (enum noise_class)8;
	EXPECT_INT(latency_analysis_take(scene->analysis, &record), -EINVAL);
	(void)finish(scene, 0);
}
