/* The threads of sampler.h from inside. */
#pragma once

#include <fcntl.h>
#include <pthread.h>

#include "base/str.h"
#include "latency/sampler.h"

enum sampler_gate {
	GATE_WAIT,
	GATE_GO,
	GATE_END
};

struct sampler {
	unsigned cpu, index;
	struct samplers *group;
	pthread_t thread;
	int tid, code;
	struct err why;
	int ready, done;
	struct sampler_cpu io;
	uint64_t skipped, cycles;
};

struct samplers {
	struct sampler_options options;
	unsigned count, started;
	struct sampler *threads;
	int *tids;
	int gate, stop;
	uint64_t base_ns, longest_ns; /* sleep */
	bool locked;
};

void sampler_wake_loop(struct sampler *t);
void sampler_noise_loop(struct sampler *t);

static inline bool sampler_ends(const struct sampler *t)
{
	return __atomic_load_n(&t->group->stop, __ATOMIC_RELAXED) ||
	       __atomic_load_n(t->io.frozen, __ATOMIC_RELAXED);
}
