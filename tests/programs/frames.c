/*
 * frames FILE: the functions and places of virtual addresses (hex, one a line on standard input),
 * one line each: the symbol, then for every frame, innermost first, a tab and FUNCTION|FILE|LINE.
 * What is unknown is empty.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf-file-internal.h"
#include "symbols/symbols.h"

#define FRAMES 64

static const char *text(const char *name)
{
	return name ? name : "";
}

static void show(struct module *module, const struct elf_file *elf, uint64_t address)
{
	struct inline_frame frames[FRAMES];
	struct symbol symbol;
	uint64_t offset;
	int count;

	if (!elf_vaddr_to_offset(elf, address, &offset)) {
		puts("");
		return;
	}
	fputs(module_lookup(module, offset, &symbol) ? symbol.raw_name : "", stdout);
	count = module_inlines(module, offset, frames, FRAMES);
	for (int i = 0; i < count; i++)
		printf("\t%s|%s|%u", text(frames[i].raw_function), text(frames[i].file),
		       frames[i].line);
	puts("");
}

int main(int argc, char **argv)
{
	struct module_ref ref = {.kind = MODULE_ELF, .path = argc == 2 ? argv[1] : NULL};
	struct symbols *symbols = NULL;
	struct elf_file elf = {.fd = -1};
	struct module *module;
	char line[64];

	if (argc != 2 || elf_open(argv[1], &elf, NULL) < 0 || symbols_new(NULL, &symbols) < 0 ||
	    symbols_module(symbols, &ref, &module) < 0) {
		fprintf(stderr, "frames: %s is no ELF file\n", argc == 2 ? argv[1] : "nothing");
		elf_close(&elf);
		symbols_free(symbols);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin))
		show(module, &elf, strtoull(line, NULL, 16));
	symbols_free(symbols);
	elf_close(&elf);
	return 0;
}
