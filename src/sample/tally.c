#include "sample/tally.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

/* Callchain entries from here up are context markers (PERF_CONTEXT_*), not addresses. */
#define CONTEXT_FIRST ((uint64_t)-4095)
/* Kernel addresses have the top bit set on x86-64 and arm64. */
#define KERNEL_FIRST (UINT64_C(1) << 63)

int tally_init(struct tally *tally, const struct perf_event_attr *attr, uint32_t event_count)
{
	*tally = (struct tally){.sample_type = attr->sample_type, .read_format = attr->read_format};
	for (uint32_t i = 0; i < event_count; i++)
		if (vec_push(&tally->events, (struct tally_event){0}) < 0)
			return -ENOMEM;
	return 0;
}

int tally_add_id(struct tally *tally, uint64_t id, uint32_t event)
{
	return u64_map_put(&tally->ids, id, event);
}

void tally_fini(struct tally *tally)
{
	u64_map_fini(&tally->ids);
	u64_map_fini(&tally->kernel_seen);
	vec_fini(&tally->events);
	vec_fini(&tally->kernel_ips);
	str_fini(&tally->carry);
}

static int see_ip(struct tally *tally, uint64_t ip)
{
	uint32_t seen;

	if (ip < KERNEL_FIRST || ip >= CONTEXT_FIRST || u64_map_get(&tally->kernel_seen, ip, &seen))
		return 0;
	if (u64_map_put(&tally->kernel_seen, ip, 1) < 0)
		return -ENOMEM;
	return vec_push(&tally->kernel_ips, ip);
}

static void see_time(struct tally *tally, uint64_t time)
{
	if (tally->first_time_ns == 0 || time < tally->first_time_ns)
		tally->first_time_ns = time;
	tally->last_time_ns = MAX(tally->last_time_ns, time);
}

/* u64 words of a PERF_SAMPLE_READ value. */
static size_t read_words(const struct tally *tally, const uint64_t *at)
{
	size_t extra =
		!!(tally->read_format & PERF_FORMAT_ID) + !!(tally->read_format & PERF_FORMAT_LOST);
	size_t times = !!(tally->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		       !!(tally->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	return tally->read_format & PERF_FORMAT_GROUP ? 1 + times + *at * (1 + extra)
						      : 1 + times + extra;
}

static int tally_sample(struct tally *tally, const uint64_t *at, const uint64_t *end)
{
	uint64_t type = tally->sample_type, id = 0, ip = 0;
	uint32_t event = 0;
	int r;

	if (type & PERF_SAMPLE_IDENTIFIER)
		id = *at++;
	if (type & PERF_SAMPLE_IP)
		ip = *at++;
	at += !!(type & PERF_SAMPLE_TID);
	if (type & PERF_SAMPLE_TIME)
		see_time(tally, *at++);
	at += !!(type & PERF_SAMPLE_ADDR) + !!(type & PERF_SAMPLE_ID) +
	      !!(type & PERF_SAMPLE_STREAM_ID) + !!(type & PERF_SAMPLE_CPU) +
	      !!(type & PERF_SAMPLE_PERIOD);
	tally->samples++;
	if (tally->ids.used > 0)
		u64_map_get(&tally->ids, id, &event);
	tally->events.data[event].samples++;
	r = see_ip(tally, ip);
	if ((type & PERF_SAMPLE_READ) && at < end)
		at += read_words(tally, at);
	if (!(type & PERF_SAMPLE_CALLCHAIN) || at >= end)
		return r;
	for (uint64_t left = MIN(*at, (uint64_t)(end - at - 1)); r == 0 && left > 0; left--)
		r = see_ip(tally, *++at);
	return r;
}

static int tally_record(struct tally *tally, const struct perf_event_header *header)
{
	const uint64_t *body = (const uint64_t *)(const void *)(header + 1);
	const uint64_t *end = (const uint64_t *)(const void *)((const char *)header + header->size);

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		return tally_sample(tally, body, end);
	case PERF_RECORD_LOST:
		tally->lost_records += body[1]; /* id, lost */
		return 0;
	case PERF_RECORD_THROTTLE:
		tally->throttled++;
		return 0;
	default:
		return 0;
	}
}

/* Whole records of the bytes; returns how many bytes they were. */
static int tally_whole(struct tally *tally, const char *data, size_t size, size_t *ret_used)
{
	size_t at = 0;

	while (size - at >= sizeof(struct perf_event_header)) {
		const struct perf_event_header *header = (const void *)(data + at);
		int r;

		if (header->size < sizeof(*header))
			return -EBADMSG;
		if (header->size > size - at)
			break;
		r = tally_record(tally, header);
		if (r < 0)
			return r;
		at += header->size;
	}
	*ret_used = at;
	return 0;
}

int tally_bytes(struct tally *tally, const void *data, size_t size)
{
	const char *at = data;
	size_t used = 0;
	int r;

	while (tally->carry.len > 0 && size > 0) {
		const struct perf_event_header *header = (const void *)tally->carry.data;
		size_t want = tally->carry.len < sizeof(*header) ? sizeof(*header) : header->size;
		size_t take = MIN(want - tally->carry.len, size);

		str_append(&tally->carry, at, take);
		if (str_status(&tally->carry) < 0)
			return -ENOMEM;
		at += take;
		size -= take;
		r = tally_whole(tally, tally->carry.data, tally->carry.len, &used);
		if (r < 0)
			return r;
		if (used > 0)
			str_clear(&tally->carry);
	}
	r = tally_whole(tally, at, size, &used);
	if (r < 0)
		return r;
	if (used < size)
		str_append(&tally->carry, at + used, size - used);
	return str_status(&tally->carry);
}
