/*
 * Building: every stack of the profile that has a sample is walked once; a map from (group, stack)
 * to its node makes the walk stop at the first stack known, and a map from (parent node, frame) to
 * the child merges equal names. Both are linear in the number of distinct stacks, not of samples.
 *
 * Finishing: nodes were made parents first, so one pass backwards sums the totals. Then they are
 * sorted and renumbered into preorder.
 */
#include "view/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"

#define UNKNOWN_NUMBER (-1)

int tree_init(struct tree *tree)
{
	struct tree_frame root = {.kind = TREE_KIND_GROUP};
	int r;

	*tree = (struct tree){0};
	r = strtab_init(&tree->strings);
	if (r < 0)
		return r;
	r = strtab_intern_text(&tree->strings, "all", &root.name);
	if (r == 0)
		r = vec_push(&tree->frames, root);
	if (r == 0)
		r = vec_push(&tree->groups, ((struct tree_group){0, UNKNOWN_NUMBER, UNKNOWN_NUMBER,
								 UNKNOWN_NUMBER}));
	if (r == 0)
		r = vec_push(&tree->nodes, (struct tree_node){0});
	if (r < 0)
		tree_fini(tree);
	return r;
}

void tree_fini(struct tree *tree)
{
	strtab_fini(&tree->strings);
	vec_fini(&tree->frames);
	vec_fini(&tree->groups);
	vec_fini(&tree->nodes);
	hash_index_fini(&tree->frame_index);
	hash_index_fini(&tree->group_index);
	u64_map_fini(&tree->children);
}

const char *tree_object_base(const char *path)
{
	const char *slash = path[0] == '[' ? NULL : strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool frame_equal(const void *owner, uint32_t id, const void *key)
{
	const struct tree_frame *have = &((const struct tree *)owner)->frames.data[id], *want = key;

	return have->name == want->name && have->object == want->object &&
	       have->kind == want->kind && have->group == want->group;
}

static int add_frame(struct tree *tree, const struct tree_frame *frame, uint32_t *ret_id)
{
	uint64_t hash = hash_pair(((uint64_t)frame->name << 32) | frame->object,
				  ((uint64_t)frame->group << 8) | frame->kind);
	uint32_t id = hash_index_find(&tree->frame_index, hash, frame_equal, tree, frame);
	int r;

	if (id == HASH_NONE) {
		id = (uint32_t)tree->frames.len;
		r = vec_push(&tree->frames, *frame);
		if (r == 0)
			r = hash_index_add(&tree->frame_index, hash, id);
		if (r < 0)
			return r;
	} else if (tree->frames.data[id].file == 0) {
		tree->frames.data[id].file = frame->file;
	}
	*ret_id = id;
	return 0;
}

/* What is known while one profile is added. */
struct builder {
	struct tree *tree;
	const struct profile *profile;
	const struct tree_options *options;
	uint32_t *line_frames;      /* per line of the profile */
	uint32_t *location_frames;  /* per location, when it has no lines */
	uint32_t *group_nodes;      /* per label set; HASH_NONE: filtered out */
	struct u64_map stack_nodes; /* (group node, stack) */
	VEC(uint32_t) path;
};

static int intern_id(struct tree *tree, const struct profile *profile, uint32_t id, uint32_t *ret)
{
	if (id >= profile->strings.entries.len) {
		*ret = 0;
		return 0;
	}
	return strtab_intern(&tree->strings, profile->strings.entries.data[id].text,
			     profile->strings.entries.data[id].len, ret);
}

/* Folded text says by an ending what its frames are. */
static uint8_t kind_of_name(const char *name, uint8_t kind)
{
	size_t len = strlen(name);

	if (kind != PROFILE_USER || len < 4 || strncmp(name + len - 4, "_[", 2) != 0 ||
	    name[len - 1] != ']')
		return kind;
	return name[len - 2] == 'k' ? PROFILE_KERNEL : name[len - 2] == 'j' ? PROFILE_JIT : kind;
}

static int unnamed_frame(struct builder *b, const struct profile_location *location,
			 struct tree_frame *frame)
{
	const struct profile_mapping *mapping = &b->profile->mappings.data[location->mapping];
	const char *object = strtab_text(&b->tree->strings, frame->object);
	char name[512];

	if (frame->object == 0 && location->address == 0)
		snprintf(name, sizeof(name), "[unknown]");
	else if (frame->object == 0)
		snprintf(name, sizeof(name), "0x%llx", (unsigned long long)location->address);
	else
		snprintf(
			name, sizeof(name), "%.400s+0x%llx", tree_object_base(object),
			(unsigned long long)(location->address - mapping->start + mapping->offset));
	return strtab_intern_text(&b->tree->strings, name, &frame->name);
}

static int location_frames(struct builder *b, uint32_t id)
{
	const struct profile_location *location = &b->profile->locations.data[id];
	const struct profile_mapping *mapping = &b->profile->mappings.data[location->mapping];
	struct tree_frame frame = {.kind = (uint8_t)mapping->kind};
	int r = intern_id(b->tree, b->profile, mapping->filename, &frame.object);

	if (r < 0)
		return r;
	if (location->line_count == 0) {
		r = unnamed_frame(b, location, &frame);
		return r < 0 ? r : add_frame(b->tree, &frame, &b->location_frames[id]);
	}
	for (uint32_t i = 0; i < location->line_count; i++) {
		uint32_t line = location->first_line + i;
		const struct profile_function *function =
			&b->profile->functions.data[b->profile->lines.data[line].function];
		struct tree_frame named = frame;

		r = intern_id(b->tree, b->profile,
			      function->name ? function->name : function->system_name, &named.name);
		if (r == 0)
			r = intern_id(b->tree, b->profile, function->filename, &named.file);
		if (r == 0 && named.name == 0)
			r = unnamed_frame(b, location, &named);
		if (r < 0)
			return r;
		named.kind = kind_of_name(strtab_text(&b->tree->strings, named.name), named.kind);
		r = add_frame(b->tree, &named, &b->line_frames[line]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int child_node(struct tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	uint64_t key = ((uint64_t)parent << 32) | frame;
	struct tree_node node = {.parent = parent, .frame = frame};
	int r;

	if (u64_map_get(&tree->children, key, ret_node))
		return 0;
	if (tree->nodes.len >= HASH_NONE - 1)
		return -E2BIG;
	r = vec_push(&tree->nodes, node);
	if (r == 0)
		r = u64_map_put(&tree->children, key, (uint32_t)(tree->nodes.len - 1));
	if (r == 0)
		*ret_node = (uint32_t)(tree->nodes.len - 1);
	return r;
}

static bool group_equal(const void *owner, uint32_t id, const void *key)
{
	const struct tree_group *have = &((const struct tree *)owner)->groups.data[id], *want = key;

	return have->comm == want->comm && have->pid == want->pid && have->tid == want->tid &&
	       have->cpu == want->cpu && have->cgroup == want->cgroup &&
	       have->pidns == want->pidns && have->cgroupns == want->cgroupns;
}

static int group_name(struct tree *tree, const struct tree_group *group, uint32_t *ret_name)
{
	struct str text = {0};
	int r;

	str_puts(&text, group->comm ? strtab_text(&tree->strings, group->comm) : "");
	if (group->pid >= 0)
		str_printf(&text, "%spid %lld", text.len ? ", " : "", (long long)group->pid);
	if (group->tid >= 0)
		str_printf(&text, "%stid %lld", text.len ? ", " : "", (long long)group->tid);
	if (group->cpu >= 0)
		str_printf(&text, "%scpu %lld", text.len ? ", " : "", (long long)group->cpu);
	if (group->cgroup)
		str_printf(&text, "%scgroup %s", text.len ? ", " : "",
			   strtab_text(&tree->strings, group->cgroup));
	if (group->pidns)
		str_printf(&text, "%s%s", text.len ? ", " : "",
			   strtab_text(&tree->strings, group->pidns));
	if (group->cgroupns)
		str_printf(&text, "%s%s", text.len ? ", " : "",
			   strtab_text(&tree->strings, group->cgroupns));
	if (text.len == 0)
		str_puts(&text, "[unknown]");
	r = str_status(&text);
	if (r == 0)
		r = strtab_intern(&tree->strings, text.data, text.len, ret_name);
	str_fini(&text);
	return r;
}

static int add_group(struct tree *tree, const struct tree_group *group, uint32_t *ret_node)
{
	uint64_t hash = hash_pair(
		hash_pair((uint64_t)group->cgroup << 32 | group->comm, (uint64_t)group->pid),
		hash_pair((uint64_t)group->tid ^ (uint64_t)group->pidns << 32,
			  (uint64_t)group->cpu ^ (uint64_t)group->cgroupns << 32));
	uint32_t id = hash_index_find(&tree->group_index, hash, group_equal, tree, group);
	struct tree_frame frame = {.kind = TREE_KIND_GROUP};
	uint32_t frame_id;
	int r;

	if (id == HASH_NONE) {
		id = (uint32_t)tree->groups.len;
		r = vec_push(&tree->groups, *group);
		if (r == 0)
			r = hash_index_add(&tree->group_index, hash, id);
		if (r < 0)
			return r;
	}
	frame.group = id;
	r = group_name(tree, group, &frame.name);
	if (r == 0)
		r = add_frame(tree, &frame, &frame_id);
	return r < 0 ? r : child_node(tree, 0, frame_id, ret_node);
}

/* The text of a label that groups are made by; 0 when it is none of these, or the set has none. */
static int group_text(struct builder *b, uint32_t id, unsigned group, const char *key,
		      uint32_t *ret)
{
	const char *text =
		b->options->group & group ? profile_label_text(b->profile, id, key) : NULL;

	return text ? strtab_intern_text(&b->tree->strings, text, ret) : 0;
}

/* The node below which the samples of a label set belong. */
static int label_set_node(struct builder *b, uint32_t id)
{
	const struct tree_options *o = b->options;
	struct tree_group group = {
		.pid = UNKNOWN_NUMBER, .tid = UNKNOWN_NUMBER, .cpu = UNKNOWN_NUMBER};
	const char *comm = profile_label_text(b->profile, id, "comm");
	const char *cgroup = profile_label_text(b->profile, id, "cgroup");
	int r;

	b->group_nodes[id] = HASH_NONE;
	if (o->comm && (!comm || !str_glob(o->comm, comm)))
		return 0;
	if (o->cgroup && (!cgroup || !str_glob(o->cgroup, cgroup)))
		return 0;
	b->group_nodes[id] = 0;
	if (!o->group)
		return 0;
	r = group_text(b, id, TREE_GROUP_COMM, "comm", &group.comm);
	if (r == 0)
		r = group_text(b, id, TREE_GROUP_CGROUP, "cgroup", &group.cgroup);
	if (r == 0)
		r = group_text(b, id, TREE_GROUP_PIDNS, "pidns", &group.pidns);
	if (r == 0)
		r = group_text(b, id, TREE_GROUP_CGROUPNS, "cgroupns", &group.cgroupns);
	if (r < 0)
		return r;
	if (o->group & TREE_GROUP_PID)
		profile_label_number(b->profile, id, "pid", &group.pid);
	if (o->group & TREE_GROUP_TID)
		profile_label_number(b->profile, id, "tid", &group.tid);
	if (o->group & TREE_GROUP_CPU)
		profile_label_number(b->profile, id, "cpu", &group.cpu);
	return add_group(b->tree, &group, &b->group_nodes[id]);
}

/* Descends from *node through the frames of one location, outermost first (innermost when
 * reversed). */
static int descend(struct builder *b, uint32_t location_id, uint32_t *node)
{
	const struct profile_location *location = &b->profile->locations.data[location_id];
	int r = 0;

	if (location->line_count == 0)
		return child_node(b->tree, *node, b->location_frames[location_id], node);
	for (uint32_t i = 0; i < location->line_count && r == 0; i++) {
		uint32_t at = b->options->reversed ? i : location->line_count - 1 - i;

		r = child_node(b->tree, *node, b->line_frames[location->first_line + at], node);
	}
	return r;
}

static int stack_node(struct builder *b, uint32_t group_node, uint32_t stack, uint32_t *ret_node)
{
	uint32_t node = group_node;
	int r = 0;

	b->path.len = 0;
	for (; stack != 0; stack = b->profile->stacks.data[stack].parent) {
		if (u64_map_get(&b->stack_nodes, ((uint64_t)group_node << 32) | stack, &node))
			break;
		r = vec_push(&b->path, stack);
		if (r < 0)
			return r;
	}
	if (stack == 0)
		node = group_node;
	for (size_t i = b->path.len; i-- > 0 && r == 0;) {
		r = descend(b, b->profile->stacks.data[b->path.data[i]].location, &node);
		if (r == 0)
			r = u64_map_put(&b->stack_nodes,
					((uint64_t)group_node << 32) | b->path.data[i], node);
	}
	if (r == 0)
		*ret_node = node;
	return r;
}

static int reversed_node(struct builder *b, uint32_t group_node, uint32_t stack, uint32_t *ret_node)
{
	uint32_t node = group_node;
	int r = 0;

	for (; stack != 0 && r == 0; stack = b->profile->stacks.data[stack].parent)
		r = descend(b, b->profile->stacks.data[stack].location, &node);
	if (r == 0)
		*ret_node = node;
	return r;
}

static int add_samples(struct builder *b, enum tree_side side)
{
	const struct profile *profile = b->profile;
	struct tree *tree = b->tree;
	int64_t *all = side == TREE_BASE ? &tree->all_base_total : &tree->all_total;

	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct profile_sample *sample = &profile->samples.data[i];
		int64_t value =
			profile->values.data[i * profile->value_types.len + b->options->value];
		uint32_t group = b->group_nodes[sample->labels], at = 0;
		struct tree_node *node;
		int r;

		if (value <= 0)
			continue;
		*all = tree_sum(*all, value);
		if (group == HASH_NONE)
			continue;
		r = b->options->reversed ? reversed_node(b, group, sample->stack, &at)
					 : stack_node(b, group, sample->stack, &at);
		if (r < 0)
			return r;
		node = &tree->nodes.data[at];
		if (side == TREE_BASE)
			node->base_self = tree_sum(node->base_self, value);
		else
			node->self = tree_sum(node->self, value);
	}
	return 0;
}

static void builder_fini(struct builder *b)
{
	free(b->line_frames);
	free(b->location_frames);
	free(b->group_nodes);
	u64_map_fini(&b->stack_nodes);
	vec_fini(&b->path);
}

int tree_add(struct tree *tree, const struct profile *profile, const struct tree_options *options,
	     enum tree_side side)
{
	struct builder b = {.tree = tree, .profile = profile, .options = options};
	int r = 0;

	if (options->value >= profile->value_types.len)
		return profile->samples.len == 0 ? 0 : -EINVAL;
	b.line_frames = calloc(profile->lines.len + 1, sizeof(uint32_t));
	b.location_frames = calloc(profile->locations.len + 1, sizeof(uint32_t));
	b.group_nodes = calloc(profile->label_sets.len + 1, sizeof(uint32_t));
	if (!b.line_frames || !b.location_frames || !b.group_nodes)
		r = -ENOMEM;
	for (uint32_t i = 1; i < profile->locations.len && r == 0; i++)
		r = location_frames(&b, i);
	for (uint32_t i = 0; i < profile->label_sets.len && r == 0; i++)
		r = label_set_node(&b, i);
	if (r == 0)
		r = add_samples(&b, side);
	builder_fini(&b);
	return r;
}

static int compare_names(const void *left, const void *right, void *argument)
{
	const struct tree *tree = argument;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct tree_frame *fa = &tree->frames.data[a], *fb = &tree->frames.data[b];
	int order = strcmp(strtab_text(&tree->strings, fa->name),
			   strtab_text(&tree->strings, fb->name));

	return order ? order : (a > b) - (a < b);
}

struct keyed_node {
	uint32_t parent, rank, node;
};

static int compare_keyed(const void *left, const void *right)
{
	const struct keyed_node *a = left, *b = right;

	if (a->parent != b->parent)
		return a->parent > b->parent ? 1 : -1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Per node, in the order (parent, name); empty groups and frames of one side only stay. */
static struct keyed_node *sorted_nodes(struct tree *tree)
{
	size_t count = tree->nodes.len, frames = tree->frames.len;
	uint32_t *order = calloc(frames, sizeof(*order)), *ranks = calloc(frames, sizeof(*ranks));
	struct keyed_node *keyed = calloc(count, sizeof(*keyed));

	if (order && ranks && keyed) {
		for (uint32_t i = 0; i < frames; i++)
			order[i] = i;
		qsort_r(order, frames, sizeof(*order), compare_names, tree);
		for (uint32_t i = 0; i < frames; i++)
			ranks[order[i]] = i;
		for (uint32_t i = 0; i < count; i++)
			keyed[i] = (struct keyed_node){tree->nodes.data[i].parent,
						       ranks[tree->nodes.data[i].frame], i};
		if (count > 1)
			qsort(keyed + 1, count - 1, sizeof(*keyed), compare_keyed);
	} else {
		free(keyed);
		keyed = NULL;
	}
	free(order);
	free(ranks);
	return keyed;
}

/* Writes the nodes in preorder to sorted. children[p] .. children[p + 1] are p's places in keyed.
 */
static void write_preorder(const struct tree *tree, const struct keyed_node *keyed,
			   uint32_t *children, uint32_t *places, struct tree_node *sorted)
{
	const struct tree_node *nodes = tree->nodes.data;
	uint32_t count = (uint32_t)tree->nodes.len, node = 0, next = 1;

	places[0] = 0;
	sorted[0] = nodes[0];
	for (;;) {
		/* children[node] is the next child to visit; it ends where another parent begins.
		 */
		uint32_t at = children[node];

		if (at < count && keyed[at].parent == node && at > 0) {
			uint32_t child = keyed[at].node;

			children[node]++;
			sorted[next] = nodes[child];
			sorted[next].parent = places[node];
			sorted[next].depth = sorted[places[node]].depth + 1;
			places[child] = next++;
			node = child;
			continue;
		}
		sorted[places[node]].end = next;
		if (node == 0)
			return;
		node = nodes[node].parent;
	}
}

int tree_finish(struct tree *tree)
{
	size_t count = tree->nodes.len;
	struct tree_node *nodes = tree->nodes.data, *sorted = NULL;
	uint32_t *children = NULL, *places = NULL;
	struct keyed_node *keyed;

	for (size_t i = count; i-- > 0;) {
		struct tree_node *node = &nodes[i], *parent = &nodes[node->parent];

		node->total = tree_sum(node->total, node->self);
		node->base_total = tree_sum(node->base_total, node->base_self);
		if (i > 0) {
			parent->total = tree_sum(parent->total, node->total);
			parent->base_total = tree_sum(parent->base_total, node->base_total);
		}
	}
	u64_map_fini(&tree->children);
	keyed = sorted_nodes(tree);
	children = calloc(count, sizeof(*children));
	places = calloc(count, sizeof(*places));
	sorted = calloc(count, sizeof(*sorted));
	if (!keyed || !children || !places || !sorted) {
		free(keyed);
		free(children);
		free(places);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = count; i-- > 1;)
		children[keyed[i].parent] = (uint32_t)i;
	write_preorder(tree, keyed, children, places, sorted);
	memcpy(nodes, sorted, count * sizeof(*nodes));
	free(keyed);
	free(children);
	free(places);
	free(sorted);
	return 0;
}
