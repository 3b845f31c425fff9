#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/affinity.h"
#include "base/util.h"

#define THREADS_MAX 256

struct parallel_job {
	int (*fn)(void *arg, size_t i);
	void *arg;
	size_t count;
	atomic_size_t next;
	atomic_int status;
};

static void *parallel_worker(void *data)
{
	struct parallel_job *job = data;
	size_t i;

	while (atomic_load(&job->status) >= 0 &&
	       (i = atomic_fetch_add(&job->next, 1)) < job->count) {
		int r = job->fn(job->arg, i), none = 0;

		if (r < 0)
			atomic_compare_exchange_strong(&job->status, &none, r);
	}
	return NULL;
}

unsigned parallel_cpus(void)
{
	struct cpuset cpus;

	return affinity_get(0, &cpus) < 0 ? 1 : MAX(1u, cpuset_count(&cpus));
}

int parallel_for(size_t count, unsigned nthreads, int (*fn)(void *arg, size_t i), void *arg)
{
	struct parallel_job job = {.fn = fn, .arg = arg, .count = count};
	pthread_t threads[THREADS_MAX];
	unsigned started = 0;

	if (nthreads == 0)
		nthreads = parallel_cpus();
	nthreads = (unsigned)MIN((size_t)MIN(nthreads, (unsigned)THREADS_MAX), count);
	while (started + 1 < nthreads &&
	       pthread_create(&threads[started], NULL, parallel_worker, &job) == 0)
		started++;
	parallel_worker(&job);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return atomic_load(&job.status);
}
