/* Unwind tables against readelf's reading of the same bytes, row by row, and steps through stacks
 * made by hand. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "harness/tap.h"
#include "symbols/symbols.h"
#include "symbols/unwind-internal.h"
#include "symbols/x86-length.h"

#define COLUMNS_MAX 64

static struct unwind_table *load(const char *path)
{
	struct module_ref ref = {.kind = MODULE_ELF, .path = path};
	struct unwind_table *table = NULL;
	struct symbols *symbols;
	struct err err = {0};

	if (symbols_new(NULL, &symbols) < 0)
		return NULL;
	if (unwind_table_load(symbols, &ref, &table, &err) < 0)
		printf("# %s: %s\n", path, err.text);
	symbols_free(symbols);
	return table;
}

struct compare {
	const struct unwind_table *table;
	const char *columns[COLUMNS_MAX];
	char header[1024];
	size_t ncolumns;
	unsigned long long start, end; /* of the function */
	unsigned long long row;        /* of the last line */
	char cfa[64], ra[32], fp[32], bx[32];
	bool pending, arm;
	size_t rows, different, unknown;
};

static const char *const x86_names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static bool same_cfa(const struct compare *c, const struct unwind_rule *rule)
{
	char text[64], reg[8];

	if (strcmp(c->cfa, "exp") == 0)
		return rule->cfa != UNWIND_CFA_REG;
	if (c->arm)
		snprintf(reg, sizeof(reg), rule->cfa_reg == 31 ? "sp" : "x%d", rule->cfa_reg);
	else
		snprintf(reg, sizeof(reg), "%s", x86_names[rule->cfa_reg & 15]);
	snprintf(text, sizeof(text), "%s%+d", reg, rule->cfa_offset);
	return rule->cfa == UNWIND_CFA_REG && strcmp(text, c->cfa) == 0;
}

static bool same_place(const struct unwind_place *place, const char *want)
{
	char text[32];

	if (want[0] == '\0' || strcmp(want, "u") == 0 || strcmp(want, "s") == 0)
		return place->kind == UNWIND_SAME || place->kind == UNWIND_UNDEFINED;
	if (want[0] == 'r') /* "r5 (rdi)" */
		return place->kind == UNWIND_IN_REG && place->base == atoi(want + 1);
	if (strcmp(want, "vexp") == 0)
		return place->kind == UNWIND_UNKNOWN;
	if (strcmp(want, "exp") == 0)
		return place->kind == UNWIND_AT_REG || place->kind == UNWIND_UNKNOWN;
	snprintf(text, sizeof(text), "c%+d", place->offset);
	return place->kind == UNWIND_AT_CFA && strcmp(text, want) == 0;
}

static void check_row(struct compare *c, unsigned long long end)
{
	const struct unwind_rule *first, *last;

	if (!c->pending || c->row >= end)
		return;
	c->pending = false;
	first = unwind_table_find(c->table, c->row);
	last = unwind_table_find(c->table, end - 1);
	c->rows++;
	if (first && first->cfa == UNWIND_CFA_UNKNOWN)
		c->unknown++;
	if (first && first == last && same_cfa(c, first) && same_place(&first->ra, c->ra) &&
	    same_place(&first->fp, c->fp) && same_place(&first->bx, c->bx))
		return;
	if (c->different++ < 5)
		printf("# %#llx-%#llx: %s ra %s fp %s bx %s%s\n", c->row, end, c->cfa, c->ra, c->fp,
		       c->bx, first ? "" : ": no row");
}

static void take_header(struct compare *c, const char *line)
{
	char *save = NULL;

	snprintf(c->header, sizeof(c->header), "%s", line);
	c->ncolumns = 0;
	for (char *word = strtok_r(c->header, " \n", &save); word && c->ncolumns < COLUMNS_MAX;
	     word = strtok_r(NULL, " \n", &save))
		c->columns[c->ncolumns++] = word;
}

static void take_row(struct compare *c, char *line)
{
	char *save = NULL;
	size_t i = 1;

	c->row = strtoull(strtok_r(line, " \n", &save), NULL, 16);
	c->pending = true;
	c->cfa[0] = c->ra[0] = c->fp[0] = c->bx[0] = '\0';
	for (char *word; (word = strtok_r(NULL, " \n", &save)) && i < c->ncolumns; i++) {
		const char *name;

		while (word && word[0] == '(')
			word = strtok_r(NULL, " \n", &save);
		if (!word)
			break;
		name = c->columns[i];
		if (strcmp(name, "CFA") == 0)
			snprintf(c->cfa, sizeof(c->cfa), "%s", word);
		else if (strcmp(name, "ra") == 0)
			snprintf(c->ra, sizeof(c->ra), "%s", word);
		else if (strcmp(name, c->arm ? "x29" : "rbp") == 0)
			snprintf(c->fp, sizeof(c->fp), "%s", word);
		else if (strcmp(name, c->arm ? "x19" : "rbx") == 0)
			snprintf(c->bx, sizeof(c->bx), "%s", word);
	}
}

static void take_line(struct compare *c, char *line)
{
	const char *pc = strstr(line, " FDE ") ? strstr(line, "pc=") : NULL;
	unsigned long long row;

	if (pc || strstr(line, " CIE ")) {
		check_row(c, c->end);
		c->pending = false;
		c->end = 0;
		if (pc)
			(void)sscanf(pc, "pc=%llx..%llx", &c->start, &c->end);
	} else if (strstr(line, "   LOC ")) {
		take_header(c, line);
	} else if (c->end && line[0] != '\n' && line[0] != ' ' &&
		   sscanf(line, "%16llx ", &row) == 1 && line[16] == ' ') {
		check_row(c, row);
		take_row(c, line);
	}
}

static void compare_with_readelf(const char *path, const char *section)
{
	struct compare c = {0};
	char command[512], line[4096];
	struct unwind_table *table = load(path);
	FILE *pipe;

	ASSERT(table);
	c.table = table;
	c.arm = unwind_table_arch(table) == UNWIND_ARM64;
	snprintf(command, sizeof(command), "readelf --wide --debug-dump=%s %s 2>/dev/null", section,
		 path);
	pipe = popen(command, "r");
	if (EXPECT(pipe != NULL)) {
		while (fgets(line, sizeof(line), pipe))
			take_line(&c, line);
		check_row(&c, c.end);
		pclose(pipe);
	}
	printf("# %s: %zu rows, %zu different, %zu unknown expressions\n", path, c.rows,
	       c.different, c.unknown);
	EXPECT(c.rows > 0);
	EXPECT_INT(c.different, 0);
	EXPECT(c.unknown * 1000 <= c.rows);
	unwind_table_free(table);
}

/* Searching in .eh_frame gives the rules of the compiled rows. */
static void compare_search(const char *path)
{
	struct module_ref ref = {.kind = MODULE_ELF, .path = path};
	struct unwind_table *rows = load(path), *search = NULL;
	struct symbols *symbols;
	size_t count, different = 0;
	uint64_t base;
	const struct unwind_row *row;

	ASSERT(rows && symbols_new(NULL, &symbols) == 0);
	EXPECT_INT(unwind_table_open(symbols, &ref, &search, NULL), 0);
	row = unwind_table_rows(rows, &count, &base);
	for (size_t i = 0; i + 1 < count; i++) {
		uint64_t ends[] = {base + row[i].pc, base + row[i + 1].pc - 1};

		for (int end = 0; end < 2; end++) {
			const struct unwind_rule *want = unwind_table_find(rows, ends[end]);
			struct unwind_rule have;
			bool found = unwind_table_rule(search, ends[end], &have) &&
				     !(have.flags & UNWIND_GUESSED);

			if (found != !!want || (found && memcmp(want, &have, sizeof(have)) != 0))
				if (different++ < 5)
					printf("# %s: %#llx\n", path,
					       (unsigned long long)ends[end]);
		}
	}
	printf("# %s: %zu rows, %zu different\n", path, count, different);
	EXPECT(count > 0);
	EXPECT_INT(different, 0);
	EXPECT(!unwind_table_rule(search, 0, &(struct unwind_rule){0}));
	EXPECT(!unwind_table_rule(search, UINT64_MAX, &(struct unwind_rule){0}));
	unwind_table_free(rows);
	unwind_table_free(search);
	symbols_free(symbols);
}

/* What is read from the code of described functions against their description: the stack's height,
 * where rbp and rbx are. */
static void compare_code(const char *path)
{
	struct elf_file elf;
	struct unwind_table *rows = load(path);
	struct unwind_code *code = NULL;
	size_t count, asked = 0, none = 0, other = 0;
	const struct unwind_row *row;
	uint64_t base;

	ASSERT(rows && elf_open(path, &elf, NULL) == 0);
	EXPECT_INT(unwind_code_new(&elf, &code), 0);
	elf_close(&elf);
	row = unwind_table_rows(rows, &count, &base);
	for (size_t i = 0; code && i < count; i++) {
		const struct unwind_rule *want = unwind_table_find(rows, base + row[i].pc);
		struct unwind_rule have;

		if (!want || want->cfa != UNWIND_CFA_REG || want->flags & UNWIND_SIGNAL ||
		    want->ra.kind != UNWIND_AT_CFA)
			continue;
		asked++;
		if (!unwind_code_rule(code, base + row[i].pc, &have)) {
			none++;
		} else if (have.cfa_reg != want->cfa_reg || have.cfa_offset != want->cfa_offset) {
			if (other++ < 5)
				printf("# %s: %#llx: r%u%+d bp %d bx %d, want r%u%+d bp %d bx %d\n",
				       path, (unsigned long long)(base + row[i].pc), have.cfa_reg,
				       have.cfa_offset, have.fp.offset, have.bx.offset,
				       want->cfa_reg, want->cfa_offset, want->fp.offset,
				       want->bx.offset);
		}
	}
	printf("# %s: %zu rows, %zu not read from the code, %zu otherwise\n", path, asked, none,
	       other);
	/* Stripped: parts of functions that lie apart begin where nothing leads to. */
	EXPECT(asked > 100 && other * 20 <= asked && (none + other) * 5 <= asked);
	unwind_code_free(code);
	unwind_table_free(rows);
}

TEST(code_tells_what_its_description_tells)
{
#if !defined(__x86_64__)
	SKIP("the code is that of x86-64");
#endif
	compare_code("/lib/x86_64-linux-gnu/libc.so.6");
	compare_code("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	compare_code("/proc/self/exe");
}

/* Lengths of instructions of every shape: prefixes, maps, SIB, displacements, immediates, VEX,
 * EVEX. */
TEST(instructions_have_their_lengths)
{
	static const struct {
		uint8_t length, bytes[X86_LENGTH_MAX];
	} cases[] = {
		{1, {0x55}},
		{2, {0x41, 0x57}},
		{3, {0x48, 0x89, 0xe5}},
		{4, {0x48, 0x83, 0xec, 0x18}},
		{7, {0x48, 0x81, 0xec, 0xd8, 3, 0, 0}},
		{8, {0x48, 0x8b, 0x84, 0x24, 0x18, 4, 0, 0}},
		{9, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}},
		{5, {0xe8, 1, 2, 3, 4}},
		{6, {0x0f, 0x8e, 1, 2, 3, 4}},
		{10, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}},
		{5, {0xb8, 1, 2, 3, 4}},
		{4, {0x66, 0xb8, 1, 2}},
		{7, {0x48, 0x8d, 0x05, 1, 2, 3, 4}},
		{8, {0x48, 0x8d, 0x34, 0xc5, 0, 0, 0, 0}},
		{3, {0xf6, 0xc1, 1}},
		{2, {0xf6, 0xd9}},
		{6, {0xf7, 0xc1, 1, 2, 3, 4}},
		{4, {0xf3, 0x0f, 0x1e, 0xfa}},
		{5, {0x66, 0x0f, 0x38, 0x00, 0xc1}},
		{6, {0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8}},
		{4, {0xc5, 0xf8, 0x28, 0xc1}},
		{3, {0xc5, 0xf8, 0x77}},
		{6, {0xc4, 0xe3, 0x7d, 0x39, 0xc1, 1}},
		{6, {0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1}},
		{10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}}, /* two prefixes */
		{3, {0xc2, 8, 0}},
		{4, {0xc8, 8, 0, 0}},
		{9, {0xa1, 1, 2, 3, 4, 5, 6, 7, 8}},
	};
	struct x86_instruction in;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		EXPECT_INT(x86_decode(cases[i].bytes, X86_LENGTH_MAX, &in), 0);
		if (!EXPECT_INT(in.length, cases[i].length))
			printf("# case %zu\n", i);
		EXPECT_INT(x86_decode(cases[i].bytes, cases[i].length - 1u, &in), -EBADMSG);
	}
	EXPECT_INT(x86_decode((const uint8_t[]){0x06}, 1, &in), -EBADMSG);
	EXPECT_INT(x86_decode(NULL, 0, &in), -EBADMSG);
}

TEST(searches_agree_with_rows)
{
	compare_search("/lib/x86_64-linux-gnu/libc.so.6");
	compare_search("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	compare_search("/proc/self/exe");
}

TEST(tables_of_this_system_agree_with_readelf)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",      "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/lib64/ld-linux-x86-64.so.2",          "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/aarch64-linux-gnu/libc.so.6", "/usr/aarch64-linux-gnu/lib/libc.so.6"};
	const char *extra = getenv("CULPRIT_TEST_UNWIND");
	char self[4096] = {0};

	SKIP_IF(system("readelf --version >/dev/null 2>&1") != 0, "no readelf");
	ASSERT(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	compare_with_readelf(self, "frames-interp");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (access(paths[i], R_OK) == 0)
			compare_with_readelf(paths[i], "frames-interp");
	if (extra)
		compare_with_readelf(extra, "frames-interp");
}

TEST(tables_of_other_systems_agree_with_readelf)
{
	static const char *const names[] = {
		"x86_64/libpthread-2.19.so",     "x86_64/libfontconfig.so.1",
		"x86_64/nightly-libsoftokn3.so", "aarch64/ld-2.31.so",
		"aarch64/libpthread-2.31.so",    "aarch64/vdso.so"};
	char name[128];

	SKIP_IF(!tap_data_dir(), "no test data");
	SKIP_IF(system("readelf --version >/dev/null 2>&1") != 0, "no readelf");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(name, sizeof(name), "sampling/elf/framehop/%s", names[i]);
		SKIP_IF(!tap_data(name), "%s is not there", name);
		compare_with_readelf(tap_data(name), "frames-interp");
	}
}

TEST(other_machines_are_refused)
{
	const char *path = tap_data("sampling/elf/framehop/arm/release-libmozglue.so");
	struct module_ref ref = {.kind = MODULE_ELF, .path = path};
	struct unwind_table *table = NULL;
	struct symbols *symbols;

	SKIP_IF(!path, "no test data");
	ASSERT(symbols_new(NULL, &symbols) == 0);
	EXPECT_INT(unwind_table_load(symbols, &ref, &table, NULL), -ENOTSUP);
	EXPECT(!table);
	symbols_free(symbols);
}

/* The signal frame's rule is told by __restore_rt, which has no dynamic symbol: any row will do. */
TEST(libc_has_a_signal_frame_and_plt_rules)
{
	struct unwind_table *table = load("/lib/x86_64-linux-gnu/libc.so.6");
	const struct unwind_rule *rules;
	bool signal = false, plt = false, end = false;
	size_t count;

	SKIP_IF(!table, "no libc of x86-64");
	rules = unwind_table_rules(table, &count);
	for (size_t i = 1; i < count; i++) {
		signal |= rules[i].flags & UNWIND_SIGNAL && rules[i].cfa == UNWIND_CFA_DEREF &&
			  rules[i].cfa_offset == 160 && rules[i].ra.kind == UNWIND_AT_REG &&
			  rules[i].ra.offset == 168;
		plt |= rules[i].cfa == UNWIND_CFA_PLT && rules[i].cfa_offset == 8;
		end |= rules[i].ra.kind == UNWIND_UNDEFINED;
	}
	EXPECT(signal);
	EXPECT(plt);
	EXPECT(end);
	unwind_table_free(table);
}

static struct unwind_memory stack_of(const uint64_t *words, size_t count, uint64_t start)
{
	return (struct unwind_memory){
		.start = start, .data = (const uint8_t *)words, .size = count * 8};
}

TEST(a_step_restores_what_the_rule_says)
{
	static const uint64_t words[] = {1, 2, 3, 0x7000, 0x401234, 6};
	struct unwind_memory memory = stack_of(words, 6, 0x1000);
	struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
				   .cfa_reg = UNWIND_X86_SP,
				   .cfa_offset = 40,
				   .ra = {.kind = UNWIND_AT_CFA, .offset = -8},
				   .fp = {.kind = UNWIND_AT_CFA, .offset = -16}};
	struct unwind_regs regs = {.ip = 0x400000,
				   .known = 1u << UNWIND_X86_SP | 1u << UNWIND_X86_BX};

	regs.r[UNWIND_X86_SP] = 0x1000;
	regs.r[UNWIND_X86_BX] = 77;
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, true), UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x401234);
	EXPECT_INT(regs.r[UNWIND_X86_SP], 0x1028);
	EXPECT_INT(regs.r[UNWIND_X86_BP], 0x7000);
	EXPECT_INT(regs.r[UNWIND_X86_BX], 77);
	/* The next return address lies behind the copied bytes. */
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, false), UNWIND_CUT);
	rule.ra.kind = UNWIND_UNDEFINED;
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, false), UNWIND_END);
}

/* Before its return a function has given up the room in which the frame pointer was saved. */
TEST(what_lies_below_the_stack_was_restored)
{
	static const uint64_t words[] = {0x401234, 1, 2, 3};
	struct unwind_memory memory = stack_of(words, 4, 0x1000);
	struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
				   .cfa_reg = UNWIND_X86_SP,
				   .cfa_offset = 8,
				   .ra = {.kind = UNWIND_AT_CFA, .offset = -8},
				   .fp = {.kind = UNWIND_AT_CFA, .offset = -16}};
	struct unwind_regs regs = {.known = 1u << UNWIND_X86_SP | 1u << UNWIND_X86_BP}, caller;

	regs.r[UNWIND_X86_SP] = 0x1000;
	regs.r[UNWIND_X86_BP] = 0x1010;
	caller = regs;
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, true), UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x401234);
	EXPECT(regs.known >> UNWIND_X86_BP & 1);
	EXPECT_INT(regs.r[UNWIND_X86_BP], 0x1010);
	/* One that has called still has its frame: the rule is damaged. */
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &caller, false), UNWIND_NEXT);
	EXPECT(!(caller.known >> UNWIND_X86_BP & 1));
}

TEST(a_step_never_goes_down_or_stays)
{
	static const uint64_t words[] = {0x401000, 0x401000, 0x401000, 0x401000};
	struct unwind_memory memory = stack_of(words, 4, 0x1000);
	struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
				   .cfa_reg = UNWIND_X86_SP,
				   .ra = {.kind = UNWIND_AT_CFA, .offset = 0}};
	struct unwind_regs regs = {.ip = 0x401000, .known = 1u << UNWIND_X86_SP};

	regs.r[UNWIND_X86_SP] = 0x1000;
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, false), UNWIND_LOST);
	rule.cfa_offset = -8;
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, false), UNWIND_LOST);
	rule.cfa_reg = UNWIND_X86_BX; /* not known */
	rule.cfa_offset = 8;
	EXPECT_INT(unwind_step(&rule, UNWIND_X86_64, &memory, &regs, false), UNWIND_LOST);
}

TEST(arm64_leaves_use_the_link_register_once_and_signatures_go)
{
	static const uint64_t words[] = {0x1020, 0x00a5000000402000, 0, 0};
	struct unwind_memory memory = stack_of(words, 4, 0x1000);
	struct unwind_rule leaf = {.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_ARM_SP};
	struct unwind_rule frame = {.cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_ARM_FP,
				    .cfa_offset = 16,
				    .ra = {.kind = UNWIND_AT_CFA, .offset = -8},
				    .fp = {.kind = UNWIND_AT_CFA, .offset = -16}};
	struct unwind_regs regs = {.ip = 0x400000, .known = UINT32_MAX};

	regs.r[UNWIND_ARM_SP] = regs.r[UNWIND_ARM_FP] = 0x1000;
	regs.r[UNWIND_ARM_LR] = 0x003f000000401000;
	EXPECT_INT(unwind_step(&leaf, UNWIND_ARM64, &memory, &regs, true), UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x401000);
	EXPECT_INT(unwind_step(&leaf, UNWIND_ARM64, &memory, &regs, false), UNWIND_LOST);
	EXPECT_INT(unwind_step(&frame, UNWIND_ARM64, &memory, &regs, false), UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x402000);
	EXPECT_INT(regs.r[UNWIND_ARM_FP], 0x1020);
}

TEST(signal_frames_give_back_all_registers)
{
	uint64_t words[80] = {0};
	struct unwind_memory memory = stack_of(words, 80, 0x1000);
	struct unwind_regs regs = {.ip = 0x400000, .known = 1u << UNWIND_X86_SP};

	regs.r[UNWIND_X86_SP] = 0x1000;
	words[5 + 2] = 10;       /* r10 */
	words[5 + 10] = 6;       /* rbp */
	words[160 / 8] = 0x8000; /* rsp */
	words[168 / 8] = 0x401000;
	EXPECT_INT(unwind_step(&unwind_signal_rule, UNWIND_X86_64, &memory, &regs, false),
		   UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x401000);
	EXPECT_INT(regs.r[10], 10);
	EXPECT_INT(regs.r[UNWIND_X86_BP], 6);
	EXPECT_INT(regs.r[UNWIND_X86_SP], 0x8000);

	regs = (struct unwind_regs){.ip = 0x400000, .known = 1u << UNWIND_ARM_SP};
	regs.r[UNWIND_ARM_SP] = 0x1000;
	words[312 / 8 + 29] = 0x1100;
	words[560 / 8] = 0x9000;
	words[568 / 8] = 0x402000;
	EXPECT_INT(unwind_step(&unwind_signal_rule, UNWIND_ARM64, &memory, &regs, false),
		   UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x402000);
	EXPECT_INT(regs.r[UNWIND_ARM_FP], 0x1100);
	EXPECT_INT(regs.r[UNWIND_ARM_SP], 0x9000);
}

TEST(frame_pointers_end_at_zero_and_refuse_nonsense)
{
	static const uint64_t words[] = {0x1010, 0x401000, 0, 0x402000, 0xdead0001, 1};
	struct unwind_memory memory = stack_of(words, 6, 0x1000);
	struct unwind_regs regs = {.known = 1u << UNWIND_X86_SP | 1u << UNWIND_X86_BP};

	regs.r[UNWIND_X86_SP] = regs.r[UNWIND_X86_BP] = 0x1000;
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x401000);
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_NEXT);
	EXPECT_INT(regs.ip, 0x402000);
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_END);
	regs.r[UNWIND_X86_BP] = 0x1000; /* below the stack pointer */
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_LOST);
	regs.r[UNWIND_X86_BP] = 0x1021;
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_LOST);
	regs.r[UNWIND_X86_BP] = 0x2000;
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_CUT);
	regs.r[UNWIND_X86_BP] = UINT64_MAX - 7;
	EXPECT_INT(unwind_step_fp(UNWIND_X86_64, &memory, &regs), UNWIND_LOST);
}
