/*
 * Chains that samples say in other ways than the kernel's own: a chain unwound while recording says
 * at its end whether it is whole (sample/live.h), and the CPU's branch records are a chain when
 * they follow calls and returns (LBR call stack).
 */
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

/* Depths of the branch records in hardware; a chain that fills one has lost its root, probably. */
#define LBR_DEPTH_OLD 16
#define LBR_DEPTH     32

static uint64_t branch_word(const struct perfdata_sample *sample, uint64_t i, unsigned field,
			    bool swap)
{
	uint64_t word;

	memcpy(&word, sample->branches + 24 * i + 8 * field, sizeof(word));
	return swap ? __builtin_bswap64(word) : word;
}

/* The innermost user address: the sample's own, or where the kernel was entered. */
static uint64_t user_leaf(const struct perfdata_sample *sample, const uint64_t *chain, size_t len,
			  bool swap)
{
	if ((sample->misc & REC_MISC_CPUMODE) == REC_MISC_USER && sample->has_ip)
		return sample->ip;
	for (size_t i = 0; i + 1 < len; i++)
		if (chain[i] == CONTEXT_USER && chain[i + 1] < CONTEXT_FIRST)
			return chain[i + 1];
	/* The last call led there: the function's start, at least. */
	return branch_word(sample, 0, 1, swap);
}

bool chain_of_branches(const struct perfdata_attr *attr, bool swap, struct perfdata_sample *sample,
		       uint64_t *chain, size_t cap)
{
	const uint64_t *old = sample->chain;
	size_t len = 0;

	if (!(attr->branch_sample_type & BRANCH_CALL_STACK) || sample->branch_count == 0)
		return false;
	for (size_t i = 0; i < sample->chain_len && old[i] != CONTEXT_USER && len < cap; i++)
		chain[len++] = old[i];
	if ((sample->misc & REC_MISC_CPUMODE) == REC_MISC_USER)
		len = 0;
	if (len + 2 + sample->branch_count > cap)
		return false;
	chain[len++] = CONTEXT_USER;
	chain[len] = user_leaf(sample, old, sample->chain_len, swap);
	len++;
	for (uint64_t i = 0; i < sample->branch_count; i++) {
		uint64_t from = branch_word(sample, i, 0, swap);

		if (from == 0 || from >= CONTEXT_FIRST)
			break;
		/* The call itself; callers are return addresses everywhere else. */
		chain[len++] = from + 1;
	}
	sample->chain = chain;
	sample->chain_len = len;
	return true;
}

bool chain_fills_branches(const struct perfdata_sample *sample)
{
	return sample->branch_count == LBR_DEPTH || sample->branch_count == LBR_DEPTH_OLD;
}

unsigned chain_take_markers(struct perfdata_sample *sample)
{
	unsigned markers = 0;

	while (markers < sample->chain_len &&
	       sample->chain[sample->chain_len - 1 - markers] >= CONTEXT_FIRST)
		markers++;
	if (markers == sample->chain_len) /* nothing but a beginning */
		return 0;
	sample->chain_len -= markers;
	return markers;
}

bool chain_has_user_part(const struct perfdata_sample *sample)
{
	for (size_t i = 0; i < sample->chain_len; i++)
		if (sample->chain[i] == CONTEXT_USER)
			return true;
	return false;
}
