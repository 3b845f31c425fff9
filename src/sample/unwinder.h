/*
 * Stacks of samples that carry registers and stack bytes (--call-graph dwarf): the user part of the
 * chain is found by the call frame information of the mapped objects (symbols/unwind.h), by frame
 * pointers where there is none. The result is a chain like the kernel's own, so that all that
 * follows (interning, resolving) is the same for both.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sample/stack-walk.h"

struct session;
struct task;
struct raw_sample;

/* Where the tables of a session's objects come from; they are loaded when the first frame needs
 * them. */
struct unwind_modules {
	pthread_mutex_t lock;
	struct symbols *symbols; /* NULL: not begun */
};

/* One thread's: a cache of rules by address, and the chain of the last sample. */
struct unwinder {
	struct session *session;
	const struct task *task;
	struct stack_walker walker;
	uint64_t unwound, cut, lost;
};

void session_unwind_fini(struct session *session);
void unwinder_fini(struct unwinder *unwinder);

/*
 * For samples with registers. *ret is the sample with its stack unwound (unwound is set, and cut or
 * lost when the root was not reached), or, without a stack on arm64, with the caller that frame
 * pointers leave out; the sample as it is where neither can be done (32 bits). The chain is valid
 * until the next call. Fails with -ENOMEM only.
 */
int unwinder_run(struct unwinder *unwinder, struct session *session, const struct raw_sample *raw,
		 struct raw_sample *ret);
