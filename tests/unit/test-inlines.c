/*
 * Inlined functions and lines, against llvm-symbolizer where it is installed: on the programs of
 * this build, on real files of other compilers (split, compressed, dwz, LTO), and on any further
 * programs named in CULPRIT_INLINE_PROGRAMS (separated by colons; tests/perf/inlines makes large
 * ones).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "base/vec.h"
#include "harness/tap.h"
#include "symbols/elf-file-internal.h"
#include "symbols/symbols.h"

#define FRAMES 64

struct agreement {
	unsigned addresses, with_lines, frames, names, files, lines, columns, depth;
	/* Differences that are choices: */
	unsigned aliases;     /* another symbol of the same function */
	unsigned no_unit;     /* one of the two knows nothing of the address */
	unsigned plain_name;  /* it shows the plain name where there is a linkage name, or none */
	unsigned dots;        /* the same file, with . or .. in its path */
	unsigned long_column; /* columns over 4095 are not kept */
	unsigned twice; /* it puts a relative compilation directory before itself: ./a/./a/b.c */
};

static uint64_t random_state = 88172645463325252u;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Without "./" and "x/../". */
static void plain_path(const char *path, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	while (*path && len + 1 < size) {
		size_t part = strcspn(path, "/");

		if (part == 2 && path[0] == '.' && path[1] == '.' && len > 0) {
			while (len > 0 && out[len - 1] == '/')
				len--;
			while (len > 0 && out[len - 1] != '/')
				len--;
		} else if (part > 0 && !(part == 1 && path[0] == '.')) {
			if (part > size - len - 2)
				part = size - len - 2;
			memcpy(out + len, path, part);
			len += part;
			if (path[strcspn(path, "/")])
				out[len++] = '/';
		} else if (part == 0 && len == 0) {
			out[len++] = '/';
		}
		path += strcspn(path, "/");
		path += *path == '/';
		out[len] = '\0';
	}
}

static bool same_file(struct agreement *a, const char *have, const char *want)
{
	char x[4096], y[4096];

	if (strcmp(have, want) == 0)
		return true;
	plain_path(have, x, sizeof(x));
	plain_path(want, y, sizeof(y));
	if (strcmp(x, y) != 0)
		return false;
	a->dots++;
	return true;
}

/* want is a directory and have, and have begins with that directory. */
static bool twice_relative(const char *have, const char *want)
{
	size_t have_len = strlen(have), want_len = strlen(want), len = want_len - have_len;

	return have[0] != '/' && want_len > have_len && strcmp(want + len, have) == 0 &&
	       want[len - 1] == '/' && strncmp(want, have, len) == 0;
}

/* want: "path:line:column", of which the path may hold colons. */
static void compare_place(struct agreement *a, const struct inline_frame *frame, char *want,
			  const char *what)
{
	char *colon = strrchr(want, ':');
	unsigned long column = colon ? strtoul(colon + 1, NULL, 10) : 0, line;

	if (!colon)
		return;
	*colon = '\0';
	colon = strrchr(want, ':');
	line = colon ? strtoul(colon + 1, NULL, 10) : 0;
	if (!colon)
		return;
	*colon = '\0';
	if (same_file(a, frame->file ? frame->file : "??", want))
		a->files++;
	else if (frame->file && twice_relative(frame->file, want))
		a->twice++;
	else
		printf("# %s: file %s, it says %s\n", what, frame->file, want);
	if (frame->line == line)
		a->lines++;
	else
		printf("# %s: line %u, it says %lu (%s)\n", what, frame->line, line, want);
	if (frame->column == column)
		a->columns++;
	else if (column > 4095)
		a->long_column++;
	else
		printf("# %s: column %u, it says %lu\n", what, frame->column, column);
}

static bool read_line(FILE *in, char *line, size_t size)
{
	if (!fgets(line, (int)size, in))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* One answer: pairs of lines up to an empty one. */
static void compare_answer(struct agreement *a, FILE *in, struct module *module, uint64_t offset,
			   uint64_t address)
{
	static char name[1 << 16], place[1 << 16];
	struct inline_frame frames[FRAMES];
	struct symbol symbol;
	int count = module_inlines(module, offset, frames, FRAMES), at = 0;
	bool named = module_lookup(module, offset, &symbol);
	char what[64];

	snprintf(what, sizeof(what), "0x%llx", (unsigned long long)address);
	a->addresses++;
	a->with_lines += count > 0 && frames[0].file;
	while (read_line(in, name, sizeof(name)) && name[0] &&
	       read_line(in, place, sizeof(place))) {
		const char *have;

		if (count == 0 || (count == 1 && !frames[0].function && !frames[0].file)) {
			a->no_unit += at++ == 0;
			if (strncmp(place, "??", 2) != 0)
				printf("# %s: nothing, it says %s %s\n", what, name, place);
			continue;
		}
		if (at >= count) {
			printf("# %s: only %d frames, it says %s too\n", what, count, name);
			at++;
			continue;
		}
		have = frames[at].raw_function;
		/* The function that has the code is called what the symbol table says. */
		if (at == count - 1 && named)
			have = symbol.raw_name;
		a->frames++;
		if (have && strcmp(have, name) == 0)
			a->names++;
		else if (frames[at].raw_function && strcmp(frames[at].raw_function, name) == 0)
			a->plain_name++;
		else if (strcmp(name, "??") == 0)
			a->plain_name++;
		else if (at == count - 1 && named)
			a->aliases++;
		else
			printf("# %s: frame %d is %s, it says %s\n", what, at, have, name);
		compare_place(a, &frames[at], place, what);
		at++;
	}
	if (count == 0 || at == count)
		a->depth++;
	else
		printf("# %s: %d frames, it says %d\n", what, count, at);
}

static struct symbols *symbols_now;

static struct module *open_module(const char *path)
{
	struct module_ref ref = {.kind = MODULE_ELF, .path = path};
	struct module *module = NULL;

	symbols_free(symbols_now);
	symbols_now = NULL;
	if (symbols_new(NULL, &symbols_now) < 0 || symbols_module(symbols_now, &ref, &module) < 0)
		return NULL;
	return module;
}

struct spot {
	uint64_t address, offset;
};

/* Random addresses of the sections with code. */
static size_t choose(const char *path, struct spot *spots, size_t count)
{
	struct elf_file elf;
	uint64_t total = 0;
	size_t n = 0;

	if (elf_open(path, &elf, NULL) < 0)
		return 0;
	for (uint32_t i = 1; i < elf.nsections; i++)
		if ((elf.sections[i].flags & SHF_EXECINSTR) && elf.sections[i].type == SHT_PROGBITS)
			total += elf.sections[i].size;
	while (total > 0 && n < count) {
		uint64_t at = random_next() % total;

		for (uint32_t i = 1; i < elf.nsections; i++) {
			const struct elf_section *s = &elf.sections[i];

			if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS)
				continue;
			if (at < s->size) {
				spots[n].address = s->addr + at;
				spots[n].offset = s->offset + at;
				n++;
				break;
			}
			at -= s->size;
		}
	}
	elf_close(&elf);
	return n;
}

static bool agree(const char *path, size_t count, struct agreement *a)
{
	const char *tool = getenv("TOOL_LLVM_SYMBOLIZER");
	CLEANUP_FREE struct spot *spots = calloc(count, sizeof(*spots));
	struct module *module = open_module(path);
	char command[8192], list[4096];
	FILE *file;
	size_t n;

	*a = (struct agreement){0};
	n = spots && module ? choose(path, spots, count) : 0;
	if (n == 0 || !tool)
		return false;
	snprintf(list, sizeof(list), "%s/addresses", tap_dir());
	file = fopen(list, "we");
	if (!file)
		return false;
	for (size_t i = 0; i < n; i++)
		fprintf(file, "0x%llx\n", (unsigned long long)spots[i].address);
	fclose(file);
	snprintf(command, sizeof(command),
		 "'%s' --obj='%s' --inlines --functions=linkage --no-demangle < '%s' 2>/dev/null",
		 tool, path, list);
	file = popen(command, "re"); /* NOLINT(cert-env33-c): the build's own tool */
	if (!file)
		return false;
	for (size_t i = 0; i < n; i++)
		compare_answer(a, file, module, spots[i].offset, spots[i].address);
	printf("# %s: %u addresses, %u with lines, %u frames: %u names, %u files, %u lines, %u "
	       "columns, %u depths agree; %u other names, %u paths with dots, %u long columns, %u "
	       "unknown\n",
	       path, a->addresses, a->with_lines, a->frames, a->names, a->files, a->lines,
	       a->columns, a->depth, a->plain_name, a->dots, a->long_column, a->no_unit);
	return pclose(file) == 0;
}

static void check_agreement(const struct agreement *a, size_t count, unsigned aliases)
{
	EXPECT_INT(a->addresses, count);
	EXPECT(a->frames > 0);
	EXPECT_INT(a->names + a->plain_name + a->aliases, a->frames);
	EXPECT_INT(a->files + a->twice, a->frames);
	EXPECT_INT(a->lines, a->frames);
	EXPECT_INT(a->columns + a->long_column, a->frames);
	EXPECT_INT(a->depth, a->addresses);
	EXPECT(a->aliases <= aliases);
}

static void expect_agreement(const char *path, size_t count, unsigned aliases)
{
	struct agreement a;

	if (!EXPECT(agree(path, count, &a)))
		return;
	check_agreement(&a, count, aliases);
}

TEST(programs_named_by_the_environment_agree)
{
	const char *list = getenv("CULPRIT_INLINE_PROGRAMS");
	char path[4096];

	if (!list || !getenv("TOOL_LLVM_SYMBOLIZER")) {
		tap_skip("CULPRIT_INLINE_PROGRAMS is not set or llvm-symbolizer is not installed");
		return;
	}
	while (*list) {
		size_t len = strcspn(list, ":");

		snprintf(path, sizeof(path), "%.*s", (int)len, list);
		expect_agreement(path, 4000, 0);
		list += len + (list[len] == ':');
	}
}

/*
 * Large programs that distributions and builds have: Debian's Python and C library with their debug
 * packages, and culprit itself. Differences that remain are counted as choices: symbols at the
 * same address (the C library has many), names of the symbol table (clones, .cold parts) where
 * llvm-symbolizer shows the function's, and code of the C runtime without debug information, which
 * both know by its symbol alone.
 */
TEST(large_programs_agree)
{
	static const struct {
		const char *path;
		unsigned aliases;
	} programs[] = {
		{"/usr/bin/python3.11-dbg", 40},
		{"/lib/x86_64-linux-gnu/libc.so.6", 400},
		{"%s/../../culprit", 40},
	};
	const char *dir = getenv("CULPRIT_TEST_PROGRAMS");
	unsigned total = 0;

	SKIP_IF(!getenv("TOOL_LLVM_SYMBOLIZER"), "llvm-symbolizer is not installed");
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct agreement a;
		char path[4096];

		if (programs[i].path[0] == '%')
			snprintf(path, sizeof(path), "%s/../../culprit", dir ? dir : "");
		else
			snprintf(path, sizeof(path), "%s", programs[i].path);
		if (access(path, R_OK) != 0 || !agree(path, 4000, &a) || a.with_lines < 2000) {
			printf("# %s: absent or without debug information\n", path);
			continue;
		}
		check_agreement(&a, 4000, programs[i].aliases);
		total += a.addresses;
	}
	SKIP_IF(total == 0, "none of the programs has debug information");
	printf("# %u random addresses agree\n", total);
}

TEST(programs_of_this_build_agree)
{
	const char *dir = getenv("CULPRIT_TEST_PROGRAMS");
	char path[4096];

	if (!dir || !getenv("TOOL_LLVM_SYMBOLIZER"))
		SKIP("llvm-symbolizer is not installed");
	snprintf(path, sizeof(path), "%s/symprog-pie", dir);
	SKIP_IF(access(path, R_OK) != 0, "the program was not built");
	expect_agreement(path, 300, 300); /* it is full of them */
}

TEST(real_files_agree)
{
	static const char *const names[] = {
		"otel/inline",
		"otel/inline-no-tco",
		"otel/inline-compressed-dwarf",
		"basic-cpp-no-fp-with-debuginfo",
		"samply/example-linux",
	};

	SKIP_IF(!tap_data_dir() || !getenv("TOOL_LLVM_SYMBOLIZER"),
		"no test data or no llvm-symbolizer");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct agreement a;
		char name[256];
		const char *path;

		snprintf(name, sizeof(name), "sampling/elf/%s", names[i]);
		path = tap_data(name);
		if (!path) {
			printf("# %s is absent\n", names[i]);
			continue;
		}
		EXPECT(agree(path, 1000, &a));
		EXPECT(a.frames > 0);
		EXPECT_INT(a.names + a.plain_name + a.aliases, a.frames);
		EXPECT_INT(a.lines, a.frames);
		EXPECT_INT(a.files, a.frames);
		EXPECT_INT(a.depth, a.addresses);
	}
}

/* Inlined frames with names and places among many addresses. */
static unsigned count_inlined(const char *path)
{
	struct spot spots[2000];
	struct inline_frame frames[FRAMES];
	struct module *module = path ? open_module(path) : NULL;
	size_t n = module ? choose(path, spots, ARRAY_LEN(spots)) : 0;
	unsigned inlined = 0;

	for (size_t i = 0; i < n; i++) {
		int count = module_inlines(module, spots[i].offset, frames, FRAMES);

		for (int k = 0; k + 1 < count; k++)
			inlined += frames[k].inlined && frames[k].function && frames[k + 1].file;
	}
	printf("# %s: %u inlined frames\n", path ? path : "absent", inlined);
	return inlined;
}

TEST(packed_sections_are_read)
{
	SKIP_IF(!tap_data("sampling/elf/otel/inline-compressed-dwarf"), "no test data");
	EXPECT(count_inlined(tap_data("sampling/elf/otel/inline-compressed-dwarf")) > 0);
	EXPECT(count_inlined(tap_data("sampling/elf/otel/inline-compressed-dwarf-zstd")) > 0);
}

/* All names of this program are in the supplement that dwz made, called "meow". */
TEST(names_are_found_in_a_supplement)
{
	const char *main = tap_data("sampling/elf/otel/inline-split-dwarf");
	const char *supplement = tap_data("sampling/elf/otel/inline-split-dwarf.dwp");
	char object[256], other[256];

	SKIP_IF(!main || !supplement, "no test data");
	snprintf(object, sizeof(object), "%s/program", tap_dir());
	snprintf(other, sizeof(other), "%s/meow", tap_dir());
	EXPECT_INT(symlink(main, object), 0);
	EXPECT_INT(count_inlined(object), 0);
	EXPECT_INT(symlink(supplement, other), 0);
	EXPECT(count_inlined(object) > 0);
}

/* The same program with its entries in .dwo files, in a .dwp, and in a file behind a debuglink. */
TEST(split_and_separate_files_are_read)
{
	static const char *const names[] = {"with-dwo/main", "with-dwp/main",
					    "regular-debuglink/main"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char name[256];

		snprintf(name, sizeof(name), "sampling/elf/samply/simple-example/%s", names[i]);
		SKIP_IF(!tap_data(name), "no test data");
		EXPECT(count_inlined(tap_data(name)) > 0);
	}
}

TEST(a_released_module_answers_again)
{
	const char *dir = getenv("CULPRIT_TEST_PROGRAMS");
	struct inline_frame before[FRAMES], after[FRAMES];
	char path[4096];
	struct spot spot[200];
	struct module *module;
	int count = 0, again;
	size_t n, i;

	SKIP_IF(!dir, "no programs");
	snprintf(path, sizeof(path), "%s/symprog-pie", dir);
	SKIP_IF(access(path, R_OK) != 0, "the program was not built");
	module = open_module(path);
	n = module ? choose(path, spot, ARRAY_LEN(spot)) : 0;
	for (i = 0; i < n && count == 0; i++)
		count = module_inlines(module, spot[i].offset, before, FRAMES);
	ASSERT(count > 0);
	module_release_inlines(module);
	again = module_inlines(module, spot[i - 1].offset, after, FRAMES);
	EXPECT_INT(again, count);
	EXPECT_STR(after[0].file, before[0].file);
	EXPECT_INT(after[0].line, before[0].line);
	EXPECT_INT(module_inlines(module, UINT64_MAX, after, FRAMES), 0);
	EXPECT_INT(module_inlines(module, spot[i - 1].offset, after, 0), 0);
}

__attribute__((destructor)) static void close_symbols(void)
{
	symbols_free(symbols_now);
}
