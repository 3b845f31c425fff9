#include "sample/read-ahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/util.h"

/* Below this the kernel's own reading ahead is as good. */
#define LEAST_BYTES (UINT64_C(16) << 20)
#define PIECE_BYTES (UINT64_C(8) << 20)
/* What may lie in the page cache unread: more would push out what others need. */
#define AHEAD_BYTES (UINT64_C(256) << 20)

struct read_ahead {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int fd;
	uint64_t next, end; /* the thread's alone */
	uint64_t reader;    /* with the lock, as stop */
	bool stop;
};

/* False at the end. */
static bool wait_for_room(struct read_ahead *ahead)
{
	bool go;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stop && ahead->next > ahead->reader + AHEAD_BYTES)
		pthread_cond_wait(&ahead->moved, &ahead->lock);
	go = !ahead->stop;
	/* Who has overtaken the disk needs no help with what is behind. */
	ahead->next = MAX(ahead->next, ahead->reader);
	pthread_mutex_unlock(&ahead->lock);
	return go && ahead->next < ahead->end;
}

static void *run(void *arg)
{
	struct read_ahead *ahead = arg;

	while (wait_for_room(ahead)) {
		uint64_t bytes = MIN(PIECE_BYTES, ahead->end - ahead->next);

		/* A hint: what it does not do, reading does. */
		(void)posix_fadvise(ahead->fd, (off_t)ahead->next, (off_t)bytes,
				    POSIX_FADV_WILLNEED);
		ahead->next += bytes;
	}
	return NULL;
}

struct read_ahead *read_ahead_start(int fd, uint64_t offset, uint64_t end)
{
	struct read_ahead *ahead;

	if (end < offset || end - offset < LEAST_BYTES)
		return NULL;
	ahead = calloc(1, sizeof(*ahead));
	if (!ahead)
		return NULL;
	ahead->fd = fd;
	ahead->next = ahead->reader = offset;
	ahead->end = end;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->moved, NULL);
	if (pthread_create(&ahead->thread, NULL, run, ahead) != 0) {
		pthread_cond_destroy(&ahead->moved);
		pthread_mutex_destroy(&ahead->lock);
		free(ahead);
		return NULL;
	}
	return ahead;
}

void read_ahead_at(struct read_ahead *ahead, uint64_t offset)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->reader = offset;
	pthread_cond_signal(&ahead->moved);
	pthread_mutex_unlock(&ahead->lock);
}

void read_ahead_stop(struct read_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	pthread_cond_signal(&ahead->moved);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	pthread_cond_destroy(&ahead->moved);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
