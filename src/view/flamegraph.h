/*
 * Flame graphs of a finished tree: an SVG that is a whole picture without its script, and one HTML
 * page that needs nothing else (no network: its policy forbids any).
 *
 * Frames narrower than a limit are not drawn; neighbours of them become one grey block and their
 * number is said. Colours follow the kind of code in hues of the Okabe-Ito palette, which
 * colour-blind people tell apart; a name has the same shade in every graph. When the tree has a
 * base (TREE_BASE), colour shows the change of the share instead: orange grew, blue shrank.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "view/tree.h"

enum flame_color {
	FLAME_COLOR_KIND,
	FLAME_COLOR_OBJECT,
	FLAME_COLOR_NAME,
};

struct flamegraph_options {
	const char *title; /* NULL: "Flame Graph" */
	const char *info;  /* a line below the title: samples, lost, truncated; NULL: none */
	const char *unit;  /* of the values: "samples", "nanoseconds"; NULL: "samples" */
	unsigned width;    /* of the SVG in pixels; 0: 1200 */
	double min_share;  /* frames below this share of all are merged; < 0: what is too narrow to
			      see */
	bool icicle;       /* the root at the top */
	bool reversed;     /* the tree is bottom-up (tree_options.reversed): said in the picture */
	bool diff;         /* colour by change against the base */
	enum flame_color color;
};

/* Appends the document. 0, -ENOMEM, or -ENODATA when the tree holds no sample. */
int flamegraph_svg(const struct tree *tree, const struct flamegraph_options *options,
		   struct str *out);
/* The same as one HTML page that zooms, searches and turns the tree over. A reversed tree is
 * refused
 * (-EINVAL): the page does that by itself. */
int flamegraph_html(const struct tree *tree, const struct flamegraph_options *options,
		    struct str *out);

/* "#rrggbb" of a frame; the page computes the same from (kind, hash). */
void flamegraph_frame_color(const struct tree *tree, uint32_t frame, enum flame_color mode,
			    char out[8]);
/* Of a change of the share, -1 .. 1 after scaling. */
void flamegraph_diff_color(double change, char out[8]);
/* What decides shade and hue of a name: FNV-1a of its bytes. */
uint32_t flamegraph_hash(const char *text);
