#include "latency/explained.h"

#include <stdlib.h>

#include "base/util.h"

#define RECENT_NOISE 1024 /* interruptions that the next gap may contain */

struct explained_noise {
	uint64_t start_ns, duration_ns;
};

void explained_note(struct explained *explained, uint64_t start_ns, uint64_t duration_ns)
{
	if (!explained->recent)
		explained->recent = calloc(RECENT_NOISE, sizeof(*explained->recent));
	if (!explained->recent)
		return;
	explained->recent[explained->next] = (struct explained_noise){start_ns, duration_ns};
	explained->next = (explained->next + 1) % RECENT_NOISE;
	explained->count = MIN(explained->count + 1, RECENT_NOISE);
}

uint64_t explained_take(struct explained *explained, uint64_t start_ns)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < explained->count; i++)
		if (explained->recent[i].start_ns >= start_ns)
			sum += explained->recent[i].duration_ns;
	explained_forget(explained);
	return sum;
}

void explained_forget(struct explained *explained)
{
	explained->count = explained->next = 0;
}

void explained_fini(struct explained *explained)
{
	free(explained->recent);
	*explained = (struct explained){0};
}
