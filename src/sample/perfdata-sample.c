/*
 * PERF_RECORD_SAMPLE: the fields follow each other in the order of the bits of sample_type, except
 * that IDENTIFIER comes first. What cannot be needed is stepped over, never copied.
 */
#include <string.h>

#include "base/util.h"
#include "sample/perfdata.h"

/* Bits of sample_type whose fields are a word each and come first. */
#define FIXED_FIELDS                                                                          \
	(SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR | SAMPLE_ID | \
	 SAMPLE_STREAM_ID | SAMPLE_CPU | SAMPLE_PERIOD)
#define FIXED_MAX_BYTES 72
/* Fields behind the chain. */
#define TAIL_FIELDS                                                                    \
	(SAMPLE_REGS_USER | SAMPLE_STACK_USER | SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT | \
	 SAMPLE_DATA_SRC | SAMPLE_TRANSACTION | SAMPLE_REGS_INTR | SAMPLE_PHYS_ADDR |  \
	 SAMPLE_CGROUP | SAMPLE_DATA_PAGE | SAMPLE_CODE_PAGE | SAMPLE_AUX)

/* Words that are known to be there. */
static uint64_t next_word(const uint8_t **at, bool swap)
{
	uint64_t word;

	memcpy(&word, *at, sizeof(word));
	*at += sizeof(word);
	return swap ? __builtin_bswap64(word) : word;
}

/* The half of a word that comes first in the file, and the other. */
static void next_halves(const uint8_t **at, bool swap, uint32_t *ret_first, uint32_t *ret_second)
{
	uint32_t halves[2];

	memcpy(halves, *at, sizeof(halves));
	*at += sizeof(halves);
	*ret_first = swap ? __builtin_bswap32(halves[0]) : halves[0];
	*ret_second = swap ? __builtin_bswap32(halves[1]) : halves[1];
}

/* Measured once for all of them: every sample has these. */
static void sample_fixed(struct reader *r, uint64_t type, struct perfdata_sample *s)
{
	const uint8_t *start = r->data + r->pos, *at = start;
	size_t left = reader_left(r);
	bool swap = r->swap;
	uint32_t pid, tid, reserved;

	if (left < FIXED_MAX_BYTES &&
	    left < 8 * (size_t)__builtin_popcountll(type & FIXED_FIELDS)) {
		r->failed = true;
		return;
	}
	if (type & SAMPLE_IDENTIFIER)
		s->id = next_word(&at, swap);
	if (type & SAMPLE_IP) {
		s->ip = next_word(&at, swap);
		s->has_ip = true;
	}
	if (type & SAMPLE_TID) {
		next_halves(&at, swap, &pid, &tid);
		s->pid = (int32_t)pid;
		s->tid = (int32_t)tid;
	}
	if (type & SAMPLE_TIME) {
		s->time = next_word(&at, swap);
		s->has_time = true;
	}
	if (type & SAMPLE_ADDR)
		s->addr = next_word(&at, swap);
	if (type & SAMPLE_ID)
		s->id = next_word(&at, swap);
	if (type & SAMPLE_STREAM_ID)
		s->stream_id = next_word(&at, swap);
	if (type & SAMPLE_CPU)
		next_halves(&at, swap, &s->cpu, &reserved);
	if (type & SAMPLE_PERIOD) {
		s->period = next_word(&at, swap);
		s->has_period = true;
	}
	reader_skip(r, (size_t)(at - start));
}

static void sample_read(struct reader *r, uint64_t format, struct perfdata_sample *s)
{
	unsigned words = 1 + !!(format & READ_ID) + !!(format & READ_LOST);
	uint64_t count = 1;

	if (format & READ_GROUP)
		count = reader_u64(r);
	if (count > reader_left(r) / 8 / words) {
		r->failed = true;
		return;
	}
	if (format & READ_GROUP)
		reader_skip(r,
			    8 * (!!(format & READ_TIME_ENABLED) + !!(format & READ_TIME_RUNNING)));
	if (format & READ_GROUP && format & READ_ID) {
		s->group = r->data + r->pos;
		s->group_count = count;
		s->group_words = words;
	}
	for (uint64_t i = 0; i < count && !r->failed; i++) {
		reader_skip(r, 8);
		if (!(format & READ_GROUP))
			reader_skip(r, 8 * (!!(format & READ_TIME_ENABLED) +
					    !!(format & READ_TIME_RUNNING)));
		if (format & READ_ID)
			reader_skip(r, 8);
		if (format & READ_LOST) {
			uint64_t lost = reader_u64(r);

			s->lost = MAX(s->lost, lost);
			s->has_lost = true;
		}
	}
}

static void sample_chain(struct reader *r, uint64_t *scratch, size_t scratch_len,
			 struct perfdata_sample *s)
{
	uint64_t count = reader_u64(r);
	bool cut = count > reader_left(r) / 8;
	const uint8_t *bytes;

	if (cut)
		count = reader_left(r) /
			8; /* the entries that are there: a cut record still has its leaf */
	bytes = reader_take(r, (size_t)count * 8);
	r->failed |= cut;
	if (!bytes || count == 0)
		return;
	if (!r->swap && (uintptr_t)bytes % sizeof(uint64_t) == 0) {
		s->chain = (const uint64_t *)(const void *)bytes;
	} else {
		count = MIN(count, scratch_len);
		for (size_t i = 0; i < count; i++) {
			memcpy(&scratch[i], bytes + 8 * i, 8);
			if (r->swap)
				scratch[i] = __builtin_bswap64(scratch[i]);
		}
		s->chain = scratch;
	}
	s->chain_len = (size_t)count;
}

static void sample_branches(struct reader *r, const struct perfdata_attr *attr,
			    struct perfdata_sample *s)
{
	uint64_t count = reader_u64(r);

	if (attr->branch_sample_type & BRANCH_HW_INDEX)
		reader_skip(r, 8);
	if (count > reader_left(r) / 24) {
		r->failed = true;
		return;
	}
	s->branches = reader_take(r, (size_t)count * 24);
	s->branch_count = s->branches ? count : 0;
	if (attr->branch_sample_type & BRANCH_COUNTERS)
		reader_skip(r, (size_t)count * 8);
}

static const uint8_t *sample_regs(struct reader *r, uint64_t mask, uint64_t *ret_abi)
{
	*ret_abi = reader_u64(r);
	return *ret_abi ? reader_take(r, 8 * (size_t)__builtin_popcountll(mask)) : NULL;
}

static void sample_stack(struct reader *r, struct perfdata_sample *s)
{
	uint64_t size = reader_u64(r), filled;
	const uint8_t *bytes;

	if (size == 0)
		return;
	if (size > reader_left(r)) {
		r->failed = true;
		return;
	}
	bytes = reader_take(r, (size_t)size);
	filled = reader_u64(r);
	if (r->failed)
		return;
	s->stack = bytes;
	s->stack_room = size;
	s->stack_size = MIN(filled, size);
}

static void sample_tail(struct reader *r, const struct perfdata_attr *attr,
			struct perfdata_sample *s)
{
	uint64_t type = attr->sample_type;

	s->copies_at = r->pos;
	if (type & SAMPLE_REGS_USER)
		s->user_regs = sample_regs(r, attr->regs_user, &s->user_abi);
	if (type & SAMPLE_STACK_USER)
		sample_stack(r, s);
	s->copies_end = r->pos;
	if (type & SAMPLE_WEIGHT)
		s->weight = reader_u64(r);
	else if (type & SAMPLE_WEIGHT_STRUCT)
		s->weight = (uint32_t)reader_u64(r);
	if (type & SAMPLE_DATA_SRC)
		s->data_src = reader_u64(r);
	if (type & SAMPLE_TRANSACTION)
		s->transaction = reader_u64(r);
	if (type & SAMPLE_REGS_INTR)
		s->intr_regs = sample_regs(r, attr->regs_intr, &s->intr_abi);
	if (type & SAMPLE_PHYS_ADDR)
		s->phys_addr = reader_u64(r);
	if (type & SAMPLE_CGROUP)
		s->cgroup = reader_u64(r);
	if (type & SAMPLE_DATA_PAGE)
		s->data_page_size = reader_u64(r);
	if (type & SAMPLE_CODE_PAGE)
		s->code_page_size = reader_u64(r);
	if (type & SAMPLE_AUX)
		reader_skip(r, (size_t)reader_u64(r));
}

bool perfdata_sample_decode(const struct perfdata_attr *attr, const uint8_t *body, size_t size,
			    uint16_t misc, bool swap, uint64_t *scratch, size_t scratch_len,
			    struct perfdata_sample *ret)
{
	struct reader r = reader_make(body, size, swap);
	uint64_t type = attr->sample_type;

	memset(ret, 0, sizeof(*ret));
	ret->pid = ret->tid = -1;
	ret->cpu = UINT32_MAX;
	ret->misc = misc;
	sample_fixed(&r, type, ret);
	if (r.failed)
		return false;
	if (type & SAMPLE_READ)
		sample_read(&r, attr->read_format, ret);
	ret->chain_at = r.pos;
	if (type & SAMPLE_CALLCHAIN)
		sample_chain(&r, scratch, scratch_len, ret);
	ret->chain_end = r.pos;
	if (type & SAMPLE_RAW) {
		size_t len = reader_u32(&r);

		ret->raw = reader_take(&r, len);
		ret->raw_size = ret->raw ? len : 0;
		/* size and data together fill whole words */
		if (!r.failed)
			reader_skip(&r, MIN(reader_left(&r), (8 - (len + 4) % 8) % 8));
	}
	if (type & SAMPLE_BRANCH_STACK)
		sample_branches(&r, attr, ret);
	ret->copies_at = ret->copies_end = r.pos;
	if (type & TAIL_FIELDS)
		sample_tail(&r, attr, ret);
	return !r.failed;
}
