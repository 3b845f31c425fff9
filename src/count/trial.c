/*
 * Does it really count? Candidates are opened and enabled on this thread for a few microseconds;
 * one whose time running stays behind its time enabled has no counter of its own.
 *
 * The kernel takes turns among events that do not fit, a few milliseconds each. When such a turn
 * falls into a trial, the event that lost its counter has run nearly all its time and the one that
 * got it may have run most of its own: only "running equals enabled" for all of them, to the
 * nanosecond, says that nobody had to wait. The kernel advances both times by the same amount while
 * an event has its counter, through context switches too, so that equality is exact.
 */
#include "count/trial-internal.h"

#include <errno.h>

#include "base/util.h"
#include "count/set-internal.h"

#define TRIAL_NS \
	4000 /* long against the kernel's own scheduling of a group, short against a tick */
#define TURN_NS                                                                           \
	(20 * NSEC_PER_MSEC) /* some turns of the kernel: an event that competes gets one \
			      */
#define TRIES    3
#define FREE_MAX 32

void trial_wait(const struct trial *t)
{
	uint64_t end = t->ops->clock(t->ctx) + TRIAL_NS;

	while (t->ops->clock(t->ctx) < end)
		;
}

/* Opens events as one group on this thread. The leader's descriptor, or the negative errno and
 * *ret_failed. */
int trial_open(const struct trial *t, const unsigned *members, unsigned len, bool pinned,
	       bool enabled, int *fds, unsigned *ret_failed)
{
	for (unsigned i = 0; i < len; i++) {
		struct perf_event_attr attr = count_open_attr(&t->set->events.data[members[i]]);

		attr.disabled = i == 0 && !enabled;
		attr.pinned = i == 0 && pinned;
		fds[i] = t->ops->open(t->ctx, &attr, 0, -1, i ? fds[0] : -1, 0);
		if (fds[i] < 0) {
			int error = fds[i];

			while (i-- > 0)
				t->ops->close(t->ctx, fds[i]);
			*ret_failed = i + 1;
			return error;
		}
	}
	return fds[0];
}

void trial_close(const struct trial *t, const int *fds, unsigned len)
{
	while (len-- > 0)
		t->ops->close(t->ctx, fds[len]);
}

enum trial_run trial_run_of(const struct trial *t, int fd)
{
	uint64_t words[3 + COUNT_GROUP_MAX];
	int n = t->ops->read(t->ctx, fd, words, ARRAY_LEN(words));

	if (n < 3 || words[2] == 0)
		return TRIAL_NEVER;
	return words[2] == words[1] ? TRIAL_ALWAYS : TRIAL_PARTLY;
}

bool trial_ran(const struct trial *t, int fd)
{
	return trial_run_of(t, fd) != TRIAL_NEVER;
}

/* Can these events run as one group, beside the always-on ones that are open? */
bool trial_group_fits(const struct trial *t, const unsigned *members, unsigned len, bool pinned)
{
	int fds[COUNT_GROUP_MAX];
	unsigned failed;
	bool fits;

	if (len > COUNT_GROUP_MAX || trial_open(t, members, len, pinned, false, fds, &failed) < 0)
		return false;
	t->ops->enable(t->ctx, fds[0]);
	trial_wait(t);
	fits = trial_ran(t, fds[0]);
	trial_close(t, fds, len);
	return fits;
}

bool trial_group_gets_turns(const struct trial *t, const unsigned *members, unsigned len)
{
	uint64_t end = t->ops->clock(t->ctx) + TURN_NS;
	int fds[COUNT_GROUP_MAX];
	unsigned failed;
	bool ran = false;

	if (len > COUNT_GROUP_MAX || trial_open(t, members, len, false, false, fds, &failed) < 0)
		return false;
	t->ops->enable(t->ctx, fds[0]);
	while (!ran && t->ops->clock(t->ctx) < end) {
		trial_wait(t);
		ran = trial_ran(t, fds[0]);
	}
	trial_close(t, fds, len);
	return ran;
}

/* The leader among those that are open of the user's group that the i-th is of; -1: none. */
static int open_leader(const struct trial *t, const unsigned *members, const int *fds, unsigned i)
{
	int group = t->set->events.data[members[i]].user_group;

	for (unsigned k = 0; k < i && group >= 0; k++)
		if (fds[k] >= 0 && t->set->events.data[members[k]].user_group == group)
			return fds[k];
	return -1;
}

/* As part of its group, since PERF_METRICS exist only behind their leader; on its own when the
 * group takes no more. */
static int open_one(const struct trial *t, unsigned member, int leader)
{
	struct perf_event_attr attr = count_open_attr(&t->set->events.data[member]);
	int r;

	attr.disabled = 0;
	r = leader >= 0 ? t->ops->open(t->ctx, &attr, 0, -1, leader, 0) : -EINVAL;
	return r >= 0 ? r : t->ops->open(t->ctx, &attr, 0, -1, -1, 0);
}

/* One try of trial_all_fit(): how the least lucky of the events ran. */
static enum trial_run all_run(const struct trial *t, const unsigned *members, unsigned len)
{
	int fds[TRIAL_MAX];
	enum trial_run least = TRIAL_ALWAYS;

	for (unsigned i = 0; i < len; i++) {
		struct count_event *event = &t->set->events.data[members[i]];
		int leader, r;

		fds[i] = -1;
		if (event->status < 0)
			continue;
		leader = open_leader(t, members, fds, i);
		do
			r = open_one(t, members[i], leader);
		while (r < 0 && count_event_to_user(event, r));
		if (r < 0)
			count_event_fail(event, r);
		else
			fds[i] = r;
	}
	trial_wait(t);
	for (unsigned i = 0; i < len; i++)
		if (fds[i] >= 0)
			least = MIN(least, trial_run_of(t, fds[i]));
	for (unsigned i = 0; i < len; i++)
		if (fds[i] >= 0)
			t->ops->close(t->ctx, fds[i]);
	return least;
}

bool trial_all_fit(const struct trial *t, const unsigned *members, unsigned len)
{
	enum trial_run run = TRIAL_PARTLY;

	/* Partly: a turn of the kernel fell into this try. Nothing but fitting gives "always". */
	for (unsigned i = 0; i < TRIES && run == TRIAL_PARTLY; i++)
		run = all_run(t, members, MIN(len, (unsigned)TRIAL_MAX));
	return run == TRIAL_ALWAYS;
}

int trial_move(const struct trial *t, const struct cpuset *cpus)
{
	return t->ops->run_on ? t->ops->run_on(t->ctx, cpus) : -ENOSYS;
}

/* How many of these can be open and running at once; the descriptors are closed again. */
static unsigned count_running(struct trial *t, uint64_t config, bool user_only, int *ret_status)
{
	struct count_event event = {.kind = COUNT_CORE};
	struct count_set one = {.events = {.data = &event, .len = 1}};
	unsigned running = 0, opened = 0, failed;
	int fds[FREE_MAX];

	t->set = &one;
	event.attr = (struct perf_event_attr){.type = PERF_TYPE_HARDWARE,
					      .config = config,
					      .exclude_kernel = user_only,
					      .exclude_hv = user_only};
	for (; opened < FREE_MAX; opened++) {
		int r = trial_open(t, &(unsigned){0}, 1, true, true, &fds[opened], &failed);

		if (r < 0) {
			*ret_status = opened ? 0 : r;
			break;
		}
		trial_wait(t);
		if (!trial_ran(t, fds[opened])) {
			t->ops->close(t->ctx, fds[opened]);
			break;
		}
		running++;
	}
	trial_close(t, fds, opened);
	return running;
}

void counters_probe(const struct counter_ops *ops, void *ctx, bool user_only,
		    struct counters_free *ret)
{
	struct trial t = {.ops = ops, .ctx = ctx};
	unsigned cycles;

	*ret = (struct counters_free){0};
	ret->any = count_running(&t, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, user_only, &ret->status);
	cycles = count_running(&t, PERF_COUNT_HW_CPU_CYCLES, user_only, &ret->status);
	if (ret->any == 0 && cycles > 0) /* no branch event on this CPU: instructions will do */
		ret->any = count_running(&t, PERF_COUNT_HW_INSTRUCTIONS, user_only, &ret->status);
	if (ret->any > 0)
		ret->status = 0;
	ret->cycles_extra = ret->any > 0 && cycles > ret->any;
}
