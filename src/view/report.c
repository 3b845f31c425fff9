#include "view/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

static const struct {
	const char *word;
	enum report_key key;
} key_words[] = {
	{"comm", REPORT_COMM},         {"command", REPORT_COMM},    {"pid", REPORT_PID},
	{"tid", REPORT_TID},           {"thread", REPORT_TID},      {"cpu", REPORT_CPU},
	{"dso", REPORT_DSO},           {"object", REPORT_DSO},      {"sym", REPORT_SYMBOL},
	{"symbol", REPORT_SYMBOL},     {"function", REPORT_SYMBOL}, {"file", REPORT_FILE},
	{"srcfile", REPORT_FILE},      {"cgroup", REPORT_CGROUP},   {"pidns", REPORT_PIDNS},
	{"cgroupns", REPORT_CGROUPNS},
};

int report_parse_keys(const char *text, unsigned *ret_keys, struct err *err)
{
	unsigned keys = 0;

	for (const char *at = text;;) {
		size_t len = strcspn(at, ",");
		unsigned key = 0;

		for (size_t i = 0; i < ARRAY_LEN(key_words); i++)
			if (strlen(key_words[i].word) == len &&
			    strncmp(at, key_words[i].word, len) == 0)
				key = key_words[i].key;
		if (key == 0)
			return err_set(err, -EINVAL,
				       "'%.*s' is no key: comm, pid, tid, cpu, cgroup, pidns, "
				       "cgroupns, dso, symbol or file",
				       (int)len, at);
		keys |= key;
		if (at[len] == '\0')
			break;
		at += len + 1;
	}
	*ret_keys = keys;
	return 0;
}

/* True when one of the globs matches; a list of none matches everything. */
static bool list_matches(const char *globs, const char *text)
{
	char glob[512];

	/* C++ names hold commas, brackets and stars: the whole text may be one name. */
	if (!globs || strcmp(globs, text) == 0)
		return true;
	for (;;) {
		size_t len = strcspn(globs, ",");

		if (len < sizeof(glob)) {
			memcpy(glob, globs, len);
			glob[len] = '\0';
			if (str_glob(glob, text))
				return true;
		}
		if (globs[len] == '\0')
			return false;
		globs += len + 1;
	}
}

struct builder {
	const struct tree *tree;
	const struct report_options *options;
	VEC(struct report_row) rows;
	struct hash_index index;
	uint32_t *row_of;  /* per tree node: its row; HASH_NONE: groups and the root */
	uint32_t *counted; /* per tree node: 1 when it counts in its row's total */
};

/* The row that a node belongs to, with only the keys set. */
static struct report_row key_of(const struct builder *b, const struct tree_node *node,
				const struct tree_group *group)
{
	const struct tree_frame *frame = &b->tree->frames.data[node->frame];
	unsigned keys = b->options->keys;

	return (struct report_row){
		.comm = keys & REPORT_COMM ? group->comm : 0,
		.pid = keys & REPORT_PID ? group->pid : -1,
		.tid = keys & REPORT_TID ? group->tid : -1,
		.cpu = keys & REPORT_CPU ? group->cpu : -1,
		.cgroup = keys & REPORT_CGROUP ? group->cgroup : 0,
		.pidns = keys & REPORT_PIDNS ? group->pidns : 0,
		.cgroupns = keys & REPORT_CGROUPNS ? group->cgroupns : 0,
		.dso = keys & REPORT_DSO ? frame->object : 0,
		.symbol = keys & REPORT_SYMBOL ? frame->name : 0,
		.file = keys & REPORT_FILE ? frame->file : 0,
		.kind = frame->kind,
	};
}

/* Only what is a key takes part: the rest of a stored row is information. */
static bool row_equal(const void *owner, uint32_t id, const void *key)
{
	const struct builder *b = owner;
	const struct report_row *have = &b->rows.data[id], *want = key;
	unsigned keys = b->options->keys;

	return (!(keys & REPORT_COMM) || have->comm == want->comm) &&
	       (!(keys & REPORT_PID) || have->pid == want->pid) &&
	       (!(keys & REPORT_TID) || have->tid == want->tid) &&
	       (!(keys & REPORT_CPU) || have->cpu == want->cpu) &&
	       (!(keys & REPORT_CGROUP) || have->cgroup == want->cgroup) &&
	       (!(keys & REPORT_PIDNS) || have->pidns == want->pidns) &&
	       (!(keys & REPORT_CGROUPNS) || have->cgroupns == want->cgroupns) &&
	       (!(keys & REPORT_DSO) || have->dso == want->dso) &&
	       (!(keys & REPORT_SYMBOL) || have->symbol == want->symbol) &&
	       (!(keys & REPORT_FILE) || have->file == want->file);
}

static uint64_t row_hash(const struct report_row *key)
{
	return hash_pair(hash_pair(((uint64_t)key->comm << 32) | key->dso,
				   ((uint64_t)key->symbol << 32) | key->file),
			 hash_pair(hash_pair((uint64_t)key->pid ^ (uint64_t)key->cgroupns << 32,
					     (uint64_t)key->pidns << 32 | key->cgroup),
				   hash_pair((uint64_t)key->tid, (uint64_t)key->cpu)));
}

/* Columns that are no keys still tell their value as long as all samples of the row agree. */
static void merge_information(struct report_row *row, const struct tree_group *group, unsigned keys)
{
	if (!(keys & REPORT_COMM) && row->comm != group->comm)
		row->comm = 0;
	if (!(keys & REPORT_PID) && row->pid != group->pid)
		row->pid = -1;
}

static int row_for(struct builder *b, const struct tree_node *node, const struct tree_group *group,
		   uint32_t *ret_row)
{
	struct report_row key = key_of(b, node, group);
	uint64_t hash = row_hash(&key);
	uint32_t id = hash_index_find(&b->index, hash, row_equal, b, &key);
	int r;

	if (id != HASH_NONE) {
		merge_information(&b->rows.data[id], group, b->options->keys);
		*ret_row = id;
		return 0;
	}
	if (!(b->options->keys & REPORT_COMM))
		key.comm = group->comm;
	if (!(b->options->keys & REPORT_PID))
		key.pid = group->pid;
	id = (uint32_t)b->rows.len;
	r = vec_push(&b->rows, key);
	if (r == 0)
		r = hash_index_add(&b->index, hash, id);
	if (r == 0)
		*ret_row = id;
	return r;
}

static int find_rows(struct builder *b)
{
	static const struct tree_group none = {0, -1, -1, -1};
	const struct tree_group *group = &none;

	for (uint32_t i = 0; i < b->tree->nodes.len; i++) {
		const struct tree_node *node = &b->tree->nodes.data[i];
		const struct tree_frame *frame = &b->tree->frames.data[node->frame];
		int r;

		b->row_of[i] = HASH_NONE;
		if (frame->kind == TREE_KIND_GROUP) {
			group = &b->tree->groups.data[frame->group];
			continue;
		}
		r = row_for(b, node, group, &b->row_of[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * open[row] counts how many of the nodes on the way from the root to here are of that row. Only the
 * outermost one adds to the total.
 */
static void add_values(struct builder *b, uint32_t *open)
{
	const struct tree_node *nodes = b->tree->nodes.data;
	uint32_t at = 0; /* the node whose callers are open */

	for (uint32_t i = 0; i < b->tree->nodes.len; i++) {
		struct report_row *row;

		while (i > 0 && i >= nodes[at].end) {
			if (b->row_of[at] != HASH_NONE)
				open[b->row_of[at]]--;
			at = nodes[at].parent;
		}
		at = i;
		if (b->row_of[i] == HASH_NONE)
			continue;
		row = &b->rows.data[b->row_of[i]];
		row->self = tree_sum(row->self, nodes[i].self);
		if (open[b->row_of[i]]++ == 0) {
			row->total = tree_sum(row->total, nodes[i].total);
			row->node_count++;
			b->counted[i] = 1;
		}
	}
}

/* The nodes of each row, one after the other: a counting sort. */
static int index_nodes(struct builder *b, struct report *report)
{
	uint32_t next = 0;
	int r;

	vec_for_each(&b->rows, row) {
		row->first_node = next;
		next += row->node_count;
		row->node_count = 0;
	}
	r = vec_reserve(&report->nodes, (size_t)next + 1);
	if (r < 0)
		return r;
	report->nodes.len = next;
	for (uint32_t i = 0; i < b->tree->nodes.len; i++) {
		struct report_row *row;

		if (!b->counted[i])
			continue;
		row = &b->rows.data[b->row_of[i]];
		report->nodes.data[row->first_node + row->node_count++] = i;
	}
	return 0;
}

static int compare_rows(const struct report_row *a, const struct report_row *b, bool children,
			const struct tree *tree)
{
	int64_t a1 = children ? a->total : a->self, b1 = children ? b->total : b->self;
	int64_t a2 = children ? a->self : a->total, b2 = children ? b->self : b->total;
	int order;

	if (a1 != b1)
		return a1 < b1 ? 1 : -1;
	if (a2 != b2)
		return a2 < b2 ? 1 : -1;
	order = strcmp(strtab_text(&tree->strings, a->symbol),
		       strtab_text(&tree->strings, b->symbol));
	return order ? order : (a->first_node > b->first_node) - (a->first_node < b->first_node);
}

static int compare_by_total(const void *a, const void *b, void *tree)
{
	return compare_rows(a, b, true, tree);
}

static int compare_by_self(const void *a, const void *b, void *tree)
{
	return compare_rows(a, b, false, tree);
}

static bool row_wanted(const struct builder *b, const struct report_row *row)
{
	const struct report_options *options = b->options;
	const char *dso = strtab_text(&b->tree->strings, row->dso);
	int64_t value = options->children ? row->total : row->self;

	if (value <= 0 || (double)value < options->least_share * (double)b->tree->all_total)
		return false;
	if (options->dso && !list_matches(options->dso, dso) &&
	    !list_matches(options->dso, tree_object_base(dso)))
		return false;
	return list_matches(options->symbol, strtab_text(&b->tree->strings, row->symbol));
}

static int select_rows(struct builder *b, struct report *report)
{
	void *tree = (void *)(uintptr_t)b->tree;

	vec_for_each(&b->rows, row) {
		if (!row_wanted(b, row)) {
			report->left_out++;
			continue;
		}
		if (vec_push(&report->rows, *row) < 0)
			return -ENOMEM;
	}
	if (report->rows.len > 1)
		qsort_r(report->rows.data, report->rows.len, sizeof(*report->rows.data),
			b->options->children && !b->options->by_self ? compare_by_total
								     : compare_by_self,
			tree);
	if (b->options->max_rows && report->rows.len > b->options->max_rows) {
		report->left_out += report->rows.len - b->options->max_rows;
		report->rows.len = b->options->max_rows;
	}
	return 0;
}

int report_build(const struct tree *tree, const struct report_options *options, struct report *ret)
{
	struct builder b = {.tree = tree, .options = options};
	struct report report = {.all = tree->all_total};
	uint32_t *open = NULL;
	int r = -ENOMEM;

	b.row_of = calloc(tree->nodes.len, sizeof(uint32_t));
	b.counted = calloc(tree->nodes.len, sizeof(uint32_t));
	if (b.row_of && b.counted)
		r = find_rows(&b);
	if (r == 0) {
		open = calloc(b.rows.len + 1, sizeof(*open));
		r = open ? 0 : -ENOMEM;
	}
	if (r == 0) {
		add_values(&b, open);
		r = index_nodes(&b, &report);
	}
	if (r == 0)
		r = select_rows(&b, &report);
	free(open);
	free(b.row_of);
	free(b.counted);
	vec_fini(&b.rows);
	hash_index_fini(&b.index);
	if (r < 0) {
		report_fini(&report);
		return r;
	}
	*ret = report;
	return 0;
}

void report_fini(struct report *report)
{
	vec_fini(&report->rows);
	vec_fini(&report->nodes);
}
