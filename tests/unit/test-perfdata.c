/* The perf.data reader on small files built here: what is in them is known to the byte. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"
#include "harness/tap.h"
#include "recording-builder.h"
#include "sample/collect.h"
#include "sample/maps.h"
#include "sample/perfdata.h"
#include "sample/session.h"

#define TYPE (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_CALLCHAIN)

static char path[64] = "/tmp/culprit-perfdata-XXXXXX";

/* The bytes as a file of that test run; the same name each time. */
static const char *write_file(const void *data, size_t size)
{
	int fd;

	if (strchr(path, 'X')) {
		fd = mkstemp(path);
		if (fd >= 0)
			close(fd);
	}
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || fd_write_all(fd, data, size) < 0)
		EXPECT(false);
	if (fd >= 0)
		close(fd);
	return path;
}

__attribute__((destructor)) static void remove_file(void)
{
	unlink(path);
}

struct log {
	struct str text;
	uint64_t samples;
};

/* "comm: object+0x10 < caller+0x20 < ...\n" */
static int log_sample(void *arg, const struct sample *sample)
{
	struct log *log = arg;

	log->samples++;
	str_printf(&log->text, "%s:", sample->comm);
	for (uint32_t i = 0; i < sample->frame_count; i++)
		str_printf(&log->text, "%s%s+0x%llx", i ? " < " : " ",
			   sample->frames[i].dso ? sample->frames[i].dso->path : "?",
			   (unsigned long long)sample->frames[i].address);
	str_putc(&log->text, '\n');
	return 0;
}

static int replay(const void *data, size_t size, struct log *log, struct session_stats *ret_stats)
{
	struct session *session;
	struct err err = {0};
	int r = session_open(write_file(data, size), &session, &err);

	if (r < 0)
		return r;
	r = session_run(session, log_sample, log, &err);
	if (ret_stats)
		*ret_stats = *session_stats(session);
	session_close(session);
	return r;
}

/* A process that forks and execs, seen by samples before, between and after, and the kernel. */
static void put_story(struct builder *b)
{
	static const uint64_t user[] = {CONTEXT_USER, 0x401010, 0x401101, 0x7f0000001000, 0};
	static const uint64_t kernel[] = {CONTEXT_KERNEL,
					  0xffffffff81000100,
					  0xffffffff81000201,
					  CONTEXT_USER,
					  0x401020,
					  0x401101,
					  0};

	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, 0, UINT64_C(0xffffffff82000000),
		 UINT64_C(0xffffffff81000000), "[kernel.kallsyms]_text", 0);
	put_mmap(b, REC_MISC_KERNEL, UINT32_MAX, UINT64_C(0xffffffffc0000000), 0x4000, 0,
		 "/lib/modules/6.1/kernel/fs/nls-utf8.ko.xz", 0);
	put_comm(b, 10, 10, "shell", false, 0);
	put_mmap(b, REC_MISC_USER, 10, 0x400000, 0x10000, 0, "/bin/shell", 0);
	put_mmap(b, REC_MISC_USER, 10, 0x7f0000000000, 0x4000, 0x2000, "/lib/libc.so", 0);
	put_sample(b, REC_MISC_USER, 10, 10, 100, 0x401010, user);
	/* Out of order on purpose: another CPU's records come later in the file. */
	put_sample(b, REC_MISC_USER, 11, 11, 300, 0x401010, user);
	put_fork(b, 11, 10, 11, 10, 200);
	put_sample(b, REC_MISC_USER, 11, 11, 210, 0x401010, user);
	put_comm(b, 11, 11, "child", true, 250);
	put_mmap(b, REC_MISC_USER, 11, 0x400000, 0x10000, 0x1000, "/bin/child", 251);
	put_sample(b, REC_MISC_KERNEL, 11, 11, 310, UINT64_C(0xffffffff81000100), kernel);
	put_sample(b, REC_MISC_KERNEL, 0, 0, 320, UINT64_C(0xffffffffc0000010), NULL);
	put_sample(b, REC_MISC_USER, 12, 13, 330, 0x10, NULL);
}

static const char story[] = "shell: /bin/shell+0x1010 < /bin/shell+0x1100 < /lib/libc.so+0x2fff\n"
			    "child: /bin/child+0x2010 < /bin/child+0x2100 < ?+0x7f0000000fff\n"
			    "shell: /bin/shell+0x1010 < /bin/shell+0x1100 < /lib/libc.so+0x2fff\n"
			    "child: [kernel.kallsyms]+0xffffffff81000100 < "
			    "[kernel.kallsyms]+0xffffffff81000200 < /bin/child+0x2020 < "
			    "/bin/child+0x2100\n"
			    "swapper: [nls_utf8]+0xffffffffc0000010\n"
			    ":13: ?+0x10\n";

TEST(story_in_both_byte_orders)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct log log = {0};

		file_begin(&b, TYPE);
		put_story(&b);
		file_end(&b);
		EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, NULL), 0);
		EXPECT_STR(str_text(&log.text), story);
		str_fini(&log.text);
		str_fini(&b.bytes);
	}
}

TEST(story_through_a_pipe)
{
	for (int big = 0; big < 2; big++) {
		struct builder b = {.big = big};
		struct log log = {0};

		pipe_begin(&b, TYPE);
		put_story(&b);
		EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, NULL), 0);
		EXPECT_STR(str_text(&log.text), story);
		str_fini(&log.text);
		str_fini(&b.bytes);
	}
}

TEST(cut_at_every_byte_shows_what_is_before)
{
	struct builder b = {0};
	struct session_stats stats;
	size_t first = 0;

	file_begin(&b, TYPE);
	first = b.bytes.len;
	put_story(&b);
	file_end(&b);
	for (size_t size = 0; size < b.bytes.len; size++) {
		struct log log = {0};
		int r = replay(b.bytes.data, size, &log, &stats);
		size_t same = strncmp(str_text(&log.text), story, log.text.len);

		if (size < first) {
			if (r >= 0 && log.samples > 0)
				EXPECT(false);
		} else if (r < 0 || stats.missing_bytes != b.bytes.len - size ||
			   (size > first && !stats.problem[0])) {
			EXPECT_INT(r, 0);
			EXPECT_INT(stats.missing_bytes, b.bytes.len - size);
		} else if (size == b.bytes.len - 1) {
			EXPECT_INT(log.samples, 5);
			EXPECT_INT(same, 0);
		}
		str_fini(&log.text);
	}
	str_fini(&b.bytes);
}

TEST(unfinished_header_is_scanned)
{
	struct builder b = {0};
	struct log log = {0};
	struct session_stats stats;

	file_begin(&b, TYPE);
	put_story(&b);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, &stats), 0);
	EXPECT_STR(str_text(&log.text), story);
	EXPECT(stats.unfinished);
	/* Zeros behind the records, as a crash leaves them in a preallocated file. */
	for (int i = 0; i < 100; i++)
		put64(&b, 0);
	str_clear(&log.text);
	EXPECT_INT(replay(b.bytes.data, b.bytes.len, &log, &stats), 0);
	EXPECT_STR(str_text(&log.text), story);
	str_fini(&log.text);
	str_fini(&b.bytes);
}

TEST(gzip_is_unpacked)
{
	struct builder b = {0};
	struct log log = {0};
	struct str packed = {0};

	file_begin(&b, TYPE);
	put_story(&b);
	file_end(&b);
	EXPECT_INT(gzip_deflate(b.bytes.data, b.bytes.len, 6, &packed, NULL), 0);
	EXPECT_INT(replay(packed.data, packed.len, &log, NULL), 0);
	EXPECT_STR(str_text(&log.text), story);
	str_fini(&packed);
	str_fini(&log.text);
	str_fini(&b.bytes);
}
