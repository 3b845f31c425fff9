#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/compress.h"
#include "base/cpuset.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/steady-map.h"
#include "base/strtab.h"
#include "base/util.h"
#include "harness/tap.h"

TEST(err_wraps_from_general_to_particular)
{
	struct err err = {0};

	EXPECT_INT(err_set(&err, -EINVAL, "truncated at byte %d", 4096), -EINVAL);
	EXPECT_INT(err_wrap(&err, -EINVAL, "section %d", 3), -EINVAL);
	EXPECT_STR(err_text(&err, -EINVAL), "section 3: truncated at byte 4096");
	err = (struct err){0};
	err_wrap(&err, -ENOENT, "perf.data");
	EXPECT_STR(err_text(&err, -ENOENT), "perf.data: No such file or directory");
	EXPECT_INT(err_set(NULL, -EIO, "nobody listens"), -EIO);
}

TEST(cpuset_round_trip)
{
	struct cpuset set;
	struct str text = {0};

	EXPECT_INT(cpuset_parse("0-3,8,10-11\n", &set, NULL), 0);
	EXPECT_INT(cpuset_count(&set), 7);
	cpuset_format(&set, &text);
	EXPECT_STR(str_text(&text), "0-3,8,10-11");
	str_fini(&text);
	EXPECT_INT(cpuset_parse("3-1", &set, NULL), -EINVAL);
	EXPECT_INT(cpuset_parse("1,", &set, NULL), -EINVAL);
	EXPECT_INT(cpuset_parse("a", &set, NULL), -EINVAL);
	EXPECT_INT(cpuset_parse("4096", &set, NULL), -ERANGE);
	EXPECT_INT(cpuset_parse("", &set, NULL), 0);
	EXPECT_INT(cpuset_count(&set), 0);
}

TEST(strtab_interns_many)
{
	struct strtab tab;
	char text[32];
	uint32_t id;

	ASSERT(strtab_init(&tab) == 0);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 10000; i++) {
			snprintf(text, sizeof(text), "symbol_%u", i);
			if (strtab_intern_text(&tab, text, &id) < 0 || id != i + 1 ||
			    strcmp(strtab_text(&tab, id), text))
				EXPECT_INT(id, i + 1);
		}
	EXPECT_INT(tab.entries.len, 10001);
	EXPECT_STR(strtab_text(&tab, 0), "");
	EXPECT_INT(strtab_find(&tab, "symbol_77", 9), 78);
	EXPECT(strtab_find(&tab, "absent", 6) == HASH_NONE);
	strtab_fini(&tab);
}

TEST(u64_map_puts_and_replaces)
{
	struct u64_map map = {0};
	uint32_t value = 0;

	for (uint64_t i = 0; i < 5000; i++)
		if (u64_map_put(&map, i << 12, (uint32_t)i) < 0)
			EXPECT(false);
	EXPECT_INT(u64_map_put(&map, 7 << 12, 70), 0);
	EXPECT(u64_map_get(&map, 7 << 12, &value));
	EXPECT_INT(value, 70);
	EXPECT(u64_map_get(&map, UINT64_C(4999) << 12, &value) && value == 4999);
	EXPECT(!u64_map_get(&map, 1, &value));
	EXPECT_INT(map.used, 5000);
	u64_map_fini(&map);
}

TEST(reader_fails_once_and_stays_failed)
{
	const uint8_t bytes[] = {1, 2, 3, 4, 5, 0x80, 0x01, 0x7f};
	struct reader r = reader_make(bytes, sizeof(bytes), true);

	EXPECT_INT(reader_u32(&r), 0x01020304);
	EXPECT_INT(reader_u8(&r), 5);
	EXPECT_INT(reader_uleb(&r), 128);
	EXPECT_INT(reader_sleb(&r), -1);
	EXPECT(!r.failed);
	EXPECT_INT(reader_u16(&r), 0);
	EXPECT(r.failed);
	EXPECT_INT(r.fail_pos, 8);
	EXPECT(reader_cstr(&r) == NULL);
}

TEST(json_escapes_and_nests)
{
	struct json json = {.compact = true};

	json_object(&json, NULL);
	json_text(&json, "a\"b", "x\n\x01\xff\xc3\xa9");
	json_array(&json, "list");
	json_u64(&json, NULL, UINT64_MAX);
	json_double(&json, NULL, 0.1);
	json_double(&json, NULL, 0.0 / 0.0);
	json_end_array(&json);
	json_end_object(&json);
	EXPECT_STR(str_text(&json.out), "{\"a\\\"b\":\"x\\n\\u0001\\ufffd\xc3\xa9\","
					"\"list\":[18446744073709551615,0.1,null]}\n");
	str_fini(&json.out);
}

TEST(quantities_parse)
{
	unsigned long long v = 0;

	EXPECT_INT(parse_duration_ns("10s", NSEC_PER_SEC, &v), 0);
	EXPECT_INT(v, 10000000000LL);
	EXPECT_INT(parse_duration_ns("1.5ms", NSEC_PER_SEC, &v), 0);
	EXPECT_INT(v, 1500000);
	EXPECT_INT(parse_duration_ns("2", NSEC_PER_SEC, &v), 0);
	EXPECT_INT(v, 2000000000);
	EXPECT_INT(parse_duration_ns("2 parsecs", NSEC_PER_SEC, &v), -EINVAL);
	EXPECT_INT(parse_duration_ns("-1s", NSEC_PER_SEC, &v), -EINVAL);
	EXPECT_INT(parse_size("16K", &v), 0);
	EXPECT_INT(v, 16384);
	EXPECT_INT(parse_size("99999999999T", &v), -ERANGE);
	EXPECT_INT(parse_u64("0x1f", 0, &v), 0);
	EXPECT_INT(v, 31);
	EXPECT_INT(parse_u64(" -1", 10, &v), -EINVAL);
	EXPECT_INT(parse_u64("99999999999999999999", 10, &v), -ERANGE);
}

TEST(distance_counts_edits)
{
	EXPECT_INT(str_distance("cycles", "cycles"), 0);
	EXPECT_INT(str_distance("cylces", "cycles"), 1);
	EXPECT_INT(str_distance("", "abc"), 3);
	EXPECT_INT(str_distance("kitten", "sitting"), 3);
}

TEST(utf8_is_cut_between_characters)
{
	EXPECT_INT(str_utf8_cut("a\xc3\xa9z", 2), 1);
	EXPECT_INT(str_utf8_cut("a\xc3\xa9z", 3), 3);
	EXPECT_INT(str_utf8_cut("abc", 10), 3);
}

static int add_one(void *arg, size_t i)
{
	((unsigned char *)arg)[i]++;
	return i == 77777 ? -EDOM : 0;
}

TEST(a_thread_moves_and_comes_back)
{
	struct cpuset home, now, none = {0};
	int first;

	EXPECT_INT(affinity_get(0, &home), 0);
	first = cpuset_next(&home, 0);
	EXPECT(first >= 0);
	EXPECT_INT(parallel_cpus(), cpuset_count(&home));
	EXPECT_INT(affinity_set_one(0, (unsigned)first), 0);
	EXPECT_INT(affinity_get(0, &now), 0);
	EXPECT_INT(cpuset_count(&now), 1);
	EXPECT(cpuset_has(&now, (unsigned)first));
	EXPECT_INT(affinity_set(0, &none), -EINVAL);
	EXPECT_INT(affinity_set_one(0, CPUSET_MAX - 1), -EINVAL);
	EXPECT_INT(affinity_set(0, &home), 0);
	EXPECT_INT(affinity_get(0, &now), 0);
	EXPECT_INT(cpuset_count(&now), cpuset_count(&home));
}

TEST(parallel_visits_each_once)
{
	unsigned char *seen = calloc(50000, 1);
	size_t bad = 0;

	ASSERT(seen);
	EXPECT_INT(parallel_for(50000, 4, add_one, seen), 0);
	for (size_t i = 0; i < 50000; i++)
		bad += seen[i] != 1;
	EXPECT_INT(bad, 0);
	free(seen);
	seen = calloc(100000, 1);
	ASSERT(seen);
	EXPECT_INT(parallel_for(100000, 4, add_one, seen), -EDOM);
	free(seen);
}

static void expect_round_trip(int (*pack)(const void *, size_t, int, struct str *, struct err *),
			      int (*unpack)(const void *, size_t, size_t, struct str *,
					    struct err *))
{
	struct str text = {0}, packed = {0}, back = {0};

	for (int i = 0; i < 20000; i++)
		str_printf(&text, "%d;", i * i);
	EXPECT_INT(pack(text.data, text.len, 3, &packed, NULL), 0);
	EXPECT(packed.len < text.len);
	EXPECT_INT(unpack(packed.data, packed.len, 1 << 20, &back, NULL), 0);
	EXPECT(back.len == text.len && memcmp(back.data, text.data, text.len) == 0);
	str_clear(&back);
	EXPECT_INT(unpack(packed.data, packed.len, 1000, &back, NULL), -EFBIG);
	str_clear(&back);
	memset(packed.data + packed.len / 2, 0xff, 16);
	EXPECT(unpack(packed.data, packed.len, 1 << 20, &back, NULL) < 0 || back.len != text.len ||
	       memcmp(back.data, text.data, text.len) != 0);
	str_fini(&text);
	str_fini(&packed);
	str_fini(&back);
}

TEST(gzip_round_trip)
{
	struct str packed = {0}, back = {0};

	expect_round_trip(gzip_deflate, gzip_inflate);
	/* Two members and a cut. */
	EXPECT_INT(gzip_deflate("one ", 4, 6, &packed, NULL), 0);
	EXPECT_INT(gzip_deflate("two", 3, 6, &packed, NULL), 0);
	EXPECT_INT(gzip_inflate(packed.data, packed.len, 100, &back, NULL), 0);
	EXPECT_STR(str_text(&back), "one two");
	str_clear(&back);
	EXPECT_INT(gzip_inflate(packed.data, packed.len - 9, 100, &back, NULL), -ENODATA);
	str_fini(&packed);
	str_fini(&back);
}

TEST(zstd_round_trip)
{
	struct zstd_stream *stream;
	struct zstd_writer *writer;
	struct str packed = {0}, back = {0};

	expect_round_trip(zstd_compress, zstd_decompress);
	ASSERT(zstd_stream_new(&stream) == 0 && zstd_writer_new(1, &writer) == 0);
	for (int i = 0; i < 3; i++) {
		str_clear(&packed);
		EXPECT_INT(zstd_writer_compress(writer, "chunk ", 6, &packed), 0);
		EXPECT_INT(zstd_stream_decompress(stream, packed.data, packed.len, 100, &back), 0);
	}
	EXPECT_STR(str_text(&back), "chunk chunk chunk ");
	zstd_stream_free(stream);
	zstd_writer_free(writer);
	str_fini(&packed);
	str_fini(&back);
}

TEST(file_reads_bounded_and_writes_atomically)
{
	char path[64];
	CLEANUP_FREE char *data = NULL;
	struct file_map map;
	struct err err = {0};
	size_t size;

	snprintf(path, sizeof(path), "%s/a", tap_dir());
	EXPECT_INT(file_write_atomic(path, "hello", 5, 0644, &err), 0);
	EXPECT_INT(file_read(path, 100, &data, &size, &err), 0);
	EXPECT(size == 5 && strcmp(data, "hello") == 0);
	EXPECT_INT(file_map_open(path, &map, &err), 0);
	EXPECT(map.size == 5 && memcmp(map.data, "hello", 5) == 0);
	file_map_close(&map);
	EXPECT_INT(file_map_open(tap_dir(), &map, &err), -EISDIR);
	EXPECT_INT(file_map_open("/dev/null", &map, &err), -EINVAL);
	free(data);
	data = NULL;
	EXPECT_INT(file_read("/proc/self/maps", 16, &data, &size, &err), -EFBIG);
	EXPECT_INT(file_read("/nonexistent", 16, &data, &size, &err), -ENOENT);
	EXPECT_STR(err.text, "/nonexistent: No such file or directory");
}

static int ones_file(size_t size)
{
	char bytes[4096];
	int fd = memfd_create("ones", MFD_CLOEXEC);

	memset(bytes, 1, sizeof(bytes));
	for (size_t done = 0; fd >= 0 && done < size; done += sizeof(bytes))
		if (fd_write_all(fd, bytes, sizeof(bytes)) < 0)
			return -1;
	return fd;
}

TEST(what_is_cut_off_a_mapping_reads_as_zero)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * page;
	int fd = ones_file(size);
	struct steady_map map = {0}, other = {0};
	uint64_t broken = 0;

	ASSERT(fd >= 0);
	EXPECT_INT(steady_map_fd(fd, 0, &map), -EINVAL);
	ASSERT(steady_map_fd(fd, size, &map) == 0);
	ASSERT(steady_map_fd(fd, size, &other) == 0);
	EXPECT_INT(map.data[0] + map.data[size - 1], 2);
	EXPECT(!steady_map_broken(&map, &broken));
	steady_map_release(&map, 0, size);
	EXPECT_INT(map.data[0] + map.data[size - 1], 2);
	EXPECT_INT(ftruncate(fd, (off_t)(4 * page)), 0);
	EXPECT_INT(map.data[size - 1], 0);
	EXPECT(steady_map_broken(&map, &broken));
	EXPECT_INT(broken, size - page);
	EXPECT_INT(map.data[4 * page], 0);
	EXPECT(steady_map_broken(&map, &broken));
	EXPECT_INT(broken, 4 * page);
	EXPECT_INT(map.data[4 * page - 1], 1);
	EXPECT(!steady_map_broken(&other, &broken));
	steady_map_close(&map);
	EXPECT_INT(other.data[5 * page], 0);
	steady_map_close(&other);
	close(fd);
}

TEST(faults_outside_steady_mappings_stay_fatal)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = ones_file(page), status;
	struct rlimit none = {0};
	struct steady_map map;
	pid_t pid;

	ASSERT(fd >= 0 && steady_map_fd(fd, page, &map) == 0);
	pid = fork();
	if (pid == 0) {
		const volatile uint8_t *beyond;

		setrlimit(RLIMIT_CORE, &none);
		close(STDERR_FILENO); /* a sanitizer's last words */
		beyond = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
		_exit(beyond == MAP_FAILED ? 0 : beyond[page] & 0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	/* A sanitizer catches the signal and exits. */
	EXPECT(WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGABRT
				   : WEXITSTATUS(status) != 0);
	steady_map_close(&map);
	close(fd);
}

TEST(duration_text_keeps_three_digits)
{
	char buf[32];

	EXPECT_STR(duration_text(890, buf, sizeof(buf)), "890 ns");
	EXPECT_STR(duration_text(1234567, buf, sizeof(buf)), "1.23 ms");
	EXPECT_STR(duration_text(56700000, buf, sizeof(buf)), "56.7 ms");
}
