/*
 * One stack from registers and copied stack bytes (symbols/unwind.h has the steps): by call frame
 * information, by frame pointers where there is none. The result is a chain like the kernel's own,
 * context markers included, so that all that follows is the same for both. What the addresses mean
 * is asked of the caller; rules are kept by address, so that mappings and tables are searched once
 * for each address that is seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/unwind.h"

enum stack_code_kind {
	STACK_UNASKED,
	STACK_UNMAPPED,
	STACK_BARE, /* mapped, and nothing describes the code */
	STACK_GAP,  /* the same in an object that describes its other code: stubs, assembly */
	STACK_RULE,
};

struct stack_code {
	enum stack_code_kind kind;
	struct unwind_rule rule;
};

struct stack_slot {
	uint64_t ip, space;
	bool exact;
	struct stack_code code;
};

/* Addresses of a chain, markers included. */
#define STACK_CHAIN_MAX 16384

struct stack_walker {
	/* What is at an address of the space of the walk; exact: not a return address. */
	void (*find)(void *arg, uint64_t ip, bool exact, struct stack_code *ret);
	void *arg;
	uint64_t space; /* other mappings need another number */
	enum unwind_arch arch;

	struct stack_slot *slots;
	uint64_t *chain; /* of the last walk */
	size_t len;
	bool by_frame_pointer; /* some step of the last walk */
};

/* Zero-initialized otherwise. 0 or -ENOMEM. */
int stack_walker_init(struct stack_walker *walker);
void stack_walker_fini(struct stack_walker *walker);

/* The registers of a sample: one u64 for each bit of mask (perf's numbers). False when the
 * instruction or stack pointer is not among them. */
bool stack_regs(enum unwind_arch arch, uint64_t mask, const uint8_t *words, bool swap,
		struct unwind_regs *ret);
/* The kernel's part of a sample's chain comes first. user: the sample is of user code. */
void stack_walk_begin(struct stack_walker *walker, const uint64_t *chain, size_t chain_len,
		      bool user);
/* Appends the user part. END: complete; CUT and LOST as for one step. */
enum unwind_result stack_walk(struct stack_walker *walker, struct unwind_regs *regs,
			      const struct unwind_memory *memory);
/* What is at a virtual address of a table (STACK_BARE: nothing describes it); file_offset: of the
 * address itself. */
void stack_code_of_table(const struct unwind_table *table, enum unwind_arch arch,
			 uint64_t file_offset, bool exact, struct stack_code *ret);
