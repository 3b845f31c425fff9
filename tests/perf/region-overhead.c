/*
 * What an empty region of libculprit costs, against reading the same counters by a system call at
 * both ends, in the same run. Prints a table and, as its last line, the ratio. Nothing is
 * subtracted.
 *
 * Counters: cycles and instructions where the machine has them, else task-clock.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "culprit.h"

#define PAIRS   1000
#define BATCHES 30

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static int open_event(uint32_t type, uint64_t config, int leader)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static void region_pair(int fd)
{
	(void)fd;
	culprit_begin("empty");
	culprit_end("empty");
}

static void system_call_pair(int fd)
{
	uint64_t words[8];

	(void)now_ns();
	if (read(fd, words, sizeof(words)) < 0)
		abort();
	(void)now_ns();
	if (read(fd, words, sizeof(words)) < 0)
		abort();
}

struct cost {
	double ns, cycles;
};

/* The best batch: what the pair costs when nothing disturbs it. */
static struct cost measure(void (*pair)(int), int fd, int cycles_fd)
{
	struct cost best = {1e18, 1e18};

	for (int batch = 0; batch < BATCHES; batch++) {
		uint64_t before[8] = {0}, after[8] = {0}, start_ns;
		double ns;

		if (cycles_fd >= 0 && read(cycles_fd, before, sizeof(before)) < 0)
			abort();
		start_ns = now_ns();
		for (int i = 0; i < PAIRS; i++)
			pair(fd);
		ns = (double)(now_ns() - start_ns) / PAIRS;
		if (cycles_fd >= 0 && read(cycles_fd, after, sizeof(after)) < 0)
			abort();
		if (ns < best.ns)
			best.ns = ns;
		if (cycles_fd >= 0 && (double)(after[3] - before[3]) / PAIRS < best.cycles)
			best.cycles = (double)(after[3] - before[3]) / PAIRS;
	}
	return best;
}

static void print_row(const char *what, const struct cost *cost, bool have_cycles)
{
	printf("%-34s %10.0f", what, cost->ns);
	if (have_cycles)
		printf(" %10.0f\n", cost->cycles);
	else
		printf(" %10s\n", "-");
}

int main(void)
{
	int cycles_fd = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, -1), fd;
	struct cost ours, peer;

	if (cycles_fd >= 0) {
		setenv("CULPRIT_EVENTS", "cycles,instructions", 1);
		fd = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, -1);
		open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, fd);
	} else {
		setenv("CULPRIT_EVENTS", "task-clock", 1);
		fd = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, -1);
	}
	if (fd < 0) {
		printf("region-overhead: cannot open a counter here\n");
		return 77;
	}
	setenv("CULPRIT_REGIONS", "/dev/null", 1);
	culprit_begin("warm up");
	culprit_end("warm up");
	ours = measure(region_pair, fd, cycles_fd);
	peer = measure(system_call_pair, fd, cycles_fd);
	printf("%-34s %10s %10s\n", "", "ns a pair", "cycles");
	print_row("culprit_begin(), culprit_end()", &ours, cycles_fd >= 0);
	print_row("two read() of the same counters", &peer, cycles_fd >= 0);
	if (cycles_fd >= 0)
		printf("region-overhead: ratio %.3f (ours %.0f cycles, read %.0f cycles)\n",
		       ours.cycles / peer.cycles, ours.cycles, peer.cycles);
	else
		printf("region-overhead: ratio %.3f (ours %.0f ns, read %.0f ns)\n",
		       ours.ns / peer.ns, ours.ns, peer.ns);
	return 0;
}
