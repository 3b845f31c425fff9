#include "latency/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "latency/sampler-internal.h"

#define STACK_BYTES   (128 << 10)
#define STACK_PREPARE (64 << 10)
#define GATE_NS       (2 * NSEC_PER_MSEC)
#define READY_S       10 /* a thread that had no CPU for so long gets none */
#define END_S         5

/* --- setting up ------------------------------------------------------------------------------ */

static int join_cgroup(const char *cgroup, int tid, struct err *err)
{
	char path[512], text[16];
	int fd, r, len;

	snprintf(path, sizeof(path), "%s%s/cgroup.threads",
		 *cgroup == '/' && str_prefix(cgroup, "/sys/", NULL) ? "" : "/sys/fs/cgroup/",
		 cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cgroup %s: open %s: %s", cgroup, path,
			       strerror(errno));
	len = snprintf(text, sizeof(text), "%d", tid);
	r = fd_write_all(fd, text, (size_t)len);
	close(fd);
	if (r == -EOPNOTSUPP)
		return err_set(err, r,
			       "cgroup %s: it takes no single threads; write \"threaded\" to its "
			       "cgroup.type",
			       cgroup);
	return r < 0 ? err_set(err, r, "cgroup %s: move the thread: %s", cgroup, strerror(-r)) : 0;
}

/* Touches the stack that the loop will use, so that it costs no page fault later. */
static void __attribute__((noinline)) prepare_stack(void)
{
	volatile char page[STACK_PREPARE];

	for (size_t i = 0; i < sizeof(page); i += 1024)
		page[i] = 0;
}

static int set_up(struct sampler *t)
{
	const struct sampler_options *options = &t->group->options;
	struct err why = {0};
	int r;

	t->tid = (int)syscall(SYS_gettid);
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (options->cgroup) {
		r = join_cgroup(options->cgroup, t->tid, &t->why);
		if (r < 0)
			return r;
	}
	r = affinity_set_one(0, t->cpu);
	if (r < 0)
		return err_set(&t->why, r, "CPU %u: the thread cannot be put there: %s%s", t->cpu,
			       strerror(-r),
			       r == -EINVAL ? " (offline, or outside this cpuset)" : "");
	r = policy_set(0, options->policy, options->priority, options->dl_runtime_ns,
		       options->dl_period_ns);
	if (r < 0) {
		policy_refused(r, options->policy, options->priority, &why);
		return err_set(&t->why, r, "CPU %u: %s", t->cpu, err_text(&why, r));
	}
	prepare_stack();
	return 0;
}

/* --- the threads ----------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	struct sampler *t = arg;
	struct samplers *group = t->group;
	const struct timespec step = {.tv_nsec = GATE_NS};
	int gate;

	t->code = set_up(t);
	__atomic_store_n(&t->ready, 1, __ATOMIC_RELEASE);
	if (t->code < 0)
		return NULL;
	while ((gate = __atomic_load_n(&group->gate, __ATOMIC_ACQUIRE)) == GATE_WAIT)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
	if (gate == GATE_GO) {
		if (group->options.wakes)
			sampler_wake_loop(t);
		else
			sampler_noise_loop(t);
	}
	__atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int start_threads(struct samplers *group, struct err *err)
{
	pthread_attr_t attributes;
	int r = 0;

	if (pthread_attr_init(&attributes))
		return -ENOMEM;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (unsigned i = 0; i < group->count && r == 0; i++) {
		struct sampler *t = &group->threads[i];

		r = -pthread_create(&t->thread, &attributes, thread_main, t);
		if (r < 0)
			err_set(err, r, "start a thread for CPU %u: %s", t->cpu, strerror(-r));
		else
			group->started++;
	}
	pthread_attr_destroy(&attributes);
	return r;
}

static int wait_ready(struct samplers *group, struct err *err)
{
	const struct timespec step = {.tv_nsec = GATE_NS};
	uint64_t end = clock_monotonic_ns() + READY_S * NSEC_PER_SEC;

	for (unsigned i = 0; i < group->started; i++) {
		struct sampler *t = &group->threads[i];

		while (!__atomic_load_n(&t->ready, __ATOMIC_ACQUIRE)) {
			if (clock_monotonic_ns() >= end)
				return err_set(err, -ETIMEDOUT,
					       "CPU %u: a thread got no CPU for %d s: something "
					       "of a higher priority does not let go of it",
					       t->cpu, READY_S);
			nanosleep(&step, NULL);
		}
		if (t->code < 0)
			return err_set(err, t->code, "%s", err_text(&t->why, t->code));
		group->tids[i] = t->tid;
	}
	return 0;
}

int samplers_new(const struct sampler_options *options, struct samplers **ret, bool *ret_unlocked,
		 struct err *err)
{
	struct samplers *group = calloc(1, sizeof(*group));
	int r = -ENOMEM;

	if (!group)
		return r;
	group->options = *options;
	group->count = options->cpus ? cpuset_count(options->cpus) : options->thread_count;
	group->threads = calloc(group->count, sizeof(*group->threads));
	group->tids = calloc(group->count, sizeof(*group->tids));
	if (!group->threads || !group->tids)
		goto fail;
	for (unsigned i = 0, cpu = 0; i < group->count; i++, cpu++) {
		cpu = options->cpus ? (unsigned)cpuset_next(options->cpus, cpu)
				    : options->thread_cpus[i];
		group->threads[i] = (struct sampler){.cpu = cpu, .index = i, .group = group};
		group->longest_ns =
			MAX(group->longest_ns,
			    options->intervals_ns ? options->intervals_ns[i] : options->period_ns);
	}
	r = start_threads(group, err);
	if (r == 0)
		r = wait_ready(group, err);
	if (r < 0)
		goto fail;
	/* not what comes later: under a limit that would make allocations elsewhere fail */
	group->locked = mlockall(MCL_CURRENT) == 0;
	if (!group->locked && options->lock_memory) {
		r = err_set(err, -errno, "lock memory: %s (CAP_IPC_LOCK, ulimit -l)",
			    strerror(errno));
		goto fail;
	}
	if (ret_unlocked)
		*ret_unlocked = !group->locked;
	*ret = group;
	return 0;
fail:
	samplers_free(group);
	return r;
}

const int *samplers_tids(const struct samplers *samplers)
{
	return samplers->tids;
}

void samplers_go(struct samplers *samplers, const struct sampler_cpu *cpus)
{
	for (unsigned i = 0; i < samplers->count; i++)
		samplers->threads[i].io = cpus[i];
	samplers->base_ns = clock_ns(samplers->options.clock) + 10 * NSEC_PER_MSEC;
	__atomic_store_n(&samplers->gate, GATE_GO, __ATOMIC_RELEASE);
}

bool samplers_done(const struct samplers *samplers)
{
	for (unsigned i = 0; i < samplers->count; i++)
		if (!__atomic_load_n(&samplers->threads[i].done, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static bool join_until(struct samplers *samplers, uint64_t end_ns)
{
	const struct timespec end = {
		.tv_sec = (time_t)(end_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(end_ns % NSEC_PER_SEC),
	};

	while (samplers->started) {
		pthread_t last = samplers->threads[samplers->started - 1].thread;

		if (pthread_clockjoin_np(last, NULL, CLOCK_MONOTONIC, &end) == ETIMEDOUT)
			return false;
		samplers->started--;
	}
	return true;
}

/* Threads whose CPU is taken by others may end on one that is not. */
static void unpin_all(struct samplers *samplers)
{
	struct cpuset ours;

	if (affinity_get(0, &ours) < 0)
		return;
	for (unsigned i = 0; i < samplers->started; i++)
		if (samplers->threads[i].tid)
			(void)affinity_set(samplers->threads[i].tid, &ours);
}

bool samplers_stop(struct samplers *samplers)
{
	int waits = GATE_WAIT;
	uint64_t grace = END_S * NSEC_PER_SEC;

	__atomic_store_n(&samplers->stop, 1, __ATOMIC_RELEASE);
	__atomic_compare_exchange_n(&samplers->gate, &waits, GATE_END, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	if (join_until(samplers, clock_monotonic_ns() + samplers->longest_ns + grace))
		return true;
	unpin_all(samplers);
	return join_until(samplers, clock_monotonic_ns() + grace);
}

void samplers_tell_skipped(const struct samplers *samplers, const char *period,
			   struct latency_run *run)
{
	uint64_t skipped = 0;

	for (unsigned i = 0; i < samplers->count; i++)
		skipped += samplers->threads[i].skipped;
	if (skipped)
		latency_run_warn(run,
				 "%llu wake-ups left out: the one before came more than %s late",
				 (unsigned long long)skipped, period);
}

bool samplers_free(struct samplers *samplers)
{
	if (!samplers)
		return true;
	if (!samplers_stop(samplers))
		return false; /* left to the threads, which may still want it */
	if (samplers->locked)
		munlockall();
	free(samplers->threads);
	free(samplers->tids);
	free(samplers);
	return true;
}
