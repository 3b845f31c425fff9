/*
 * The call tree that flame graphs and reports are made from: the stacks of a profile with inlined
 * functions unfolded and equal names merged, in preorder.
 *
 * A frame is what a person calls one function: name, object, kind of code. A node is a frame in one
 * place of the tree; node 0 is the root and has frame 0 ("all"). A parent stands before its
 * children, and the descendants of node i are the nodes i + 1 .. end - 1. Siblings are ordered by
 * name.
 *
 * Values are int64 of one value type of the profile; samples whose value is not positive are left
 * out. A second profile may be added as the base of a comparison. Sums that leave int64 stick at
 * its limit.
 *
 * Use: tree_init(), tree_add() for each profile, tree_finish() once, then read. Functions return 0
 * or negative errno (-ENOMEM, -E2BIG for more than 2^32 - 2 nodes).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "profile/profile.h"

#define TREE_KIND_GROUP 15 /* beside enum profile_kind: the root and groups of samples */

/* Labels that tree_options.group combines to one level of the tree below the root. */
#define TREE_GROUP_COMM     1U
#define TREE_GROUP_PID      2U
#define TREE_GROUP_TID      4U
#define TREE_GROUP_CPU      8U
#define TREE_GROUP_CGROUP   16U
#define TREE_GROUP_PIDNS    32U
#define TREE_GROUP_CGROUPNS 64U

struct tree_frame {
	uint32_t name, object, file; /* in tree.strings; object is the whole path; 0 unknown */
	uint32_t group;              /* in tree.groups, 0: none */
	uint8_t kind;                /* enum profile_kind or TREE_KIND_GROUP */
};

struct tree_group {
	uint32_t comm, cgroup, pidns, cgroupns; /* in tree.strings, 0 unknown */
	int64_t pid, tid, cpu;                  /* -1 unknown */
};

struct tree_node {
	uint32_t parent, frame, depth, end;
	int64_t self, total;
	int64_t base_self, base_total; /* of the profile added as TREE_BASE */
};

struct tree_options {
	uint32_t value;     /* index of the value type */
	unsigned group;     /* TREE_GROUP_ mask: a level of groups below the root */
	bool reversed;      /* leaves at the root, their callers above: the bottom-up view */
	const char *comm;   /* only samples whose label comm matches this glob; NULL: all */
	const char *cgroup; /* the same of the label cgroup */
};

enum tree_side {
	TREE_NEW,
	TREE_BASE,
};

struct tree {
	struct strtab strings;
	VEC(struct tree_frame) frames;
	VEC(struct tree_group) groups;
	VEC(struct tree_node) nodes;
	int64_t all_total, all_base_total; /* filtered samples included: what shares are of */
	struct hash_index frame_index, group_index;
	struct u64_map children; /* (parent, frame) to node, while building */
};

int tree_init(struct tree *tree);
void tree_fini(struct tree *tree);
int tree_add(struct tree *tree, const struct profile *profile, const struct tree_options *options,
	     enum tree_side side);
int tree_finish(struct tree *tree);

static inline const struct tree_frame *tree_frame_of(const struct tree *tree, uint32_t node)
{
	return &tree->frames.data[tree->nodes.data[node].frame];
}

static inline const char *tree_name(const struct tree *tree, uint32_t node)
{
	return strtab_text(&tree->strings, tree_frame_of(tree, node)->name);
}

/* The part of a path behind its last slash; names in brackets stay whole. */
const char *tree_object_base(const char *path);

/* a + b, at the limits of int64 when the sum leaves it. */
static inline int64_t tree_sum(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}
