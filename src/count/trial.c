/*
 * Does it really count? Candidates are opened and enabled on this thread for a few microseconds;
 * one whose time running stays behind its time enabled has no counter.
 */
#include "count/trial-internal.h"

#include <errno.h>

#include "base/util.h"
#include "count/set-internal.h"

#define TRIAL_NS \
	4000 /* long against the kernel's own scheduling of a group, short against a tick */
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

/* Did this leader run (nearly) all the time it was enabled? */
bool trial_ran(const struct trial *t, int fd)
{
	uint64_t words[3 + COUNT_GROUP_MAX];
	int n = t->ops->read(t->ctx, fd, words, ARRAY_LEN(words));

	return n >= 3 && words[2] > 0 && words[2] >= words[1] / 2;
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

/*
 * Opens all these events at once, each on its own. Those that cannot be opened get their status;
 * the rest tells whether everything fits together.
 */
bool trial_all_fit(const struct trial *t, const unsigned *members, unsigned len)
{
	int fds[4 * COUNT_GROUP_MAX];
	unsigned failed;
	bool fits = true;

	len = MIN(len, (unsigned)ARRAY_LEN(fds));
	for (unsigned i = 0; i < len; i++) {
		struct count_event *event = &t->set->events.data[members[i]];
		int r = -1;

		fds[i] = -1;
		if (event->status < 0)
			continue;
		do
			r = trial_open(t, &members[i], 1, false, true, &fds[i], &failed);
		while (r < 0 && count_event_to_user(event, r));
		if (r < 0)
			count_event_fail(event, r);
	}
	trial_wait(t);
	for (unsigned i = 0; i < len; i++) {
		if (fds[i] < 0)
			continue;
		fits = trial_ran(t, fds[i]) && fits;
		t->ops->close(t->ctx, fds[i]);
	}
	return fits;
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
