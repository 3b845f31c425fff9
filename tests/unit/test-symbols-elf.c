/*
 * ELF files: programs compiled with this build, taken apart with objcopy, and checked against nm;
 * real files of other systems; files that lie.
 */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "base/vec.h"
#include "harness/tap.h"
#include "symbols/symbols.h"

static const char *program(const char *name)
{
	static char path[4][4096];
	static unsigned turn;
	const char *dir = getenv("CULPRIT_TEST_PROGRAMS");
	char *out = path[turn++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", dir ? dir : ".", name);
	return access(out, R_OK) == 0 ? out : NULL;
}

struct fixture {
	struct symbols *symbols;
	struct module *module;
};

static struct fixture load(const char *path, const char *debug_dir)
{
	const char *dirs[] = {debug_dir ? debug_dir : "/nonexistent", NULL};
	struct symbols_options options = {.debug_dirs = dirs};
	struct module_ref ref = {.path = path};
	struct fixture f = {0};

	EXPECT_INT(symbols_new(&options, &f.symbols), 0);
	EXPECT_INT(symbols_module(f.symbols, &ref, &f.module), 0);
	return f;
}

/* File offset of a virtual address of a 64-bit file of this machine's byte order. */
static uint64_t vaddr_to_offset(const char *path, uint64_t vaddr)
{
	struct file_map map = {0};
	uint64_t offset = UINT64_MAX;
	Elf64_Ehdr header;

	if (file_map_open(path, &map, NULL) < 0)
		return offset;
	memcpy(&header, map.data, sizeof(header));
	for (unsigned i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, map.data + header.e_phoff + (size_t)i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && vaddr >= ph.p_vaddr && vaddr - ph.p_vaddr < ph.p_filesz)
			offset = vaddr - ph.p_vaddr + ph.p_offset;
	}
	file_map_close(&map);
	return offset;
}

/* What nm says: sized code symbols. */
struct nm_symbol {
	uint64_t start, size;
	char name[512];
};

struct nm {
	VEC(struct nm_symbol) symbols;
};

static bool nm_read(const char *path, const char *options, struct nm *ret)
{
	const char *tool = getenv("TOOL_NM");
	char command[8192], line[4096];
	FILE *pipe;

	if (!tool)
		return false;
	snprintf(command, sizeof(command), "%s %s -n -S --defined-only '%s' 2>/dev/null", tool,
		 options, path);
	pipe = popen(command, "r");
	if (!pipe)
		return false;
	while (fgets(line, sizeof(line), pipe)) {
		struct nm_symbol symbol = {0};
		unsigned long long start, size;
		char type;

		if (sscanf(line, "%llx %llx %c %511s", &start, &size, &type, symbol.name) != 4 ||
		    !strchr("tTwWi", type))
			continue;
		symbol.start = start;
		symbol.size = size;
		if (size && vec_push(&ret->symbols, symbol) < 0)
			break;
	}
	pclose(pipe);
	return ret->symbols.len > 0;
}

/* The innermost symbol of nm that covers the address has the name, or an alias of it. */
static bool nm_agrees(struct nm *nm, const char *path, const struct module *module, uint64_t vaddr)
{
	uint64_t innermost = 0;
	struct symbol symbol;
	bool covered = false;

	vec_for_each(&nm->symbols, it)
		if (vaddr >= it->start && vaddr - it->start < it->size) {
			innermost = it->start;
			covered = true;
		}
	if (!module_lookup(module, vaddr_to_offset(path, vaddr), &symbol))
		return !covered;
	if (!covered)
		return strstr(symbol.raw_name, "@plt") || symbol.size > 0;
	vec_for_each(&nm->symbols, it) {
		size_t len = strcspn(it->name, "@");

		if (it->start == innermost && vaddr - it->start < it->size &&
		    symbol.start == innermost && strncmp(it->name, symbol.raw_name, len) == 0 &&
		    (!symbol.raw_name[len] || symbol.raw_name[len] == '@'))
			return true;
	}
	return false;
}

/* Start, middle and end of every symbol (of every step-th). */
static void check_against_nm(const char *path, const struct module *module, const char *options,
			     size_t step)
{
	struct nm nm = {0};
	size_t wrong = 0, checked = 0;

	if (!nm_read(path, options, &nm)) {
		vec_fini(&nm.symbols);
		SKIP("nm is not there");
	}
	for (size_t i = 0; i < nm.symbols.len; i += step) {
		const struct nm_symbol *it = &nm.symbols.data[i];
		uint64_t probes[] = {it->start, it->start + it->size / 2, it->start + it->size - 1,
				     it->start + it->size};

		for (size_t p = 0; p < ARRAY_LEN(probes); p++, checked++)
			if (!nm_agrees(&nm, path, module, probes[p]) && wrong++ < 3)
				fprintf(stderr, "# %s: 0x%llx (%s) differs\n", path,
					(unsigned long long)probes[p], it->name);
	}
	EXPECT(checked > 0);
	EXPECT_INT(wrong, 0);
	vec_fini(&nm.symbols);
}

static uint64_t address_of(const char *path, const char *name)
{
	struct nm nm = {0};
	uint64_t address = UINT64_MAX;

	nm_read(path, "", &nm);
	vec_for_each(&nm.symbols, it)
		if (strcmp(it->name, name) == 0)
			address = it->start;
	vec_fini(&nm.symbols);
	return address;
}

static const char *name_of(const struct module *module, const char *path, uint64_t vaddr)
{
	struct symbol symbol;

	return module_lookup(module, vaddr_to_offset(path, vaddr), &symbol) ? symbol.name : "?";
}

static void check_program(const char *name)
{
	const char *path = program(name);
	uint64_t at;
	struct fixture f;

	SKIP_IF(!path, "no test programs");
	f = load(path, NULL);
	EXPECT(module_status(f.module) == NULL);
	check_against_nm(path, f.module, "", 1);
	at = address_of(path, "sized_symbol");
	EXPECT_STR(name_of(f.module, path, at), "sized_symbol");
	EXPECT_STR(name_of(f.module, path, at + 15), "sized_symbol");
	EXPECT_STR(name_of(f.module, path, at + 16), "?");
	EXPECT_STR(name_of(f.module, path, at + 47), "?");
	EXPECT_STR(name_of(f.module, path, at + 48), "bare_label");
	EXPECT_STR(name_of(f.module, path, at + 71), "bare_label");
	EXPECT_STR(name_of(f.module, path, at + 72), "outer_symbol");
	EXPECT_STR(name_of(f.module, path, at + 88), "inner_symbol");
	EXPECT_STR(name_of(f.module, path, at + 96), "outer_symbol");
	EXPECT_STR(name_of(f.module, path, at + 112), "table_in_code");
	EXPECT_STR(name_of(f.module, path, address_of(path, "global_function")), "global_function");
	EXPECT_STR(name_of(f.module, path, address_of(path, "_ZN4base4Task3runEi")),
		   "base::Task::run(int)");
	EXPECT_STR(name_of(f.module, path, address_of(path, "_RNvNtCs1234_7mycrate3foo3bar")),
		   "mycrate::foo::bar");
	EXPECT_STR(name_of(f.module, path, address_of(path, "_ZN7mycrate3foo17h05af221e174051e9E")),
		   "mycrate::foo");
	EXPECT_STR(name_of(f.module, path, address_of(path, "$s4main3fooyyF")), "$s4main3fooyyF");
	symbols_free(f.symbols);
}

TEST(pie_program)
{
	check_program("symprog-pie");
}

TEST(fixed_program)
{
	check_program("symprog-fixed");
}

TEST(static_program)
{
	check_program("symprog-static");
}

/* Every name of want is some stub's. */
static void check_plt(const char *path, const char *const *want)
{
	struct fixture f = load(path, NULL);

	for (; *want; want++) {
		struct symbol symbol;
		bool found = false;

		for (uint64_t offset = 0; offset < (1u << 19) && !found; offset += 4)
			found = module_lookup(f.module, offset, &symbol) &&
				strcmp(symbol.name, *want) == 0;
		if (!EXPECT(found))
			fprintf(stderr, "# %s: no %s\n", path, *want);
	}
	symbols_free(f.symbols);
}

static const char *const plt_names[] = {"puts@plt",   "getpid@plt", "getppid@plt", "getuid@plt",
					"getgid@plt", "random@plt", NULL};

TEST(plt_of_pie)
{
	SKIP_IF(!program("symprog-pie"), "no test programs");
	check_plt(program("symprog-pie"), plt_names);
}

TEST(plt_of_fixed)
{
	SKIP_IF(!program("symprog-fixed"), "no test programs");
	check_plt(program("symprog-fixed"), plt_names);
}

TEST(plt_with_ibt)
{
	SKIP_IF(!program("symprog-ibt"), "no test programs");
	check_plt(program("symprog-ibt"), plt_names);
}

TEST(plt_of_other_linkers_and_machines)
{
	static const char *const softokn[] = {"PR_Lock@plt", "memcpy@plt", NULL};
	static const char *const arm64[] = {"malloc@plt", "_dl_catch_exception@plt", NULL};
	const char *one = tap_data("sampling/elf/framehop/x86_64/nightly-libsoftokn3.so"),
		   *two = tap_data("sampling/elf/framehop/aarch64/ld-2.31.so");

	SKIP_IF(!one || !two, "no test data");
	check_plt(one, softokn);
	check_plt(two, arm64);
}

/* Cuts the program's symbols out into a debug file; the stripped program is left beside it. */
static bool split_debug(const char *from, const char *stripped, const char *debug, bool link)
{
	const char *objcopy = getenv("TOOL_OBJCOPY");

	if (!objcopy || !from)
		return false;
	return tap_shell("%s --only-keep-debug '%s' '%s'", objcopy, from, debug) == 0 &&
	       tap_shell("%s --strip-all %s%s%s '%s' '%s'", objcopy,
			 link ? "--add-gnu-debuglink='" : "", link ? debug : "", link ? "'" : "",
			 from, stripped) == 0;
}

TEST(debug_file_by_build_id)
{
	char stripped[4096], debug[4096], dir[4096], hex[2 * BUILD_ID_MAX + 1];
	const char *original = program("symprog-pie");
	struct build_id id;
	struct fixture f;

	snprintf(stripped, sizeof(stripped), "%s/byid", tap_dir());
	snprintf(debug, sizeof(debug), "%s/byid.debug", tap_dir());
	snprintf(dir, sizeof(dir), "%s/dbg", tap_dir());
	SKIP_IF(!split_debug(original, stripped, debug, false),
		"objcopy or the test programs are not there");
	ASSERT(build_id_read(stripped, &id, NULL) == 0);
	build_id_hex(&id, hex);
	f = load(stripped, dir);
	EXPECT_STR(name_of(f.module, original, address_of(original, "static_function")), "?");
	symbols_free(f.symbols);
	ASSERT(tap_shell("mkdir -p '%s/.build-id/%.2s' && cp '%s' '%s/.build-id/%.2s/%s.debug'",
			 dir, hex, debug, dir, hex, hex + 2) == 0);
	f = load(stripped, dir);
	check_against_nm(original, f.module, "", 1);
	EXPECT_STR(name_of(f.module, original, address_of(original, "static_function")),
		   "static_function");
	symbols_free(f.symbols);
	/* Another program's debug file under this id must not be believed. */
	ASSERT(tap_shell("cp '%s' '%s/.build-id/%.2s/%s.debug'", program("symprog-fixed"), dir, hex,
			 hex + 2) == 0);
	f = load(stripped, dir);
	EXPECT_STR(name_of(f.module, original, address_of(original, "static_function")), "?");
	symbols_free(f.symbols);
}

TEST(debug_file_by_debuglink)
{
	char stripped[4096], debug[4096];
	const char *original = program("symprog-static");
	struct fixture f;

	/* The static program has no build id: the CRC alone decides. */
	snprintf(stripped, sizeof(stripped), "%s/bylink", tap_dir());
	snprintf(debug, sizeof(debug), "%s/bylink.debug", tap_dir());
	SKIP_IF(!split_debug(original, stripped, debug, true),
		"objcopy or the test programs are not there");
	f = load(stripped, NULL);
	EXPECT_STR(name_of(f.module, original, address_of(original, "static_function")),
		   "static_function");
	symbols_free(f.symbols);
	ASSERT(tap_shell("printf x >> '%s'", debug) == 0);
	f = load(stripped, NULL);
	EXPECT_STR(name_of(f.module, original, address_of(original, "static_function")), "?");
	symbols_free(f.symbols);
}

TEST(minidebuginfo)
{
	const char *original = program("symprog-pie"), *objcopy = getenv("TOOL_OBJCOPY"),
		   *xz = getenv("TOOL_XZ");
	char mini[4096];
	struct fixture f;

	SKIP_IF(!original || !objcopy || !xz, "objcopy, xz or the test programs are not there");
	snprintf(mini, sizeof(mini), "%s/mini", tap_dir());
	ASSERT(tap_shell(
		       "%s --only-keep-debug '%s' '%s.dbg' && %s --strip-debug '%s.dbg' && %s -kf "
		       "'%s.dbg' && "
		       "%s --strip-all --remove-section=.gnu_debuglink --add-section "
		       ".gnu_debugdata='%s.dbg.xz' '%s' '%s'",
		       objcopy, original, mini, objcopy, mini, xz, mini, objcopy, mini, original,
		       mini) == 0);
	f = load(mini, NULL);
	check_against_nm(original, f.module, "", 1);
	EXPECT_STR(name_of(f.module, original, address_of(original, "static_function")),
		   "static_function");
	symbols_free(f.symbols);
}

TEST(replaced_file_is_not_believed)
{
	const char *path = program("symprog-pie");
	struct symbols *symbols = NULL;
	struct module *module = NULL;
	struct module_ref ref = {.path = path};

	SKIP_IF(!path, "no test programs");
	ASSERT(build_id_read(path, &ref.build_id, NULL) == 0);
	ASSERT(symbols_new(NULL, &symbols) == 0);
	EXPECT_INT(symbols_module(symbols, &ref, &module), 0);
	EXPECT(module_status(module) == NULL);
	ref.build_id.bytes[3] ^= 1;
	EXPECT_INT(symbols_module(symbols, &ref, &module), 0);
	ASSERT(module_status(module) != NULL);
	EXPECT(strstr(module_status(module), "replaced") != NULL);
	EXPECT_INT(module_symbol_count(module), 0);
	symbols_free(symbols);
}

TEST(deleted_file_of_a_process_is_found)
{
	const char *path = program("symprog-pie");
	char copy[4096];
	struct symbols *symbols = NULL;
	struct module *module = NULL;
	struct module_ref ref = {.path = copy, .pid = getpid()};
	struct file_map map = {0};

	SKIP_IF(!path, "no test programs");
	SKIP_IF(geteuid() != 0, "needs root to open /proc/PID/map_files");
	snprintf(copy, sizeof(copy), "%s/deleted", tap_dir());
	ASSERT(tap_shell("cp '%s' '%s'", path, copy) == 0);
	ASSERT(file_map_open(copy, &map, NULL) == 0);
	ASSERT(unlink(copy) == 0);
	ASSERT(symbols_new(NULL, &symbols) == 0);
	EXPECT_INT(symbols_module(symbols, &ref, &module), 0);
	SKIP_IF(module_status(module) && strstr(module_status(module), "Operation not permitted"),
		"map_files is not allowed here");
	EXPECT(module_status(module) == NULL);
	EXPECT(module_symbol_count(module) > 10);
	symbols_free(symbols);
	file_map_close(&map);
}

/* Takes the section headers away: .dynsym must be found through PT_DYNAMIC. */
TEST(no_section_headers)
{
	char cut[4096], *data = NULL;
	size_t size;
	Elf64_Ehdr header;
	struct fixture f;

	ASSERT(file_read("/lib64/ld-linux-x86-64.so.2", 1u << 30, &data, &size, NULL) == 0 ||
	       file_read("/lib/ld-linux-aarch64.so.1", 1u << 30, &data, &size, NULL) == 0);
	memcpy(&header, data, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(data, &header, sizeof(header));
	snprintf(cut, sizeof(cut), "%s/no-sections", tap_dir());
	ASSERT(file_write_atomic(cut, data, size, 0600, NULL) == 0);
	free(data);
	f = load(cut, NULL);
	EXPECT(module_status(f.module) == NULL);
	EXPECT(module_symbol_count(f.module) > 5);
	check_plt(cut, (const char *const[]){"_dl_mcount", NULL});
	symbols_free(f.symbols);
}

TEST(damaged_files_are_survived)
{
	const char *path = program("symprog-pie");
	char *data = NULL, *copy;
	size_t size;
	uint64_t state = 42;

	SKIP_IF(!path, "no test programs");
	ASSERT(file_read(path, 1u << 30, &data, &size, NULL) == 0);
	copy = malloc(size);
	ASSERT(copy != NULL);
	for (int round = 0; round < 600; round++) {
		struct symbols *symbols = NULL;
		struct module *module = NULL;
		struct module_ref ref = {.kind = MODULE_VDSO, .image = copy, .image_size = size};
		struct symbol symbol;

		memcpy(copy, data, size);
		for (int i = 0; i < 12; i++) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
			/* Half of the damage goes into the headers: program headers, then section
			 * headers. */
			size_t at = i % 2 ? (size_t)(state >> 33) % 800
					  : size - 1 - (size_t)(state >> 33) % 2400;
			copy[at] = (char)(state >> 25);
		}
		if (round % 5 == 0)
			ref.image_size = (size_t)(state >> 30) % size;
		ASSERT(symbols_new(NULL, &symbols) == 0);
		ASSERT(symbols_module(symbols, &ref, &module) == 0);
		for (uint64_t offset = 0; offset < size; offset += 97)
			(void)module_lookup(module, offset, &symbol);
		symbols_free(symbols);
	}
	EXPECT(true);
	free(copy);
	free(data);
}

static void check_real(const char *name, const char *options)
{
	const char *path = tap_data(name);
	struct fixture f;

	if (!path)
		return;
	f = load(path, NULL);
	check_against_nm(path, f.module, options, 1);
	symbols_free(f.symbols);
}

TEST(real_files_agree_with_nm)
{
	static const char *const files[] = {
		"sampling/elf/symbolic/crash",
		"sampling/elf/framehop/x86_64/libpthread-2.19.so",
		"sampling/elf/framehop/x86_64/nightly-libsoftokn3.so",
		"sampling/elf/framehop/aarch64/libpthread-2.31.so",
		"sampling/elf/framehop/aarch64/vdso.so",
		"sampling/elf/samply/simple-example/regular-debuglink/main",
		"sampling/elf/samply/simple-example/with-dwo/main",
		"sampling/elf/otel/inline-compressed-dwarf-zstd",
		"sampling/autofdo/vaddr_offset_conversion_test.elf",
		"sampling/autofdo/binary_with_executable_first_loadable_segment.bin",
		"sampling/autofdo/dwarf2_dwarf5.bin",
		"sampling/simpleperf/simpleperf_runtest_two_functions_arm64",
	};

	SKIP_IF(!tap_data(files[0]), "no test data");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		check_real(files[i], "");
}

TEST(real_files_without_symtab)
{
	const char *
		mini = tap_data("sampling/simpleperf/elf_with_mini_debug_info"),
	       *plain = tap_data("sampling/simpleperf/elf_plain"),
	       *ls = tap_data("sampling/elf/samply/ls-linux/ls"),
	       *ls_debug = tap_data(
		       "sampling/elf/samply/ls-linux/260a3e6e46db57abf718f6a3562c6eedccf269.debug");
	struct fixture f;

	SKIP_IF(!mini || !plain || !ls || !ls_debug, "no test data");
	f = load(mini, NULL);
	EXPECT_STR(name_of(f.module, mini, address_of(plain, "main")), "main");
	symbols_free(f.symbols);
	/* ls carries minidebuginfo; its debug file says the same. */
	f = load(ls, NULL);
	EXPECT_INT(module_symbol_count(f.module) > 200, 1);
	symbols_free(f.symbols);
	f = load(tap_data("sampling/elf/symbolic/dynsyms_only"), NULL);
	EXPECT_INT(module_symbol_count(f.module), 6);
	symbols_free(f.symbols);
	f = load(tap_data("sampling/elf/malformed_elf"), NULL);
	EXPECT(strstr(module_status(f.module), "not an ELF file") != NULL);
	symbols_free(f.symbols);
}

TEST(large_binary_agrees_with_nm)
{
	static const char *const candidates[] = {"/usr/lib/llvm-14/lib/libLLVM-14.so.1",
						 "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
						 "/usr/lib/aarch64-linux-gnu/libstdc++.so.6", NULL};
	const char *path = NULL;
	struct fixture f;

	for (size_t i = 0; candidates[i] && !path; i++)
		if (access(candidates[i], R_OK) == 0)
			path = candidates[i];
	SKIP_IF(!path, "no large library is installed");
	f = load(path, NULL);
	EXPECT(module_symbol_count(f.module) > 2000);
	check_against_nm(path, f.module, "-D", 101);
	symbols_free(f.symbols);
}
