/* trace.dat: made-up files of both versions, every byte order and compression; and, as root, one
 * that this kernel's buffers fill, which trace-cmd has to read as the kernel's text tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "harness/tap.h"
#include "latency/record-text.h"
#include "latency/trace-dat.h"
#include "latency/trace-flight.h"
#include "trace-builder.h"

struct counted {
	struct latency_sink sink;
	unsigned samples[2], noises;
	int64_t sum_ns[2];
	uint64_t last_ns;
	bool named;
};

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	struct counted *counted = (struct counted *)sink;

	if (record->kind == LATENCY_NOISE) {
		counted->noises++;
	} else if (record->kind == LATENCY_SAMPLE && record->cpu < 2) {
		counted->samples[record->cpu]++;
		counted->sum_ns[record->cpu] += record->sample.latency_ns;
		counted->named = record->comm && strcmp(record->comm, "timerlat/0") == 0;
	}
	counted->last_ns = record->time_ns;
	return 0;
}

static void expect_all(const struct str *file)
{
	struct counted counted = {.sink.take = take};
	struct err err = {0};
	int r = trace_dat_parse(file->data, file->len, &counted.sink, &err);

	if (r < 0)
		printf("# %s\n", err_text(&err, r));
	EXPECT_INT(r, 18);
	EXPECT_INT(counted.noises, 6);
	EXPECT_INT(counted.samples[0], 6);
	EXPECT_INT(counted.samples[1], 6);
	EXPECT_INT(counted.sum_ns[0], 6600);
	EXPECT_INT(counted.sum_ns[1], 6606);
	EXPECT_INT(counted.last_ns, 1003060);
	EXPECT(counted.named);
}

TEST(both_versions_every_compression_and_order)
{
	static const struct {
		char version;
		const char *compression;
	} kinds[] = {{'6', NULL}, {'7', "none"}, {'7', "zlib"}, {'7', "zstd"}};

	for (size_t i = 0; i < ARRAY_LEN(kinds) * 2; i++) {
		struct str file = {0};

		trace_dat_build(kinds[i / 2].version, kinds[i / 2].compression, i % 2, &file);
		expect_all(&file);
		str_fini(&file);
	}
}

/* However it is cut, it is read or refused; what is refused says where. */
TEST(cut_files_are_refused)
{
	static const char versions[] = {'6', '7'};

	for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
		struct str file = {0};
		unsigned refused = 0;

		trace_dat_build(versions[v], "zstd", false, &file);
		for (size_t len = 0; len < file.len; len++) {
			struct counted counted = {.sink.take = take};
			struct err err = {0};
			/* A copy of its own, so that a sanitizer sees a read behind the end. */
			char *copy = malloc(len + 1);
			int r;

			if (!copy)
				abort();
			memcpy(copy, file.data, len);
			copy = realloc(copy, len ? len : 1);
			r = trace_dat_parse(copy, len, &counted.sink, &err);
			refused += r < 0;
			if (r < 0 && err.text[0] == '\0')
				EXPECT_STR("a reason", "none");
			free(copy);
		}
		EXPECT(refused > 1000);
		str_fini(&file);
	}
}

TEST(clocks_that_count_no_nanoseconds)
{
	struct counted counted = {.sink.take = take};
	struct str file = {0};
	char *clock;

	trace_dat_build('6', NULL, false, &file);
	clock = memmem(file.data, file.len, "[local] global", 14);
	ASSERT(clock != NULL);
	memcpy(clock, "local [uptime]", 14);
	EXPECT_INT(trace_dat_parse(file.data, file.len, &counted.sink, NULL), 18);
	EXPECT_INT(counted.last_ns, 0);
	EXPECT_INT(counted.sum_ns[1], 6606);
	str_fini(&file);
}

TEST(what_is_none)
{
	struct counted counted = {.sink.take = take};
	struct err err = {0};
	static const char eight[] = "\x17\x08\x44tracing8\0\0\x08\0\x10\0\0";

	EXPECT_INT(trace_dat_parse("PERFILE2", 8, &counted.sink, &err), -EINVAL);
	EXPECT_INT(trace_dat_parse(NULL, 0, &counted.sink, &err), -EINVAL);
	EXPECT_INT(trace_dat_parse(eight, sizeof(eight) - 1, &counted.sink, &err), -ENOTSUP);
	EXPECT(strstr(err.text, "version 8") != NULL);
	EXPECT_INT(trace_dat_read("/nonexistent", &counted.sink, &err), -ENOENT);
}

static int lines_of(const char *command)
{
	FILE *pipe = popen(command, "r");
	int count = -1;

	if (!pipe || fscanf(pipe, "%d", &count) != 1)
		count = -1;
	if (pipe)
		pclose(pipe);
	return count;
}

/* --- from records ---------------------------------------------------------------------------- */

static const char *const frames[] = {"finish_task_switch.isra.0", "__schedule", "0x1234"};

static const struct latency_record records[] = {
	{.kind = LATENCY_SAMPLE,
	 .cpu = 1,
	 .time_ns = 5000000000,
	 .pid = 158,
	 .comm = "dd",
	 .sample = {LATENCY_IRQ, 7, 32190}},
	{.kind = LATENCY_NOISE,
	 .cpu = 1,
	 .time_ns = 5000000100,
	 .pid = 158,
	 .comm = "dd",
	 .noise = {NOISE_IRQ, 236, "local_timer", "tick_sched_timer", 4999999000, 49223}},
	{.kind = LATENCY_NOISE,
	 .cpu = 1,
	 .time_ns = 5000000200,
	 .pid = 158,
	 .comm = "dd",
	 .noise = {NOISE_SOFTIRQ, 3, "NET_RX", NULL, 4999999500, 11}},
	{.kind = LATENCY_NOISE,
	 .cpu = 1,
	 .time_ns = 5000000300,
	 .pid = 0,
	 .comm = "<idle>",
	 .noise = {NOISE_NMI, -1, "NMI", NULL, 4999999600, 12}},
	{.kind = LATENCY_WORK,
	 .cpu = 1,
	 .time_ns = 5000000400,
	 .pid = 77,
	 .comm = "kworker/1:0",
	 .work = {"vmstat_update"}},
	{.kind = LATENCY_NOISE,
	 .cpu = 1,
	 .time_ns = 9000000000,
	 .pid = 77,
	 .comm = "kworker/1:0",
	 .noise = {NOISE_THREAD, 77, "kworker/1:0", "vmstat_update", 5000000100, 13}},
	{.kind = LATENCY_SWITCH,
	 .cpu = 1,
	 .time_ns = 9000000001,
	 .pid = 77,
	 .comm = "kworker/1:0",
	 .switched = {200, 4, "timerlat/1"}},
	{.kind = LATENCY_SAMPLE,
	 .cpu = 1,
	 .time_ns = 9000000002,
	 .pid = 200,
	 .comm = "timerlat/1",
	 .sample = {LATENCY_USER, 7, 99650}},
	{.kind = LATENCY_STACK,
	 .cpu = 1,
	 .time_ns = 9000000003,
	 .pid = 200,
	 .comm = "timerlat/1",
	 .stack = {frames, 3, false}},
	{.kind = LATENCY_GAP,
	 .cpu = 3,
	 .time_ns = 9000000000,
	 .pid = 200,
	 .comm = "timerlat/1",
	 .gap = {8000000000, 500, 0, 0}},
	{.kind = LATENCY_PERIOD,
	 .cpu = 3,
	 .time_ns = 9000000001,
	 .pid = 200,
	 .comm = "timerlat/1",
	 .period = {1000000000, 7000000, 3000000, {1, 2, 3, 4, 5}}},
	{.kind = LATENCY_STOPPED,
	 .cpu = 3,
	 .time_ns = 9000000002,
	 .pid = 200,
	 .comm = "timerlat/1"},
};

struct text {
	struct latency_sink sink;
	FILE *out;
	unsigned lost, count;
	uint64_t lost_events;
};

static int take_text(struct latency_sink *sink, const struct latency_record *record)
{
	struct text *text = (struct text *)sink;

	text->count++;
	if (record->kind == LATENCY_LOST) {
		text->lost++;
		text->lost_events += record->lost.events;
	}
	if (text->out)
		record_text(record, text->out);
	return 0;
}

static int each_record(void *arg, struct latency_sink *sink)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(records) && r == 0; i++)
		r = sink->take(sink, &records[i]);
	return r;
}

/* Two thousand samples, losses in between, and pages for several CPUs. */
static int each_of_many(void *arg, struct latency_sink *sink)
{
	int r = 0;

	for (unsigned i = 0; i < 2000 && r == 0; i++) {
		struct latency_record record = {.cpu = i % 3,
						.time_ns = i * UINT64_C(200000000),
						.pid = 5,
						.comm = "five words in a name"};

		if (i == 700 || i == 1500) {
			record.kind = LATENCY_LOST;
			record.lost.events = i == 700 ? 41 : 0;
		} else {
			record.kind = LATENCY_SAMPLE;
			record.sample.seq = i;
		}
		r = sink->take(sink, &record);
	}
	return r;
}

TEST(records_come_back_as_they_went)
{
	char path[64], command[128], *had = NULL, *have = NULL;
	size_t had_size, have_size;
	struct text before = {.sink.take = take_text}, after = {.sink.take = take_text};
	struct err err = {0};

	snprintf(path, sizeof(path), "%s/records", tap_dir());
	before.out = open_memstream(&had, &had_size);
	after.out = open_memstream(&have, &have_size);
	ASSERT(before.out && after.out);
	each_record(NULL, &before.sink);
	EXPECT_INT(trace_dat_write_records(each_record, NULL, "mono", path, &err), 0);
	EXPECT_INT(trace_dat_read(path, &after.sink, &err), (long long)ARRAY_LEN(records));
	fclose(before.out);
	fclose(after.out);
	EXPECT_STR(have, had);
	if (system("command -v trace-cmd >/dev/null 2>&1") == 0) {
		snprintf(command, sizeof(command),
			 "trace-cmd report %s 2>/dev/null | grep -c 'timer_latency:\\|noise:\\|"
			 "==>\\|vmstat_update$'",
			 path);
		EXPECT_INT(lines_of(command), 9);
	}
	free(had);
	free(have);
}

TEST(many_records_and_losses)
{
	char path[64];
	struct text after = {.sink.take = take_text};

	snprintf(path, sizeof(path), "%s/records", tap_dir());
	EXPECT_INT(trace_dat_write_records(each_of_many, NULL, "mono", path, NULL), 0);
	EXPECT_INT(trace_dat_read(path, &after.sink, NULL), 2000);
	EXPECT_INT(after.lost, 2);
	EXPECT_INT(after.lost_events, 41);
}

/* --- this kernel ----------------------------------------------------------------------------- */

/* Recorded, frozen, written; three times as text and twice as trace.dat, in this order. */
static void record_and_write(struct trace_flight *flight, const char *folder)
{
	static const char *const names[] = {"1.txt", "1.dat", "2.txt", "2.dat"};
	char path[128], command[512];
	int text, again;

	for (int i = 0; i < 20; i++)
		usleep(1000); /* each wakes up and switches */
	trace_flight_mark(flight, "culprit was here\n");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct err err = {0};

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (!EXPECT_INT(trace_flight_write(flight, path, &err), 0))
			printf("# %s\n", err.text);
	}
	snprintf(command, sizeof(command), "grep -vc '^#\\|^CPU:' %s/1.txt", folder);
	text = lines_of(command);
	EXPECT(text > 20);
	snprintf(command, sizeof(command),
		 "cmp %s/1.txt %s/2.txt >&2 && cmp %s/1.dat %s/2.dat >&2; echo $?", folder, folder,
		 folder, folder);
	EXPECT_INT(lines_of(command), 0);
	snprintf(command, sizeof(command), "grep -c 'culprit was here' %s/1.txt", folder);
	EXPECT_INT(lines_of(command), 1);
	if (system("command -v trace-cmd >/dev/null 2>&1") != 0) {
		printf("# no trace-cmd: the file is not compared with what it reads\n");
		return;
	}
	snprintf(command, sizeof(command),
		 "trace-cmd report %s/1.dat 2>/dev/null | grep -vc '^cpus=\\|^CPU'", folder);
	again = lines_of(command);
	EXPECT_INT(again, text);
	snprintf(command, sizeof(command),
		 "trace-cmd report %s/1.dat 2>/dev/null | grep -c 'sched_switch: .*==>'", folder);
	EXPECT(lines_of(command) > 10);
}

TEST(this_kernels_buffers)
{
	const struct trace_flight_options options = {.clock = "mono",
						     .buffer_kib = 1024,
						     .events = trace_flight_events,
						     .event_count = trace_flight_event_count};
	struct tracefs tracefs;
	struct trace_flight *flight = NULL;
	struct journal *journal;
	struct err err = {0};
	int r;

	SKIP_IF(geteuid() != 0, "not root");
	ASSERT(journal_new("", &journal) == 0);
	journal_guard();
	r = tracefs_find("", NULL, &tracefs, &err);
	if (r == 0)
		r = trace_flight_start(&tracefs, journal, &options, &flight, &err);
	if (r < 0) {
		journal_free(journal);
		SKIP("%s", err.text);
	}
	record_and_write(flight, tap_dir());
	trace_flight_free(flight);
	EXPECT_INT(journal_restore(journal, &err), 0);
	journal_free(journal);
}
