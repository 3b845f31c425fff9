/*
 * Noise with known events, on one CPU:
 *
 *	noise thread CPU BUSY_US PERIOD_US COUNT [PRIORITY]
 *		a real-time thread takes the CPU
 *	noise udp CPU COUNT
 *		datagrams over the loopback: softirqs
 *	noise timer CPU INTERVAL_US COUNT
 *		a timer expires: interrupts
 *
 * Prints what really happened: for thread a line "START END CPU" for each time (ns of
 * CLOCK_MONOTONIC, read by the thread itself, and the time it had the CPU as the kernel counts it,
 * waking up and falling asleep included), else one line "COUNT". The thread is called noise-maker
 * and is a real-time one. Status 77: this user may not have such.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NO_RIGHT  77
#define COUNT_MAX 1000000
#define PRIORITY  97
#define BATCH     64
#define DATAGRAM  64

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("noise: CPU");
		exit(1);
	}
}

static void set_real_time(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	mlockall(MCL_CURRENT);
	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("noise: SCHED_FIFO");
		exit(NO_RIGHT);
	}
}

struct event {
	uint64_t start, end, cpu; /* cpu: of the thread, so far */
};

static int make_thread(uint64_t busy_ns, uint64_t period_ns, unsigned count, int priority)
{
	/* one more, whose beginning tells how much CPU time the last one took */
	struct event *event = calloc(count + 1, sizeof(*event));
	uint64_t next = now_ns() + 20000000;

	if (!event)
		return 1;
	memset(event, 1, (count + 1) * sizeof(*event)); /* no page faults later */
	set_real_time(priority);
	for (unsigned i = 0; i <= count; i++) {
		struct timespec at = {.tv_sec = (time_t)(next / 1000000000u),
				      .tv_nsec = (long)(next % 1000000000u)};

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
			;
		event[i].start = now_ns();
		event[i].cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		do
			event[i].end = now_ns();
		while (event[i].end - event[i].start < busy_ns);
		next += period_ns;
		if (next < event[i].end)
			next = event[i].end + period_ns;
	}
	for (unsigned i = 0; i < count; i++)
		printf("%llu %llu %llu\n", (unsigned long long)event[i].start,
		       (unsigned long long)event[i].end,
		       (unsigned long long)(event[i + 1].cpu - event[i].cpu));
	return 0;
}

static int make_datagrams(unsigned count)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	char data[DATAGRAM] = {0};
	int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned sent = 0;

	if (in < 0 || out < 0 || bind(in, (struct sockaddr *)&address, size) ||
	    getsockname(in, (struct sockaddr *)&address, &size)) {
		perror("noise: UDP");
		return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		sent += sendto(out, data, sizeof(data), 0, (struct sockaddr *)&address, size) ==
			sizeof(data);
		if (i % BATCH == BATCH - 1)
			while (recv(in, data, sizeof(data), MSG_DONTWAIT) > 0)
				;
	}
	printf("%u\n", sent);
	return 0;
}

static int make_expiries(uint64_t interval_ns, unsigned count)
{
	struct itimerspec spec = {.it_interval.tv_nsec = (long)interval_ns,
				  .it_value.tv_nsec = (long)interval_ns};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t n;

	if (fd < 0 || timerfd_settime(fd, 0, &spec, NULL)) {
		perror("noise: timer");
		return 1;
	}
	/* it is set anew by reading, so each read had an expiry of its own */
	for (unsigned i = 0; i < count; i++)
		if (read(fd, &n, sizeof(n)) != sizeof(n))
			return 1;
	printf("%u\n", count);
	return 0;
}

static unsigned long number(char **argv, int argc, int i, unsigned long most)
{
	unsigned long value = i < argc ? strtoul(argv[i], NULL, 10) : 0;

	if (value < 1 || value > most) {
		fprintf(stderr, "noise: argument %d must be 1 to %lu\n", i, most);
		exit(1);
	}
	return value;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fputs("usage: noise thread|udp|timer CPU ...\n", stderr);
		return 1;
	}
	prctl(PR_SET_NAME, "noise-maker");
	pin((unsigned)strtoul(argv[2], NULL, 10));
	if (!strcmp(argv[1], "thread"))
		return make_thread(number(argv, argc, 3, 1000000) * 1000,
				   number(argv, argc, 4, 10000000) * 1000,
				   (unsigned)number(argv, argc, 5, COUNT_MAX),
				   argc > 6 ? (int)number(argv, argc, 6, 99) : PRIORITY);
	set_real_time(PRIORITY);
	if (!strcmp(argv[1], "udp"))
		return make_datagrams((unsigned)number(argv, argc, 3, COUNT_MAX));
	if (!strcmp(argv[1], "timer"))
		return make_expiries(number(argv, argc, 3, 100000) * 1000,
				     (unsigned)number(argv, argc, 4, COUNT_MAX));
	fprintf(stderr, "noise: no such noise: %s\n", argv[1]);
	return 1;
}
