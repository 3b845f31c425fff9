/* Code of just-in-time compilers in time: addresses that are used again, moves, clocks, lines. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/jit-unwind.h"
#include "sample/perfdata.h"
#include "sample/session.h"
#include "symbols/jitdump.h"

#define TYPE (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_CALLCHAIN)
#define PID  77

static char dump_path[64], data_path[64];

static void name_files(void)
{
	snprintf(dump_path, sizeof(dump_path), "%s/jit-%d.dump", tap_dir(), PID);
	snprintf(data_path, sizeof(data_path), "%s/perf.data", tap_dir());
}

/* The builder's numbers, in a jitdump's records. */
static void dump_header(struct builder *b, uint64_t time, uint64_t flags)
{
	*b = (struct builder){0};
	put32(b, 0x4a695444), put32(b, 1), put32(b, 40), put32(b, 62), put32(b, 0), put32(b, PID);
	put64(b, time);
	put64(b, flags);
}

static void dump_record(struct builder *b, uint32_t id, uint64_t body, uint64_t time)
{
	put32(b, id);
	put32(b, (uint32_t)(16 + body));
	put64(b, time);
}

static void dump_load(struct builder *b, uint64_t time, uint64_t address, uint64_t size,
		      uint64_t index, const char *name)
{
	dump_record(b, 0, 40 + strlen(name) + 1 + size, time);
	put32(b, PID), put32(b, PID);
	put64(b, address), put64(b, address), put64(b, size), put64(b, index);
	put_text(b, name, strlen(name) + 1);
	put_text(b, "", size);
}

static void dump_move(struct builder *b, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		      uint64_t index)
{
	dump_record(b, 1, 48, time);
	put32(b, PID), put32(b, PID);
	put64(b, from), put64(b, from), put64(b, to), put64(b, size), put64(b, index);
}

static void dump_line(struct builder *b, uint64_t address, uint32_t line, const char *file)
{
	put64(b, address), put32(b, line), put32(b, 0);
	put_text(b, file, strlen(file) + 1);
}

/* Reuses 0x10000: first, then second; third moves away from 0x20000. times: by the dump's clock. */
static void put_dump(uint64_t header_time, uint64_t first, uint64_t flags)
{
	struct builder b;

	dump_header(&b, header_time, flags);
	dump_load(&b, first, 0x10000, 0x100, 1, "first");
	dump_load(&b, first + 10, 0x20000, 0x80, 3, "third");
	dump_record(&b, 2, 16 + 2 * 16 + 2 + 5, first + 90);
	put64(&b, 0x10000), put64(&b, 2);
	dump_line(&b, 0x10050, 8, "s.js"); /* out of order, and the text before it repeated */
	dump_line(&b, 0x10000, 7, "\xff");
	dump_load(&b, first + 100, 0x10000, 0x90, 2, "second");
	dump_move(&b, first + 150, 0x20000, 0x30000, 0x80, 3);
	EXPECT_INT(file_write_atomic(dump_path, b.bytes.data, b.bytes.len, 0600, NULL), 0);
	str_fini(&b.bytes);
}

/* A process that maps its dump at mapped; samples at base + 50, 120, 160, behind mprotect calls. */
static void put_recording(uint64_t mapped, uint64_t base, bool mono)
{
	struct builder b = {.monotonic = mono};

	file_begin(&b, TYPE);
	put_comm(&b, PID, PID, "node", false, 0);
	put_mmap(&b, REC_MISC_USER, PID, 0x10000, 0x1000, 0, "//anon", 1);
	put_mmap(&b, REC_MISC_USER, PID, 0x20000, 0x20000, 0, "//anon", 1);
	put_mmap(&b, REC_MISC_USER, PID, 0x900000, 0x1000, 0, dump_path, mapped);
	put_sample(&b, REC_MISC_USER, PID, PID, base + 50, 0x10010, NULL);
	put_sample(&b, REC_MISC_USER, PID, PID, base + 50, 0x20010, NULL);
	put_mmap(&b, REC_MISC_USER, PID, 0x10000, 0x1000, 0, "//anon", base + 110);
	put_sample(&b, REC_MISC_USER, PID, PID, base + 120, 0x10060, NULL);
	put_sample(&b, REC_MISC_USER, PID, PID, base + 160, 0x30010, NULL);
	/* Another object takes the place of all code. */
	put_mmap(&b, REC_MISC_USER, PID, 0x10000, 0x1000, 0, "/lib/other.so", base + 170);
	put_sample(&b, REC_MISC_USER, PID, PID, base + 180, 0x10010, NULL);
	file_end(&b);
	EXPECT_INT(file_write_atomic(data_path, b.bytes.data, b.bytes.len, 0600, NULL), 0);
	str_fini(&b.bytes);
}

struct log {
	struct symbols *symbols;
	struct str text;
};

static int log_sample(void *arg, const struct sample *sample)
{
	struct log *log = arg;
	const struct sample_frame *frame = &sample->frames[0];
	struct module_ref ref = {.kind = frame->dso->kind,
				 .path = frame->dso->path,
				 .pid = PID,
				 .jitdump = frame->dso->jitdump};
	struct inline_frame line;
	struct module *module;
	struct symbol symbol;

	if (frame->dso->kind == MODULE_ELF) {
		str_puts(&log->text, "elf ");
		return 0;
	}
	EXPECT_INT(symbols_module(log->symbols, &ref, &module), 0);
	str_printf(&log->text, "%s",
		   module_lookup(module, frame->address, &symbol) ? symbol.name : "?");
	if (module_inlines(module, frame->address, &line, 1) == 1)
		str_printf(&log->text, "@%s:%u", line.file, line.line);
	str_putc(&log->text, ' ');
	return 0;
}

static void expect_names(const char *want)
{
	const struct symbols_options options = {0};
	struct session *session;
	struct log log = {0};
	struct err err = {0};

	EXPECT_INT(symbols_new(&options, &log.symbols), 0);
	ASSERT(session_open(data_path, &session, &err) == 0);
	EXPECT_INT(session_run(session, log_sample, &log, &err), 0);
	EXPECT_STR(str_text(&log.text), want);
	str_fini(&log.text);
	session_close(session);
	symbols_free(log.symbols);
}

#define IN_TIME "first third second@s.js:8 third elf "

TEST(the_same_clock)
{
	name_files();
	put_dump(0, 1000000, 0);
	put_recording(0, 1000000, true);
	expect_names("first third second@s.js:8 third elf ");
}

/* The mapping's time stands beside the header's, or beside the first record's when the header has
 * another clock. */
TEST(another_clock_is_reconciled)
{
	name_files();
	put_dump(5000000000, 5000000000, 0);
	put_recording(1000000, 1000000, false);
	expect_names(IN_TIME);
	put_dump(1796044562377684, 5000000000, 0);
	expect_names(IN_TIME);
	/* Times of day in a recording with CLOCK_MONOTONIC. */
	put_dump(0, 1796044562377684000, 0);
	put_recording(1000000, 1000000, true);
	expect_names(IN_TIME);
}

/* Nothing relates the clocks: what was placed last has the name, whenever. */
TEST(an_unknown_clock)
{
	name_files();
	put_dump(0, 1000000, 0);
	put_recording(0, 1000000, false);
	expect_names("second third second third elf ");
	put_dump(0, 1000000, 1); /* cycles */
	put_recording(500, 1000000, false);
	expect_names("second third second third elf ");
}

TEST(cycles_by_the_recordings_conversion)
{
	struct builder b = {0};
	char *data;
	size_t size;

	name_files();
	/* ns = 600000 + (cycles * 2 >> 1) */
	put_dump(400000, 400000, 1);
	put_recording(0, 1000000, false);
	ASSERT(file_read(data_path, 1 << 20, &data, &size, NULL) == 0);
	str_append(&b.bytes, data, size);
	record_begin(&b, REC_TIME_CONV, 0);
	put64(&b, 1), put64(&b, 2), put64(&b, 600000);
	record_end(&b);
	file_end(&b);
	EXPECT_INT(file_write_atomic(data_path, b.bytes.data, b.bytes.len, 0600, NULL), 0);
	expect_names(IN_TIME);
	str_fini(&b.bytes);
	free(data);
}

/* V8 adds the size of an ELF header to the addresses of lines. */
TEST(shifted_lines)
{
	const struct jitdump_code *code;
	const struct jitdump_line *line;
	struct jitdump dump;
	struct builder b;

	dump_header(&b, 1, 0);
	dump_record(&b, 2, 16 + 2 * 16 + 2 + 5, 1);
	put64(&b, 0x1000), put64(&b, 2);
	dump_line(&b, 0x1040, 1, "v.js");
	dump_line(&b, 0x1050, 2, "\xff");
	dump_load(&b, 2, 0x1000, 0x18, 1, "f");
	/* Lines of an address that is not the next load's belong to nothing. */
	dump_record(&b, 2, 16 + 16 + 5, 3);
	put64(&b, 0x5000), put64(&b, 1);
	dump_line(&b, 0x5000, 9, "x.js");
	dump_load(&b, 4, 0x2000, 0x18, 2, "g");
	EXPECT_INT(jitdump_parse(b.bytes.data, b.bytes.len, &dump), 0);
	EXPECT_INT(dump.codes.len, 2);
	line = jitdump_find_line(&dump, dump.codes.data[0].base + 0xf, &code);
	ASSERT(line != NULL);
	EXPECT_INT(line->line, 1);
	line = jitdump_find_line(&dump, dump.codes.data[0].base + 0x10, &code);
	ASSERT(line != NULL);
	EXPECT_INT(line->line, 2);
	EXPECT_STR(line->file, "v.js");
	EXPECT(!jitdump_find_line(&dump, dump.codes.data[1].base, &code));
	EXPECT_INT(dump.bad_records, 0);
	jitdump_fini(&dump);
	str_fini(&b.bytes);
}

/* .eh_frame of one function whose frame has cfa bytes from its first instruction on; x86-64. */
static void put_frame(struct builder *b, uint32_t code_size, uint8_t cfa)
{
	static const uint8_t common[] = {16,  0, 0, 0,    0,  0, 0,    0,    1, 'z',
					 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x90, 1, 0};
	uint32_t room = (code_size + 7) & ~7u;

	for (size_t i = 0; i < sizeof(common); i++)
		put8(b, common[i]);
	put32(b, 16);
	put32(b, 24); /* back to the common part */
	put32(b, -(room + 28));
	put32(b, code_size);
	put8(b, 0);
	put8(b, 0x0c), put8(b, 7), put8(b, cfa); /* rsp + cfa */
}

static void dump_unwinding(struct builder *b, uint64_t time, uint32_t code_size, uint8_t cfa)
{
	dump_record(b, 4, 24 + 40 + 4, time);
	put64(b, 44), put64(b, 4), put64(b, 4096);
	put_frame(b, code_size, cfa);
	put32(b, 0xffffffff); /* an index that is none */
}

/* The stack pointer's offset in the rule, "-" for none. */
static void log_rule(const struct jit_unwind *jit, uint64_t time, uint64_t pc, struct str *out)
{
	struct unwind_rule rule;

	if (jit_unwind_rule(jit, UNWIND_X86_64, jit_unwind_epoch(jit, time), pc, &rule))
		str_printf(out, "%d ", rule.cfa_offset);
	else
		str_puts(out, "- ");
}

static void log_rules(const struct jit_unwind *jit, struct str *out)
{
	str_clear(out);
	log_rule(jit, 50, 0x10000, out);
	log_rule(jit, 150, 0x1000f, out);
	log_rule(jit, 150, 0x10010, out);
	log_rule(jit, 150, 0x20004, out);
	log_rule(jit, 250, 0x1000f, out);
	log_rule(jit, 350, 0x10004, out);
	log_rule(jit, 450, 0x30004, out);
}

static void put_growing_dump(struct builder *b)
{
	dump_header(b, 1, 0);
	dump_unwinding(b, 100, 0x10, 32);
	dump_load(b, 101, 0x10000, 0x10, 1, "first");
	dump_load(b, 102, 0x20000, 0x10, 2, "nothing tells of it");
	dump_unwinding(b, 200, 0x20, 64);
	dump_load(b, 201, 0x10000, 0x20, 3, "in place of the first");
	dump_load(b, 300, 0x10000, 0x08, 4, "nothing tells of it either");
	dump_move(b, 400, 0x10000, 0x30000, 0x20, 3);
}

/* The file is read while it grows, cut anywhere; code is what stood there at the time. */
TEST(how_code_is_unwound)
{
	struct jit_unwind *jit = NULL;
	struct unwind_rule rule;
	struct builder b;
	struct str text = {0};

	name_files();
	put_growing_dump(&b);
	for (size_t step = 1; step < b.bytes.len; step = step * 2 + 1) {
		EXPECT_INT(jit_unwind_new(getpid(), dump_path, &jit), 0);
		unlink(dump_path);
		EXPECT_INT(jit_unwind_update(jit), 0); /* no file yet */
		for (size_t size = step; size < b.bytes.len + step; size += step) {
			FILE *file = fopen(dump_path, size == step ? "w" : "a");
			size_t from = size - step, bytes = b.bytes.len - from;

			ASSERT(file != NULL);
			fwrite(b.bytes.data + from, 1, bytes < step ? bytes : step, file);
			fclose(file);
			EXPECT_INT(jit_unwind_update(jit), 0);
		}
		log_rules(jit, &text);
		EXPECT_STR(str_text(&text), "- 32 - - 64 - 64 ");
		EXPECT(!jit_unwind_rule(jit, UNWIND_ARM64, jit_unwind_epoch(jit, 150), 0x10000,
					&rule));
		EXPECT(jit_unwind_rule_of_code(jit, UNWIND_X86_64, 0x1000, &rule));
		EXPECT_INT(rule.cfa_offset, 32);
		EXPECT(!jit_unwind_rule_of_code(jit, UNWIND_X86_64, 0x1010, &rule));
		EXPECT(jit_unwind_rule_of_code(jit, UNWIND_X86_64, 0x103f, &rule));
		EXPECT(!jit_unwind_rule_of_code(jit, UNWIND_X86_64, 0x5000, &rule));
		jit_unwind_free(jit);
	}
	str_fini(&text);
	str_fini(&b.bytes);
}

/* Cycles cannot be told apart from times: what was placed last counts. */
TEST(how_code_is_unwound_without_times)
{
	struct jit_unwind *jit = NULL;
	struct builder b;
	struct str text = {0};

	name_files();
	put_growing_dump(&b);
	b.bytes.data[32] = 1;
	EXPECT_INT(file_write_atomic(dump_path, b.bytes.data, b.bytes.len, 0600, NULL), 0);
	EXPECT_INT(jit_unwind_new(getpid(), dump_path, &jit), 0);
	EXPECT_INT(jit_unwind_update(jit), 0);
	jit_unwind_close(jit);
	log_rules(jit, &text);
	EXPECT_STR(str_text(&text), "- 64 64 - 64 - 64 ");
	jit_unwind_free(jit);
	str_fini(&text);
	str_fini(&b.bytes);
}
