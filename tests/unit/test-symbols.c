#include <dlfcn.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parallel.h"
#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "symbols/kallsyms.h"
#include "symbols/symbols.h"

static struct symbols *symbols_make(const char *root)
{
	struct symbols_options options = {.root = root};
	struct symbols *symbols = NULL;

	EXPECT_INT(symbols_new(&options, &symbols), 0);
	return symbols;
}

static struct module *module_of(struct symbols *symbols, struct module_ref ref)
{
	struct module *module = NULL;

	EXPECT_INT(symbols_module(symbols, &ref, &module), 0);
	return module;
}

static struct module *text_module(struct symbols *symbols, enum module_kind kind, const char *text)
{
	return module_of(symbols, (struct module_ref){
					  .kind = kind, .image = text, .image_size = strlen(text)});
}

/* The name at the address, "?" when nobody has it. */
static const char *name_at(const struct module *module, uint64_t address)
{
	struct symbol symbol;

	return module_lookup(module, address, &symbol) ? symbol.name : "?";
}

static const char kallsyms_text[] = "0000000000000000 A fixed_percpu_data\n"
				    "ffffffff81000000 T _text\n"
				    "ffffffff81000000 T _stext\n"
				    "ffffffff81000100 t local_helper\n"
				    "ffffffff81000100 T __global_name\n"
				    "ffffffff81000200 W weak_one\n"
				    "ffffffff81000300 D data_one\n"
				    "ffffffff81000400 T last_text\n"
				    "not a line\n"
				    "ffffffffc0100000 t mod_second\t[nf_tables]\n"
				    "ffffffffc0000000 t mod_first\t[xfs]\n"
				    "ffffffffc0200000 t bpf_prog_1234_x\t[bpf]\n";

TEST(kallsyms_names_kernel_and_modules)
{
	struct symbols *symbols = symbols_make(NULL);
	struct module *kernel = text_module(symbols, MODULE_KERNEL, kallsyms_text);
	struct symbol symbol;

	EXPECT(module_status(kernel) == NULL);
	EXPECT_INT(module_bad_lines(kernel), 1);
	EXPECT_STR(name_at(kernel, 0xffffffff81000000), "_text");
	EXPECT_STR(name_at(kernel, 0xffffffff810000ff), "_text");
	EXPECT_STR(name_at(kernel, 0xffffffff81000100), "__global_name");
	EXPECT_STR(name_at(kernel, 0xffffffff810002ff), "weak_one");
	EXPECT_STR(name_at(kernel, 0xffffffff81000300), "?");
	EXPECT_STR(name_at(kernel, 0xffffffff81000000 - 1), "?");
	ASSERT(module_lookup(kernel, 0xffffffff81000410, &symbol));
	EXPECT_STR(symbol.name, "last_text");
	EXPECT(symbol.object == NULL);
	ASSERT(module_lookup(kernel, 0xffffffffc0000010, &symbol));
	EXPECT_STR(symbol.name, "mod_first");
	EXPECT_STR(symbol.object, "[xfs]");
	/* Modules lie far apart: the last symbol of one does not reach to the next. */
	EXPECT_STR(name_at(kernel, 0xffffffffc0010000), "?");
	ASSERT(module_lookup(kernel, 0xffffffffc0200010, &symbol));
	EXPECT_STR(symbol.object, "[bpf]");
	/* BPF programs are large, and end where their pack does. */
	EXPECT_STR(name_at(kernel, 0xffffffffc0208000), "bpf_prog_1234_x");
	EXPECT_STR(name_at(kernel, 0xffffffffc0400000), "?");
	symbols_free(symbols);
}

TEST(kallsyms_says_when_addresses_are_hidden)
{
	struct symbols *symbols = symbols_make(NULL);
	struct module *kernel = text_module(
		symbols, MODULE_KERNEL, "0000000000000000 T _text\n0000000000000000 t helper\n");

	EXPECT_STR(name_at(kernel, 0), "?");
	ASSERT(module_status(kernel) != NULL);
	EXPECT(strstr(module_status(kernel), "kernel.kptr_restrict") != NULL);
	symbols_free(symbols);
}

TEST(kallsyms_line_with_a_nul_is_bad)
{
	static const char text[] = "ffffffffc0000000 t f\t[x\0yz]\nffffffffc0000010 t "
				   "g\0h\nffffffffc0000020 t i\t[m]\n";
	struct symbols *symbols = symbols_make(NULL);
	struct module *kernel =
		module_of(symbols, (struct module_ref){.kind = MODULE_KERNEL,
						       .image = text,
						       .image_size = sizeof(text) - 1});

	EXPECT_INT(module_bad_lines(kernel), 2);
	EXPECT_INT(module_symbol_count(kernel), 1);
	EXPECT_STR(name_at(kernel, 0xffffffffc0000020), "i");
	symbols_free(symbols);
}

TEST(kallsyms_excerpt_answers_like_the_whole)
{
	static const uint64_t addresses[] = {0xffffffff81000210, 0xffffffff81000001,
					     0xffffffffc0000004, 0x10};
	struct symbols *symbols = symbols_make(NULL);
	struct str out = {0};
	struct module *whole, *part;
	uint64_t probe;

	EXPECT_INT(kallsyms_excerpt(kallsyms_text, strlen(kallsyms_text), addresses,
				    ARRAY_LEN(addresses), &out),
		   0);
	EXPECT_STR(str_text(&out), "ffffffff81000000 T _text\n"
				   "ffffffff81000000 T _stext\n"
				   "ffffffff81000100 N local_helper\n"
				   "ffffffff81000200 W weak_one\n"
				   "ffffffff81000300 N data_one\n"
				   "ffffffffc0000000 t mod_first\t[xfs]\n"
				   "ffffffffc0100000 N mod_second\t[nf_tables]\n");
	whole = text_module(symbols, MODULE_KERNEL, kallsyms_text);
	part = text_module(symbols, MODULE_KERNEL, str_text(&out));
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
		EXPECT_STR(name_at(part, addresses[i]), name_at(whole, addresses[i]));
	/* What the excerpt does not know it does not name. */
	for (probe = 0xffffffff81000000; probe < 0xffffffff81002000; probe += 0x40)
		if (strcmp(name_at(part, probe), "?") != 0)
			EXPECT_STR(name_at(part, probe), name_at(whole, probe));
	symbols_free(symbols);
	str_fini(&out);
}

/* Entries that share an address: what is no code does not decide how far a name reaches. */
TEST(kallsyms_excerpt_of_shared_addresses)
{
	static const char text[] = "ffffffffc0000000 t before\n"
				   "ffffffffc0002041 d data\n"
				   "ffffffffc0002041 t program\t[bpf]\n"
				   "ffffffffc0003000 d data\n"
				   "ffffffffc0003000 t other\n";
	static const uint64_t addresses[] = {0xffffffffc0000004, 0xffffffffc0002044};
	struct symbols *symbols = symbols_make(NULL);
	struct module *whole, *part;
	struct symbol a = {0}, b = {0};
	struct str out = {0};

	whole = text_module(symbols, MODULE_KERNEL, text);
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		str_clear(&out);
		EXPECT_INT(kallsyms_excerpt(text, strlen(text), &addresses[i], 1, &out), 0);
		part = text_module(symbols, MODULE_KERNEL, str_text(&out));
		ASSERT(module_lookup(whole, addresses[i], &a) &&
		       module_lookup(part, addresses[i], &b));
		EXPECT_INT(a.start, b.start);
		EXPECT_INT(a.size, b.size);
	}
	symbols_free(symbols);
	str_fini(&out);
}

TEST(perf_map_last_entry_wins)
{
	struct symbols *symbols = symbols_make(NULL);
	struct module *map = text_module(symbols, MODULE_PERF_MAP,
					 "1000 100 old function (with spaces)\n"
					 "0x1040 0x20 new one\n"
					 "2000 10 LazyCompile:~foo /a/b.js:1\r\n"
					 "\n"
					 "zzz 10 bad\n"
					 "3000\n"
					 "4000 0 empty\n"
					 "ffffffffffffffff 10 overflow\n"
					 "10 10\n");
	struct symbol symbol;

	EXPECT_INT(module_bad_lines(map), 5);
	EXPECT_STR(name_at(map, 0x1000), "old function (with spaces)");
	EXPECT_STR(name_at(map, 0x1040), "new one");
	EXPECT_STR(name_at(map, 0x105f), "new one");
	ASSERT(module_lookup(map, 0x1060, &symbol));
	EXPECT_STR(symbol.name, "old function (with spaces)");
	EXPECT_INT(symbol.start, 0x1000);
	EXPECT_INT(symbol.size, 0x100);
	EXPECT_STR(name_at(map, 0x1100), "?");
	EXPECT_STR(name_at(map, 0x2001), "LazyCompile:~foo /a/b.js:1");
	EXPECT_INT(module_symbol_count(map), 3);
	symbols_free(symbols);
}

TEST(own_functions_are_found_by_file_offset)
{
	struct symbols *symbols = symbols_make(NULL);
	struct module *libc;
	Dl_info info;
	void *address = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	struct symbol symbol;

	ASSERT(address && dladdr(address, &info));
	libc = module_of(symbols, (struct module_ref){.path = info.dli_fname});
	EXPECT(module_status(libc) == NULL);
	/* Text of libc is mapped with offset == address in every known build of it. */
	ASSERT(module_lookup(libc, (uint64_t)((char *)address - (char *)info.dli_fbase), &symbol));
	EXPECT_STR(symbol.name, "gnu_get_libc_version");
	EXPECT(module_of(symbols, (struct module_ref){.path = info.dli_fname, .pid = getpid()}) ==
	       libc);
	symbols_free(symbols);
}

TEST(vdso_of_this_machine)
{
	struct symbols *symbols = symbols_make(NULL);
	struct module *vdso = module_of(symbols, (struct module_ref){.kind = MODULE_VDSO});

	SKIP_IF(getauxval(AT_SYSINFO_EHDR) == 0, "this kernel gives no vdso");
	EXPECT(module_status(vdso) == NULL);
	EXPECT(module_symbol_count(vdso) > 0);
	symbols_free(symbols);
}

TEST(a_missing_file_says_so_once)
{
	struct symbols *symbols = symbols_make(NULL);
	struct module *one = module_of(symbols, (struct module_ref){.path = "/nonexistent/lib.so"});
	struct module *two = module_of(
		symbols, (struct module_ref){.path = "/nonexistent/lib.so", .pid = INT32_MAX});

	EXPECT(one == two);
	EXPECT_STR(module_status(one), "/nonexistent/lib.so: No such file or directory");
	EXPECT_STR(name_at(one, 0), "?");
	/* What has the name of a deleted file now may be anything. */
	one = module_of(symbols, (struct module_ref){.path = "/proc/self/exe (deleted)"});
	ASSERT(module_status(one) != NULL);
	EXPECT(strstr(module_status(one), "deleted or replaced") != NULL);
	one = module_of(symbols, (struct module_ref){.path = "//anon"});
	EXPECT(module_status(one) != NULL);
	symbols_free(symbols);
}

TEST(build_ids)
{
	static const uint8_t notes[] = {4, 0, 0,   0,   3,   0, 0,    0,    1, 0,
					0, 0, 'X', 0,   0,   0, 1,    2,    3, 0, /* another note */
					4, 0, 0,   0,   2,   0, 0,    0,    3, 0,
					0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0, 0};
	struct build_id id = {0}, padded = {.bytes = {0xab, 0xcd}, .size = 20};
	char hex[2 * BUILD_ID_MAX + 1];

	EXPECT_INT(build_id_from_notes(notes, sizeof(notes), &id), 0);
	build_id_hex(&id, hex);
	EXPECT_STR(hex, "abcd");
	EXPECT(build_id_equal(&id, &padded));
	EXPECT_INT(build_id_from_notes(notes, 20, &id), -ENOENT);
	EXPECT_INT(build_id_from_notes(notes, sizeof(notes) - 4, &id), -ENOENT);
	EXPECT_INT(build_id_parse("00FFa1", &id), 0);
	EXPECT_INT(id.size, 3);
	EXPECT_INT(id.bytes[2], 0xa1);
	EXPECT_INT(build_id_parse("abc", &id), -EINVAL);
	EXPECT_INT(build_id_parse("", &id), -EINVAL);
	EXPECT_INT(build_id_parse("zz", &id), -EINVAL);
}

static void expect_demangled(const char *raw, const char *want)
{
	char *have = demangle(raw);

	if (want)
		EXPECT_STR(have, want);
	else
		EXPECT(have == NULL);
	free(have);
}

TEST(demangle_knows_its_languages)
{
	expect_demangled("_ZN4base4TaskC2Ev", "base::Task::Task()");
	expect_demangled(
		"_ZNSt6vectorIiSaIiEE9push_backERKi@@GLIBCXX_3.4",
		"std::vector<int, std::allocator<int> >::push_back(int const&)@@GLIBCXX_3.4");
	expect_demangled("_ZNSo3putEc@plt", "std::ostream::put(char)@plt");
	expect_demangled("_ZN3foo3bar17h05af221e174051e9E", "foo::bar");
	expect_demangled("_RNvC6_123foo3bar", "123foo::bar");
	expect_demangled("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	expect_demangled("_D8demangle4testFZv", "demangle.test()");
	/* Not ours: left whole. */
	expect_demangled("$s4main3fooyyF", NULL);
	expect_demangled("main", NULL);
	expect_demangled("_start", NULL);
	expect_demangled("_Z", NULL);
	expect_demangled("_ZN4base4Task", NULL);
}

TEST(demangle_survives_bombs)
{
	struct str name = {0};

	str_puts(&name, "_Z1f");
	for (int i = 0; i < 4000; i++)
		str_putc(&name, 'P');
	str_putc(&name, 'i');
	free(demangle(str_text(&name)));
	str_clear(&name);
	/* Each argument doubles the one before. */
	str_puts(&name, "_Z1fSt4pairIiiES_IS_S_E");
	for (int i = 0; i < 34; i++)
		str_printf(&name, "S_IS%c_S%c_E", i < 10 ? '0' + i : 'A' + i - 10,
			   i < 10 ? '0' + i : 'A' + i - 10);
	free(demangle(str_text(&name)));
	str_clear(&name);
	str_puts(&name, "_R");
	for (int i = 0; i < 100000; i++)
		str_putc(&name, 'I');
	expect_demangled(str_text(&name), NULL);
	str_fini(&name);
}
/* libiberty's own cases. The installed library may be of another version than the cases: a
 * different answer is wrong only when it is not the library's own. */
static bool demangled_as_expected(const char *raw, const char *want, bool *ret_other_version)
{
	char *have = demangle(raw), *theirs = NULL;
	bool same = strcmp(have ? have : raw, want) == 0;

	if (!same) {
		theirs = cplus_demangle_v3(raw, DMGL_PARAMS | DMGL_ANSI);
		*ret_other_version = have && theirs ? strcmp(have, theirs) == 0 : have == theirs;
		if (!*ret_other_version)
			fprintf(stderr, "# %s\n#   have %.200s\n#   want %.200s\n", raw,
				have ? have : "(whole)", want);
	}
	free(theirs);
	free(have);
	return same;
}

TEST(demangle_agrees_with_the_expected_pairs)
{
	const char *path = tap_data("sampling/demangle/libiberty-demangle-expected");
	size_t size, n = 0, same = 0, other_version = 0, wrong = 0;
	char *text = NULL, *end, *lines[4];

	SKIP_IF(!path, "no test data");
	ASSERT(file_read(path, 1u << 24, &text, &size, NULL) == 0);
	for (char *at = text; (end = strchr(at, '\n')); at = end + 1) {
		bool other = false;

		*end = '\0';
		if (at[0] == '#')
			continue;
		lines[n++] = at;
		if (n < 3 || (n < 4 && strstr(lines[0], "--no-params")))
			continue;
		n = 0;
		if (strncmp(lines[1], "_Z", 2) != 0 || strstr(lines[0], "--is-v3") ||
		    strstr(lines[0], "--ret-") || strstr(lines[0], "java") ||
		    strstr(lines[0], "gnat"))
			continue;
		if (demangled_as_expected(lines[1], lines[2], &other))
			same++;
		else if (other)
			other_version++;
		else
			wrong++;
	}
	EXPECT(same > 150);
	EXPECT(other_version < same / 10);
	EXPECT_INT(wrong, 0);
	free(text);
}

/* A machine made of files. */
struct fake_root {
	char path[64];
};

static bool fake_file(const struct fake_root *root, const char *name, const void *data, size_t size)
{
	char path[512], *slash;

	snprintf(path, sizeof(path), "%s%s", root->path, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	if (dir_make(path, 0700, NULL) < 0)
		return false;
	*slash = '/';
	return file_write_atomic(path, data, size, 0600, NULL) == 0;
}

static bool fake_text(const struct fake_root *root, const char *name, const char *text)
{
	return fake_file(root, name, text, strlen(text));
}

static bool fake_make(struct fake_root *root)
{
	snprintf(root->path, sizeof(root->path), "%s/root-XXXXXX", tap_dir());
	return mkdtemp(root->path) != NULL;
}

TEST(perf_map_of_a_container)
{
	struct fake_root root;
	struct symbols *symbols;
	struct module *map;

	ASSERT(fake_make(&root));
	/* Outside the process is 4242, inside it is 7, and the map is in its own /tmp under that
	 * name. */
	EXPECT(fake_text(&root, "/proc/4242/status",
			 "Name:\tjava\nPid:\t4242\nNSpid:\t4242\t31\t7\nThreads:\t1\n"));
	EXPECT(fake_text(&root, "/proc/4242/root/tmp/perf-7.map",
			 "1000 10 Lcom/example/Inner;::run\n"));
	EXPECT(fake_text(&root, "/tmp/perf-4242.map", "1000 10 wrong\n"));
	EXPECT(fake_text(&root, "/tmp/perf-99.map", "2000 10 plain\n"));
	symbols = symbols_make(root.path);
	map = module_of(symbols, (struct module_ref){.kind = MODULE_PERF_MAP, .pid = 4242});
	EXPECT_STR(name_at(map, 0x1004), "Lcom/example/Inner;::run");
	map = module_of(symbols, (struct module_ref){.kind = MODULE_PERF_MAP, .pid = 99});
	EXPECT_STR(name_at(map, 0x2004), "plain");
	map = module_of(symbols, (struct module_ref){.kind = MODULE_PERF_MAP, .pid = 100});
	ASSERT(module_status(map) != NULL);
	EXPECT(strstr(module_status(map), "/tmp/perf-100.map") != NULL);
	symbols_free(symbols);
}

/* A jitdump put together: header, loads, a move, records to pass over, one that is cut. */
static void jit_u32(struct str *out, uint32_t value)
{
	str_append(out, &value, sizeof(value));
}

static void jit_u64(struct str *out, uint64_t value)
{
	str_append(out, &value, sizeof(value));
}

static void jit_record(struct str *out, uint32_t id, uint32_t body)
{
	jit_u32(out, id);
	jit_u32(out, 16 + body);
	jit_u64(out, 1);
}

static void jit_header(struct str *out)
{
	jit_u32(out, 0x4a695444);
	jit_u32(out, 1);
	jit_u32(out, 40);
	for (int i = 0; i < 7; i++)
		jit_u32(out, 0);
}

static void jit_load(struct str *out, uint64_t address, uint64_t size, uint64_t index,
		     const char *name)
{
	jit_record(out, 0, (uint32_t)(40 + strlen(name) + 1 + 4));
	jit_u64(out, 0);
	jit_u64(out, address);
	jit_u64(out, address);
	jit_u64(out, size);
	jit_u64(out, index);
	str_append(out, name, strlen(name) + 1);
	jit_u32(out, 0xcccccccc); /* code */
}

static void jit_move(struct str *out, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	jit_record(out, 1, 48);
	jit_u64(out, 0);
	jit_u64(out, from);
	jit_u64(out, from);
	jit_u64(out, to);
	jit_u64(out, size);
	jit_u64(out, index);
}

TEST(jitdump_loads_and_moves)
{
	struct symbols *symbols = symbols_make("");
	struct str dump = {0};
	struct module *map;

	jit_header(&dump);
	jit_load(&dump, 0x1000, 0x100, 1, "first");
	jit_load(&dump, 0x2000, 0x100, 2, "second one");
	jit_record(&dump, 2, 16);
	jit_u64(&dump, 0);
	jit_u64(&dump, 0);
	jit_load(&dump, 0x1080, 0x40, 3, "_ZN3abc3fooEv");
	jit_move(&dump, 0x2000, 0x3000, 0x80, 2);
	jit_move(&dump, 0x2000, 0x4000, 0x80, 99);
	jit_record(&dump, 0, 5000);
	map = module_of(symbols, (struct module_ref){.kind = MODULE_PERF_MAP,
						     .image = dump.data,
						     .image_size = dump.len});
	EXPECT_STR(name_at(map, 0x1000), "first");
	EXPECT_STR(name_at(map, 0x1080), "abc::foo()");
	EXPECT_STR(name_at(map, 0x10c0), "first");
	EXPECT_STR(name_at(map, 0x1100), "?");
	EXPECT_STR(name_at(map, 0x3000), "second one");
	EXPECT_STR(name_at(map, 0x3080), "?");
	EXPECT_INT(module_bad_lines(map), 2);
	str_fini(&dump);
	symbols_free(symbols);
}

TEST(jitdump_of_real_data)
{
	static const struct {
		const char *name;
		size_t symbols;
		uint64_t address;
		const char *function;
	} cases[] = {
		{"sampling/jit/jit-simple-julia.dump", 13, 0x7bea23b00010, "julia_include_0"},
		{"sampling/jit/jit-1560413.dump", 0, 0x7e1304b00010, "julia_include_0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *path = tap_data(cases[i].name);
		struct symbols *symbols;
		struct module *map;

		SKIP_IF(!path, "no test data");
		symbols = symbols_make("");
		map = module_of(
			symbols,
			(struct module_ref){.kind = MODULE_PERF_MAP, .pid = 1, .jitdump = path});
		EXPECT_STR(name_at(map, cases[i].address), cases[i].function);
		if (cases[i].symbols)
			EXPECT_INT(module_symbol_count(map), cases[i].symbols);
		EXPECT_INT(module_bad_lines(map), 0);
		symbols_free(symbols);
	}
}

TEST(jitdump_names)
{
	EXPECT(jitdump_is_path("/tmp/jit-12.dump"));
	EXPECT(jitdump_is_path("jit-1.dump"));
	EXPECT(!jitdump_is_path("/tmp/jit-.dump"));
	EXPECT(!jitdump_is_path("/tmp/jit-12.dump.so"));
	EXPECT(!jitdump_is_path("/tmp/jitted-12-1.so"));
}

TEST(perf_map_of_real_data)
{
	const char *path = tap_data("sampling/jit/perf-1.map");
	struct symbols *symbols;
	struct module *map;

	SKIP_IF(!path, "no test data");
	symbols = symbols_make(NULL);
	map = module_of(symbols, (struct module_ref){.kind = MODULE_PERF_MAP, .path = path});
	EXPECT(module_status(map) == NULL);
	EXPECT(strstr(name_at(map, 0x7FB06149E6A0 + 0x10), "SpanHelpers::IndexOf") != NULL);
	symbols_free(symbols);
}

TEST(kernel_names_the_sysctl_and_refuses_another_kernel)
{
	static const uint8_t notes[] = {4, 0, 0,   0,   2,   0, 0,    0,    3, 0,
					0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0, 0};
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 T _stext\n";
	static const struct {
		const char *level, *want;
	} cases[] = {
		{"2\n", "sysctl kernel.kptr_restrict=1"},
		{"1\n", "sysctl kernel.kptr_restrict=0"},
		{"0\n", "sysctl kernel.perf_event_paranoid=1"},
	};
	struct module_ref ref = {.kind = MODULE_KERNEL};
	struct fake_root root;
	struct symbols *symbols;
	struct module *kernel;

	ASSERT(fake_make(&root));
	EXPECT(fake_text(&root, "/proc/kallsyms", hidden));
	EXPECT(fake_text(&root, "/proc/sys/kernel/perf_event_paranoid", "2\n"));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		EXPECT(fake_text(&root, "/proc/sys/kernel/kptr_restrict", cases[i].level));
		symbols = symbols_make(root.path);
		kernel = module_of(symbols, ref);
		ASSERT(module_status(kernel) != NULL);
		if (!EXPECT(strstr(module_status(kernel), cases[i].want) != NULL))
			fprintf(stderr, "# %s\n", module_status(kernel));
		symbols_free(symbols);
	}
	EXPECT(fake_text(&root, "/proc/kallsyms", kallsyms_text));
	EXPECT(fake_file(&root, "/sys/kernel/notes", notes, sizeof(notes)));
	ASSERT(build_id_parse("abcd", &ref.build_id) == 0);
	symbols = symbols_make(root.path);
	EXPECT(module_status(module_of(symbols, ref)) == NULL);
	ASSERT(build_id_parse("abce", &ref.build_id) == 0);
	kernel = module_of(symbols, ref);
	ASSERT(module_status(kernel) != NULL);
	EXPECT(strstr(module_status(kernel), "not the recorded one") != NULL);
	symbols_free(symbols);
}

/* An ELF file of either class and byte order: one executable segment and section, three symbols. */
struct image {
	uint8_t bytes[1024];
	bool is64, big;
	size_t at;
};

static void put(struct image *image, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		image->bytes[image->at++] = (uint8_t)(value >> 8 * (image->big ? size - 1 - i : i));
}

static void put_word(struct image *image, uint64_t value)
{
	put(image, image->is64 ? 8 : 4, value);
}

static void put_section(struct image *image, uint32_t name, uint32_t type, uint64_t flags,
			uint64_t addr, uint64_t offset, uint64_t size, uint32_t link,
			uint64_t entsize)
{
	put(image, 4, name);
	put(image, 4, type);
	put_word(image, flags);
	put_word(image, addr);
	put_word(image, offset);
	put_word(image, size);
	put(image, 4, link);
	put(image, 4, 0);
	put_word(image, 1);
	put_word(image, entsize);
}

static void put_symbol(struct image *image, uint32_t name, uint8_t info, uint16_t shndx,
		       uint64_t value, uint64_t size)
{
	put(image, 4, name);
	if (image->is64) {
		put(image, 1, info);
		put(image, 1, 0);
		put(image, 2, shndx);
	}
	put_word(image, value);
	put_word(image, size);
	if (!image->is64) {
		put(image, 1, info);
		put(image, 1, 0);
		put(image, 2, shndx);
	}
}

static void make_image(struct image *image, bool is64, bool big)
{
	static const char names[] = "\0first\0second\0label";
	unsigned header = is64 ? 64 : 52, phsize = is64 ? 56 : 32, shsize = is64 ? 64 : 40,
		 symsize = is64 ? 24 : 16;
	unsigned symbols = header + phsize, strings = symbols + 4 * symsize,
		 sections = strings + 64;

	*image = (struct image){.is64 = is64, .big = big};
	memcpy(image->bytes, "\177ELF", 4);
	image->bytes[4] = is64 ? 2 : 1;
	image->bytes[5] = big ? 2 : 1;
	image->bytes[6] = 1;
	image->at = 16;
	put(image, 2, 2);
	put(image, 2, is64 ? 21 : 20); /* PowerPC */
	put(image, 4, 1);
	put_word(image, 0);
	put_word(image, header);
	put_word(image, sections);
	put(image, 4, 0);
	put(image, 2, header);
	put(image, 2, phsize);
	put(image, 2, 1);
	put(image, 2, shsize);
	put(image, 2, 4);
	put(image, 2, 0);
	put(image, 4, 1); /* PT_LOAD of 0x10001000 at offset 0, R X */
	if (is64)
		put(image, 4, 5);
	put_word(image, 0);
	put_word(image, 0x10001000);
	put_word(image, 0x10001000);
	put_word(image, sizeof(image->bytes));
	put_word(image, sizeof(image->bytes));
	if (!is64)
		put(image, 4, 5);
	put_word(image, 0x1000);
	put_symbol(image, 0, 0, 0, 0, 0);
	put_symbol(image, 1, 0x12, 1, 0x10001100, 0x10);
	put_symbol(image, 7, 0x02, 1, 0x10001120, 0x20);
	put_symbol(image, 14, 0x10, 1, 0x10001180, 0);
	memcpy(image->bytes + strings, names, sizeof(names));
	image->at = sections;
	put_section(image, 0, 0, 0, 0, 0, 0, 0, 0);
	put_section(image, 0, 1, 6, 0x10001100, 0x100, 0x100, 0, 0);
	put_section(image, 0, 2, 0, 0, symbols, 4 * symsize, 3, symsize);
	put_section(image, 0, 3, 0, 0, strings, sizeof(names), 0, 0);
}

TEST(elf_of_both_classes_and_byte_orders)
{
	for (int kind = 0; kind < 4; kind++) {
		struct symbols *symbols = symbols_make(NULL);
		struct image image;
		struct module *module;
		struct symbol symbol;

		make_image(&image, kind & 1, kind & 2);
		module = module_of(symbols, (struct module_ref){.kind = MODULE_VDSO,
								.image = image.bytes,
								.image_size = sizeof(image.bytes)});
		EXPECT(module_status(module) == NULL);
		ASSERT(module_lookup(module, 0x10f, &symbol));
		EXPECT_STR(symbol.name, "first");
		EXPECT_INT(symbol.start, 0x10001100);
		EXPECT_INT(symbol.size, 0x10);
		EXPECT_STR(name_at(module, 0x110), "?");
		EXPECT_STR(name_at(module, 0x120), "second");
		EXPECT_STR(name_at(module, 0x180), "label");
		EXPECT_STR(name_at(module, 0x1ff), "label"); /* the end of its section */
		EXPECT_STR(name_at(module, 0x200), "?");
		symbols_free(symbols);
	}
}

struct race {
	struct symbols *symbols;
	const char *text;
};

static int race_once(void *arg, size_t i)
{
	struct race *race = arg;
	struct module_ref ref = {
		.kind = MODULE_PERF_MAP, .image = race->text, .image_size = strlen(race->text)};
	struct module *module;
	struct symbol symbol;

	if (symbols_module(race->symbols, &ref, &module) < 0 ||
	    !module_lookup(module, 0x1000 + i % 64, &symbol) ||
	    strcmp(symbol.name, "base::Task::run(int)") != 0)
		return -EINVAL;
	return 0;
}

TEST(threads_share_modules_and_names)
{
	struct race race = {.symbols = symbols_make(NULL), .text = "1000 40 _ZN4base4Task3runEi\n"};

	EXPECT_INT(parallel_for(2000, 4, race_once, &race), 0);
	symbols_free(race.symbols);
}
