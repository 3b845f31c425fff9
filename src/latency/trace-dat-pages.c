#include "latency/trace-dat-pages.h"

#include <endian.h>
#include <string.h>

#include "base/util.h"

#define PAGE_HEADER 16
#define PAGE_ROOM   (DAT_PAGE_BYTES - PAGE_HEADER - 8) /* 8 for a count of losses */
#define DELTA_BITS  27

void dat_pages_finish(struct dat_pages *cpu)
{
	uint64_t commit = cpu->used | cpu->commit_flags;

	if (cpu->used == 0)
		return;
	memcpy(cpu->page, &cpu->first_ns, 8);
	memcpy(cpu->page + 8, &commit, 8);
	if (cpu->commit_flags & DAT_MISSED_KNOWN)
		memcpy(cpu->page + PAGE_HEADER + cpu->used, &cpu->lost, 8);
	str_append(&cpu->done, cpu->page, DAT_PAGE_BYTES);
	memset(cpu->page, 0, DAT_PAGE_BYTES);
	cpu->used = 0;
	cpu->commit_flags = cpu->lost = 0;
}

static void word(struct dat_pages *cpu, unsigned type, uint32_t delta)
{
	uint32_t value =
		BYTE_ORDER == BIG_ENDIAN ? (uint32_t)type << DELTA_BITS | delta : delta << 5 | type;

	memcpy(cpu->page + PAGE_HEADER + cpu->used, &value, 4);
	cpu->used += 4;
}

static void number32(struct dat_pages *cpu, uint32_t value)
{
	memcpy(cpu->page + PAGE_HEADER + cpu->used, &value, 4);
	cpu->used += 4;
}

void dat_pages_put(struct dat_pages *cpu, uint64_t time_ns, const struct dat_record *record)
{
	size_t size = ALIGN_UP(record->size, (size_t)4);
	uint64_t delta;

	time_ns = MAX(time_ns, cpu->last_ns);
	if (cpu->used + 16 + size > PAGE_ROOM)
		dat_pages_finish(cpu);
	if (cpu->used == 0)
		cpu->first_ns = cpu->last_ns = time_ns;
	delta = time_ns - cpu->last_ns;
	cpu->last_ns = time_ns;
	if (delta >> DELTA_BITS) { /* time extension */
		word(cpu, 30, delta & ((1u << DELTA_BITS) - 1));
		number32(cpu, (uint32_t)(delta >> DELTA_BITS));
		delta = 0;
	}
	if (size <= 28 * 4) {
		word(cpu, (unsigned)size / 4, (uint32_t)delta);
	} else {
		word(cpu, 0, (uint32_t)delta);
		number32(cpu, (uint32_t)size + 4);
	}
	memcpy(cpu->page + PAGE_HEADER + cpu->used, record->bytes, size);
	cpu->used += size;
}
