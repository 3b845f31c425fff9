/*
 * From a frame to its caller. Nothing here trusts the copied bytes or the rules: every step but the
 * one out of a signal frame must move up the stack, so that no loop is possible within a bounded
 * number of signal frames (which the caller counts).
 */
#include <string.h>

#include "base/util.h"
#include "symbols/unwind.h"

/* Above the copied bytes, but as near as a stack is large: the chain was cut, not damaged. */
#define STACK_MAX_BYTES (UINT64_C(64) << 20)
/* User addresses; what lies above on arm64 signs the address. */
#define ARM64_ADDRESS_BITS 48

/* x86-64: struct sigcontext inside the ucontext at the stack pointer, in its order of registers. */
#define X86_SIGCONTEXT 40
/* arm64: siginfo (128), then in the ucontext (176) the sigcontext with the fault address first. */
#define ARM64_SIGCONTEXT_REGS (128 + 176 + 8)

const struct unwind_rule unwind_signal_rule = {.flags = UNWIND_SIGNAL};

bool unwind_read(const struct unwind_memory *memory, uint64_t address, uint64_t *ret)
{
	uint64_t offset = address - memory->start;

	if (address < memory->start || memory->size < 8 || offset > memory->size - 8)
		return false;
	memcpy(ret, memory->data + offset, 8);
	if (memory->swap)
		*ret = __builtin_bswap64(*ret);
	return true;
}

/* Why a word could not be read. */
static enum unwind_result unreadable(const struct unwind_memory *memory, uint64_t address)
{
	uint64_t end = memory->start + memory->size;

	return address + 8 > end && address - memory->start < STACK_MAX_BYTES ? UNWIND_CUT
									      : UNWIND_LOST;
}

static uint64_t code_address(enum unwind_arch arch, uint64_t value)
{
	if (arch == UNWIND_ARM64)
		return value & ((UINT64_C(1) << ARM64_ADDRESS_BITS) - 1);
	return value;
}

static enum unwind_result signal_x86(const struct unwind_memory *memory, struct unwind_regs *regs)
{
	/* r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, then rip. */
	static const uint8_t order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
	uint64_t at = regs->r[UNWIND_X86_SP] + X86_SIGCONTEXT;

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (!unwind_read(memory, at + 8 * i, &regs->r[order[i]]))
			return unreadable(memory, at + 8 * i);
	if (!unwind_read(memory, at + 8 * ARRAY_LEN(order), &regs->ip))
		return unreadable(memory, at + 8 * ARRAY_LEN(order));
	regs->known = 0xffff;
	return regs->ip ? UNWIND_NEXT : UNWIND_END;
}

static enum unwind_result signal_arm64(const struct unwind_memory *memory, struct unwind_regs *regs)
{
	uint64_t at = regs->r[UNWIND_ARM_SP] + ARM64_SIGCONTEXT_REGS;

	/* x0-x30, sp, then pc: DWARF's order. */
	for (size_t i = 0; i < 32; i++)
		if (!unwind_read(memory, at + 8 * i, &regs->r[i]))
			return unreadable(memory, at + 8 * i);
	if (!unwind_read(memory, at + 8 * 32, &regs->ip))
		return unreadable(memory, at + 8 * 32);
	regs->ip = code_address(UNWIND_ARM64, regs->ip);
	regs->known = UINT32_MAX;
	return regs->ip ? UNWIND_NEXT : UNWIND_END;
}

static bool known(const struct unwind_regs *regs, unsigned reg)
{
	return reg < 32 && regs->known >> reg & 1;
}

static enum unwind_result find_cfa(const struct unwind_rule *rule,
				   const struct unwind_memory *memory,
				   const struct unwind_regs *regs, uint64_t *ret)
{
	uint64_t value;

	if (rule->cfa == UNWIND_CFA_UNKNOWN || !known(regs, rule->cfa_reg))
		return UNWIND_LOST;
	value = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset;
	if (rule->cfa == UNWIND_CFA_DEREF) {
		uint64_t at = value;

		if (!unwind_read(memory, at, &value))
			return unreadable(memory, at);
		value += (uint64_t)(int64_t)rule->cfa_add;
	} else if (rule->cfa == UNWIND_CFA_PLT && (int)(regs->ip & 15) >= rule->cfa_add) {
		value += 8;
	}
	*ret = value;
	return UNWIND_NEXT;
}

/* NEXT and *ret, END when the register is undefined, CUT or LOST. */
static enum unwind_result find_value(const struct unwind_place *place, unsigned reg, uint64_t cfa,
				     const struct unwind_memory *memory,
				     const struct unwind_regs *regs, uint64_t *ret)
{
	uint64_t at = cfa + (uint64_t)(int64_t)place->offset;

	switch (place->kind) {
	case UNWIND_SAME:
	case UNWIND_IN_REG:
		if (place->kind == UNWIND_IN_REG)
			reg = place->base;
		if (!known(regs, reg))
			return UNWIND_LOST;
		*ret = regs->r[reg];
		return UNWIND_NEXT;
	case UNWIND_CFA_VALUE:
		*ret = at;
		return UNWIND_NEXT;
	case UNWIND_AT_REG:
		if (!known(regs, place->base))
			return UNWIND_LOST;
		at = regs->r[place->base] + (uint64_t)(int64_t)place->offset;
		break;
	case UNWIND_AT_CFA:
		break;
	case UNWIND_UNDEFINED:
		return UNWIND_END;
	default:
		return UNWIND_LOST;
	}
	return unwind_read(memory, at, ret) ? UNWIND_NEXT : unreadable(memory, at);
}

/*
 * The caller's value of a register that calls keep. Some compilers (V8) do not tell that it was
 * taken off the stack again before the return: a place below the stack pointer is given up, and the
 * register itself has the value.
 */
static bool find_kept(const struct unwind_place *place, unsigned reg, uint64_t cfa,
		      const struct unwind_memory *memory, const struct unwind_regs *regs, bool leaf,
		      uint64_t *ret)
{
	if (leaf && place->kind == UNWIND_AT_CFA && known(regs, reg) &&
	    cfa + (uint64_t)(int64_t)place->offset + 8 <= memory->start) {
		*ret = regs->r[reg];
		return true;
	}
	return find_value(place, reg, cfa, memory, regs, ret) == UNWIND_NEXT;
}

enum unwind_result unwind_step(const struct unwind_rule *rule, enum unwind_arch arch,
			       const struct unwind_memory *memory, struct unwind_regs *regs,
			       bool leaf)
{
	bool arm = arch == UNWIND_ARM64;
	unsigned sp = arm ? UNWIND_ARM_SP : UNWIND_X86_SP, fp = arm ? UNWIND_ARM_FP : UNWIND_X86_BP,
		 bx = arm ? UNWIND_ARM_X19 : UNWIND_X86_BX;
	uint64_t cfa = 0, ra = 0, new_fp = 0, new_bx = 0;
	enum unwind_result r;
	uint32_t now = 1u << sp;

	if (rule->flags & UNWIND_SIGNAL && known(regs, sp))
		return arm ? signal_arm64(memory, regs) : signal_x86(memory, regs);
	if (rule->ra.kind == UNWIND_UNDEFINED)
		return UNWIND_END;
	/* A function that called has saved its return address. */
	if (rule->ra.kind == UNWIND_SAME && (!arm || !leaf))
		return UNWIND_LOST;
	r = find_cfa(rule, memory, regs, &cfa);
	if (r != UNWIND_NEXT)
		return r;
	if (known(regs, sp) && (cfa < regs->r[sp] || (cfa == regs->r[sp] && !(leaf && arm))))
		return UNWIND_LOST;
	r = find_value(&rule->ra, UNWIND_ARM_LR, cfa, memory, regs, &ra);
	if (r != UNWIND_NEXT)
		return r;
	if (find_kept(&rule->fp, fp, cfa, memory, regs, leaf, &new_fp))
		now |= 1u << fp;
	if (find_kept(&rule->bx, bx, cfa, memory, regs, leaf, &new_bx))
		now |= 1u << bx;
	regs->ip = code_address(arch, ra);
	regs->r[sp] = cfa;
	regs->r[fp] = new_fp;
	regs->r[bx] = new_bx;
	regs->known = now;
	return regs->ip ? UNWIND_NEXT : UNWIND_END;
}

enum unwind_result unwind_step_fp(enum unwind_arch arch, const struct unwind_memory *memory,
				  struct unwind_regs *regs)
{
	bool arm = arch == UNWIND_ARM64;
	unsigned sp = arm ? UNWIND_ARM_SP : UNWIND_X86_SP, fp = arm ? UNWIND_ARM_FP : UNWIND_X86_BP;
	uint64_t frame, next, ra;

	if (!known(regs, fp))
		return UNWIND_LOST;
	frame = regs->r[fp];
	if (frame == 0)
		return UNWIND_END;
	if (frame % 8 != 0 || (known(regs, sp) && frame < regs->r[sp]))
		return UNWIND_LOST;
	if (!unwind_read(memory, frame, &next))
		return unreadable(memory, frame);
	if (!unwind_read(memory, frame + 8, &ra))
		return unreadable(memory, frame + 8);
	regs->ip = code_address(arch, ra);
	if (regs->ip == 0)
		return UNWIND_END;
	/* The next frame pointer is judged when it is used. */
	regs->r[sp] = frame + 16;
	regs->r[fp] = next;
	regs->known = 1u << sp | 1u << fp;
	return UNWIND_NEXT;
}
