/* Call trees and reports of a profile with inlined functions, recursion, processes and a bare
 * address. */
#include "harness/tap.h"
#include "profile/profile.h"
#include "view/flamegraph.h"
#include "view/report.h"
#include "view/tree.h"

struct fixture {
	struct profile profile;
	uint32_t main, inlined, bare, labels[2];
};

static uint32_t location(struct profile *p, uint32_t mapping, uint64_t address,
			 const char *const *names, uint32_t count)
{
	struct profile_location l = {.mapping = mapping, .address = address, .line_count = count};
	struct profile_line lines[4] = {0};
	uint32_t id = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct profile_function f = {0};

		strtab_intern_text(&p->strings, names[i], &f.name);
		profile_function(p, &f, &lines[i].function);
	}
	profile_location(p, &l, lines, &id);
	return id;
}

static uint32_t labels(struct profile *p, const char *comm, int64_t pid)
{
	struct profile_label set[2] = {{0}, {.number = pid}};
	uint32_t id = 0;

	strtab_intern_text(&p->strings, "comm", &set[0].key);
	strtab_intern_text(&p->strings, comm, &set[0].text);
	strtab_intern_text(&p->strings, "pid", &set[1].key);
	profile_label_set(p, set, 2, &id);
	return id;
}

/* main -> outer with inner inlined (7 in pid 1, 3 in pid 2); main -> main (5 in pid 1); bare
 * address (2). */
static bool fixture_init(struct fixture *f)
{
	static const char *const mains[] = {"main"}, *const inlines[] = {"inner", "outer"};
	struct profile_mapping mapping = {.start = 0x1000, .limit = 0x9000, .offset = 0x200};
	struct profile *p = &f->profile;
	uint32_t map = 0, stack = 0, leaf = 0;

	if (profile_init(p) < 0 || profile_add_value_type(p, "samples", "count") < 0)
		return false;
	strtab_intern_text(&p->strings, "/usr/bin/prog", &mapping.filename);
	profile_mapping(p, &mapping, &map);
	f->main = location(p, map, 0x1100, mains, 1);
	f->inlined = location(p, map, 0x1200, inlines, 2);
	f->bare = location(p, map, 0x1300, NULL, 0);
	f->labels[0] = labels(p, "prog", 1);
	f->labels[1] = labels(p, "prog", 2);
	profile_stack(p, 0, f->main, &stack);
	profile_stack(p, stack, f->inlined, &leaf);
	profile_add(p, leaf, f->labels[0], &(int64_t){7});
	profile_add(p, leaf, f->labels[1], &(int64_t){3});
	profile_stack(p, stack, f->main, &leaf);
	profile_add(p, leaf, f->labels[0], &(int64_t){5});
	profile_stack(p, 0, f->bare, &leaf);
	profile_add(p, leaf, f->labels[0], &(int64_t){2});
	return true;
}

static bool make_tree(struct fixture *f, const struct tree_options *options, struct tree *tree)
{
	return fixture_init(f) && tree_init(tree) == 0 &&
	       tree_add(tree, &f->profile, options, TREE_NEW) == 0 && tree_finish(tree) == 0;
}

TEST(tree_is_a_preorder_with_inlined_functions_unfolded)
{
	static const char *const want[] = {"all", "main", "main", "outer", "inner", "prog+0x500"};
	static const int totals[] = {17, 15, 5, 10, 10, 2};
	const struct tree_options options = {0};
	struct fixture f;
	struct tree tree;

	ASSERT(make_tree(&f, &options, &tree));
	EXPECT_INT(tree.nodes.len, 6);
	for (uint32_t i = 0; i < tree.nodes.len && i < 6; i++) {
		EXPECT_STR(tree_name(&tree, i), want[i]);
		EXPECT_INT(tree.nodes.data[i].total, totals[i]);
	}
	EXPECT_INT(tree.nodes.data[1].end, 5);
	EXPECT_INT(tree.nodes.data[4].depth, 3);
	tree_fini(&tree);
	profile_fini(&f.profile);
}

TEST(tree_reversed_has_the_leaves_first)
{
	const struct tree_options options = {.reversed = true};
	struct fixture f;
	struct tree tree;

	ASSERT(make_tree(&f, &options, &tree));
	EXPECT_STR(tree_name(&tree, 1), "inner");
	EXPECT_STR(tree_name(&tree, 2), "outer");
	EXPECT_STR(tree_name(&tree, 3), "main");
	EXPECT_INT(tree.nodes.data[3].total, 10);
	tree_fini(&tree);
	profile_fini(&f.profile);
}

TEST(report_counts_recursion_once_and_tells_what_all_samples_share)
{
	const struct tree_options options = {.group = TREE_GROUP_COMM | TREE_GROUP_PID};
	const struct report_options rows = {.keys = REPORT_SYMBOL, .children = true};
	struct report report;
	struct fixture f;
	struct tree tree;

	ASSERT(make_tree(&f, &options, &tree));
	ASSERT(report_build(&tree, &rows, &report) == 0);
	ASSERT(report.rows.len == 4);
	EXPECT_STR(strtab_text(&tree.strings, report.rows.data[0].symbol), "main");
	EXPECT_INT(report.rows.data[0].total, 15);
	EXPECT_INT(report.rows.data[0].self, 5);
	EXPECT_INT(report.rows.data[0].pid, -1); /* two processes */
	EXPECT_STR(strtab_text(&tree.strings, report.rows.data[0].comm), "prog");
	EXPECT_STR(strtab_text(&tree.strings, report.rows.data[3].symbol), "prog+0x500");
	EXPECT_INT(report.rows.data[3].pid, 1);
	EXPECT_INT(report.all, 17);
	report_fini(&report);
	tree_fini(&tree);
	profile_fini(&f.profile);
}

TEST(flame_graph_of_nothing_is_refused)
{
	const struct flamegraph_options options = {.min_share = -1};
	struct str out = {0};
	struct tree tree;

	ASSERT(tree_init(&tree) == 0);
	EXPECT_INT(tree_finish(&tree), 0);
	EXPECT(flamegraph_svg(&tree, &options, &out) < 0);
	EXPECT(flamegraph_html(&tree, &options, &out) < 0);
	str_fini(&out);
	tree_fini(&tree);
}
