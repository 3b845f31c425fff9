/*
 * Unwinding by call frame information: what a function's prologue did to the stack, as .eh_frame
 * and .debug_frame tell it, compiled once for a module into a table of our own.
 *
 * A table has rows of 8 bytes, sorted by address: from here on, this rule holds. Rules are few (a
 * module of a million rows has some hundred different ones) and are kept once. A row with rule 0
 * ends a function behind which nothing is known. DWARF expressions are understood where compilers,
 * linkers and libraries use them (PLT stubs, realigned stacks, signal frames, register save areas);
 * any other gives a rule of kind UNWIND_CFA_UNKNOWN.
 *
 * x86-64 and arm64, little endian. Facts: DWARF 5 section 6.4, the x86-64 and AArch64 psABIs, the
 * LSB on .eh_frame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/symbols.h"

enum unwind_arch {
	UNWIND_X86_64,
	UNWIND_ARM64,
};

/* Registers have DWARF's numbers. */
#define UNWIND_X86_BX  3
#define UNWIND_X86_BP  6
#define UNWIND_X86_SP  7
#define UNWIND_ARM_X19 19
#define UNWIND_ARM_FP  29
#define UNWIND_ARM_LR  30
#define UNWIND_ARM_SP  31

enum unwind_cfa { /* how the caller's stack pointer (CFA) is found */
	UNWIND_CFA_UNKNOWN,
	UNWIND_CFA_REG,   /* reg + offset */
	UNWIND_CFA_DEREF, /* the word at (reg + offset), + add */
	UNWIND_CFA_PLT,   /* reg + offset, + 8 when the address's last four bits are >= add */
};

enum unwind_saved { /* where the caller's value of a register is */
	UNWIND_SAME,
	UNWIND_AT_CFA,    /* the word at CFA + offset */
	UNWIND_AT_REG,    /* the word at (register base + offset) */
	UNWIND_IN_REG,    /* in register base */
	UNWIND_CFA_VALUE, /* CFA + offset itself */
	UNWIND_UNDEFINED, /* nowhere; for the return address: the outermost frame */
	UNWIND_UNKNOWN,
};

struct unwind_place {
	uint8_t kind, base;
	int16_t unused;
	int32_t offset;
};

#define UNWIND_SIGNAL  1 /* the frame that the kernel puts before a signal handler */
#define UNWIND_GUESSED 2 /* read from the code: to be believed when it leads somewhere */

struct unwind_rule {
	uint8_t cfa, cfa_reg, flags, unused;
	int32_t cfa_offset, cfa_add;
	/* Return address; rbp or x29; rbx or x19. */
	struct unwind_place ra, fp, bx;
};

struct unwind_table;

/*
 * The table of an object that is looked for like names are (symbols.h). Kinds ELF and VDSO.
 * -ENODATA when the object has no such information, -ENOTSUP for another machine's, -ENOENT and the
 * like when there is no object. A table never changes and may be used by many threads.
 */
int unwind_table_load(const struct symbols *symbols, const struct module_ref *ref,
		      struct unwind_table **ret, struct err *err);
/*
 * The same without compiling rows, where the object has an index of its functions (.eh_frame_hdr):
 * opening then costs reading .eh_frame, whatever its size, and each unwind_table_rule() decodes one
 * function. For those that keep the rules of the addresses they meet. Functions of x86-64 that
 * nothing describes get rules that are read from their code (UNWIND_GUESSED); an object that
 * describes nothing at all is no error then.
 */
int unwind_table_open(const struct symbols *symbols, const struct module_ref *ref,
		      struct unwind_table **ret, struct err *err);
/* The same of a file's bytes, which are needed during the call only. */
int unwind_table_of_image(const void *image, size_t size, struct unwind_table **ret,
			  struct err *err);
void unwind_table_free(struct unwind_table *table);

/* The rule of a virtual address; false when there is none. */
bool unwind_table_rule(const struct unwind_table *table, uint64_t vaddr, struct unwind_rule *ret);
/* The same of a table that has rows: the rule, or NULL. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t vaddr);
/* True when the code at the address is a signal's return stub that nothing describes. */
bool unwind_table_is_sigreturn(const struct unwind_table *table, uint64_t vaddr);
/* A file offset as a virtual address; the offset itself when no segment holds it. */
uint64_t unwind_table_vaddr(const struct unwind_table *table, uint64_t offset);
/* False when all its rules are guessed. */
bool unwind_table_describes(const struct unwind_table *table);
enum unwind_arch unwind_table_arch(const struct unwind_table *table);

/* A piece of .eh_frame on its own, as just-in-time compilers make for each function. */
struct unwind_frame {
	const uint8_t *data;
	size_t size;
	uint64_t vaddr; /* where it stands, in the addresses of pc */
	bool swap;
};

/* The rule of an address that one of its functions has; each call looks through all of them. */
bool unwind_frame_rule(enum unwind_arch arch, const struct unwind_frame *frame, uint64_t pc,
		       struct unwind_rule *ret);

/* The rows, for those that copy them: the rule of all addresses from vaddr up to the next row's. */
struct unwind_row {
	uint32_t pc; /* from the table's base */
	uint32_t rule;
};
const struct unwind_row *unwind_table_rows(const struct unwind_table *table, size_t *ret_count,
					   uint64_t *ret_base);
const struct unwind_rule *unwind_table_rules(const struct unwind_table *table, size_t *ret_count);

/* Copied stack bytes: the words of [start, start + size). */
struct unwind_memory {
	uint64_t start;
	const uint8_t *data;
	size_t size;
	bool swap;
};

struct unwind_regs {
	uint64_t ip;
	uint64_t r[32]; /* by DWARF number */
	uint32_t known; /* bit n: r[n] is known */
};

enum unwind_result {
	UNWIND_NEXT, /* regs are those of the caller */
	UNWIND_END,  /* this was the outermost frame */
	UNWIND_CUT,  /* the copied bytes end here */
	UNWIND_LOST, /* nothing tells the caller, or what tells it is damaged */
};

/*
 * From a frame to its caller. leaf: the registers are those of a running (or interrupted) function
 * and not of one that called. Every step moves up the stack, except out of a signal frame. The
 * interrupted address behind a signal frame is exact, other addresses are return addresses.
 */
enum unwind_result unwind_step(const struct unwind_rule *rule, enum unwind_arch arch,
			       const struct unwind_memory *memory, struct unwind_regs *regs,
			       bool leaf);
/* The same where there is no rule, by frame pointer. */
enum unwind_result unwind_step_fp(enum unwind_arch arch, const struct unwind_memory *memory,
				  struct unwind_regs *regs);
/* The rule of a signal frame that has none. */
extern const struct unwind_rule unwind_signal_rule;
/* False when the word is not among the copied bytes. */
bool unwind_read(const struct unwind_memory *memory, uint64_t address, uint64_t *ret);
