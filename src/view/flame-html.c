/*
 * The HTML page: assets/flame.{html,css,js} around one JSON document. The tree travels in preorder
 * as arrays: "up" is how many levels to climb from the node before until the parent is found,
 * "frame" its frame, "self" its own value; the page sums totals itself. Data is in a block that is
 * not executed, and
 * '<' never stands in it, so that no name can end it.
 *
 * Children that are too small become one node of a frame of their own kind, so that sums stay
 * right.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "view/assets.h"
#include "view/flamegraph.h"
#include "view/text.h"

#define MAX_PAGE_NODES 400000 /* more makes the page slow to open and shows nothing more */
#define KIND_HIDDEN    14
#define FRAME_HIDDEN   UINT32_MAX

/* Dense ids in order of first use. */
struct id_list {
	VEC(uint32_t) ids;
	struct u64_map map;
};

struct page_node {
	uint32_t up, frame; /* frame: page id */
	int64_t self, base_self;
};

struct page {
	const struct tree *tree;
	const struct flamegraph_options *options;
	int64_t least;
	uint64_t hidden;
	VEC(struct page_node) nodes;
	VEC(struct page_node)
	merged; /* per depth: hidden children of the open node of that depth */
	struct id_list frames, strings;
	uint32_t last_depth;
	struct json json;
};

static int dense_id(struct id_list *list, uint32_t id, uint32_t *ret)
{
	int r;

	if (u64_map_get(&list->map, id, ret))
		return 0;
	r = vec_push(&list->ids, id);
	if (r == 0)
		r = u64_map_put(&list->map, id, (uint32_t)(list->ids.len - 1));
	if (r == 0)
		*ret = (uint32_t)(list->ids.len - 1);
	return r;
}

static bool is_hidden(const struct page *page, const struct tree_node *node)
{
	return node->depth > 0 && node->total < page->least && node->base_total < page->least;
}

static uint64_t count_kept(const struct page *page)
{
	uint64_t kept = 0;

	for (uint32_t i = 0; i < page->tree->nodes.len; kept++) {
		const struct tree_node *node = &page->tree->nodes.data[i];

		if (is_hidden(page, node)) {
			i = node->end;
			kept--;
		} else {
			i++;
		}
	}
	return kept;
}

static int push_node(struct page *page, uint32_t depth, uint32_t frame, int64_t self,
		     int64_t base_self)
{
	struct page_node node = {.self = self, .base_self = base_self};
	int r = dense_id(&page->frames, frame, &node.frame);

	node.up = page->nodes.len ? page->last_depth + 1 - depth : 0;
	page->last_depth = depth;
	return r < 0 ? r : vec_push(&page->nodes, node);
}

/* Writes the merged children of the open nodes from depth on, deepest first. */
static int close_to(struct page *page, uint32_t depth)
{
	int r = 0;

	while (page->merged.len > depth && r == 0) {
		struct page_node merged = page->merged.data[--page->merged.len];

		if (merged.self > 0 || merged.base_self > 0)
			r = push_node(page, (uint32_t)page->merged.len + 1, FRAME_HIDDEN,
				      merged.self, merged.base_self);
	}
	return r;
}

static int collect_nodes(struct page *page)
{
	const struct tree *tree = page->tree;
	int r = 0;

	for (uint32_t i = 0; i < tree->nodes.len && r == 0;) {
		const struct tree_node *node = &tree->nodes.data[i];

		r = close_to(page, node->depth);
		if (r < 0)
			break;
		if (is_hidden(page, node)) {
			struct page_node *merged = &page->merged.data[node->depth - 1];

			merged->self = tree_sum(merged->self, node->total);
			merged->base_self = tree_sum(merged->base_self, node->base_total);
			page->hidden += node->total > 0 || node->base_total > 0 ? node->end - i : 0;
			i = node->end;
			continue;
		}
		r = push_node(page, node->depth, node->frame, node->self, node->base_self);
		if (r == 0)
			r = vec_push(&page->merged, ((struct page_node){0}));
		i++;
	}
	return r < 0 ? r : close_to(page, 0);
}

/* One number per page frame. */
static int put_frame_column(struct page *page, const char *key,
			    uint32_t (*get)(const struct tree_frame *), bool is_string)
{
	int r = 0;

	json_array(&page->json, key);
	vec_for_each(&page->frames.ids, id) {
		uint32_t value = *id == FRAME_HIDDEN ? 0 : get(&page->tree->frames.data[*id]);

		if (is_string)
			r = dense_id(&page->strings, value, &value);
		else if (*id == FRAME_HIDDEN)
			value = KIND_HIDDEN;
		if (r < 0)
			return r;
		json_u64(&page->json, NULL, value);
	}
	json_end_array(&page->json);
	return 0;
}

static uint32_t get_name(const struct tree_frame *frame)
{
	return frame->name;
}

static uint32_t get_object(const struct tree_frame *frame)
{
	return frame->object;
}

static uint32_t get_file(const struct tree_frame *frame)
{
	return frame->file;
}

static uint32_t get_kind(const struct tree_frame *frame)
{
	return frame->kind;
}

static void put_strings(struct page *page)
{
	struct str clean = {0};

	json_array(&page->json, "strings");
	vec_for_each(&page->strings.ids, id) {
		const char *text = strtab_text(&page->tree->strings, *id);

		str_clear(&clean);
		text_clean(&clean, text, strlen(text));
		json_text(&page->json, NULL, str_text(&clean));
	}
	json_end_array(&page->json);
	json_array(&page->json, "hashes");
	vec_for_each(&page->strings.ids, id) {
		json_u64(&page->json, NULL,
			 flamegraph_hash(strtab_text(&page->tree->strings, *id)));
	}
	json_end_array(&page->json);
	if (str_status(&clean) < 0)
		page->json.out.status = clean.status;
	str_fini(&clean);
}

static void put_nodes(struct page *page)
{
	struct json *json = &page->json;

	json_array(json, "up");
	vec_for_each(&page->nodes, node)
		json_u64(json, NULL, node->up);
	json_end_array(json);
	json_array(json, "frame");
	vec_for_each(&page->nodes, node)
		json_u64(json, NULL, node->frame);
	json_end_array(json);
	json_array(json, "self");
	vec_for_each(&page->nodes, node)
		json_i64(json, NULL, node->self);
	json_end_array(json);
	if (!page->options->diff)
		return;
	json_array(json, "base");
	vec_for_each(&page->nodes, node)
		json_i64(json, NULL, node->base_self);
	json_end_array(json);
}

static int put_data(struct page *page)
{
	static const char *const colors[] = {"kind", "object", "name"};
	const struct flamegraph_options *options = page->options;
	struct json *json = &page->json;
	int r;

	json->compact = true;
	json_object(json, NULL);
	json_text(json, "unit", options->unit ? options->unit : "samples");
	json_text(json, "color", colors[options->color]);
	json_bool(json, "icicle", options->icicle);
	json_bool(json, "diff", options->diff);
	json_u64(json, "hidden", page->hidden);
	r = put_frame_column(page, "names", get_name, true);
	if (r == 0)
		r = put_frame_column(page, "objects", get_object, true);
	if (r == 0)
		r = put_frame_column(page, "files", get_file, true);
	if (r == 0)
		r = put_frame_column(page, "kinds", get_kind, false);
	if (r < 0)
		return r;
	put_strings(page);
	put_nodes(page);
	json_end_object(json);
	return str_status(&json->out);
}

/* Data inside <script>: "<" could begin "</script" or "<!--"; JSON lets it be written otherwise. */
static void put_script_data(struct str *out, const char *json)
{
	while (*json) {
		size_t run = strcspn(json, "<");

		str_append(out, json, run);
		json += run;
		if (*json) {
			str_puts(out, "\\u003c");
			json++;
		}
	}
}

/* The template, with its {{NAME}} places filled. */
static void put_page(const struct page *page, struct str *out)
{
	const char *title = page->options->title ? page->options->title : "Flame Graph";
	const char *info = page->options->info ? page->options->info : "";
	const char *at = asset_flame_html, *place;

	for (; (place = strstr(at, "{{")); at = strstr(place, "}}") + 2) {
		str_append(out, at, (size_t)(place - at));
		if (str_prefix(place, "{{TITLE}}", NULL))
			text_xml(out, title, strlen(title));
		else if (str_prefix(place, "{{INFO}}", NULL))
			text_xml(out, info, strlen(info));
		else if (str_prefix(place, "{{CSS}}", NULL))
			str_append(out, asset_flame_css, asset_flame_css_size);
		else if (str_prefix(place, "{{JS}}", NULL))
			str_append(out, asset_flame_js, asset_flame_js_size);
		else if (str_prefix(place, "{{TREE_JS}}", NULL))
			str_append(out, asset_flame_tree_js, asset_flame_tree_js_size);
		else if (str_prefix(place, "{{DATA}}", NULL))
			put_script_data(out, str_text(&page->json.out));
	}
	str_puts(out, at);
}

int flamegraph_html(const struct tree *tree, const struct flamegraph_options *options,
		    struct str *out)
{
	struct page page = {.tree = tree, .options = options, .least = 1};
	int r;

	if (options->reversed)
		return -EINVAL;
	if (tree->nodes.data[0].total <= 0 && tree->nodes.data[0].base_total <= 0)
		return -ENODATA;
	if (options->min_share > 0)
		page.least = (int64_t)MIN(
			ceil(options->min_share * (double)tree->nodes.data[0].total), 0x1p62);
	page.least = MAX(page.least, 1);
	while (count_kept(&page) > MAX_PAGE_NODES && page.least < INT64_MAX / 2)
		page.least = page.least * 2;
	r = collect_nodes(&page);
	if (r == 0)
		r = put_data(&page);
	if (r == 0) {
		put_page(&page, out);
		r = str_status(out);
	}
	vec_fini(&page.nodes);
	vec_fini(&page.merged);
	vec_fini(&page.frames.ids);
	vec_fini(&page.strings.ids);
	u64_map_fini(&page.frames.map);
	u64_map_fini(&page.strings.map);
	str_fini(&page.json.out);
	return r;
}
