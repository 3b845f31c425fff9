/*
 * Opening and reading. The record of a place is the words of all its groups one after another: time
 * enabled, time running, one value per member. Descriptors stand in an array of the same shape (the
 * leader's at the group's offset), so that one index serves both.
 */
#include "count/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/util.h"
#include "count/session-internal.h"
#include "count/set-internal.h"

#define SLICE_SHARED_NS (10 * NSEC_PER_MSEC) /* first slices of a multiplexed run */
#define SLICE_CALM_NS   (100 * NSEC_PER_MSEC)
#define READ_COST_SHARE 200 /* reading may take this part of the time: 0.5 % */
#define OPEN_RETRIES    5

static int raise_file_limit(unsigned long need, struct err *err)
{
	struct rlimit limit;

	if (need < 512 || getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max < need) {
		struct rlimit more = {need, need};

		if (setrlimit(RLIMIT_NOFILE, &more) < 0)
			return err_set(err, -EMFILE,
				       "needs %lu open files, the hard limit is %lu; raise it "
				       "(ulimit -Hn %lu) or count fewer events",
				       need, (unsigned long)limit.rlim_max, need);
		return 0;
	}
	limit.rlim_cur = need;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0
		       ? err_set(err, -errno, "raise the limit of open files to %lu", need)
		       : 0;
}

static bool group_on_place(const struct count_session *s, const struct count_group *group,
			   const struct count_place *place)
{
	const struct count_event *leader = &s->set->events.data[group->members[0]];

	if (group->pass >= 0 && group->pass != s->options.pass)
		return false;
	if (leader->cpus && place->cpu >= 0)
		return cpuset_has(leader->cpus, (unsigned)place->cpu);
	return true;
}

static int open_member(struct count_session *s, unsigned event_index,
		       const struct count_place *place, int leader, bool pinned, int *ret_fd)
{
	struct count_event *event = &s->set->events.data[event_index];
	unsigned long flags = place->cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0;
	pid_t pid = place->cgroup >= 0 ? place->cgroup : place->pid;
	int r;

	if (event->kind == COUNT_UNCORE && event->cpus && place->cpu < 0)
		return -EXDEV; /* worded by the caller: counts CPUs, not tasks */
	do {
		struct perf_event_attr attr = count_open_attr(event);

		attr.disabled = leader < 0;
		attr.inherit = s->options.inherit && place->cpu < 0;
		attr.enable_on_exec = s->options.enable_on_exec && leader < 0;
		attr.pinned = pinned && leader < 0;
		r = s->ops->open(s->ctx, &attr, pid, place->cpu, leader, flags);
	} while (r < 0 && count_event_to_user(event, r));
	if (r >= 0)
		*ret_fd = r;
	return MIN(r, 0);
}

static void fail_event(struct count_event *event, int error)
{
	count_event_fail(event, error);
	if (error == -EXDEV)
		snprintf(event->reason, sizeof(event->reason),
			 "counts whole CPUs, not single programs: use -a or -C");
}

/* Errors of the place (it is gone) and of this process (no files, no memory) are not the event's.
 */
static bool is_place_error(int error)
{
	return error == -ESRCH || error == -EMFILE || error == -ENFILE || error == -ENOMEM ||
	       error == -EINTR;
}

static int open_group_on(struct count_session *s, unsigned g, unsigned p)
{
	const struct count_group *group = &s->set->groups.data[g];
	int *fds = s->fds + (size_t)p * s->place_words + s->offsets[g], leader = -1;

	for (unsigned i = 0; i < group->len; i++) {
		struct count_event *event = &s->set->events.data[group->members[i]];
		int r;

		if (event->status < 0)
			continue;
		r = open_member(s, group->members[i], &s->places[p], leader, group->pinned,
				&fds[i]);
		if (is_place_error(r))
			return r;
		if (r < 0)
			fail_event(event, r);
		else if (leader < 0)
			leader = fds[i];
	}
	if (leader >= 0)
		row_group(s, s->places[p].row, g)->opened = true;
	return 0;
}

static int group_leader(const struct count_session *s, unsigned g, unsigned p)
{
	const int *fds = s->fds + (size_t)p * s->place_words + s->offsets[g];

	for (unsigned i = 0; i < s->set->groups.data[g].len; i++)
		if (fds[i] >= 0)
			return fds[i];
	return -1;
}

static void close_group_on(struct count_session *s, unsigned g, unsigned p)
{
	int *fds = s->fds + (size_t)p * s->place_words + s->offsets[g];

	for (unsigned i = s->set->groups.data[g].len; i-- > 0;) {
		if (fds[i] >= 0)
			s->ops->close(s->ctx, fds[i]);
		fds[i] = -1;
	}
}

/*
 * A thread that is created between the opening of a group's members inherits a smaller group, and
 * every read of the whole then fails with ECHILD: open that group anew.
 */
static int open_checked(struct count_session *s, unsigned g, unsigned p)
{
	uint64_t words[3 + COUNT_GROUP_MAX];
	int r = 0;

	for (int attempt = 0; attempt < OPEN_RETRIES; attempt++) {
		r = open_group_on(s, g, p);
		if (r < 0 || s->places[p].pid <= 0 || group_leader(s, g, p) < 0)
			return r;
		r = s->ops->read(s->ctx, group_leader(s, g, p), words, ARRAY_LEN(words));
		if (r != -ECHILD)
			return MIN(r, 0);
		close_group_on(s, g, p);
	}
	return r;
}

static int open_all(struct count_session *s, struct err *err)
{
	unsigned alive = 0;

	for (unsigned p = 0; p < s->place_count; p++) {
		int r = 0;

		for (unsigned g = 0; g < s->group_count && r == 0; g++)
			if (group_on_place(s, &s->set->groups.data[g], &s->places[p]))
				r = open_checked(s, g, p);
		if (r == -ESRCH) { /* the thread ended meanwhile */
			for (unsigned g = 0; g < s->group_count; g++)
				close_group_on(s, g, p);
			s->places[p].gone = "the thread ended before it was counted";
			continue;
		}
		if (r < 0)
			return err_set(err, r, "open counters: %s", strerrordesc_np(-r));
		alive++;
	}
	return alive || s->place_count == 0 ? 0 : err_set(err, -ESRCH, "no such process or thread");
}

static int alloc_session(struct count_session *s, const struct count_place *places)
{
	size_t cells;

	s->offsets = calloc(s->group_count + 1, sizeof(*s->offsets));
	s->rows = calloc((size_t)s->row_count * (s->group_count + 1), sizeof(*s->rows));
	s->places = calloc(s->place_count + 1, sizeof(*s->places));
	if (!s->offsets || !s->rows || !s->places)
		return -ENOMEM;
	memcpy(s->places, places, s->place_count * sizeof(*places));
	for (unsigned g = 0; g < s->group_count; g++) {
		s->offsets[g] = s->place_words;
		s->place_words += group_words(&s->set->groups.data[g]);
	}
	cells = (size_t)s->place_count * s->place_words + 1;
	s->fds = malloc(cells * sizeof(*s->fds));
	s->last = calloc(cells, sizeof(*s->last));
	if (!s->fds || !s->last)
		return -ENOMEM;
	memset(s->fds, -1, cells * sizeof(*s->fds));
	for (unsigned row = 0; row < s->row_count; row++)
		for (unsigned g = 0; g < s->group_count; g++) {
			row_group(s, row, g)->sum =
				calloc(group_words(&s->set->groups.data[g]), sizeof(uint64_t));
			if (!row_group(s, row, g)->sum)
				return -ENOMEM;
		}
	return 0;
}

int count_session_open(struct count_set *set, const struct counter_ops *ops, void *ctx,
		       const struct count_place *places, unsigned place_count, unsigned row_count,
		       const struct count_session_options *options, struct count_session **ret,
		       struct err *err)
{
	struct count_session *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	*s = (struct count_session){
		.set = set,
		.ops = ops,
		.ctx = ctx,
		.options = *options,
		.place_count = place_count,
		.row_count = row_count,
		.group_count = (unsigned)set->groups.len,
		.slice_ns = set->multiplexed ? SLICE_SHARED_NS : SLICE_CALM_NS,
	};
	r = alloc_session(s, places);
	if (r < 0)
		err_set(err, r, "out of memory");
	if (r == 0)
		r = raise_file_limit((unsigned long)place_count * set->events.len + 64, err);
	if (r == 0)
		r = open_all(s, err);
	if (r < 0) {
		count_session_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void count_session_close(struct count_session *s)
{
	if (!s)
		return;
	for (unsigned p = 0; s->fds && p < s->place_count; p++)
		for (unsigned g = 0; g < s->group_count; g++)
			close_group_on(s, g, p);
	count_session_leave(s);
}

void count_session_leave(struct count_session *s)
{
	if (!s)
		return;
	for (unsigned i = 0; s->rows && i < s->row_count * s->group_count; i++) {
		free(s->rows[i].sum);
		free(s->rows[i].slices);
	}
	free(s->rows);
	free(s->offsets);
	free(s->places);
	free(s->fds);
	free(s->last);
	free(s);
}

static int for_each_leader(struct count_session *s, int (*call)(void *ctx, int fd))
{
	int first = 0;

	for (unsigned p = 0; p < s->place_count; p++)
		for (unsigned g = 0; g < s->group_count; g++) {
			int fd = group_leader(s, g, p), r = fd >= 0 ? call(s->ctx, fd) : 0;

			if (r < 0 && first == 0)
				first = r;
		}
	return first;
}

int count_session_enable(struct count_session *s)
{
	return for_each_leader(s, s->ops->enable);
}

int count_session_disable(struct count_session *s)
{
	return for_each_leader(s, s->ops->disable);
}

uint64_t counter_delta(uint64_t before, uint64_t now)
{
	if (now < before && before >> 48 == 0 && before >> 47 == 1)
		return (now - before) & ((UINT64_C(1) << 48) - 1); /* a 48-bit counter wrapped */
	return now - before;
}

uint64_t counter_scale(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 scaled = c ? (unsigned __int128)a * b / c : 0;

	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

static uint64_t *current_slice(struct count_session *s, unsigned row, unsigned g)
{
	struct row_group *rg = row_group(s, row, g);

	return rg->slices
		       ? rg->slices + (size_t)s->slice_count * group_words(&s->set->groups.data[g])
		       : NULL;
}

/* Adds what a group counted on a place since the last read to its row. */
static int read_group(struct count_session *s, unsigned g, unsigned p)
{
	const struct count_group *group = &s->set->groups.data[g];
	const int *fds = s->fds + (size_t)p * s->place_words + s->offsets[g];
	uint64_t words[3 + COUNT_GROUP_MAX],
		*last = s->last + (size_t)p * s->place_words + s->offsets[g];
	struct row_group *rg = row_group(s, s->places[p].row, g);
	uint64_t *slice = current_slice(s, s->places[p].row, g);
	int leader = group_leader(s, g, p), n;
	unsigned next = 3;

	if (leader < 0)
		return 0;
	n = s->ops->read(s->ctx, leader, words, ARRAY_LEN(words));
	if (n < 0)
		return n;
	if (n < 3) {
		rg->error_state = true;
		return 0;
	}
	for (unsigned i = 0; i < group_words(group); i++) {
		uint64_t now, delta;

		if (i >= 2 && fds[i - 2] < 0)
			continue; /* this member could not be opened: the group has no word for it
				   */
		if (i >= 2 && next >= (unsigned)n)
			return -EIO;
		now = i < 2 ? words[1 + i] : words[next++];
		delta = counter_delta(last[i], now);
		last[i] = now;
		rg->sum[i] += delta;
		if (slice)
			slice[i] += delta;
	}
	return 0;
}

static int ensure_slices(struct count_session *s)
{
	if (!s->options.keep_slices || s->slice_count < s->slice_cap)
		return 0;
	s->slice_cap = s->slice_cap ? MIN(2 * s->slice_cap, (unsigned)COUNT_SLICES_MAX + 1) : 32;
	for (unsigned row = 0; row < s->row_count; row++)
		for (unsigned g = 0; g < s->group_count; g++) {
			struct row_group *rg = row_group(s, row, g);
			size_t words = group_words(&s->set->groups.data[g]);
			uint64_t *grown =
				realloc(rg->slices, s->slice_cap * words * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			memset(grown + s->slice_count * words, 0,
			       (s->slice_cap - s->slice_count) * words * sizeof(*grown));
			rg->slices = grown;
		}
	return 0;
}

/* Full: neighbours become one, slices last twice as long from now on. */
static void merge_slices(struct count_session *s)
{
	for (unsigned i = 0; i < s->row_count * s->group_count; i++) {
		size_t words = group_words(&s->set->groups.data[i % s->group_count]);
		uint64_t *slices = s->rows[i].slices;

		for (size_t k = 0; k < s->slice_count / 2; k++)
			for (size_t w = 0; w < words; w++)
				slices[k * words + w] =
					slices[2 * k * words + w] + slices[(2 * k + 1) * words + w];
		memset(slices + s->slice_count / 2 * words, 0,
		       (s->slice_cap - s->slice_count / 2) * words * sizeof(*slices));
	}
	s->slice_count /= 2;
	s->slice_ns *= 2;
}

int count_session_read(struct count_session *s)
{
	uint64_t start = s->ops->clock(s->ctx), cost;
	int first = ensure_slices(s);

	for (unsigned p = 0; p < s->place_count; p++)
		for (unsigned g = 0; g < s->group_count; g++) {
			int r = read_group(s, g, p);

			if (r < 0 && first == 0)
				first = r;
		}
	if (s->options.keep_slices && s->slice_cap > s->slice_count) {
		s->slice_count++;
		if (s->slice_count == COUNT_SLICES_MAX)
			merge_slices(s);
	}
	cost = s->ops->clock(s->ctx) - start;
	s->read_cost_ns = s->read_cost_ns ? (3 * s->read_cost_ns + cost) / 4 : cost;
	return first;
}

void count_session_restart(struct count_session *s)
{
	for (unsigned i = 0; i < s->row_count * s->group_count; i++) {
		size_t words = group_words(&s->set->groups.data[i % s->group_count]);

		memset(s->rows[i].sum, 0, words * sizeof(uint64_t));
		if (s->rows[i].slices)
			memset(s->rows[i].slices, 0, s->slice_cap * words * sizeof(uint64_t));
	}
	s->slice_count = 0;
	s->slice_ns = s->set->multiplexed ? SLICE_SHARED_NS : SLICE_CALM_NS;
}

uint64_t count_session_slice_ns(const struct count_session *s)
{
	return MAX(s->slice_ns, s->read_cost_ns * READ_COST_SHARE);
}

void count_session_place_gone(struct count_session *s, unsigned place, const char *why)
{
	s->places[place].gone = why;
	for (unsigned g = 0; g < s->group_count; g++)
		row_group(s, s->places[place].row, g)->gone = why;
}
