/* Recording without a kernel: records of existing processes from a made-up /proc and /sys, and the
 * writer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/util.h"
#include "fake-root.h"
#include "harness/tap.h"
#include "sample/synth.h"
#include "sample/writer.h"

#define PROC_TRAILER (2 * sizeof(uint64_t)) /* pid/tid and time */

struct seen {
	unsigned forks, comms, maps, broken;
	char comm[2][16], map[64];
	uint32_t parent;
	uint64_t map_start, map_offset, kernel_start, module_start;
};

static void see_map(struct seen *seen, const struct perf_event_header *header, const uint64_t *body)
{
	const char *name = (const char *)&body[8];

	seen->maps++;
	if (strcmp(name, "[kernel.kallsyms]_text") == 0)
		seen->kernel_start = body[1];
	else if (strcmp(name, "[fakemod]") == 0)
		seen->module_start = body[1];
	else
		snprintf(seen->map, sizeof(seen->map), "%s", name);
	if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
		seen->map_start = body[1];
		seen->map_offset = body[3];
	}
}

static int put(void *arg, const void *record, size_t size)
{
	const struct perf_event_header *header = record;
	const uint64_t *body = (const uint64_t *)(const void *)(header + 1);
	struct seen *seen = arg;

	seen->broken +=
		header->size != size || size % 8 != 0 || size < sizeof(*header) + PROC_TRAILER;
	switch (header->type) {
	case PERF_RECORD_FORK:
		if (seen->forks++ == 0)
			seen->parent = (uint32_t)(body[0] >> 32);
		break;
	case PERF_RECORD_COMM:
		if (seen->comms < ARRAY_LEN(seen->comm))
			snprintf(seen->comm[seen->comms], sizeof(seen->comm[0]), "%s",
				 (const char *)&body[1]);
		seen->comms++;
		break;
	case PERF_RECORD_MMAP2:
		see_map(seen, header, body);
		break;
	default:
		seen->broken++;
	}
	return 0;
}

static void machine(struct fake_root *root)
{
	fake_root_make(root);
	fake_root_file(root, "/proc/42/comm", "server\n");
	fake_root_file(root, "/proc/42/stat", "42 (a) b) S 7 42 42 0\n");
	fake_root_file(root, "/proc/42/task/42/comm", "server\n");
	fake_root_file(root, "/proc/42/task/43/comm", "worker 1\n");
	fake_root_file(root, "/proc/42/maps",
		       "00400000-00401000 r--p 00000000 fe:00 77   /opt/x y\n"
		       "00401000-00409000 r-xp 00001000 fe:00 77   /opt/x y\n"
		       "broken line\n"
		       "7ffc0000-7ffd0000 rw-p 00000000 00:00 0    [stack]\n");
	fake_root_file(root, "/proc/kallsyms",
		       "ffffffff81000000 T _text\nffffffff81000000 T _stext\n");
	fake_root_file(
		root, "/proc/modules",
		"fakemod 4096 0 - Live 0xffffffffc0000000\nhidden 1 0 - Live 0x0000000000000000\n");
}

static struct synth synth_of(const struct fake_root *root, char proc[96], char sys[96],
			     struct seen *seen)
{
	snprintf(proc, 96, "%s/proc", root->path);
	snprintf(sys, 96, "%s/sys", root->path);
	return (struct synth){
		.proc = proc,
		.sys = sys,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.put = put,
		.arg = seen,
	};
}

TEST(processes_become_records)
{
	struct fake_root root;
	struct seen seen = {0};
	char proc[96], sys[96];
	struct synth synth;

	machine(&root);
	synth = synth_of(&root, proc, sys, &seen);
	EXPECT_INT(synth_all(&synth), 0);
	EXPECT_INT(seen.broken, 0);
	EXPECT_INT(seen.forks, 2);
	EXPECT_INT(seen.comms, 2);
	EXPECT_STR(seen.comm[0], "server");
	EXPECT_STR(seen.comm[1], "worker 1");
	EXPECT_INT(seen.parent, 7);
	EXPECT_INT(seen.maps, 1);
	EXPECT_STR(seen.map, "/opt/x y");
	EXPECT_INT(seen.map_start, 0x401000);
	EXPECT_INT(seen.map_offset, 0x1000);
	EXPECT_INT(synth_process(&synth, 4711), -ESRCH);
	synth_fini(&synth);
	fake_root_remove(&root);
}

TEST(kernel_and_modules_become_records)
{
	struct fake_root root;
	struct seen seen = {0};
	char proc[96], sys[96];
	struct synth synth;

	machine(&root);
	synth = synth_of(&root, proc, sys, &seen);
	EXPECT_INT(synth_kernel(&synth), 0);
	EXPECT_INT(seen.broken, 0);
	EXPECT_INT(seen.maps, 2);
	EXPECT(seen.kernel_start == UINT64_C(0xffffffff81000000));
	EXPECT(seen.module_start == UINT64_C(0xffffffffc0000000));
	synth_fini(&synth);
	fake_root_remove(&root);
}

static struct writer *open_writer(const char *path, struct err *err)
{
	static const uint64_t ids[] = {5};
	struct writer_event event = {.name = "cpu-clock", .ids = ids, .id_count = 1};
	struct writer *writer = NULL;

	event.attr =
		(struct perf_event_attr){.type = PERF_TYPE_SOFTWARE, .size = sizeof(event.attr)};
	return writer_open(path, &event, 1, 0, 4096, &writer, err) < 0 ? NULL : writer;
}

static void put_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

TEST(the_old_file_is_kept_and_comes_back)
{
	struct fake_root root;
	char path[96], old[96], text[8] = "";
	struct writer *writer;
	struct err err = {0};
	FILE *file;

	fake_root_make(&root);
	snprintf(path, sizeof(path), "%s/out", root.path);
	snprintf(old, sizeof(old), "%s/out.old", root.path);
	put_text(path, "mine");
	writer = open_writer(path, &err);
	ASSERT(writer);
	EXPECT_INT(access(old, F_OK), 0);
	writer_discard(writer);
	writer_close(writer);
	EXPECT(access(old, F_OK) < 0);
	file = fopen(path, "r");
	ASSERT(file);
	EXPECT(fgets(text, sizeof(text), file));
	fclose(file);
	EXPECT_STR(text, "mine");
	fake_root_remove(&root);
}

TEST(only_regular_files_are_replaced)
{
	struct fake_root root;
	struct err err = {0};
	struct stat st;
	char path[96];

	fake_root_make(&root);
	snprintf(path, sizeof(path), "%s/folder", root.path);
	EXPECT_INT(mkdir(path, 0700), 0);
	EXPECT(!open_writer(path, &err));
	EXPECT(strstr(err_text(&err, -EINVAL), "not a regular file"));
	EXPECT(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
	fake_root_remove(&root);
}

TEST(records_are_padded_and_counted)
{
	struct fake_root root;
	struct err err = {0};
	struct writer *writer;
	uint64_t before;
	char path[96];

	fake_root_make(&root);
	snprintf(path, sizeof(path), "%s/out", root.path);
	writer = open_writer(path, &err);
	ASSERT(writer);
	before = writer_bytes(writer);
	EXPECT_INT(writer_record(writer, PERF_RECORD_COMM, 0, "abc", 3), 0);
	EXPECT_INT(writer_bytes(writer) - before, 16);
	EXPECT_INT(writer_record(writer, PERF_RECORD_COMM, 0, path, UINT16_MAX), -E2BIG);
	EXPECT_INT(writer_finished_round(writer), 0);
	EXPECT_INT(writer_bytes(writer) - before, 24);
	EXPECT_INT(writer_finish(writer), 0);
	writer_close(writer);
	fake_root_remove(&root);
}
