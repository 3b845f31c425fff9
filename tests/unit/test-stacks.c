/* Chains that are unwound while recording, how their ends are marked and read, chains of branch
 * records, and the mappings that unwinding follows; then two real recordings against another
 * unwinder's results. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/live-internal.h"
#include "sample/session-internal.h"
#include "sample/writer.h"

#define CODE  0x400000
#define STACK UINT64_C(0x7ffd00000000)
#define TYPE                                                                           \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | \
	 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

static char path[64];

/* Nothing is there. */
static void fresh_path(void)
{
	snprintf(path, sizeof(path), "%s/stacks", tap_dir());
	unlink(path);
}

static struct perf_event_attr copying_attr(void)
{
	/* bp, sp, ip of x86-64 */
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(struct perf_event_attr),
					.sample_type = TYPE,
					.sample_period = 1,
					.sample_regs_user = 7 << 6,
					.sample_stack_user = 64,
					.sample_id_all = 1};
}

/* A sample of pid 7: kernel chain, registers, and the stack's words. */
static void put_copy(struct builder *b, uint64_t abi, uint64_t ip, uint64_t bp,
		     const uint64_t *stack, size_t words)
{
	record_begin(b, REC_SAMPLE, REC_MISC_KERNEL);
	put64(b, 0xffffffff81000010);
	put32(b, 7);
	put32(b, 7);
	put64(b, 100);
	put64(b, 2);
	put64(b, CONTEXT_KERNEL);
	put64(b, 0xffffffff81000010);
	put64(b, abi);
	if (abi) {
		put64(b, bp);
		put64(b, STACK);
		put64(b, ip);
	}
	put64(b, words * 8);
	for (size_t i = 0; i < words; i++)
		put64(b, stack[i]);
	if (words)
		put64(b, words * 8);
	record_end(b);
}

/* The records through the unwinder into the file. */
static struct live_stats unwind_to_file(const struct builder *b)
{
	struct perf_event_attr attr = copying_attr(), file_attr = attr;
	static const uint64_t ids[] = {1};
	struct writer_event event = {.attr = attr, .name = "x", .ids = ids, .id_count = 1};
	struct writer *writer = NULL;
	struct live_stats stats = {0};
	struct live *live = NULL;
	struct str out = {0};

	live_file_attr(&file_attr);
	event.attr = file_attr;
	EXPECT_INT(live_new(&attr, NULL, false, &live), 0);
	if (!live)
		return stats;
	for (size_t at = 0; at < b->bytes.len;) {
		const struct perf_event_header *record = (const void *)(b->bytes.data + at);

		EXPECT(live_record_time(live, record) > 0);
		EXPECT_INT(live_record(live, record, &out), 0);
		at += record->size;
	}
	fresh_path();
	EXPECT_INT(writer_open(path, &event, 1, 0, 4096, &writer, NULL), 0);
	if (writer) {
		struct iovec piece = {out.data, out.len};

		EXPECT_INT(writer_records(writer, &piece, 1), 0);
		EXPECT_INT(writer_finish(writer), 0);
	}
	writer_close(writer);
	stats = *live_stats(live);
	str_fini(&out);
	live_free(live);
	return stats;
}

static int log_sample(void *arg, const struct sample *sample)
{
	struct str *text = arg;

	for (uint32_t i = 0; i < sample->frame_count; i++)
		str_printf(text, "%s%s%llx", i ? " " : "",
			   sample->frames[i].dso &&
					   strcmp(sample->frames[i].dso->path, "[truncated]") == 0
				   ? "cut:"
				   : "",
			   (unsigned long long)sample->frames[i].ip);
	str_putc(text, '\n');
	return 0;
}

static struct session_stats read_back(struct str *text)
{
	struct session *session = NULL;
	struct session_stats stats = {0};
	struct err err = {0};

	EXPECT_INT(session_open(path, &session, &err), 0);
	if (!session)
		return stats;
	EXPECT_INT(session_run(session, log_sample, text, &err), 0);
	stats = *session_stats(session);
	session_close(session);
	return stats;
}

TEST(generated_code_is_unwound_by_frame_pointers_and_ends_are_marked)
{
	static const uint64_t whole[] = {0, 0, STACK + 32, CODE + 0x201, 0, CODE + 0x301, 0, 0};
	static const uint64_t deep[] = {0, 0, STACK + 4096, CODE + 0x201, 0, 0, 0, 0};
	static const uint64_t lost[] = {0, 0, STACK + 32, 0xdead0001, 0, 0, 0, 0};
	struct builder b = {.sample_type = TYPE};
	struct live_stats stats;
	struct session_stats session;
	struct str text = {0};

#if !defined(__x86_64__)
	SKIP("the registers are those of x86-64");
#endif
	put_mmap(&b, REC_MISC_USER, 7, CODE, 0x1000, 0, "//anon", 50);
	put_copy(&b, 2, CODE + 0x100, STACK + 16, whole, 8);
	put_copy(&b, 2, CODE + 0x100, STACK + 16, deep, 8);
	put_copy(&b, 2, CODE + 0x100, STACK + 16, lost, 8);
	put_copy(&b, 1, CODE + 0x100, STACK + 16, whole, 8); /* 32 bits */
	put_copy(&b, 0, 0, 0, NULL, 0);                      /* a kernel thread */
	stats = unwind_to_file(&b);
	EXPECT_INT(stats.stacks, 4);
	EXPECT_INT(stats.cut, 1);
	EXPECT_INT(stats.lost, 2);
	EXPECT_INT(stats.by_frame_pointer, 3);
	session = read_back(&text);
	EXPECT_STR(str_text(&text), "ffffffff81000010 400100 400200 400300\n"
				    "ffffffff81000010 400100 400200 cut:0\n"
				    "ffffffff81000010 400100 cut:0\n"
				    "ffffffff81000010 400100 cut:0\n"
				    "ffffffff81000010\n");
	EXPECT_INT(session.unwound_stacks, 4);
	EXPECT_INT(session.cut_stacks, 1);
	EXPECT_INT(session.lost_stacks, 2);
	EXPECT_INT(session.truncated_stacks, 3);
	str_fini(&text);
	str_fini(&b.bytes);
}

/* fork, exec and mappings that cover others, as the records say them */
TEST(mappings_are_followed_through_fork_and_exec)
{
	struct live_spaces spaces = {0};
	const struct live_space *space;
	struct map map = {0x1000, 0x5000, 0, 1};
	uint64_t key;

	EXPECT_INT(live_spaces_map(&spaces, 7, &map), 0);
	map = (struct map){0x2000, 0x3000, 0x10, 2};
	EXPECT_INT(live_spaces_map(&spaces, 7, &map), 0);
	space = live_space_find(&spaces, 7);
	ASSERT(space && space->maps.len == 3);
	EXPECT_INT(live_space_map(space, 0x1fff)->dso, 1);
	EXPECT_INT(live_space_map(space, 0x2000)->dso, 2);
	EXPECT_INT(live_space_map(space, 0x3000)->dso, 1);
	EXPECT_INT(live_space_map(space, 0x3000)->pgoff, 0x2000);
	EXPECT(!live_space_map(space, 0x5000) && !live_space_map(space, 0xfff));
	key = space->key;
	EXPECT_INT(live_spaces_map(&spaces, 7, &map), 0); /* the same again changes nothing */
	EXPECT_INT(live_space_find(&spaces, 7)->key, key);

	EXPECT_INT(live_spaces_fork(&spaces, 8, 7), 0);
	EXPECT_INT(live_spaces_exec(&spaces, 7), 0);
	EXPECT(live_space_map(live_space_find(&spaces, 7), 0x2000) != NULL); /* not yet */
	map = (struct map){0x8000, 0x9000, 0, 3};
	EXPECT_INT(live_spaces_map(&spaces, 7, &map), 0);
	EXPECT(!live_space_map(live_space_find(&spaces, 7), 0x2000));
	EXPECT_INT(live_space_map(live_space_find(&spaces, 7), 0x8fff)->dso, 3);
	EXPECT_INT(live_space_map(live_space_find(&spaces, 8), 0x2000)->dso, 2);
	live_spaces_fini(&spaces);
}

TEST(ended_processes_are_forgotten)
{
	struct live_spaces spaces = {0};
	struct map map = {0x1000, 0x2000, 0, 1};

	/* Above the kernel's highest process id: they do not exist. */
	for (int32_t pid = 0; pid < 5000; pid++) {
		EXPECT_INT(live_spaces_map(&spaces, 0x500000 + pid, &map), 0);
		live_spaces_exit(&spaces, 0x500000 + pid);
	}
	EXPECT(spaces.all.len <= 1025);
	EXPECT(!live_space_find(&spaces, 0x500000));
	EXPECT(live_space_find(&spaces, 0x500000 + 4999) != NULL);
	live_spaces_fini(&spaces);
}

/* LBR call stacks: the calls give the callers; the chain of the registers only the leaf. */
TEST(branch_records_of_calls_are_the_chain)
{
	static const uint64_t from[] = {CODE + 0x210, CODE + 0x310, 0};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK,
		.sample_period = 1,
		.sample_id_all = 1};
	static const uint64_t ids[] = {1};
	struct writer_event event = {.attr = attr, .name = "cycles", .ids = ids, .id_count = 1};
	struct builder b = {.sample_type = attr.sample_type};
	struct writer *writer = NULL;
	struct session_stats stats;
	struct str text = {0};
	struct iovec piece;

	put_mmap(&b, REC_MISC_USER, 7, CODE, 0x1000, 0, "/bin/x", 50);
	for (int kind = 0; kind < 3; kind++) { /* user, kernel, one that fills the hardware */
		record_begin(&b, REC_SAMPLE, kind == 1 ? REC_MISC_KERNEL : REC_MISC_USER);
		put64(&b, kind == 1 ? 0xffffffff81000010 : CODE + 0x104);
		put32(&b, 7);
		put32(&b, 7);
		put64(&b, 100);
		put64(&b, kind == 1 ? 5 : 3);
		if (kind == 1) {
			put64(&b, CONTEXT_KERNEL);
			put64(&b, 0xffffffff81000010);
		}
		put64(&b, CONTEXT_USER);
		put64(&b, CODE + (kind == 1 ? 0x108 : 0x104));
		put64(&b, 0x1234); /* what a wrong frame pointer gave */
		put64(&b, kind == 2 ? 32 : 3);
		for (int i = 0; i < (kind == 2 ? 32 : 3); i++) {
			put64(&b, kind == 2 ? CODE + 0x210 : from[i]);
			put64(&b, CODE + 0x100);
			put64(&b, 0);
		}
		record_end(&b);
	}
	fresh_path();
	EXPECT_INT(writer_open(path, &event, 1, 0, 4096, &writer, NULL), 0);
	piece = (struct iovec){b.bytes.data, b.bytes.len};
	EXPECT_INT(writer_records(writer, &piece, 1), 0);
	EXPECT_INT(writer_finish(writer), 0);
	writer_close(writer);
	stats = read_back(&text);
	EXPECT(str_prefix(str_text(&text),
			  "400104 400210 400310\nffffffff81000010 400108 400210 400310\n", NULL));
	EXPECT_INT(stats.truncated_stacks, 1);
	str_fini(&text);
	str_fini(&b.bytes);
}

/* The first code of the object that has its return address still in the link register (or not). */
static uint64_t find_leaf(const char *object, bool unsaved)
{
	struct module_ref ref = {.kind = MODULE_ELF, .path = object};
	struct unwind_table *table = NULL;
	struct symbols *symbols;
	struct unwind_rule rule;
	uint64_t offset = 0;

	EXPECT_INT(symbols_new(NULL, &symbols), 0);
	EXPECT_INT(unwind_table_load(symbols, &ref, &table, NULL), 0);
	while (table && offset < 1 << 20 &&
	       (!unwind_table_rule(table, unwind_table_vaddr(table, offset), &rule) ||
		(rule.ra.kind == UNWIND_SAME) != unsaved || rule.ra.kind == UNWIND_UNDEFINED))
		offset += 4;
	EXPECT(offset < 1 << 20);
	unwind_table_free(table);
	symbols_free(symbols);
	return offset;
}

/* One sample by frame pointers: leaf, caller's caller; the link register apart. */
static void put_linked(struct builder *b, uint64_t leaf, uint64_t second, uint64_t lr)
{
	record_begin(b, REC_SAMPLE, REC_MISC_USER);
	put64(b, leaf);
	put32(b, 7), put32(b, 7);
	put64(b, 100);
	put64(b, 3);
	put64(b, CONTEXT_USER), put64(b, leaf), put64(b, second);
	put64(b, 2); /* 64 bits */
	put64(b, lr);
	record_end(b);
}

/* arm64: a leaf makes no frame, and its caller is in the link register, signed or not. */
TEST(callers_in_the_link_register)
{
	static const char arch[] = "\x40\0\0\0aarch64";
	static const uint64_t ids[] = {1};
	const char *object = tap_data("sampling/elf/framehop/aarch64/vdso.so");
	struct perf_event_attr attr = copying_attr();
	struct writer_event event = {.name = "x", .ids = ids, .id_count = 1};
	struct builder b = {.sample_type = TYPE & ~(uint64_t)PERF_SAMPLE_STACK_USER};
	struct writer *writer = NULL;
	char want[256], feature[68] = {0};
	uint64_t leaf, other;
	struct str text = {0};
	struct iovec piece;

	SKIP_IF(!object, "no test data");
	leaf = CODE + find_leaf(object, true);
	other = CODE + find_leaf(object, false);
	attr.sample_type = b.sample_type;
	attr.sample_regs_user = UINT64_C(1) << 30;
	attr.sample_stack_user = 0;
	event.attr = attr;
	put_mmap(&b, REC_MISC_USER, 7, CODE, 0x100000, 0, object, 50);
	put_linked(&b, leaf, CODE + 0x801, UINT64_C(0x12ab000000000000) | (CODE + 0x701));
	put_linked(&b, leaf, CODE + 0x801, CODE + 0x801);  /* it is there already */
	put_linked(&b, leaf, CODE + 0x801, 0x123456);      /* nothing is there */
	put_linked(&b, other, CODE + 0x801, CODE + 0x701); /* the frame tells it */
	fresh_path();
	EXPECT_INT(writer_open(path, &event, 1, 0, 4096, &writer, NULL), 0);
	piece = (struct iovec){b.bytes.data, b.bytes.len};
	EXPECT_INT(writer_records(writer, &piece, 1), 0);
	memcpy(feature, arch, sizeof(arch));
	EXPECT_INT(writer_feature(writer, FEATURE_ARCH, feature, sizeof(feature)), 0);
	EXPECT_INT(writer_finish(writer), 0);
	writer_close(writer);
	read_back(&text);
	snprintf(want, sizeof(want), "%llx 400700 400800\n%llx 400800\n%llx 400800\n%llx 400800\n",
		 (unsigned long long)leaf, (unsigned long long)leaf, (unsigned long long)leaf,
		 (unsigned long long)other);
	EXPECT_STR(str_text(&text), want);
	str_fini(&text);
	str_fini(&b.bytes);
}

struct oracle {
	struct str text; /* expected */
	uint64_t samples, found, same, longer, no_user_part;
};

/* Our addresses occur in this order in the other unwinder's frames of the sample, and end where it
 * ends. If not: the other stops where ours goes on, or it left out the user part altogether. */
static int compare_sample(void *arg, const struct sample *sample)
{
	struct oracle *oracle = arg;
	char time[64], line[32];
	const char *at, *end;
	unsigned matched = 0, left = 0;
	bool user_part = false;

	snprintf(time, sizeof(time), "\t%llu.%09llu\n",
		 (unsigned long long)(sample->time_ns / NSEC_PER_SEC),
		 (unsigned long long)(sample->time_ns % NSEC_PER_SEC));
	oracle->samples++;
	at = strstr(oracle->text.data, time);
	if (!at)
		return 0;
	oracle->found++;
	at = strstr(at, "\n\n"); /* behind the event */
	end = at ? strstr(at + 2, "\n\n") : NULL;
	for (const char *l = at; l && l[1] && (!end || l < end); l = strchr(l + 1, '\n'))
		user_part |= l[1] == '\t' && l[2] != 'f' && !str_prefix(l, "\n\t0 0\t", NULL);
	for (uint32_t i = 0; i < sample->frame_count && at; i++) {
		const char *frame;

		if (sample->frames[i].context != FRAME_USER || !sample->frames[i].dso ||
		    sample->frames[i].dso->kind != MODULE_ELF)
			continue;
		snprintf(line, sizeof(line), "\n\t%llx ", (unsigned long long)sample->frames[i].ip);
		frame = strstr(at, line);
		if (!frame || (end && frame > end)) {
			left++;
			break;
		}
		at = frame;
		matched++;
	}
	if (left == 0 && !sample->truncated)
		oracle->same++;
	else if (!user_part)
		oracle->no_user_part++;
	else if (matched > 0 && !sample->truncated)
		oracle->longer++;
	return 0;
}

static int inflate_to(const char *name, struct str *out)
{
	const char *file = tap_data(name);
	CLEANUP_FREE char *data = NULL;
	size_t size;

	if (!file || file_read(file, 16 << 20, &data, &size, NULL) < 0 || size < 4)
		return -ENOENT;
	return gzip_inflate(data + 4, size - 4, 64 << 20, out, NULL); /* behind a length */
}

struct parser_case {
	const char *folder, *recording, *program;
	const char *path; /* of the program, as recorded */
	uint64_t samples, same;
	/* PLT stubs end the other's stack. */
	uint64_t longer;
	/* perf before its exec, whose mappings are not recorded, and a process whose memory is gone
	   (exit): the other leaves out the user address, we show it and say that it is cut. */
	uint64_t no_user_part;
};

static void compare_with_parser(const struct parser_case *c)
{
	static const char *const no_dirs[] = {NULL};
	char root[64], name[256], file[4096];
	struct symbols_options options = {.debug_dirs = no_dirs};
	struct str recording = {0}, binary = {0};
	struct oracle oracle = {0};
	struct session *session = NULL;

	snprintf(name, sizeof(name), "sampling/perfparser/%s/%s.zlib", c->folder, c->recording);
	EXPECT_INT(inflate_to(name, &recording), 0);
	snprintf(name, sizeof(name), "sampling/perfparser/%s/%s.expected.txt.zlib", c->folder,
		 c->recording);
	EXPECT_INT(inflate_to(name, &oracle.text), 0);
	snprintf(name, sizeof(name), "sampling/perfparser/%s/%s.zlib", c->folder, c->program);
	EXPECT_INT(inflate_to(name, &binary), 0);
	snprintf(root, sizeof(root), "%s/root-XXXXXX", tap_dir());
	options.root = mkdtemp(root);
	snprintf(file, sizeof(file), "%s%s", root, c->path);
	*strrchr(file, '/') = '\0';
	EXPECT_INT(dir_make(file, 0700, NULL), 0);
	snprintf(file, sizeof(file), "%s%s", root, c->path);
	EXPECT_INT(file_write_atomic(file, binary.data, binary.len, 0600, NULL), 0);
	fresh_path();
	EXPECT_INT(file_write_atomic(path, recording.data, recording.len, 0600, NULL), 0);
	EXPECT_INT(session_open(path, &session, NULL), 0);
	if (session) {
		EXPECT_INT(session_unwind_init(session, &options), 0);
		EXPECT_INT(session_run(session, compare_sample, &oracle, NULL), 0);
		session_close(session);
	}
	printf("# %s/%s: %llu of %llu stacks as the other unwinder has them, %llu longer, %llu "
	       "without a user part there\n",
	       c->folder, c->recording, (unsigned long long)oracle.same,
	       (unsigned long long)oracle.samples, (unsigned long long)oracle.longer,
	       (unsigned long long)oracle.no_user_part);
	EXPECT_INT(oracle.samples, c->samples);
	EXPECT_INT(oracle.found, c->samples);
	EXPECT_INT(oracle.same, c->same);
	EXPECT_INT(oracle.longer, c->longer);
	EXPECT_INT(oracle.no_user_part, c->no_user_part);
	str_fini(&recording);
	str_fini(&binary);
	str_fini(&oracle.text);
}

#define PARSER_HOME \
	"/home/milian/projects/kdab/rnd/hotspot/3rdparty/perfparser/tests/auto/perfdata/"

TEST(stacks_agree_with_another_unwinder)
{
	static const struct parser_case cases[] = {
		{"vector_static_clang", "perf.data", "vector_static_clang_v8.0.1",
		 "/tmp/vector_static_clang_v8.0.1", 54, 52, 1, 1},
		{"vector_static_gcc", "perf.data", "vector_static_gcc_v9.1.0",
		 PARSER_HOME "vector_static_gcc/vector_static_gcc_v9.1.0", 45, 43, 0, 2},
		{"vector_static_gcc", "perf.data.zstd", "vector_static_gcc_v9.1.0",
		 PARSER_HOME "vector_static_gcc/vector_static_gcc_v9.1.0", 34, 24, 0, 10},
	};

	SKIP_IF(!tap_data("sampling/perfparser"), "no recordings of another unwinder");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		compare_with_parser(&cases[i]);
}
