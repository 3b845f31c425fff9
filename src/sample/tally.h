/*
 * A quick look over the records that were just recorded: how many samples each event got, what was
 * lost and throttled, the first and last time, and which kernel addresses occur. Bytes come as a
 * stream in any pieces. Trusts the records: they are the kernel's and ours.
 */
#pragma once

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

struct tally_event {
	uint64_t samples;
};

struct tally {
	uint64_t sample_type; /* the same for every event */
	uint64_t read_format;
	struct u64_map ids; /* id -> event index; needed with more than one event */
	VEC(struct tally_event) events;
	uint64_t samples, lost_records, throttled;
	uint64_t first_time_ns, last_time_ns; /* of samples; 0: none */
	struct u64_map kernel_seen;
	VEC(uint64_t) kernel_ips; /* distinct, unsorted */
	struct str carry;         /* the beginning of a record whose end has not come yet */
};

/* attr: of the first event; the others have the same layout. */
int tally_init(struct tally *tally, const struct perf_event_attr *attr, uint32_t event_count);
int tally_add_id(struct tally *tally, uint64_t id, uint32_t event);
void tally_fini(struct tally *tally);
int tally_bytes(struct tally *tally, const void *data, size_t size);
