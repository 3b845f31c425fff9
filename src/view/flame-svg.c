/*
 * The SVG. Layout is one pass over the preorder: x is the running sum of the siblings before a
 * node. Every frame is a <g class="f"> with a <title> (the tooltip without script), a rectangle and
 * a label cut to fit; its x, width and depth in data-* attributes (shares of the whole, in
 * millionths) are what the script zooms with. Text is monospaced so that a label's width is known
 * without a font.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "view/assets.h"
#include "view/flamegraph.h"
#include "view/text.h"

#define DEFAULT_WIDTH    1200
#define MIN_SVG_WIDTH    300
#define ROW_HEIGHT       17
#define MARGIN           12.0
#define TOP              76
#define BOTTOM           48
#define CHAR_WIDTH       6.65 /* of the 11 px monospace fonts named in the style sheet */
#define TEXT_PAD         4.0
#define NARROWEST_PIXELS 0.1
#define NARROWEST_BLOCK  0.4
#define ELLIPSIS         "\xe2\x80\xa6"

struct hidden_run {
	double x, end;
	uint64_t frames;
};

struct svg {
	const struct tree *tree;
	const struct flamegraph_options *options;
	struct str *out;
	double width, scale; /* pixels; pixels per unit of value */
	int64_t total, least;
	uint32_t max_depth;
	uint64_t hidden;
	double max_change;
	struct hidden_run *runs; /* per depth */
	double *next_x;          /* per depth: where the next child begins, in values */
};

static double share(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static double change_of(const struct tree *tree, const struct tree_node *node)
{
	return share(node->total, tree->all_total) - share(node->base_total, tree->all_base_total);
}

static double row_y(const struct svg *svg, uint32_t depth)
{
	return TOP + (double)(svg->options->icicle ? depth : svg->max_depth - depth) * ROW_HEIGHT;
}

/* Depth of the drawing and the hidden frames, before anything is written. */
static void measure(struct svg *svg)
{
	const struct tree_node *nodes = svg->tree->nodes.data;

	for (uint32_t i = 0; i < svg->tree->nodes.len;) {
		const struct tree_node *node = &nodes[i];

		if (node->total < svg->least || node->total <= 0) {
			svg->hidden += node->total > 0 ? node->end - i : 0;
			i = node->end;
			continue;
		}
		svg->max_depth = MAX(svg->max_depth, node->depth);
		if (node->depth > 0)
			svg->max_change = MAX(svg->max_change, fabs(change_of(svg->tree, node)));
		i++;
	}
}

static void put_title(struct svg *svg, const struct tree_node *node)
{
	const struct tree *tree = svg->tree;
	const struct tree_frame *frame = &tree->frames.data[node->frame];
	const char *name = strtab_text(&tree->strings, frame->name);
	const char *object = strtab_text(&tree->strings, frame->object);
	const char *file = strtab_text(&tree->strings, frame->file);
	int64_t parent = tree->nodes.data[node->parent].total;
	struct str *out = svg->out;

	str_puts(out, "<title>");
	text_xml(out, name, strlen(name));
	if (object[0]) {
		str_puts(out, "\nin ");
		text_xml(out, object, strlen(object));
	}
	if (file[0]) {
		str_puts(out, "\nfrom ");
		text_xml(out, file, strlen(file));
	}
	str_putc(out, '\n');
	text_group(out, (uint64_t)node->total);
	str_printf(out, " %s, %.2f%% of all", svg->options->unit ? svg->options->unit : "samples",
		   100 * share(node->total, svg->total));
	if (node->depth > 0)
		str_printf(out, ", %.2f%% of parent", 100 * share(node->total, parent));
	str_puts(out, "; self ");
	text_group(out, (uint64_t)node->self);
	if (svg->options->diff)
		str_printf(out, "\n%+.2f points against the base (%.2f%%)",
			   100 * change_of(tree, node),
			   100 * share(node->base_total, tree->all_base_total));
	str_puts(out, "</title>");
}

/* The label cut on code points to what fits in pixels; nothing when less than three characters do.
 */
static void put_label(struct svg *svg, const char *name, double x, double y, double pixels)
{
	double room = (pixels - 2 * TEXT_PAD) / CHAR_WIDTH;
	unsigned columns = room > 0 ? (unsigned)room : 0, used = 0;
	size_t left = strlen(name), at = 0;
	bool cut = text_width(name) > columns;

	if (columns < 3)
		return;
	while (at < left) {
		uint32_t code;
		size_t n = text_decode(name + at, left - at, &code);

		if (used + text_code_width(code) > columns - (cut ? 1 : 0))
			break;
		used += text_code_width(code);
		at += n;
	}
	str_printf(svg->out, "<text x=\"%.2f\" y=\"%.0f\">", x + TEXT_PAD, y + 12);
	text_xml(svg->out, name, at);
	str_puts(svg->out, cut ? ELLIPSIS "</text>" : "</text>");
}

static void put_frame(struct svg *svg, const struct tree_node *node, double value_x)
{
	const char *name =
		strtab_text(&svg->tree->strings, svg->tree->frames.data[node->frame].name);
	double x = MARGIN + value_x * svg->scale, y = row_y(svg, node->depth);
	double pixels = (double)node->total * svg->scale;
	struct str *out = svg->out;
	char color[8];

	if (svg->options->diff && node->depth > 0)
		flamegraph_diff_color(
			svg->max_change > 0 ? change_of(svg->tree, node) / svg->max_change : 0,
			color);
	else
		flamegraph_frame_color(svg->tree, node->frame, svg->options->color, color);
	str_printf(out, "<g class=\"f\" data-x=\"%.8f\" data-w=\"%.8f\" data-d=\"%u\">",
		   value_x / (double)svg->total, share(node->total, svg->total), node->depth);
	put_title(svg, node);
	str_printf(out, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>", x,
		   y, MAX(pixels - (pixels > 2 ? 0.5 : 0), 0.1), ROW_HEIGHT - 1, color);
	put_label(svg, name, x, y, pixels);
	str_puts(out, "</g>\n");
}

static void flush_run(struct svg *svg, uint32_t depth)
{
	struct hidden_run *run = &svg->runs[depth];
	double pixels = (run->end - run->x) * svg->scale;

	if (run->frames > 0 && pixels >= NARROWEST_BLOCK && depth <= svg->max_depth)
		str_printf(
			svg->out,
			"<g class=\"h\"><title>%llu hidden frames, each too narrow to see</title>"
			"<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\"/></g>\n",
			(unsigned long long)run->frames, MARGIN + run->x * svg->scale,
			row_y(svg, depth), pixels, ROW_HEIGHT - 1);
	run->frames = 0;
}

static void hide(struct svg *svg, const struct tree_node *node, uint32_t index, double x)
{
	struct hidden_run *run = &svg->runs[node->depth];

	if (run->frames > 0 && run->end != x)
		flush_run(svg, node->depth);
	if (run->frames == 0)
		run->x = x;
	run->end = x + (double)node->total;
	run->frames += node->end - index;
}

static void put_frames(struct svg *svg)
{
	const struct tree_node *nodes = svg->tree->nodes.data;

	for (uint32_t i = 0; i < svg->tree->nodes.len;) {
		const struct tree_node *node = &nodes[i];
		double x = svg->next_x[node->depth];

		if (node->total <= 0) {
			i = node->end;
			continue;
		}
		svg->next_x[node->depth] = x + (double)node->total;
		if (node->total < svg->least) {
			hide(svg, node, i, x);
			i = node->end;
			continue;
		}
		put_frame(svg, node, x);
		svg->next_x[node->depth + 1] = x;
		i++;
	}
	for (uint32_t depth = 0; depth <= svg->max_depth + 1; depth++)
		flush_run(svg, depth);
}

struct legend {
	const char *name, *color;
};

static void put_legend(struct svg *svg, double y)
{
	static const struct legend kinds[] = {
		{"user", "#8fc7ea"}, {"kernel", "#f3bb5d"}, {"JIT", "#86c9b3"},
		{"vdso", "#e1a6c8"}, {"guest", "#ecdf73"},
	};
	static const struct legend changes[] = {
		{"grew", "#fa9a38"},
		{"same", "#e4e4e4"},
		{"shrank", "#64b0e4"},
	};
	const struct legend *items = svg->options->diff ? changes : kinds;
	size_t count = svg->options->diff ? ARRAY_LEN(changes) : ARRAY_LEN(kinds);
	double x = MARGIN;

	if (svg->options->color != FLAME_COLOR_KIND && !svg->options->diff)
		return;
	str_puts(svg->out, "<g id=\"legend\">");
	for (size_t i = 0; i < count; i++) {
		str_printf(svg->out,
			   "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" rx=\"2\" "
			   "fill=\"%s\"/>"
			   "<text class=\"t\" x=\"%.0f\" y=\"%.0f\">%s</text>",
			   x, y - 10, items[i].color, x + 17, y, items[i].name);
		x += 34 + 7 * (double)strlen(items[i].name);
	}
	str_puts(svg->out, "</g>\n");
}

static void put_head(struct svg *svg, double height)
{
	const char *title = svg->options->title ? svg->options->title : "Flame Graph";
	const char *info = svg->options->info ? svg->options->info : "";
	struct str *out = svg->out;

	str_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" "
		   "height=\"%.0f\" "
		   "viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"title info\" "
		   "data-margin=\"%.0f\" data-char=\"%.2f\">\n<title>",
		   svg->width, height, svg->width, height, MARGIN, CHAR_WIDTH);
	text_xml(out, title, strlen(title));
	str_puts(out, "</title>\n<style>");
	str_append(out, asset_svg_css, asset_svg_css_size);
	str_puts(out, "</style>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n<text "
		      "id=\"title\" x=\"12\" y=\"28\">");
	text_xml(out, title, strlen(title));
	str_puts(out, "</text>\n<text id=\"info\" class=\"t\" x=\"12\" y=\"47\">");
	text_xml(out, info, strlen(info));
	if (svg->options->reversed)
		str_puts(out, " \xc2\xb7 bottom-up: callers above");
	if (svg->hidden) {
		str_puts(out, " \xc2\xb7 ");
		text_group(out, svg->hidden);
		str_puts(out, " frames too narrow to see");
	}
	str_puts(out, "</text>\n");
	str_printf(out,
		   "<text id=\"reset\" class=\"b\" x=\"12\" y=\"66\" tabindex=\"0\" "
		   "role=\"button\">Reset zoom</text>\n"
		   "<text id=\"search\" class=\"b\" x=\"%.0f\" y=\"28\" text-anchor=\"end\" "
		   "tabindex=\"0\" "
		   "role=\"button\">Search</text>\n"
		   "<text id=\"matched\" class=\"t\" x=\"%.0f\" y=\"47\" text-anchor=\"end\" "
		   "aria-live=\"polite\"> </text>\n",
		   svg->width - MARGIN, svg->width - MARGIN);
}

int flamegraph_svg(const struct tree *tree, const struct flamegraph_options *options,
		   struct str *out)
{
	struct svg svg = {
		.tree = tree, .options = options, .out = out, .total = tree->nodes.data[0].total};
	double height, least;

	if (svg.total <= 0)
		return -ENODATA;
	svg.width = options->width ? MAX(options->width, MIN_SVG_WIDTH) : DEFAULT_WIDTH;
	svg.scale = (svg.width - 2 * MARGIN) / (double)svg.total;
	least = options->min_share >= 0 ? ceil(options->min_share * (double)svg.total)
					: ceil(NARROWEST_PIXELS / svg.scale);
	svg.least = least < 1 ? 1 : least >= 0x1p62 ? INT64_MAX : (int64_t)least;
	measure(&svg);
	svg.runs = calloc(svg.max_depth + 2, sizeof(*svg.runs));
	svg.next_x = calloc(svg.max_depth + 3, sizeof(*svg.next_x));
	if (!svg.runs || !svg.next_x) {
		free(svg.runs);
		free(svg.next_x);
		return -ENOMEM;
	}
	height = TOP + (svg.max_depth + 1.0) * ROW_HEIGHT + BOTTOM;
	put_head(&svg, height);
	str_puts(out, "<g id=\"frames\">\n");
	put_frames(&svg);
	str_puts(out, "</g>\n<text id=\"details\" class=\"t\" x=\"12\" y=\"");
	str_printf(out, "%.0f\"> </text>\n", height - 28);
	put_legend(&svg, height - 10);
	str_puts(out, "<script><![CDATA[\n");
	str_append(out, asset_svg_js, asset_svg_js_size);
	str_puts(out, "]]></script>\n</svg>\n");
	free(svg.runs);
	free(svg.next_x);
	return str_status(out);
}
