/*
 * Loops are impossible: every step moves up the stack but those out of signal frames, which are
 * counted, and no chain is longer than its buffer.
 */
#include "sample/stack-walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "sample/perfdata.h"

#define SLOTS       16384 /* a power of two */
#define SIGNALS_MAX 64

/* perf's numbers of registers. */
#define X86_REG_IP 8
#define ARM_REG_PC 32

int stack_walker_init(struct stack_walker *walker)
{
	walker->slots = calloc(SLOTS, sizeof(*walker->slots));
	walker->chain = malloc(STACK_CHAIN_MAX * sizeof(*walker->chain));
	if (walker->slots && walker->chain)
		return 0;
	stack_walker_fini(walker);
	return -ENOMEM;
}

void stack_walker_fini(struct stack_walker *walker)
{
	free(walker->slots);
	free(walker->chain);
	walker->slots = NULL;
	walker->chain = NULL;
}

void stack_code_of_table(const struct unwind_table *table, enum unwind_arch arch,
			 uint64_t file_offset, bool exact, struct stack_code *ret)
{
	bool found;

	ret->kind = STACK_BARE;
	if (!table || unwind_table_arch(table) != arch)
		return;
	/* A return address may be the first byte behind the calling function. */
	found = unwind_table_rule(table, unwind_table_vaddr(table, file_offset - !exact),
				  &ret->rule);
	/* A handler returns to the stub's first byte: no call is before it. */
	if ((!found || ret->rule.flags & UNWIND_GUESSED) &&
	    unwind_table_is_sigreturn(table, unwind_table_vaddr(table, file_offset))) {
		ret->rule = unwind_signal_rule;
		found = true;
	}
	if (found)
		ret->kind = STACK_RULE;
	else if (unwind_table_describes(table))
		ret->kind = STACK_GAP;
}

static const struct stack_code *code_at(struct stack_walker *walker, uint64_t ip, bool exact)
{
	struct stack_slot *slot =
		&walker->slots[hash_pair(ip, walker->space << 1 | exact) & (SLOTS - 1)];

	if (slot->code.kind == STACK_UNASKED || slot->ip != ip || slot->space != walker->space ||
	    slot->exact != exact) {
		slot->ip = ip;
		slot->space = walker->space;
		slot->exact = exact;
		slot->code.kind = STACK_UNMAPPED;
		walker->find(walker->arg, ip, exact, &slot->code);
	}
	return &slot->code;
}

struct stack_step {
	struct stack_walker *walker;
	const struct unwind_memory *memory;
	struct unwind_regs *regs;
};

/* True when a call may have come from there. */
static bool plausible(const struct stack_step *at, uint64_t ip)
{
	return ip > 1 && code_at(at->walker, ip, false)->kind >= STACK_BARE;
}

/* A function without a frame has its return address on top of the stack or in the link register. */
static bool step_frameless(const struct stack_step *at)
{
	struct unwind_regs *regs = at->regs;
	uint64_t ip;

	if (at->walker->arch == UNWIND_ARM64) {
		ip = regs->r[UNWIND_ARM_LR] & ((UINT64_C(1) << 48) - 1);
		if (!(regs->known >> UNWIND_ARM_LR & 1) || ip == regs->ip || !plausible(at, ip))
			return false;
		/* Used once: the caller's own is elsewhere. */
		regs->known &= ~(UINT32_C(1) << UNWIND_ARM_LR);
	} else {
		if (!unwind_read(at->memory, regs->r[UNWIND_X86_SP], &ip) || !plausible(at, ip))
			return false;
		regs->r[UNWIND_X86_SP] += 8;
	}
	regs->ip = ip;
	return true;
}

/*
 * A running function that nothing describes: written in assembly, made by a JIT, or not there at
 * all. Stubs and assembly in an object that describes its other code seldom have a frame; other
 * code is tried by frame pointer first, when that leads to code.
 */
static enum unwind_result step_bare_leaf(const struct stack_step *at, bool gap)
{
	struct unwind_regs by_fp = *at->regs;
	enum unwind_result result;

	if (gap && step_frameless(at))
		return UNWIND_NEXT;
	result = unwind_step_fp(at->walker->arch, at->memory, &by_fp);
	if (result == UNWIND_NEXT && plausible(at, by_fp.ip)) {
		*at->regs = by_fp;
		return UNWIND_NEXT;
	}
	if (!gap && step_frameless(at))
		return UNWIND_NEXT;
	return result == UNWIND_NEXT ? UNWIND_LOST : result;
}

/* A rule that was read from code is right when it leads to code. */
static bool step_guessed(const struct stack_step *at, const struct unwind_rule *rule, bool leaf)
{
	struct unwind_regs regs = *at->regs;

	if (unwind_step(rule, at->walker->arch, at->memory, &regs, leaf) != UNWIND_NEXT ||
	    !plausible(at, regs.ip))
		return false;
	*at->regs = regs;
	return true;
}

static enum unwind_result step(const struct stack_step *at, const struct stack_code *code,
			       bool leaf)
{
	const struct unwind_rule *rule = &code->rule;
	enum unwind_arch arch = at->walker->arch;

	if (code->kind == STACK_RULE && rule->flags & UNWIND_GUESSED) {
		if (step_guessed(at, rule, leaf))
			return UNWIND_NEXT;
	} else if (code->kind == STACK_RULE &&
		   (rule->cfa != UNWIND_CFA_UNKNOWN || rule->flags & UNWIND_SIGNAL ||
		    rule->ra.kind == UNWIND_UNDEFINED)) {
		return unwind_step(rule, arch, at->memory, at->regs, leaf);
	}
	at->walker->by_frame_pointer = true;
	return leaf ? step_bare_leaf(at, code->kind == STACK_GAP)
		    : unwind_step_fp(arch, at->memory, at->regs);
}

enum unwind_result stack_walk(struct stack_walker *walker, struct unwind_regs *regs,
			      const struct unwind_memory *memory)
{
	struct stack_step at = {.walker = walker, .memory = memory, .regs = regs};
	enum unwind_result result;
	unsigned signals = 0;
	bool exact = true, leaf = true;

	for (;;) {
		/* A copy: another address may take its slot during the step. */
		struct stack_code code = *code_at(walker, regs->ip, exact);
		bool signal = code.kind == STACK_RULE && code.rule.flags & UNWIND_SIGNAL;

		if (code.kind == STACK_UNMAPPED && !leaf)
			return UNWIND_LOST;
		if (walker->len + 2 > STACK_CHAIN_MAX || (signal && signals++ == SIGNALS_MAX))
			return UNWIND_CUT;
		if (exact || signal) /* an address and not a return address follows */
			walker->chain[walker->len++] = CONTEXT_USER;
		walker->chain[walker->len++] = regs->ip;
		result = step(&at, &code, leaf);
		if (result != UNWIND_NEXT)
			return result;
		exact = leaf = signal;
	}
}

bool stack_regs(enum unwind_arch arch, uint64_t mask, const uint8_t *words, bool swap,
		struct unwind_regs *ret)
{
	/* perf: ax bx cx dx si di bp sp ip, then flags and segments, r8-r15 from 16 on */
	static const uint8_t x86_order[] = {0, 3, 2, 1, 4, 5, 6, 7};
	unsigned ip = arch == UNWIND_ARM64 ? ARM_REG_PC : X86_REG_IP;
	bool have_ip = false;

	memset(ret, 0, sizeof(*ret));
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned reg = 32;
		uint64_t value;

		if (!(mask >> bit & 1))
			continue;
		memcpy(&value, words, 8);
		words += 8;
		if (swap)
			value = __builtin_bswap64(value);
		if (bit == ip) {
			ret->ip = value;
			have_ip = true;
		} else if (arch == UNWIND_ARM64) {
			reg = bit;
		} else if (bit < 8) {
			reg = x86_order[bit];
		} else if (bit >= 16 && bit < 24) {
			reg = bit - 8;
		}
		if (reg < 32) {
			ret->r[reg] = value;
			ret->known |= UINT32_C(1) << reg;
		}
	}
	return have_ip && ret->known >> (arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP) & 1;
}

void stack_walk_begin(struct stack_walker *walker, const uint64_t *chain, size_t chain_len,
		      bool user)
{
	walker->len = 0;
	walker->by_frame_pointer = false;
	for (size_t i = 0; i < chain_len && walker->len < STACK_CHAIN_MAX / 2; i++) {
		uint64_t ip = chain[i];

		if (ip == CONTEXT_USER || ip == CONTEXT_USER_DEFERRED)
			break;
		if (ip >= CONTEXT_FIRST)
			user = false;
		if (!user)
			walker->chain[walker->len++] = ip;
	}
}
