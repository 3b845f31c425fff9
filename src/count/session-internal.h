/* Shared by session.c (what is read) and estimate.c (what it means). */
#pragma once

#include "count/session.h"

/* Per row and group: sums and slices, each "words" numbers: enabled, running, one per member. */
struct row_group {
	uint64_t *sum;
	uint64_t *slices; /* slice_cap * words, NULL when none are kept */
	bool opened, error_state;
	const char *gone;
};

struct count_session {
	struct count_set *set;
	const struct counter_ops *ops;
	void *ctx;
	struct count_session_options options;
	struct count_place *places;
	unsigned place_count, row_count, group_count;
	unsigned *offsets;    /* of a group's words in one place's record */
	unsigned place_words; /* length of one place's record */
	int *fds;       /* [place][place_words]: leader at offset, members at offset + position */
	uint64_t *last; /* [place][place_words] */
	struct row_group *rows; /* [row][group] */
	unsigned slice_count, slice_cap;
	uint64_t slice_ns, read_cost_ns;
};

static inline unsigned group_words(const struct count_group *group)
{
	return group->len + 2;
}

static inline struct row_group *row_group(const struct count_session *s, unsigned row,
					  unsigned group)
{
	return &s->rows[row * s->group_count + group];
}
