#include "fake-pmu.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

#define STEP_NS UINT64_C(50000)

void fake_init(struct fake_pmu *pmu, unsigned counters)
{
	*pmu = (struct fake_pmu){.now = 1000,
				 .tick_ns = 4000000,
				 .next_tick = 4000000,
				 .counters = counters,
				 .fixed_cycles = true,
				 .rotates = true};
}

static bool needs_counter(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT;
}

static double rate_of(const struct fake_pmu *pmu, const struct perf_event_attr *attr, uint64_t now)
{
	return pmu->rate ? pmu->rate(attr, now) : 1;
}

double fake_truth(const struct fake_pmu *pmu, const struct perf_event_attr *attr, uint64_t t0,
		  uint64_t t1)
{
	double sum = 0;

	for (uint64_t t = t0; t < t1; t += STEP_NS)
		sum += rate_of(pmu, attr, t) * (double)MIN(STEP_NS, t1 - t);
	return sum;
}

struct usage {
	unsigned counters;
	bool cycles, instructions; /* fixed ones in use */
};

static bool take(const struct fake_pmu *pmu, const struct perf_event_attr *attr, struct usage *use)
{
	if (pmu->schedulable && !pmu->schedulable(attr))
		return false;
	if (!needs_counter(attr))
		return true;
	if (attr->type == PERF_TYPE_HARDWARE &&
	    (uint32_t)attr->config == PERF_COUNT_HW_CPU_CYCLES && pmu->fixed_cycles && !use->cycles)
		return use->cycles = true;
	if (attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_INSTRUCTIONS &&
	    pmu->fixed_instructions && !use->instructions)
		return use->instructions = true;
	return ++use->counters <=
	       (pmu->kind_of ? pmu->kind_counters[pmu->kind_of(attr)] : pmu->counters) - pmu->taken;
}

/* False while the thread runs on the other kind of core. */
static bool counted_here(const struct fake_pmu *pmu, const struct perf_event_attr *attr)
{
	return !pmu->kind_of || !needs_counter(attr) || pmu->kind_of(attr) == pmu->at_kind;
}

static bool take_group(struct fake_pmu *pmu, unsigned leader, struct usage *use)
{
	struct usage want = *use;

	for (unsigned i = leader; i < pmu->event_count; i++)
		if (pmu->events[i].open && pmu->events[i].leader == (int)leader &&
		    !take(pmu, &pmu->events[i].attr, &want))
			return false;
	*use = want;
	return true;
}

static void set_active(struct fake_pmu *pmu, unsigned leader, bool active)
{
	for (unsigned i = leader; i < pmu->event_count; i++)
		if (pmu->events[i].leader == (int)leader)
			pmu->events[i].active = active;
}

static void schedule(struct fake_pmu *pmu)
{
	struct usage use = {0};
	unsigned flexible[FAKE_EVENTS], n = 0;
	bool room = true;

	for (unsigned i = 0; i < pmu->event_count; i++) {
		struct fake_event *event = &pmu->events[i];

		if (!event->open || event->leader != (int)i)
			continue;
		set_active(pmu, i, false);
		if (!event->enabled || event->error || !counted_here(pmu, &event->attr))
			continue;
		if (event->attr.pinned) {
			if (take_group(pmu, i, &use))
				set_active(pmu, i, true);
			else
				event->error = true;
		} else {
			flexible[n++] = i;
		}
	}
	for (unsigned k = 0; k < n; k++) {
		unsigned i = flexible[(k + pmu->rotation) % n];
		bool hardware = needs_counter(&pmu->events[i].attr);

		if (hardware && !room)
			continue;
		if (take_group(pmu, i, &use))
			set_active(pmu, i, true);
		else
			room = false;
	}
}

static void count_for(struct fake_pmu *pmu, uint64_t ns)
{
	for (unsigned i = 0; i < pmu->event_count; i++) {
		struct fake_event *event = &pmu->events[i], *leader = &pmu->events[event->leader];

		if (!event->open || !leader->enabled || leader->error)
			continue;
		event->enabled_ns += ns;
		if (!event->active)
			continue;
		event->running_ns += ns;
		event->count += rate_of(pmu, &event->attr, pmu->now) * (double)ns;
	}
}

void fake_advance(struct fake_pmu *pmu, uint64_t ns)
{
	uint64_t end = pmu->now + ns;

	while (pmu->now < end) {
		uint64_t until = MIN(MIN(end, pmu->next_tick), pmu->now + STEP_NS);

		count_for(pmu, until - pmu->now);
		pmu->now = until;
		if (pmu->now == pmu->next_tick) {
			pmu->next_tick += pmu->tick_ns;
			pmu->rotation += pmu->rotates;
			if (pmu->on_tick)
				pmu->on_tick(pmu);
			schedule(pmu);
		}
	}
}

static int fake_open(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu,
		     int group_fd, unsigned long flags)
{
	struct fake_pmu *pmu = ctx;
	int error = pmu->refuse ? pmu->refuse(attr) : 0, i = (int)pmu->event_count;
	struct fake_event *event = &pmu->events[i];

	(void)flags;
	if (error)
		return -error;
	if (i == FAKE_EVENTS)
		return -EMFILE;
	*event = (struct fake_event){.attr = *attr,
				     .pid = pid,
				     .cpu = cpu,
				     .leader = group_fd < 0 ? i : group_fd,
				     .open = true,
				     .enabled = !attr->disabled};
	pmu->event_count++;
	pmu->opens++;
	if (group_fd >= 0 && !pmu->lie_in_validation) {
		struct fake_pmu empty = *pmu;
		struct usage use = {0};

		empty.taken = 0; /* the kernel checks against an empty PMU */
		if (!take_group(&empty, (unsigned)event->leader, &use)) {
			pmu->event_count--;
			return -EINVAL;
		}
	}
	schedule(pmu);
	fake_advance(pmu, pmu->call_ns);
	return i;
}

static int fake_read(void *ctx, int fd, uint64_t *words, unsigned count)
{
	struct fake_pmu *pmu = ctx;
	unsigned n = 3;

	pmu->reads++;
	fake_advance(pmu, pmu->call_ns);
	if (pmu->events[fd].error)
		return 0;
	words[1] = pmu->events[fd].enabled_ns;
	words[2] = pmu->events[fd].running_ns;
	for (unsigned i = (unsigned)fd; i < pmu->event_count && n < count; i++)
		if (pmu->events[i].open && pmu->events[i].leader == fd)
			words[n++] = (uint64_t)pmu->events[i].count;
	words[0] = n - 3;
	return (int)n;
}

static int fake_enable(void *ctx, int fd)
{
	struct fake_pmu *pmu = ctx;

	pmu->events[fd].enabled = true;
	schedule(pmu);
	return 0;
}

static int fake_disable(void *ctx, int fd)
{
	struct fake_pmu *pmu = ctx;

	pmu->events[fd].enabled = false;
	schedule(pmu);
	return 0;
}

static void fake_close(void *ctx, int fd)
{
	struct fake_pmu *pmu = ctx;

	pmu->events[fd].open = false;
	while (pmu->event_count > 0 && !pmu->events[pmu->event_count - 1].open)
		pmu->event_count--;
	schedule(pmu);
}

static uint64_t fake_clock(void *ctx)
{
	struct fake_pmu *pmu = ctx;

	fake_advance(pmu, 1000);
	return pmu->now;
}

static int fake_run_on(void *ctx, const struct cpuset *cpus)
{
	struct fake_pmu *pmu = ctx;

	pmu->at_kind = cpus && cpuset_next(cpus, 0) >= 4;
	schedule(pmu);
	return 0;
}

const struct counter_ops fake_ops = {fake_open,  fake_read,  fake_enable, fake_disable,
				     fake_close, fake_clock, fake_run_on};

static int replay_open(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu,
		       int group_fd, unsigned long flags)
{
	static int next = 10;

	(void)ctx, (void)attr, (void)pid, (void)cpu, (void)group_fd, (void)flags;
	return next++;
}

static int replay_read(void *ctx, int fd, uint64_t *words, unsigned count)
{
	struct replay *r = ctx;
	unsigned at = MIN(r->at, r->reads - 1);

	(void)fd;
	if (r->end_at >= 0 && (int)r->at++ >= r->end_at)
		return 0;
	if (r->end_at < 0)
		r->at++;
	words[0] = r->words_per_read - 2;
	memcpy(words + 1, r->words + (size_t)at * r->words_per_read,
	       MIN(r->words_per_read, count - 1) * sizeof(*words));
	return (int)MIN(r->words_per_read + 1, count);
}

static int replay_nothing(void *ctx, int fd)
{
	(void)ctx, (void)fd;
	return 0;
}

static void replay_close(void *ctx, int fd)
{
	(void)ctx, (void)fd;
}

static uint64_t replay_clock(void *ctx)
{
	return ((struct replay *)ctx)->now += 1000;
}

const struct counter_ops replay_ops = {
	replay_open, replay_read, replay_nothing, replay_nothing, replay_close, replay_clock, NULL};
