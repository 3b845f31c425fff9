#include "sample/frontier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

/* So many things to be told later are sorted once, at the end. */
#define WAITING_MAX (1u << 20)

int frontier_new(struct frontier **ret)
{
	struct frontier *frontier = aligned_alloc(CACHE_LINE_BYTES, sizeof(*frontier));

	if (!frontier)
		return -ENOMEM;
	memset(frontier, 0, sizeof(*frontier));
	pthread_rwlock_init(&frontier->told, NULL);
	pthread_mutex_init(&frontier->lock, NULL);
	pthread_cond_init(&frontier->more, NULL);
	*ret = frontier;
	return 0;
}

void frontier_free(struct frontier *frontier)
{
	if (!frontier)
		return;
	pthread_rwlock_destroy(&frontier->told);
	pthread_mutex_destroy(&frontier->lock);
	pthread_cond_destroy(&frontier->more);
	free(frontier);
}

/* Where the time is in every sample, whatever its event; 0: not in one place. */
static unsigned time_offset(const struct session *session)
{
	const uint64_t before = SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID;
	uint64_t type = session->events.len ? session->events.data[0].attr.sample_type : 0;

	vec_for_each(&session->events, event)
		if ((event->attr.sample_type ^ type) & before)
			return 0;
	return 8 + 8 * (unsigned)__builtin_popcountll(type & before);
}

void frontier_begin(struct session *session)
{
	struct frontier *f = session->frontier;
	const struct input_file *file = &session->input.files.data[0];

	f->followed = f->wanted && session->timed && !session->header.swap &&
		      !session->header.pipe && !session->group_reads &&
		      session->input.files.len == 1 && file->map.data;
	f->time_at = f->followed ? time_offset(session) : 0;
	f->followed = f->time_at > 0;
}

int frontier_add(struct session *session, struct side_event *event)
{
	struct frontier *f = session->frontier;

	if (event->key < f->known)
		return -ESTALE;
	event->sequence = f->sequence++;
	f->latest = MAX(f->latest, event->key);
	return vec_push(&session->side, *event);
}

int frontier_add_chunk(struct session *session, const struct chunk *chunk)
{
	int r;

	pthread_mutex_lock(&session->frontier->lock);
	r = vec_push(&session->chunks, *chunk);
	pthread_mutex_unlock(&session->frontier->lock);
	return r;
}

int frontier_disturb(const struct session *session)
{
	return session->frontier->wanted ? -ESTALE : 0;
}

/* Tells what happened before the key, and lets readers go on. */
static int tell(struct session *session, uint64_t known, size_t ready)
{
	struct frontier *f = session->frontier;
	struct side_event *side = session->side.data;
	size_t count = session->side.len, due = 0;
	int r;

	tasks_sort(side, count);
	while (due < count && (side[due].key < known || known == UINT64_MAX))
		due++;
	pthread_rwlock_wrlock(&f->told);
	r = tasks_replay(&session->tasks, side, due);
	f->known = known;
	pthread_rwlock_unlock(&f->told);
	if (due > 0)
		memmove(side, side + due, (count - due) * sizeof(*side));
	session->side.len = count - due;
	if (r < 0)
		return r;
	pthread_mutex_lock(&f->lock);
	f->ready = ready;
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
	return 0;
}

int frontier_round(struct session *session, uint64_t offset)
{
	struct frontier *f = session->frontier;
	uint64_t end = f->old_end, latest = f->old_latest;
	size_t ready = f->ready;

	if (!f->followed)
		return 0;
	f->old_end = offset;
	f->old_latest = f->latest;
	while (ready < session->chunks.len && session->chunks.data[ready].end <= end)
		ready++;
	/* Of a jitdump's code the first pass learns at its end. */
	if (ready == f->ready || latest >= UINT64_MAX - 1 || session->jitdumps.len > 0 ||
	    session->side.len > WAITING_MAX)
		return 0;
	/* Without a history, what is asked for is what was told last. */
	return session->tasks.maps.frozen ? -ESTALE : tell(session, latest + 1, ready);
}

int frontier_finish(struct session *session)
{
	bool early = session->frontier->ready > 0;
	int r;

	/* Objects have changed that readers may know. */
	if (early && session->jitdumps.len > 0)
		return -ESTALE;
	r = tell(session, UINT64_MAX, session->chunks.len);
	vec_fini(&session->side);
	return r == 0 && early && session->tasks.maps.frozen ? -ESTALE : r;
}

void frontier_complete(struct session *session, int status)
{
	struct frontier *f = session->frontier;

	pthread_mutex_lock(&f->lock);
	f->complete = true;
	f->status = status;
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
}

int frontier_take(struct session *session, size_t index, struct chunk *ret, size_t *ret_total)
{
	struct frontier *f = session->frontier;
	int r = 0;

	pthread_mutex_lock(&f->lock);
	while (index >= f->ready && !f->complete)
		pthread_cond_wait(&f->more, &f->lock);
	if (f->complete && f->status < 0) {
		r = f->status;
	} else if (index < f->ready) {
		*ret = session->chunks.data[index];
		*ret_total = f->complete ? session->chunks.len : 0;
		r = 1;
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}
