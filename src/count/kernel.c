/* The real kernel: thin wrappers that turn -1 and errno into a negative errno. */
#include <errno.h>
#include <math.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "count/ops.h"

static int kernel_open(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu,
		       int group_fd, unsigned long flags)
{
	long fd;

	(void)ctx;
	do
		fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd,
			     flags | PERF_FLAG_FD_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : (int)fd;
}

static int kernel_read(void *ctx, int fd, uint64_t *words, unsigned count)
{
	ssize_t bytes;

	(void)ctx;
	do
		bytes = read(fd, words, count * sizeof(*words));
	while (bytes < 0 && errno == EINTR);
	return bytes < 0 ? -errno : (int)((size_t)bytes / sizeof(*words));
}

static int kernel_enable(void *ctx, int fd)
{
	(void)ctx;
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) < 0 ? -errno : 0;
}

static int kernel_disable(void *ctx, int fd)
{
	(void)ctx;
	return ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP) < 0 ? -errno : 0;
}

static void kernel_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static uint64_t kernel_clock(void *ctx)
{
	(void)ctx;
	return clock_monotonic_ns();
}

static int kernel_run_on(void *ctx, const struct cpuset *cpus)
{
	static struct cpuset home; /* where the thread may run, while it is moved */
	static bool moved;
	struct cpuset wanted = {0};
	int r = 0;

	(void)ctx;
	if (!cpus && !moved)
		return 0;
	if (!moved)
		r = affinity_get(0, &home);
	if (r < 0)
		return r;
	if (cpus)
		cpuset_for_each(cpus, cpu) {
			if (cpuset_has(&home, (unsigned)cpu))
				cpuset_add(&wanted, (unsigned)cpu);
		}
	r = affinity_set(0, cpus ? &wanted : &home);
	if (r == 0)
		moved = cpus != NULL;
	return r;
}

const struct counter_ops counter_kernel = {
	.open = kernel_open,
	.read = kernel_read,
	.enable = kernel_enable,
	.disable = kernel_disable,
	.close = kernel_close,
	.clock = kernel_clock,
	.run_on = kernel_run_on,
};

double counter_tsc_hz(void)
{
#if defined(__x86_64__) || defined(__i386__)
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int fd = kernel_open(NULL, &attr, 0, -1, -1, 0);
	struct perf_event_mmap_page *page;
	double hz = NAN;

	if (fd < 0)
		return NAN;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return NAN;
	if (page->cap_user_time && page->time_mult) /* ns = ticks * mult >> shift */
		hz = 1e9 * ldexp(1, page->time_shift) / page->time_mult;
	munmap(page, (size_t)sysconf(_SC_PAGESIZE));
	return hz;
#else
	return NAN;
#endif
}
