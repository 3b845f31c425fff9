/* Names by build id on disk: kept, merged, damaged, outdated, bounded. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/util.h"
#include "harness/tap.h"
#include "symbols/name-cache-internal.h"

static char dir[64], file[128], source[64];
static const struct build_id id = {{1, 2, 3, 4, 5, 6, 7, 8}, 8};

__attribute__((constructor)) static void name_files(void)
{
	snprintf(dir, sizeof(dir), "%s/names", tap_dir());
	snprintf(file, sizeof(file), "%s/0102030405060708", dir);
	snprintf(source, sizeof(source), "%s/object", tap_dir());
}

static void put(const char *path, const char *text)
{
	EXPECT_INT(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static void add(struct name_cache *cache, uint64_t address, const char *name)
{
	const struct inline_frame frames[2] = {
		{.function = name,
		 .raw_function = "_Zraw",
		 .file = "a.cc",
		 .line = 7,
		 .column = 3,
		 .inlined = true},
		{.function = "outer", .raw_function = "outer", .line = 9},
	};

	name_cache_add(cache, address, frames, 2);
}

static void keep(uint64_t address, const char *name)
{
	struct name_cache *cache = name_cache_open(dir, &id, 0);

	ASSERT(cache);
	name_cache_source(cache, source);
	add(cache, address, name);
	name_cache_save(cache);
	name_cache_free(cache);
}

/* The innermost function that is kept for an address; "" when none is. */
static const char *kept(uint64_t address, uint64_t base)
{
	static char name[64];
	struct name_cache *cache = name_cache_open(dir, &id, base);
	struct inline_frame frames[4];

	name[0] = '\0';
	if (cache && name_cache_find(cache, address, frames, 4) > 0)
		snprintf(name, sizeof(name), "%s", frames[0].function);
	name_cache_free(cache);
	return name;
}

TEST(answers_are_kept)
{
	struct name_cache *cache;
	struct inline_frame frames[4];

	put(source, "one");
	keep(0x1000, "inner");
	cache = name_cache_open(dir, &id, 0);
	ASSERT(cache);
	ASSERT(name_cache_find(cache, 0x1000, frames, 4) == 2);
	EXPECT_STR(frames[0].function, "inner");
	EXPECT_STR(frames[0].raw_function, "_Zraw");
	EXPECT_STR(frames[0].file, "a.cc");
	EXPECT_INT(frames[0].line, 7);
	EXPECT_INT(frames[0].column, 3);
	EXPECT(frames[0].inlined && !frames[1].inlined && !frames[1].file);
	EXPECT_INT(name_cache_find(cache, 0x1001, frames, 4), -ENOENT);
	EXPECT_INT(name_cache_find(cache, 0x1000, frames, 1), 1);
	EXPECT_STR(frames[0].function, "outer");
	name_cache_free(cache);
	EXPECT_STR(kept(0x1000, 0x400000), "");
}

TEST(two_writers_keep_both)
{
	struct name_cache *cache = name_cache_open(dir, &id, 0);

	ASSERT(cache);
	name_cache_source(cache, source);
	add(cache, 0x2000, "first");
	keep(0x3000, "second");
	name_cache_save(cache);
	name_cache_free(cache);
	EXPECT_STR(kept(0x1000, 0), "inner");
	EXPECT_STR(kept(0x2000, 0), "first");
	EXPECT_STR(kept(0x3000, 0), "second");
}

TEST(an_empty_answer_is_an_answer)
{
	struct name_cache *cache = name_cache_open(dir, &id, 0);
	struct inline_frame frame;

	ASSERT(cache);
	name_cache_source(cache, source);
	name_cache_add(cache, 0x500, NULL, 0);
	name_cache_save(cache);
	name_cache_free(cache);
	cache = name_cache_open(dir, &id, 0);
	ASSERT(cache);
	EXPECT_INT(name_cache_find(cache, 0x500, &frame, 1), 0);
	name_cache_free(cache);
}

TEST(damage_is_ignored_and_mended)
{
	char *data;
	size_t size;

	ASSERT(file_read(file, 1 << 20, &data, &size, NULL) == 0);
	for (size_t i = 0; i < size; i++) {
		data[i] ^= 0x10;
		EXPECT_INT(file_replace(file, data, size, 0600), 0);
		if (kept(0x1000, 0)[0] != '\0')
			EXPECT_STR("what was damaged was used", "");
		data[i] ^= 0x10;
	}
	for (size_t cut = 0; cut < size; cut += 13) {
		EXPECT_INT(file_replace(file, data, cut, 0600), 0);
		if (kept(0x1000, 0)[0] != '\0')
			EXPECT_STR("what was cut was used", "");
	}
	free(data);
	keep(0x4000, "again");
	EXPECT_STR(kept(0x4000, 0), "again");
	EXPECT_STR(kept(0x1000, 0), "");
}

/* Frames that belong to several addresses would be kept once for each of them. */
TEST(frames_in_disorder_are_damage)
{
	struct {
		struct name_cache_header header;
		uint64_t addresses[2];
		uint32_t first[3];
		struct name_cache_frame frames[2];
		char texts[4]; /* all of it without padding */
	} __attribute__((packed, aligned(8))) bytes = {
		.header = {.magic = NAME_CACHE_MAGIC,
			   .version = NAME_CACHE_VERSION,
			   .addresses = 2,
			   .frames = 2,
			   .texts = sizeof(bytes.texts)},
		.addresses = {16, 32},
		.first = {0, 1, 2},
		.texts = "",
	};
	static const uint32_t orders[][4] = {{0, 1, 2, true},
					     {0, 0, 2, true},
					     {0, 2, 1, false},
					     {1, 0, 2, false},
					     {0, 1, 3, false}};
	const size_t from = offsetof(struct name_cache_header, version);
	struct name_table table;

	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		memcpy(bytes.first, orders[i], sizeof(bytes.first));
		bytes.header.checksum = hash_bytes((char *)&bytes + from, sizeof(bytes) - from);
		EXPECT_INT(name_table_parse(&bytes, sizeof(bytes), &table), orders[i][3]);
	}
}

TEST(another_debug_file_has_other_answers)
{
	put(source, "another one");
	EXPECT_STR(kept(0x4000, 0), "");
	keep(0x5000, "new");
	EXPECT_STR(kept(0x4000, 0), "");
	EXPECT_STR(kept(0x5000, 0), "new");
	/* Names stay right when the debug file is gone. */
	EXPECT_INT(unlink(source), 0);
	EXPECT_STR(kept(0x5000, 0), "new");
}

TEST(the_folder_is_bounded)
{
	char path[192];
	struct timespec times[2] = {{1000, 0}, {1000, 0}};

	for (int i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "%s/old%d", dir, i);
		put(path, "0123456789012345678901234567890123456789");
		times[1].tv_sec = 1000 + i;
		EXPECT_INT(utimensat(AT_FDCWD, path, times, 0), 0);
	}
	name_cache_prune(dir, 1000);
	EXPECT_STR(kept(0x5000, 0), "new");
	name_cache_prune(dir, 400);
	EXPECT(access(file, R_OK) == 0);
	snprintf(path, sizeof(path), "%s/old0", dir);
	EXPECT(access(path, R_OK) < 0);
	name_cache_prune(dir, 0);
	EXPECT(access(file, R_OK) < 0);
}

TEST(without_a_place_there_is_none)
{
	const struct build_id none = {0};

	EXPECT(name_cache_open(NULL, &id, 0) == NULL);
	EXPECT(name_cache_open(dir, &none, 0) == NULL);
}
