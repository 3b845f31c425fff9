/* Call frame information of any bytes, and steps by the rules it gives over the same bytes as a
 * stack: tables stay sorted, every step goes up, and no walk is longer than its stack. */
#include <stdlib.h>
#include <string.h>

#include "symbols/unwind-internal.h"
#include "symbols/x86-length.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct unwind_table *table, const uint8_t *data, size_t size)
{
	struct unwind_memory memory = {
		.start = 0x7ffd0000, .data = data, .size = size & ~(size_t)7};
	struct unwind_regs regs = {.ip = table->base, .known = UINT32_MAX};
	unsigned sp = table->arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP, signals = 0;
	enum unwind_result result = UNWIND_NEXT;
	uint64_t before;

	for (int i = 0; i < 32; i++)
		regs.r[i] = memory.start;
	for (size_t steps = 0; result == UNWIND_NEXT; steps++) {
		const struct unwind_rule *rule = unwind_table_find(table, regs.ip);
		bool signal = rule && rule->flags & UNWIND_SIGNAL;

		if (signal && signals++ == 8)
			return;
		if (steps > size + 2 + signals * size)
			abort();
		before = regs.r[sp];
		result = rule ? unwind_step(rule, table->arch, &memory, &regs, steps == 0)
			      : unwind_step_fp(table->arch, &memory, &regs);
		if (result == UNWIND_NEXT && !signal && regs.r[sp] <= before && steps > 0)
			abort();
		/* Any row will do: real programs return to mapped code. */
		regs.ip = table->base + regs.ip % 4096;
	}
}

static void look_up(const struct unwind_table *table)
{
	for (size_t i = 0; i + 1 < table->rows.len; i++)
		if (table->rows.data[i].pc >= table->rows.data[i + 1].pc)
			abort();
	for (size_t i = 0; i < table->rows.len; i++)
		if (table->rows.data[i].rule >= table->rules.len)
			abort();
	(void)unwind_table_find(table, 0);
	(void)unwind_table_find(table, UINT64_MAX);
	(void)unwind_table_vaddr(table, 4096);
}

/* Searching asks the linker's index and decodes one function at a time. */
static void search(const uint8_t *data, size_t size)
{
	struct unwind_table *table;
	struct unwind_rule rule;

	if (unwind_search_of_image(data, size, &table) < 0)
		return;
	for (uint64_t vaddr = 0; vaddr < 0x2000; vaddr += 17)
		(void)unwind_table_rule(table, vaddr, &rule);
	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t vaddr;

		memcpy(&vaddr, data + at, sizeof(vaddr));
		(void)unwind_table_rule(table, vaddr, &rule);
	}
	unwind_table_free(table);
}

/* Rules from any bytes as code. */
static void code(const uint8_t *data, size_t size)
{
	struct elf_file elf;
	struct unwind_code *code;
	struct unwind_rule rule;
	struct x86_instruction in;

	if (x86_decode(data, size, &in) == 0 && (in.length == 0 || in.length > X86_LENGTH_MAX))
		abort();
	if (elf_open_image(data, size, NULL, &elf, NULL) < 0)
		return;
	if (unwind_code_new(&elf, &code) == 0) {
		for (uint64_t vaddr = 0; vaddr < 0x2000; vaddr += 0x2f1)
			(void)unwind_code_rule(code, vaddr, &rule);
		unwind_code_free(code);
	}
	elf_close(&elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_section sections[2];
	struct unwind_table *table;
	size_t half = size / 2;

	if (size < 1)
		return 0;
	if (unwind_table_of_image(data, size, &table, NULL) == 0) {
		look_up(table);
		walk(table, data, size);
		unwind_table_free(table);
		search(data, size);
		code(data, size);
		return 0;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return 0;
	table->segments.fd = -1;
	table->arch = data[0] & 1 ? UNWIND_ARM64 : UNWIND_X86_64;
	sections[0] = (struct cfi_section){.data = data + 1, .size = half, .vaddr = 0x2000};
	sections[1] = (struct cfi_section){
		.data = data + 1 + half, .size = size - 1 - half, .debug = true};
	if (data[0] & 2) { /* one section of everything */
		sections[0].size = size - 1;
		sections[0].debug = data[0] & 4;
	}
	if (half <= size - 1 && cfi_compile(table, sections, data[0] & 2 ? 1 : 2) == 0) {
		look_up(table);
		walk(table, data, size);
	}
	unwind_table_free(table);
	return 0;
}
