/* What the threads do while they measure. Nothing here may block, lock or allocate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "latency/sampler-internal.h"

#define NAP_NS (20 * NSEC_PER_MSEC) /* longest sleep between looks at whether to end */

static void sleep_until(clockid_t clock, uint64_t ns)
{
	const struct timespec at = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	while (clock_nanosleep(clock, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Sets the flag that ends all and writes who did. */
static void stop_all(struct sampler *t, int64_t value, uint64_t now)
{
	struct lat_record record = {
		.kind = LAT_STOPPED,
		.cls = LAT_IN_USER,
		.time = now,
		.value = value,
		.pid = t->tid,
	};

	ring_write(&t->io.ring, &record);
	__atomic_store_n(t->io.frozen, 1, __ATOMIC_RELEASE);
}

void sampler_wake_loop(struct sampler *t)
{
	const struct sampler_options *options = &t->group->options;
	struct lat_cpu *state = t->io.state;
	uint64_t period =
		options->intervals_ns ? options->intervals_ns[t->index] : options->period_ns;
	uint64_t next = t->group->base_ns + period + t->index * options->align_ns;
	struct lat_record record = {.kind = LAT_SAMPLE, .cls = LAT_IN_USER, .pid = t->tid};
	uint64_t limit = options->limits.thread_ns, now;

	while (!sampler_ends(t) && (!options->loops || t->cycles < options->loops)) {
		if (options->relative)
			next = clock_ns(options->clock) + period;
		__atomic_store_n(&state->next, next, __ATOMIC_RELEASE);
		sleep_until(options->clock, next);
		now = clock_ns(options->clock);
		if (sampler_ends(t))
			break;
		__atomic_store_n(&t->cycles, t->cycles + 1, __ATOMIC_RELAXED);
		record.time = now;
		record.start = next;
		record.value = (int64_t)(now - next);
		record.extra = t->io.interrupted_known ? state->seq : t->cycles;
		ring_write(&t->io.ring, &record);
		if (limit && record.value >= (int64_t)limit)
			stop_all(t, record.value, now);
		next += period;
		if (next <= now) { /* late by more than a period: no wake-up is made up for */
			uint64_t missed = (now - next) / period + 1;

			t->skipped += missed;
			next += missed * period;
		}
	}
	__atomic_store_n(&state->next, 0, __ATOMIC_RELEASE);
}

/* --- noise ----------------------------------------------------------------------------------- */

struct sums {
	uint64_t counter, net, known; /* known: interruptions other than NMIs */
	uint64_t count[LAT_CLASSES];
};

struct period {
	uint64_t noise, longest, unexplained, threads;
	struct sums begin;
};

/* The counter and the clock, read so that nothing known happened between them. */
static inline uint64_t read_clock(const struct lat_cpu *state, uint64_t *ret_counter)
{
	uint64_t counter, now;

	do {
		counter = __atomic_load_n(&state->counter, __ATOMIC_ACQUIRE);
		now = clock_ns(CLOCK_MONOTONIC);
	} while (__atomic_load_n(&state->counter, __ATOMIC_ACQUIRE) != counter);
	*ret_counter = counter;
	return now;
}

static void read_sums(const struct lat_cpu *state, struct sums *ret)
{
	ret->net = ret->known = 0;
	for (unsigned i = 0; i < LAT_CLASSES; i++) {
		ret->net += __atomic_load_n(&state->net[i], __ATOMIC_RELAXED);
		ret->count[i] = __atomic_load_n(&state->count[i], __ATOMIC_RELAXED);
		if (i != LAT_NMI)
			ret->known += ret->count[i];
	}
}

/* Time this thread has waited while others ran; 0 where the kernel does not tell. */
static uint64_t run_delay(int fd)
{
	char text[96], *end;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10);
}

static void write_period(struct sampler *t, const struct period *p, uint64_t runtime, uint64_t now)
{
	struct sums end;
	struct lat_record record = {
		.kind = LAT_PERIOD,
		.time = now,
		.start = runtime,
		.value = (int64_t)p->noise,
		.extra = p->longest,
		.pid = t->tid,
	};
	uint32_t n[LAT_CLASSES];

	ring_write(&t->io.ring, &record);
	read_sums(t->io.state, &end);
	for (unsigned i = 0; i < LAT_CLASSES; i++)
		n[i] = (uint32_t)(end.count[i] - p->begin.count[i]);
	if (!t->io.interrupted_known)
		n[LAT_THREAD] = (uint32_t)p->threads;
	record.kind = LAT_COUNTS;
	record.number = (int)p->unexplained;
	record.start = n[LAT_NMI] | (uint64_t)n[LAT_IRQ] << 32;
	record.value = (int64_t)(n[LAT_SOFTIRQ] | (uint64_t)n[LAT_THREAD] << 32);
	ring_write(&t->io.ring, &record);
}

/* A gap that is long enough: who was it, as far as it is known, and is it noise? */
static void take_gap(struct sampler *t, struct period *p, uint64_t start, uint64_t now,
		     const struct sums *before, const struct sums *after, uint64_t delay)
{
	const struct sampler_options *options = &t->group->options;
	struct lat_record record = {
		.kind = LAT_GAP,
		.time = now,
		.start = start,
		.value = (int64_t)(now - start),
		.extra = after->net - before->net,
		.number = (int)(after->counter - before->counter),
		.pid = t->tid,
	};

	if (options->hardware_only && after->known != before->known)
		return;
	if (delay) {
		struct lat_record thread = {
			.kind = LAT_NOISE,
			.cls = LAT_THREAD,
			.time = now,
			.start = start,
			.value = (int64_t)MIN(delay, now - start),
			.pid = t->tid,
			.number = -1,
		};

		p->threads++;
		record.number = 1;
		record.extra = (uint64_t)thread.value;
		ring_write(&t->io.ring, &thread);
	}
	p->noise += now - start;
	p->longest = MAX(p->longest, now - start);
	p->unexplained += record.number == 0;
	ring_write(&t->io.ring, &record);
	if ((options->limits.single_ns && now - start >= options->limits.single_ns) ||
	    (options->limits.total_ns && p->noise >= options->limits.total_ns))
		stop_all(t, record.value, now);
}

/* Reads the clock until the period's runtime is over; returns how long that was. */
static uint64_t sample_period(struct sampler *t, struct period *p, uint64_t runtime, int schedstat)
{
	const struct sampler_options *options = &t->group->options;
	struct lat_cpu *state = t->io.state;
	struct sums before, after;
	uint64_t begin, last, now, counter, waited = run_delay(schedstat);

	last = begin = read_clock(state, &counter);
	read_sums(state, &before);
	before.counter = counter;
	p->begin = before;
	while (last - begin < runtime && !sampler_ends(t)) {
		now = read_clock(state, &counter);
		if (counter != before.counter || now - last >= options->threshold_ns) {
			uint64_t delay = 0;

			read_sums(state, &after);
			after.counter = counter;
			if (now - last >= options->threshold_ns) {
				if (schedstat >= 0) {
					uint64_t total = run_delay(schedstat);

					delay = total - waited;
					waited = total;
				}
				take_gap(t, p, last, now, &before, &after, delay);
				/* what the bookkeeping took is ours */
				now = read_clock(state, &counter);
				read_sums(state, &after);
				after.counter = counter;
			}
			before = after;
		}
		last = now;
	}
	return last - begin;
}

void sampler_noise_loop(struct sampler *t)
{
	const struct sampler_options *options = &t->group->options;
	uint64_t runtime = MIN(options->runtime_ns, options->period_ns);
	uint64_t period_begin = t->group->base_ns;
	char path[64];
	int schedstat = -1;

	if (!t->io.interrupted_known) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", t->tid);
		schedstat = open(path, O_RDONLY | O_CLOEXEC);
	}
	sleep_until(CLOCK_MONOTONIC, period_begin);
	while (!sampler_ends(t)) {
		struct period p = {0};
		uint64_t ran, now;

		__atomic_store_n(&t->io.state->sampling, 1, __ATOMIC_RELEASE);
		ran = sample_period(t, &p, runtime, schedstat);
		__atomic_store_n(&t->io.state->sampling, 0, __ATOMIC_RELEASE);
		now = clock_ns(CLOCK_MONOTONIC);
		write_period(t, &p, ran, now);
		t->cycles++;
		period_begin = MAX(period_begin + options->period_ns, now);
		while (!sampler_ends(t) && now < period_begin) {
			sleep_until(CLOCK_MONOTONIC, MIN(now + NAP_NS, period_begin));
			now = clock_ns(CLOCK_MONOTONIC);
		}
	}
	if (schedstat >= 0)
		close(schedstat);
}
