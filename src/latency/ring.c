#include "latency/ring.h"

#include <string.h>

#define SLOTS(ring) ((uint64_t)(ring)->mask + 1)

void ring_write(const struct ring *ring, const struct lat_record *record)
{
	uint64_t position = __atomic_fetch_add(ring->head, 1, __ATOMIC_SEQ_CST);
	struct lat_record *slot = &ring->slots[position & ring->mask];

	__atomic_store_n(&slot->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((char *)slot + sizeof(slot->seq), (const char *)record + sizeof(record->seq),
	       sizeof(*slot) - sizeof(slot->seq));
	__atomic_store_n(&slot->seq, (unsigned)position + 1, __ATOMIC_RELEASE);
}

bool lat_ring_peek(const struct ring *ring, uint64_t position, struct lat_record *ret)
{
	const struct lat_record *slot = &ring->slots[position & ring->mask];
	unsigned seq = (unsigned)position + 1;

	if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != seq)
		return false;
	memcpy(ret, slot, sizeof(*ret));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == seq;
}

bool lat_ring_read(struct ring *ring, bool final, struct lat_record *ret)
{
	for (;;) {
		uint64_t head = __atomic_load_n(ring->head, __ATOMIC_ACQUIRE), behind;

		if (ring->tail >= head)
			return false;
		behind = head - ring->tail;
		if (behind > SLOTS(ring)) {
			/* overtaken: begin again with room before the writers */
			uint64_t skip = behind - SLOTS(ring) + SLOTS(ring) / 4;

			ring->lost += skip;
			ring->tail += skip;
			continue;
		}
		if (lat_ring_peek(ring, ring->tail, ret)) {
			ring->tail++;
			return true;
		}
		if (__atomic_load_n(ring->head, __ATOMIC_ACQUIRE) - ring->tail > SLOTS(ring))
			continue;
		if (!final)
			return false;
		ring->lost++;
		ring->tail++;
	}
}
