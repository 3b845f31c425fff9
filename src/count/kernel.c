/* The real kernel: thin wrappers that turn -1 and errno into a negative errno. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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

const struct counter_ops counter_kernel = {
	.open = kernel_open,
	.read = kernel_read,
	.enable = kernel_enable,
	.disable = kernel_disable,
	.close = kernel_close,
	.clock = kernel_clock,
};
