/*
 * A virtual PMU may open every event and count nothing, or nonsense. A loop whose instructions are
 * known tells: instructions must agree to 1 %, cycles must be possible for the time that passed,
 * and both must have been counted all the time.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/doctor.h"
#include "count/ops.h"

#define ITERATIONS  UINT64_C(8000000) /* about 3 ms at one cycle each */
#define LOOP_LENGTH 2                 /* instructions */
#define HIGHEST_HZ  10e9              /* above any CPU */
#define LOWEST_HZ   50e6

#if defined(__x86_64__)
#define HAVE_LOOP 1
static void loop(uint64_t n)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n)::"cc");
}
#elif defined(__aarch64__)
#define HAVE_LOOP 1
static void loop(uint64_t n)
{
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n)::"cc");
}
#else
#define HAVE_LOOP 0
static void loop(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n; i++)
		;
}
#endif

static int open_counter(uint64_t config, int leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.disabled = leader < 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return counter_kernel.open(NULL, &attr, 0, -1, leader, 0);
}

/* The page that the kernel shares tells the counter's width and whether rdpmc is allowed. */
static void read_page(int fd, struct selftest *test)
{
	long bytes = sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return;
	test->user_rdpmc = page->cap_user_rdpmc;
	test->pmc_width = page->pmc_width;
	munmap(page, (size_t)bytes);
}

void selftest_run(struct selftest *ret)
{
	struct selftest test = {.iterations = ITERATIONS};
	int cycles = open_counter(PERF_COUNT_HW_CPU_CYCLES, -1), instructions;
	uint64_t words[5] = {0}, start;

	if (cycles < 0) {
		test.status = cycles;
		*ret = test;
		return;
	}
	instructions = open_counter(PERF_COUNT_HW_INSTRUCTIONS, cycles);
	loop(ITERATIONS / 100); /* warm */
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	test.status = counter_kernel.enable(NULL, cycles);
	read_page(cycles, &test);
	loop(ITERATIONS);
	(void)counter_kernel.disable(NULL, cycles);
	test.time_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (counter_kernel.read(NULL, cycles, words, ARRAY_LEN(words)) > 3) {
		test.enabled_ns = words[1];
		test.running_ns = words[2];
		test.cycles = words[3];
		test.instructions = words[4];
	}
	if (instructions < 0)
		test.status = instructions;
	else
		counter_kernel.close(NULL, instructions);
	counter_kernel.close(NULL, cycles);
	test.expected = HAVE_LOOP ? ITERATIONS * LOOP_LENGTH : 0;
	*ret = test;
}

bool selftest_judge(const struct selftest *t, char *buf, size_t size)
{
	double hz = t->time_ns ? (double)t->cycles * 1e9 / (double)t->time_ns : 0;

	buf[0] = '\0';
	if (t->running_ns == 0)
		snprintf(buf, size, "the counters opened but were never scheduled");
	else if (t->cycles == 0 && t->instructions == 0)
		snprintf(buf, size, "the counters opened but stayed 0 while a loop ran");
	else if (t->cycles == 0)
		snprintf(buf, size, "cycles stayed 0 while %llu instructions were counted",
			 (unsigned long long)t->instructions);
	else if (t->expected && ((double)t->instructions < 0.99 * (double)t->expected ||
				 (double)t->instructions > 1.05 * (double)t->expected))
		snprintf(buf, size, "a loop of %llu instructions was counted as %llu",
			 (unsigned long long)t->expected, (unsigned long long)t->instructions);
	else if (hz > HIGHEST_HZ || hz < LOWEST_HZ)
		snprintf(buf, size, "%llu cycles in %.2f ms is %.3g GHz, which no CPU has",
			 (unsigned long long)t->cycles, (double)t->time_ns / 1e6, hz / 1e9);
	else if ((double)t->running_ns < 0.95 * (double)t->enabled_ns)
		snprintf(buf, size,
			 "two events were counted only %.0f%% of the time: others use the counters",
			 100 * (double)t->running_ns / (double)t->enabled_ns);
	return buf[0] != '\0';
}
