#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/file.h"
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
	struct module *one =
		module_of(symbols, (struct module_ref){.path = "/nonexistent/lib.so (deleted)"});
	struct module *two = module_of(symbols, (struct module_ref){.path = "/nonexistent/lib.so"});

	EXPECT(one == two);
	EXPECT_STR(module_status(one), "/nonexistent/lib.so: No such file or directory");
	EXPECT_STR(name_at(one, 0), "?");
	EXPECT_INT(module_file_to_vaddr(one, 0x1234), 0x1234);
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
