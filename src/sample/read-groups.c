/*
 * Leader sampling ("{cycles,cache-misses}:S"): only the group's leader takes samples, and each of
 * them reads the counters of all members. What a counter has grown by since the reading before is
 * the weight of that event at that place; a counter that stood still gives nothing.
 *
 * Counters are told apart by their id, and by thread where children inherit the event: they share
 * the id. One reader sees all samples of a counter, in their order: recordings with such groups are
 * not cut into chunks (scan.c).
 */
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

/* A counter that is not remembered would count from 0 each time. */
#define COUNTERS_MAX (4u << 20)

bool session_samples_groups(const struct perfdata_attr *attr)
{
	return attr->sample_type & SAMPLE_READ && attr->read_format & READ_GROUP &&
	       attr->read_format & READ_ID;
}

static uint64_t entry_word(const struct raw_sample *raw, uint64_t entry, unsigned word, bool swap)
{
	const struct perfdata_sample *sample = &raw->sample;
	uint64_t value;

	memcpy(&value, sample->group + 8 * (entry * sample->group_words + word), sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

/* How much the counter has grown; 0 when it was reset. */
static int counter_step(struct group_counters *counters, uint64_t key, uint64_t value,
			uint64_t *ret_step)
{
	uint32_t index;
	int r;

	if (u64_map_get(&counters->index, key, &index)) {
		uint64_t before = counters->values.data[index];

		counters->values.data[index] = value;
		*ret_step = value > before ? value - before : 0;
		return 0;
	}
	*ret_step = value;
	if (counters->values.len >= COUNTERS_MAX) {
		*ret_step = 0;
		return 0;
	}
	r = vec_push(&counters->values, value);
	return r < 0 ? r : u64_map_put(&counters->index, key, (uint32_t)counters->values.len - 1);
}

int group_counters_deliver(struct group_counters *counters, const struct session *session,
			   const struct raw_sample *raw, raw_sample_fn fn, void *arg)
{
	bool swap = session->header.swap;

	for (uint64_t i = 0; i < raw->sample.group_count; i++) {
		uint64_t value = entry_word(raw, i, 0, swap), id = entry_word(raw, i, 1, swap);
		struct raw_sample member = *raw;
		uint64_t key = id, step;
		int r;

		if (!u64_map_get(&session->event_ids, id, &member.event))
			continue;
		if (raw->attr->inherit)
			key = hash_pair(id, (uint32_t)raw->sample.tid);
		r = counter_step(counters, key, value, &step);
		if (r == 0 && step > 0) {
			member.sample.period = step;
			member.sample.id = id;
			r = fn(arg, &member);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

void group_counters_fini(struct group_counters *counters)
{
	vec_fini(&counters->values);
	u64_map_fini(&counters->index);
}
