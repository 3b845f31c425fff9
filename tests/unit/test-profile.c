#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "harness/tap.h"
#include "profile/profile.h"

static uint32_t intern(struct profile *profile, const char *text)
{
	uint32_t id = 0;

	EXPECT_INT(strtab_intern_text(&profile->strings, text, &id), 0);
	return id;
}

static uint32_t named_location(struct profile *profile, const char *name)
{
	struct profile_function function = {.name = intern(profile, name)};
	struct profile_location location = {.line_count = 1};
	struct profile_line line = {0};
	uint32_t id = 0;

	function.system_name = function.name;
	EXPECT_INT(profile_function(profile, &function, &line.function), 0);
	EXPECT_INT(profile_location(profile, &location, &line, &id), 0);
	return id;
}

static void add_stack(struct profile *profile, const char *const *names, size_t count,
		      int64_t value)
{
	uint32_t stack = 0;

	for (size_t i = 0; i < count; i++)
		EXPECT_INT(profile_stack(profile, stack, named_location(profile, names[i]), &stack),
			   0);
	EXPECT_INT(profile_add(profile, stack, 0, &value), 0);
}

TEST(id_0_means_none_everywhere)
{
	struct profile profile;

	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(profile.mappings.len, 1);
	EXPECT_INT(profile.functions.len, 1);
	EXPECT_INT(profile.locations.len, 1);
	EXPECT_INT(profile.stacks.len, 1);
	EXPECT_INT(profile.label_sets.len, 1);
	EXPECT_STR(strtab_text(&profile.strings, 0), "");
	EXPECT_INT(profile_default_value(&profile), 0);
	profile_fini(&profile);
}

TEST(equal_entries_share_an_id)
{
	struct profile_mapping mapping = {.start = 0x1000, .limit = 0x2000, .has_functions = true};
	struct profile_location location = {.address = 0x1234};
	struct profile_line lines[2] = {{.line = 3}, {.line = 4}};
	struct profile profile;
	uint32_t a, b, c;

	ASSERT(profile_init(&profile) == 0);
	mapping.filename = intern(&profile, "/usr/bin/x");
	EXPECT_INT(profile_mapping(&profile, &mapping, &a), 0);
	mapping.has_functions = false;
	EXPECT_INT(profile_mapping(&profile, &mapping, &b), 0);
	EXPECT_INT(a, b);
	EXPECT(!profile.mappings.data[a].has_functions);
	mapping.limit++;
	EXPECT_INT(profile_mapping(&profile, &mapping, &b), 0);
	EXPECT(a != b);

	location.mapping = a;
	EXPECT_INT(profile_location(&profile, &location, NULL, &a), 0);
	EXPECT_INT(profile_location(&profile, &location, NULL, &b), 0);
	EXPECT_INT(a, b);
	location.line_count = 2;
	EXPECT_INT(profile_location(&profile, &location, lines, &b), 0);
	EXPECT_INT(profile_location(&profile, &location, lines, &c), 0);
	EXPECT(a != b);
	EXPECT_INT(b, c);
	lines[1].column = 1;
	EXPECT_INT(profile_location(&profile, &location, lines, &c), 0);
	EXPECT(b != c);
	EXPECT_INT(profile_location_set_lines(&profile, a, lines, 2), 0);
	EXPECT_INT(profile.lines.data[profile.locations.data[a].first_line + 1].column, 1);
	EXPECT_INT(profile_location_set_lines(&profile, 99, lines, 2), -EINVAL);
	EXPECT_INT(profile_location_set_lines(&profile, 0, lines, 2), -EINVAL);
	profile_fini(&profile);
}

TEST(stacks_are_a_prefix_tree)
{
	struct profile profile;
	uint32_t a, b, c, d;

	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(profile_stack(&profile, 0, named_location(&profile, "main"), &a), 0);
	EXPECT_INT(profile_stack(&profile, a, named_location(&profile, "f"), &b), 0);
	EXPECT_INT(profile_stack(&profile, a, named_location(&profile, "f"), &c), 0);
	EXPECT_INT(profile_stack(&profile, 0, named_location(&profile, "f"), &d), 0);
	EXPECT_INT(b, c);
	EXPECT(b != d);
	EXPECT(profile.stacks.data[b].parent == a && a < b);
	profile_fini(&profile);
}

TEST(labels_are_a_set_in_order)
{
	struct profile profile;
	struct profile_label x, y, pair[2];
	uint32_t a, b, none;
	int64_t number = 0;

	ASSERT(profile_init(&profile) == 0);
	x = (struct profile_label){.key = intern(&profile, "thread"),
				   .text = intern(&profile, "main")};
	y = (struct profile_label){.key = intern(&profile, "pid"), .number = -7};
	pair[0] = x;
	pair[1] = y;
	EXPECT_INT(profile_label_set(&profile, pair, 2, &a), 0);
	pair[0] = y;
	pair[1] = x;
	EXPECT_INT(profile_label_set(&profile, pair, 2, &b), 0);
	EXPECT_INT(a, b);
	EXPECT_INT(profile.labels.len, 2);
	EXPECT_INT(profile_label_set(&profile, pair, 1, &b), 0);
	EXPECT(a != b);
	EXPECT_INT(profile_label_set(&profile, NULL, 0, &none), 0);
	EXPECT_INT(none, 0);
	EXPECT_STR(profile_label_text(&profile, a, "thread"), "main");
	EXPECT(profile_label_text(&profile, a, "pid") == NULL);
	EXPECT(profile_label_number(&profile, a, "pid", &number));
	EXPECT_INT(number, -7);
	EXPECT(!profile_label_number(&profile, a, "thread", &number));
	EXPECT(profile_label_text(&profile, 99, "thread") == NULL);
	profile_fini(&profile);
}

TEST(sums_overflow_loudly)
{
	struct profile profile;
	int64_t values[2] = {1, INT64_MAX}, total = -1;

	ASSERT(profile_init(&profile) == 0);
	EXPECT_INT(profile_add_value_type(&profile, "samples", "count"), 0);
	EXPECT_INT(profile_add_value_type(&profile, "cpu", "nanoseconds"), 0);
	EXPECT_INT(profile_add(&profile, 0, 0, values), 0);
	EXPECT_INT(profile_add(&profile, 0, 0, values), -EOVERFLOW);
	EXPECT_INT(profile.values.data[0], 1);
	EXPECT_INT(profile.samples.len, 1);
	values[1] = INT64_MIN;
	EXPECT_INT(profile_add(&profile, 0, 0, values), 0);
	EXPECT_INT(profile.values.data[0], 2);
	EXPECT_INT(profile.values.data[1], -1);
	EXPECT_INT(profile_total(&profile, 0, &total), 0);
	EXPECT_INT(total, 2);
	EXPECT_INT(profile_total(&profile, 2, &total), -EINVAL);
	EXPECT_INT(profile_add_value_type(&profile, "late", "count"), -EINVAL);
	EXPECT_INT(profile_find_value(&profile, "cpu"), 1);
	EXPECT_INT(profile_find_value(&profile, "heap"), -ENOENT);
	EXPECT_INT(profile_default_value(&profile), 1);
	profile.default_type = intern(&profile, "samples");
	EXPECT_INT(profile_default_value(&profile), 0);
	profile_fini(&profile);
}

TEST(merge_translates_and_adds)
{
	const char *const ab[] = {"a", "b"}, *const ac[] = {"a", "c"};
	struct profile x, y;
	int64_t total;

	ASSERT(profile_init(&x) == 0 && profile_init(&y) == 0);
	intern(&y, "shift the ids of the second profile");
	profile_add_value_type(&x, "samples", "count");
	profile_add_value_type(&y, "samples", "count");
	add_stack(&x, ab, 2, 3);
	add_stack(&y, ac, 2, 5);
	add_stack(&y, ab, 2, 7);
	x.time_ns = 100;
	y.time_ns = 90;
	x.duration_ns = 10;
	y.duration_ns = 5;
	x.period = 1;
	y.period = 2;
	EXPECT_INT(profile_merge(&x, &y), 0);
	EXPECT_INT(x.samples.len, 2);
	EXPECT_INT(x.values.data[0], 10);
	EXPECT_INT(x.values.data[1], 5);
	EXPECT_INT(x.functions.len, 4);
	EXPECT_INT(x.time_ns, 90);
	EXPECT_INT(x.duration_ns, 15);
	EXPECT_INT(x.period, 2);
	EXPECT_INT(profile_total(&x, 0, &total), 0);
	EXPECT_INT(total, 15);
	profile_fini(&x);
	profile_fini(&y);
}

TEST(merge_checks_types_and_allows_another_order)
{
	struct profile x, y, z;
	int64_t values[2] = {1, 100};

	ASSERT(profile_init(&x) == 0 && profile_init(&y) == 0 && profile_init(&z) == 0);
	profile_add_value_type(&x, "samples", "count");
	profile_add_value_type(&x, "cpu", "nanoseconds");
	profile_add_value_type(&y, "cpu", "nanoseconds");
	profile_add_value_type(&y, "samples", "count");
	profile_add(&y, 0, 0, values);
	EXPECT_INT(profile_merge(&x, &y), 0);
	EXPECT_INT(x.values.data[0], 100);
	EXPECT_INT(x.values.data[1], 1);
	profile_add_value_type(&z, "cpu", "seconds");
	EXPECT_INT(profile_merge(&x, &z), -EINVAL);
	profile_add_value_type(&z, "samples", "count");
	EXPECT_INT(profile_merge(&x, &z), -EINVAL);
	EXPECT_INT(profile_merge(&x, &x), -EINVAL);
	y.drop_frames = intern(&y, "malloc.*");
	EXPECT_INT(profile_merge(&x, &y), -EINVAL);
	EXPECT_INT(x.values.data[0], 100);
	profile_fini(&x);
	profile_fini(&y);
	profile_fini(&z);
}

TEST(merge_overflow_is_an_error)
{
	const char *const a[] = {"a"};
	struct profile x, y;

	ASSERT(profile_init(&x) == 0 && profile_init(&y) == 0);
	profile_add_value_type(&x, "samples", "count");
	profile_add_value_type(&y, "samples", "count");
	add_stack(&x, a, 1, INT64_MAX);
	add_stack(&y, a, 1, 1);
	EXPECT_INT(profile_merge(&x, &y), -EOVERFLOW);
	profile_fini(&x);
	profile_fini(&y);
}

TEST(kinds_follow_object_names)
{
	static const struct {
		const char *name;
		enum profile_kind kind;
	} cases[] = {
		{"", PROFILE_USER},
		{"/usr/lib/libc.so.6", PROFILE_USER},
		{"[kernel.kallsyms]_text", PROFILE_KERNEL},
		{"[kernel.vmlinux]", PROFILE_KERNEL},
		{"/lib/modules/6.1/kernel/fs/xfs/xfs.ko.xz", PROFILE_KERNEL},
		{"/usr/lib/debug/boot/vmlinux-6.1", PROFILE_KERNEL},
		{"bpf_prog_6deef7357e7b4530_sd_fw", PROFILE_KERNEL},
		{"[vdso]", PROFILE_VDSO},
		{"/tmp/perf-1234.map", PROFILE_JIT},
		{"//anon", PROFILE_JIT},
		{"/home/x/.debug/jit/jitted-12-3.so", PROFILE_JIT},
		{"[guest.kernel.kallsyms]", PROFILE_GUEST},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_expect(profile_kind_of_object(cases[i].name) == cases[i].kind, __FILE__,
			   __LINE__, "%s", cases[i].name);
}

/* What a large recording does: a million samples of 20 frames over a tree of some 30,000 stacks. */
TEST(a_million_stacks_of_20_frames)
{
	struct profile profile;
	struct timespec begin, end;
	uint32_t locations[64], state = 1;
	int64_t one = 1, total = 0;
	int r = 0;

	ASSERT(profile_init(&profile) == 0);
	profile_add_value_type(&profile, "samples", "count");
	for (uint32_t i = 0; i < 64; i++) {
		struct profile_location location = {.address = 0x1000 + i};

		ASSERT(profile_location(&profile, &location, NULL, &locations[i]) == 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint32_t i = 0; i < 1000000 && r == 0; i++) {
		uint32_t stack = 0, choice;

		state = state * 1664525 + 1013904223;
		choice = state >> 16;
		for (uint32_t depth = 0; depth < 20 && r == 0; depth++) {
			uint32_t bit = depth < 8 ? 0 : choice >> (depth - 8) & 1;

			r = profile_stack(&profile, stack, locations[depth * 2 + bit], &stack);
		}
		if (r == 0)
			r = profile_add(&profile, stack, 0, &one);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	EXPECT_INT(r, 0);
	EXPECT_INT(profile_total(&profile, 0, &total), 0);
	EXPECT_INT(total, 1000000);
	EXPECT_INT(profile.samples.len, 4096);
	printf("# %zu stacks, %zu samples, %.3f s\n", profile.stacks.len, profile.samples.len,
	       (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	profile_fini(&profile);
}
