/*
 * How readers follow the first pass instead of waiting for its end.
 *
 * A recorder empties its rings in rounds and marks the end of each. What is in a ring when a round
 * begins is written in that round at the latest: when a round ends, nothing can follow that is
 * older than the latest record of the round before it. All that happened until then is told to the
 * timelines, and what lies before the end of that older round can be read. Everything that the
 * readers ask for in the meantime is read and changed with the lock of the timelines.
 *
 * A recording that breaks this promise (something older comes after all, or names an object or an
 * event anew) makes the pass stale: -ESTALE; it is then read in two passes, one after the other.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct chunk;
struct session;
struct side_event;

struct frontier {
	_Alignas(CACHE_LINE_BYTES) pthread_rwlock_t told; /* of timelines and objects */
	uint64_t known; /* nothing will be told with a key below; with the lock */

	pthread_mutex_t lock; /* of what follows, and of the session's chunks */
	pthread_cond_t more;
	size_t ready;  /* chunks that may be read */
	bool complete; /* the first pass is over; then: */
	int status;

	/* The first pass alone: */
	bool wanted, followed; /* readers may come behind it; and can */
	unsigned time_at;      /* where a sample record has its time; 0: not wanted */
	uint64_t latest;       /* key so far */
	uint64_t old_end;      /* where the last round ended */
	uint64_t old_latest;   /* and the latest key then */
	uint32_t sequence;
};

int frontier_new(struct frontier **ret);
void frontier_free(struct frontier *frontier);

/* Before the first pass: whether readers can follow when they want to. */
void frontier_begin(struct session *session);
/* Of the first pass: a thing to be told in its time. -ESTALE when that is over, -ENOMEM. */
int frontier_add(struct session *session, struct side_event *event);
int frontier_add_chunk(struct session *session, const struct chunk *chunk);
/* Something changes that readers took as given from the header. -ESTALE when there may be some. */
int frontier_disturb(const struct session *session);
/* A round ends at this offset. */
int frontier_round(struct session *session, uint64_t offset);
/* Everything is read: tells the rest. */
int frontier_finish(struct session *session);
/* The first pass is over, this way or that: readers need not wait any more. */
void frontier_complete(struct session *session, int status);

/* Of readers: the chunk with this number as soon as it may be read, and how many there are, 0: not
 * known yet. 1, 0 behind the last, or what ended the first pass early. */
int frontier_take(struct session *session, size_t index, struct chunk *ret, size_t *ret_total);
