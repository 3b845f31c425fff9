#include "sample/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

int ring_open(int fd, uint32_t cpu, size_t data_bytes, struct ring *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), map_bytes = page + data_bytes;
	void *base = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	*ret = (struct ring){.fd = fd,
			     .cpu = cpu,
			     .base = base,
			     .map_bytes = map_bytes,
			     .data_bytes = data_bytes};
	return 0;
}

void ring_close(struct ring *ring)
{
	if (ring->base)
		munmap(ring->base, ring->map_bytes);
	ring->base = NULL;
}

size_t ring_peek(const struct ring *ring, struct iovec pieces[2])
{
	const struct perf_event_mmap_page *control = ring->base;
	/* Pairs with the kernel's release of data_head: what lies before the head is written. */
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	char *data = (char *)ring->base + (ring->map_bytes - ring->data_bytes);
	size_t unread = (size_t)(head - ring->tail),
	       at = (size_t)(ring->tail & (ring->data_bytes - 1));
	size_t first = unread < ring->data_bytes - at ? unread : ring->data_bytes - at;

	pieces[0] = (struct iovec){.iov_base = data + at, .iov_len = first};
	pieces[1] = (struct iovec){.iov_base = data, .iov_len = unread - first};
	return unread;
}

void ring_consume(struct ring *ring, size_t bytes)
{
	struct perf_event_mmap_page *control = ring->base;

	ring->tail += bytes;
	/* Our reads are done before the kernel may overwrite them. */
	__atomic_store_n(&control->data_tail, ring->tail, __ATOMIC_RELEASE);
}
