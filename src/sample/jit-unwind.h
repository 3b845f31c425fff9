/*
 * How to unwind code of a just-in-time compiler: by what it writes into its jitdump file
 * (symbols/jitdump.h), which is followed while it grows.
 *
 * Code is found by its address in the process and the time, or by its address in the file's own
 * space. What the compiler has not written yet is not known: those that keep their file in a buffer
 * tell of code long after it ran.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/unwind.h"

struct jit_unwind;

/* path: of the file as the process pid sees it, below /proc/PID/root or at that path itself; opened
 * by the first update. */
int jit_unwind_new(int pid, const char *path, struct jit_unwind **ret);
void jit_unwind_free(struct jit_unwind *jit);
/* Reads what was added to the file. -ENOMEM; a file that is not there or damaged only says less. */
int jit_unwind_update(struct jit_unwind *jit);
/* The file does not grow any more: closes it. */
void jit_unwind_close(struct jit_unwind *jit);

/* Until when code counts as placed: a time of CLOCK_MONOTONIC; what was placed last where the
 * file's times are of another clock. The number changes whenever code does. */
uint32_t jit_unwind_epoch(const struct jit_unwind *jit, uint64_t time_ns);

/* The rule of an address of the process; false when the compiler tells none. */
bool jit_unwind_rule(const struct jit_unwind *jit, enum unwind_arch arch, uint32_t epoch,
		     uint64_t pc, struct unwind_rule *ret);
/* The same by the file's own addresses (struct jitdump_code: base). */
bool jit_unwind_rule_of_code(const struct jit_unwind *jit, enum unwind_arch arch, uint64_t address,
			     struct unwind_rule *ret);
