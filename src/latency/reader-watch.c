#include "latency/reader-watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"

#define LOOK_NS        NSEC_PER_SEC
#define SILENT_LOOKS   2
#define HELP_LOOKS     5  /* a helped reader keeps its priority for so many */
#define STARVING_SHARE 10 /* got less than 1/10 of the CPU that it wants */
#define WATCH_PRIORITY 99
#define HELP_PRIORITY  98
#define WAKE_SIGNAL    SIGURG /* ignored by everybody who did not ask for it */

struct reader_watch {
	pthread_t thread, reader;
	int reader_tid;
	clockid_t reader_clock; /* its CPU time */
	unsigned signs;         /* of life; odd: it waits for a moment */
	int ready, code, end;   /* futexes of the start and the end */
	unsigned helped;
	/* the watch's own */
	unsigned seen, silent, help;
	uint64_t cpu_ns;
	int policy; /* the reader's, before it was helped */
};

static long futex(int *at, int op, int value, const struct timespec *timeout)
{
	return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static void no_action(int signal)
{
	(void)signal;
}

/* Does the reader stand in the queue of those that want the CPU? */
static bool wants_cpu(const struct reader_watch *watch)
{
	char path[64], text[256];
	const char *state;
	ssize_t n;
	CLEANUP_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", watch->reader_tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'R';
}

/* Programs that the reader starts have no business with it: they begin without. */
static void raise_reader(struct reader_watch *watch)
{
	const struct sched_param parameter = {.sched_priority = HELP_PRIORITY};

	sched_setscheduler(watch->reader_tid, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter);
}

static void restore_reader(struct reader_watch *watch)
{
	const struct sched_param parameter = {0};

	/* without CAP_SYS_NICE the flag cannot be taken away again */
	if (sched_setscheduler(watch->reader_tid, watch->policy, &parameter) < 0)
		sched_setscheduler(watch->reader_tid, watch->policy | SCHED_RESET_ON_FORK,
				   &parameter);
	watch->help = 0;
}

static void help_reader(struct reader_watch *watch)
{
	watch->policy = sched_getscheduler(watch->reader_tid) & ~SCHED_RESET_ON_FORK;
	if (watch->policy != SCHED_OTHER && watch->policy != SCHED_BATCH &&
	    watch->policy != SCHED_IDLE)
		return; /* it has what the user gave it */
	raise_reader(watch);
	pthread_kill(watch->reader, WAKE_SIGNAL);
	watch->help = HELP_LOOKS;
	__atomic_fetch_add(&watch->helped, 1, __ATOMIC_RELAXED);
}

static void look(struct reader_watch *watch)
{
	unsigned signs = __atomic_load_n(&watch->signs, __ATOMIC_ACQUIRE);
	uint64_t cpu_ns = clock_ns(watch->reader_clock), got_ns = cpu_ns - watch->cpu_ns;
	bool alive = signs != watch->seen, waits = signs & 1;

	watch->seen = signs;
	watch->cpu_ns = cpu_ns;
	if (watch->help) {
		if (--watch->help == 0)
			restore_reader(watch);
		return;
	}
	watch->silent = alive ? 0 : watch->silent + 1;
	if (watch->silent >= SILENT_LOOKS && got_ns < LOOK_NS / STARVING_SHARE &&
	    (waits || wants_cpu(watch))) {
		watch->silent = 0;
		help_reader(watch);
	}
}

static void *watch_main(void *arg)
{
	struct reader_watch *watch = arg;
	const struct sched_param parameter = {.sched_priority = WATCH_PRIORITY};
	const struct timespec step = {.tv_sec = LOOK_NS / NSEC_PER_SEC};

	watch->code = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter);
	__atomic_store_n(&watch->ready, 1, __ATOMIC_RELEASE);
	futex(&watch->ready, FUTEX_WAKE, 1, NULL);
	if (watch->code)
		return NULL;
	while (!__atomic_load_n(&watch->end, __ATOMIC_ACQUIRE)) {
		if (futex(&watch->end, FUTEX_WAIT, 0, &step) < 0 && errno == ETIMEDOUT)
			look(watch);
	}
	return NULL;
}

struct reader_watch *reader_watch_new(void)
{
	struct reader_watch *watch = calloc(1, sizeof(*watch));
	struct sigaction action = {.sa_handler = no_action}; /* without SA_RESTART */

	if (!watch)
		return NULL;
	watch->reader = pthread_self();
	watch->reader_tid = (int)syscall(SYS_gettid);
	sigaction(WAKE_SIGNAL, &action, NULL);
	if (pthread_getcpuclockid(watch->reader, &watch->reader_clock) ||
	    pthread_create(&watch->thread, NULL, watch_main, watch)) {
		free(watch);
		return NULL;
	}
	while (!__atomic_load_n(&watch->ready, __ATOMIC_ACQUIRE))
		futex(&watch->ready, FUTEX_WAIT, 0, NULL);
	if (watch->code) {
		pthread_join(watch->thread, NULL);
		free(watch);
		return NULL;
	}
	return watch;
}

void reader_watch_alive(struct reader_watch *watch, bool waits)
{
	unsigned next;

	if (!watch)
		return;
	next = watch->signs + 1;
	if ((next & 1) != waits)
		next++;
	__atomic_store_n(&watch->signs, next, __ATOMIC_RELEASE);
}

unsigned reader_watch_helped(const struct reader_watch *watch)
{
	return watch ? __atomic_load_n(&watch->helped, __ATOMIC_RELAXED) : 0;
}

void reader_watch_free(struct reader_watch *watch)
{
	if (!watch)
		return;
	__atomic_store_n(&watch->end, 1, __ATOMIC_RELEASE);
	futex(&watch->end, FUTEX_WAKE, 1, NULL);
	pthread_join(watch->thread, NULL);
	if (watch->help)
		restore_reader(watch);
	free(watch);
}
