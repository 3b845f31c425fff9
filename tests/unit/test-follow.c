/*
 * Readers that follow the first pass must find what they would find behind it. The recordings here
 * have rounds as a recorder with two rings makes them: what happens on one CPU stands behind the
 * samples of the other that it explains.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/collect.h"
#include "sample/perfdata.h"
#include "sample/session.h"

#define TYPE   (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CALLCHAIN)
#define ROUNDS 60u
#define WIDTH  1000u /* samples of a round on each CPU, and its nanoseconds */
#define BASE   0x400000u

enum late {
	LATE_NOTHING,
	LATE_MMAP,
	LATE_COMM,
	LATE_NAME, /* of the event */
	LATE_JITDUMP,
	EARLY_JITDUMP,
};

static void put_samples(struct builder *b, unsigned round)
{
	uint64_t chain[] = {CONTEXT_USER, BASE + 0x10, 0, BASE + 0x4000, 0};

	for (unsigned i = 0; i < WIDTH; i++) {
		/* A process of each of the last rounds; it changes what it runs halfway. */
		uint32_t pid = 100 + round - MIN(i % 4, round);

		chain[2] = BASE + 0x100 + i % 97 * 16;
		chain[1] = BASE + i % 13;
		put_sample(b, REC_MISC_USER, pid, pid, 10000 + (uint64_t)round * WIDTH + i,
			   chain[1], chain);
	}
}

/* The process of this round begins, maps its program and becomes another in the middle. */
static void put_life(struct builder *b, unsigned round)
{
	uint64_t time = 10000 + (uint64_t)round * WIDTH;
	uint32_t pid = 100 + round;
	char name[32];

	put_fork(b, pid, 1, pid, 1, time);
	snprintf(name, sizeof(name), "first%u", round % 7);
	put_comm(b, pid, pid, name, true, time + 1);
	snprintf(name, sizeof(name), "/bin/first%u", round % 7);
	put_mmap(b, REC_MISC_USER, pid, BASE, 0x10000, 0, name, time + 2);
	put_comm(b, pid, pid, "second", true, time + WIDTH / 2);
	put_mmap(b, REC_MISC_USER, pid, BASE, 0x10000, 0x1000, "/bin/second", time + WIDTH / 2 + 1);
}

static void put_jitdump(struct builder *b, uint64_t time)
{
	put_mmap(b, REC_MISC_USER, 1, 0x10000, 0x1000, 0, "/tmp/jit-1.dump", time);
}

static void put_late(struct builder *b, enum late late)
{
	uint64_t time = 10000 + 3 * WIDTH + WIDTH / 4;

	switch (late) {
	case LATE_MMAP:
		put_mmap(b, REC_MISC_USER, 103, BASE, 0x10000, 0, "/bin/late", time);
		break;
	case LATE_COMM:
		put_comm(b, 103, 103, "late", false, time);
		break;
	case LATE_NAME:
		record_begin(b, REC_EVENT_UPDATE, 0);
		put64(b, 2);
		put64(b, 7);
		put_text(b, "renamed", 16);
		record_end(b);
		break;
	case LATE_JITDUMP:
		put_jitdump(b, 10000 + ROUNDS * WIDTH);
		break;
	default:
		break;
	}
}

static void build(struct builder *b, enum late late)
{
	file_begin(b, TYPE);
	if (late == EARLY_JITDUMP)
		put_jitdump(b, 10010);
	for (unsigned round = 0; round < ROUNDS; round++) {
		put_samples(b, round);
		put_life(b, round);
		put_samples(b, round);
		record_begin(b, REC_FINISHED_ROUND, 0);
		record_end(b);
	}
	put_late(b, late);
	file_end(b);
}

struct watched {
	double last;
	unsigned again; /* how often the first pass began anew */
};

/* Gives readers the time to come near. */
static void watch(void *arg, const char *what, double share)
{
	struct watched *watched = arg;

	if (strcmp(what, "looking through the records") != 0)
		return;
	watched->again += share < watched->last;
	watched->last = share;
	nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

static uint64_t hash_text(const struct profile *profile, uint32_t string)
{
	const char *text = strtab_text(&profile->strings, string);

	return hash_bytes(text, strlen(text));
}

/* The same for equal profiles, whatever the order of what is in them. */
static uint64_t fingerprint(const struct profile *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct profile_sample *sample = &profile->samples.data[i];
		const char *comm = profile_label_text(profile, sample->labels, "comm");
		uint64_t hash = 0;

		for (uint32_t at = sample->stack; at; at = profile->stacks.data[at].parent) {
			const struct profile_location *location =
				&profile->locations.data[profile->stacks.data[at].location];

			hash = hash_pair(hash, location->address);
			hash = hash_pair(
				hash,
				hash_text(profile,
					  profile->mappings.data[location->mapping].filename));
		}
		hash = hash_pair(hash, hash_bytes(comm, strlen(comm)));
		sum += hash_pair(hash,
				 (uint64_t)profile->values.data[i * profile->value_types.len]);
	}
	return sum;
}

/* By two passes, or by readers that follow the first. */
static uint64_t collect(const char *path, bool follow, const char *event, struct watched *watched,
			int64_t *ret_total)
{
	struct collect_options options = {.event = event, .no_symbols = true};
	struct session *session;
	struct profile profile;
	uint64_t print;
	int r = follow ? session_open_header(path, watch, watched, &session, NULL)
		       : session_open(path, &session, NULL);

	*ret_total = -1;
	EXPECT_INT(r, 0);
	EXPECT_INT(profile_init(&profile), 0);
	EXPECT_INT(collect_profile(session, &options, &profile, NULL), 0);
	EXPECT_INT(session_stats(session)->samples, 2 * ROUNDS * WIDTH);
	EXPECT_INT(profile_total(&profile, 0, ret_total), 0);
	print = fingerprint(&profile);
	profile_fini(&profile);
	session_close(session);
	return print;
}

TEST(readers_that_follow_find_what_two_passes_find)
{
	uint64_t first = 0;

	for (enum late late = LATE_NOTHING; late <= EARLY_JITDUMP; late++) {
		const char *event = late == LATE_NAME ? "renamed" : NULL, *path;
		struct watched watched = {0};
		struct builder b = {0};
		int64_t total, followed_total;
		uint64_t print;

		build(&b, late);
		ASSERT(b.bytes.len > (6u << 20));
		path = write_recording(b.bytes.data, b.bytes.len);
		print = collect(path, false, event, &watched, &total);
		EXPECT_INT(total, 2 * ROUNDS * WIDTH);
		EXPECT(collect(path, true, event, &watched, &followed_total) == print);
		EXPECT_INT(followed_total, total);
		/* What comes too late is found, and read in two passes. */
		EXPECT_INT(watched.again, late != LATE_NOTHING && late != EARLY_JITDUMP);
		first = late == LATE_NOTHING ? print : first;
		EXPECT((print == first) == (late != LATE_MMAP && late != LATE_COMM));
		str_fini(&b.bytes);
	}
}
