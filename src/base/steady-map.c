/*
 * The handler looks for the address among the mappings, puts zeros over the rest of the one that
 * has it and returns: the read is done again and finds them. It takes no locks: slots are published
 * by their end and withdrawn the same way.
 */
#include "base/steady-map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

#define SLOTS 64
/* The kernel maps the neighbours of a page that is touched, at most this much around it. */
#define FAULT_AROUND (UINT64_C(2) << 20)

struct slot {
	_Atomic uintptr_t start, end; /* end 0: free */
	_Atomic uintptr_t broken;     /* the first page that could not be read; 0: none */
};

static struct slot slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned used;
static struct sigaction before;

static void handle_bus(int signal, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr;
	int saved = errno;

	(void)context;
	at -= at % page;
	for (unsigned i = 0; i < SLOTS; i++) {
		uintptr_t end = atomic_load(&slots[i].end), first;

		if (end == 0 || at < atomic_load(&slots[i].start) || at >= end)
			continue;
		if (mmap((void *)at, end - at, PROT_READ, /* NOLINT(performance-no-int-to-ptr) */
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			break;
		first = atomic_load(&slots[i].broken);
		while ((first == 0 || at < first) &&
		       !atomic_compare_exchange_weak(&slots[i].broken, &first, at))
			;
		errno = saved;
		return;
	}
	/* Not ours: the read is done again, for whoever was asked before. */
	sigaction(signal, &before, NULL);
	errno = saved;
}

/* With the lock held. */
static int take_slot(const uint8_t *data, size_t size, unsigned *ret)
{
	struct sigaction action = {.sa_sigaction = handle_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned i = 0;

	while (i < SLOTS && atomic_load(&slots[i].end) != 0)
		i++;
	if (i == SLOTS)
		return -ENOSPC;
	sigemptyset(&action.sa_mask);
	if (used == 0 && sigaction(SIGBUS, &action, &before) < 0)
		return -errno;
	used++;
	atomic_store(&slots[i].start, (uintptr_t)data);
	atomic_store(&slots[i].broken, 0);
	atomic_store(&slots[i].end, (uintptr_t)data + ALIGN_UP(size, page));
	*ret = i;
	return 0;
}

int steady_map_fd(int fd, uint64_t size, struct steady_map *ret)
{
	struct steady_map map = {.size = (size_t)size};
	void *data;
	int r;

	if (size == 0 || size > SIZE_MAX / 2)
		return -EINVAL;
	data = mmap(NULL, map.size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	map.data = data;
	pthread_mutex_lock(&lock);
	r = take_slot(map.data, map.size, &map.slot);
	pthread_mutex_unlock(&lock);
	if (r < 0) {
		munmap(data, map.size);
		return r;
	}
	*ret = map;
	return 0;
}

void steady_map_close(struct steady_map *map)
{
	if (!map->data)
		return;
	pthread_mutex_lock(&lock);
	munmap((void *)(uintptr_t)map->data, map->size);
	atomic_store(&slots[map->slot].end, 0);
	if (--used == 0)
		sigaction(SIGBUS, &before, NULL);
	pthread_mutex_unlock(&lock);
	*map = (struct steady_map){0};
}

bool steady_map_broken(const struct steady_map *map, uint64_t *ret_offset)
{
	uintptr_t first = map->data ? atomic_load(&slots[map->slot].broken) : 0;

	if (first)
		*ret_offset = first - (uintptr_t)map->data;
	return first != 0;
}

void steady_map_release(const struct steady_map *map, uint64_t offset, uint64_t end)
{
	/* Whoever reads the next or the last range maps pages of this one as well: the last of them
	 * to go takes them all. */
	uint64_t from = offset & ~(FAULT_AROUND - 1);
	uint64_t to = MIN(ALIGN_UP(end, FAULT_AROUND), (uint64_t)map->size);

	if (from < to)
		madvise((void *)(uintptr_t)(map->data + from), (size_t)(to - from), MADV_DONTNEED);
}
