/*
 * Debug information in two files. The first byte chooses how they belong together: the second is a
 * .dwo, a .dwp or what dwz has put aside; two bytes give the size of the first; "x.dwo" and "x.sup"
 * are the names by which it can ask for the second.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "scratch.h"
#include "symbols/dwarf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 3

static char folder[SCRATCH_BYTES], object[SCRATCH_BYTES + 16];
static int others[3] = {-1, -1, -1}; /* the files that may be beside the object */

static const char *const suffixes[] = {"x.dwo", "object.dwp", "x.sup"};

static void remove_folder(void)
{
	char path[SCRATCH_BYTES + 16];

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, suffixes[i]);
		unlink(path);
	}
	rmdir(folder);
}

static void make_folder(void)
{
	char path[SCRATCH_BYTES + 16];

	scratch_make(folder);
	atexit(remove_folder);
	snprintf(object, sizeof(object), "%s/object", folder);
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, suffixes[i]);
		others[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (others[i] < 0)
			abort();
	}
}

static void ask(struct dwarf *dwarf)
{
	struct inline_frame frames[16];

	for (uint64_t address = 0; address < 1u << 14; address += 61)
		if (dwarf_inlines(dwarf, address, frames, ARRAY_LEN(frames)) >
		    (int)ARRAY_LEN(frames))
			abort();
	(void)dwarf_inlines(dwarf, UINT64_MAX, frames, 1);
	(void)dwarf_incomplete(dwarf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const dirs[] = {"/nowhere", NULL};
	const struct dwarf_options options = {
		.path = object, .debug_dirs = dirs, .root = folder, .no_demangle = true};
	struct elf_file elf = {.fd = -1};
	struct arena arena = {0};
	struct dwarf *dwarf;
	size_t first;
	int other;

	if (size < HEAD)
		return 0;
	if (others[0] < 0)
		make_folder();
	first = MIN((size_t)(data[1] | data[2] << 8), size - HEAD);
	if (elf_open_image(data + HEAD, first, NULL, &elf, NULL) < 0)
		return 0;
	other = others[data[0] % ARRAY_LEN(others)];
	if (ftruncate(other, 0) < 0 || lseek(other, 0, SEEK_SET) < 0 ||
	    fd_write_all(other, data + HEAD + first, size - HEAD - first) < 0)
		abort();
	if (dwarf_new(&options, &elf, &arena, &dwarf) == 0) {
		ask(dwarf);
		dwarf_free(dwarf);
	}
	arena_fini(&arena);
	return ftruncate(other, 0) < 0 ? -1 : 0;
}
